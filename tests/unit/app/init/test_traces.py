"""`cranfield init` on files of traces."""

import shutil
from pathlib import Path

import pytest

from cranfield.app.init.start import init_document, init_project
from cranfield.base.errors import UsageError
from cranfield.config import load_config
from cranfield.reporting import render

MADE = Path(__file__).parents[2] / "formats/traces"
GOLDEN = """cranfield_testset: 1
name: golden
queries:
  - {id: q1, text: rent a bike, judgments: {kb/bikes.md: 1}}
  - {id: q2, text: lost key, judgments: {kb/keys.md: 1}}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    shutil.copy(MADE / "otel.jsonl", tmp_path / "traces.jsonl")
    (tmp_path / "golden.yaml").write_text(GOLDEN)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_each_step_of_traces_is_a_system_and_the_report_says_what_is_in_them(folder):
    result = init_project(["traces.jsonl"], Path("cranfield.yaml"))
    systems = load_config(folder / "cranfield.yaml").systems
    assert {name: system.run for name, system in systems.items()} == {
        "handbook": "traces.jsonl#name=handbook",
        "search": "traces.jsonl#name=search",
        "rerank-reranker": "traces.jsonl#name=rerank,kind=reranker",
        "rerank-reranker-input": "traces.jsonl#name=rerank,kind=reranker-input",
        "Nodes.retrieve": "traces.jsonl#name=_Nodes.retrieve",
        "retrieval-kb": "traces.jsonl#name=retrieval%20kb",
        "wiki": "traces.jsonl#name=wiki",
    }
    starter = (folder / "testset.yaml").read_text()
    assert "key of <email>" in starter
    assert "jane" not in starter
    document = init_document(result)
    text = render(document, "text")
    for part in (
        "traces.jsonl: 9 traces, 21 spans, 13 lists of documents, 8 queries",
        "retrievals from 2026-11-30",
        "fields of documents: text, document_id, source, rank, start_index, file_path",
        "cranfield evaluate GOLDEN 'traces.jsonl#name=handbook'",
        "cranfield testset convert traces.jsonl queries.yaml",
    ):
        assert part in text
    (survey,) = document.payload()["traces"]
    handbook = survey["steps"][0]
    assert (handbook["name"], handbook["n_spans"], handbook["n_documents"], handbook["n_failed"]) == (
        "handbook",
        5,
        2,
        1,
    )


def test_with_a_golden_file_the_steps_that_answer_it_are_systems(folder):
    init_project(["golden.yaml", "traces.jsonl"], Path("cranfield.yaml"))
    assert list(load_config(folder / "cranfield.yaml").systems) == ["handbook", "retrieval-kb", "wiki"]
    init_project(["golden.yaml", "mine=traces.jsonl#name=wiki"], Path("one.yaml"))
    assert list(load_config(folder / "one.yaml").systems) == ["mine"]


def test_traces_of_other_queries_are_an_error(folder):
    (folder / "golden.yaml").write_text(GOLDEN.replace("rent a bike", "x").replace("lost key", "y"))
    with pytest.raises(UsageError, match="no step of these traces answers a query"):
        init_project(["golden.yaml", "traces.jsonl"], Path("cranfield.yaml"))
