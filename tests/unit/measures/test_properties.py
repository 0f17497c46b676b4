"""Property sets: every measure of the catalogue is on one side of each, and each property is shown able to fail.

`traits/*.toml` say which side. What is declared true, hypothesis tries to break; what is declared false is broken by a
counterexample that hypothesis has to find.
"""

import math
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, find, given, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

from cranfield.measures import CATALOGUE, compute, parse
from cranfield.model import (
    Answer,
    GroupedJudgment,
    Hit,
    Legacy,
    Negative,
    Outcome,
    Query,
    Run,
    Source,
    TestSet,
    convention_named,
)
from cranfield.ranking import rank_run

PROPERTIES = (
    "bounded",
    "one_on_the_ideal_list",
    "never_falls_when_a_relevant_result_rises",
    "blind_beyond_the_cutoff",
    "blind_to_unjudged_at_the_end",
    "blind_to_query_order",
    "blind_to_document_names",
    "blind_to_a_rescale_of_scores",
)
ALWAYS = {"blind_to_query_order", "blind_to_document_names", "blind_to_a_rescale_of_scores"}
"""True unless a table says otherwise."""

GROUPINGS = {"subtopic", "judge", "preference"}
DOCUMENTS = [f"d{i:02}" for i in range(12)]
grades = st.dictionaries(st.sampled_from(DOCUMENTS), st.integers(-1, 3), min_size=1, max_size=8)
good_grades = st.dictionaries(st.sampled_from(DOCUMENTS), st.integers(1, 3), min_size=1, max_size=5)
lists = st.lists(st.sampled_from(DOCUMENTS), unique=True, min_size=1)


def read_traits():
    tables = {}
    for path in sorted((Path(__file__).parent / "traits").glob("*.toml")):
        for name, table in tomllib.loads(path.read_text()).items():
            tables.setdefault(name, []).append(dict.fromkeys(ALWAYS, True) | table)
    return tables


TRAITS = read_traits()


def declared(key, side):
    return [pytest.param(name, id=name) for name, (table, *_) in TRAITS.items() if table.get(key) is side]


def test_no_measure_is_forgotten_and_none_is_declared_twice():
    assert set(TRAITS) == set(CATALOGUE)
    assert not [name for name, tables in TRAITS.items() if len(tables) > 1]


def test_every_measure_is_on_one_side_of_every_property():
    undecided = [f"{name}: {key}" for name, (table, *_) in TRAITS.items() for key in PROPERTIES if key not in table]
    assert not undecided


def test_every_broken_property_and_every_parity_is_explained():
    for name, (table, *_) in TRAITS.items():
        broken = [key for key in PROPERTIES if table[key] is False]
        assert not broken or table["why"], name
        assert table["parity"] in {"trec_eval", "ir_measures", "ranx", "own"}, name
        assert table["spellings"], name
        assert all(parse(spelling).name == name for spelling in table["spellings"])


@dataclass(frozen=True)
class Case:
    """Judgments and one list of results, by query."""

    grades: dict
    lists: dict
    scores: tuple[float, float] | None = None
    """Slope and offset of the scores; None for a list in the order given."""


def grouped(needs, query_grades):
    """The same judgments by group, as a measure needs them."""
    if needs == "subtopic":
        return tuple(
            GroupedJudgment(d, str(i % 3), g) for i, (d, g) in enumerate(sorted(query_grades.items())) if g > 0
        )
    if needs == "judge":
        return tuple(GroupedJudgment(d, judge, g) for d, g in query_grades.items() for judge in ("first", "second"))
    return tuple(GroupedJudgment(d, "only", float(g), "all") for d, g in query_grades.items() if g >= 0)


def looked_for(needs, judgments):
    """What else the test set says, as a measure needs it; told by the end of an id, so that names do not matter."""
    if needs == "files":
        return {"files": {q: tuple(d for d, g in judged.items() if g > 0) for q, judged in judgments.items()}}
    if needs == "legacy":
        return {"legacy": {q: Legacy(patterns=("[02468]$",)) for q in judgments}}
    if needs == "sources":
        return {"sources": (Source("first", "0[0-3]$"), Source("second", "0[4-7]$"), Source("third", "[0-9]$"))}
    return {}


