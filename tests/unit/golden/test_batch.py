"""A new batch against the blessed records, and models whose records keep failing."""

from __future__ import annotations

import random
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield.base.errors import UsageError
from cranfield.golden.batch import METRICS, BatchVerdict, MetricKind
from cranfield.golden.batch import batch_drift as with_all_draws
from cranfield.golden.retirement import Decision, ModelRecord, SequentialTest, model_histories, run_trials
from cranfield.model import Entity, Fact, Label, Lines, Query, Span, TestSet
from cranfield.stats.two_sample import stratified_ks

counts = st.lists(st.integers(0, 9).map(float), min_size=1, max_size=12)


@given(counts, counts)
def test_without_strata_the_statistic_is_the_distance_of_the_distribution_functions(
    first: list[float], second: list[float]
) -> None:
    def below(values: list[float], at: float) -> float:
        return sum(value <= at for value in values) / len(values)

    found = stratified_ks(first, second, n_draws=20)
    assert found.statistic == pytest.approx(max(abs(below(first, t) - below(second, t)) for t in first + second))
    assert 1 / 20 <= found.p_two_sided <= 1


@given(counts, counts, st.randoms())
def test_the_test_does_not_depend_on_the_order_of_the_records(first: list[float], second: list[float], rng) -> None:
    shuffled = rng.sample(first, len(first))
    assert stratified_ks(first, second, n_draws=50).statistic == stratified_ks(shuffled, second, n_draws=50).statistic


def test_another_mix_of_strata_is_no_difference() -> None:
    # Easy records expect 1 entity, hard ones 4, in both samples; only the mix is another.
    first, second = [1.0] * 20 + [4.0] * 5, [1.0] * 5 + [4.0] * 20
    cells, others = ["easy"] * 20 + ["hard"] * 5, ["easy"] * 5 + ["hard"] * 20
    within = stratified_ks(first, second, cells, others, n_draws=500)
    assert (within.statistic, within.p_two_sided) == (0.0, 1.0)
    assert stratified_ks(first, second, n_draws=500).p_two_sided < 0.01


def test_a_stratum_of_one_sample_is_not_compared() -> None:
    found = stratified_ks([1.0, 2.0, 9.0], [1.0, 2.0], ["a", "a", "b"], ["a", "a"], n_draws=20)
    assert (found.statistic, found.extra["n_1"], found.extra["n_2"]) == (0.0, 2, 2)
    nothing = stratified_ks([1.0], [2.0], ["a"], ["b"])
    assert nothing.p_two_sided is None
    assert nothing.note


def test_false_alarms_of_the_permutation_test_are_at_most_alpha() -> None:
    rng = np.random.default_rng(7)
    n_alarms = sum(
        stratified_ks(rng.integers(1, 4, 30), rng.integers(1, 4, 20), seed=seed, n_draws=100).p_two_sided <= 0.05
        for seed in range(200)
    )
    assert n_alarms <= 20  # 200 draws at 5 %: 20 or more have a chance of .003


def test_the_chance_of_retirement_is_that_of_simulated_models() -> None:
    test, rng = SequentialTest(), random.Random(3)
    for share in (0.1, 0.3):
        exact = test.retired_within(share, 80)
        n_retired = sum(
            run_trials([rng.random() < share for _ in range(80)], test)[0].decision is Decision.RETIRE
            for _ in range(2000)
        )
        assert abs(n_retired / 2000 - exact) < 0.03
    assert test.retired_within(0.1, 400) <= test.alpha
    assert test.retired_within(0.3, 400) >= 1 - test.beta


def test_nothing_is_tested_after_a_model_is_retired_and_a_kept_one_is_tested_again() -> None:
    test = SequentialTest()
    trials = run_trials([False] * 9 + [True] * 5, test)
    assert [(each.decision, each.n, each.n_rejected) for each in trials] == [("keep", 9, 0), ("retire", 3, 3)]
    assert run_trials([], test) == ()


def test_models_are_judged_in_each_of_their_roles() -> None:
    records = [ModelRecord("oracle", "p:a", f"q{n}", True) for n in range(3)]
    records += [ModelRecord("adversary", "p:a", f"q{n}", False) for n in range(3)]
    oracle, adversary = model_histories(records, SequentialTest())
    assert (oracle.decision, oracle.n, oracle.n_rejected) == (Decision.RETIRE, 3, 3)
    assert (adversary.decision, adversary.n_rejected) == (Decision.UNDECIDED, 0)


@pytest.mark.parametrize(
    "settings", [{"acceptable": 0.3}, {"acceptable": 0.0}, {"alpha": 0.5}, {"beta": 0.0}, {"unacceptable": 1.0}]
)
def test_settings_that_make_no_test_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        SequentialTest(**settings)


batch_drift = partial(with_all_draws, n_draws=500)
CELLS = (("locate", "easy"), ("explain", "medium"), ("debug", "hard"))


