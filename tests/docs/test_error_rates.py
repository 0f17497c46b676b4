"""The program that simulates error rates: its tests equal SciPy's and ours, and the figures of the page are its figures."""

import math
import re
import sys

import numpy as np
import pytest
import scipy.stats

from cranfield.stats.bootstrap import bootstrap
from cranfield.stats.paired import paired_t, sign_test
from cranfield.stats.permutation import permutation
from cranfield.stats.wilcoxon import wilcoxon


@pytest.fixture(scope="module")
def rates(checkout):
    """The program as a module."""
    sys.path.insert(0, str(checkout / "bench"))
    try:
        import error_rates
    finally:
        sys.path.pop(0)
    return error_rates


@pytest.fixture(scope="module")
def rows():
    """Differences of 10 queries: continuous, with ties and zeros, skewed."""
    rng = np.random.default_rng(3)
    continuous = rng.standard_normal((3, 10)) + 0.4
    tied = rng.choice([-0.5, 0.0, 0.5, 1.0], size=(3, 10))
    return np.vstack([continuous, tied, 1 - rng.standard_exponential((3, 10))])


def two_sided(tails):
    return np.minimum(1, 2 * np.minimum(*tails))


def test_its_permutation_test_is_scipys_and_ours(rates, rows):
    p = two_sided(rates.permutation(rows, rates.flips(10, np.random.default_rng(0))))
    for row, found in zip(rows, p, strict=True):
        theirs = scipy.stats.permutation_test((row,), np.mean, permutation_type="samples", n_resamples=2**10)
        assert found == pytest.approx(theirs.pvalue)
        assert found == pytest.approx(permutation(row).p_two_sided)


def test_its_other_tests_are_scipys_and_ours(rates, rows):
    members = rates.flips(10, np.random.default_rng(0))
    t, signs = two_sided(rates.of_t(rates.student(rows), 9)), two_sided(rates.sign(rows))
    signed = two_sided(rates.wilcoxon(rows, members))
    for place, row in enumerate(rows):
        assert t[place] == pytest.approx(scipy.stats.ttest_1samp(row, 0).pvalue)
        assert t[place] == pytest.approx(paired_t(row).p_two_sided)
        assert signs[place] == pytest.approx(sign_test(row).p_two_sided)
        if np.count_nonzero(row) >= 6:
            assert signed[place] == pytest.approx(wilcoxon(row).p_two_sided)
    assert signed[0] == pytest.approx(scipy.stats.wilcoxon(rows[0], method="exact").pvalue)


def test_johnsons_t_is_his_formula(rates):
    # -1, 0, 0, 5: mean 1, squares about it 4 + 1 + 1 + 16 = 22, s^2 = 22 / 3, t = 1 / sqrt(22 / 12) = .738549;
    # cubes -8 - 1 - 1 + 64 = 54, m3 = 13.5, g = 13.5 / (22 / 3)^1.5 = .679799;
    # t + g (1 + 2 t^2) / (6 sqrt 4) = .738549 + .679799 * 2.090909 / 12
    (found,) = rates.johnson(np.array([[-1.0, 0.0, 0.0, 5.0]]))
    assert found == pytest.approx(0.856999, abs=1e-6)
    # and as printed in 1978: [mean + m3 / (6 s^2 n) + m3 / (3 s^4) mean^2] / sqrt(s^2 / n)
    variance = 22 / 3
    printed = (1 + 13.5 / (6 * variance * 4) + 13.5 / (3 * variance**2)) / math.sqrt(variance / 4)
    assert found == pytest.approx(printed)


def test_the_studentised_permutation_test_is_the_permutation_test(rows):
    patterns = np.array([[1 - 2 * ((pattern >> bit) & 1) for bit in range(10)] for pattern in range(1 << 10)])
    for row in rows:
        flipped = patterns * row
        t = np.abs(flipped.mean(axis=1)) / flipped.std(axis=1, ddof=1)
        assert np.mean(t >= t[0] - 1e-12) == pytest.approx(permutation(row).p_two_sided)


def test_its_bootstrap_is_scipys_and_ours_up_to_the_resamples(rates, monkeypatch):
    monkeypatch.setattr(rates, "DRAWS", 20_000)
    rng = np.random.default_rng(5)
    rows = rng.standard_normal((8, 30)) + np.linspace(0, 0.8, 8)[:, None]
    p = two_sided(rates.bca(rows, rates.resamples(30, np.random.default_rng(1))))
    assert p == pytest.approx([bootstrap(row).p_two_sided for row in rows], rel=0.05, abs=0.01)
    (low,) = {bool(scipy.stats.bootstrap((rows[-1],), np.mean, rng=1).confidence_interval.low > 0)}
    assert low == (p[-1] <= 0.05)


def page_tables(checkout):
    """Of each table of false verdicts: (shape, n) to its row, by test."""
    page = (checkout / "docs" / "explanation" / "error-rates.md").read_text(encoding="utf-8")
    found = {}
    for title, zeros in (("False verdicts, per cent", "none"), ("False verdicts with many zeros, per cent", "many")):
        table = page.split(f"## {title}\n\n", 1)[1].split("\n\n", 1)[0].splitlines()
        tests = [cell.strip() for cell in table[0].strip("|").split("|")][2:]
        for line in table[2:]:
            shape, n, *cells = (cell.strip() for cell in line.strip("|").split("|"))
            found[zeros, shape, int(n)] = dict(zip(tests, map(float, cells), strict=True))
    return found


def test_the_page_has_every_cell_and_its_summary_is_their_worst(rates, checkout):
    cells = page_tables(checkout)
    assert set(cells) == {(z, shape, n) for z in rates.ZEROS for shape in rates.SHAPES for n in rates.SIZES}
    page = (checkout / "docs" / "explanation" / "error-rates.md").read_text(encoding="utf-8")
    for n in rates.SIZES:
        worst = []
        for test in rates.OF_THE_MEAN:
            of = {
                kind: [
                    row[test]
                    for (_, shape, size), row in cells.items()
                    if size == n and rates.SHAPES[shape].is_symmetric is kind
                ]
                for kind in (True, False)
            }
            worst.append(f"{max(of[True])} / {max(of[False])}")
        assert f"| {n} | {' | '.join(worst)} |" in page


def test_rare_losses_fool_every_test_where_the_sample_holds_none(rates, checkout):
    cells = page_tables(checkout)
    for n in (10, 20, 30):
        none_seen = 100 * (1 - rates.RARE) ** n  # 64.8, 42.0, 27.2
        assert cells["none", "rare losses", n]["permutation"] == pytest.approx(none_seen, abs=1.5)
        assert re.fullmatch(r"\d+\.\d", str(cells["none", "rare losses", n]["t"]))


@pytest.mark.slow
@pytest.mark.parametrize(
    "place",
    [
        ("rare losses", "none", 10),
        ("rare losses", "none", 30),
        ("ceiling", "none", 10),
        ("RR", "many", 20),
        ("normal", "none", 200),
    ],
)
def test_another_seed_gives_the_figures_of_the_page(rates, checkout, place):
    shape, zeros, n = place
    expected = page_tables(checkout)[zeros, shape, n]
    for cell in rates.simulate(shape, zeros, n, 2000, seed=99):
        share = expected[cell.test] / 100
        error = math.sqrt(max(share * (1 - share), 0.005) * (1 / 2000 + 1 / 10_000))
        assert abs(cell.wrong - share) <= 4 * error + 0.0005, cell
