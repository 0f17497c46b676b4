"""The files of traces in tests/unit/formats/traces are still what the real instrumentation records."""

import json
import sys
from pathlib import Path

import pytest

from cranfield.formats.traces.runs import read_trace_run

sys.path.insert(0, str(Path(__file__).parent))
import traced

MADE = Path(__file__).parents[1] / "unit/formats/traces"
CHOICES = [
    "name=handbook",
    "name=_Nodes.retrieve",
    "name=search,query=trace,pick=union",
    "kind=reranker",
    "kind=reranker-input",
    "name=retrieval%20kb",
    "name=wiki",
    "name=*,kind=retriever",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The files as the installed frameworks make them now."""
    folder = tmp_path_factory.mktemp("traces")
    traced.main(folder)
    return folder


@pytest.mark.parametrize("choice", CHOICES)
def test_a_run_of_new_traces_is_that_of_the_kept_ones(folder, choice):
    new, kept = (read_trace_run(Path(f"{place / 'otel.jsonl'}#{choice}")) for place in (folder, MADE))
    assert new.answers == kept.answers
    assert new.notes == tuple(note.replace(str(MADE), str(folder)) for note in kept.notes)


@pytest.mark.parametrize("file", ["langfuse.jsonl", "langfuse.json"])
def test_observations_of_langfuse_are_the_kept_ones(folder, file):
    assert read_trace_run(folder / file).answers == read_trace_run(MADE / file).answers


def test_ids_and_attributes_are_the_same_and_times_are_new(folder):
    def spans(place):
        requests = map(json.loads, (place / "otel.jsonl").read_text().splitlines())
        return [span for request in requests for span in traced._spans_in(request)]

    for new, kept in zip(spans(folder), spans(MADE), strict=True):
        assert [new[key] for key in ("traceId", "spanId", "name")] == [
            kept[key] for key in ("traceId", "spanId", "name")
        ]
        assert {each["key"] for each in new["attributes"]} == {each["key"] for each in kept["attributes"]}
