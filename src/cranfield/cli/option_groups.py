"""Options that several commands share, each group written once and given to a command as one keyword."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeVar, get_type_hints

import typer

from cranfield.cli.shared import AllowDriftOption, ConventionOption

if TYPE_CHECKING:
    from cranfield.project.inputs import ScoringOptions
    from cranfield.project.loading import TestSetOptions

R = TypeVar("R")

RunFormatOption = Annotated[
    str | None,
    typer.Option(
        "--run-format", metavar="FORMAT", help="Format of the runs: {run_formats}; default: detected from the content."
    ),
]
MissingOption = Annotated[
    Literal["zero", "skip"] | None,
    typer.Option(
        "--missing",
        help="Score a judged query without results as 0, or skip it; default: the convention's rule.",
    ),
]
DuplicatesOption = Annotated[
    Literal["error", "first"] | None,
    typer.Option(
        "--duplicates",
        help="Duplicate documents for a query in a TREC run: raise an error, or keep the first; default: the convention's rule.",
    ),
]
EvidenceOption = Annotated[
    list[str] | None,
    typer.Option(
        "--evidence",
        metavar="NAME=VALUE",
        help="Change an evidence check: off, caveat, void or a threshold, as in same-list=off; repeat for more.",
    ),
]
RULES = "median, majority, mean, searchtweak or quepid"
SCALES = "binary (0-1), graded (0-3) or detail (1-10)"
"""Consensus rules and scales of ratings; a test compares them with their tables, which import numpy."""
TESTSET_OPTIONS: Mapping[str, Any] = {
    "qrels": Annotated[
        Path | None,
        typer.Option(
            "--qrels",
            metavar="FILE",
            help="Judgments that replace those of the test set; its query texts and strata are kept.",
        ),
    ],
    "queries": Annotated[
        Path | None, typer.Option("--queries", metavar="FILE", help="Query texts: TREC topics, TSV or JSONL.")
    ],
    "strata": Annotated[
        list[str] | None,
        typer.Option(
            "--strata",
            metavar="SPEC",
            help="Strata by query position, `difficulty=standard:1-100,hard:101-127`, or a table by query id; repeat for more.",
        ),
    ],
    "classes": Annotated[
        str | None,
        typer.Option(
            "--classes",
            metavar="KEY",
            help="Stratum that defines the query class: `class`, or `kind:symbol=canonical,question=prose`.",
        ),
    ],
    "consensus": Annotated[
        str | None,
        typer.Option(
            "--consensus",
            metavar="RULE",
            help=f"Consensus rule for the grades of several raters: {RULES}.",
        ),
    ],
    "scale": Annotated[
        str | None,
        typer.Option("--scale", metavar="SCALE", help=f"Scale of the ratings: {SCALES}."),
    ],
    "to_scale": Annotated[
        str | None,
        typer.Option("--to-scale", metavar="SCALE", help="Convert the ratings to this scale before consensus."),
    ],
    "line_base": Annotated[
        int | None,
        typer.Option("--line-base", metavar="0|1", help="Line number of the first line of a file in the results."),
    ],
    "min_overlap": Annotated[
        int | None,
        typer.Option(
            "--min-overlap", metavar="N", help="Minimum number of lines that a result must share with an expected span."
        ),
    ],
    "databases": Annotated[
        list[str] | None,
        typer.Option(
            "--database",
            metavar="NAME=PLACE",
            help="Location of a database for predicates: sqlite:FILE, duckdb:FILE or env:VARIABLE.",
        ),
    ],
    "repo": Annotated[
        Path | None,
        typer.Option("--repo", metavar="DIR", help="Reject a test set that no longer matches this repository."),
    ],
    "at": Annotated[
        str | None,
        typer.Option("--at", metavar="COMMIT", help="Commit of the repository; default: the files on disk."),
    ],
    "allow_drift": AllowDriftOption,
    "intact": Annotated[
        bool,
        typer.Option("--intact", help="Use only the queries whose expected places all still stand in the repository."),
    ],
    "ids": Annotated[
        str | None,
        typer.Option(
            "--ids",
            metavar="RULE",
            help="Rule of query ids where the format has none: {id_rules}; default: content.",
        ),
    ],
    "part": Annotated[
        str | None,
        typer.Option("--part", metavar="PART", help="Use only this part of the stored split: {parts}."),
    ],
}
"""Field of `TestSetOptions` to its option."""

SCORING_OPTIONS: Mapping[str, Any] = {
    "convention": ConventionOption,
    "missing": MissingOption,
    "duplicates": DuplicatesOption,
    "depth": Annotated[
        int | None, typer.Option("--depth", metavar="N", min=1, help="Use only the first N results of each query.")
    ],
    "no_cache": Annotated[
        bool,
        typer.Option("--no-cache", help="Do not use the cache of large TREC runs."),
    ],
    "run_format": RunFormatOption,
    "evidence": EvidenceOption,
    "confusion": Annotated[
        list[str] | None,
        typer.Option(
            "--confusion",
            metavar="FIELD=STRATUM",
            help="Table of a field of the answers against the stratum that it predicts; repeat for more.",
        ),
    ],
}
"""Field of `ScoringOptions` to its option."""
DEFAULTS = {"convention": "trec"}
"""Of options that are neither off nor None."""


def _testset_options(values: dict[str, Any]) -> TestSetOptions:
    from cranfield.project.loading import TestSetOptions, databases_of

    given = {name: value for name, value in values.items() if value or value == 0}
    if "databases" in given:
        given["databases"] = databases_of(given["databases"])
    return TestSetOptions(**given)


def _scoring_options(values: dict[str, Any]) -> ScoringOptions:
    from cranfield.project.inputs import ScoringOptions

    evidence, limits = values.pop("evidence"), None
    if evidence:
        from cranfield.evaluation.evidence.inspection import parse_settings
        from cranfield.evaluation.values import Limits

        limits = Limits(evidence=parse_settings(evidence))
    if confusion := values.pop("confusion"):
        from cranfield.evaluation.confusion import parse_pairs

        confusion = parse_pairs(confusion)
    return ScoringOptions(cache=not values.pop("no_cache"), limits=limits, confusion=confusion, **values)


class Group(NamedTuple):
    """Options that become one value."""

    options: Mapping[str, Any]
    build: Callable[[dict[str, Any]], object]


GROUPS = {
    "options": Group(TESTSET_OPTIONS, _testset_options),
    "scoring": Group(SCORING_OPTIONS, _scoring_options),
}
"""Keyword of a command to the group that it takes."""


def option_groups(command: Callable[..., R]) -> Callable[..., R]:
    """Give a command the options of every group that it has a keyword of: `options` of a test set, `scoring` of runs."""
    signature = inspect.signature(command)
    # The classes of the groups are imported when a command runs.
    hints = get_type_hints(command, localns={"TestSetOptions": object, "ScoringOptions": object}, include_extras=True)
    groups = {keyword: group for keyword, group in GROUPS.items() if keyword in signature.parameters}
    parameters = []
    for name, parameter in signature.parameters.items():
        if name not in groups:
            parameters.append(parameter.replace(annotation=hints[name]))
            continue
        for option, annotation in groups[name].options.items():
            default = DEFAULTS.get(option, False if annotation.__origin__ is bool else None)
            parameters.append(
                inspect.Parameter(option, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
            )

    @functools.wraps(command)
    def wrapper(*args: Any, **kwargs: Any) -> R:
        values = {
            keyword: group.build({option: kwargs.pop(option) for option in group.options})
            for keyword, group in groups.items()
        }
        return command(*args, **kwargs, **values)

    wrapper.__signature__ = signature.replace(parameters=parameters, return_annotation=hints["return"])  # type: ignore[attr-defined]
    wrapper.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return wrapper
