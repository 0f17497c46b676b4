"""Samples for review by people, ceilings, and what a sample can show."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from scipy import stats

from cranfield.base.errors import InputError
from cranfield.golden.records import CitedFact, HumanReview, OracleAnswer, ReviewEdit
from cranfield.golden.reports.review import review_document
from cranfield.golden.review import (
    PROFILES,
    Ceiling,
    Reviewable,
    ReviewOutcome,
    ReviewTally,
    Sample,
    apply_edits,
    assess,
    draw_sample,
    pass_probability,
)
from cranfield.model.judging import Disposition, FailureMode, ReviewVerdict, decision_problems
from cranfield.reporting.renderers.text import render_text

BOOTSTRAP, SCALE = PROFILES["bootstrap"], PROFILES["scale"]
TIERS = ("easy", "medium", "hard")
PHASE_1 = {
    ("locate", "easy"): 6,
    ("locate", "medium"): 4,
    **{(task, tier): n for task in ("explain", "debug", "extend") for tier, n in zip(TIERS, (2, 6, 4), strict=True)},
    ("review", "easy"): 1,
    ("review", "medium"): 5,
    ("review", "hard"): 2,
    **{("general", tier): 2 for tier in TIERS},
}
"""Records of each cell of the first plan: 60 in 17 cells."""


def batch(cells=PHASE_1, must_see=()):
    names = [(cell, f"{cell[0]}-{cell[1]}-{number}") for cell, n in cells.items() for number in range(n)]
    return [Reviewable(name, *cell, ("low confidence",) if name in must_see else ()) for cell, name in names]


def review(name, verdict=ReviewVerdict.CORRECT, reviewers=("ann", "bob"), **more):
    if verdict is not ReviewVerdict.CORRECT:
        more = {"failure_mode": FailureMode.WRONG_LINES, "reason": "Lines of a helper.", "disposition": "drop"} | more
    values = {"verdict": verdict, **more}
    at = "2026-11-23T10:00:00Z"
    opinions = [{**values, "reviewer": each, "at": at} for each in reviewers]
    return HumanReview.model_validate(
        {**values, "query_id": name, "opinions": opinions, "book": "phase1", "reviewed_at": at}
    )


def found(sample: Sample, *verdicts: ReviewVerdict):
    """Reviews of everything: these verdicts on the first of the sample, all others correct."""
    given = dict(zip(sample.sampled, verdicts, strict=False))
    return [review(name, given.get(name, ReviewVerdict.CORRECT)) for name in sample.to_review]


def test_one_of_each_of_17_cells_is_more_than_15_percent_of_60():
    sample = draw_sample(batch(), BOOTSTRAP, 7)
    assert (sample.n_batch, sample.n_by_share, sample.n_by_cells, len(sample.sampled)) == (60, 9, 17, 17)
    assert {sample.cells[name] for name in sample.sampled} == set(PHASE_1)
    assert draw_sample(list(reversed(batch())), BOOTSTRAP, 7) == sample
    assert draw_sample(batch(), BOOTSTRAP, 8).sampled != sample.sampled
    assert len(draw_sample(batch()[:40], SCALE, 7).sampled) == 2


@given(
    st.dictionaries(st.sampled_from(sorted(PHASE_1)), st.integers(1, 40)),
    st.sets(st.integers(0, 400)),
    st.integers(0, 99),
    st.sampled_from([BOOTSTRAP, SCALE]),
)
def test_a_sample_has_its_size_no_record_twice_and_none_that_must_be_seen(cells, seen, seed, profile):
    names = [each.query_id for each in batch(cells)]
    records = batch(cells, {name for place, name in enumerate(names) if place in seen})
    sample = draw_sample(records, profile, seed)
    unseen = [each for each in records if not each.must_see]
    n_cells = len({each.cell for each in unseen}) if profile.one_per_cell else 0
    share = -(-len(records) * profile.share.numerator // profile.share.denominator)
    assert len(set(sample.sampled)) == len(sample.sampled) == min(len(unseen), max(share, n_cells))
    assert set(sample.sampled) <= {each.query_id for each in unseen}
    assert set(sample.must_see) == {each.query_id for each in records if each.must_see}
    assert set(sample.cells) == set(sample.to_review)


def test_every_record_of_a_batch_is_about_as_likely_to_be_drawn():
    cells = {("locate", "easy"): 30, ("explain", "hard"): 10}
    drawn = Counter(name for seed in range(2000) for name in draw_sample(batch(cells), SCALE, seed).sampled)
    assert stats.chisquare([drawn[each.query_id] for each in batch(cells)]).pvalue > 0.001


def test_ceilings_are_strict_and_exact():
    assert not BOOTSTRAP.fails(Ceiling.SERIOUS, 0, 1)
    assert BOOTSTRAP.fails(Ceiling.SERIOUS, 1, 20)  # 1/20 is 5 %, not less
    assert not BOOTSTRAP.fails(Ceiling.SERIOUS, 1, 21)
    assert BOOTSTRAP.fails(Ceiling.MINOR, 3, 20)
    assert not BOOTSTRAP.fails(Ceiling.MINOR, 2, 17)
    assert SCALE.fails(Ceiling.SERIOUS, 3, 100)
    assert not SCALE.fails(Ceiling.SERIOUS, 2, 67)


@pytest.mark.parametrize(
    ("verdicts", "outcome", "breached"),
    [
        ((), ReviewOutcome.PASSED, ()),
        ((ReviewVerdict.MINOR_ISSUE,) * 2, ReviewOutcome.PASSED, ()),
        ((ReviewVerdict.MINOR_ISSUE,) * 3, ReviewOutcome.BREACHED, (Ceiling.MINOR,)),
        ((ReviewVerdict.MAJOR_ISSUE,), ReviewOutcome.BREACHED, (Ceiling.SERIOUS,)),
    ],
)
def test_a_breach_of_any_ceiling_requeues_the_batch(verdicts, outcome, breached):
    sample = draw_sample(batch({("explain", "hard"): 17 * 6}), BOOTSTRAP, 1)
    assert len(sample.sampled) == 16
    report = assess(found(sample, *verdicts), sample, BOOTSTRAP)
    assert (report.outcome, report.breached) == (outcome, breached)
    assert sum(report.verdicts.values()) == 16


def test_a_wrong_easy_record_breaches_however_large_the_sample():
    sample = draw_sample(batch({("locate", "easy"): 400}), BOOTSTRAP, 1)
    report = assess(found(sample, ReviewVerdict.WRONG), sample, BOOTSTRAP)
    assert report.tally == ReviewTally(60, serious=1, wrong_on_easy=1)
    assert report.breached == (Ceiling.WRONG_ON_EASY,)
    hard = draw_sample(batch({("locate", "hard"): 400}), BOOTSTRAP, 1)
    assert assess(found(hard, ReviewVerdict.WRONG), hard, BOOTSTRAP).outcome is ReviewOutcome.PASSED


def test_what_must_be_seen_is_reviewed_and_counts_in_no_rate():
    seen = {"locate-easy-0", "explain-hard-1"}
    sample = draw_sample(batch(must_see=seen), BOOTSTRAP, 3)
    reviews = [
        review(name, ReviewVerdict.WRONG if name in seen else ReviewVerdict.CORRECT) for name in sample.to_review
    ]
    report = assess(reviews, sample, BOOTSTRAP)
    assert report.outcome is ReviewOutcome.PASSED
    assert (report.tally.serious, report.verdicts_must_see[ReviewVerdict.WRONG]) == (0, 2)
    assert report.dispositions[Disposition.DROP] == 2
    assert any("not part of the sample" in note for note in report.notes)


def test_a_review_is_complete_with_a_second_reviewer_of_every_record():
    sample = draw_sample(batch(), BOOTSTRAP, 3)
    reviews = found(sample)
    one = sample.sampled[0]
    assert assess(reviews[1:], sample, BOOTSTRAP).unreviewed == (one,)
    alone = assess([*reviews[1:], review(one, reviewers=("ann",))], sample, BOOTSTRAP)
    assert (alone.outcome, alone.unconfirmed) == (ReviewOutcome.INCOMPLETE, {one: "1 reviewer, but 2 required"})
    early = assess([review(one, ReviewVerdict.WRONG)], sample, BOOTSTRAP)
    assert early.outcome is ReviewOutcome.BREACHED  # whatever the others come to


def test_the_last_line_of_a_record_holds():
    sample = draw_sample(batch(), BOOTSTRAP, 3)
    one = sample.sampled[0]
    assert assess([review(one, ReviewVerdict.WRONG), *found(sample)], sample, BOOTSTRAP).outcome is ReviewOutcome.PASSED


@pytest.mark.parametrize(("n", "upper"), [(9, 0.283), (17, 0.162)])
def test_the_upper_bound_says_what_a_clean_sample_can_show(n, upper):
    assert ReviewTally(n).upper == pytest.approx(1 - 0.05 ** (1 / n))
    assert ReviewTally(n).upper == pytest.approx(upper, abs=5e-4)
    assert (ReviewTally(n) + ReviewTally(40, serious=2)).n == n + 40


@pytest.mark.parametrize(("n", "rate", "passes"), [(9, 0.03, 0.76), (9, 0.1, 0.39), (17, 0.03, 0.60), (17, 0.1, 0.17)])
def test_the_operating_characteristic_is_binomial(n, rate, passes):
    assert pass_probability(n, rate, BOOTSTRAP) == pytest.approx(passes, abs=0.005)
    assert pass_probability(100, rate, BOOTSTRAP) == pytest.approx(stats.binom.cdf(4, 100, rate))


def test_what_nobody_has_reviewed_shows_nothing():
    sample = draw_sample(batch(), BOOTSTRAP, 3)
    part = assess(found(sample)[5:], sample, BOOTSTRAP, [ReviewTally(20)])
    assert (part.tally.n_open, part.tally.upper, part.cumulative.upper) == (5, None, None)
    text = " ".join(render_text(review_document(part)).split())
    assert text.count("open: 5 of 17 without a decision") == 3
    assert text.count("not known: 5 records of the sample without a decision") == 2
    assert "holds" not in text.partition("larger number")[0]
    early = assess([review(sample.sampled[0], ReviewVerdict.WRONG)], sample, BOOTSTRAP)
    breached = " ".join(render_text(review_document(early)).split())
    assert "breached" in breached
    assert "a ceiling is reached, and missing decisions cannot change this" in breached
    assert "open" not in render_text(review_document(assess(found(sample), sample, BOOTSTRAP)))


def test_without_a_sample_nothing_is_estimated():
    records = batch({("locate", "easy"): 3})
    sample = draw_sample(batch({("locate", "easy"): 3}, {each.query_id for each in records}), BOOTSTRAP, 0)
    report = assess(found(sample), sample, BOOTSTRAP)
    assert (report.outcome, report.tally.upper, sample.sampled) == (ReviewOutcome.PASSED, None, ())
    assert any("No sample" in note for note in report.notes)


def test_earlier_batches_are_counted_with_this_one():
    sample = draw_sample(batch(), BOOTSTRAP, 3)
    report = assess(found(sample), sample, BOOTSTRAP, [ReviewTally(20, serious=1), ReviewTally(3, minor=1)])
    assert report.cumulative == ReviewTally(40, serious=1, minor=1)


def test_feedback_names_the_failures_of_a_cell():
    sample = draw_sample(batch(), BOOTSTRAP, 3)
    report = assess(found(sample, ReviewVerdict.MAJOR_ISSUE, ReviewVerdict.WRONG), sample, BOOTSTRAP)
    assert [each.failure_mode for each in report.feedback] == [FailureMode.WRONG_LINES] * 2
    assert {(each.query_id, each.task_type, each.difficulty) for each in report.feedback} == {
        (name, *sample.cells[name]) for name in sample.sampled[:2]
    }


@pytest.mark.parametrize(
    ("decision", "problem"),
    [
        ({"verdict": "wrong"}, "needs a failure mode and a reason"),
        ({"verdict": "correct", "disposition": "drop"}, "is not correct"),
        ({"verdict": "wrong", "failure_mode": "other", "reason": "no"}, "sent back or dropped"),
        ({"verdict": "major_issue", "failure_mode": "other", "reason": "no"}, "is edited, sent back or dropped"),
        ({"verdict": "wrong", "failure_mode": "other", "reason": "no", "disposition": "send_back"}, "with a hint"),
    ],
)
def test_a_decision_that_contradicts_itself_is_refused(decision, problem):
    record = {"query_id": "q", "opinions": [], "book": "b", "reviewed_at": "now", **decision}
    with pytest.raises(ValidationError, match=problem):
        HumanReview.model_validate(record)


@given(st.sampled_from(ReviewVerdict), st.sampled_from(Disposition), st.booleans())
def test_every_verdict_can_stand_in_some_way(verdict, disposition, has_edits):
    full = {"has_mode": True, "reason": "r", "hint": "h"}
    problems = decision_problems(verdict, disposition, has_edits=has_edits, **full)
    impossible = (verdict is ReviewVerdict.CORRECT and (has_edits or disposition is not Disposition.KEEP)) or (
        disposition is Disposition.KEEP
        and (verdict is ReviewVerdict.WRONG or (verdict is ReviewVerdict.MAJOR_ISSUE and not has_edits))
    )
    assert bool(problems) is impossible


def test_edits_are_applied_to_the_text_that_they_were_made_of():
    facts = [CitedFact(fact="It returns 1.")]
    after = [CitedFact(fact="It returns 2.")]
    answer = OracleAnswer.model_construct(query_id="q", must_mention_facts=facts, canonical_narrative="Old.")
    edits = [ReviewEdit(field="must_mention_facts", before=facts, after=after)]
    changed = apply_edits(answer, review("q", ReviewVerdict.MINOR_ISSUE, disposition="keep", edits=edits))
    assert (changed.must_mention_facts, changed.canonical_narrative) == (after, "Old.")
    with pytest.raises(InputError, match="another version"):
        apply_edits(changed, review("q", ReviewVerdict.MINOR_ISSUE, disposition="keep", edits=edits))
    with pytest.raises(ValidationError, match="two values of the type of the field"):
        ReviewEdit(field="canonical_narrative", before=facts, after="New.")
