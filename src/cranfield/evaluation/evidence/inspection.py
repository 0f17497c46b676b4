"""The checks of the table applied to one system, or to the systems of a comparison."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from cranfield.errors import CranfieldError, Problem, UnknownNameError, UsageError, shorten
from cranfield.evaluation.evidence.inspected import Inspected, Sides
from cranfield.evaluation.evidence.table import CHECKS, Check
from cranfield.evaluation.evidence.values import Consequence, Finding, Found, Scored, Setting, Settings
from cranfield.measures import Measure


def inspect_systems(
    systems: Sequence[Scored], primary: Measure | None, settings: Settings, limits: Mapping[str, float | None]
) -> tuple[Finding, ...]:
    """What every check finds: of each system, and of two or more together; what is void comes first.

    Args:
        systems: on one test set.
        primary: the measure that decides; None where no measure has a value.
        settings: how checks differ from the table.
        limits: the thresholds that `limits:` sets, by key.
    """
    findings: list[Finding] = []
    views = [Inspected(system, None if primary is None else primary.depth) for system in systems]
    for check in CHECKS.values():
        consequence, threshold = _rule(check, settings.get(check.name, Setting()), limits)
        if consequence is Consequence.OFF or threshold is None:
            continue
        for system, found in _apply(check, views, primary, threshold):
            if any(other.check in check.unless and system in {"", other.system} for other in findings):
                continue
            findings.append(
                Finding(check.name, consequence, system, found.sentence, found.query_ids, found.count, found.total)
            )
    return tuple(sorted(findings, key=lambda finding: not finding.is_void))


def threshold_of(name: str, settings: Settings) -> float | None:
    """The threshold of a check that no limit sets; None where the check is off."""
    consequence, threshold = _rule(CHECKS[name], settings.get(name, Setting()), {})
    return None if consequence is Consequence.OFF else threshold


def _rule(check: Check, setting: Setting, limits: Mapping[str, float | None]) -> tuple[Consequence, float | None]:
    """The consequence and the threshold of a check; no threshold where a limit is switched off."""
    threshold = limits.get(check.limit, check.threshold) if check.limit else check.threshold
    return setting.consequence or check.consequence, threshold if setting.threshold is None else setting.threshold


def _apply(
    check: Check, systems: Sequence[Inspected], primary: Measure | None, threshold: float
) -> Iterator[tuple[str, Found]]:
    if check.system is not None:
        for system in systems:
            for found in check.system(system, threshold):
                yield system.name, found
    if check.systems is not None and primary is not None:
        for found in check.systems(Sides(systems, primary), threshold):
            yield systems[0].name if len(systems) == 1 else "", found


def as_setting(name: str, value: object) -> Setting:
    """A setting of a check as a caller writes it: a consequence, a threshold, or a `Setting` of both.

    Raises:
        UnknownNameError: there is no such check.
        UsageError: the value is neither.
    """
    if name not in CHECKS:
        raise UnknownNameError.among("evidence check", name, CHECKS)
    if isinstance(value, Setting):
        return value
    if value is False or value in tuple(Consequence):
        return Setting(Consequence.OFF if value is False else Consequence(str(value)))
    if isinstance(value, Mapping) and value and set(value) <= {"consequence", "threshold"}:
        parts = [as_setting(name, part) for part in value.values() if part is not None]
        return Setting(
            next((part.consequence for part in parts if part.consequence is not None), None),
            next((part.threshold for part in parts if part.threshold is not None), None),
        )
    if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
        return Setting(threshold=float(value))
    raise UsageError(
        f"evidence check {name} is set to {shorten(value)}",
        expected=f"{', '.join(Consequence)}, or a threshold of 0 or more",
    )


def parse_settings(written: Sequence[str]) -> dict[str, Setting]:
    """Settings as the command line writes them: `same-list=off`, `duplicates=0.4`; a check named twice has both.

    Raises:
        UsageError: with every one that is none.
    """
    settings: dict[str, Setting] = {}
    problems: list[Problem] = []
    for text in written:
        name, equals, value = (part.strip() for part in text.partition("="))
        try:
            if not equals:
                raise UsageError(f"--evidence is {shorten(text)}", expected="NAME=VALUE such as same-list=off")
            setting, former = as_setting(name, _number(value)), settings.get(name, Setting())
        except CranfieldError as error:
            problems += error.problems
            continue
        settings[name] = Setting(
            setting.consequence or former.consequence,
            former.threshold if setting.threshold is None else setting.threshold,
        )
    if problems:
        raise UsageError(problems)
    return settings


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
