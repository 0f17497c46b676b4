"""What may be wrong with a test set: one table of checks, and all of their findings at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Literal

from cranfield.base.errors import Problem, UsageError
from cranfield.evaluation.testset import check_judgments as judgments
from cranfield.evaluation.testset import check_queries as queries
from cranfield.evaluation.testset.check_judgments import Answers, Complaint
from cranfield.model import TestSet
from cranfield.model.results import Record, TestSetRecord
from cranfield.plugins import load_plugins

Level = Literal["error", "warning"]


@dataclass(frozen=True)
class ValidationSubject:
    """What is looked at."""

    testset: TestSet
    today: date
    runs: Mapping[str, Answers] = field(default_factory=dict)
    """Name of a run to what it answered."""


@dataclass(frozen=True, slots=True)
class Check:
    """One row of the table."""

    name: str
    level: Level
    sentence: str
    """What it looks for, and by which rule."""
    find: Callable[[ValidationSubject], Iterator[Complaint]]
    needs_runs: bool = False


@dataclass(frozen=True, slots=True)
class ValidationFinding:
    """One thing that a check found."""

    check: str
    level: Level
    query_id: str
    """Empty where it is about the whole set."""
    message: str


@dataclass(frozen=True, slots=True)
class Checked:
    """A check that was made."""

    name: str
    level: Level
    rule: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation(Record):
    """What the checks found, errors first."""

    testset: TestSetRecord
    n_errors: int
    n_warnings: int
    findings: tuple[ValidationFinding, ...]
    checks: tuple[Checked, ...]

    @classmethod
    def of(cls, testset: TestSetRecord, findings: Iterable[ValidationFinding], *, with_runs: bool) -> Validation:
        """The record of findings."""
        found = tuple(findings)
        return cls(
            testset=testset,
            n_errors=sum(finding.level == "error" for finding in found),
            n_warnings=sum(finding.level == "warning" for finding in found),
            findings=found,
            checks=tuple(
                Checked(check.name, check.level, check.sentence)
                for check in checks().values()
                if with_runs or not check.needs_runs
            ),
        )


def _of_set(find: Callable[[TestSet], Iterator[Complaint]]) -> Callable[[ValidationSubject], Iterator[Complaint]]:
    return lambda subject: find(subject.testset)


CHECKS: Mapping[str, Check] = {
    check.name: check
    for check in (
        Check("ids", "error", "Every query has a unique id.", _of_set(queries.repeated_ids)),
        Check(
            "relevant",
            "error",
            "Every query that is not declared negative has a relevant document (a grade above 0).",
            _of_set(judgments.without_relevant),
        ),
        Check("scale", "error", "Grades are on the declared scale.", _of_set(judgments.off_the_scale)),
        Check(
            "task types",
            "error",
            "Task types are declared, or locate, explain, debug, extend, review or general.",
            _of_set(judgments.unknown_task_types),
        ),
        Check(
            "negative",
            "error",
            "No document is relevant to a negative query.",
            _of_set(judgments.negative_with_judgments),
        ),
        Check(
            "contradictions",
            "error",
            "No document has two different grades (by one rater, if raters are recorded).",
            _of_set(judgments.contradictory),
        ),
        Check("split", "error", "The held-out queries are in the set.", _of_set(queries.lost_split)),
        Check("date", "error", "The date it was made is a date.", _of_set(queries.unreadable_date)),
        Check("repeats", "warning", "No document is judged twice with the same grade.", _of_set(judgments.repeated)),
        Check(
            "overlaps",
            "warning",
            "No two expected spans of a query overlap: one result could satisfy both.",
            _of_set(judgments.overlapping_spans),
        ),
        Check(
            "shared places",
            "warning",
            "No query has more than half of its expected entities or spans in common with an earlier one.",
            _of_set(judgments.shared_targets),
        ),
        Check(
            "leaks",
            "warning",
            "No text holds, as a whole word in the same case, a name of an expected symbol, or the stem of an expected "
            "file that looks like code.",
            _of_set(queries.leaks),
        ),
        Check(
            "near duplicates",
            "warning",
            "No two texts share 4 of 5 of their words.",
            _of_set(queries.near_repeats),
        ),
        Check("texts", "warning", "Every query has a text.", _of_set(queries.missing_texts)),
        Check(
            "small strata",
            "warning",
            "Every stratum and class has 6 queries, the minimum for a two-sided sign or permutation test to reach .05.",
            _of_set(queries.small_strata),
        ),
        Check(
            "legacy",
            "warning",
            "A query with a legacy form also has other relevant documents.",
            _of_set(judgments.only_legacy),
        ),
        Check(
            "sources",
            "warning",
            "Every source has a judged document, and every judged document has a source.",
            _of_set(judgments.idle_sources),
        ),
        Check(
            "counts", "warning", "The counts in the metadata are those of the content.", _of_set(queries.wrong_counts)
        ),
        Check(
            "refresh",
            "warning",
            "The set is younger than its refresh interval.",
            lambda subject: queries.overdue(subject.testset, subject.today),
        ),
        Check(
            "patterns",
            "warning",
            "Every pattern matches some result of the runs, and none matches all of them.",
            lambda subject: judgments.idle_patterns(subject.testset, subject.runs),
            needs_runs=True,
        ),
        Check(
            "unseen",
            "warning",
            "Every relevant document, entity and file is a result of some query in some run.",
            lambda subject: judgments.unseen(subject.testset, subject.runs),
            needs_runs=True,
        ),
    )
}
"""Name to row, errors first; the order of findings."""


def checks() -> Mapping[str, Check]:
    """Name to check: the rows of the table, then those of installed packages.

    Raises:
        UsageError: a package whose check cannot be loaded, or has the name of another.
    """
    added, problems = load_plugins("cranfield.checks", Check)
    names = [*CHECKS, *(check.name for check in added)]
    twice = sorted({check.name for check in added if names.count(check.name) > 1})
    problems += tuple(Problem(f"two checks have the name {name!r}") for name in twice)
    if problems:
        raise UsageError(problems)
    return {**CHECKS, **{check.name: check for check in added}}


def validate(testset: TestSet, *, today: date, runs: Mapping[str, Answers] | None = None) -> Validation:
    """Everything the checks find, errors first.

    Args:
        testset: of any kind.
        today: the date from which its age is counted.
        runs: name to what systems answered; checks that need them are left out without.
    """
    subject = ValidationSubject(testset, today, runs or {})
    findings = (
        ValidationFinding(check.name, check.level, query_id, message)
        for check in checks().values()
        if subject.runs or not check.needs_runs
        for query_id, message in check.find(subject)
    )
    return Validation.of(TestSetRecord.of(testset), findings, with_runs=bool(runs))
