"""Options that the commands of golden sets share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cranfield.options.declaration import Argument, Option

if TYPE_CHECKING:
    from cranfield.golden.plan import Plan

PlanArgument = Annotated[
    str | None,
    Argument(
        "Plan file, YAML or JSON; or the name of a plan of the package; default: phase1.",
        metavar="[PLAN]",
        shows_default=False,
    ),
]
RepoOption = Annotated[Path, Option("Repository that the set is about.", flag="--repo", metavar="DIR")]
AtOption = Annotated[
    str | None,
    Option("Commit to read; default: HEAD. Without git, the folder as it stands.", flag="--at", metavar="COMMIT"),
]
OutOption = Annotated[Path, Option("Folder of all runs.", flag="--out", metavar="DIR", refuses_link=True)]
RUNS = Path("golden-runs")
RunArgument = Annotated[Path, Argument("Folder of a run, which `golden run` printed.", metavar="RUN")]


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
