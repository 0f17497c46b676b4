"""The checks of the table applied to one system, or to the systems of a comparison."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from cranfield.errors import CranfieldError, Problem, UnknownNameError, UsageError, shorten, unknown_name
from cranfield.evaluation.evidence.inspected import Inspected, Sides
from cranfield.evaluation.evidence.table import CHECKS, Check
from cranfield.evaluation.evidence.values import Finding, Found, Scored, Settings, without_secrets
from cranfield.measures import Measure
from cranfield.options.limits import Consequence, Limits, Setting, as_setting


def inspect_systems(systems: Sequence[Scored], primary: Measure | None, limits: Limits) -> tuple[Finding, ...]:
    """What every check finds: of each system, and of two or more together; what is void comes first.

    Args:
        systems: on one test set.
        primary: the measure that decides; None where no measure has a value.
        limits: their thresholds, and how checks differ from the table.

    Raises:
        UnknownNameError: there is no such check.
    """
    refuse_unknown(limits)
    settings = limits.evidence
    shares = {"max_failed_share": limits.max_failed_share, "min_judged_share": limits.min_judged_share}
    findings: list[Finding] = []
    views = [Inspected(system, None if primary is None else primary.depth) for system in systems]
    for check in CHECKS.values():
        consequence, threshold = _rule(check, settings.get(check.name, Setting()), shares)
        if consequence is Consequence.OFF or threshold is None:
            continue
        for system, found in _apply(check, views, primary, threshold):
            if any(other.check in check.unless and system in {"", other.system} for other in findings):
                continue
            text = "" if found.of_testset else found.sentence
            sentence = f"{system}: {text}" if system and text else found.sentence
            findings.append(
                Finding(
                    *(check.name, consequence, system, sentence, found.query_ids, found.count, found.total),
                    text=text if system else "",
                )
            )
    sorted_ = tuple(sorted(findings, key=lambda finding: not finding.is_void))
    return without_secrets(sorted_, systems)


def refuse_unknown(limits: Limits) -> None:
    """Refuse settings of checks that there are not.

    Raises:
        UnknownNameError: with each of them.
    """
    problems = [unknown_name("evidence check", name, CHECKS) for name in limits.evidence if name not in CHECKS]
    if problems:
        raise UnknownNameError(problems)


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
            yield "", found


def known_setting(name: str, value: object) -> Setting:
    """A setting of a check that there is; see `as_setting`.

    Raises:
        UnknownNameError: there is no such check.
        UsageError: the value is none.
    """
    if name not in CHECKS:
        raise UnknownNameError.among("evidence check", name, CHECKS)
    return as_setting(name, value)


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
            setting, former = known_setting(name, _number(value)), settings.get(name, Setting())
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
