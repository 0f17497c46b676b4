"""One table of the formats, and telling a file's format by its content.

Imports no reader before a file is that reader's.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from cranfield.base.errors import (
    CranfieldError,
    Problem,
    RunFormatError,
    TestSetError,
    UnknownNameError,
    UsageError,
    shorten,
)
from cranfield.formats.features import FEATURES
from cranfield.formats.foreign import broken_json, config_problem, is_log, nearly, report_problem, short_run
from cranfield.formats.io.delimited import (
    JUDGMENT_COLUMNS,
    QUERY_COLUMNS,
    RUN_COLUMNS,
    TABLE_HELP,
    known_names,
    separator_of,
)
from cranfield.formats.io.files import BYTE_ORDER_MARK, STDIN, opened, shown, suffix_of
from cranfield.formats.registry import (
    CODE_SETS,
    COLUMN_ID,
    FIRST_LINES,
    HEAD_BYTES,
    OTHER_TOOLS,
    Format,
    Head,
    Kind,
    is_number,
    lacks_references,
    never,
    top_keys,
)
from cranfield.formats.testsets.names import LISTS, plain
from cranfield.formats.traces.recognised import TRACES, is_traces
from cranfield.model import TestSet

_TESTSET_KEY = re.compile(rb"""(^|[{,\n\r])[ \t]*["']?(cranfield_testset|queries)["']?[ \t\r\n]*:""")


def _is_yaml(head: Head) -> bool:
    named = b"cranfield_testset" in head.data or b"queries" in head.data  # a plain search is far faster than a pattern
    return named and bool(_TESTSET_KEY.search(head.data))


_OUR_KEYS = tuple(re.compile(rb"""[{,\s]["']?%s["']?[ \t]*:""" % key) for key in (b"id", b"text"))


def _is_native(head: Head) -> bool:
    """Whether a file with `queries` has the version of our test sets, or the keys of their queries."""
    return b"cranfield_testset" in head.data or all(key.search(head.data) for key in _OUR_KEYS)


def _is_qrels(head: Head) -> bool:
    return any(len(row) == 4 and is_number(row[3]) for row in head.rows) and not _is_trec_run(head)


def _is_trec_run(head: Head) -> bool:
    return any(len(row) >= 6 and is_number(row[4]) for row in head.rows)


def _is_run_jsonl(head: Head) -> bool:
    return head.first_line.startswith(b"{") and b'"cranfield_run":' in head.first_line.replace(b" ", b"")


def _is_parquet(head: Head) -> bool:
    return head.data.startswith(b"PAR1")


_TOPIC = re.compile(rb"<top>|<topic\b|<topics\b", re.IGNORECASE)


def _is_topics(head: Head) -> bool:
    return head.data.lstrip().startswith(b"<") and bool(_TOPIC.search(head.data))


def _is_queries_jsonl(head: Head) -> bool:
    line = head.first_line.replace(b" ", b"")
    return (
        line.startswith(b"{") and b'id":' in line and any(key in line for key in (b'"text":', b'"query":', b'"title":'))
    )


def _is_queries_tsv(head: Head) -> bool:
    return head.first_line.count(b"\t") == 1 and not head.first_line.startswith(b"{")


def _is_queries_csv(head: Head) -> bool:
    names = set() if b"\t" in head.first_line else {*head.columns(separator_of(head.first_line))}
    return all(names & {*usual} for usual in QUERY_COLUMNS.values())


_STRUCTURED = frozenset({".json", ".jsonl", ".yaml", ".yml", ".toml"})


def is_query_lines(head: Head) -> bool:
    """Whether the lines are queries without ids: texts, texts with a count behind a tab, or JSON objects with a `query`.

    Much else looks like lines of text, so it is looked at only where a list of queries is expected, and nothing else fits.
    """
    line = head.first_line
    if line.startswith(b"{"):
        return b'"query":' in line.replace(b" ", b"") and not _is_queries_jsonl(head)
    rows = [row.split(b"\t") for row in head.data.split(b"\n", FIRST_LINES)[:FIRST_LINES] if row.strip()]
    counted = all(len(row) == 2 and is_number(row[1].strip()) for row in rows[1:] or rows)
    counted &= head.columns("\t")[-1] not in QUERY_COLUMNS["text"]
    return bool(line) and line[:1] not in b"[<#" and b"\0" not in head.data and (counted or b"\t" not in line)


_QRELS_HOLD = frozenset({"grades", "unjudged", "zeros", "fractions", "levels"})
_TREC = "TREC, trec.nist.gov/data/qrels_eng"
_TREC_EVAL = "trec_eval, github.com/usnistgov/trec_eval"

OWN = (
    Format(
        "jsonl",
        "run",
        'a collected run (first line `{"cranfield_run":1,…}`)',
        _is_run_jsonl,
        "cranfield.formats.runs.jsonl:read_run",
        "cranfield.formats.runs.jsonl:write_run",
        suffix=".jsonl",
    ),
    Format(
        "yaml",
        "testset",
        "a YAML or JSON test set (key `cranfield_testset`)",
        _is_yaml,
        "cranfield.formats.testsets.native:read_testset_yaml",
        "cranfield.formats.testsets.native:write_testset_yaml",
        frozenset(FEATURES) - {"barren", "reasons", "times"},
        suffix=".yaml",
        source="Cranfield's own; its JSON Schema is part of the package",
        needs=frozenset({"texts"}),
        layout="tree",
    ),
    Format(
        "qrels",
        "testset",
        "TREC qrels (lines `query iteration document grade`)",
        _is_qrels,
        "cranfield.formats.testsets.trec:read_qrels",
        "cranfield.formats.testsets.trec:write_qrels",
        _QRELS_HOLD,
        suffix=".qrels",
        source=_TREC,
        ids=COLUMN_ID,
        layout="columns",
    ),
    Format(
        "trec",
        "run",
        "a TREC run (lines `query Q0 document rank score tag`)",
        _is_trec_run,
        writer="cranfield.formats.runs.files:write_trec_run",
        suffix=".run",
        source=_TREC_EVAL,
    ),
    Format("parquet", "run", "a Parquet table of results", _is_parquet, source="Cranfield's own columns"),
    Format(
        "parquet-qrels",
        "testset",
        "a Parquet table of judgments",
        _is_parquet,
        "cranfield.formats.testsets.judgments:qrels_from_frame",
        "cranfield.formats.testsets.judgments:write_qrels_parquet",
        _QRELS_HOLD,
        suffix=".parquet",
        source="Cranfield's own columns: query_id, doc_id, grade",
    ),
    Format(
        "subtopics",
        "testset",
        "qrels by subtopic (`query subtopic document grade`)",
        never,
        "cranfield.formats.testsets.trec:read_subtopic_qrels",
        "cranfield.formats.testsets.trec:write_subtopic_qrels",
        _QRELS_HOLD | {"groups"},
        source=_TREC_EVAL,
        ids=COLUMN_ID,
        grouping="subtopic",
        layout="columns",
    ),
    Format(
        "judges",
        "testset",
        "qrels by judge (`query judge document grade`)",
        never,
        "cranfield.formats.testsets.trec:read_judge_qrels",
        "cranfield.formats.testsets.trec:write_judge_qrels",
        _QRELS_HOLD | {"groups"},
        source=_TREC_EVAL,
        ids=COLUMN_ID,
        grouping="judge",
        layout="columns",
    ),
    Format(
        "preferences",
        "testset",
        "preferences (`query group subgroup document value`)",
        never,
        "cranfield.formats.testsets.trec:read_preferences",
        "cranfield.formats.testsets.trec:write_preferences",
        (_QRELS_HOLD | {"groups"}) - {"unjudged"},
        source=_TREC_EVAL,
        ids=COLUMN_ID,
        grouping="preference",
        layout="columns",
    ),
    Format(
        "topics",
        "queries",
        'TREC topics (`<top> <num> <title>`, or `<topic number="…">` as XML)',
        _is_topics,
        "cranfield.formats.testsets.topics:read_topics",
        "cranfield.formats.testsets.topics:write_topics",
        frozenset({"texts", "need", "barren"}),
        suffix=".topics",
        source="TREC, trec.nist.gov/data/topics_eng",
    ),
    Format(
        "queries-jsonl",
        "queries",
        'queries as lines of JSON (`{"_id": "1", "text": "…"}`)',
        _is_queries_jsonl,
        "cranfield.formats.testsets.topics:read_queries_jsonl",
        "cranfield.formats.testsets.topics:write_queries_jsonl",
        frozenset({"texts", "need", "notes", "barren"}),
        source="BEIR, github.com/beir-cellar/beir",
    ),
    Format(
        "queries-csv",
        "queries",
        "queries in a CSV table (header `query_id` and `text`)",
        _is_queries_csv,
        "cranfield.formats.testsets.topics:read_queries_csv",
        holds=frozenset({"texts", "barren"}),
        source="as spreadsheets save them",
    ),
    Format(
        "mapped",
        "testset",
        "any file of queries with what is expected (JSON, JSONL, YAML, TOML, CSV, Excel, Parquet), read by a mapping of its fields",
        never,
        "cranfield.formats.testsets.mapping:read_mapped",
        holds=frozenset(
            {
                "grades",
                "criteria",
                "passages",
                "negative",
                "forbidden",
                "exhaustive",
                "floors",
                "fractions",
                "unjudged",
                "zeros",
                "levels",
                "barren",
            }
        )
        | {"texts", "need", "notes", "strata", "params", "weights", "matching", "name", "version", "description"},
        source="the golden files that projects write for their own search",
    ),
    Format(
        "mapped-run",
        "run",
        "queries with lists of results under any usual names (JSON, JSONL, YAML, CSV)",
        never,
        "cranfield.formats.runs.mapped:read_mapped_run",
        source="the files that projects write of their own search",
    ),
    Format(
        "queries-tsv",
        "queries",
        "queries as lines `id<TAB>text`",
        _is_queries_tsv,
        "cranfield.formats.testsets.topics:read_queries_tsv",
        "cranfield.formats.testsets.topics:write_queries_tsv",
        frozenset({"texts", "barren"}),
        source="as MS MARCO has them",
    ),
    Format(
        "query-log",
        "queries",
        "queries without ids: a query a line, with how often behind a tab, or lines of JSON with `query` and `count`",
        never,
        "cranfield.formats.testsets.query_log:read_queries_log",
        holds=frozenset({"texts", "barren"}),
        source="logs of production queries",
    ),
)

FORMATS = {entry.name: entry for entry in (*CODE_SETS, *TRACES, *OTHER_TOOLS, *OWN)}
"""Every format by name, in the order in which they are tried: what says more of itself first. A key `queries` alone may be
our own test set, and a table of four columns may look like qrels; texts of queries look like much else (see `_tried`)."""


def format_names(kind: Kind) -> tuple[str, ...]:
    """Names of the formats of test sets, of runs, or of queries."""
    return tuple(entry.name for entry in FORMATS.values() if entry.kind == kind)


def read_testset(path: Path | str, format: str | None = None) -> TestSet:  # noqa: A002  the option's own name
    """Read a test set in whatever format its content is.

    Args:
        path: a file or a folder in any format of `format_names("testset")`; gzip and Zstandard are recognised, `-` is
            standard input, and a folder of versions of a golden set (`golden_v1.0.json`) is the newest of them.
        format: a name of `format_names("testset")`, where the content does not tell.

    Raises:
        TestSetError: the file is missing, unreadable, of no known format, or holds mistakes.
        UnknownNameError: there is no such format.
    """
    from cranfield.formats.io.delimited import newest_version

    path = newest_version(Path(path), "golden")
    return _read(path, "testset", format)


def read_queries(path: Path | str, format: str | None = None) -> TestSet:  # noqa: A002  the option's own name
    """Read texts of queries, from TREC topics, lines of two columns or lines of JSON, as a test set without judgments.

    Args:
        path: a file; gzip and Zstandard are recognised, and `-` is standard input.
        format: a name of `format_names("queries")`, where the content does not tell.

    Raises:
        TestSetError: as `read_testset`.
        UnknownNameError: there is no such format.
    """
    return _read(Path(path), "queries", format)


def read_query_list(path: Path | str, format: str | None = None) -> TestSet:  # noqa: A002  the option's own name
    """Read a test set, or texts of queries as a test set without judgments, for what needs none.

    Args:
        path: a test set as `read_testset` takes it, queries as `read_queries` takes them, or queries without ids.
        format: a name of a format of either kind, where the content does not tell.

    Raises:
        TestSetError: as `read_testset`.
        UnknownNameError: there is no such format.
    """
    path = Path(path)
    if format in format_names("queries"):
        return read_queries(path, format)
    if format is not None or not path.is_file() or _is_of("testset", path):
        return read_testset(path, format)
    # Lines of text look like much else: a count behind a tab first, which is no text of a query, and plain lines last.
    head, is_queries = _head(path, "queries", TestSetError), _is_of("queries", path)
    if is_query_lines(head) and (b"\t" in head.first_line or not is_queries):
        return read_queries(path, "query-log")
    return read_queries(path) if is_queries else read_testset(path)


def _is_of(kind: Kind, path: Path) -> bool:
    """Whether a file is of a format of some kind."""
    try:
        detect_format(path, kind, None, TestSetError)
    except TestSetError:
        return False
    return True


def _read(path: Path, kind: Kind, name: str | None) -> TestSet:
    read = detect_format(path, kind, name, TestSetError).read
    with _without_collecting():
        testset = read(path) if read else None
    if not isinstance(testset, TestSet):
        raise TestSetError("not a test set", path=shown(path))
    return testset


@contextmanager
def _without_collecting() -> Iterator[None]:
    """A reader makes values by the million and circles none: the search for circles takes half of its time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def sniff_run(path: Path | str, format: str | None = None) -> Format:  # noqa: A002  the option's own name
    """The format of a run file, by name or by content. One that is ranked while it is read (TREC, Parquet) has no reader.

    Raises:
        RunFormatError: the file is missing, unreadable or neither.
        UnknownNameError: there is no such format.
    """
    return detect_format(Path(path), "run", format, RunFormatError)


def detect_format(path: Path, kind: Kind, name: str | None, error: type[CranfieldError]) -> Format:
    """The format of a file of some kind, by name or by content.

    Raises:
        CranfieldError: of type `error`, when it is missing, unreadable or of no format of this kind.
        UnknownNameError: there is no such format.
    """
    if name is not None:
        return _named(path, kind, name, error)
    head = _head(path, kind, error)
    entry = next((entry for entry in _tried(kind) if entry.fits(head)), None)
    if kind == "testset" and _is_mapped(entry, head):
        return FORMATS["mapped"]
    if kind == "run" and _is_mapped_run(entry, head):
        return FORMATS["mapped-run"]
    if (entry is None or entry.fits is _is_yaml) and (report := report_problem(path, WHAT[kind], head)):
        raise error(report)
    if entry is not None and entry.fits is _is_yaml and not _is_native(head):
        # The problem of a file with a key `queries` that is of another tool, or lacks the version of a native one.
        keys = ", ".join(sorted(top_keys(head.data))) or shorten(head.first_line.decode("utf-8", "replace"))
        hint = "a test set of Cranfield has the key `cranfield_testset: 1`; `testset: {file: FILE, text: …, expected: …}` in a config maps the fields of other files"
        problem = _unknown(path, kind, head, None)
        raise error(
            replace(problem, message=f"{problem.message}: `queries` without `cranfield_testset`", got=keys, hint=hint)
        )
    if entry is not None and entry.kind != kind:  # a table may be of either kind
        same_content = [other for other in FORMATS.values() if other.kind == kind and other.fits is entry.fits]
        entry = same_content[0] if same_content else entry
    if entry is None or entry.kind != kind:
        added = next((added for added in _added_formats() if added.kind == kind and added.fits(head)), None)
        if added is None:
            is_golden = kind == "testset" and entry is None and suffix_of(path) in _STRUCTURED and head.data.strip()
            raise error((is_golden and _missing(path)) or _unknown(path, kind, head, entry))
        return added
    return entry


def _is_mapped(entry: Format | None, head: Head) -> bool:
    """Whether a file is of no format of test sets, and its fields can be mapped."""
    is_near_native = entry is not None and entry.fits is _is_yaml
    if (
        (entry is not None and entry.fits is is_traces)
        or b'"cranfield_' in head.data
        or b"cranfield_testset" in head.data
        or (is_near_native and _is_native(head) and b"judgments" in head.data)
    ):
        return False
    if entry is not None and entry.kind == "testset" and not (is_near_native or _is_near(entry, head)):
        return False
    if not head.data.strip() or head.path.is_dir():
        return False
    what = WHAT["testset"]
    if report_problem(head.path, what, head) or config_problem(head.path, what, head):
        return False
    from cranfield.formats.testsets.proposal import is_mappable

    return is_mappable(head.path)


def _is_mapped_run(entry: Format | None, head: Head) -> bool:
    """Whether a file is of no format of runs, and has queries with lists of results."""
    if entry is not None and any(other.kind == "run" and other.fits is entry.fits for other in FORMATS.values()):
        return False
    if not head.data.strip() or b'"cranfield_' in head.data or b"cranfield_testset" in head.data:
        return False
    first = head.first_line[:1]
    is_structured = first in {b"{", b"["} or suffix_of(head.path) in {".yaml", ".yml", ".csv", ".tsv"}
    what = WHAT["run"]
    if not is_structured or report_problem(head.path, what, head) or config_problem(head.path, what, head):
        return False
    from cranfield.formats.runs.mapped import is_mapped_run

    return is_mapped_run(head.path)


def _is_near(entry: Format, head: Head) -> bool:
    """Whether a file that looks like a format of test sets has what a file of another form would have."""
    if entry.layout == "columns":  # a line of YAML may look like one of columns: `- query: runner 2`
        return suffix_of(head.path) in _STRUCTURED
    if entry.name == "json":
        return any(plain(name) in LISTS for name in top_keys(head.data))
    if entry.name == "llama-index":
        return "relevant_docs" not in top_keys(head.data)
    return entry.name == "samples" and lacks_references(head)


def _missing(path: Path) -> Problem | None:
    from cranfield.formats.testsets.proposal import what_is_missing

    return what_is_missing(path) if path.is_file() else None


def _named(path: Path, kind: Kind, name: str, error: type[CranfieldError]) -> Format:
    names = format_names(kind)
    added = {} if name in names else {entry.name: entry for entry in _added_formats() if entry.kind == kind}
    if name not in names and name not in added:
        raise UnknownNameError.among(f"{WHAT[kind]} format", name, [*names, *added])
    _head(path, kind, error)
    return added[name] if name in added else FORMATS[name]


def _added_formats() -> tuple[Format, ...]:
    """The formats of installed packages: looked for where no format of our own fits.

    Raises:
        UsageError: a package whose format cannot be loaded, or has the name of another.
    """
    from cranfield.plugins import load_plugins

    added, problems = load_plugins("cranfield.formats", Format)
    taken = [entry.name for entry in added if entry.name in FORMATS]
    problems += tuple(
        Problem(f"a package adds a format with the name of a built-in format, {name!r}") for name in taken
    )
    if problems:
        raise UsageError(problems)
    return added


def _tried(kind: Kind) -> list[Format]:
    """Formats in the order they are tried. Lines of texts look like much else: they are asked last where not meant."""
    texts = [entry for entry in FORMATS.values() if entry.kind == "queries"]
    others = [entry for entry in FORMATS.values() if entry.kind != "queries"]
    # The bytes of a Parquet file may look like columns; that of spans is recognised by its columns.
    others.sort(key=lambda entry: 0 if entry.fits is is_traces else 1 if entry.fits is _is_parquet else 2)
    return [*texts, *others] if kind == "queries" else [*others, *texts]


def _head(path: Path, kind: Kind, error: type[CranfieldError]) -> Head:
    """The beginning of a file; nothing of a folder, or of a name that is no file, where a format takes it."""
    if path.is_dir() or (str(path) != STDIN and not path.exists()):
        head = Head(b"", path)
        folders = [entry for entry in FORMATS.values() if entry.kind == kind and entry.is_folder]
        if any(entry.kind == kind and entry.fits(head) for entry in FORMATS.values()):
            return head
        if path.is_dir() and folders:
            expected = f"a file, or a folder of the format {', '.join(entry.name for entry in folders)}"
            raise error(Problem("this is a folder", path=shown(path), expected=expected))
    with opened(path, error) as stream:
        return Head(stream.read(HEAD_BYTES).removeprefix(BYTE_ORDER_MARK), path)


WHAT: dict[Kind, str] = {"testset": "test set", "run": "run", "queries": "query file"}
FORMAT_PARAMETER: dict[Kind, str] = {"testset": "format", "run": "run_format"}
MAX_SENTENCES = 4
"""More formats than that are named by their names."""


def _is_header(head: Head) -> bool:
    """Whether the first line may name the columns of a table: words, and as many cells in the next line."""
    lines = [line for line in head.data.split(b"\n", FIRST_LINES) if line.strip() and not line.startswith(b"#")]
    separator = separator_of(head.first_line)
    names = head.columns(separator)
    named = len(names) > 1 and all(name and not name[0].isdigit() for name in names)
    cells = lines[1].decode("utf-8", "replace").count(separator) + 1 if len(lines) > 1 else 0
    return named and cells >= len(names) and head.first_line[:1] not in {b"{", b"[", b"<"}


def _unknown(path: Path, kind: Kind, head: Head, other: Format | None) -> Problem:
    """Say what was looked for and what the first line is."""
    known = [entry for entry in FORMATS.values() if entry.kind == kind and entry.fits not in {never, _is_parquet}]
    known.sort(key=lambda entry: entry not in OWN)
    expected = " or ".join(entry.sentence for entry in known)
    if len(known) > MAX_SENTENCES:
        own = ", ".join(entry.sentence for entry in known if entry in OWN)
        expected = f"{own}, or another format that can be detected from the content"
    if not head.data.strip():
        return Problem("the file is empty", path=shown(path), expected=expected)
    hint = None
    if other is not None and other.kind == "queries":
        hint = f"this is {other.sentence}: query texts are passed together with judgments, as {{queries=FILE}}"
    elif other is not None:
        hint = f"this is {other.sentence}: the test set comes first, then the runs"
    elif is_log(head):
        hint = "this is the log of a run: pass the file without `.log`"
    elif kind in FORMAT_PARAMETER:
        names = format_names(kind)
        named = "NAME" if len(names) > MAX_SENTENCES else "|".join(names)
        hint = f"name the format: {{{FORMAT_PARAMETER[kind]}={named}}}"
    if meant := _meant(path, kind, head, other):
        return meant
    got = shorten(head.first_line.decode("utf-8", "replace")) if head.first_line else "comments only"
    if _is_header(head):
        return _unknown_columns(path, kind, head, got)
    return Problem(
        f"not a {WHAT[kind]}",
        path=shown(path),
        expected=expected,
        got=got,
        hint=hint,
        parameters=(*FORMAT_PARAMETER.values(), "queries"),
    )


def _meant(path: Path, kind: Kind, head: Head, other: Format | None) -> Problem | None:
    """What is wrong with a file that is evidently meant to be of one format; None of another."""
    return (
        broken_json(path, head)
        or (short_run(path, head) if kind == "run" and other is None else None)
        or nearly(path, WHAT[kind], head, lambda changed: _in_columns(kind, changed))
        or config_problem(path, WHAT[kind], head)
    )


def _in_columns(kind: Kind, head: Head) -> Format | None:
    """The format of lines of words that a beginning is of; None of another."""
    return next(
        (
            entry
            for entry in _tried(kind)
            if entry.kind == kind and entry.name in {"qrels", "trec"} and entry.fits(head)
        ),
        None,
    )


def _unknown_columns(path: Path, kind: Kind, head: Head, got: str) -> Problem:
    """A table with a header row of other names, or without grades; the hint has a line for each kind of column."""
    is_run, names = kind == "run", {*head.columns(separator_of(head.first_line))}
    is_ranked = names & {*RUN_COLUMNS["rank"], *RUN_COLUMNS["score"]}
    if (
        kind == "testset"
        and all(names & {*JUDGMENT_COLUMNS[role]} for role in ("query_id", "doc_id"))
        and not is_ranked
    ):
        hint = "add a column `grade`; where all of these documents are relevant, with 1 in each row"
        return Problem(
            "not a test set: this table has no column of grades", path=shown(path), expected="grade", got=got, hint=hint
        )
    message = f"not a {WHAT[kind]}: the columns of this table have other names"
    expected = "query_id, doc_id, and rank or score" if is_run else "query_id, doc_id and grade, or query and pattern"
    expected = "query_id and text" if kind == "queries" else expected
    known = known_names({"run": RUN_COLUMNS, "queries": QUERY_COLUMNS}.get(kind, JUDGMENT_COLUMNS))
    hint = "\n  ".join(["rename the columns; these names are known:", *known])
    if kind == "testset":
        hint = ".\n".join([hint, *TABLE_HELP])
    return Problem(message, path=shown(path), expected=expected, got=got, hint=hint)
