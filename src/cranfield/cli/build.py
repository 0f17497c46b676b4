"""Makes a command of typer from a function: options of its blocks, names in the place of paths, its report on the terminal."""

from __future__ import annotations

import functools
import inspect
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

import typer
from annotated_types import BaseMetadata, GroupedMetadata

from cranfield.app.command import Exit, Fields, Output, Report, RunNames, note
from cranfield.base.errors import CranfieldError, UsageError
from cranfield.base.words import and_list
from cranfield.cli import registries
from cranfield.cli.ending import handled, note_stale, present, report_error, warning_once_of_stale_runs
from cranfield.evaluation.options.blocks import (
    SET_OPTIONS,
    CollectOptions,
    CompareOptions,
    DifferenceOptions,
    LargeOptions,
    Limits,
    ScoringOptions,
    TestSetOptions,
)
from cranfield.evaluation.options.declaration import CHOICES, Argument, Declared, Option, declared

if TYPE_CHECKING:
    from cranfield.app.loading import SetOverrides
    from cranfield.app.named_runs import Project
    from cranfield.model import TestSet


TESTSETS = ("testset", "testsets", "old", "new")
"""Arguments of commands that are test sets."""
CONFIG_HELP = "Configuration file whose systems and test sets can be given by name; default: cranfield.yaml in this folder or a parent folder."
SAME_CONFIG_HELP = "Same as CONFIG; accepted by every command."

LOG_ENDING = ".log.jsonl"
"""Ending of the log that `run` writes beside each run."""


def resolve_testsets(kwargs: dict[str, Any], config: Path | None) -> None:
    """Put the path of a test set in the place of its name."""

    def resolved(given: Any) -> Any:
        from cranfield.formats.io.files import is_there

        if not isinstance(given, Path) or is_there(given):
            return given
        from cranfield.app.loading import named_testset

        return named_testset(given, config)

    for name in TESTSETS:
        if name in kwargs:
            given = kwargs[name]
            kwargs[name] = [resolved(each) for each in given] if isinstance(given, list) else resolved(given)


def resolve_runs(kwargs: dict[str, Any], parameters: Sequence[str], config: Path | None) -> None:
    """Put the paths of saved runs in the place of the names of systems, and say on stderr which runs they are."""
    names = [spec for name in parameters for spec in _specs(kwargs.get(name)) if _may_be_name(spec)]
    if not names:
        return
    from cranfield.app.named_runs import Project

    project = Project.find(config)
    if project is None:
        return
    project.look_up(list(dict.fromkeys(map(_place, names))))
    testset = kwargs.get("testset")
    _note_hidden(project, [testset, *(spec for name in parameters for spec in _specs(kwargs.get(name)))])
    found: dict[str, Path] = {}
    for spec in names:
        system = _place(spec)
        if project.is_system(system):
            set_name, path = project.run_of(system, testset)
            found[system] = path
            changed = list(project.stale(system, set_name, path))
            if changed:
                note_stale(system, changed)
        elif not Path(system).suffix:
            raise project.unknown(Path(system))
    for name in parameters:
        if kwargs.get(name) is not None:
            kwargs[name] = _replaced(kwargs[name], found)
    if found:
        note(f"note: {and_list([f'{name} is {path}' for name, path in found.items()])}")


def _note_hidden(project: Project, given: Sequence[object]) -> None:
    """Say on stderr which paths have the name of a system: the path is taken."""
    for path in [str(each) for each in given if each is not None]:
        if path in project.config.systems and Path(path).exists():
            note(f"note: {path} is read as a path, although {project.path} has a system of that name")


def runs_of_systems(specs: Sequence[str], config: Path | None = None) -> tuple[list[str], TestSet, Path | None] | None:
    """The paths of the saved runs of systems, their test set and its file (None: with other judgments), where all are names of systems; None elsewhere.

    Args:
        specs: as given.
        config: of the project; None: the nearest.
    """
    from cranfield.app.named_runs import Project

    project = Project.find(config)
    if project is None or not all(project.is_system(spec) for spec in specs):
        return None
    from cranfield.app.experiment import load_configured
    from cranfield.app.loading import options_of, with_held_out

    runs: dict[str, Any] = {"runs": list(specs)}
    resolve_runs(runs, ("runs",), config)
    name = project.only_set(specs)
    chosen = project.config.sets[name]
    path = project.config.folder / chosen.path if chosen.options.given.get("qrels") is None else None
    given = options_of(chosen.options, project.config.folder, with_held_out(chosen.options))
    return runs["runs"], load_configured(project.config, name, given, allow_drift=True), path