def values(spelling, case):
    measure = parse(spelling)
    needs = CATALOGUE[measure.name].needs
    groups = {q: grouped(needs, judged) for q, judged in case.grades.items()} if needs in GROUPINGS else {}
    negative = Negative() if needs == "silence" else None
    testset = TestSet(
        "set",
        tuple(Query(q, negative=negative) for q in case.grades),
        case.grades,
        groups=groups,
        grouping=needs if groups else None,
        **looked_for(needs, case.grades),
    )
    slope, offset = case.scores or (1.0, 0.0)
    answers = {
        q: Answer(
            Outcome.ANSWERED,
            tuple(Hit(d, slope * (len(docs) - i // 2) + offset, tokens=10.0 + i) for i, d in enumerate(docs)),
        )
        for q, docs in case.lists.items()
    }
    run = Run("run", answers, order="descending" if case.scores else "given")
    ranking = rank_run(testset, run, convention_named("trec"))
    found, scored, _ = compute(measure, ranking)
    return {q: v if s else math.nan for q, v, s in zip(ranking.query_ids, found.tolist(), scored.tolist(), strict=True)}


def value(spelling, judged, docs):
    return values(spelling, Case({"q": judged}, {"q": docs}))["q"]


def same(a, b):
    return a == pytest.approx(b, abs=1e-12, nan_ok=True)


def holds_bounded(spelling, judged, docs, _other):
    low, high = CATALOGUE[parse(spelling).name].range
    found = value(spelling, judged, docs)
    return math.isnan(found) or low - 1e-12 <= found <= high + 1e-12


def holds_one_on_the_ideal_list(spelling, judged, _docs, _other):
    best = sorted(judged, key=lambda d: -judged[d])
    return same(value(spelling, judged, best), 1.0)


def holds_never_falls_when_a_relevant_result_rises(spelling, judged, docs, _other):
    sign = 1 if CATALOGUE[parse(spelling).name].higher_is_better else -1
    before = value(spelling, judged, docs)
    for i in range(1, len(docs)):
        if judged.get(docs[i], 0) > max(judged.get(docs[i - 1], 0), 0):
            after = value(spelling, judged, [*docs[: i - 1], docs[i], docs[i - 1], *docs[i + 1 :]])
            if not (math.isnan(before) or math.isnan(after)) and sign * after < sign * before - 1e-12:
                return False
    return True


def holds_blind_beyond_the_cutoff(spelling, judged, docs, other):
    depth = parse(spelling).depth
    if depth is None or len(docs) < depth:
        return True
    head = docs[:depth]
    return same(value(spelling, judged, head), value(spelling, judged, head + [d for d in other if d not in head]))


def holds_blind_to_unjudged_at_the_end(spelling, judged, docs, _other):
    return same(value(spelling, judged, docs), value(spelling, judged, [*docs, "unknown"]))


def holds_blind_to_query_order(spelling, judged, docs, other):
    more = dict.fromkeys(other[:2], 1)
    forward = values(spelling, Case({"1": judged, "2": more}, {"1": docs, "2": other}))
    backward = values(spelling, Case({"2": more, "1": judged}, {"2": other, "1": docs}))
    return same(forward, backward) and same(forward["1"], value(spelling, judged, docs))


def holds_blind_to_document_names(spelling, judged, docs, _other):
    renamed = values(
        spelling, Case({"q": {f"x{d}": g for d, g in judged.items()}}, {"q": [f"x{d}" for d in docs]}, (1.0, 0.0))
    )
    return same(renamed, values(spelling, Case({"q": judged}, {"q": docs}, (1.0, 0.0))))


def holds_blind_to_a_rescale_of_scores(spelling, judged, docs, _other):
    plain = values(spelling, Case({"q": judged}, {"q": docs}, (1.0, 0.0)))
    return same(plain, values(spelling, Case({"q": judged}, {"q": docs}, (8.0, -3.0))))


HOLDS = {name.removeprefix("holds_"): check for name, check in list(globals().items()) if name.startswith("holds_")}


def cases(key, spellings):
    return st.tuples(
        st.sampled_from(spellings), good_grades if key == "one_on_the_ideal_list" else grades, lists, lists
    )


@pytest.mark.parametrize(
    ("key", "name"), [(key, name) for key in PROPERTIES for name, (t, *_) in TRAITS.items() if t.get(key) is True]
)
def test_a_property_that_is_declared_holds(key, name):
    @settings(max_examples=40, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(cases(key, TRAITS[name][0]["spellings"]))
    def holds(case):
        assert HOLDS[key](*case)

    holds()


@pytest.mark.parametrize(
    ("key", "name"), [(key, name) for key in PROPERTIES for name, (t, *_) in TRAITS.items() if t.get(key) is False]
)
def test_a_property_that_is_denied_is_broken_by_an_example(key, name):
    known = TRAITS[name][0].get("counterexamples", {}).get(key)
    if known is not None:  # one that a search would seldom meet
        assert not HOLDS[key](known["spelling"], known["grades"], known["list"], known.get("other", ["d00"]))
        return
    strategy = cases(key, TRAITS[name][0]["spellings"])
    try:
        find(
            strategy,
            lambda case: not HOLDS[key](*case),
            settings=settings(max_examples=3000, database=None, derandomize=True),
        )
    except NoSuchExample:
        pytest.fail(f"{key} seems to hold for {name}")


BROKEN = {
    "blind_to_query_order": lambda ranking, _k: ranking.expected_start[:-1] * 1.0,
    "blind_to_document_names": lambda ranking, _k: [
        sum(map(ord, "".join(hit.id for hit in ranking.top[q]))) * 1.0 for q in ranking.query_ids
    ],
    "blind_to_a_rescale_of_scores": lambda ranking, _k: [
        sum(hit.score or 0.0 for hit in ranking.top[q]) for q in ranking.query_ids
    ],
}


@pytest.mark.parametrize("key", sorted(set(BROKEN)))
def test_a_broken_measure_is_caught_by_a_property_that_all_of_ours_have(key, monkeypatch):
    from dataclasses import replace

    import numpy as np

    broken = replace(
        CATALOGUE["RR"], name="Broken", kernel=lambda ranking, k: np.array(BROKEN[key](ranking, k), dtype=float)
    )
    monkeypatch.setitem(CATALOGUE, "Broken", broken)
    assert not all(HOLDS[key]("Broken", {"d01": 1, "d02": 2}, docs, ["d03"]) for docs in (["d01", "d02"], ["d02"]))
