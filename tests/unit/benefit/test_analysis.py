"""The analysis of an experiment: estimates against SciPy and statsmodels, the rule of the verdict case by case, what is missing."""

import dataclasses
import random

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.regression.mixed_linear_model import MixedLM
from statsmodels.stats.contingency_tables import mcnemar as their_mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import TTestPower

from cranfield.benefit.analysis.analyse import analyse
from cranfield.benefit.analysis.estimates import NO_SPREAD, UNANIMOUS, mean_estimate, p_of_loss
from cranfield.benefit.analysis.values import CellObservation, binary_of
from cranfield.benefit.analysis.verdict import VerdictEvidence, decide
from cranfield.benefit.plan import ArmRole, BenefitPlan, VerdictRule
from cranfield.benefit.records import CellEnd, CellKey, CellUsage, Delivery, ToolCount
from cranfield.benefit.result import CostVerdict, Estimate, StratumKind, StratumVerdict
from cranfield.stats.nested import Components, nested_variance, paired_variance

TREATMENT, CONTROL = ArmRole.TREATMENT, ArmRole.CONTROL


def plan(**changed):
    fields = {
        "cranfield_benefit": 1,
        "name": "x",
        "tasks": {"testset": "queries.yaml"},
        "agent": {},
        "arms": {"treatment": {"name": "with"}, "control": {"name": "without"}},
        "success": {"by": "facts"},
    }
    return BenefitPlan.model_validate(fields | changed)


def usage(tokens, **changed):
    fields = {"total": tokens, "wall_s": 1.0, "turns": 2}
    if tokens is not None:
        fields |= {"uncached": tokens, "cache_read": 0, "cache_write": 0, "output": 0}
    return CellUsage(**fields | changed)


def cell(task, arm, seed=0, success=True, tokens=1000, **changed):
    fields = {"strata": {}, "end": CellEnd.ANSWERED, "usage": usage(tokens)}
    return CellObservation(CellKey(task_id=task, arm=arm, seed=seed), success=success, **fields | changed)


def pairs(*rows, **changed):
    """A task a row, one seed: success and tokens of treatment, success and tokens of control."""
    return [
        each
        for place, (won_t, used_t, won_c, used_c) in enumerate(rows)
        for each in (
            cell(f"q{place}", TREATMENT, 0, won_t, used_t, **changed),
            cell(f"q{place}", CONTROL, 0, won_c, used_c, **changed),
        )
    ]


