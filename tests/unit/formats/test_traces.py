"""Traces as runs and queries. The files in `traces/` are what real instrumentation recorded: see tests/frameworks/traced.py."""

from __future__ import annotations

import json
import random
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield import Query, TestSet, evaluate, load
from cranfield.base.errors import CranfieldError, RunFormatError, TestSetError
from cranfield.formats.convert import write_testset
from cranfield.formats.sniff import detect_format, read_query_list, sniff_run
from cranfield.formats.traces.runs import read_trace_queries, read_trace_run
from cranfield.formats.traces.steps import query_text
from cranfield.model import Outcome

MADE = Path(__file__).parent / "traces"
WHOLE = ["otel.jsonl", "phoenix.jsonl", "phoenix.json", "phoenix.parquet"]
HANDBOOK = ["kb/bikes.md", "kb/keys.md"]
NIGHT = "Where do I rent a bike at night?"


def chosen(file: str | Path, choice: str):
    return read_trace_run(Path(f"{MADE / file}#{choice}"))


def lists(run):
    return {query: [hit.id for hit in answer.hits] for query, answer in run.answers.items()}


def attribute(name, value):
    kind = "boolValue" if isinstance(value, bool) else "doubleValue" if isinstance(value, float) else "stringValue"
    return {"key": name, "value": {"intValue": str(value)} if type(value) is int else {kind: value}}


def span(number, text, ids, *, trace=None, name="search", start=None, **more):
    """A span of a retriever by OpenInference."""
    attributes = {"openinference.span.kind": "RETRIEVER", "input.value": text}
    attributes |= {f"retrieval.documents.{rank}.document.id": doc_id for rank, doc_id in enumerate(ids)}
    return {
        "traceId": f"{number if trace is None else trace:032x}",
        "spanId": f"{number:016x}",
        "parentSpanId": "",
        "name": name,
        "startTimeUnixNano": str(number if start is None else start),
        "attributes": [attribute(key, value) for key, value in attributes.items() if value is not None],
        **more,
    }


