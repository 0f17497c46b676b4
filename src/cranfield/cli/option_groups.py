"""Options that several commands share, each group written once and given to a command as one keyword."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

import typer

from cranfield.cli import registries
from cranfield.cli.shared import Format, Output
from cranfield.errors import UsageError
from cranfield.options.collect import CollectOptions
from cranfield.options.compare import CompareOptions
from cranfield.options.declaration import Declared, declared
from cranfield.options.limits import Limits
from cranfield.options.names import CHOICES
from cranfield.options.scoring import ScoringOptions
from cranfield.options.testset import SET_OPTIONS, TestSetOptions

if TYPE_CHECKING:
    from cranfield.app.large_runs import LargeOptions
    from cranfield.app.loading import SetOverrides

R = TypeVar("R")

NAMES: Mapping[str, Callable[[], list[str]]] = {
    "measures": registries.measures,
    "run_formats": registries.run_formats,
    **{name: choices.names for name, choices in CHOICES.items()},
}
"""Names that an option takes, for completion."""


def parameter_of(option: Declared) -> str:
    """Name of the parameter of a command: two blocks may have an option of one name, under two flags."""
    return option.option.flag.removeprefix("--").replace("-", "_") or option.name


def option_of(block: type, name: str) -> Any:
    """The annotation of a parameter that is an option of a block."""
    return _annotation(declared(block)[name])


def _is_list(option: Declared) -> bool:
    """Whether the command line writes it as texts that are repeated."""
    return get_origin(option.bare) in {Sequence, Mapping} or is_dataclass(option.bare)


def _annotation(option: Declared) -> Any:
    bare = option.bare
    kind: Any = bare
    if _is_list(option):
        kind = list[str]
    elif get_origin(bare) is Literal and option.option.metavar:  # its help says the choices, and the block checks them
        kind = type(get_args(bare)[0])
    elif option.option.choices:
        kind = str
    return Annotated[
        kind | None if _is_list(option) or option.default is None else kind,
        typer.Option(
            option.flag,
            metavar=option.option.metavar or None,
            help=option.option.help,
            min=option.limits.get("ge") if kind is int else None,
            autocompletion=NAMES.get(option.option.choices),
        ),
    ]


ConventionOption = option_of(ScoringOptions, "convention")
SeedOption = option_of(CompareOptions, "seed")
AllowDirtyOption = option_of(TestSetOptions, "allow_dirty")
SortOption = Annotated[
    str,
    typer.Option(
        "--sort", metavar="KEY", help="Order of three or more runs: mean, rank (mean rank), name, given or a measure."
    ),
]
PairsOption = Annotated[
    bool, typer.Option("--pairs", help="List all pairs of three or more runs; default: up to 15 pairs.")
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress; failures are listed at the end.")]

NoCacheOption = Annotated[bool, typer.Option("--no-cache", help="Do not use the cache of large TREC runs.")]
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


def _parsers() -> Mapping[str, Callable[[list[str]], object]]:
    """Option that is written as a list of texts to what reads them."""
    from cranfield.app.loading import databases_of
    from cranfield.evaluation.confusion import parse_pairs
    from cranfield.evaluation.evidence.inspection import parse_settings
    from cranfield.options.latency import parse_rule

    return {
        "confusion": parse_pairs,
        "databases": databases_of,
        "evidence": parse_settings,
        "latency": parse_rule,
        "strata": tuple,
    }


def _block(kind: type, values: Mapping[str, Any]) -> Any:
    """A block of options from what the command line gives, by field; what is left out has the default of the block."""
    given = {name: value for name, value in values.items() if value is not None and value != []}
    lists = {name for name, value in given.items() if isinstance(value, list)}
    return kind(**given | {name: _parsers()[name](given[name]) for name in lists})


def _scoring(values: dict[str, Any]) -> ScoringOptions:
    cache, limits = not values.pop("no_cache", True), _block(Limits, {"evidence": values.pop("evidence", None)})
    options: ScoringOptions = _block(ScoringOptions, {**values, "cache": cache, "limits": limits})
    return options


def _compare(values: dict[str, Any]) -> CompareOptions:
    limits = {name: values.pop(name) for name in LIMITS if name in values}
    options: CompareOptions = _block(CompareOptions, {**values, "limits": _block(Limits, limits)})
    return options


def _overrides(values: dict[str, Any]) -> SetOverrides:
    from cranfield.app.loading import SetOverrides
    from cranfield.systems.collect.progress import quiet

    quiet(on=values.pop("quiet"))
    depth, keep_going = values.pop("depth"), values.pop("keep_going")
    return SetOverrides(_block(TestSetOptions, values), depth, keep_going=keep_going)


def _large_options(values: dict[str, Any]) -> LargeOptions:
    from cranfield.app.large_runs import LargeOptions

    pairs = values.pop("columns") or []
    unclear = [pair for pair in pairs if "=" not in pair]
    if unclear:
        raise UsageError(f"--columns is {unclear[0]!r}", expected="ROLE=NAME, as in score=bm25")
    columns = dict(pair.split("=", 1) for pair in pairs)
    return LargeOptions(**{**values, "stratum": tuple(values["stratum"] or ()), "columns": columns or None})


@dataclass(frozen=True)
class Own:
    """An option that is in no block."""

    annotation: Any
    default: Any = None


class Group(NamedTuple):
    """Options that become one value."""

    options: Mapping[str, Declared | Own]
    """By field of the value."""
    build: Callable[[dict[str, Any]], object]
    heading: str = "Options"
    """In help that is long."""

    def only(self, names: Collection[str]) -> Group:
        """The group with some of its options."""
        return self._replace(options={name: option for name, option in self.options.items() if name in names})


@dataclass(frozen=True)
class Fields:
    """The options of a group that a command takes."""

    names: tuple[str, ...]


def fields(*names: str) -> Fields:
    """Which options of its group a keyword takes, as a mark in its annotation."""
    return Fields(names)


def _of_command(block: type) -> dict[str, Declared]:
    return {name: option for name, option in declared(block).items() if "command" in option.option.places}


LIMITS = ("max_failed_share", "min_judged_share")
_TESTSET, _SCORING, _LIMITS = _of_command(TestSetOptions), _of_command(ScoringOptions), _of_command(Limits)
_OF_RUNS: dict[str, Declared | Own] = {"no_cache": Own(NoCacheOption, default=False), "evidence": _LIMITS["evidence"]}
GROUPS: Mapping[str, Group] = {
    "options": Group(_TESTSET, lambda values: _block(TestSetOptions, values), "Test set"),
    "overrides": Group(
        {
            **SET_OPTIONS,
            "keep_going": _of_command(CollectOptions)["keep_going"],
            "quiet": Own(QuietOption, default=False),
        },
        _overrides,
        "Test set",
    ),
    "scoring": Group({**_SCORING, **_OF_RUNS}, _scoring, "Scoring"),
    "scores": Group(
        {name: option for name, option in _SCORING.items() if name not in {"confusion", "latency"}} | dict(_OF_RUNS),
        _scoring,
        "Scoring",
    ),
    "compare": Group(_of_command(CompareOptions) | {name: _LIMITS[name] for name in LIMITS}, _compare, "Statistics"),
    "large": Group(
        {name: Own(option) for name, option in LARGE_OPTIONS.items()}, _large_options, "Run files of any size"
    ),
    "output": Group(
        {
            name: Own(option, default=Format.TEXT if name == "format" else False if option.__origin__ is bool else None)
            for name, option in OUTPUT_OPTIONS.items()
        },
        lambda values: Output(**values),
        "Output",
    ),
}
"""Keyword of a command to the group that it takes."""


def option_groups(command: Callable[..., R]) -> Callable[..., R]:
    """Give a command the options of every group that it has a keyword of.

    `options` are those of a test set, `scoring` those of runs, `scores` the same where no answers are reported, `compare`
    those of a comparison, `large` those of runs that are read in parts, `output` what is done with the report; `overrides`
    take the place of the block `options` of a config. `fields` takes some options of a group.
    """
    signature = inspect.signature(command)
    # The classes of some groups are imported when a command runs.
    blocks = ("TestSetOptions", "ScoringOptions", "CompareOptions", "SetOverrides", "LargeOptions", "Output")
    hints = get_type_hints(command, localns=dict.fromkeys(blocks, object), include_extras=True)
    groups: dict[str, Group] = {}
    parameters = []
    for name, parameter in signature.parameters.items():
        if name not in GROUPS:
            parameters.append(parameter.replace(annotation=hints[name]))
            continue
        some = next((mark for mark in getattr(hints[name], "__metadata__", ()) if isinstance(mark, Fields)), None)
        groups[name] = GROUPS[name] if some is None else GROUPS[name].only(some.names)
        parameters += [_parameter(field, option) for field, option in groups[name].options.items()]

    @functools.wraps(command)
    def wrapper(*args: Any, **kwargs: Any) -> R:
        values = {
            keyword: group.build({field: kwargs.pop(_name(field, option)) for field, option in group.options.items()})
            for keyword, group in groups.items()
        }
        return command(*args, **kwargs, **values)

    wrapper.__signature__ = signature.replace(parameters=parameters, return_annotation=hints["return"])  # type: ignore[attr-defined]
    wrapper.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    wrapper.headings = {  # type: ignore[attr-defined]
        _name(field, option): group.heading for group in groups.values() for field, option in group.options.items()
    }
    return wrapper


def _name(field: str, option: Declared | Own) -> str:
    return parameter_of(option) if isinstance(option, Declared) else field


def _parameter(field: str, option: Declared | Own) -> inspect.Parameter:
    """A parameter of a command; of a list, None is that it is not given."""
    if isinstance(option, Own):
        annotation, default = option.annotation, option.default
    else:
        annotation, default = _annotation(option), None if _is_list(option) else option.default
    return inspect.Parameter(
        _name(field, option), inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
    )