def experiment(seed, n_tasks=24, lift=0.2):
    """Tasks in two by two strata, with one to four seeds."""
    rng = random.Random(seed)
    found = []
    for place in range(n_tasks):
        ease, size = rng.random(), rng.lognormvariate(9, 0.5)
        strata = {"task_type": ("locate", "explain")[place % 2], "difficulty": ("easy", "hard")[place // 2 % 2]}
        for arm in ArmRole:
            for number in range(rng.randint(1, 4)):
                won = rng.random() < ease + (lift if arm is TREATMENT else 0)
                used = usage(
                    round(size * rng.lognormvariate(0, 0.3)) + 20,
                    turns=rng.randint(1, 9),
                    wall_s=rng.uniform(1, 60),
                    tool_calls={"search": ToolCount(ok=rng.randint(0, 9), error=1)},
                )
                found.append(cell(f"q{place}", arm, number, won, strata=strata, usage=used))
    return found


def task_means(observations, value):
    """Of each task, treatment and control."""
    by = {}
    for each in observations:
        by.setdefault(each.key.task_id, {}).setdefault(each.key.arm, []).append(value(each))
    return np.array([[np.mean(arms[TREATMENT]), np.mean(arms[CONTROL])] for arms in by.values()]).T


def all_tasks(observations, **changed):
    *_, last = analyse(observations, plan(**changed)).strata
    assert last.kind is StratumKind.ALL
    return last


# Estimates.


def test_estimates_are_student_t_on_the_means_of_tasks():
    observations = experiment(1)
    found = all_tasks(observations)
    for estimate, value, sign, logs in (
        (found.success_lift, lambda each: each.success, 1, False),
        (found.net_tokens, lambda each: each.usage.total, -1, False),
        (found.tool_calls, lambda each: each.usage.n_tool_calls, 1, False),
        (found.turns, lambda each: each.usage.turns, 1, False),
        (found.token_ratio, lambda each: each.usage.total, 1, True),
        (found.latency_ratio, lambda each: each.usage.wall_s, 1, True),
    ):
        t, c = task_means(observations, value)
        theirs = scipy.stats.ttest_rel(np.log(t), np.log(c)) if logs else scipy.stats.ttest_rel(sign * t, sign * c)
        ends = theirs.confidence_interval(0.95)
        expected = np.exp(ends) if logs else ends
        assert estimate.p == pytest.approx(theirs.pvalue)
        assert (estimate.low, estimate.high) == pytest.approx(tuple(expected))
        assert estimate.value == pytest.approx(np.exp(np.log(t / c).mean()) if logs else (sign * (t - c)).mean())
        assert (estimate.n, estimate.n_missing, estimate.bootstrap) == (24, 0, None)


def test_the_bootstrap_stands_beside_from_30_tasks():
    found = all_tasks(experiment(2, n_tasks=30))
    assert found.success_lift.bootstrap == pytest.approx((found.success_lift.low, found.success_lift.high), abs=0.03)
    low, high = found.token_ratio.bootstrap
    assert 0 < low < found.token_ratio.value < high


def test_weighted_tokens_cost_by_kind():
    used = {"uncached": 100, "cache_read": 1000, "cache_write": 40, "output": 10}  # 100 + 100 + 50 + 50
    observations = [
        cell("a", arm, usage=CellUsage(total=1150, wall_s=1.0, **used, **more))
        for arm, more in ((TREATMENT, {}), (CONTROL, {"reasoning": 5}))
    ]
    assert all_tasks(observations).arms[TREATMENT].weighted_tokens == 300
    unbilled = [dataclasses.replace(each, usage=usage(1150, cache_read=50, cache_write=None)) for each in observations]
    assert all_tasks(unbilled).arms[TREATMENT].weighted_tokens == 1155
    unknown = [dataclasses.replace(each, usage=usage(1150, cache_read=None)) for each in observations]
    assert all_tasks(unknown).arms[TREATMENT].weighted_tokens is None
    assert all_tasks(unknown).arms[TREATMENT].tokens == 1150


def test_tokens_per_success_count_those_of_failures():
    # treatment: (100 + 300) / 1 = 400; control: (500 + 500) / 2 = 500
    found = all_tasks(pairs((True, 100, True, 500), (False, 300, True, 500)))
    assert found.arms[TREATMENT].tokens_per_success == 400
    assert found.arms[CONTROL].tokens_per_success == 500
    assert found.net_tokens_per_success.value == 100
    assert (found.net_tokens_both.value, found.net_tokens_both.n, found.net_tokens_both.n_missing) == (400, 1, 1)


def test_an_arm_without_a_success_has_no_tokens_per_success():
    found = all_tasks(pairs((False, 100, True, 500), (False, 300, True, 500)))
    assert found.arms[TREATMENT].tokens_per_success is None
    assert found.net_tokens_per_success.value is None
    assert found.net_tokens_per_success.note


def test_mcnemar_is_exact_on_one_binary_a_task():
    rows = [(True, 1, False, 1)] * 7 + [(False, 1, True, 1)] * 2 + [(True, 1, True, 1)] * 4 + [(False, 1, False, 1)]
    found = all_tasks(pairs(*rows)).mcnemar
    assert (found.n, found.both, found.only_treatment, found.only_control, found.neither) == (14, 4, 7, 2, 1)
    assert found.p == pytest.approx(their_mcnemar([[4, 2], [7, 1]], exact=True).pvalue)


@pytest.mark.parametrize(
    ("successes", "first", "majority", "every"),
    [
        ([True, True, False], True, True, False),
        ([False, True, True], False, True, False),
        ([True, False], True, False, False),  # a tie is no majority
        ([True, True, None], True, True, None),
        ([None, True, False], None, None, False),  # two of three, or one
        ([None, False, False], None, False, False),
        ([True, True, True], True, True, True),
        ([], None, None, None),
    ],
)
def test_the_binary_of_a_task_is_known_where_undecided_cells_cannot_change_it(successes, first, majority, every):
    cells = [cell("a", TREATMENT, seed, success) for seed, success in enumerate(successes)]
    assert [binary_of(cells, rule) for rule in ("first", "majority", "all")] == [first, majority, every]


def test_the_first_seed_is_not_replaced_by_another():
    cells = [cell("a", TREATMENT, 0, None, end=CellEnd.INFRASTRUCTURE), cell("a", TREATMENT, 1, True)]
    assert binary_of(cells, "first") is None
    assert binary_of(cells, "majority") is True


# Laws.


@settings(max_examples=6, deadline=None)
@given(st.integers(0, 10**6))
def test_exchanged_arms_mirror_every_number(seed):
    observations = experiment(seed, n_tasks=8)
    other = {TREATMENT: CONTROL, CONTROL: TREATMENT}
    exchanged = [
        dataclasses.replace(each, key=each.key.model_copy(update={"arm": other[each.key.arm]})) for each in observations
    ]
    one, two = all_tasks(observations), all_tasks(exchanged)
    for name in ("success_lift", "net_tokens", "net_tokens_weighted", "net_tokens_both", "tool_calls", "turns"):
        a, b = getattr(one, name), getattr(two, name)
        assert b.value == pytest.approx(None if a.value is None else -a.value, abs=1e-9)
        assert (b.low, b.high) == pytest.approx((None, None) if a.low is None else (-a.high, -a.low))
        assert b.p == pytest.approx(a.p)
    a, b = one.net_tokens_per_success, two.net_tokens_per_success
    assert (b.value, b.low, b.high) == pytest.approx((None,) * 3 if a.value is None else (-a.value, -a.high, -a.low))
    assert two.token_ratio.value == pytest.approx(1 / one.token_ratio.value)
    assert (two.mcnemar.only_treatment, two.mcnemar.p) == (one.mcnemar.only_control, one.mcnemar.p)
    assert two.arms[TREATMENT] == one.arms[CONTROL]


@settings(max_examples=4, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([8, 30]), st.randoms(use_true_random=False))
def test_the_order_of_cells_changes_the_order_of_strata_only(seed, n_tasks, order):
    observations = experiment(seed, n_tasks=n_tasks)
    shuffled = order.sample(observations, len(observations))
    one, two = (analyse(each, plan()) for each in (observations, shuffled))
    assert {each.model_dump_json() for each in one.strata} == {each.model_dump_json() for each in two.strata}
    assert (one.losses, one.variance) == (two.losses, two.variance)


@settings(max_examples=4, deadline=None)
@given(st.integers(0, 10**6))
def test_a_cell_that_was_not_scored_is_counted_and_changes_no_estimate(seed):
    observations = experiment(seed, n_tasks=6)
    failed = [
        cell("q0", TREATMENT, 8, None, 10**6, end=CellEnd.INFRASTRUCTURE, strata=observations[0].strata),
        cell("q0", CONTROL, 8, None, None, end=None, usage=None, strata=observations[0].strata),
    ]
    one, two = all_tasks(observations), all_tasks([*observations, *failed])
    assert two.success_lift == one.success_lift
    assert two.net_tokens == one.net_tokens
    assert two.mcnemar == one.mcnemar
    for role in ArmRole:
        assert (two.arms[role].n_infrastructure, two.arms[role].n_failed) == (1, 0)
        assert two.arms[role].tokens == one.arms[role].tokens


# What is missing.


def test_a_task_counts_where_both_arms_have_a_value():
    found = all_tasks(
        [
            *pairs((True, 100, False, 200), (True, 100, True, 300)),
            cell("alone", TREATMENT),
            cell("alone", CONTROL, end=None, success=None, usage=None),
            cell("unmeasured", TREATMENT, tokens=None),
            cell("unmeasured", CONTROL),
        ]
    )
    assert found.n_tasks == 4
    assert (found.success_lift.n, found.success_lift.n_missing) == (3, 1)
    assert (found.net_tokens.n, found.net_tokens.n_missing, found.net_tokens.value) == (2, 2, 150)
    assert (found.arms[TREATMENT].tokens, found.arms[CONTROL].tokens) == (100, 250)
    assert found.arms[CONTROL].n_infrastructure == 1


def test_a_lift_that_only_the_adjustment_hides_is_no_net_cost():
    found = decide([VerdictEvidence(lift(0.4, 0.35, 0.03), COSTS, 0.001, 0.3)], VerdictRule())[0]
    assert found.p_lift == pytest.approx(0.03)  # of two tests; the smaller is that of tokens
    assert found.verdict is StratumVerdict.PAYS_OFF
    found = decide([VerdictEvidence(lift(0.4, 0.35, 0.03), COSTS, 0.001, 0.3)] * 2, VerdictRule())[0]
    assert (found.verdict, found.p_lift) == (StratumVerdict.NO_DIFFERENCE, pytest.approx(0.06))
    assert "a lift of success is not significant after the adjustment, but not excluded: +40.0 points" in found.reason
    found = decide([VerdictEvidence(lift(0.4, 0.5, 0.2), COSTS, 0.001, 0.3)], VerdictRule())[0]
    assert found.verdict is StratumVerdict.NET_COST
    assert "a lift of up to 90.0 points is not excluded" in found.reason


def test_no_verdict_rests_on_tokens_that_are_known_of_a_selection_of_runs():
    # Of the runs of the treatment that took the most, no tokens are reported.
    found = [
        cell(f"q{place}", arm, seed, True, 900 if arm is TREATMENT else 1000 + place)
        for place in range(40)
        for arm in ArmRole
        for seed in range(3)
    ]
    assert all_tasks(found, rule={"lift_margin": 0.1}).verdict is StratumVerdict.PAYS_OFF
    cut = [
        dataclasses.replace(each, usage=usage(None)) if each.key.arm is TREATMENT and each.key.seed == 2 else each
        for each in found
    ]
    every = all_tasks(cut, rule={"lift_margin": 0.1})
    assert (every.net_tokens.n, every.net_tokens.n_missing) == (40, 0)
    assert every.verdict is StratumVerdict.INSUFFICIENT
    assert "tokens are known for 66.7 % of the runs of an arm; a verdict on tokens requires 90.0 %." in every.reason


def test_limits_are_scored_and_counted():
    found = all_tasks([cell("a", TREATMENT, success=False, end=CellEnd.TURNS), cell("a", CONTROL)])
    assert found.arms[TREATMENT].n_failed == 1
    assert (found.success_lift.value, found.success_lift.n) == (-1, 1)


def test_without_a_task_there_is_no_stratum():
    assert analyse([], plan()).strata == ()


def test_undecided_cells_that_could_change_the_verdict_are_named():
    rows = [(True, 100, False, 100)] * 8 + [(None, 100, False, 100)] * 4
    found = all_tasks(pairs(*rows))
    assert found.arms[TREATMENT].n_unscored == 4
    assert found.success_lift.n == 8
    assert found.verdict is StratumVerdict.PAYS_OFF  # 8 of 8; against the treatment 8 of 12 would still do
    assert "undecided" not in found.reason
    rows = [(True, 100, False, 100)] * 8 + [(False, 100, False, 100)] * 2 + [(None, 100, True, 100)] * 6
    found = all_tasks(pairs(*rows))  # 8 of 10; against it, 8 won and 6 lost of 16
    assert found.verdict is StratumVerdict.PAYS_OFF
    assert "With the 6 undecided cells counted against the treatment: no difference shown." in found.reason
    assert "counted for" not in found.reason


# Delivery.


def test_intention_to_treat_and_per_protocol():
    called = Delivery(offered=True, called=2, answered=1, payload_tokens=300, schema_tokens_estimated=80)
    ignored = Delivery(offered=True)
    found = all_tasks(
        [
            cell("a", TREATMENT, 0, True, delivery=called),
            cell("a", TREATMENT, 1, False, delivery=ignored),
            cell("a", CONTROL, 0, False),
            cell("b", TREATMENT, 0, False, delivery=Delivery(offered=False)),
            cell("b", CONTROL, 0, False),
        ]
    )
    assert found.success_lift.value == 0.25  # (1/2 - 0 + 0) / 2
    assert (found.per_protocol_lift.value, found.per_protocol_lift.n, found.per_protocol_lift.n_missing) == (1, 1, 1)
    arm = found.arms[TREATMENT]
    assert (arm.offered, arm.called, arm.answered) == pytest.approx((2 / 3, 1 / 3, 1 / 3))
    assert (arm.payload_tokens, arm.schema_tokens, arm.schema_tokens_estimated) == (300, None, 80)
    assert found.arms[CONTROL].offered is None
    assert all_tasks(pairs((True, 1, True, 1))).per_protocol_lift is None


# Strata.


def test_cells_come_first_then_margins_then_baseline_then_all():
    observations = [
        dataclasses.replace(each, baseline_answerable={"q0": True, "q1": False}.get(each.key.task_id))
        for each in experiment(3, n_tasks=6)
    ]
    found = analyse(observations, plan()).strata
    assert [(str(each.kind), dict(each.stratum), each.n_tasks) for each in found] == [
        ("cell", {"task_type": "locate", "difficulty": "easy"}, 2),
        ("cell", {"task_type": "explain", "difficulty": "easy"}, 2),
        ("cell", {"task_type": "locate", "difficulty": "hard"}, 1),
        ("cell", {"task_type": "explain", "difficulty": "hard"}, 1),
        ("margin", {"task_type": "locate"}, 3),
        ("margin", {"task_type": "explain"}, 3),
        ("margin", {"difficulty": "easy"}, 4),
        ("margin", {"difficulty": "hard"}, 2),
        ("baseline_answerable", {"baseline_answerable": "true"}, 1),
        ("baseline_answerable", {"baseline_answerable": "false"}, 1),
        ("baseline_answerable", {"baseline_answerable": "not labelled"}, 4),
        ("all", {}, 6),
    ]
    assert all(each.verdict is StratumVerdict.INSUFFICIENT for each in found[:-1])


def test_a_stratum_that_no_task_names_is_left_out_and_one_that_some_lack_is_not_labelled():
    observations = [
        *pairs((True, 1, True, 1), strata={"difficulty": "easy"}),
        cell("z", TREATMENT),
        cell("z", CONTROL),
    ]
    found = analyse(observations, plan()).strata
    assert [dict(each.stratum) for each in found] == [{"difficulty": "easy"}, {"difficulty": "not labelled"}, {}]
    assert [each.kind for each in analyse(pairs((True, 1, True, 1)), plan()).strata] == [StratumKind.ALL]


def test_p_values_are_adjusted_within_a_kind_of_strata():
    found = analyse(experiment(5, n_tasks=60), plan()).strata
    cells = [each for each in found if each.kind is StratumKind.CELL]
    both = [each.success_lift for each in cells] + [each.net_tokens for each in cells]
    assert [each.p_adjusted for each in both] == pytest.approx(
        multipletests([each.p for each in both], method="holm")[1]
    )
    turns = [each.turns for each in cells]
    assert [each.p_adjusted for each in turns] == pytest.approx(
        multipletests([each.p for each in turns], method="holm")[1]
    )
    exact = [each.mcnemar for each in cells]
    assert [each.p_adjusted for each in exact] == pytest.approx(
        multipletests([each.p for each in exact], method="holm")[1]
    )


def test_what_can_be_detected_is_that_of_the_adjusted_test():
    observations = experiment(6, n_tasks=40)
    found = all_tasks(observations)
    t, c = task_means(observations, lambda each: each.success)
    theirs = TTestPower().solve_power(nobs=40, alpha=0.05 / 2, power=0.8)  # two tests: success and tokens
    assert found.minimal_detectable_lift == pytest.approx(theirs * (t - c).std(ddof=1), rel=1e-6)


# The rule of the verdict.

FEW, MANY = Estimate(value=0.4, low=0.3, high=0.5, p=1e-9, n=4), 40


def lift(value, half, p, n=MANY):
    return Estimate(value=value, low=value - half, high=value + half, p=p, n=n)


NOTHING, MORE, LESS = lift(0.01, 0.1, 0.8), lift(0.2, 0.1, 0.001), lift(-0.2, 0.1, 0.001)
SAVES, COSTS, SAME = lift(500, 300, 0.001), lift(-500, 300, 0.001), lift(10, 300, 0.9)
UNKNOWN = Estimate(value=None, n=0, n_missing=MANY, note="no task has a value in both arms")
CONSTANT = mean_estimate([-500.0] * 8, 0, 0.05)


@pytest.mark.parametrize(
    ("success", "tokens", "p_loss", "verdict", "says"),
    [
        (MORE, SAME, 0.0, StratumVerdict.PAYS_OFF, "Success is higher: +20.0 points (95 % CI +10.0 to +30.0)"),
        (MORE, COSTS, 0.0, StratumVerdict.PAYS_OFF, "at the cost of more tokens: net tokens per task −500"),
        (MORE, UNKNOWN, 0.0, StratumVerdict.PAYS_OFF, "Success is higher"),
        (NOTHING, SAVES, 0.001, StratumVerdict.PAYS_OFF, "a loss of success of 5.0 points or more is excluded"),
        (NOTHING, SAVES, 0.03, StratumVerdict.NO_DIFFERENCE, "a loss of success of 5.0 points is not excluded"),
        (LESS, SAVES, 1.0, StratumVerdict.NET_COST, "Success is lower: −20.0 points"),
        (lift(-0.02, 0.01, 0.001), SAVES, 0.0, StratumVerdict.PAYS_OFF, "Tokens are saved"),  # a loss within the margin
        (LESS, SAME, 1.0, StratumVerdict.NET_COST, "Success is lower"),
        (NOTHING, COSTS, 0.001, StratumVerdict.NET_COST, "More tokens are used: net tokens per task −500"),
        (NOTHING, SAME, 0.001, StratumVerdict.NO_DIFFERENCE, "a lift of 21.4 points is detectable with 80.0 % power"),
        (NOTHING, UNKNOWN, 0.001, StratumVerdict.INSUFFICIENT, "tokens are known in both arms for 0 tasks"),
        (NOTHING, CONSTANT, 0.001, StratumVerdict.NET_COST, "net tokens per task −500, adjusted p .0156;"),
        (
            FEW,
            SAVES,
            0.0,
            StratumVerdict.INSUFFICIENT,
            "Tasks with a decided success in both arms: 4; the rule requires 5.",
        ),
    ],
)
def test_the_rule_of_the_verdict(success, tokens, p_loss, verdict, says):
    (found,) = decide([VerdictEvidence(success, tokens, p_loss, 0.425)], VerdictRule())
    assert found.verdict is verdict
    assert says in found.reason
    assert found.reason.endswith(".")


def test_each_verdict_is_adjusted_for_the_others():
    alone = VerdictEvidence(lift(0.2, 0.19, 0.02), SAME, 0.001, 0.3)
    nothing = VerdictEvidence(NOTHING, SAME, 0.001, 0.3)
    assert decide([alone], VerdictRule())[0].verdict is StratumVerdict.PAYS_OFF  # .02 of two tests: .04
    found = decide([alone, nothing], VerdictRule())  # of four: .08
    assert (found[0].verdict, found[0].p_lift) == (StratumVerdict.NO_DIFFERENCE, pytest.approx(0.08))
    too_small = VerdictEvidence(lift(0.3, 0.3, 0.04, n=4), SAVES, 0.0, 0.3)  # is no test, whatever its p
    assert decide([alone, too_small], VerdictRule())[0].verdict is StratumVerdict.PAYS_OFF


@pytest.mark.parametrize(("unmeasured", "cost"), [(0.1, CostVerdict.CHEAPER), (0.11, CostVerdict.INSUFFICIENT)])
def test_a_verdict_on_tokens_needs_those_of_nine_runs_in_ten(unmeasured, cost):
    (found,) = decide([VerdictEvidence(NOTHING, SAVES, 0.001, 0.3, unmeasured)], VerdictRule())
    assert found.cost is cost


def test_where_no_lift_could_be_found_data_are_insufficient():
    evidence = [VerdictEvidence(lift(0.1, 0.5, 0.6, n=5), lift(1, 9, 0.9, n=5), 0.5, 0.45)] * 10
    found = decide(evidence, VerdictRule())
    assert {each.verdict for each in found} == {StratumVerdict.INSUFFICIENT}
    assert found[0].detectable > 1
    assert "5 tasks, 20 tests" in found[0].reason


@pytest.mark.parametrize(
    ("n", "verdict"),
    [
        (6, StratumVerdict.INSUFFICIENT),
        (7, StratumVerdict.NO_DIFFERENCE),
    ],  # two tests: 4 / 2^6 = .0625, 4 / 2^7 = .0313
)
def test_few_tasks_that_all_differ_alike_show_nothing(n, verdict):
    success = mean_estimate([0.0] * n, 0, 0.05, bound=1.0)
    (found,) = decide([VerdictEvidence(success, lift(1, 9, 0.9, n=n), 0.5, 0.0)], VerdictRule())
    assert found.verdict is verdict
    assert ("a lift of 100 points in every task would not be significant: 6 tasks, 2 tests" in found.reason) is (n == 6)


def test_weighted_tokens_decide_where_the_plan_says_so():
    def used(read, fresh):
        return CellUsage(total=read + fresh, uncached=fresh, cache_read=read, cache_write=0, output=0, wall_s=1.0)

    observations = []
    for place in range(12):  # twice the tokens, nearly all of them from the cache
        observations += [
            cell(f"q{place}", TREATMENT, usage=used(2000 + place, 500)),
            cell(f"q{place}", CONTROL, usage=used(0, 1000 + 7 * place)),
        ]
    for tokens, sign in (("raw", -1), ("weighted", 1)):
        found = all_tasks(observations, rule={"tokens": tokens, "lift_margin": 0.5})
        assert found.verdict is (StratumVerdict.NET_COST if sign < 0 else StratumVerdict.PAYS_OFF)
    assert "net price-weighted tokens per task" in found.reason


# Tasks that are all alike.


@pytest.mark.parametrize("n", [6, 30, 100])
def test_tasks_that_always_succeed_can_show_a_cost_and_few_of_them_no_saving(n):
    costs = pairs(*((True, 1500 + 9 * place, True, 1000) for place in range(n)))
    found = all_tasks(costs)
    assert found.verdict is StratumVerdict.NET_COST
    assert (found.success_lift.value, found.success_lift.note) == (0, UNANIMOUS)
    assert found.success_lift.high == pytest.approx(1 - 0.025 ** (1 / n))
    saves = pairs(*((True, 1000, True, 1500 + 9 * place) for place in range(n)))
    # 1 - .025^(1/n) is under .05 from 72 tasks
    assert all_tasks(saves).verdict is (StratumVerdict.PAYS_OFF if n == 100 else StratumVerdict.NO_DIFFERENCE)


def test_ties_in_every_task_and_tokens_saved_are_the_same_success_and_cheaper():
    """27 of 27 cells in both arms: nine tasks of three seeds."""
    cells = []
    for place in range(9):
        for seed in range(3):
            cells.append(cell(f"t{place}", ArmRole.TREATMENT, seed, tokens=1000))
            cells.append(cell(f"t{place}", ArmRole.CONTROL, seed, tokens=3130 + 10 * place))
    found = all_tasks(cells)
    assert found.net_tokens.value == 2170  # 2130 + 10 * (0 + ... + 8) / 9
    assert found.claims == "same success, cheaper"
    assert found.verdict is StratumVerdict.NO_DIFFERENCE  # a loss of 5 points is not excluded by nine tasks
    # 1 - .025^(1/9) = .336
    assert "0.0 points (95 % CI −33.6 to +33.6)" in found.reason
    assert "it is the same in both arms in all 9 tasks, so the interval is based on the number of tasks" in found.reason


@pytest.mark.parametrize(
    ("treatment", "control", "claims"),
    [
        ((True, 1000), (False, 1000), "higher success, no difference in tokens shown"),
        ((False, 1000), (True, 2000), "lower success, cheaper"),
        ((True, 2000), (True, 1000), "same success, more expensive"),
    ],
)
def test_success_and_cost_have_a_verdict_each(treatment, control, claims):
    rows = [(treatment[0], treatment[1] + place % 3, control[0], control[1] + (place + 1) % 3) for place in range(30)]
    assert all_tasks(pairs(*rows)).claims == claims


def test_a_difference_that_is_the_same_in_every_task_has_the_p_value_of_the_sign_test():
    found = mean_estimate([7.0] * 9, 0, 0.05)
    assert (found.low, found.high, found.note) == (None, None, NO_SPREAD)
    assert found.p == pytest.approx(scipy.stats.binomtest(9, 9).pvalue)


def test_arms_that_are_the_same_show_no_difference():
    found = all_tasks(pairs(*((place % 3 > 0, 900 + place, place % 3 > 0, 900 + place) for place in range(12))))
    assert (found.net_tokens.value, found.net_tokens.low, found.net_tokens.p) == (0, None, 1)
    assert found.verdict is StratumVerdict.NO_DIFFERENCE


def test_a_loss_is_excluded_as_its_interval_says():
    for deltas in ([0.0] * 72, [0.0] * 71, [0.0] * 40 + [-0.25], [0.0] * 9 + [1 / 3], [1.0] * 3):
        found = mean_estimate(deltas, 0, 0.05, bound=1.0)
        assert (p_of_loss(deltas, 0.05, 0.05) <= 0.025) is (found.low > -0.05), deltas
    assert p_of_loss([0.0], 0.05, 0.05) is None


# Variance.


def drawn(rng, n_groups, size, between, within):
    true = rng.normal(0, between**0.5, n_groups)
    return [list(mean + rng.normal(0, within**0.5, size)) for mean in true]


def test_components_are_those_of_a_mixed_model():
    groups = drawn(np.random.default_rng(4), 25, 4, 2.0, 1.0)
    values = np.concatenate(groups)
    theirs = MixedLM(values, np.ones(len(values)), groups=np.repeat(np.arange(25), 4)).fit(reml=True)
    ours = nested_variance(groups)
    assert ours.between == pytest.approx(theirs.cov_re[0, 0], rel=1e-4)
    assert ours.within == pytest.approx(theirs.scale, rel=1e-4)
    assert ours.icc == pytest.approx(ours.between / (ours.between + ours.within))


def test_components_of_a_difference_are_found_in_the_mean():
    rng, found = np.random.default_rng(8), []
    for _ in range(150):
        effect = rng.normal(0, 0.5, 20)
        first = [list(1 + each + rng.normal(0, 1, 3)) for each in effect]
        second = [list(rng.normal(0, 2, 2)) for _ in effect]
        found.append(paired_variance(first, second))
    assert np.mean([each.within for each in found]) == pytest.approx(1 + 4, rel=0.05)
    # .25 plus what the floor of 0 adds: var(D) is .25 + 1/3 + 2
    assert 0.25 <= np.mean([each.between for each in found]) < 0.75


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        ([[1.0], [2.0]], Components(None, None)),
        ([[1.0, 3.0]], Components(None, 2.0)),
        ([[1.0, 1.0], [1.0, 1.0]], Components(0.0, 0.0)),
        ([[0.0, 2.0], [0.0, 2.0]], Components(0.0, 2.0)),  # under 0 by the formula
        ([[], [1.0, 3.0], [5.0, 7.0]], Components(7.0, 2.0)),
    ],
)
def test_components_that_cannot_be_told_are_none(groups, expected):
    assert nested_variance(groups) == expected
    assert expected.icc == (
        0.0 if expected == Components(0.0, 2.0) else pytest.approx(7 / 9) if groups[0] == [] else None
    )


