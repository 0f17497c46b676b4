"""Explanations of scores as engines give them, read into one tree; known trees in the documented form of each engine."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield.config import system_config
from cranfield.config.systems import Fusion
from cranfield.evaluation.score_terms import flatten
from cranfield.model import Explanation, Hit, Query
from cranfield.model.explanation import MAX_CHARS, MAX_DEPTH, MAX_NAME, MAX_NODES, NOT_READ
from cranfield.systems.calls.explanation import description_name, read_explanation
from cranfield.systems.calls.extract import Extractor
from cranfield.systems.kinds.fusion import ResultList, fuse
from cranfield.systems.kinds.http import HttpSystem
from cranfield.systems.kinds.python import PythonSystem


def part(value, description, *details, **more):
    return {"value": value, "description": description, "details": list(details), **more}


def bm25(field, word, boost, *, doc=12, shown=True):
    """A term as Lucene explains it: idf of 1 of 5 documents, ln(1 + 4.5 / 1.5) = ln 4; tf of a field as long as the mean, 1 / 2.2."""
    idf = part(
        1.3862944,
        "idf, computed as log(1 + (N - n + 0.5) / (n + 0.5)) from:",
        part(1, "n, number of documents containing term"),
        part(5, "N, total number of documents with field"),
    )
    tf = part(
        0.45454544,
        "tf, computed as freq / (freq + k1 * (1 - b + b * dl / avgdl)) from:",
        part(1.0, "freq, occurrences of term within document"),
        part(1.2, "k1, term saturation parameter"),
        part(0.75, "b, length normalization parameter"),
        part(2.0, "dl, length of field"),
        part(2.0, "avgdl, average length of field"),
    )
    value = boost * 1.3862944 * 0.45454544
    boosts = [part(boost, "boost")] if shown else []
    score = part(value, "score(freq=1.0), computed as boost * idf * tf from:", *boosts, idf, tf)
    return part(value, f"weight({field}:{word} in {doc}) [PerFieldSimilarity], result of:", score)


def of_bm25(name, boost):
    return {
        name: pytest.approx(boost * 1.3862944 * 0.45454544),
        f"{name} · boost": boost,
        f"{name} · idf": 1.3862944,
        f"{name} · idf · n": 1.0,
        f"{name} · idf · N": 5.0,
        f"{name} · tf": 0.45454544,
        f"{name} · tf · freq": 1.0,
        f"{name} · tf · k1": 1.2,
        f"{name} · tf · b": 0.75,
        f"{name} · tf · dl": 2.0,
        f"{name} · tf · avgdl": 2.0,
    }


def test_elasticsearch_explains_a_multi_match():
    """`_explanation` of a search with "explain": true, best_fields with a tie breaker; a boost of 2 is 2 * (k1 + 1) = 4.4."""
    title, body = bm25("title", "grid", 4.4), bm25("body", "grid", 2.2, doc=3)
    value = title["value"] + 0.3 * body["value"]
    found = flatten(read_explanation(part(value, "sum of:", part(value, "max plus 0.3 times others of:", title, body))))
    expected = {**of_bm25("title:grid", 4.4), **of_bm25("body:grid", 2.2), "tie": 0.3, "score": value}
    assert found == expected
    assert next(iter(found)) == "score"


def test_lucene_s_boost_of_one_is_a_boost():
    """Solr's structured explanation has `match`, and Lucene 8 and later leave a boost of 1 out."""
    tree = {"match": True, **bm25("title", "grid", 1.0, shown=False)}
    assert flatten(read_explanation(tree)) == {**of_bm25("title:grid", 1.0), "score": pytest.approx(0.6301338)}


@pytest.mark.parametrize(
    ("description", "name"),
    [
        ('weight(title:"grid layout" in 3) [PerFieldSimilarity], result of:', 'title:"grid layout"'),
        ("weight(Synonym(title:cat title:cats^0.9) in 12) [PerFieldSimilarity], result of:", "title:(cat cats)"),
        ("weight(title:cat^2.0 in 12) [ClassicSimilarity], result of:", "title:cat"),
        ("fieldWeight in 3, product of:", "fieldWeight"),
        ("tf(freq=2.0), with freq of:", "tf"),
        ("idf(docFreq=1, maxDocs=2)", "idf"),
        ("fieldNorm(doc=3)", "fieldNorm"),
        ("termFreq=1.0", "termFreq"),
        ("ConstantScore(type:pdf)^2.0", "ConstantScore(type:pdf)"),
        ("function score, score mode [multiply]", "function score"),
        ("script score function, computed with script:\"Script{params={'a': 1}}\"", "script score function"),
        ("dl, length of field (approximate)", "dl"),
        ("product of:", "product"),
        (", ", ","),
    ],
)
def test_names_are_the_same_for_every_document(description, name):
    assert description_name(description.strip()) == name


