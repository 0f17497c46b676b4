"""Retrievers and pipelines are recognised by their methods. tests/frameworks has the real ones."""

import inspect

import pytest

from cranfield import evaluate
from cranfield.base.errors import PreflightError
from cranfield.model import Answer, Hit, Outcome, Query
from cranfield.systems.collect.preflight import preflight
from cranfield.systems.kinds.frameworks import is_retriever, retriever_function
from cranfield.systems.kinds.python import PythonSystem


class Document:
    def __init__(self, text, metadata, **more):
        self.text, self.metadata = text, metadata
        vars(self).update(more)


class Plain:
    def invoke(self, text, config=None, **more):
        return [f"plain {text} {sorted(more)}"]


class Awaited:
    async def ainvoke(self, text, config=None):
        return [f"awaited {text}"]


class Both(Plain):
    async def ainvoke(self, text, config=None):
        return [f"awaited {text}"]


class Unwritten(Both):
    def invoke(self, text, config=None):
        raise NotImplementedError


class Nodes:
    def retrieve(self, text):
        return [f"nodes {text}"]


class Store:
    """With a method `search` that is not a system's."""

    def search(self, query, search_type):
        raise ValueError(search_type)

    def as_retriever(self):
        return Plain()

    def add_texts(self, texts):
        return []

    def similarity_search_with_score(self, query, k=4):
        return [(Document(query, {"source": f"d{n}"}), 1.0 / (1 + n)) for n in range(k)]


class Searcher(Plain):
    def search(self, query, k):
        return [f"searched {query} {k}"]


class Own:
    """A class of the user's, whose method is called as it always was."""

    def retrieve(self, query, limit=5):
        return [f"own {query} {limit}"]


class Called(Own):
    def __call__(self, query, k):
        return [f"called {query} {k}"]


def required(kind=str):
    return {"type": kind, "is_mandatory": True}


class Pipeline:
    def __init__(self, inputs, returned=None):
        self.open, self.returned = inputs, returned or {"out": {"documents": ["d1"]}}
        self.asked = []

    def inputs(self):
        return self.open

    def outputs(self):
        return {}

    def run(self, data):
        self.asked.append(data)
        return self.returned


def ask(found, **params):
    system = PythonSystem.calling("sut", found)
    try:
        return system.search(Query("q1", "grid", params=params), 3)[0]
    finally:
        system.close()


@pytest.mark.parametrize(
    ("found", "ids"),
    [
        (Plain(), ["plain grid []"]),
        (Awaited(), ["awaited grid"]),
        (Both(), ["plain grid []"]),
        (Both().ainvoke, ["awaited grid"]),
        (Unwritten(), ["awaited grid"]),
        (Nodes(), ["nodes grid"]),
        (Nodes().retrieve, ["nodes grid"]),
        (Store(), ["d0", "d1", "d2"]),
        (Searcher(), ["searched grid 3"]),
        (Own(), ["own grid 3"]),
        (Own().retrieve, ["own grid 3"]),
        (Called(), ["called grid 3"]),
    ],
    ids=lambda value: value if isinstance(value, list) else type(value).__name__,
)
def test_the_method_that_fits_is_called(found, ids):
    assert [hit.id for hit in ask(found).hits] == ids


def test_what_was_not_written_is_an_error_where_there_is_no_async_method():
    class Neither:
        def invoke(self, text):
            raise NotImplementedError("later")

    assert ask(Neither()).reason == "NotImplementedError: later"


def test_params_are_keyword_arguments():
    assert ask(Plain(), filter="x").hits == (Hit("plain grid ['filter']"),)
    assert ask(Nodes(), filter="x").reason.startswith("TypeError: ")


def test_other_objects_are_none():
    class Any:
        def __getattr__(self, name):
            return lambda *arguments: []

    class Named:
        invoke = "text"

    for other in (Any(), Named(), Plain, print, "invoke", None, [1], Plain().__init__, inspect):
        assert not is_retriever(other), other
        assert retriever_function(other, "other") is None


def test_evaluate_takes_a_retriever_first_or_second():
    grades = {"q1": {"nodes q1": 1}}
    from cranfield import TestSet

    testset = TestSet("one", (Query("q1", "q1"),), grades)
    for arguments in ((testset, Nodes()), (Nodes(), testset)):
        assert evaluate(*arguments, measures=["RR"]).mean("RR") == 1.0


INPUTS = {
    "the only text": ({"a": {"topic": required()}}, {"a": {"topic": "grid"}}),
    "a usual name": ({"a": {"query": required(), "lang": required()}}, {"a": {"query": "grid"}}),
    "several components": (
        {
            "embedder": {"text": required()},
            "bm25": {"query": required(), "top_k": {"type": int, "is_mandatory": False}},
        },
        {"embedder": {"text": "grid"}, "bm25": {"query": "grid"}},
    ),
    "one that is not required": ({"a": {"query": {"type": str, "is_mandatory": False}}}, {"a": {"query": "grid"}}),
}


@pytest.mark.parametrize("what", INPUTS)
def test_the_query_goes_to_the_inputs_that_take_it(what):
    inputs, data = INPUTS[what]
    pipeline = Pipeline(inputs)
    assert ask(pipeline).hits == (Hit("d1"),)
    assert pipeline.asked == [data]


