"""The rule of the verdict: a claim on success and a claim on tokens in every stratum, adjusted together.

    pays off      success is higher; or tokens are saved and a loss of success of `lift_margin` or more is excluded
    net cost      success is lower; or more tokens are used, and nothing points to a lift of success

A lift points to one where its p-value is at most alpha before the adjustment: its interval, which stands beside the verdict,
does not contain 0. A claim counts where its p-value, adjusted by Holm over both claims of all strata of one kind, is at most alpha. So the
probability of any false verdict among these strata is at most alpha where neither success nor tokens differ. That no success
is lost is a further condition, not another way to a verdict; its p-values are adjusted among themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cranfield.base.numbers import format_change, format_level, format_p, format_percent, format_points
from cranfield.benefit.plan import VerdictRule
from cranfield.benefit.result import CostVerdict, Estimate, StratumVerdict, SuccessVerdict
from cranfield.stats.power import USUAL_POWER, minimal_detectable_effect
from cranfield.stats.result import holm
from cranfield.stats.unseen import unanimous_p

MAX_UNMEASURED = 0.1
"""Share of the runs of an arm whose tokens are not known, up to which a verdict may rest on tokens."""

_Format = Callable[[float | None], str]


@dataclass(frozen=True, slots=True)
class VerdictEvidence:
    """What the verdict of a stratum rests on."""

    lift: Estimate
    saved: Estimate
    """Tokens, raw or weighted as the rule says; control less treatment."""
    p_loss: float | None
    """One-sided: that success is lower by the margin or more."""
    std: float | None
    """Standard deviation of the differences of success."""
    unmeasured: float = 0.0
    """Share of the scored runs whose tokens are not known, of the arm with more of them."""

    @property
    def has_tokens(self) -> bool:
        """Runs whose tokens are not known are a selection: often those that were cut short, which are the expensive ones."""
        return self.unmeasured <= MAX_UNMEASURED


@dataclass(frozen=True, slots=True)
class StratumDecision:
    """The verdict of a stratum, with what its family makes of it."""

    verdict: StratumVerdict
    reason: str
    success: SuccessVerdict
    cost: CostVerdict
    p_lift: float | None = None
    p_saved: float | None = None
    """Adjusted."""
    detectable: float | None = None
    """Smallest true lift that is found with a probability of .8 at alpha over the number of tests of the family."""


def decide(family: Sequence[VerdictEvidence], rule: VerdictRule) -> list[StratumDecision]:
    """Give each stratum of one kind its verdict; those with fewer tasks than `min_tasks` are no part of the family."""
    lifts = [each.lift.p if _is_enough(each.lift, rule) else None for each in family]
    saved = [
        each.saved.p if each.has_tokens and _is_enough(each.lift, rule) and _is_enough(each.saved, rule) else None
        for each in family
    ]
    adjusted = holm([*lifts, *saved])
    n_tests = sum(p is not None for p in adjusted)
    losses = holm(
        [
            None if p is None or each.p_loss is None else min(1.0, 2 * each.p_loss)
            for p, each in zip(lifts, family, strict=True)
        ]
    )
    found = []
    for each, p_lift, p_saved, p_loss in zip(
        family, adjusted[: len(family)], adjusted[len(family) :], losses, strict=True
    ):
        claims = _Claims(each, rule, p_lift, p_saved, p_loss, n_tests)
        found.append(
            StratumDecision(*claims.verdict(), claims.success(), claims.cost(), p_lift, p_saved, claims.detectable)
        )
    return found


def _is_enough(estimate: Estimate, rule: VerdictRule) -> bool:
    return estimate.n >= rule.min_tasks


@dataclass(frozen=True, slots=True)
class _Claims:
    evidence: VerdictEvidence
    rule: VerdictRule
    p_lift: float | None
    p_saved: float | None
    p_loss: float | None
    n_tests: int

    @property
    def detectable(self) -> float | None:
        alpha, std = self.rule.alpha / max(1, self.n_tests), self.evidence.std
        return minimal_detectable_effect(std, self.evidence.lift.n, alpha) if std else None

    def verdict(self) -> tuple[StratumVerdict, str]:
        lift, saved = self.evidence.lift, self.evidence.saved
        if not _is_enough(lift, self.rule):
            return (
                StratumVerdict.INSUFFICIENT,
                f"Tasks with a decided success in both arms: {lift.n}; the rule requires {self.rule.min_tasks}.",
            )
        lift_sign, saved_sign = self._sign(lift, self.p_lift), self._sign(saved, self.p_saved)
        if lift_sign > 0:
            but = f", at the cost of more tokens: {self._tokens()}" if saved_sign < 0 else ""
            return StratumVerdict.PAYS_OFF, f"Success is higher: {self._lift()}{but}."
        if saved_sign > 0 and self._sign_of_no_loss():
            margin = _points(self.rule.lift_margin)
            return (
                StratumVerdict.PAYS_OFF,
                f"Tokens are saved: {self._tokens()}; a loss of success of {margin} points or more is excluded.",
            )
        if lift_sign < 0:
            return StratumVerdict.NET_COST, f"Success is lower: {self._lift()}."
        if saved_sign < 0:
            return self._costs(may_lift=self._sign(lift, lift.p) > 0)
        return self._undecided(saves=saved_sign > 0)

    def success(self) -> SuccessVerdict:
        """The verdict on success alone."""
        lift = self.evidence.lift
        if not _is_enough(lift, self.rule):
            return SuccessVerdict.INSUFFICIENT
        if lift.value == 0 and not self.evidence.std:
            return SuccessVerdict.SAME
        verdicts = (SuccessVerdict.NOT_SHOWN, SuccessVerdict.HIGHER, SuccessVerdict.LOWER)
        return verdicts[self._sign(lift, self.p_lift)]

    def cost(self) -> CostVerdict:
        """The verdict on tokens alone."""
        if self.p_saved is None:
            return CostVerdict.INSUFFICIENT
        verdicts = (CostVerdict.NOT_SHOWN, CostVerdict.CHEAPER, CostVerdict.DEARER)
        return verdicts[self._sign(self.evidence.saved, self.p_saved)]

    def _costs(self, *, may_lift: bool) -> tuple[StratumVerdict, str]:
        """More tokens, and no lift that counts."""
        more, high = f"More tokens are used: {self._tokens()}", self.evidence.lift.high
        if may_lift:
            return (
                StratumVerdict.NO_DIFFERENCE,
                f"{more}; a lift of success is not significant after the adjustment, but not excluded: {self._lift()}.",
            )
        most = "" if high is None or high <= 0 else f"; a lift of up to {_points(high)} points is not excluded"
        return StratumVerdict.NET_COST, f"{more}; no lift of success is shown: {self._lift()}{most}."

    def _undecided(self, *, saves: bool) -> tuple[StratumVerdict, str]:
        lift = self.evidence.lift
        if saves:
            margin = _points(self.rule.lift_margin)
            return (
                StratumVerdict.NO_DIFFERENCE,
                f"Tokens are saved: {self._tokens()}; a loss of success of {margin} points is not excluded: {self._lift()}.",
            )
        if self.p_saved is None:
            known = f"in both arms for {self.evidence.saved.n} tasks"
            if not self.evidence.has_tokens:
                known, least = format_percent(1 - self.evidence.unmeasured), format_percent(1 - MAX_UNMEASURED)
                known = f"for {known} of the runs of an arm; a verdict on tokens requires {least}"
            return (
                StratumVerdict.INSUFFICIENT,
                f"No lift of success is shown: {self._lift()}; tokens are known {known}.",
            )
        if not self.evidence.std and 2 * unanimous_p(1.0, lift.n) * self.n_tests > self.rule.alpha:
            return (
                StratumVerdict.INSUFFICIENT,
                (
                    f"Even a lift of 100 points in every task would not be significant: {lift.n} tasks, "
                    f"{self.n_tests} tests."
                ),
            )
        if self.detectable is not None and self.detectable > 1:
            return (
                StratumVerdict.INSUFFICIENT,
                f"Power is below 80 % even for a lift of 100 points: {lift.n} tasks, {self.n_tests} tests.",
            )
        power = format_percent(USUAL_POWER)
        least = (
            ""
            if self.detectable is None
            else f"; a lift of {_points(self.detectable)} points is detectable with {power} power"
        )
        return StratumVerdict.NO_DIFFERENCE, f"Success: {self._lift()}; {self._tokens()}{least}."

    def _sign(self, estimate: Estimate, p: float | None) -> int:
        """1 or -1 where the claim counts, else 0."""
        if p is None or p > self.rule.alpha or not estimate.value:
            return 0
        return 1 if estimate.value > 0 else -1

    def _sign_of_no_loss(self) -> bool:
        return self.p_loss is not None and self.p_loss <= self.rule.alpha

    def _lift(self) -> str:
        lift = self.evidence.lift
        text = f"{format_points(lift.value)} points{self._interval(lift, format_points)}, adjusted p {format_p(self.p_lift)}"
        if self.evidence.std or lift.low is None:
            return text
        same = "is the same in both arms" if not lift.value else "differs by the same amount"
        return (
            f"{text}; it {same} in all {lift.n} tasks, so the interval is based on the number of tasks, not on an "
            "observed spread"
        )

    def _tokens(self) -> str:
        saved = self.evidence.saved
        kind = " price-weighted" if self.rule.tokens == "weighted" else ""
        return (
            f"net{kind} tokens per task {format_change(saved.value)}{self._interval(saved, format_change)}, "
            f"adjusted p {format_p(self.p_saved)}"
        )

    def _interval(self, estimate: Estimate, shown: _Format) -> str:
        if estimate.low is None or estimate.high is None:
            return ""
        return f" ({format_level(self.rule.alpha)} CI {shown(estimate.low)} to {shown(estimate.high)})"


def _points(share: float) -> str:
    return f"{100 * share:.1f}"
