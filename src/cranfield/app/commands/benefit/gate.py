"""`cranfield benefit gate`: what the result of an experiment must keep, for CI."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from annotated_types import Ge

from cranfield.app.command import Exit, Status, note, say
from cranfield.app.commands.benefit.report import ResultArgument
from cranfield.options.declaration import Option

if TYPE_CHECKING:
    from cranfield.app.benefit import BenefitGate
    from cranfield.benefit.result import BenefitResult

ForbidOption = Annotated[
    list[str] | None,
    Option("Verdict that no stratum may have; default: net cost; repeat for more.", flag="--forbid", metavar="VERDICT"),
]
RequireOption = Annotated[
    list[str] | None,
    Option(
        "Verdict of a stratum, as `task_type=explain,difficulty=hard:pays off`.",
        flag="--require",
        metavar="STRATUM:VERDICT",
    ),
]
AgeOption = Annotated[int | None, Option("Refuse a result that is older.", flag="--max-age-days", metavar="N"), Ge(0)]
CommitOption = Annotated[str, Option("Refuse a result that is of another commit.", flag="--commit", metavar="SHA")]
JunitOption = Annotated[Path | None, Option("Also write JUnit XML.", flag="--junit", metavar="FILE")]


def _show(result: BenefitResult, gate: BenefitGate) -> None:
    """Every rule and every caveat; which result it is, on stderr."""
    from cranfield.words import printable

    version = f", version {result.version}" if result.version else ""
    note(printable(f"result of {result.name}{version}, run {result.run}"))
    for each in gate.outcomes:
        say(printable(f"{each.state.value}: {each.rule}: {each.sentence}"))
        for stratum in each.strata:
            say(f"  {printable(stratum)}")
    for caveat in result.validity:
        if not (caveat.is_void or caveat.leads):  # those are rules above
            say(printable(f"caveat: {caveat.message}"))


def gate_command(
    source: ResultArgument,
    *,
    forbid: ForbidOption = None,
    require: RequireOption = None,
    max_age_days: AgeOption = None,
    commit: CommitOption = "",
    junit: JunitOption = None,
) -> None:
    """Check a result by rules. An invalid comparison never passes.

    Exit codes: 0 every rule holds; 1 a rule is broken; 3 the comparison is invalid, too old or of another commit; 4 there is
    not enough data.
    """
    from datetime import UTC, datetime, timedelta

    from cranfield.app.benefit import BenefitRules, RuleState, judge_result, parse_requirement, read_source
    from cranfield.benefit.result import Verdict
    from cranfield.errors import UnknownNameError
    from cranfield.formats.io.files import write_text
    from cranfield.gate.junit import junit_of_cases

    for verdict in forbid or ():
        if verdict not in set(Verdict):
            raise UnknownNameError.among("verdict", verdict, list(Verdict))
    result, _ = read_source(source)
    rules = BenefitRules(
        tuple(map(Verdict, forbid or ("net cost",))),
        tuple(map(parse_requirement, require or ())),
        None if max_age_days is None else timedelta(days=max_age_days),
        commit,
    )
    found = judge_result(result, rules, datetime.now(UTC))
    _show(result, found)
    if junit is not None:
        cases = [(each.rule, each.state.value, each.text) for each in found.outcomes]
        write_text(junit, [junit_of_cases("cranfield benefit gate", result.name, cases)])
        note(f"wrote {junit}")
    codes = {
        RuleState.FAILED: Status.FAILED,
        RuleState.INVALID: Status.VOID,
        RuleState.INCONCLUSIVE: Status.INCONCLUSIVE,
    }
    if found.state is not RuleState.PASSED:
        raise Exit(codes[found.state])
