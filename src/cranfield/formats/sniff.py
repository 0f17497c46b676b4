"""One table of the formats, and telling a file's format by its content.

Imports no reader before a file is that reader's.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from cranfield.errors import CranfieldError, Problem, RunFormatError, TestSetError, UnknownNameError, shorten
from cranfield.formats.files import opened, shown
from cranfield.model import Run, TestSet

HEAD_BYTES = 1 << 20
"""How much of a file is looked at to tell its format."""

FIRST_LINES = 10
"""How many lines are looked at for columns."""

Kind = Literal["testset", "run"]
RunFormat = Literal["trec", "jsonl", "parquet"]

_TESTSET_KEY = re.compile(rb"""(^|[{,\n\r])[ \t]*["']?(cranfield_testset|queries)["']?[ \t\r\n]*:""")


@dataclass(frozen=True, slots=True)
class Head:
    """The beginning of a file."""

    data: bytes
    """Without a byte order mark."""

    @property
    def first_line(self) -> bytes:
        """The first line that is not blank and no `#` comment; empty when there is none."""
        lines = (line.strip() for line in self.data.splitlines())
        return next((line for line in lines if line and not line.startswith(b"#")), b"")

    @property
    def rows(self) -> list[list[bytes]]:
        """The first lines that are not blank and no comments, cut at white space: one of them may be a bad one."""
        lines = itertools.islice(
            (line for line in self.data.split(b"\n", FIRST_LINES * 2) if line.strip()), FIRST_LINES
        )
        return [line.split() for line in lines if not line.startswith(b"#")]


@dataclass(frozen=True, slots=True)
class Format:
    """A format of test sets or runs, and how it is told."""

    name: str
    """As `--testset-format` and `--run-format` take it."""
    kind: Kind
    sentence: str
    """What a file of it is, to go on from "expected"."""
    fits: Callable[[Head], bool]
    read: Callable[[Path], TestSet | Run] | None = None
    """None where reading and ranking are one pass, in `ranking`."""


def _is_yaml(head: Head) -> bool:
    named = b"cranfield_testset" in head.data or b"queries" in head.data  # a plain search is far faster than a pattern
    return named and bool(_TESTSET_KEY.search(head.data))


def _is_qrels(head: Head) -> bool:
    return any(len(row) == 4 and _is_number(row[3]) for row in head.rows) and not _is_trec_run(head)


def _is_trec_run(head: Head) -> bool:
    return any(len(row) >= 6 and _is_number(row[4]) for row in head.rows)


def _is_run_jsonl(head: Head) -> bool:
    return head.first_line.startswith(b"{") and b'"cranfield_run":' in head.first_line.replace(b" ", b"")


def _is_parquet(head: Head) -> bool:
    return head.data.startswith(b"PAR1")


def _never(_: Head) -> bool:
    """For formats that look like another one: they have to be named."""
    return False


def _is_number(text: bytes) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _read_yaml(path: Path) -> TestSet:
    from cranfield.formats.testset_yaml import read_testset_yaml

    return read_testset_yaml(path)


def _read_qrels(path: Path) -> TestSet:
    from cranfield.formats.trec import read_qrels

    return read_qrels(path)


def _read_grouped(reader: str) -> Callable[[Path], TestSet]:
    """A reader of `trec_groups`, imported when it is used."""

    def read(path: Path) -> TestSet:
        from cranfield.formats import trec_groups

        testset: TestSet = getattr(trec_groups, reader)(path)
        return testset

    return read


def _read_table_of_judgments(path: Path) -> TestSet:
    from cranfield.formats.judgments import qrels_from_frame

    return qrels_from_frame(path)


def _read_run(path: Path) -> Run:
    from cranfield.formats.run_jsonl import read_run

    return read_run(path)


FORMATS = {
    entry.name: entry
    for entry in (
        Format("jsonl", "run", 'a collected run (first line `{"cranfield_run":1,…}`)', _is_run_jsonl, _read_run),
        Format("yaml", "testset", "a YAML or JSON test set (key `cranfield_testset`)", _is_yaml, _read_yaml),
        Format("qrels", "testset", "TREC qrels (lines `query iteration document grade`)", _is_qrels, _read_qrels),
        Format("trec", "run", "a TREC run (lines `query Q0 document rank score tag`)", _is_trec_run),
        Format("parquet", "run", "a Parquet table of results", _is_parquet),
        Format("parquet-qrels", "testset", "a Parquet table of judgments", _is_parquet, _read_table_of_judgments),
        Format(
            "subtopics",
            "testset",
            "qrels by subtopic (`query subtopic document grade`)",
            _never,
            _read_grouped("read_subtopic_qrels"),
        ),
        Format(
            "judges",
            "testset",
            "qrels by judge (`query judge document grade`)",
            _never,
            _read_grouped("read_judge_qrels"),
        ),
        Format(
            "preferences",
            "testset",
            "preferences (`query group subgroup document value`)",
            _never,
            _read_grouped("read_preferences"),
        ),
    )
}
"""Every format by name. The order is that in which they are tried: a sentence may look like columns."""


RUN_FORMATS: dict[str, RunFormat] = {"trec": "trec", "jsonl": "jsonl", "parquet": "parquet"}


def format_names(kind: Kind) -> tuple[str, ...]:
    """Names of the formats of test sets, or of runs."""
    return tuple(entry.name for entry in FORMATS.values() if entry.kind == kind)


def read_testset(path: Path | str, format: str | None = None) -> TestSet:  # noqa: A002  the option's own name
    """Read a test set in whatever format its content is.

    Args:
        path: a YAML or JSON test set, or TREC qrels; gzip and Zstandard are recognised, and `-` is standard input.
        format: a name of `format_names("testset")`, where the content does not tell.

    Raises:
        TestSetError: the file is missing, unreadable, of no known format, or holds mistakes.
        UnknownNameError: there is no such format.
    """
    path = Path(path)
    entry = _entry(path, "testset", format, TestSetError)
    read = entry.read
    testset = read(path) if read else None
    if not isinstance(testset, TestSet):
        raise TestSetError("not a test set", path=shown(path))
    return testset


def sniff_run(path: Path | str, format: str | None = None) -> RunFormat:  # noqa: A002  the option's own name
    """Tell whether a run file is a TREC file, one that `cranfield run` wrote, or a Parquet table.

    Raises:
        RunFormatError: the file is missing, unreadable or neither.
        UnknownNameError: there is no such format.
    """
    entry = _entry(Path(path), "run", format, RunFormatError)
    return RUN_FORMATS[entry.name]


def _entry(path: Path, kind: Kind, name: str | None, error: type[CranfieldError]) -> Format:
    names = format_names(kind)
    if name is not None and name not in names:
        raise UnknownNameError.among("test set format" if kind == "testset" else "run format", name, names)
    with opened(path, error) as stream:
        head = Head(stream.read(HEAD_BYTES).removeprefix(b"\xef\xbb\xbf"))
    if name is not None:
        return FORMATS[name]
    entry = next((entry for entry in FORMATS.values() if entry.fits(head)), None)
    if entry is not None and entry.kind != kind:  # a table may be of either kind
        entry = next((one for one in FORMATS.values() if one.kind == kind and one.fits is entry.fits), entry)
    if entry is None or entry.kind != kind:
        raise error(_unknown(path, kind, head, entry))
    return entry


def _unknown(path: Path, kind: Kind, head: Head, other: Format | None) -> Problem:
    """Say what was looked for and what the first line is."""
    sentences = [
        FORMATS[name].sentence for name in format_names(kind) if FORMATS[name].fits not in {_never, _is_parquet}
    ]
    what = "test set" if kind == "testset" else "run"
    if not head.data.strip():
        return Problem("the file is empty", path=shown(path), expected=" or ".join(sentences))
    if other is not None:
        hint = f"this is {other.sentence}: the test set comes first, then the runs"
    elif _is_log(head):
        hint = "this is the log beside a run: name the file without `.log`"
    else:
        hint = f"where the content does not tell, --{kind}-format {'|'.join(format_names(kind))} does"
    got = shorten(head.first_line.decode("utf-8", "replace")) if head.first_line else "comments only"
    return Problem(f"not a {what}", path=shown(path), expected=" or ".join(sentences), got=got, hint=hint)


def _is_log(head: Head) -> bool:
    try:
        record = json.loads(head.first_line)
    except ValueError:
        return False
    return isinstance(record, dict) and "cranfield_run_log" in record
