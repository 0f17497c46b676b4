"""Telling formats apart: a sample of every format, laid before every row of the table."""

from __future__ import annotations

from pathlib import Path

import pytest

from cranfield.base.errors import CranfieldError
from cranfield.formats.convert import write_run, write_testset
from cranfield.formats.registry import Head, Kind
from cranfield.formats.sniff import FORMATS, detect_format
from cranfield.model import Answer, Entity, GroupedJudgment, Hit, Outcome, Pattern, Query, Run, Span, TestSet

QUERIES = (Query("q1", "boots"), Query("q2", "red dress"))
BY_ID = TestSet("s", QUERIES, {"q1": {"d1": 1.0, "d2": 2.0}, "q2": {"d1": 1.0}})
BY_TARGET = {"golden-json": Entity("a.py::f"), "spans-csv": Span("a.py", 1, 9), "patterns": Pattern("^a")}
RUN = Run("r", {"q1": Answer(Outcome.ANSWERED, (Hit("d1", 0.5), Hit("d2", 0.25)))}, order="descending")

NAMED = {"subtopics", "judges", "preferences", "quepid-book-csv", "mapped", "mapped-run"}
"""Formats that look like another one, and have to be named, or are taken where no other fits."""
TWICE = {
    "graded-yaml": ["graded-yaml", "yaml"],
    "graded-yaml (json)": ["graded-yaml", "yaml"],
    "rre": ["rre", "yaml"],
    "table (tsv)": ["table", "qrels"],
    "run-table (tsv)": ["run-table", "qrels"],
    "parquet-qrels": ["parquet", "parquet-qrels"],
    "json": ["json", "json-run"],
    **{name: [name, "queries-csv"] for name in ("spans-csv", "patterns", "table", "run-table")},
}
"""Samples that several rows claim. The first row is asked first: a key `queries` alone is taken for a test set whose version
is missing, and a header row of four columns over numbers looks like qrels. Of Parquet and JSON, the kind that is wanted decides, and of tables with the
texts of queries too."""


def write_sample(name: str, path: Path) -> None:
    """A file of a format: `name`, or `name (variant)`."""
    entry = FORMATS[name.partition(" ")[0]]
    if entry.kind == "run":
        write_run(RUN, path, entry.name)
    elif entry.kind == "queries":
        write = entry.write
        assert write is not None
        write(TestSet("s", QUERIES), path)
    elif entry.name in BY_TARGET:
        write_testset(
            TestSet("s", QUERIES, targets=dict.fromkeys(("q1", "q2"), (BY_TARGET[entry.name],))), path, entry.name
        )
    else:
        write_testset(BY_ID, path, entry.name)


SAMPLES: dict[str, tuple[str, Kind]] = {
    **{
        name: ("sample", entry.kind)
        for name, entry in FORMATS.items()
        if entry.writer and name not in NAMED and not entry.is_folder
    },
    "yaml (json)": ("sample.json", "testset"),
    "graded-yaml (json)": ("sample.json", "testset"),
    "table (jsonl)": ("sample.jsonl", "testset"),
    "table (tsv)": ("sample.tsv", "testset"),
    "run-table (tsv)": ("sample.tsv", "run"),
    "beir (qrels)": ("folder/qrels/test.tsv", "testset"),
    "beir": ("folder", "testset"),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_is_claimed_by_its_own_row_alone_or_the_order_is_stated(tmp_path: Path, name: str) -> None:
    end, kind = SAMPLES[name]
    write_sample(name, tmp_path / end.partition("/")[0])
    path = tmp_path / end
    head = Head(path.read_bytes() if path.is_file() else b"", path)
    own = name.partition(" ")[0]
    assert [entry.name for entry in FORMATS.values() if entry.fits(head)] == TWICE.get(name, [own])
    assert detect_format(path, kind, None, CranfieldError).name == own


def test_every_format_has_a_sample_or_has_to_be_named() -> None:
    without = set(FORMATS) - {name.partition(" ")[0] for name in SAMPLES}
    read_only = {
        "llama-index",
        "label-studio",
        "argilla",
        "samples",
        "samples-run",
        "documents",
        "traces",
        "trace-queries",
        "json-run",
        "msmarco",
        "queries-csv",
        "query-log",
    }  # see test_public_reports, test_annotations and test_traces
    # bytes like the other's; names and no files
    assert without == NAMED | read_only | {"parquet", "ir_datasets", "huggingface"}


@pytest.mark.parametrize("name", sorted(NAMED - {"quepid-book-csv", "mapped", "mapped-run"}))
def test_what_has_to_be_named_is_claimed_as_what_it_looks_like(tmp_path: Path, name: str) -> None:
    entry = FORMATS[name]
    groups = {"q1": (GroupedJudgment("d1", "1", 1.0, "a" if name == "preferences" else ""),)}
    grouped = TestSet("s", QUERIES[:1], {"q1": {"d1": 1.0}}, groups=groups, grouping=entry.grouping)
    write_testset(grouped, tmp_path / "sample", name)
    head = Head((tmp_path / "sample").read_bytes())
    assert [one.name for one in FORMATS.values() if one.fits(head)] == ([] if name == "preferences" else ["qrels"])
