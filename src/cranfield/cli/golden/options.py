"""Options that the commands of golden sets share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cranfield.cli.shared import refuse_planted_folder

if TYPE_CHECKING:
    from cranfield.golden.plan import Plan

PlanArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="[PLAN]",
        help="Plan file, YAML or JSON; or the name of a plan of the package; default: phase1.",
        show_default=False,
    ),
]
RepoOption = Annotated[Path, typer.Option("--repo", metavar="DIR", help="Repository that the set is about.")]
AtOption = Annotated[
    str | None,
    typer.Option("--at", metavar="COMMIT", help="Commit to read; default: HEAD. Without git, the folder as it stands."),
]
OutOption = Annotated[
    Path, typer.Option("--out", metavar="DIR", help="Folder of all runs.", callback=refuse_planted_folder)
]
RUNS = Path("golden-runs")
RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run, which `golden run` printed.")]


def read_plan(plan: str) -> tuple[Plan, str]:
    """A plan, and its text: of a file, or of the package where there is no such file.

    Raises:
        ConfigError: with everything that does not fit.
        UnknownNameError: there is neither such a file nor such a plan.
    """
    from cranfield.golden.plan import load_plan, shipped_plan, shipped_text

    path = Path(plan)
    if path.suffix or path.exists():
        return load_plan(path), path.read_text(encoding="utf-8")
    return shipped_plan(plan), shipped_text(plan)
