"""Retrievers of LangChain and LlamaIndex, and pipelines of Haystack, as systems and in `evaluate`."""

import asyncio
import json
import sys
from pathlib import Path

import pytest

from cranfield import Hit, Outcome, Passage, PythonSystem, Query, TestSet, evaluate

sys.path.insert(0, str(Path(__file__).parent))
import my_rag

QUERY = Query("q1", "rent a bike")
BIKES = my_rag.PASSAGES["kb/bikes.md"]
RANGE = {"start_char": my_rag.START, "end_char": my_rag.START + len(BIKES)}
"""Haystack's and LangChain's documents have no end: it follows from their texts."""
FOUND = ["kb/bikes.md", "kb/theft.md", "kb/keys.md"]
"""Three, two and one word in common."""
TESTSET = TestSet(
    "desk",
    (QUERY, Query("q2", "lost key"), Query("q3", "opening hours")),
    grades={"q1": {"kb/bikes.md": 2, "kb/theft.md": 1}, "q2": {"kb/keys.md": 1}, "q3": {"kb/hours.md": 1}},
)


def ask(system):
    answer, log = system.search(QUERY, 3)
    system.close()
    assert answer.outcome is Outcome.ANSWERED, f"{answer.reason}\n{log.stderr_head}"
    return answer.hits


@pytest.mark.parametrize("name", ["retriever", "only_async", "store", "nodes", "engine", "pipeline", "hybrid"])
def test_an_object_of_a_framework_is_a_system(name):
    hits = ask(PythonSystem.calling(name, getattr(my_rag, name)))
    expected = FOUND[:2] if name == "engine" else FOUND  # its postprocessor wants two words
    assert [hit.id for hit in hits] == expected
    assert hits[0].fields["text"] == BIKES
    assert RANGE.items() <= hits[0].fields.items()
    assert (hits[0].score is None) == (name in {"retriever", "only_async"})


@pytest.mark.parametrize("name", ["retriever", "store", "nodes", "engine", "pipeline"])
def test_passages_are_found_in_documents_of_every_framework(name):
    """By characters of a source, and by quote: `Rent a bike for a day` is 21 of 33 characters, 16 of 25 letters."""
    passages = (
        Passage(path="kb/bikes.md", chars=f"{my_rag.START}-{my_rag.START + 21}"),
        Passage("Rent a bike for a day"),
        Passage("nowhere to be found in any of them"),
    )
    recall = []
    for passage in passages:
        testset = TestSet("desk", (QUERY,), targets={"q1": (passage,)})
        found = evaluate(testset, getattr(my_rag, name), measures=["TextRecall@1", "TextPrecision@1", "RR"], k=3)
        recall.append([round(found.mean(measure), 4) for measure in found.measures])
    assert recall == [[1.0, round(21 / 33, 4), 1.0], [1.0, round(16 / 25, 4), 1.0], [0.0, 0.0, 0.0]]


@pytest.mark.parametrize("name", ["nodes", "pipeline"])
def test_scores_are_those_of_the_framework(name):
    answered = {
        "nodes": lambda: [each.score for each in my_rag.nodes.retrieve(QUERY.text)],
        "pipeline": lambda: [
            each.score for each in my_rag.pipeline.run({"retriever": {"query": QUERY.text}})["retriever"]["documents"]
        ],
    }
    assert [hit.score for hit in ask(PythonSystem.calling(name, getattr(my_rag, name)))] == pytest.approx(
        answered[name]()
    )


@pytest.mark.parametrize(
    ("name", "method"),
    [
        ("retriever", "invoke"),
        ("retriever", "ainvoke"),
        ("store", "asimilarity_search_with_score"),
        ("nodes", "aretrieve"),
        ("engine", "aretrieve"),
        ("pipeline", "run_async"),
    ],
)
def test_a_named_method_is_called_plain_or_async(name, method):
    called = getattr(getattr(my_rag, name), method)
    system = PythonSystem.calling("named", called)
    says = asyncio.iscoroutinefunction(called)
    assert [label for _, check in system.ready_steps() if (label := check())] == [
        "an async function" if says else "a function"
    ]
    assert [hit.id for hit in ask(system)] == (FOUND[:2] if name == "engine" else FOUND)


def test_evaluate_takes_the_objects():
    values = {
        name: evaluate(TESTSET, getattr(my_rag, name), measures=["nDCG@10", "RR"])
        for name in ("retriever", "store", "nodes", "pipeline")
    }
    assert {name: found.mean("RR") for name, found in values.items()} == dict.fromkeys(values, 1.0)
    assert values["pipeline"].name == "Pipeline"
    assert values["retriever"].mean("nDCG@10") == 1.0
    later = evaluate(TESTSET, my_rag.nodes.aretrieve, measures=["RR"])
    assert (later.mean("RR"), later.failures) == (1.0, ())


