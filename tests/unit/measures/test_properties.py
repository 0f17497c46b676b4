"""Property sets: every measure is on one side of each, and each property is shown able to fail."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield.measures import CATALOGUE, compute, parse
from cranfield.model import Answer, Hit, Outcome, Query, Run, TestSet, convention_named
from cranfield.ranking import rank_run

ALL = {"nDCG", "RR", "AP", "P", "R", "Success", "Judged"}
BOUNDED = ALL
ONE_ON_THE_IDEAL_LIST = {"nDCG", "RR", "AP", "Success", "Judged"}
NOT_ONE_ON_THE_IDEAL_LIST = {"P", "R"}  # a list longer or shorter than k cannot reach it
NEVER_FALLS_WHEN_A_RELEVANT_RESULT_RISES = {"nDCG", "RR", "AP", "P", "R", "Success"}
MAY_FALL_WHEN_A_RELEVANT_RESULT_RISES = {"Judged"}  # it pushes a judged non-relevant result beyond the cutoff, or not
BLIND_TO_UNJUDGED_BELOW = ALL - {"Judged"}
SEES_UNJUDGED_BELOW = {"Judged"}

DOCUMENTS = [f"d{i}" for i in range(12)]


def spelling(name, k=5):
    return parse(f"{name}@{k}")


def scores(name, grades, lists, k=5):
    testset = TestSet("set", tuple(Query(q) for q in grades), grades)
    run = Run("run", {q: Answer(Outcome.ANSWERED, tuple(Hit(d) for d in docs)) for q, docs in lists.items()})
    ranking = rank_run(testset, run, convention_named("trec"))
    values, scored, _ = compute(spelling(name, k), ranking)
    return dict(zip(ranking.query_ids, np.where(scored, values, np.nan), strict=True))


grades = st.dictionaries(st.sampled_from(DOCUMENTS), st.integers(-1, 3), min_size=1, max_size=8)
lists = st.lists(st.sampled_from(DOCUMENTS), unique=True, min_size=1)


def test_no_measure_is_forgotten():
    assert set(CATALOGUE) == ALL
    assert ONE_ON_THE_IDEAL_LIST | NOT_ONE_ON_THE_IDEAL_LIST == ALL
    assert NEVER_FALLS_WHEN_A_RELEVANT_RESULT_RISES | MAY_FALL_WHEN_A_RELEVANT_RESULT_RISES == ALL
    assert BLIND_TO_UNJUDGED_BELOW | SEES_UNJUDGED_BELOW == ALL


@pytest.mark.parametrize("name", sorted(BOUNDED))
@given(grades=grades, docs=lists, k=st.integers(1, 15))
def test_bounded(name, grades, docs, k):
    low, high = CATALOGUE[name].range
    assert low <= scores(name, {"q": grades}, {"q": docs}, k)["q"] <= high + 1e-12


def ideal_value(name, grades):
    best_first = sorted(grades, key=lambda d: -grades[d])
    return scores(name, {"q": grades}, {"q": best_first}, k=5)["q"]


@pytest.mark.parametrize("name", sorted(ONE_ON_THE_IDEAL_LIST))
@given(grades=st.dictionaries(st.sampled_from(DOCUMENTS), st.integers(1, 3), min_size=1, max_size=5))
def test_one_on_the_ideal_list(name, grades):
    assert ideal_value(name, grades) == pytest.approx(1.0)


@pytest.mark.parametrize("name", sorted(NOT_ONE_ON_THE_IDEAL_LIST))
def test_the_ideal_list_property_can_fail(name):
    many = dict.fromkeys(DOCUMENTS[:8], 1)
    one = {DOCUMENTS[0]: 1}
    assert min(ideal_value(name, many), ideal_value(name, one)) < 1


@pytest.mark.parametrize("name", sorted(ALL))
@given(first=grades, second=grades, a=lists, b=lists)
def test_query_order_changes_nothing(name, first, second, a, b):
    forward = scores(name, {"1": first, "2": second}, {"1": a, "2": b})
    backward = scores(name, {"2": second, "1": first}, {"2": b, "1": a})
    assert forward == pytest.approx(backward, nan_ok=True)


@pytest.mark.parametrize("name", sorted(ALL))
@given(grades=grades, docs=lists)
def test_names_of_documents_change_nothing(name, grades, docs):
    renamed = scores(name, {"q": {f"x{d}": g for d, g in grades.items()}}, {"q": [f"x{d}" for d in docs]})
    assert renamed == scores(name, {"q": grades}, {"q": docs})


@pytest.mark.parametrize("name", sorted(ALL))
@given(grades=grades, docs=lists, tail=lists, k=st.integers(1, 5))
def test_blind_beyond_the_cutoff(name, grades, docs, tail, k):
    head = docs[:k]
    if len(head) < k:
        return
    longer = head + [d for d in tail if d not in head]
    assert scores(name, {"q": grades}, {"q": head}, k) == scores(name, {"q": grades}, {"q": longer}, k)


def swap_up(docs, grades):
    """Lists in which a relevant result changes places with a non-relevant one just above it."""
    for i in range(1, len(docs)):
        if grades.get(docs[i], 0) > max(grades.get(docs[i - 1], 0), 0):
            yield [*docs[: i - 1], docs[i], docs[i - 1], *docs[i + 1 :]]


@pytest.mark.parametrize("name", sorted(NEVER_FALLS_WHEN_A_RELEVANT_RESULT_RISES))
@given(grades=grades, docs=lists)
def test_never_falls_when_a_relevant_result_rises(name, grades, docs):
    before = scores(name, {"q": grades}, {"q": docs})["q"]
    for better in swap_up(docs, grades):
        assert scores(name, {"q": grades}, {"q": better})["q"] >= before - 1e-12


def test_a_value_does_fall_when_a_relevant_result_sinks():
    for name in NEVER_FALLS_WHEN_A_RELEVANT_RESULT_RISES:
        up = scores(name, {"q": {"a": 1}}, {"q": ["a", *DOCUMENTS]})["q"]
        down = scores(name, {"q": {"a": 1}}, {"q": [*DOCUMENTS, "a"]})["q"]
        assert down < up


@pytest.mark.parametrize("name", sorted(BLIND_TO_UNJUDGED_BELOW))
@given(grades=grades, docs=lists)
def test_blind_to_unjudged_results_at_the_end(name, grades, docs):
    assert scores(name, {"q": grades}, {"q": docs}) == scores(name, {"q": grades}, {"q": [*docs, "unknown"]})


def test_judged_share_sees_unjudged_results_at_the_end():
    assert scores("Judged", {"q": {"a": 1}}, {"q": ["a"]}) != scores("Judged", {"q": {"a": 1}}, {"q": ["a", "u"]})
