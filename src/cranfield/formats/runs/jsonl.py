"""Runs as JSON Lines: read and written.

The run file holds what a second collection should give again, byte for byte. Latencies and raw output differ from one
collection to the next: they are in the log file, which a reader can do without.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn, TypeVar, get_args

from cranfield.base.errors import ProblemList, RunFormatError, shorten
from cranfield.base.words import short_name
from cranfield.formats.io.files import MAX_RECORD_BYTES, bounded_lines, opened, shown, write_text
from cranfield.formats.runs.record import RecordReader, answer_from_record, answer_record, json_line, log_record
from cranfield.model import Answer, CallLog, Order, Run

__all__ = ["answer_from_record", "answer_record", "json_line", "log_path", "read_run", "write_run"]

RUN_KEY = "cranfield_run"
LOG_KEY = "cranfield_run_log"
VERSION = 1
Taken = TypeVar("Taken")
Made = TypeVar("Made")
HEADER_KEYS = (
    RUN_KEY,
    "name",
    "depth",
    "order",
    "testset_digest",
    "config_digest",
    "pilot",
    "config",
    "says_empty",
    "extra_queries",
)


def log_path(path: Path | str) -> Path:
    """Where the log of a run file lies: `runs/old.jsonl` has `runs/old.log.jsonl`."""
    path = Path(path)
    return path.with_name(path.name.removesuffix(".gz").removesuffix(".jsonl") + ".log.jsonl")


def write_run(run: Run, path: Path | str, *, root: Path | None = None) -> None:
    """Write a run, its answers in their order, and its log beside it (an old log goes when the run has none).

    Both are readable by their owner alone: they hold what the system under test gave.

    Args:
        run: the run.
        path: of its file.
        root: folder of the user's below which no link is followed; None: the user named the file.

    Raises:
        RunFormatError: a score is not finite, or a field is nothing that JSON can say.
    """
    path = Path(path)
    header: dict[str, Any] = {key: getattr(run, key) for key in HEADER_KEYS[1:7]} | {"config": dict(run.config)}
    if not run.says_empty:
        header["says_empty"] = False
    if run.extra_queries:
        header["extra_queries"] = list(run.extra_queries)
    lines = [json_line({RUN_KEY: VERSION, **header})]
    lines += [json_line(answer_record(query_id, answer)) for query_id, answer in run.answers.items()]
    logs = [json_line({"query_id": query_id, **log_record(log)}) for query_id, log in run.logs.items()]
    if logs:
        header = {LOG_KEY: VERSION, "name": run.name, **({"changed": True} if run.changed else {})}
        header |= {} if run.machine is None else {"machine": run.machine}
        write_text(log_path(path), [json_line(header), *logs], errors="surrogatepass", root=root, private=True)
    else:
        log_path(path).unlink(missing_ok=True)
    write_text(path, lines, errors="surrogatepass", root=root, private=True)


def read_run(path: Path | str) -> Run:
    """Read a run that `write_run` wrote, with its log where it is there.

    Raises:
        RunFormatError: with every line that is malformed.
    """
    path = Path(path)
    answers: dict[str, Answer] = {}
    reader = _LineReader(path)
    header: dict[str, Any] | None = None

    def take_answer(record: dict[str, Any]) -> str:
        query_id, answer, _ = answer_from_record(record)
        answers.setdefault(query_id, answer)
        return query_id

    for line, record in reader.records():
        if header is None:
            header = record
            if reader.attempt(line, _check_version, record):
                reader.attempt(line, _check_header, record)
            else:
                break
        else:
            reader.take(line, record, take_answer)
    reader.problems.raise_if_any()
    if header is None:
        raise RunFormatError(
            "the file is empty", path=shown(path), expected=f'a header line {{"{RUN_KEY}":{VERSION},…}}'
        )
    logs, about = _read_logs(log_path(path))
    return Run(
        name=short_name(header["name"]),
        answers=answers,
        depth=header.get("depth"),
        order=header.get("order", "given"),
        logs=logs,
        testset_digest=header.get("testset_digest"),
        config_digest=header.get("config_digest"),
        pilot=header.get("pilot", False),
        config=header.get("config", {}),
        changed=about.get("changed") is True,
        machine=machine if isinstance(machine := about.get("machine"), str) else None,
        says_empty=header.get("says_empty", True),
        extra_queries=tuple(header.get("extra_queries", ())),
    )


def _read_logs(path: Path) -> tuple[dict[str, CallLog], dict[str, Any]]:
    """The log of each query, and the header."""
    if not path.exists():
        return {}, {}
    header: dict[str, Any] = {}
    logs: dict[str, CallLog] = {}
    reader = _LineReader(path, hint="it contains only latencies and raw output; the run can be read without it")

    def take_log(record: dict[str, Any]) -> str:
        members = RecordReader()
        query_id = members.text(record, "query_id", required=True) or ""
        log = members.log({key: value for key, value in record.items() if key != "query_id"}, "the line")
        if members.problems:
            raise RunFormatError(members.problems)
        logs.setdefault(query_id, log)
        return query_id

    for line, record in reader.records():
        if LOG_KEY not in record:
            reader.take(line, record, take_log)
        else:
            header = record
    reader.problems.raise_if_any()
    return logs, header


def _check_version(header: dict[str, Any]) -> bool:
    version = header.get(RUN_KEY)
    if version == VERSION and not isinstance(version, bool):
        return True
    raise RunFormatError(
        f"wrong value for {RUN_KEY}" if RUN_KEY in header else "not the header of a run",
        expected=f'"{RUN_KEY}": {VERSION}',
        got=shorten(version) if RUN_KEY in header else None,
    )


def _check_header(header: dict[str, Any]) -> None:
    members = RecordReader()
    members.mapping(header, "the header", HEADER_KEYS)
    members.text(header, "name", required=True)
    for key in ("testset_digest", "config_digest"):
        if header.get(key) is not None:
            members.text(header, key)
    depth, order, pilot = header.get("depth"), header.get("order", "given"), header.get("pilot", False)
    if depth is not None and (not isinstance(depth, int) or isinstance(depth, bool) or depth < 1):
        members.wrong("wrong value for depth", expected="a whole number of 1 or more, or null", got=shorten(depth))
    if order not in get_args(Order):
        members.wrong("wrong value for order", expected=" or ".join(get_args(Order)), got=shorten(order))
    for key, value in (("pilot", pilot), ("says_empty", header.get("says_empty", True))):
        if not isinstance(value, bool):
            members.wrong(f"wrong value for {key}", expected="true or false", got=shorten(value))
    members.mapping(header.get("config", {}), "config")
    extra = header.get("extra_queries", [])
    if not isinstance(extra, list) or not all(isinstance(each, str) for each in extra):
        members.wrong("wrong value for extra_queries", expected="a list of texts", got=shorten(extra))
    if members.problems:
        raise RunFormatError(members.problems)


@dataclass
class _LineReader:
    """Lines of JSON objects, and the problems of each at its line."""

    path: Path
    hint: str | None = None
    problems: ProblemList = field(default_factory=lambda: ProblemList(RunFormatError))
    _seen: dict[str, int] = field(default_factory=dict)

    def records(self) -> Iterator[tuple[int, dict[str, Any]]]:
        with opened(self.path, RunFormatError) as stream:
            lines = bounded_lines(stream, self.path, RunFormatError, MAX_RECORD_BYTES)
            for line, data in enumerate(lines, start=1):
                if not data.strip():
                    continue
                record = self.attempt(line, _object, data)
                if record is not None:
                    yield line, record
                elif line == 1:
                    return

    def attempt(self, line: int, action: Callable[[Taken], Made], argument: Taken) -> Made | None:
        """What `action` makes of `argument`; None when it raised, and its problems are noted at this line."""
        try:
            return action(argument)
        except RunFormatError as error:
            for problem in error.problems:
                hint = problem.hint or self.hint
                self.problems.problems.append(replace(problem, path=shown(self.path), line=line, hint=hint))
            return None

    def take(self, line: int, record: dict[str, Any], action: Callable[[dict[str, Any]], str]) -> None:
        """Let `action` read a record, and see that each query has one."""
        query_id = self.attempt(line, action, record)
        if query_id is None:
            return
        first = self._seen.setdefault(query_id, line)
        if first != line:
            message = f"query {query_id!r} has a second line"
            self.problems.add(
                message, path=shown(self.path), line=line, got=f"the first on line {first}", hint=self.hint
            )


def _object(data: bytes) -> dict[str, Any]:
    try:
        record = json.loads(data.decode("utf-8", "surrogatepass"), parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        raise RunFormatError(f"not UTF-8: byte 0x{data[error.start]:02x}", column=error.start + 1) from None
    except json.JSONDecodeError as error:
        cut = not data.endswith(b"\n")
        raise RunFormatError(
            f"not JSON: {error.msg.lower()}" + ("; the line is cut short" if cut else ""),
            column=error.colno,
            got=shorten(data.decode("utf-8", "replace").rstrip("\n")),
        ) from None
    except RecursionError:
        raise RunFormatError("not JSON: nested too deep") from None
    except ValueError:  # Python refuses to read integers of thousands of digits
        raise RunFormatError("cannot read this JSON: a number has too many digits") from None
    if not isinstance(record, dict):
        raise RunFormatError("not a JSON object", got=shorten(record))
    return record


def _refuse_constant(name: str) -> NoReturn:
    raise RunFormatError(f"{name} is not a JSON number", expected="a finite number")