def _specs(value: object) -> Iterator[str]:
    """The runs of a parameter: a path, `NAME=FILE`, or several of them."""
    if isinstance(value, str | Path):
        yield str(value)
    elif isinstance(value, list | tuple):
        yield from map(str, value)


def _place(spec: str) -> str:
    """`FILE` of `NAME=FILE`."""
    return spec.partition("=")[2] or spec


def _may_be_name(spec: str) -> bool:
    from cranfield.formats.io.files import is_there

    if is_there(Path(spec)):
        return False
    from cranfield.app.loading import can_be_name

    return can_be_name(Path(_place(spec)))


def _replaced(value: Any, found: Mapping[str, Path]) -> Any:
    """The runs of a parameter, with paths in the place of names."""
    if isinstance(value, list | tuple):
        return type(value)(_replaced(part, found) for part in value)
    from cranfield.formats.io.files import is_there

    path = found.get(_place(str(value)))
    if path is None or is_there(Path(value)):
        return value
    return path if isinstance(value, Path) else str(value).removesuffix(_place(str(value))) + str(path)


def with_config_testset(command: Any, context: Any, arguments: list[str]) -> list[str]:
    """The arguments of a command with the test set of the config before them, and its settings, where a run stands first.

    A setting that the arguments give too is left out.

    Args:
        command: of typer.
        context: its context.
        arguments: as given.

    Raises:
        UsageError: the config has several test sets.
    """
    names: RunNames | None = getattr(command.callback, "run_names", None)
    testset = next((parameter for parameter in command.params if parameter.name == "testset"), None)
    if names is not None and not context.resilient_parsing:
        arguments = _without_logs(arguments)
    if names is None or testset is None or context.resilient_parsing:
        return arguments
    given, _, _ = command.make_parser(context).parse_args(args=list(arguments))
    is_option = testset.param_type_name == "option"
    if not is_option and all(
        each.param_type_name == "option" for each in command.params if each.name in names.parameters
    ):
        return arguments
    runs = _runs_without_testset(command, given, names, is_option=is_option)
    names_of_systems = [_place(run) for run in (runs if is_option else runs[:1]) if _may_be_name(run)]
    if not names_of_systems:
        return arguments
    from cranfield.app.named_runs import Project

    config = given.get("project")
    project = Project.find(Path(config) if isinstance(config, str) else None)
    if project is not None:
        project.look_up(names_of_systems)
    systems = [] if project is None else [run for run in map(_place, runs) if project.is_system(run)]
    if project is None or not systems or not (is_option or _is_run(project, runs[0])):
        return arguments
    from cranfield.app.rescoring import scoring_words, testset_words

    set_name = project.only_set(systems)
    words = (
        scoring_words(project.config, set_name, many=len(runs) > 2)
        if names.scored
        else testset_words(project.config, set_name)
    )
    settings = [word for pair in _accepted(words, command, given) for word in pair]
    path = project.path_of(set_name)
    note(f"note: from {project.path}: {shlex.join([path, *settings])}")
    return [*settings, *(["--testset", path] if is_option else [path]), *arguments]


def _without_logs(arguments: list[str]) -> list[str]:
    """The arguments without the logs of runs that are among them, which a pattern such as `runs/*.jsonl` names too."""
    given = set(arguments)
    return [
        word
        for word in arguments
        if not (
            word.endswith(LOG_ENDING) and f"{word.removesuffix(LOG_ENDING)}.jsonl" in given and Path(word).is_file()
        )
    ]


def _is_run(project: Project, first: str) -> bool:
    """Whether the first argument, where a test set would stand, is a run: the name of a system, and of no test set."""
    return project.is_system(first) and not project.is_testset(Path(first))


