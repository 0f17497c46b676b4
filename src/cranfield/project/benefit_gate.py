"""A gate on the result of an experiment: what a pull request may not bring."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from cranfield.benefit.result import BenefitResult, StratumKind, ValidityKind, Verdict
from cranfield.errors import InputError, Problem, UsageError, shorten
from cranfield.repo.git import is_same_commit
from cranfield.words import n_of

_SOUND: Mapping[ValidityKind, str] = {
    ValidityKind.UNCOMMITTED: "the code is that of a commit",
    ValidityKind.RESULTS_FLAWED: "the tool delivered content",
    ValidityKind.ANSWERS_NOT_READ: "the answers rest on what was read",
}
"""What a caution puts in doubt: no verdict passes or fails a gate on it alone."""
_CLOCKS_DIFFER = timedelta(hours=1)
"""Of two machines, at most: a result that is later is of a wrong clock, and its age is not known."""


class RuleState(StrEnum):
    """Whether a rule holds."""

    PASSED = "passed"
    FAILED = "failed"
    INCONCLUSIVE = "inconclusive"
    """There is not enough data."""
    INVALID = "invalid"
    """The comparison is, or the result is of something else: no rule is judged on it."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """A stratum that must have a verdict."""

    stratum: Mapping[str, str]
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class BenefitRules:
    """What a result must keep."""

    forbid: Sequence[Verdict] = (Verdict.NET_COST,)
    """In no cell of task type and difficulty, and in no margin; of tasks without strata, not over all of them."""
    require: Sequence[Requirement] = ()
    max_age: timedelta | None = None
    commit: str = ""
    """That the tasks must be about."""


@dataclass(frozen=True, slots=True)
class RuleOutcome:
    """A rule and its state."""

    rule: str
    state: RuleState
    sentence: str
    strata: tuple[str, ...] = ()
    """Those that break it, each with its reason."""

    @property
    def text(self) -> str:
        """The sentence, and a line for each stratum that breaks the rule."""
        return "\n".join((self.sentence, *(f"  {each}" for each in self.strata)))


@dataclass(frozen=True, slots=True)
class BenefitGate:
    """All rules."""

    outcomes: tuple[RuleOutcome, ...]

    @property
    def state(self) -> RuleState:
        """The worst: invalid, then failed, then inconclusive."""
        found = {each.state for each in self.outcomes}
        order = (RuleState.INVALID, RuleState.FAILED, RuleState.INCONCLUSIVE)
        return next((state for state in order if state in found), RuleState.PASSED)


def parse_requirement(text: str) -> Requirement:
    """`task_type=explain,difficulty=hard:pays off`.

    Raises:
        UsageError: it is not of that form.
    """
    strata, _, verdict = text.rpartition(":")
    pairs = [part.partition("=") for part in strata.split(",")]
    if verdict.strip() not in set(Verdict) or not all(name.strip() and value.strip() for name, _, value in pairs):
        expected = f"STRATUM=VALUE,...:VERDICT, a verdict of {', '.join(Verdict)}"
        raise UsageError("not a stratum and its verdict", got=shorten(text), expected=expected)
    return Requirement({name.strip(): value.strip() for name, _, value in pairs}, Verdict(verdict.strip()))


def judge_result(result: BenefitResult, rules: BenefitRules, now: datetime) -> BenefitGate:
    """Judge a result.

    Args:
        result: of an experiment.
        rules: what it must keep.
        now: for its age, with a time zone.

    Raises:
        InputError: a rule names a stratum that the result does not have.
    """
    wrong = _wrong(result, rules, now)
    if wrong:
        return BenefitGate(tuple(wrong))
    cautions = (
        RuleOutcome(_SOUND[each.kind], RuleState.INCONCLUSIVE, each.message) for each in result.validity if each.leads
    )
    judged = (*(_forbidden(result, verdict) for verdict in rules.forbid), *_required(result, rules))
    if found := tuple(cautions):
        judged = tuple(
            replace(each, state=RuleState.INCONCLUSIVE) if each.state is RuleState.FAILED else each for each in judged
        )
    return BenefitGate((*found, *judged))


def _wrong(result: BenefitResult, rules: BenefitRules, now: datetime) -> list[RuleOutcome]:
    """Why no rule is judged."""
    found = [
        RuleOutcome("the comparison is valid", RuleState.INVALID, each.message)
        for each in result.validity
        if each.is_void
    ]
    if not result.tasks:
        found.append(RuleOutcome("the comparison is valid", RuleState.INVALID, "there is no task"))
    if rules.commit and not is_same_commit(rules.commit, result.commit):
        sentence = f"it is of commit {result.commit[:12]}" if result.commit else "its commit is not known"
        found.append(RuleOutcome(f"the result is of commit {rules.commit[:12]}", RuleState.INVALID, sentence))
    elif rules.commit and result.tree.uncommitted:
        found.append(
            RuleOutcome(f"the result is of commit {rules.commit[:12]}", RuleState.INVALID, result.tree.uncommitted)
        )
    if rules.max_age is not None:
        found += _wrong_age(result, rules.max_age, now)
    return found


def _wrong_age(result: BenefitResult, most: timedelta, now: datetime) -> list[RuleOutcome]:
    rule = f"the result is at most {n_of(most.days, 'days')} old"
    try:
        made = datetime.fromisoformat(result.made_at).astimezone(UTC)
    except ValueError:
        return [RuleOutcome(rule, RuleState.INVALID, "it has no time")]
    age = now - made
    if age < -_CLOCKS_DIFFER:
        return [
            RuleOutcome(rule, RuleState.INVALID, f"it was made on {made:%Y-%m-%d %H:%M} UTC, which is in the future")
        ]
    if age <= most:
        return []
    return [RuleOutcome(rule, RuleState.INVALID, f"it was made on {made:%Y-%m-%d}, {n_of(age.days, 'days')} ago")]


def _forbidden(result: BenefitResult, verdict: Verdict) -> RuleOutcome:
    judged = [row for row in result.strata if row.kind is not StratumKind.ALL] or result.strata
    bad = [row for row in judged if row.verdict is verdict]
    unknown = [row for row in judged if row.verdict is Verdict.INSUFFICIENT]
    rule = f"no stratum has the verdict {verdict.value}"
    if bad:
        sentence = f"{len(bad)} of {n_of(len(judged), 'strata')}:"
        return RuleOutcome(rule, RuleState.FAILED, sentence, tuple(f"{row.label}: {row.reason}" for row in bad))
    if len(unknown) == len(judged):
        return RuleOutcome(rule, RuleState.INCONCLUSIVE, f"none of {n_of(len(judged), 'strata')} has enough data")
    left = f"; {len(unknown)} without enough data" if unknown else ""
    return RuleOutcome(rule, RuleState.PASSED, f"none of {n_of(len(judged), 'strata')} has it{left}")


def _required(result: BenefitResult, rules: BenefitRules) -> list[RuleOutcome]:
    outcomes, problems = [], []
    for each in rules.require:
        label = ", ".join(each.stratum.values())
        row = next((row for row in result.strata if row.stratum == each.stratum), None)
        if row is None:
            known = "; ".join(dict.fromkeys(row.label for row in result.strata if row.stratum))
            got = ", ".join(f"{name}={value}" for name, value in each.stratum.items())
            problems.append(Problem("the result has no such stratum", got=got, expected=known))
            continue
        state = RuleState.FAILED
        if row.verdict is each.verdict:
            state = RuleState.PASSED
        elif row.verdict is Verdict.INSUFFICIENT:
            state = RuleState.INCONCLUSIVE
        found = "" if state is RuleState.PASSED else f"it is {row.verdict.value}. "
        outcomes.append(RuleOutcome(f"{label}: {each.verdict.value}", state, f"{found}{row.reason}"))
    if problems:
        raise InputError(problems)
    return outcomes