@pytest.mark.parametrize(
    ("between", "noise", "advice"),
    [
        (
            1.0,
            0.3,
            "More tasks: doubling the tasks (to 80) narrows the interval by 29.3 %, doubling the seeds (to 6) by",
        ),
        (
            0.0,
            1.0,
            "More seeds: doubling the tasks (to 80) narrows the interval by 29.3 %, doubling the seeds (to 6) by",
        ),
    ],
)
def test_advice_is_computed_from_the_components(between, noise, advice):
    rng, observations = np.random.default_rng(2), []
    for place in range(40):
        effect = rng.normal(0, between**0.5)
        for arm, by in ((TREATMENT, effect), (CONTROL, 0.0)):
            for seed in range(3):
                tokens = round(10_000 + 1000 * (by + rng.normal(0, noise**0.5)))
                observations.append(cell(f"q{place}", arm, seed, bool(seed % 2), tokens))
    found = {each.quantity: each for each in analyse(observations, plan()).variance}
    assert found["difference of tokens"].advice.startswith(advice)
    assert set(found) == {"success", "tokens", "difference of success", "difference of tokens"}
    assert "3 runs of a task carry as much" in found["tokens"].advice


def test_one_seed_gives_no_advice_but_to_plan_more():
    for each in analyse(experiment_of_one_seed(), plan()).variance:
        assert (each.icc, each.advice) == (
            None,
            (
                "With one run per task, variance between tasks and between runs cannot be separated: plan two or "
                "more seeds."
            ),
        )


def experiment_of_one_seed():
    return [each for each in experiment(9, n_tasks=8) if each.key.seed == 0]


# Losses.


def test_losses_are_the_tasks_with_less_success_worst_first():
    observations = [
        cell("small", TREATMENT, 0, True, transcript="t0"),
        cell("small", TREATMENT, 1, False, 50, transcript="t1", strata={"difficulty": "easy"}),
        cell("small", CONTROL, 0, True, transcript="c0"),
        cell("small", CONTROL, 1, None, end=CellEnd.INFRASTRUCTURE, transcript="failed"),
        cell("large", TREATMENT, 0, False),
        cell("large", CONTROL, 0, True),
        cell("won", TREATMENT, 0, True, 9000),
        cell("won", CONTROL, 0, False),
        cell("costly", TREATMENT, 0, True, 9000),
        cell("costly", CONTROL, 0, True),
    ]
    large, small = analyse(observations, plan()).losses
    assert (large.task_id, small.task_id) == ("large", "small")
    assert small.success == {TREATMENT: 0.5, CONTROL: 1}
    assert small.transcripts == {TREATMENT: ("t0", "t1"), CONTROL: ("c0",)}
    assert small.tokens[TREATMENT] == 525
