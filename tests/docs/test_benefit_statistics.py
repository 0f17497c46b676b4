"""The program that simulates benefit experiments: what it prints is on the page, and keeps the bounds that the page states."""

import math

import numpy as np
import pytest
import scipy.stats
from statsmodels.stats.contingency_tables import mcnemar as their_mcnemar

from cranfield.benefit.result import StratumVerdict

SIMULATED = 4000
NO_MEAN_EFFECT = (
    "no effect",
    "gains and losses cancel",
    "few gain, most lose a little",
    "near the ceiling",
    "hard tasks",
)


@pytest.fixture(scope="module")
def program(checkout, load_script):
    """The program as a module."""
    return load_script(checkout / "bench" / "benefit.py")


@pytest.fixture(scope="module")
def tables(checkout):
    """Of each table of figures, by its heading: the rows, as lists of cells."""
    page = (checkout / "docs" / "explanation" / "benefit-statistics.md").read_text(encoding="utf-8")
    found = {}
    for heading in ("Wrong ways", "Verdicts", "Coverage of 95 % intervals"):
        lines = page.split(f"## {heading}\n", 1)[1].split("\n## ")[0].splitlines()
        rows = [[each.strip() for each in line.strip("|").split("|")] for line in lines if line.startswith("|")]
        found[heading] = rows[2:]
    return found


def test_the_page_has_every_row(program, tables):
    sizes = [f"{n_tasks} x {n_seeds}" for n_tasks, n_seeds in program.SIZES]
    assert [row[:2] for row in tables["Coverage of 95 % intervals"]] == [
        [world, size] for world in program.WORLDS for size in sizes
    ]
    assert {row[0] for row in tables["Verdicts"]} == {*program.WORLDS, "saves tokens, loses the margin"}
    assert [row[0] for row in tables["Wrong ways"]] == [each.name for each in program.WRONG]


def test_at_30_tasks_and_3_seeds_intervals_cover_93_to_97_per_cent(tables):
    rows = [row for row in tables["Coverage of 95 % intervals"] if row[1] == "30 x 3"]
    assert len(rows) == 7
    for _, _, *kinds, per_success in rows:
        assert all(93 <= float(share) <= 97 for share in kinds)
        assert 92 <= float(per_success) <= 97


def test_without_an_effect_at_most_5_per_cent_get_a_verdict(tables):
    false = [row for row in tables["Verdicts"] if row[0] in NO_MEAN_EFFECT]
    assert len(false) == 15
    assert max(float(pays_off) + float(net_cost) for *_, pays_off, net_cost in false) <= 5
    margin = [float(row[3]) for row in tables["Verdicts"] if row[0] == "saves tokens, loses the margin"]
    assert max(margin) == 4.1


def test_every_wrong_way_errs_more_often_than_wanted_and_ours_does_not(tables):
    for _, _, _, wanted, wrong, ours in tables["Wrong ways"]:
        assert float(wrong) > 1.5 * float(wanted)
        assert float(ours) <= float(wanted) + 1


@pytest.mark.parametrize("name", ["McNemar's test over all runs", "tokens of successful runs only"])
def test_wrong_ways_err_in_a_small_simulation_too(program, name):
    (way,) = (each for each in program.WRONG if each.name == name)
    wrong, ours = way.rates(np.random.default_rng(4), 150)
    assert wrong.mean() > way.wanted / 100 > 0
    assert wrong.mean() > ours.mean() + 0.03


def test_its_shortcuts_are_those_of_the_textbooks(program):
    found = program.simulate(program.WORLDS["no effect"], np.random.default_rng(1), 1, 12, 3)
    t, c = found.treatment[0].ravel(), found.control[0].ravel()
    table = [[int(((t == a) & (c == b)).sum()) for b in (1, 0)] for a in (1, 0)]
    assert program.pooled_mcnemar(found)[0] == pytest.approx(their_mcnemar(table, exact=True).pvalue)
    theirs = scipy.stats.ttest_rel(found.treatment[0].mean(axis=1), found.control[0].mean(axis=1))
    assert program.t_on_tasks(found)[0] == pytest.approx(theirs.pvalue)


def test_the_truth_of_its_worlds_is_what_the_page_says(program, monkeypatch):
    monkeypatch.setattr(program, "POPULATION", 40_000)
    for name, world in program.WORLDS.items():
        truth = program.truth_of(world, 1)
        assert truth.lift == pytest.approx(0.19 if name == "helps" else 0, abs=0.015)
        assert math.exp(truth.log_ratio) == pytest.approx({"helps": 0.75, "only costs": 1.22}.get(name, 1), abs=0.02)


def close(found, share, n):
    """Whether a share of n new simulations agrees with one of the page."""
    share /= 100
    return abs(found - share) <= 4 * math.sqrt(max(share * (1 - share), 0.005) * (1 / n + 1 / SIMULATED)) + 0.0005


@pytest.mark.slow  # simulates 2,000 experiments for each place of the page
@pytest.mark.parametrize("world", ["no effect", "few gain, most lose a little", "helps"])
def test_another_seed_gives_the_coverage_of_the_page(program, tables, world):
    (row,) = (row for row in tables["Coverage of 95 % intervals"] if row[:2] == [world, "30 x 3"])
    found = program.coverage(program.WORLDS[world], 2000, 30, 3, seed=99)
    for name, share in zip(program.INTERVALS, row[2:], strict=True):
        assert close(found[name], float(share), 2000), (name, found[name])
        assert 0.93 - 0.015 <= found[name] <= 0.97 + 0.015


@pytest.mark.slow  # simulates 2,000 experiments for each place of the page
@pytest.mark.parametrize(
    ("world", "n_tasks", "n_strata"), [("gains and losses cancel", 30, 1), ("no effect", 10, 6), ("only costs", 30, 1)]
)
def test_another_seed_gives_the_verdicts_of_the_page(program, tables, world, n_tasks, n_strata):
    (row,) = (row for row in tables["Verdicts"] if row[:3] == [world, f"{n_tasks} x 3", str(n_strata)])
    found = program.verdicts(program.WORLDS[world], 2000, n_tasks, 3, seed=99, n_strata=n_strata)
    for verdict, share in zip((StratumVerdict.PAYS_OFF, StratumVerdict.NET_COST), row[3:], strict=True):
        assert close(found[verdict], float(share), 2000), (verdict, found[verdict])
    if world != "only costs":
        assert found[StratumVerdict.PAYS_OFF] <= 0.06
        assert found[StratumVerdict.NET_COST] <= 0.06


@pytest.mark.slow  # simulates 1,000 experiments for each wrong way
def test_another_seed_gives_the_wrong_ways_of_the_page(program, tables):
    for way, row in zip(program.WRONG, tables["Wrong ways"], strict=True):
        wrong, ours = way.rates(np.random.default_rng(99), 1000)
        assert close(wrong.mean(), float(row[4]), 1000), way.name
        assert close(ours.mean(), float(row[5]), 1000), way.name
