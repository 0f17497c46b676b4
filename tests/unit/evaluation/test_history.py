"""A measure over time: where lines break, and which run is the first bad one."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from cranfield.base.errors import UsageError
from cranfield.evaluation.history import (
    HistoryFilter,
    HistoryPoint,
    Rule,
    Score,
    first_bad,
    history_report,
    lines,
    measure_of,
    with_changes,
)
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.reporting.documents.history import history_document
from cranfield.reporting.renderers.text import render_text

START = datetime(2026, 11, 1, 9, tzinfo=UTC)
AP = "AP"


def past(hour, mean, *, digest="sha256:a", half=0.05, measure=AP, **others):
    score = Score(mean, 50, None if mean is None else mean - half, None if mean is None else mean + half)
    about = {"testset": "shop", "version": "", "system": "bm25", "convention": "trec", **others}
    return HistoryPoint(START + timedelta(hours=hour), digest=digest, measures={measure: score}, **about)


def line_of(*means, **others):
    (line,) = lines([past(hour, mean, **others) for hour, mean in enumerate(means)], AP)
    return line


def changes(line, values_of):
    return tuple(point.change for point in with_changes(line, values_of).points if point.change is not None)


def shape(points):
    return [
        [point.time.hour - START.hour for point in stretch] for line in lines(points, AP) for stretch in line.stretches
    ]


@pytest.mark.parametrize(
    ("digests", "stretches"),
    [
        ("aaa", [[0, 1, 2]]),
        ("aab", [[0, 1], [2]]),
        ("aba", [[0], [1], [2]]),  # back to the first: still not joined to it
        ("abb", [[0], [1, 2]]),
    ],
)
def test_a_line_breaks_wherever_the_digest_changes(digests, stretches):
    assert shape([past(hour, 0.5, digest=digest) for hour, digest in enumerate(digests)]) == stretches


def test_a_line_breaks_where_the_convention_changes():
    assert shape([past(0, 0.5), past(1, 0.5, convention="ranx"), past(2, 0.5, convention="ranx")]) == [[0], [1, 2]]


def test_systems_and_test_sets_have_lines_of_their_own():
    points = [past(0, 0.5), past(1, 0.6, system="dense"), past(2, 0.5), past(3, 0.7, testset="help", digest="sha256:h")]
    assert [(line.testset, line.system, len(line.points)) for line in lines(points, AP)] == [
        ("shop", "bm25", 2),
        ("shop", "dense", 1),
        ("help", "bm25", 1),
    ]
    assert shape(points) == [[0, 2], [1], [3]]


def test_points_are_in_order_of_time_whatever_the_order_of_the_file():
    assert shape([past(2, 0.5), past(0, 0.5), past(1, 0.5)]) == [[0, 1, 2]]


def test_a_point_without_a_mean_is_in_no_line_and_is_counted():
    points = [past(0, 0.5), past(1, None), past(2, 0.4, measure="P@5")]
    report = history_report(points, HistoryFilter(measure=AP))
    assert [point.time.hour for point in report.lines[0].points] == [9]
    assert report.n_without == 2


RULES = {
    "below": Rule(below=0.45),
    "drop": Rule(drop=0.05),
}


@pytest.mark.parametrize(
    ("rule", "means", "bad", "good", "best"),
    [
        ("below", [0.50, 0.45, 0.44], 2, 1, None),  # at the bound is not below it
        ("below", [0.44999999999999996, 0.44], 1, 0, None),  # the float next to 0.45, as a sum may give it
        ("below", [0.30, 0.50], 0, None, None),
        ("drop", [0.50, 0.45, 0.4499], 2, 1, 0),  # exactly the drop is no more than it
        ("drop", [0.30, 0.35, 0.30], None, None, None),  # .35 - .30 is .04999... or .05: rounding decides nothing
        ("drop", [0.50, 0.60, 0.54, 0.58, 0.50], 2, 1, 1),
    ],
)
def test_the_first_bad_run(rule, means, bad, good, best):
    line = line_of(*means)
    found = first_bad(line, RULES[rule])
    at = {None: None} | dict(enumerate(line.points))
    assert (found.bad, found.good, found.best) == (at[bad], at[good], at[best])
    assert found.n == len(means)


def test_later_runs_that_are_good_again_are_counted():
    found = first_bad(line_of(0.5, 0.3, 0.5, 0.3, 0.5), Rule(drop=0.1))
    assert (found.n_after, found.n_good_after, found.latest_is_bad) == (3, 2, False)


def test_runs_with_unchanged_answers_count_and_the_last_of_them_is_the_last_good_run():
    digests, means = ["r1", "r1", "r2", "r2", "r1"], [0.5, 0.5, 0.3, 0.3, 0.5]
    points = [past(hour, means[hour], run_digest=digest) for hour, digest in enumerate(digests)]
    (line,) = lines(points, AP)
    found = first_bad(line, Rule(drop=0.1))
    assert (found.n, found.n_after, found.n_good_after) == (5, 2, 1)
    assert found.good is found.best is points[1]
    assert found.bad.time == points[2].time


def test_a_bad_run_never_becomes_the_best():
    # After .50 and .30, a .35 is still bad, though better than .30.
    assert first_bad(line_of(0.50, 0.30, 0.35), Rule(drop=0.1)).n_good_after == 0


def test_less_is_better_turns_the_rules_round():
    (line,) = lines(
        [past(hour, mean, measure="RankOfFirst") for hour, mean in enumerate([3.0, 2.0, 2.04, 2.5])], "RankOfFirst"
    )
    found = first_bad(line, Rule(drop=0.2))
    assert (found.bad, found.best) == (line.points[3], line.points[1])
    assert first_bad(line, Rule(below=2.9)).bad is line.points[0]


def test_only_the_latest_stretch_is_looked_at():
    # .90 on the test set before it has nothing to say about .50 on this one.
    points = [past(0, 0.9, digest="sha256:old"), past(1, 0.5), past(2, 0.3)]
    (line,) = lines(points, AP)
    found = first_bad(line, Rule(drop=0.1))
    assert (found.n, found.good, found.bad) == (2, line.points[1], line.points[2])
    assert first_bad(lines(points[:2], AP)[0], Rule(drop=0.1)).bad is None


def kept(*columns, **others):
    """Points with a value for each of 20 queries, and where these are found: a number is the value of all of them."""
    values = {
        str(place): {f"q{query}": (column if isinstance(column, float) else column[query]) for query in range(20)}
        for place, column in enumerate(columns)
    }
    points = [
        past(place, sum(of.values()) / 20, run_digest=f"r{place}", values=str(place), **others)
        for place, of in enumerate(values.values())
    ]
    return points, lambda point, measure: values.get(point.values) if measure == AP else None


SMALL = [0.5 + (-0.1 if query < 10 else 0.09) for query in range(20)]  # ten down, ten up
FALL = [0.5 - 0.01 * (query + 1) for query in range(20)]  # all twenty down: p = 2 / 2^20
RISE = [0.5 + 0.01 * (query + 1) for query in range(20)]


def test_a_point_is_compared_with_the_one_before_it_by_the_paired_test():
    points, values_of = kept([0.5] * 20, SMALL, FALL, RISE)
    (line,) = lines(points, AP)
    found = changes(line, values_of)
    assert [point.change is None for point in with_changes(line, values_of).points] == [True, False, False, False]
    assert [change.verdict for change in found] == [VerdictCode.NOT_SIGNIFICANT, VerdictCode.WORSE, VerdictCode.BETTER]
    assert [(change.n, change.n_differ) for change in found] == [(20, 20), (20, 19), (20, 20)]
    assert found[0].delta == pytest.approx(-0.005)
    assert all(change.p <= change.p_adjusted for change in found)
    # Holm: the smallest of three p-values is multiplied by three.
    smallest = min(found, key=lambda change: change.p)
    assert smallest.p_adjusted == pytest.approx(3 * smallest.p)


def test_beside_a_change_of_few_queries_stands_what_unseen_ones_could_turn():
    # All 20 rise by .1: the interval is [.1, .1]; p = 1 - .05^(1/20) = .139108, L = .860892 * .1 / .139108
    points, values_of = kept([0.5] * 20, [0.6] * 20)
    (change,) = changes(lines(points, AP)[0], values_of)
    assert change.verdict is VerdictCode.BETTER
    assert (change.unseen.n, change.unseen.change) == (20, "loss")
    assert change.unseen.size == pytest.approx(0.618866, abs=1e-5)
    report = history_report(points, HistoryFilter(), values_of=values_of)
    document = history_document(report)
    assert f"Of the significant changes, the least robust one: {change.unseen.sentence}." in render_text(
        document
    ).replace("\n", " ")
    (line,) = document.payload()["lines"]
    assert line["stretches"][0][1]["change"]["unseen"]["change"] == "loss"


def test_the_declared_test_and_level_of_the_later_point_are_used():
    points, values_of = kept([0.5] * 20, FALL, test="wilcoxon", alpha=1e-9)
    (change,) = changes(lines(points, AP)[0], values_of)
    assert (change.test, change.verdict) == ("wilcoxon", VerdictCode.NOT_SIGNIFICANT)


def test_a_p_value_of_exactly_alpha_is_significant_as_in_a_comparison():
    points, values_of = kept([0.5] * 20, FALL, alpha=2 / 2**20)  # the smallest p that twenty queries can give
    (change,) = changes(lines(points, AP)[0], values_of)
    assert change.p_adjusted == points[1].alpha
    assert change.verdict is VerdictCode.WORSE


def test_points_without_values_or_of_another_test_set_are_not_compared():
    points, _ = kept([0.5] * 20, FALL)
    (change,) = changes(lines(points, AP)[0], lambda *_: None)
    assert (change.delta, change.p, change.verdict) == (None, None, None)
    other = [points[0], past(1, 0.3, digest="sha256:b", run_digest="r9")]
    assert changes(lines(other, AP)[0], lambda *_: {"q1": 1.0}) == ()


def test_a_change_of_config_breaks_the_line_and_is_compared():
    points, values_of = kept([0.5] * 20, FALL)
    points[0] = replace(points[0], config_digest="sha256:1")
    points[1] = replace(points[1], config_digest="sha256:2")
    (line,) = lines(points, AP)
    assert [len(stretch) for stretch in line.stretches] == [1, 1]
    (change,) = changes(line, values_of)
    assert change.verdict is VerdictCode.WORSE
    assert first_bad(line, Rule(), values_of).bad is line.points[1]


def test_another_k_breaks_the_line():
    assert shape([past(0, 0.5, k=10), past(1, 0.5, k=20), past(2, 0.5, k=20)]) == [[0], [1, 2]]


def test_an_evaluation_with_unchanged_answers_is_recorded_with_its_point():
    digests = ["r1", "r1", "r1", "r2", "r1"]
    points = [past(hour, 0.5, run_digest=digest, commit=str(hour)) for hour, digest in enumerate(digests)]
    (line,) = lines(points, AP)
    assert [(point.commit, [later.commit for later in point.unchanged]) for point in line.points] == [
        ("0", ["1", "2"]),
        ("3", []),
        ("4", []),  # back to the first answers: a change
    ]
    assert history_report(points, HistoryFilter()).n_without == 0


def test_unchanged_answers_under_another_config_or_test_set_are_a_point():
    same = {"run_digest": "r1"}
    points = [
        past(0, 0.5, **same),
        past(1, 0.5, config_digest="sha256:2", **same),
        past(2, 0.5, digest="sha256:b", **same),
    ]
    assert shape(points) == [[0], [1], [2]]
    assert shape([past(0, 0.5), past(1, 0.5)]) == [[0, 1]], "without a digest nothing is known to be unchanged"


@pytest.mark.parametrize(
    ("columns", "bad", "good", "best"),
    [
        (([0.5] * 20, SMALL, FALL), 2, 1, 0),
        (([0.5] * 20, SMALL, SMALL[::-1]), None, None, None),  # a lower mean that the test does not call worse
        (([0.5] * 20, RISE, [0.5] * 20, FALL), 2, 1, 1),
        ((FALL, RISE), None, None, None),
    ],
)
def test_the_first_bad_run_by_the_paired_test(columns, bad, good, best):
    points, values_of = kept(*columns)
    (line,) = lines(points, AP)
    found = first_bad(line, Rule(), values_of)
    at = {None: None} | dict(enumerate(line.points))
    assert (found.bad, found.good, found.best) == (at[bad], at[good], at[best])
    assert (found.change is None) == (bad is None)
    assert (found.n, found.n_untested) == (len(columns), 0)


def test_p_of_the_first_bad_run_is_multiplied_by_the_runs_tested_and_the_good_ones_before_it():
    points, values_of = kept([0.5] * 20, SMALL, SMALL[::-1], FALL)
    found = first_bad(lines(points, AP)[0], Rule(), values_of)
    assert found.change.p_adjusted == pytest.approx(found.change.p * 3 * 3)


def test_what_has_no_values_is_not_called_bad_and_is_counted():
    found = first_bad(line_of(0.9, 0.1, 0.2), Rule())
    assert (found.bad, found.n_untested) == (None, 3)
    assert first_bad(line_of(0.9, 0.1, 0.2), Rule(drop=0.1)).bad is not None


def test_what_could_not_be_tested_is_neither_good_again_nor_what_others_are_compared_with():
    points, values_of = kept(0.9, [0.5] * 20, FALL, 0.4)
    unknown = {points[0].values, points[-1].values}
    (line,) = lines(points, AP)
    found = first_bad(line, Rule(), lambda point, m: None if point.values in unknown else values_of(point, m))
    assert (found.bad, found.best) == (line.points[2], line.points[1])
    assert (found.n_after, found.n_good_after, found.latest_is_bad, found.n_untested) == (1, 0, None, 2)


def test_a_gate_is_asked_about_every_point_with_the_last_good_one():
    asked = []

    def judge(point, before):
        asked.append((point.time.hour - 9, before and before.time.hour - 9))
        return None if point.time.hour == 10 else "too low" if point.time.hour in {11, 12} else ""

    found = first_bad(line_of(0.5, 0.5, 0.5, 0.5, 0.5), Rule(gate=True), judge=judge)
    assert asked == [(0, None), (1, 0), (2, 0), (3, 0), (4, 0)], "what could not be tested is not the last good one"
    assert (found.bad.time.hour - 9, found.reason, found.n_untested, found.n_good_after) == (2, "too low", 1, 1)


def test_pilots_are_left_out_and_counted_unless_asked_for():
    points = [past(0, 0.5), past(1, 0.6, pilot=True)]
    assert history_report(points, HistoryFilter()).n_pilots == 1
    shown = history_report(points, HistoryFilter(pilots=True))
    assert shown.n_pilots == 0
    assert [(line.name, len(line.points)) for line in shown.lines] == [("bm25", 1), ("bm25 (pilots)", 1)]


def test_a_pilot_neither_chooses_the_measure_nor_is_a_point_of_the_line():
    points = [past(0, 0.5, primary=AP), past(1, 0.6, pilot=True, measure="P@1", primary="P@1", config_digest="x")]
    points += [past(2, 0.7, pilot=True, config_digest="x"), past(3, 0.5)]
    report = history_report(points, HistoryFilter(pilots=True))
    assert (report.measure, [len(line.points) for line in report.lines]) == (AP, [2, 1])
    text = render_text(history_document(report))
    assert "bm25 (pilots) on shop" in text
    assert "changed" not in text


def test_a_config_that_is_not_known_is_not_said_to_have_changed():
    points = [past(0, 0.5, config_digest="x"), past(1, 0.5), past(2, 0.1, config_digest="x")]
    text = render_text(history_document(history_report(points, HistoryFilter(rule=Rule(drop=0.1)))))
    assert "config of the system not known here" in text
    assert "config of the system not known before this run" in text
    assert "system changed" not in text


def test_a_time_leaves_out_what_was_before():
    points = [past(hour, 0.5) for hour in range(4)]
    report = history_report(points, HistoryFilter(since=START + timedelta(hours=2)))
    assert len(report.lines[0].points) == 2


def test_the_measure_shown_is_the_one_that_decided_last():
    both = {"AP": Score(0.5, 5), "P@5": Score(0.4, 5)}
    first, last = past(0, 0.5), past(1, 0.5)
    fields = {name: getattr(last, name) for name in last.__slots__}
    assert measure_of([first, HistoryPoint(**fields | {"measures": both, "primary": "P@5"})]) == "P@5"
    assert measure_of([first, HistoryPoint(**fields | {"measures": both})]) == "AP"
    assert measure_of([]) is None


@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        (HistoryFilter(system="bm26"), "unknown system 'bm26'"),
        (HistoryFilter(testset="shops"), "unknown test set 'shops'"),
        (HistoryFilter(measure="P@5"), "unknown measure of this history 'P@5'"),
        (HistoryFilter(measure="nope"), "unknown measure 'nope'"),
        (HistoryFilter(since=START + timedelta(days=9)), "no evaluation to show"),
    ],
)
def test_what_is_not_there_is_said(chosen, words):
    with pytest.raises(UsageError, match=words):
        history_report([past(0, 0.5)], chosen)


def test_a_history_of_pilots_alone_says_so():
    with pytest.raises(UsageError, match="pilots shows those of pilots"):
        history_report([past(0, 0.5, pilot=True)], HistoryFilter())
