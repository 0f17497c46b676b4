"""`cranfield benefit gate`: what the result of an experiment must keep, for CI."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cranfield.cli.benefit.report import ResultArgument
from cranfield.cli.ending import EXIT_INCONCLUSIVE, EXIT_SYSTEM, EXIT_VERDICT

if TYPE_CHECKING:
    from cranfield.app.benefit import BenefitGate
    from cranfield.benefit.result import BenefitResult

ForbidOption = Annotated[
    list[str] | None,
    typer.Option(
        "--forbid", metavar="VERDICT", help="Verdict that no stratum may have; default: net cost; repeat for more."
    ),
]
RequireOption = Annotated[
    list[str] | None,
    typer.Option(
        "--require",
        metavar="STRATUM:VERDICT",
        help="Verdict of a stratum, as `task_type=explain,difficulty=hard:pays off`.",
    ),
]
AgeOption = Annotated[
    int | None, typer.Option("--max-age-days", metavar="N", min=0, help="Refuse a result that is older.")
]
CommitOption = Annotated[
    str, typer.Option("--commit", metavar="SHA", help="Refuse a result that is of another commit.")
]
JunitOption = Annotated[Path | None, typer.Option("--junit", metavar="FILE", help="Also write JUnit XML.")]


def _show(result: BenefitResult, gate: BenefitGate) -> None:
    """Every rule and every caveat; which result it is, on stderr."""
    from cranfield.words import printable

    version = f", version {result.version}" if result.version else ""
    typer.echo(printable(f"result of {result.name}{version}, run {result.run}"), err=True)
    for each in gate.outcomes:
        typer.echo(printable(f"{each.state.value}: {each.rule}: {each.sentence}"))
        for stratum in each.strata:
            typer.echo(f"  {printable(stratum)}")
    for caveat in result.validity:
        if not (caveat.is_void or caveat.leads):  # those are rules above
            typer.echo(printable(f"caveat: {caveat.message}"))


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
        typer.echo(f"wrote {junit}", err=True)
    codes = {RuleState.FAILED: EXIT_VERDICT, RuleState.INVALID: EXIT_SYSTEM, RuleState.INCONCLUSIVE: EXIT_INCONCLUSIVE}
    if found.state is not RuleState.PASSED:
        raise typer.Exit(codes[found.state])