def test_tantivy_explains_a_boosted_term():
    """The real engine: the boost of a field, which wraps its terms, is a part of each."""
    import tantivy

    builder = tantivy.SchemaBuilder()
    for name in ("title", "body"):
        builder.add_text_field(name)
    index = tantivy.Index(builder.build())
    writer = index.writer(num_threads=1)
    writer.add_document(tantivy.Document(title="grid layout", body="rows of a grid"))
    writer.add_document(tantivy.Document(title="stack", body="columns"))
    writer.commit()
    index.reload()
    query = index.parse_query("grid", ["title", "body"], field_boosts={"title": 3.0})
    searcher = index.searcher()
    ((score, address),) = searcher.search(query, 10).hits
    found = flatten(read_explanation(query.explain(searcher, address).to_json()))
    assert found["score"] == pytest.approx(score)
    assert (found["field 0:grid · boost"], found["field 1:grid · boost"]) == (3.0, 1.0)
    assert found["field 0:grid"] + found["field 1:grid"] == pytest.approx(score)
    numbers = [found[f"field 0:grid · {name}"] for name in ("boost", "(K1+1)", "idf", "tf")]
    assert found["field 0:grid"] == pytest.approx(numbers[0] * numbers[1] * numbers[2] * numbers[3])


def test_features_are_names_and_numbers():
    vespa = {"bm25(title)": 2.5, "attribute(popularity)": 7, "query(w)": {"type": "tensor()"}, "is_new": True}
    found = read_explanation(vespa)
    assert flatten(found) == {"bm25(title)": 2.5, "attribute(popularity)": 7.0, "is_new": 1.0}
    assert found.n_cut == 1  # a tensor is no number
    nested = read_explanation({"bm25": {"title": 1.0, "body": 2.0}})
    assert flatten(nested) == {"bm25 · title": 1.0, "bm25 · body": 2.0}


@pytest.mark.parametrize("value", ["1.5 = weight(title:cat in 3)", [1.0], 3, {"value": 1, "description": None}])
def test_what_is_no_explanation_is_counted_and_does_no_harm(value):
    assert read_explanation(value) == Explanation(NOT_READ, cut=1)
    assert flatten(read_explanation(value)) == {}


def test_an_explanation_is_bounded_and_what_is_cut_is_counted():
    wide = read_explanation({f"f{n}": 1.0 for n in range(1000)})
    assert (sum(1 for _ in wide), wide.n_cut) == (MAX_NODES, 1000 - (MAX_NODES - 1))
    deep = part(1.0, "bottom")
    for level in range(100):
        deep = part(1.0, f"level {level}", deep)
    found = read_explanation(deep)
    assert (sum(1 for _ in found), found.n_cut) == (MAX_DEPTH, 1)
    long = read_explanation({f"{n}{'x' * 10_000}": 1.0 for n in range(200)}).shortened()
    names = [each.name for each in long]
    assert max(map(len, names)) == MAX_NAME
    assert sum(map(len, names)) <= MAX_CHARS
    assert long.n_cut == 200 - (len(names) - 1)


values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["value", "description", "details", "name", "children", "cut", "x"]), inner)
    ),
    max_leaves=12,
)


@given(values)
def test_anything_is_read_into_a_bounded_tree(value):
    found = read_explanation(value)
    assert (found is None) == (value is None)
    if found is not None:
        assert read_explanation(found) == found
        assert all(isinstance(term, str) for term in flatten(found))
        json.dumps(found.record(), allow_nan=False)


def test_a_path_of_the_config_names_the_explanation_in_a_result():
    extract = {"json": "hits", "id": "id", "explanation": "features"}
    config = system_config("sut", {"http": {"url": "http://localhost/?q={query}"}, "extract": extract})
    output = json.dumps({"hits": [{"id": "a", "features": {"bm25": 2.0}}, {"id": "b"}]})
    first, second = Extractor(config).read(output, 10).hits
    assert flatten(first.explanation) == {"bm25": 2.0}
    assert second.explanation is None