def put(folder, *batches, name="traces.jsonl"):
    """A file of requests, a line each."""
    path = folder / name
    path.write_text(
        "".join(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": list(each)}]}]}) + "\n" for each in batches)
    )
    return path


@pytest.mark.parametrize("file", [*WHOLE, "langfuse.jsonl", "langfuse.json"])
def test_a_file_of_spans_is_recognised_as_a_run_and_as_queries(file):
    assert sniff_run(MADE / file).name == "traces"
    assert sniff_run(Path(f"{MADE / file}#name=handbook")).name == "traces"
    assert detect_format(MADE / file, "testset", None, TestSetError).name == "trace-queries"


@pytest.mark.parametrize("file", WHOLE)
def test_every_export_gives_the_runs_that_the_instrumentation_recorded(file):
    handbook = chosen(file, "name=handbook")
    assert lists(handbook) == {
        "down": [],
        "key of <email>": HANDBOOK,
        "lost key": HANDBOOK,
        "nothing": [],
        "rent a bike": HANDBOOK,
    }
    assert handbook.answers["down"].outcome is Outcome.ERROR
    assert handbook.answers["nothing"].outcome is Outcome.EMPTY
    first = handbook.answers["rent a bike"].hits[0]
    assert first.fields == {
        "document_id": "c1",
        "source": "kb/bikes.md",
        "start_index": 120,
        "text": "Bikes are rented at the desk.",
    }
    assert [len(each) for each in lists(chosen(file, "name=_Nodes.retrieve")).values()] == [2]
    assert lists(chosen(file, "name=retrieval%20kb")) == {"rent a bike": HANDBOOK}
    assert [hit.score for hit in chosen(file, "source=kb").answers["rent a bike"].hits] == [0.5, 0.25]
    assert lists(chosen(file, "name=wiki")) == {"rent a bike": ["w1", "w2"]}
    assert lists(chosen(file, "name=search")) == {"rent bike": ["a", "b"], "rent bike night": ["c", "a"]}
    assert lists(chosen(file, "kind=reranker-input")) == {"rent bike night": ["a", "b", "c"]}
    assert lists(chosen(file, "kind=reranker")) == {"rent bike night": ["c", "a"]}


@pytest.mark.parametrize("file", WHOLE)
@pytest.mark.parametrize(("pick", "ids"), [("first", ["a", "b"]), ("last", ["c", "a"]), ("union", ["a", "c", "b"])])
def test_a_loop_gives_the_first_the_last_or_the_union_for_what_the_agent_was_asked(file, pick, ids):
    run = chosen(file, f"name=search,query=trace,pick={pick}")
    assert lists(run) == {NIGHT: ids}
    assert run.name.endswith(f"-search-{pick}")


@pytest.mark.parametrize("file", ["langfuse.jsonl", "langfuse.json"])
def test_observations_of_langfuse(file):
    run = read_trace_run(MADE / file)
    assert lists(run) == {"rent a bike": ["w1", "w2"]}
    assert [hit.score for hit in run.answers["rent a bike"].hits] == [0.5, None]
    assert lists(chosen(file, "query=trace")) == {"rent a bike, please": ["w1", "w2"]}


@pytest.mark.parametrize("ending", ["", "#pick=first"])
def test_of_several_steps_one_has_to_be_chosen_and_the_error_says_how(ending):
    with pytest.raises(RunFormatError) as caught:
        read_trace_run(Path(f"{MADE / 'otel.jsonl'}{ending}"))
    message = str(caught.value)
    assert "these traces have 7 retrieval steps" in message
    for choice in (
        "handbook",
        "search",
        "rerank,kind=reranker",
        "rerank,kind=reranker-input",
        "retrieval%20kb",
        "wiki",
    ):
        assert f"otel.jsonl#name={choice}" in message


@pytest.mark.parametrize(
    ("choice", "complaint"),
    [
        ("nam=x", "not a choice of spans; expected FILE#name=NAME"),
        ("name", "not a choice of spans"),
        ("pick=frist", "no such pick; expected first, last, union, got 'frist'"),
        ("name=handbok", "did you mean handbook?"),
        ("kind=retriever", "these traces have 5 retrieval steps"),
    ],
)
def test_a_choice_that_is_none_is_an_error(choice, complaint):
    with pytest.raises(RunFormatError) as caught:
        chosen("otel.jsonl", choice)
    assert complaint in str(caught.value)


def test_a_star_in_the_name_takes_all_steps_of_one_kind():
    run = chosen("otel.jsonl", "name=*,kind=retriever")
    assert set(run.answers) == {
        "down", "key of <email>", "lost key", "nothing", "rent a bike", "node", "rent bike", "rent bike night",
    }  # fmt: skip
    assert [hit.id for hit in run.answers["rent a bike"].hits] == ["w1", "w2"]
    assert "asked in several traces: 1 query, the last is used, in 1 of them the results differ" in run.notes


def test_a_run_is_scored_on_a_test_set_by_text_and_its_notes_are_warnings():
    testset = TestSet(
        "desk",
        (Query("q1", "rent  a bike"), Query("q2", "key of joe@example.org"), Query("q3", "nothing")),
        {"q1": {"kb/bikes.md": 1}, "q2": {"c2": 1}, "q3": {"kb/keys.md": 1}},
    )
    evaluation = evaluate(testset, f"{MADE / 'otel.jsonl'}#name=handbook", measures=["RR"])
    assert [evaluation.value("RR", query_id) for query_id in ("q1", "q2", "q3")] == [1.0, 0.0, 0.0]
    warnings = [str(each) for each in evaluation.warnings]
    assert "from traces: retriever 'handbook', 5 spans of 5 traces" in warnings
    assert "failed: 1 span; no other for 1 query" in warnings
    assert "redacted in texts of queries: 1 email" in warnings
    assert not any("jane" in each for each in warnings)
    by_own = TestSet("own", testset.queries[:1], {"q1": {"c2": 1}})
    assert evaluate(by_own, f"{MADE / 'otel.jsonl'}#name=handbook", measures=["RR"]).value("RR", "q1") == 0.5


@pytest.mark.parametrize("file", WHOLE)
def test_queries_are_redacted_and_weighted_by_the_traces_that_have_them(file):
    testset = load(MADE / file)
    assert {query.text: query.weight for query in testset.queries} == {
        "rent a bike": 3.0,
        **dict.fromkeys(("down", "key of <email>", "lost key", "node", "nothing", "rent bike", "rent bike night"), 1.0),
    }
    first = testset.queries[0]
    assert (first.id, first.text) == ("rent-a-bike-" + first.id[-10:], "rent a bike")
    assert testset.grades[first.id] == dict.fromkeys(("kb/bikes.md", "kb/keys.md", "w1", "w2"), -1.0)
    by_trace = read_query_list(Path(f"{MADE / file}#name=search,query=trace"))
    assert [query.text for query in by_trace.queries] == [NIGHT]
    assert "redacted in texts of queries: 1 email" in map(str, testset.notes)


def test_a_test_set_of_traces_is_written_and_the_run_of_the_same_traces_answers_it(tmp_path):
    queries = load(MADE / "otel.jsonl")
    assert write_testset(queries, tmp_path / "starter.yaml") == ("not carried over: 2 unjudged queries",)
    judged = (tmp_path / "starter.yaml").read_text().replace("kb/keys.md: -1", "kb/keys.md: 1")
    (tmp_path / "starter.yaml").write_text(judged)
    evaluation = evaluate(tmp_path / "starter.yaml", f"{MADE / 'otel.jsonl'}#name=handbook", measures=["RR"])
    by_text = {query.text: evaluation.value("RR", query.id) for query in evaluation.testset.queries}
    assert by_text["lost key"] == by_text["key of <email>"] == by_text["rent a bike"] == 0.5


def test_nothing_is_lost_silently(tmp_path):
    failed = {"status": {"code": "STATUS_CODE_ERROR"}, "events": []}
    cut = span(8, "cut", ["x"], droppedAttributesCount=3)
    cut["attributes"].append(attribute("retrieval.documents.4.document.id", "y"))
    nameless = span(9, "nameless", ["", "z"])
    path = put(
        tmp_path,
        [span(1, "a", ["d1"]), span(2, "a", ["d2"]), span(3, "b", ["d1"], trace=77), span(4, "b", ["d2"], trace=77)],
        [span(5, None, ["d1"]), span(6, "silent", []), span(7, "broken", ["d9"], **failed), cut, nameless],
        [span(1, "a", ["d1"]), {"name": "chat", "attributes": []}],
    )
    with path.open("a") as stream:
        stream.write('{"resourceLogs": []}\n')
    run = read_trace_run(path)
    assert lists(run) == {
        "a": ["d2"], "b": ["d2"], "broken": [], "cut": ["x", "y"], "nameless": ["unnamed-1", "z"],
    }  # fmt: skip
    assert run.answers["broken"].reason == "the span failed"
    assert run.notes == (
        "from traces: retriever 'search', 9 spans of 8 traces",
        "without a query in the span: 1 span; query=trace takes that of the first span of the trace",
        "without recorded documents: 1 span",
        "failed: 1 span; no other for 1 query",
        "left out: 1 query without recorded documents ('silent')",
        "asked several times in one trace: 1 query, of which the last list is used; pick=first, last or union chooses",
        "asked in several traces: 1 query, the last is used, in 1 of them the results differ",
        "without an id and a text: 1 document, which keep their rank",
        "documents may be missing: 1 span lack attributes; OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT of the SDK may be too low (128)",
        "1 span were in the file twice, and count once",
        "left out: 1 lines of logs or metrics",
    )


def test_a_retry_that_succeeds_counts_and_not_the_failure(tmp_path):
    failed = {"status": {"code": 2}}
    run = read_trace_run(put(tmp_path, [span(1, "a", ["d1"], trace=5), span(2, "a", [], trace=5, **failed)]))
    assert lists(run) == {"a": ["d1"]}


IDS = st.lists(st.text(min_size=1, max_size=8).filter(str.strip), max_size=4, unique=True)
TEXTS = st.sampled_from(["rent a bike", "où 🔑", "キー", "a b"])


@given(st.lists(st.tuples(TEXTS, IDS, st.integers(0, 3), st.integers(0, 5)), min_size=1, max_size=8), st.randoms())
def test_the_order_of_spans_and_of_lines_counts_for_nothing(tmp_path_factory, made, shuffler):
    folder = tmp_path_factory.mktemp("traces")
    spans = [
        span(number, text, ids, trace=trace, start=start) for number, (text, ids, trace, start) in enumerate(made, 1)
    ]
    spans.append(span(99, "always", ["d1"]))
    before = read_trace_run(put(folder, spans))
    shuffled = [{**each, "attributes": shuffler.sample(each["attributes"], len(each["attributes"]))} for each in spans]
    shuffler.shuffle(shuffled)
    cut = shuffler.randrange(len(spans))
    after = read_trace_run(put(folder, shuffled[:cut], shuffled[cut:] + shuffled[:1]))
    assert (after.answers, after.digest) == (before.answers, before.digest)
    assert list(after.answers) == list(before.answers)


@given(st.sets(st.integers(0, 10**9 - 1), min_size=1, max_size=6))
def test_documents_stand_in_the_order_of_their_numbers_whatever_is_between(tmp_path_factory, numbers):
    made = span(1, "q", [])
    places = random.Random(0).sample(sorted(numbers), len(numbers))
    made["attributes"] += [attribute(f"retrieval.documents.{place}.document.id", f"d{place}") for place in places]
    run = read_trace_run(put(tmp_path_factory.mktemp("gaps"), [made]))
    assert lists(run) == {"q": [f"d{place}" for place in sorted(numbers)]}
    has_gap = sorted(numbers) != list(range(len(numbers)))
    assert any("documents may be missing" in note for note in run.notes) == has_gap


def test_lines_are_read_one_after_the_other_and_other_spans_are_dropped(tmp_path):
    long = {"name": "chat", "traceId": "1", "spanId": "2", "attributes": [attribute("input.value", "x" * 200_000)]}
    text = "the same text " * 5_000
    lines = []
    for number in range(1, 121):
        found = span(number, f"q{number}", ["d1"])
        found["attributes"].append(attribute("retrieval.documents.0.document.content", text))
        lines.append([found, long])
    path = put(tmp_path, *lines)
    assert path.stat().st_size > 30_000_000
    tracemalloc.start()
    try:
        run = read_trace_run(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(run.answers) == 120
    assert peak < 8_000_000


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("rent a bike", "rent a bike"),
        ('{"query": "rent a bike"}', "rent a bike"),
        ('{"qb": {"query_str": "rent a bike", "image_path": null}}', "rent a bike"),
        ('[{"role": "system", "content": "be short"}, {"role": "user", "content": "rent a bike"}]', "rent a bike"),
        ([{"role": "user", "parts": [{"type": "text", "content": "rent a bike"}]}], "rent a bike"),
        ('{"k": 3}', ""),
        ("[1, 2]", ""),
        ("[draft] bike", "[draft] bike"),
        ("42", "42"),
        (None, ""),
        ({"a": {"b": {"c": {"d": {"e": {"f": {"g": {"query": "deep"}}}}}}}}, ""),
    ],
)
def test_the_query_in_an_input(value, text):
    assert query_text(value) == text


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ('{"resourceSpans": []}\n{"resourceSpans": [}\n', ":2:20: not valid JSON"),
        ('{"resourceSpans": []}\n{"spans": []}\n', ":2: no span; expected spans of OpenTelemetry"),
        ('{"resourceSpans": []}\n', "no retrieval in these traces"),
        ('{"resourceSpans": 3}\n', "no span"),
        ('{"resourceSpans": [{"scopeSpans": [{"spans": [7, {"attributes": 3}]}]}]}', "1 span of other kinds"),
    ],
)
def test_what_is_wrong_with_a_file_is_told_with_its_line(tmp_path, content, complaint):
    path = tmp_path / "traces.jsonl"
    path.write_text(content)
    with pytest.raises(CranfieldError) as caught:
        read_trace_run(path)
    assert complaint in str(caught.value)


def test_contents_that_were_not_recorded_are_named(tmp_path):
    path = put(tmp_path, [span(1, None, ["d"]), span(2, "q", [])])
    with pytest.raises(RunFormatError) as caught:
        read_trace_run(path)
    assert "no query with documents in the spans 'search'" in str(caught.value)
    assert "only on request" in str(caught.value)
    with pytest.raises(TestSetError, match="no span has a query"):
        read_trace_queries(put(tmp_path, [span(1, None, ["d"])], name="other.jsonl"))


def test_notes_hold_no_folder_so_that_results_are_the_same_everywhere():
    for file in WHOLE:
        assert not any(str(MADE) in note for note in chosen(file, "name=handbook").notes)


def test_a_reranker_that_has_one_name_twice_is_named_with_its_kind():
    (others,) = [note for note in chosen("otel.jsonl", "kind=reranker").notes if note.startswith("not used")]
    assert "otel.jsonl#name=handbook, otel.jsonl#name=search, otel.jsonl#name=rerank,kind=reranker-input" in others