def test_a_vector_store_is_asked_for_k_results():
    found = evaluate(TESTSET, my_rag.store, measures=["P@5"], k=2)
    assert [len(found.ranking.top[query.id]) for query in TESTSET.queries] == [2, 2, 2]


def test_params_go_to_the_inputs_of_a_pipeline():
    system = PythonSystem.of("named", python="my_rag:pipeline", params={"top_k": 1}, cwd=str(Path(__file__).parent))
    assert [hit.id for hit in ask(system)] == FOUND[:1]
    wrong = PythonSystem.of("wrong", python="my_rag:pipeline", params={"depth": 1}, cwd=str(Path(__file__).parent))
    answer, _ = wrong.search(QUERY, 3)
    wrong.close()
    assert answer.reason == "TypeError: no component of pipeline has an input depth"


def test_several_outputs_of_a_pipeline_have_to_be_named():
    answer, _ = PythonSystem.calling("two", my_rag.two).search(QUERY, 3)
    assert answer.outcome is Outcome.UNPARSABLE
    assert answer.reason.startswith("the answer has five.documents and one.documents; name one with `extract:")
    named = PythonSystem.of(
        "named",
        python="my_rag:two",
        cwd=str(Path(__file__).parent),
        extract={"json": "one.documents", "id": "metadata.file_path", "score": "score", "title": "text"},
    )
    (hit,) = ask(named)
    assert (hit.id, hit.title) == ("kb/bikes.md", BIKES)


@pytest.mark.parametrize("name", ["retriever", "nodes"])
def test_extract_chooses_another_id(name):
    ids = {"retriever": "metadata.page", "nodes": "start_char_idx"}
    system = PythonSystem.of(
        "x", python=f"my_rag:{name}", cwd=str(Path(__file__).parent), extract={"json": "@", "id": ids[name]}
    )
    expected = {"retriever": "1", "nodes": "7"}
    assert [hit.id for hit in ask(system)] == [expected[name]] * 3


def test_a_pipeline_without_a_query_input_says_so():
    from haystack import Pipeline
    from haystack.components.joiners import DocumentJoiner

    pipeline = Pipeline()
    pipeline.add_component("joiner", DocumentJoiner())
    system = PythonSystem.calling("none", pipeline)
    answer, _ = system.search(QUERY, 3)
    assert answer.reason == "one input of Pipeline that takes the query: joiner.documents, joiner.top_k"


CONFIG = """
testset: queries.yaml
measures: [nDCG@10, RR]
systems:
  langchain: {python: "my_rag:retriever"}
  method: {python: "my_rag:retriever.ainvoke"}
  made: {python: "my_rag:made", with: {name: pipeline}}
"""
QUERIES = """
cranfield_testset: 1
name: desk
queries:
  - {id: q1, text: rent a bike, judgments: {kb/bikes.md: 2, kb/theft.md: 1}}
  - {id: q2, text: lost key, judgments: {kb/keys.md: 1}}
"""


def test_a_config_names_them_and_factories_of_them(tmp_path, call):
    (tmp_path / "cranfield.yaml").write_text(CONFIG)
    (tmp_path / "queries.yaml").write_text(QUERIES)
    factory = "\n\ndef made(name):\n    return MADE[name]()\n"
    (tmp_path / "my_rag.py").write_text(Path(my_rag.__file__).read_text() + factory)
    done = call("run", "--out", "out", folder=tmp_path, HAYSTACK_TELEMETRY_ENABLED="False")
    assert done.returncode in {0, 4}, done.stdout + done.stderr
    runs = {path.stem: path for path in (tmp_path / "out").rglob("*.jsonl")}
    for name in ("langchain", "method", "made"):
        answers = [json.loads(line) for line in runs[name].read_text().splitlines()[1:]]
        assert [answer["hits"][0]["id"] for answer in answers] == ["kb/bikes.md", "kb/keys.md"], name


def test_documents_have_their_places_in_the_declared_order():
    from haystack import Document as HaystackDocument
    from langchain_core.documents import Document
    from llama_index.core.schema import NodeWithScore, TextNode

    given = {
        "source before all": (Document(id="own", page_content="t", metadata={"source": "s", "id": "m"}), "s"),
        "an id in the metadata": (Document(id="own", page_content="t", metadata={"id": "m"}), "m"),
        "the own id": (Document(id="own", page_content="t", metadata={}), "own"),
        "a node's own": (NodeWithScore(node=TextNode(id_="own", text="t")), "own"),
        "haystack's parent": (HaystackDocument(id="own", content="t", meta={"source_id": "p"}), "p"),
        "haystack's own": (HaystackDocument(id="own", content="t"), "own"),
    }
    for what, (document, expected) in given.items():
        (hit,) = ask(PythonSystem.calling("one", lambda query, k, document=document: [document]))
        assert hit.id == expected, what
        assert isinstance(hit, Hit)
