"""Options that several commands share, each group written once and given to a command as one keyword."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeVar, get_type_hints

import typer

from cranfield.cli import registries
from cranfield.cli.shared import ConventionOption, Format, Output
from cranfield.errors import UsageError
from cranfield.model.convention import Ties
from cranfield.model.testset_options import DEPTH, TESTSET_OPTIONS, OptionKind, OptionRow, config_options

if TYPE_CHECKING:
    from cranfield.project.inputs import ScoringOptions
    from cranfield.project.large_runs import LargeOptions
    from cranfield.project.loading import SetOverrides, TestSetOptions

R = TypeVar("R")

RunFormatOption = Annotated[
    str | None,
    typer.Option(
        "--run-format",
        metavar="FORMAT",
        help="Format of the runs: {run_formats}; default: detected from the content.",
        autocompletion=registries.run_formats,
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
LatencyOption = Annotated[
    list[str] | None,
    typer.Option(
        "--latency",
        metavar="KEY=NUMBER",
        help="Change when a system is called faster: skip_first=3, smallest_ms=1, smallest_percent=5; repeat for more.",
    ),
]
KINDS: Mapping[OptionKind, Any] = {
    "file": Path | None,
    "text": str | None,
    "texts": list[str] | None,
    "pairs": list[str] | None,
    "number": int | None,
    "flag": bool,
}
"""Kind of an option to its type on the command line."""


def _annotation(name: str, row: OptionRow) -> Any:
    return Annotated[
        KINDS[row.kind], typer.Option(row.spelling(name), metavar=row.metavar or None, help=row.help, min=row.minimum)
    ]


DepthOption = _annotation("depth", DEPTH)
AllowDirtyOption = _annotation("allow_dirty", TESTSET_OPTIONS["allow_dirty"])
KeepGoingOption = Annotated[
    bool,
    typer.Option(
        "--keep-going", help="Send every query also to a system whose first ten queries all fail alike; default: stop."
    ),
]
FailedOption = Annotated[
    Literal["zero", "skip"] | None,
    typer.Option(
        "--failed",
        help="Score a query that the system failed on, or answered with nothing, as 0, or leave it out; default: the "
        "convention's rule. `run` and `gate` count 0.",
    ),
]
TiesOption = Annotated[
    Ties | None,
    typer.Option(
        "--ties",
        help="Equal scores: by document id, descending or ascending, or as in the run; expected: the mean over all their orders. "
        "Default: the convention's rule.",
    ),
]
SortOption = Annotated[
    str,
    typer.Option(
        "--sort", metavar="KEY", help="Order of three or more runs: mean, rank (mean rank), name, given or a measure."
    ),
]
PairsOption = Annotated[
    bool, typer.Option("--pairs", help="List all pairs of three or more runs; default: up to 15 pairs.")
]
ConfusionOption = Annotated[
    list[str] | None,
    typer.Option(
        "--confusion",
        metavar="FIELD=STRATUM",
        help="Table of a field of the answers against the stratum that it predicts; repeat for more.",
    ),
]

QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress; failures are listed at the end.")]

SCORING_OPTIONS: Mapping[str, Any] = {
    "convention": ConventionOption,
    "missing": MissingOption,
    "failed": FailedOption,
    "ties": TiesOption,
    "duplicates": DuplicatesOption,
    "depth": DepthOption,
    "no_cache": Annotated[
        bool,
        typer.Option("--no-cache", help="Do not use the cache of large TREC runs."),
    ],
    "run_format": RunFormatOption,
    "evidence": EvidenceOption,
}
"""Field of `ScoringOptions` to its option."""
LARGE_OPTIONS: Mapping[str, Any] = {
    "memory": Annotated[
        str | None,
        typer.Option("--memory", metavar="SIZE", help="Memory that Parquet runs of any size may take; default: 1GB."),
    ],
    "out": Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR",
            help="Write the values of each query to this folder, as Parquet; an interrupted call goes on there.",
        ),
    ],
    "engine": Annotated[
        Literal["local", "spark"] | None,
        typer.Option("--engine", help="What reads Parquet runs: this machine, or Spark; default: local."),
    ],
    "master": Annotated[
        str | None,
        typer.Option("--master", metavar="URL", help="Spark's master, as in spark://host:7077; default: local[*]."),
    ],
    "spark_conf": Annotated[
        Path | None,
        typer.Option("--spark-conf", metavar="FILE", help="Settings of Spark, as in spark-defaults.conf."),
    ],
    "columns": Annotated[
        list[str] | None,
        typer.Option(
            "--columns",
            metavar="ROLE=NAME",
            help="Column of Parquet runs by role: query_id, doc_id, score, rank or system; repeat for more.",
        ),
    ],
    "baseline_system": Annotated[
        str | None,
        typer.Option(
            "--baseline-system", metavar="NAME", help="System of Parquet runs that the others are compared with."
        ),
    ],
    "query_table": Annotated[
        Path | None,
        typer.Option("--query-table", metavar="FILE", help="Parquet or CSV with a row a query, for the options below."),
    ],
    "cluster": Annotated[
        str | None,
        typer.Option(
            "--cluster", metavar="COLUMN", help="Column of the user or session: queries of one stay together."
        ),
    ],
    "stratum": Annotated[
        list[str] | None,
        typer.Option("--stratum", metavar="COLUMN", help="Column of a stratum, as in language; repeat for more."),
    ],
    "weight": Annotated[
        str | None, typer.Option("--weight", metavar="COLUMN", help="Column of the weight of each query.")
    ],
}
"""Field of `LargeOptions` to its option."""
OUTPUT_OPTIONS: Mapping[str, Any] = {
    "format": Annotated[
        Format,
        typer.Option(
            "--format", help="Output format on stdout; brief is short Markdown, for a changelog or a pull request."
        ),
    ],
    "full": Annotated[bool, typer.Option("--full", help="Print the whole report as text, not its short form.")],
    "html": Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Also write the report to this HTML file.")
    ],
    "open": Annotated[bool, typer.Option("--open", help="Show the report in the browser.")],
}
"""Field of `Output` to its option."""
DEFAULTS = {"convention": "trec", "format": Format.TEXT}
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
    if latency := values.pop("latency", None):
        from cranfield.evaluation.latency_rule import parse_rule

        latency = parse_rule(latency)
    if confusion := values.pop("confusion", None):
        from cranfield.evaluation.confusion import parse_pairs

        confusion = parse_pairs(confusion)
    no_cache = values.pop("no_cache")
    return ScoringOptions(cache=not no_cache, limits=limits, latency=latency or None, confusion=confusion, **values)


def _overrides(values: dict[str, Any]) -> SetOverrides:
    from cranfield.project.loading import SetOverrides
    from cranfield.systems.collect.progress import quiet

    quiet(on=values.pop("quiet"))
    depth, keep_going = values.pop("depth"), values.pop("keep_going")
    return SetOverrides(_testset_options(values), depth, keep_going=keep_going)


def _large_options(values: dict[str, Any]) -> LargeOptions:
    from cranfield.project.large_runs import LargeOptions

    pairs = values.pop("columns") or []
    unclear = [pair for pair in pairs if "=" not in pair]
    if unclear:
        raise UsageError(f"--columns is {unclear[0]!r}", expected="ROLE=NAME, as in score=bm25")
    columns = dict(pair.split("=", 1) for pair in pairs)
    return LargeOptions(**{**values, "stratum": tuple(values["stratum"] or ()), "columns": columns or None})


class Group(NamedTuple):
    """Options that become one value."""

    options: Mapping[str, Any]
    build: Callable[[dict[str, Any]], object]
    heading: str = "Options"
    """In help that is long."""


GROUPS = {
    "options": Group(
        {name: _annotation(name, row) for name, row in TESTSET_OPTIONS.items()}, _testset_options, "Test set"
    ),
    "overrides": Group(
        {name: _annotation(name, row) for name, row in config_options().items()}
        | {"keep_going": KeepGoingOption, "quiet": QuietOption},
        _overrides,
        "Test set",
    ),
    "scoring": Group(
        {**SCORING_OPTIONS, "confusion": ConfusionOption, "latency": LatencyOption}, _scoring_options, "Scoring"
    ),
    "scores": Group(SCORING_OPTIONS, _scoring_options, "Scoring"),
    "large": Group(LARGE_OPTIONS, _large_options, "Run files of any size"),
    "output": Group(OUTPUT_OPTIONS, lambda values: Output(**values), "Output"),
}
"""Keyword of a command to the group that it takes."""


def option_groups(command: Callable[..., R]) -> Callable[..., R]:
    """Give a command the options of every group that it has a keyword of.

    `options` are those of a test set, `scoring` those of runs, `scores` the same where no answers are reported, `large`
    those of runs that are read in parts, `output` what is done with the report; `overrides` take the place of the block `options` of a config.
    """
    signature = inspect.signature(command)
    # The classes of the groups are imported when a command runs.
    hints = get_type_hints(
        command,
        localns=dict.fromkeys(("TestSetOptions", "ScoringOptions", "SetOverrides", "LargeOptions", "Output"), object),
        include_extras=True,
    )
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
    wrapper.headings = {option: group.heading for group in groups.values() for option in group.options}  # type: ignore[attr-defined]
    return wrapper
