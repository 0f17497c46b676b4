"""The largest share of queries that a sample can lack, and what they can change; the arithmetic is beside each value."""

import pytest

from cranfield.base.errors import UsageError
from cranfield.stats.unseen import largest_unseen_share, turning_difference, unanimous_interval, unanimous_p


@pytest.mark.parametrize(
    ("n", "alpha", "share"),
    [
        (1, 0.05, 0.95),  # 1 - .05
        (2, 0.05, 0.7764),  # 1 - sqrt(.05) = 1 - .2236
        (10, 0.05, 0.2589),  # 1 - exp(ln(.05) / 10) = 1 - exp(-.29957); the rule of three says .3
        (12, 0.05, 0.2209),  # 1 - exp(-2.99573 / 12) = 1 - .77908
        (49, 0.05, 0.0593),  # 1 - exp(-2.99573 / 49) = 1 - .94069; the rule of three says .0612
        (100, 0.05, 0.0295),  # Hanley & Lippman-Hand 1983: 3 / n is .03
        (49, 1 - 2**-53, 2**-53 / 49),  # never 0: a loss is divided by it
        (10, 0.01, 0.3690),  # 1 - exp(-4.60517 / 10)
    ],
)
def test_the_largest_share_is_that_of_which_a_sample_contains_none_with_probability_alpha(n, alpha, share):
    found = largest_unseen_share(n, alpha)
    assert found == pytest.approx(share, abs=5e-5 if share > 1e-4 else 0)
    assert (1 - found) ** n == pytest.approx(alpha)


def test_the_rule_of_three_is_never_below_the_exact_share():
    assert all(largest_unseen_share(n) < 3 / n for n in range(1, 1000))


def test_the_turning_difference_moves_the_mean_of_all_queries_to_the_threshold():
    assert turning_difference(0.2, 0.1) == pytest.approx(-0.4)  # .8 * .1 - .2 * .4 = 0
    assert turning_difference(0.2, -0.1) == pytest.approx(0.4)
    assert turning_difference(0.2, -0.01, -0.02) == pytest.approx(-0.06)  # .8 * -.01 - .2 * .06 = -.02


@pytest.mark.parametrize(("n", "alpha"), [(0, 0.05), (-1, 0.05), (10, 0.0), (10, 1.0)])
def test_no_query_and_no_level_are_refused(n, alpha):
    with pytest.raises(UsageError):
        largest_unseen_share(n, alpha)


@pytest.mark.parametrize("value", [-0.5, 0.0, 1 / 3, 1.0])
@pytest.mark.parametrize("n", [1, 5, 30])
def test_the_interval_of_equal_values_excludes_a_threshold_where_its_p_value_is_under_half_of_alpha(n, value):
    low, high = unanimous_interval(value, n, alpha=0.1)
    assert -1 <= low <= value <= high <= 1
    for threshold in (-0.9, -0.05, 0.0, 0.2):
        assert (unanimous_p(value, n, threshold=threshold) < 0.05) is (threshold < low)


def test_the_interval_of_equal_values_holds_the_mean_of_every_population_often_enough():
    # A share of the population is at one bound, the rest at 0: the sample shows one value with (1 - share)^n or share^n.
    for n in (5, 10, 30):
        for share in (place / 200 for place in range(1, 200)):
            missed = 0.0
            for value, chance in ((0.0, (1 - share) ** n), (1.0, share**n)):
                low, high = unanimous_interval(value, n)
                missed += 0.0 if low <= share <= high else chance
            assert missed <= 0.025 + 1e-12


def test_tasks_that_are_all_won_are_a_sign_test():
    assert 2 * unanimous_p(1.0, 6) == pytest.approx(0.03125)  # 2 / 2^6
    assert unanimous_p(-0.2, 6) == 1.0
