"""A measure over time: where lines break, and which run is the first bad one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from cranfield.errors import UsageError
from cranfield.evaluation.history import (
    HistoryFilter,
    HistoryPoint,
    Rule,
    Score,
    first_bad,
    history_report,
    lines,
    measure_of,
)

START = datetime(2026, 11, 1, 9, tzinfo=UTC)
AP = "AP"


def past(hour, mean, *, digest="sha256:a", half=0.05, measure=AP, **others):
    score = Score(mean, 50, None if mean is None else mean - half, None if mean is None else mean + half)
    about = {"testset": "shop", "version": "", "system": "bm25", "convention": "trec", **others}
    return HistoryPoint(START + timedelta(hours=hour), digest=digest, measures={measure: score}, **about)


def line_of(*means, **others):
    (line,) = lines([past(hour, mean, **others) for hour, mean in enumerate(means)], AP)
    return line


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
    "interval": Rule(),
    "below": Rule(below=0.45),
    "drop": Rule(drop=0.05),
}


@pytest.mark.parametrize(
    ("rule", "means", "bad", "good", "best"),
    [
        # Half an interval is .05: bad is more than .05 under the best before.
        ("interval", [0.50, 0.52, 0.48, 0.46, 0.45], 3, 2, 1),  # .46 + .05 < .52
        ("interval", [0.50, 0.52, 0.48], None, None, None),
        ("interval", [0.40, 0.60, 0.41, 0.70], 2, 1, 1),
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
    found = first_bad(line_of(0.5, 0.3, 0.5, 0.3, 0.5), Rule())
    assert (found.n_after, found.n_good_after, found.latest_is_bad) == (3, 2, False)


def test_a_bad_run_never_becomes_the_best():
    # After .50 and .30, a .35 is still bad, though better than .30.
    assert first_bad(line_of(0.50, 0.30, 0.35), Rule()).n_good_after == 0


def test_less_is_better_turns_the_rules_round():
    (line,) = lines(
        [past(hour, mean, measure="RankOfFirst") for hour, mean in enumerate([3.0, 2.0, 2.04, 2.5])], "RankOfFirst"
    )
    found = first_bad(line, Rule())
    assert (found.bad, found.best) == (line.points[3], line.points[1])
    assert first_bad(line, Rule(below=2.9)).bad is line.points[0]


def test_only_the_latest_stretch_is_looked_at():
    # .90 on the test set before it has nothing to say about .50 on this one.
    points = [past(0, 0.9, digest="sha256:old"), past(1, 0.5), past(2, 0.3)]
    (line,) = lines(points, AP)
    found = first_bad(line, Rule())
    assert (found.n, found.good, found.bad) == (2, line.points[1], line.points[2])
    assert first_bad(lines(points[:2], AP)[0], Rule()).bad is None


def test_a_mean_without_an_interval_is_not_called_bad_by_it():
    point = past(1, 0.1)
    bare = HistoryPoint(**{name: getattr(point, name) for name in point.__slots__} | {"measures": {AP: Score(0.1, 1)}})
    (line,) = lines([past(0, 0.5), bare], AP)
    assert first_bad(line, Rule()).bad is None
    assert first_bad(line, Rule(drop=0.1)).bad is bare


def test_pilots_are_left_out_and_counted_unless_asked_for():
    points = [past(0, 0.5), past(1, 0.6, pilot=True)]
    assert history_report(points, HistoryFilter()).n_pilots == 1
    shown = history_report(points, HistoryFilter(pilots=True))
    assert (shown.n_pilots, len(shown.lines[0].points)) == (0, 2)


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