def test_params_go_to_every_input_of_their_name():
    inputs, _ = INPUTS["several components"]
    pipeline = Pipeline({**inputs, "ranker": {"top_k": {"type": int, "is_mandatory": False}}})
    ask(pipeline, top_k=7)
    assert pipeline.asked == [
        {"embedder": {"text": "grid"}, "bm25": {"query": "grid", "top_k": 7}, "ranker": {"top_k": 7}}
    ]
    assert ask(pipeline, depth=7).reason.endswith("has an input depth")


@pytest.mark.parametrize(
    ("inputs", "got"),
    [
        ({"a": {"topic": required(), "words": required()}}, "a.topic, a.words"),
        ({"a": {"top_k": required(int)}}, "a.top_k"),
        ({}, "no input"),
        ({part: {"query": {"type": str, "is_mandatory": False}} for part in ("a", "b")}, "a.query, b.query"),
    ],
)
def test_an_unclear_input_is_refused_before_the_first_query(inputs, got):
    with pytest.raises(PreflightError) as caught:
        preflight([PythonSystem.calling("sut", Pipeline(inputs))])
    message = str(caught.value)
    assert f"got {got}." in message
    assert "def search(query, k): return" in message


RETURNED = {
    "documents of one component": (
        {"a": {"documents": ["d1"]}, "b": {"replies": []}},
        Answer(Outcome.ANSWERED, (Hit("d1"),)),
    ),
    "none found": ({"a": {"documents": []}}, Answer(Outcome.EMPTY)),
    "two": (
        {"a": {"documents": ["d1"]}, "b": {"documents": []}},
        Answer(
            Outcome.UNPARSABLE,
            reason="the answer has a.documents and b.documents; name one with `extract: {json: a.documents, …}`",
        ),
    ),
    "no documents": (
        {"a": {"replies": []}},
        Answer(Outcome.UNPARSABLE, reason='the answer is an object without "hits"'),
    ),
}


@pytest.mark.parametrize("what", RETURNED)
def test_documents_are_found_in_what_a_pipeline_returns(what):
    returned, answer = RETURNED[what]
    assert ask(Pipeline({"a": {"query": required()}}, returned)) == answer


FIELDS = {
    "a range of its own": (
        Document("abc", {"source": "s"}, start_char_idx=5, end_char_idx=9),
        {"start_char": 5, "end_char": 9},
    ),
    "an end that follows": (Document("abc", {"source": "s", "start_index": 5}), {"start_char": 5, "end_char": 8}),
    "the first character": (Document("abc", {"source": "s", "split_idx_start": 0}), {"start_char": 0, "end_char": 3}),
    "not found in its source": (Document("abc", {"source": "s", "start_index": -1}), {}),
    "without a text": (Document(None, {"source": "s", "start_index": 5}), {}),
    "no number": (Document("abc", {"source": "s", "start_index": True}), {}),
    "an end before its start": (Document("abc", {"source": "s"}, start_char_idx=5, end_char_idx=4), {}),
    "a page": (Document("abc", {"source": "s", "page_number": 3}), {"page": 3}),
    "a page of its own": (Document("abc", {"source": "s", "page": 0, "page_label": "i"}), {"page": 0}),
}


@pytest.mark.parametrize("what", FIELDS)
def test_places_of_a_passage_have_one_name_each(what):
    document, expected = FIELDS[what]
    (hit,) = ask(lambda query, k: [document]).hits
    found = {name: hit.fields[name] for name in ("start_char", "end_char", "page") if name in hit.fields}
    assert found == expected
    assert hit.fields.get("text") == document.text


IDS = {
    "source": (Document("t", {"source": "s", "url": "u", "id": "m"}, id="own"), "s", "own"),
    "file_path": (Document("t", {"file_path": "f", "id": "m"}, id="own"), "f", "own"),
    "an id of the metadata": (Document("t", {"doc_id": "m"}, id="own", ref_doc_id="p"), "m", "own"),
    "the document of the passage": (Document("t", {}, node_id="own", ref_doc_id="p"), "p", "own"),
    "its own": (Document("t", {}, id="own", ref_doc_id=None), "own", None),
    "that of a node": (Document("t", {}, node_id="own"), "own", None),
    "a blank source": (Document("t", {"source": " "}, id="own"), "own", None),
    "no other name than usual ones": (Document("t", {"docno": 7}), "7", None),
}


@pytest.mark.parametrize("what", IDS)
def test_ids_have_an_order(what):
    document, name, own = IDS[what]
    (hit,) = ask(lambda query, k: [document]).hits
    assert (hit.id, hit.fields.get("document_id")) == (name, own)


def test_extract_reads_the_documents_as_json():
    document = Document("abc", {"source": "s", "when": object(), "tags": ["x"]}, id="own")
    system = PythonSystem.of("sut", python="m:f", extract={"json": "@", "id": "metadata.tags[0]", "title": "text"})
    system._given = lambda query, k: [document]
    (hit,) = system.search(Query("q1", "grid"), 3)[0].hits
    assert (hit.id, hit.title) == ("x", "abc")