def set_of(n: int, *, words: int = 100, entities: int = 0, cells=CELLS, seed: int = 0, label: bool = True) -> TestSet:
    """Records whose numbers vary about the same values, but for those that are given."""
    rng = random.Random(seed)
    queries, targets, labels = [], {}, {}
    for n_record in range(n):
        query_id, (task_type, difficulty) = f"q{n_record}", cells[n_record % len(cells)]
        text = " ".join(rng.choice(["where", "parse", "file", "reads", "cache"]) for _ in range(rng.randint(5, 12)))
        queries.append(Query(query_id, text, {"task_type": task_type, "difficulty": difficulty}))
        names = [f"src/m{rng.randint(1, 9)}.py::parse_{each}" for each in range(rng.randint(1, 3) + entities)]
        targets[query_id] = tuple(Entity(name, lines=((1, rng.randint(2, 40)),)) for name in names)
        facts = tuple(Fact(f"it reads {each} files", (Lines("src/m1.py", 1, 2),)) for each in range(rng.randint(3, 6)))
        prose = " ".join(
            rng.choice(["it", "reads", "the", "cache"]) for _ in range(rng.randint(words - 20, words + 20))
        )
        labels[query_id] = Label(must_mention=facts, must_not_mention=facts[:1], narrative=prose)
    return TestSet("set", tuple(queries), targets=targets, labels=labels if label else {})


def test_a_batch_of_the_same_kind_is_similar() -> None:
    found = batch_drift(set_of(60), set_of(40, seed=1))
    assert found.verdict is BatchVerdict.SIMILAR
    assert all(each.result.p_adjusted >= each.result.p_two_sided for each in found.metrics)
    assert (found.n_blessed, found.n_batch, found.uncompared) == (60, 40, {})


def test_metrics_that_differ_are_named_and_the_others_are_not() -> None:
    found = batch_drift(set_of(60), set_of(40, seed=1, words=160))
    assert set(found.differing) == {"words of the narrative"}
    assert found.verdict is BatchVerdict.REQUEUE
    more = batch_drift(set_of(60), set_of(40, seed=1, entities=3))
    assert {"entities", "lines"} <= set(more.differing) <= {"entities", "files", "lines"}


def test_a_batch_of_other_cells_alone_is_no_drift() -> None:
    easy, hard = set_of(40, cells=CELLS[:1]), set_of(40, cells=CELLS[1:], seed=1, words=160)
    found = batch_drift(easy, hard)
    assert found.verdict is BatchVerdict.UNTESTED
    assert found.uncompared == {"debug:hard": 20, "explain:medium": 20, "locate:easy": 40}


def test_a_metric_without_enough_records_is_not_tested_and_says_so() -> None:
    found = {each.name: each for each in batch_drift(set_of(60), set_of(40, seed=1, label=False)).metrics}
    narrative = found["words of the narrative"]
    assert (narrative.n_blessed, narrative.n_batch, narrative.result.p_two_sided) == (60, 0, None)
    assert narrative.result.note == "60 and 0 records have a value; 10 of each required"
    assert found["entities"].result.p_two_sided is not None


def test_scores_of_a_system_are_compared_too() -> None:
    blessed, batch = set_of(60), set_of(40, seed=1)
    good, bad = dict.fromkeys(blessed.query_ids, 1.0), dict.fromkeys(batch.query_ids, 0.0)
    found = batch_drift(blessed, batch, {"RR@10 of grep": (good, bad)})
    assert found.differing == ("RR@10 of grep",)
    assert found.metrics[-1].kind is MetricKind.SCORE


def test_requeued_batches_that_do_not_differ_are_at_most_alpha() -> None:
    blessed = set_of(45)
    verdicts = [batch_drift(blessed, set_of(30, seed=seed), seed=seed).verdict for seed in range(1, 13)]
    assert verdicts.count(BatchVerdict.REQUEUE) <= 3  # of 12 at 5 %: 4 or more have a chance of .0022


def test_what_a_metric_counts() -> None:
    query = Query("q", "where does parse_file cache a result", {"task_type": "locate", "difficulty": "easy"})
    lines = Lines("a/b.py", 5, 8)
    label = Label(
        line_ranges=(lines,), must_mention=(Fact("reads the file", (lines, lines)),), narrative="Reads the file."
    )
    targets = (Entity("a/b.py::Reader.parse_file", lines=((1, 6),)), Span("c/d.py", 1, 2))
    testset = TestSet("set", (query,), targets={"q": targets}, labels={"q": label}, files={"q": ("a/b.py", "e.md")})
    values = {each.name: each.blessed_mean for each in batch_drift(testset, testset).metrics}
    assert values == {
        "entities": 1,
        "files": 3,
        "folders": 3,
        "lines": 10,  # 1 to 8, and 2 of the other file
        "must-mention facts": 1,
        "must-not-mention facts": 0,
        "citations a fact": 2,
        "words of the query": 6,
        "query words in names": pytest.approx(1 / 3),  # parse, of parse, cache and result
        "words of the narrative": 3,
        "words a fact": 3,
        "narrative words in facts": 1,
    }
    assert len(values) == len(METRICS)
