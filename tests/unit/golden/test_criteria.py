"""What each criterion of a golden set says where it is met, where it is not, and where it could not be tested."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from cranfield.golden.assemble import (
    CRITERIA,
    OF_ONE_PERSON,
    Checked,
    Criterion,
    Result,
    check_counts,
    check_review,
    check_similar,
)
from cranfield.golden.batch_drift import BatchVerdict
from cranfield.golden.review import PROFILES, Reviewable, ReviewOutcome, Sample, assess, draw_sample
from cranfield.model import Query, TestSet
from cranfield.project.golden_assemble import Evidence, _harness, assemble
from cranfield.repo.snapshot import take
from cranfield.reporting.documents.golden_review import review_document
from cranfield.reporting.documents.golden_sets import assembly_document
from cranfield.reporting.renderers.text import render_text

from .test_assemble import TODAY, evidence_of, git, repo, review, run_of  # noqa: F401 - `repo` is a fixture
from .test_review import review as decision

CELL, OTHER = ("locate", "easy"), ("debug", "hard")
BOOTSTRAP, ALONE = PROFILES["bootstrap"], PROFILES["bootstrap-one-person"]
WRONG = {"verdict": "wrong", "disposition": "drop", "failure_mode": "wrong_target", "reason": "Other."}


def found_of(checked: Checked) -> tuple[str, str]:
    return checked.result.value, checked.found


@pytest.mark.parametrize(
    ("kept", "attrition", "cells"),
    [
        (100, ("met", "0 of 100 planned records are missing; at most 6 may be"), ("met", "1 of 1 cell full")),
        (94, ("met", "6 of 100 planned records are missing; at most 6 may be"), ("met", "0 of 1 cell full; the others have at least 80 %")),
        (93, ("not met", "7 of 100 planned records are missing; at most 6 may be"), ("met", "0 of 1 cell full; the others have at least 80 %")),
        (
            79,
            ("not met", "21 of 100 planned records are missing; at most 6 may be"),
            ("not met", "1 of 1 cell: locate easy has 79 of 100, and needs 80"),
        ),
    ],
)  # fmt: skip
def test_counts(kept: int, attrition: tuple[str, str], cells: tuple[str, str]) -> None:
    found = check_counts({CELL: 100}, {CELL: kept}, "look")
    assert list(map(found_of, found)) == [attrition, cells]
    assert [each.step for each in found] == ["" if each.is_met else "look" for each in found]


def sample_of(profile: Any) -> Sample:
    records = [Reviewable(f"q{n}", *CELL) for n in range(4)] + [Reviewable("seen", *OTHER, ("partial",))]
    return draw_sample(records, profile, 0)


def twice(name: str, profile: Any, **changes: Any) -> Any:
    """A decision that is confirmed as the profile asks for, unless it is changed."""
    names = changes.pop("names", ("ann", "bob") if profile.people == 2 else ("ann", "ann"))
    given = decision(name, reviewers=names)
    values = given.model_dump() | changes
    times = ["2026-11-23T14:05:09Z", "2026-11-24T14:05:09Z"]
    looks = [
        {**each, **{key: value for key, value in changes.items() if key != "opinions"}, "at": at}
        for each, at in zip(values["opinions"], times, strict=False)
    ]
    return type(given).model_validate(values | {"opinions": looks})


@pytest.mark.parametrize("profile", [BOOTSTRAP, ALONE])
@pytest.mark.parametrize(
    ("decided", "met", "words"),
    [
        ("all", ("met", "met"), ("1 sampled: 0 major issue or wrong (at most 0)", "all 2 reviewed records confirmed")),
        (
            "breached",
            ("not met", "met"),
            (
                "ceiling reached: major issue or wrong, wrong on easy; 1 sampled: 1 major",
                "all 2 reviewed records confirmed",
            ),
        ),
        (
            "unconfirmed",
            ("met", "not met"),
            ("1 sampled: 0 major issue or wrong (at most 0)", "1 of 2 not confirmed: seen ("),
        ),
        ("open", ("not met", "not met"), ("1 of 2 without a decision: ", "1 of 2 without a decision: ")),
        ("none", ("not met", "not met"), ("2 of 2 without a decision: ", "2 of 2 without a decision: ")),
    ],
)
def test_review_and_second_look(profile: Any, decided: str, met: tuple[str, str], words: tuple[str, str]) -> None:
    sample = sample_of(profile)
    (name,) = sample.sampled
    reviews = {
        "all": [twice(name, profile), twice("seen", profile)],
        "breached": [twice(name, profile, **WRONG), twice("seen", profile)],
        "unconfirmed": [twice(name, profile), twice("seen", profile, names=("ann",))],
        "open": [twice("seen", profile)],
        "none": [],
    }[decided]
    report = assess(reviews, sample, profile)
    found = check_review(report, profile, "look")
    assert tuple(each.result for each in found) == met
    for each, text in zip(found, words, strict=True):
        assert text.replace("without a decision", profile.lacking) in each.found
        assert each.step == ("" if each.is_met else "look")
        if not each.is_met:
            assert "all 2 reviewed records" not in each.found
    assert found[1].demands == (OF_ONE_PERSON if profile.people == 1 else CRITERIA[Criterion.SECOND_LOOK])
    if decided in {"all", "breached"}:
        assert ("(intra-rater), not of two people" in found[1].found) == (profile.people == 1)
        assert ("by two reviewers" in found[1].found) == (profile.people == 2)
    states = {
        "all": "reviewed by",
        "breached": "review failed, ceiling reached: major issue or wrong, wrong on easy; 1 sampled: 1 major",
        "unconfirmed": "review not finished: 1 of 2 not confirmed: seen (",
        "open": f"review not finished: 1 of 2 without a decision: {name}",
        "none": "review not finished: 2 of 2 without a decision",
    }
    assert report.state.startswith(states[decided].replace("without a decision", profile.lacking))
    assert "pending" not in report.state


@pytest.mark.parametrize("profile", [BOOTSTRAP, ALONE])
def test_the_report_says_who_reviewed_and_what_it_comes_to(profile: Any) -> None:
    sample = sample_of(profile)
    reviews = [twice(name, profile) for name in sample.to_review]
    for given, outcome, sentence in (
        (reviews, ReviewOutcome.PASSED, "The review is passed: every record is decided and confirmed"),
        (reviews[:1], ReviewOutcome.INCOMPLETE, "The review is not finished."),
        ([twice(sample.sampled[0], profile, **WRONG)], ReviewOutcome.BREACHED, "The review has failed"),
    ):
        report = assess(given, sample, profile)
        assert report.outcome is outcome
        text = " ".join(render_text(review_document("r", report, ["`cranfield judge b`"]), 200).split())
        assert sentence in text
        assert "Next steps" in text
        who = {
            (1, True): "Reviewed by one person (ann), who saw each record twice",
            (2, True): "Reviewed by 2 people (ann, bob)",
            (1, False): "To be reviewed by one person (ann), who sees each record twice",
            (2, False): "To be reviewed by two people",
        }[profile.people, outcome is ReviewOutcome.PASSED]
        assert who in text
        assert "stated, not verified" in text


def test_no_record_was_given_to_people() -> None:
    assert [found_of(each) for each in check_review(None, ALONE, "go")] == [
        ("not met", "no record was given to people")
    ] * 2


def drift(verdict: BatchVerdict, *values: float | None) -> Any:
    metrics = [
        SimpleNamespace(
            name=f"m{n}", result=SimpleNamespace(p_two_sided=value, note="too few" if value is None else "")
        )
        for n, value in enumerate(values)
    ]
    differing = [each for each in metrics if each.result.p_two_sided is not None and each.result.p_two_sided < 0.05]
    return SimpleNamespace(verdict=verdict, metrics=metrics, differing=differing)


def test_the_version_before() -> None:
    similar = check_similar(drift(BatchVerdict.SIMILAR, 0.4, 0.6), "go")
    assert found_of(similar) == ("met", "none of 2 metrics differs significantly; that is no proof that none differs")
    other = check_similar(drift(BatchVerdict.REQUEUE, 0.4, 0.01), "go")
    assert (*found_of(other), other.step) == ("not met", "1 of 2 metrics differ: m1", "go")
    unknown = check_similar(drift(BatchVerdict.UNTESTED, None), "go")
    assert (*found_of(unknown), unknown.step) == ("not tested", "no metric could be tested: too few", "")


def test_what_could_not_be_tested_is_not_called_met() -> None:
    testset = TestSet("golden", (Query("q", "a"),))
    known = Checked(Criterion.CELLS, Result.MET, "all")
    unknown = Checked(Criterion.SIMILAR, Result.NOT_TESTED, "too few")
    text = render_text(assembly_document(testset, [known, unknown], draft=False))
    assert "The set is golden: 1 of 2 criteria are met, and not tested: similar." in text


def test_a_set_that_is_not_valid_is_named_in_the_step(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    testset = TestSet("g", (Query("q", "t"),), {})
    monkeypatch.setattr(
        "cranfield.project.golden_assemble.validate", lambda *_, **__: [Mock(level="error", message="x")]
    )
    found = _harness(testset, (), take(repo), TODAY, Path("my sets/draft_v1.0.json"))
    assert found.step == "correct the set: `cranfield testset validate 'my sets/draft_v1.0.json'` lists what is wrong"
    monkeypatch.setattr(
        "cranfield.project.golden_assemble.verify", lambda *_, **__: Mock(drifted=[Mock(label="a.py::f")])
    )
    found = _harness(testset, (), take(repo), TODAY, Path("sets/draft_v1.0.json"))
    assert found.step == f"correct the places: `cranfield testset verify sets/draft_v1.0.json --repo {repo}` lists them"


@pytest.mark.slow  # a version is put together six times
def test_what_is_measured(tmp_path: Path, repo: Path) -> None:  # noqa: F811
    run, out = run_of(tmp_path / "runs", repo), tmp_path / "golden"
    review(run)
    evidence = evidence_of(tmp_path / "evidence", out, run, repo)

    def of(given: Evidence) -> dict[Criterion, Checked]:
        return {each.criterion: each for each in assemble(run, repo, out, given, today=TODAY).checked}

    names = (Criterion.HARNESS, Criterion.BASELINE, Criterion.CALIBRATION)
    none = of(Evidence())
    assert [found_of(none[name]) for name in names] == [
        ("not met", "the set is valid, and no run of a system is named"),
        ("not met", "no baseline is named"),
        ("not met", "no calibration is named"),
    ]
    draft = f"`cranfield golden assemble {run} --repo {repo} --out {out} --draft` writes a draft to measure with; then name a run"
    assert [none[name].step.split("`, ")[0][:60] for name in names] == [
        draft[:60],
        "`cranfield baseline accept CONFIG",
        "`cranfield calibrate DRAFT RUN --format json",
    ]
    assert none[Criterion.HARNESS].step.startswith(draft)
    before = (tmp_path / "evidence" / "baseline.json").read_text()
    (tmp_path / "evidence" / "baseline.json").write_text(before + "\n")
    (tmp_path / "evidence" / "other.run").write_text("nothing Q0 d 1 1.0 other\n")
    changed = of(
        Evidence((tmp_path / "evidence" / "other.run",), evidence.baseline, tmp_path / "evidence" / "grep.run")
    )
    assert [changed[name].result for name in names] == [Result.NOT_MET] * 3
    assert "changes that are not committed" in changed[Criterion.BASELINE].found
    assert "commit " in changed[Criterion.BASELINE].step
    assert "is no JSON of" in changed[Criterion.CALIBRATION].found
    for name in names:
        assert changed[name].step
    (tmp_path / "evidence" / "baseline.json").write_text(before)
    good = (tmp_path / "evidence" / "grep.run").read_text()
    swapped = "".join(f"{line.split()[0]} Q0 same 1 1.0 same\n" for line in good.splitlines())
    (tmp_path / "evidence" / "same.run").write_text(swapped)  # one id for every query: no id of the set
    void = of(Evidence((tmp_path / "evidence" / "same.run",), evidence.baseline, evidence.calibration))
    assert void[Criterion.HARNESS].result is Result.NOT_MET
    assert "its scores do not count: " in void[Criterion.HARNESS].found
    met = of(evidence)
    assert [found_of(met[name])[0] for name in names] == ["met"] * 3
    assert [met[name].step for name in names] == [""] * 3
    assert met[Criterion.BASELINE].found.endswith("baseline.json, of grep")
