"""One table of the formats, and telling a file's format by its content.

Imports no reader before a file is that reader's.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Literal

from cranfield.errors import CranfieldError, Problem, RunFormatError, TestSetError, UnknownNameError, shorten
from cranfield.formats import code_sets, other_tools
from cranfield.formats.files import opened, shown
from cranfield.formats.registry import HEAD_BYTES, Format, Head, Kind, is_number, never
from cranfield.model import TestSet

RunFormat = Literal["trec", "jsonl", "parquet"]

_TESTSET_KEY = re.compile(rb"""(^|[{,\n\r])[ \t]*["']?(cranfield_testset|queries)["']?[ \t\r\n]*:""")


def _is_yaml(head: Head) -> bool:
    named = b"cranfield_testset" in head.data or b"queries" in head.data  # a plain search is far faster than a pattern
    return named and bool(_TESTSET_KEY.search(head.data))


def _is_qrels(head: Head) -> bool:
    return any(len(row) == 4 and is_number(row[3]) for row in head.rows) and not _is_trec_run(head)


def _is_trec_run(head: Head) -> bool:
    return any(len(row) >= 6 and is_number(row[4]) for row in head.rows)


def _is_run_jsonl(head: Head) -> bool:
    return head.first_line.startswith(b"{") and b'"cranfield_run":' in head.first_line.replace(b" ", b"")


def _is_parquet(head: Head) -> bool:
    return head.data.startswith(b"PAR1")


OWN = (
    Format(
        "jsonl",
        "run",
        'a collected run (first line `{"cranfield_run":1,…}`)',
        _is_run_jsonl,
        "cranfield.formats.run_jsonl:read_run",
    ),
    Format(
        "yaml",
        "testset",
        "a YAML or JSON test set (key `cranfield_testset`)",
        _is_yaml,
        "cranfield.formats.testset_yaml:read_testset_yaml",
        "cranfield.formats.testset_yaml:write_testset_yaml",
        suffix=".yaml",
    ),
    Format(
        "qrels",
        "testset",
        "TREC qrels (lines `query iteration document grade`)",
        _is_qrels,
        "cranfield.formats.trec:read_qrels",
        "cranfield.formats.trec:write_qrels",
        frozenset({"grades", "unjudged", "zeros", "fractions"}),
        suffix=".qrels",
    ),
    Format("trec", "run", "a TREC run (lines `query Q0 document rank score tag`)", _is_trec_run),
    Format("parquet", "run", "a Parquet table of results", _is_parquet),
    Format(
        "parquet-qrels",
        "testset",
        "a Parquet table of judgments",
        _is_parquet,
        "cranfield.formats.judgments:qrels_from_frame",
    ),
    Format(
        "subtopics",
        "testset",
        "qrels by subtopic (`query subtopic document grade`)",
        never,
        "cranfield.formats.trec_groups:read_subtopic_qrels",
    ),
    Format(
        "judges",
        "testset",
        "qrels by judge (`query judge document grade`)",
        never,
        "cranfield.formats.trec_groups:read_judge_qrels",
    ),
    Format(
        "preferences",
        "testset",
        "preferences (`query group subgroup document value`)",
        never,
        "cranfield.formats.trec_groups:read_preferences",
    ),
)

FORMATS = {entry.name: entry for entry in (*code_sets.ENTRIES, *other_tools.ENTRIES, *OWN)}
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
        FORMATS[name].sentence for name in format_names(kind) if FORMATS[name].fits not in {never, _is_parquet}
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