def _runs_without_testset(command: Any, given: Mapping[str, Any], names: RunNames, *, is_option: bool) -> list[str]:
    """The runs of a call that gives no test set; none where it gives one as an option."""
    if is_option:
        runs = [] if _specs_of(given.get("testset")) else [given.get(name) for name in names.parameters]
        return [spec for value in runs for spec in _specs_of(value)]
    values = [_specs_of(given.get(each.name)) for each in command.params if each.param_type_name == "argument"]
    every = [spec for value in values for spec in value]
    takes_more = any(each.nargs == -1 for each in command.params if each.name in names.parameters)
    return every if takes_more else every[: len(names.parameters)]


def _specs_of(value: object) -> list[str]:
    return list(_specs(value))


def _accepted(words: Sequence[tuple[str, ...]], command: Any, given: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """The settings that a command has an option for, and that were not given; of one measure, the primary one."""
    options = {spelling: each for each in command.params for spelling in each.opts if each.param_type_name == "option"}
    measures = options.get("-m")
    if measures is not None and not measures.multiple:
        chosen = [*(pair for pair in words if pair[0] == "--primary"), *(pair for pair in words if pair[0] == "-m")][:1]
        words = [*(("-m", pair[1]) for pair in chosen), *(pair for pair in words if pair[0] not in {"-m", "--primary"})]
    for pair in words:
        option = options.get(pair[0])
        if option is not None and not _is_given(given.get(option.name)):
            yield pair


def _is_given(value: object) -> bool:
    return value is True or bool(_specs_of(value))


NAMES: Mapping[str, Callable[[], list[str]]] = {
    "measures": registries.measures,
    "run_formats": registries.run_formats,
    "testset_formats": registries.testset_formats,
    "verdicts": registries.verdicts,
    **{name: choices.names for name, choices in CHOICES.items()},
}
"""Names that an option takes, for completion."""


def parameter_of(option: Declared) -> str:
    """Name of the parameter of a command: two blocks may have an option of one name, under two flags."""
    return option.option.flag.removeprefix("--").replace("-", "_") or option.name


def _is_list(option: Declared) -> bool:
    """Whether the command line writes it as texts that are repeated."""
    return get_origin(option.bare) in {Sequence, Mapping, tuple} or is_dataclass(option.bare)


def _kind(option: Declared) -> Any:
    """What typer reads of it."""
    bare = option.bare
    if _is_list(option):
        return list[str]
    if get_origin(bare) is Literal and option.option.metavar:  # its help says the choices, and the block checks them
        return type(get_args(bare)[0])
    return str if get_origin(bare) in {Union, UnionType} else bare  # a name, or the object itself


def _of_typer(option: Option, flag: str, limits: Mapping[str, Any], kind: Any) -> Any:
    """An option or an argument as typer has it."""
    is_number = kind in {int, float}
    more: dict[str, Any] = {
        "metavar": option.metavar or None,
        "help": option.help,
        "min": limits.get("ge") if is_number else None,
        "max": limits.get("le") if is_number else None,
        "autocompletion": NAMES.get(option.choices),
        "envvar": option.env or None,
        "show_default": option.shows_default,
        "parser": None if option.parse is None else _parser(option.parse),
        "callback": _refuse_planted_folder if option.refuses_link else None,
    }
    if isinstance(option, Argument):
        return typer.Argument(**more)
    spellings = [option.short] if option.short == flag[1:] else [option.short, flag]  # `-k` alone, not `--k`
    return typer.Option(*filter(None, spellings), **more)


def _parser(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        try:
            return parse(text)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from None

    return read


def _refuse_planted_folder(context: typer.Context, value: Path) -> Path:
    """A folder that the call does not name is no link, which a change may have put there."""
    source = context.get_parameter_source("out")
    if source is not None and source.name == "DEFAULT" and value.is_symlink():
        hint = f"remove it, or pass --out {value} if the link is intended"
        raise UsageError("this is a symbolic link", path=str(value), expected="a folder", hint=hint)
    return value


def _parsers() -> Mapping[str, Callable[[list[str]], object]]:
    """Option that is written as a list of texts to what reads them."""
    from cranfield.app.loading import databases_of
    from cranfield.evaluation.confusion import parse_pairs
    from cranfield.evaluation.evidence.inspection import parse_settings
    from cranfield.evaluation.options.blocks import parse_rule

    return {
        "columns": _columns,
        "confusion": parse_pairs,
        "databases": databases_of,
        "evidence": parse_settings,
        "latency": parse_rule,
        "map": _mapped_fields,
        "strata": tuple,
        "stratum": tuple,
    }


def _columns(pairs: Sequence[str]) -> dict[str, str]:
    return _pairs("--columns", pairs, "ROLE=NAME, as in score=bm25")


def _mapped_fields(pairs: Sequence[str]) -> dict[str, str]:
    return _pairs("--map", pairs, "KEY=PATH, as in text=question")


def _pairs(option: str, pairs: Sequence[str], expected: str) -> dict[str, str]:
    unclear = [pair for pair in pairs if "=" not in pair]
    if unclear:
        raise UsageError(f"{option} is {unclear[0]!r}", expected=expected)
    return dict(pair.split("=", 1) for pair in pairs)


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


class OptionGroup(NamedTuple):
    """Options that become one value."""

    options: Mapping[str, Declared]
    """By field of the value."""
    build: Callable[[dict[str, Any]], object]
    heading: str = "Options"
    """In help that is long."""

    def only(self, names: Collection[str]) -> OptionGroup:
        """The group with some of its options."""
        return self._replace(options={name: option for name, option in self.options.items() if name in names})


def _of_command(block: type) -> dict[str, Declared]:
    return {name: option for name, option in declared(block).items() if "command" in option.option.places}


LIMITS = ("max_failed_share", "min_judged_share")
_TESTSET, _SCORING, _LIMITS = _of_command(TestSetOptions), _of_command(ScoringOptions), _of_command(Limits)
_NO_CACHE = Declared("no_cache", bool, Option("Do not use the cache of large TREC runs."), (), default=False)
_QUIET = Declared(
    "quiet", bool, Option("Show no progress; failures are listed at the end.", short="-q"), (), default=False
)
_OF_RUNS = {"no_cache": _NO_CACHE, "evidence": _LIMITS["evidence"]}
GROUPS: Mapping[str, OptionGroup] = {
    "options": OptionGroup(_TESTSET, lambda values: _block(TestSetOptions, values), "Test set"),
    "overrides": OptionGroup(
        {
            **SET_OPTIONS,
            "keep_going": _of_command(CollectOptions)["keep_going"],
            "quiet": _QUIET,
        },
        _overrides,
        "Test set",
    ),
    "scoring": OptionGroup({**_SCORING, **_OF_RUNS}, _scoring, "Scoring"),
    "scores": OptionGroup(
        {name: option for name, option in _SCORING.items() if name not in {"confusion", "latency"}} | dict(_OF_RUNS),
        _scoring,
        "Scoring",
    ),
    "compare": OptionGroup(
        _of_command(CompareOptions) | {name: _LIMITS[name] for name in LIMITS}, _compare, "Statistics"
    ),
    "differing": OptionGroup(_of_command(DifferenceOptions), lambda values: _block(DifferenceOptions, values)),
    "large": OptionGroup(declared(LargeOptions), lambda values: _block(LargeOptions, values), "Run files of any size"),
    "output": OptionGroup(declared(Output), lambda values: Output(**values), "Output"),
}
"""Keyword of a command to the group that it takes."""


def command_of(function: Callable[..., Report | Iterable[Report | CranfieldError] | None]) -> Callable[..., None]:
    """A command of typer: a parameter for each option of the function and of its blocks, and what is done with its report.

    A parameter that is called as a row of `GROUPS` takes the options of that block: `options` are those of a test set,
    `scoring` those of runs, `scores` the same where no answers are reported, `compare` those of a comparison, `differing`
    those of one without judgments, `large` those of runs that are read in parts, `overrides` those that take the place of the
    block `options` of a config; `fields` takes some of them. A function that returns a report has the options of `Output`, and need not have the parameter.
    """
    signature = inspect.signature(function)
    # The classes of some blocks are imported when a command runs.
    blocks = ("TestSetOptions", "ScoringOptions", "CompareOptions", "SetOverrides", "LargeOptions", "Output", "Report")
    hints = get_type_hints(function, localns=dict.fromkeys(blocks, object), include_extras=True)
    has_report = "Report" in str(signature.return_annotation)
    groups: dict[str, OptionGroup] = {}
    parameters: list[inspect.Parameter] = []
    for name, parameter in signature.parameters.items():
        hint = hints[name]
        marks = getattr(hint, "__metadata__", ())
        if name in GROUPS and not any(isinstance(mark, Option) for mark in marks):
            some = next((mark for mark in marks if isinstance(mark, Fields)), None)
            groups[name] = GROUPS[name] if some is None else GROUPS[name].only(some.names)
            parameters += [_parameter(option) for option in groups[name].options.values()]
        else:
            parameters.append(parameter.replace(annotation=_own_annotation(name, hint)))
    takes_output = "output" in groups
    if has_report and not takes_output:
        groups["output"] = GROUPS["output"]
        parameters += [_parameter(option) for option in groups["output"].options.values()]
    runs = getattr(function, "run_names", None)
    config = signature.parameters.get("config")
    config_is_argument = any(isinstance(mark, Argument) for mark in getattr(hints.get("config"), "__metadata__", ()))
    if (runs is not None and config is None) or config_is_argument:
        text = SAME_CONFIG_HELP if config_is_argument else CONFIG_HELP
        option = Annotated[Path | None, typer.Option("--config", metavar="FILE", help=text)]
        parameters.append(inspect.Parameter("project", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=option))

    @functools.wraps(function)
    def command(**kwargs: Any) -> None:
        project = kwargs.get("project") if runs is None or config is not None else kwargs.pop("project")
        if config_is_argument:
            kwargs.pop("project")
            kwargs["config"] = _one_config(config, kwargs["config"], project)
        resolve_testsets(kwargs, project)
        with warning_once_of_stale_runs():
            if runs is not None:
                resolve_runs(kwargs, runs.parameters, kwargs["config"] if config is not None else project)
            values: dict[str, Any] = {
                name: group.build({field: kwargs.pop(parameter_of(each)) for field, each in group.options.items()})
                for name, group in groups.items()
            }
            output = values.get("output", Output()) if takes_output else values.pop("output", Output())
            try:
                _present_all(function(**kwargs, **values), output, command)
            except Exit as end:
                raise typer.Exit(end.status) from None

    order = sorted(parameters, key=lambda parameter: parameter.kind)
    command.__signature__ = signature.replace(parameters=order, return_annotation=None)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in order}
    command.headings = {  # type: ignore[attr-defined]
        parameter_of(option): group.heading for group in groups.values() for option in group.options.values()
    }
    return handled(command)


def _present_all(
    result: Report | Iterable[Report | CranfieldError] | None, output: Output, command: Callable[..., object]
) -> None:
    """Present the reports of a command as they come, errors among them that it goes on after."""
    for each in () if result is None else [result] if isinstance(result, Report) else result:
        if isinstance(each, CranfieldError):
            report_error(each, command)
        else:
            present(each, output)


def _one_config(parameter: inspect.Parameter | None, given: Path, project: Path | None) -> Path:
    """The config that is given by its position or by `--config`."""
    if project is None:
        return given
    if parameter is not None and given not in {parameter.default, project}:
        raise UsageError("the config is given twice", expected="CONFIG or --config", got=f"{given} and {project}")
    return project


def _own_annotation(name: str, hint: Any) -> Any:
    """The annotation of an option that is in no block, as typer has it."""
    marks = getattr(hint, "__metadata__", ())
    option = next((mark for mark in marks if isinstance(mark, Option)), None)
    if option is None:
        return hint
    bounds = tuple(mark for mark in marks if isinstance(mark, BaseMetadata | GroupedMetadata))
    found = Declared(name, get_args(hint)[0], option, bounds, default=None)
    kind = _kind(found) if get_origin(found.bare) in {Union, UnionType} else found.kind
    return Annotated[kind, _of_typer(option, found.flag, found.limits, found.bare)]


def _parameter(option: Declared) -> inspect.Parameter:
    """A parameter of a command; of a list, None is that it is not given."""
    kind = _kind(option)
    is_open = _is_list(option) or option.default is None
    limits = {"ge": option.limits.get("ge")} if kind is int else {}  # the block checks the others
    return inspect.Parameter(
        parameter_of(option),
        inspect.Parameter.KEYWORD_ONLY,
        default=None if _is_list(option) else option.default,
        annotation=Annotated[kind | None if is_open else kind, _of_typer(option.option, option.flag, limits, kind)],
    )
