"""Runs as JSON Lines: a record a query, read and written."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from numbers import Real
from pathlib import Path
from typing import Any, NoReturn, TypeVar, get_args

from cranfield.errors import Problem, ProblemList, RunFormatError, shorten, unknown_name
from cranfield.formats.io.files import MOST_RECORD_BYTES, bounded_lines, opened, shown, write_text
from cranfield.model import Answer, CallLog, Hit, Order, Outcome, Run
from cranfield.words import short_name

ANSWER_KEYS = ("query_id", "outcome", "reason", "fields", "hits", "log")
HIT_KEYS = ("id", "score", "title", "span", "tokens", "redacted_id", "redacted_span", "fields")
LOG_KEYS = (
    "latency_ms",
    "stdout_head",
    "stderr_head",
    "attempts",
    "repeat_ms",
    "unstable",
    "cached",
    "calls_before",
    "at",
    "age_s",
)

_LONE_SURROGATE = re.compile("[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]")
_KINDS = {dict: "an object", list: "a list", str: "a string", float: "a finite number"}


def json_line(record: Mapping[str, Any]) -> str:
    """A record as one line of JSON with a line end: keys sorted, characters as they are.

    A lone surrogate (an id that is not UTF-8) is escaped, so that the file is UTF-8. Two that would be taken for one
    character are left as they are: encode with `surrogatepass`.

    Raises:
        RunFormatError: the record holds NaN, an infinity, or what JSON has no word for.
    """
    try:
        text = json.dumps(
            record, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=_refuse
        )
    except _UnsayableError as error:
        raise _unsayable(record, str(error)) from None
    except (TypeError, RecursionError):  # keys of several types cannot be sorted; a list may hold itself
        raise _unsayable(record, "keys that are no text, or too many levels") from None
    except ValueError:
        raise _unsayable(record, "NaN, an infinity, or a list that holds itself") from None
    return _LONE_SURROGATE.sub(lambda found: f"\\u{ord(found.group()):04x}", text) + "\n"


class _UnsayableError(Exception):
    """A value that JSON has no word for; `str()` is its kind."""


def _refuse(value: object) -> NoReturn:
    raise _UnsayableError(f"a {type(value).__name__}")


def _unsayable(record: Mapping[str, Any], got: str) -> RunFormatError:
    whose = f"query {record['query_id']!r}" if "query_id" in record else "the run's header"
    return RunFormatError(
        f"{whose} cannot be written as JSON",
        expected="text, finite numbers, true, false, null, lists and mappings of them",
        got=got,
    )


def answer_record(query_id: str, answer: Answer, log: CallLog | None = None) -> dict[str, Any]:
    """One query's answer, and the log of its call where given, as plain data for `json_line`.

    Raises:
        RunFormatError: a score is NaN or infinite.
    """
    record: dict[str, Any] = {"query_id": query_id, "outcome": answer.outcome.value}
    if answer.reason is not None:
        record["reason"] = answer.reason
    if answer.fields:
        record["fields"] = dict(answer.fields)
    if answer.hits:
        record["hits"] = [_hit_record(query_id, rank, hit) for rank, hit in enumerate(answer.hits, start=1)]
    if log is not None:
        record["log"] = log_record(log)
    return record


def _hit_record(query_id: str, rank: int, hit: Hit) -> dict[str, Any]:
    record: dict[str, Any] = {key: getattr(hit, key) for key in HIT_KEYS}
    if hit.score is not None:
        score = finite(hit.score)
        if score is None:
            raise RunFormatError(
                f"query {query_id!r}, hit {rank} ({shorten(hit.id)}): the score is no finite number",
                expected="a finite number, or no score",
                got=shorten(hit.score),
            )
        record["score"] = score
    if hit.fields is not None:
        record["fields"] = dict(hit.fields)
    return {key: value for key, value in record.items() if value is not None}


def log_record(log: CallLog) -> dict[str, Any]:
    """The log of one call as plain data."""
    found = {name: getattr(log, name) for name in _USUAL}
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in found.items()
        if value != _USUAL[name]
    }


_USUAL = {field.name: field.default for field in fields(CallLog)}
"""Values that a record leaves out."""


def answer_from_record(record: object) -> tuple[str, Answer, CallLog | None]:
    """Query id, answer and log of a record that `answer_record` made.

    Raises:
        RunFormatError: with everything in it that is not as it should be.
    """
    reader = RecordReader()
    top = reader.mapping(record, "the line", ANSWER_KEYS)
    query_id = reader.text(top, "query_id", required=True) or ""
    log = reader.log(top["log"], "log") if "log" in top else None
    answer = Answer(
        outcome=reader.outcome(top),
        hits=tuple(reader.hits(top)),
        reason=reader.text(top, "reason"),
        fields=reader.mapping(top.get("fields", {}), "fields"),
    )
    if reader.problems:
        raise RunFormatError(reader.problems)
    return query_id, answer, log


@dataclass
class RecordReader:
    """Takes the members of a record one by one, and gathers what is wrong with them."""

    problems: list[Problem] = field(default_factory=list)
    _not_there: dict[str, Any] = field(default_factory=dict)
    """Stands in for an object that is something else: its members are not checked."""

    def wrong(self, message: str, *, expected: str | None = None, got: str | None = None) -> None:
        """Note one problem."""
        self.problems.append(Problem(message, expected=expected, got=got))

    def mapping(self, value: object, name: str, known: Sequence[str] = ()) -> dict[str, Any]:
        """An object, an empty one where it is something else; other keys than the `known` ones are problems."""
        if not isinstance(value, dict):
            self._not(name, value, dict)
            return self._not_there
        self.problems += [unknown_name("key", str(key), known) for key in value if known and key not in known]
        return value

    def text(self, owner: Mapping[str, Any], key: str, *, required: bool = False, of: str = "") -> str | None:
        """A string member; None when absent."""
        if key not in owner:
            if required and owner is not self._not_there:
                self.wrong(f"missing key {key!r}" + (f" in {of}" if of else ""))
            return None
        value = owner[key]
        if not isinstance(value, str):
            self._not(f"{of}.{key}" if of else key, value, str)
            return None
        return value

    def number(self, owner: Mapping[str, Any], key: str, *, of: str = "") -> float | None:
        """A finite number member, as a float; None when absent."""
        if key not in owner:
            return None
        number = finite(owner[key])
        if number is None:
            self._not(f"{of}.{key}" if of else key, owner[key], float)
        return number

    def outcome(self, owner: Mapping[str, Any]) -> Outcome:
        """The outcome of an answer."""
        name = self.text(owner, "outcome", required=True)
        if name in list(Outcome):
            return Outcome(name)
        if name is not None:
            self.problems.append(unknown_name("outcome", name, list(Outcome)))
        return Outcome.UNPARSABLE

    def hits(self, owner: Mapping[str, Any]) -> Iterator[Hit]:
        """The hits of an answer, in order."""
        hits = owner.get("hits", [])
        if not isinstance(hits, list):
            self._not("hits", hits, list)
            return
        for index, entry in enumerate(hits):
            name = f"hits[{index}]"
            hit = self.mapping(entry, name, HIT_KEYS)
            hit_id = self.text(hit, "id", required=True, of=name) or ""
            texts = {key: self.text(hit, key, of=name) for key in ("title", "span", "redacted_id", "redacted_span")}
            score, tokens = self.number(hit, "score", of=name), self.number(hit, "tokens", of=name)
            fields = self.mapping(hit["fields"], f"{name}.fields") if "fields" in hit else None
            yield Hit(hit_id, score, tokens=tokens, fields=fields, **texts)

    def log(self, value: object, name: str) -> CallLog:
        """The log of a call."""
        log = self.mapping(value, name, LOG_KEYS)
        if log is not self._not_there and "latency_ms" not in log:
            self.wrong(f"missing key 'latency_ms' in {name}")
        attempts, before = (self.number(log, key, of=name) for key in ("attempts", "calls_before"))
        cached = log.get("cached", False)
        if not isinstance(cached, bool):
            self.wrong(f"wrong value for {name}.cached", expected="true or false", got=shorten(cached))
        return CallLog(
            latency_ms=self.number(log, "latency_ms", of=name) or 0.0,
            stdout_head=self.text(log, "stdout_head", of=name) or "",
            stderr_head=self.text(log, "stderr_head", of=name) or "",
            attempts=1 if attempts is None else int(attempts),
            repeat_ms=tuple(self._listed(log, "repeat_ms", float, of=name)),
            unstable=tuple(self._listed(log, "unstable", str, of=name)),
            cached=cached is True,
            calls_before=None if before is None else int(before),
            at=self.text(log, "at", of=name),
            age_s=self.number(log, "age_s", of=name),
        )

    def _listed(self, owner: Mapping[str, Any], key: str, kind: type, *, of: str) -> list[Any]:
        """A list of texts, or of finite numbers; empty when absent."""
        value = owner.get(key, [])
        sound = isinstance(value, list) and all(
            isinstance(item, str) if kind is str else finite(item) is not None for item in value
        )
        if not sound:
            expected = "a list of strings" if kind is str else "a list of finite numbers"
            self.wrong(f"wrong value for {of}.{key}", expected=expected, got=shorten(value))
        return [kind(item) for item in value] if sound else []

    def _not(self, name: str, value: object, kind: type) -> None:
        self.wrong(f"wrong value for {name}", expected=_KINDS[kind], got=shorten(value))


def finite(value: object) -> float | None:
    """A finite number of any type, NumPy's included, as a float; else None."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


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
    reader = _LineReader(
        path, hint="it holds latencies and raw output only; without the file the run can still be read"
    )

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
            lines = bounded_lines(stream, self.path, RunFormatError, MOST_RECORD_BYTES)
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
        raise RunFormatError("not JSON that can be read: a number of too many digits") from None
    if not isinstance(record, dict):
        raise RunFormatError("not a JSON object", got=shorten(record))
    return record


def _refuse_constant(name: str) -> NoReturn:
    raise RunFormatError(f"{name} is no JSON number", expected="a finite number")