def test_explanations_that_are_not_in_the_results_go_by_id():
    """Solr's `debug.explain` with debug.explain.structured=true."""
    extract = {"json": "response.docs", "id": "id", "explanations": "debug.explain"}
    config = system_config("sut", {"http": {"url": "http://localhost/?q={query}"}, "extract": extract})
    trees = {"a": {"match": True, **bm25("title", "grid", 2.0)}}
    output = json.dumps({"response": {"docs": [{"id": "a"}, {"id": "b"}]}, "debug": {"explain": trees}})
    first, second = Extractor(config).read(output, 10).hits
    assert flatten(first.explanation)["title:grid · boost"] == 2.0
    assert second.explanation is None


def test_a_system_sends_and_keeps_what_is_asked_for_only(serve, servers):
    def answer(received):
        hits = [{"id": "a", "why": {"bm25": 2.0}}] if received.json().get("explain") else [{"id": "a"}]
        return servers.json_reply({"hits": hits})

    service = serve(answer)
    settings = {
        "http": {"url": service.url, "json": {"q": "{query}", "explain": "{params.explain}"}},
        "extract": {"json": "hits", "id": "id", "explanation": "why"},
    }
    found = []
    for explain in (False, True):
        system = HttpSystem.of("sut", explain=explain, **settings)
        found.append(system.search(Query("q", "grid"), 10)[0].hits[0])
        system.close()
    assert [each.json() for each in service.requests] == [{"q": "grid"}, {"q": "grid", "explain": True}]
    assert found[0].explanation is None
    assert flatten(found[1].explanation) == {"bm25": 2.0}


def features(query, k):
    return {"hits": [{"id": "a", "score": 1.0, "explanation": {"bm25": 2.0, "clicks": 3}}]}


@pytest.mark.parametrize("explain", [False, True])
def test_a_function_gives_the_features_of_a_learned_ranker(explain):
    system = PythonSystem.calling("sut", features)
    system.config = system.config.model_copy(update={"explain": explain})
    (hit,) = system.search(Query("q", "grid"), 10)[0].hits
    assert flatten(hit.explanation) == ({"bm25": 2.0, "clicks": 3.0} if explain else {})
    system.close()


def test_secrets_in_an_explanation_are_redacted(serve, servers, monkeypatch):
    monkeypatch.setenv("TOKEN", "hunter2-secret")
    long = "x" * (MAX_NAME - 7) + "hunter2-secret"  # its end is behind the cut
    service = serve(
        lambda _: servers.json_reply({"hits": [{"id": "a", "why": {"token:hunter2-secret": 1.0, long: 2.0}}]})
    )
    system = HttpSystem.of(
        "sut",
        http={"url": service.url, "parameters": {"q": "{query}"}, "headers": {"Authorization": "Bearer {env.TOKEN}"}},
        extract={"json": "hits", "id": "id", "explanation": "why"},
        explain=True,
    )
    (hit,) = system.search(Query("q", "grid"), 10)[0].hits
    system.close()
    first, second = flatten(hit.explanation)
    assert first == "token:${TOKEN}"
    assert "hunter" not in second


def test_a_fusion_says_what_each_part_gives():
    """Reciprocal ranks at weight 2 and 1: 2 / (60 + 1) of the first list, 1 / (60 + 2) of the second."""
    own = Explanation("sum", 7.0, (Explanation("title:grid", 7.0),))
    lists = [
        ResultList("words", [Hit("a", 7.0, explanation=own)], weight=2.0),
        ResultList("vectors", [Hit("b", 0.9), Hit("a", 0.8)]),
    ]
    best = fuse(lists, Fusion(of=["words", "vectors"]), depth=10, k=1, explain=True)[0]
    assert flatten(best.explanation) == {
        "score": pytest.approx(2 / 61 + 1 / 62),
        "words": 2 / 61,
        "words · weight": 2.0,
        "words · rank": 1.0,
        "words · title:grid": 7.0,
        "vectors": 1 / 62,
        "vectors · weight": 1.0,
        "vectors · rank": 2.0,
    }
    assert {hit.explanation for hit in fuse(lists, Fusion(of=["words", "vectors"]), depth=10, k=2)} == {None}
