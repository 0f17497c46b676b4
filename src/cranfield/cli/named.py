"""Names in the place of paths: of a test set its name, of a run the name of its system; settings of the config with them."""

from __future__ import annotations

import functools
import inspect
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec, TypeVar, cast

import typer
from typer.models import ArgumentInfo

from cranfield.cli.stale import collecting_stale, note_stale
from cranfield.errors import UsageError
from cranfield.words import and_list

if TYPE_CHECKING:
    from cranfield.app.named_runs import Project
    from cranfield.model import TestSet

P = ParamSpec("P")
R = TypeVar("R")

TESTSETS = ("testset", "testsets", "old", "new")
"""Arguments of commands that are test sets."""
CONFIG_HELP = (
    "Configuration file whose systems and test sets are known by name; default: cranfield.yaml, here or above."
)
ProjectOption = Annotated[Path | None, typer.Option("--config", metavar="FILE", help=CONFIG_HELP)]

SameConfigOption = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="The same as CONFIG; every command takes it so.")
]

LOG_ENDING = ".log.jsonl"
"""Of the log that `run` writes beside each run."""


@dataclass(frozen=True, slots=True)
class RunNames:
    """Which parameters of a command are runs, so that the name of a system may stand there."""

    parameters: tuple[str, ...]
    scored: bool = True
    """Whether the settings of scoring come from the config, where the test set does; else those of the test set alone."""


def takes_runs(*parameters: str, scored: bool = True) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let the name of a system stand for its saved run in some parameters of a command, and give it `--config` where it takes no config.

    Args:
        parameters: names of the parameters that are paths of runs.
        scored: as of `RunNames`.
    """

    def decorate(command: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(command, eval_str=True)
        has_config = "config" in signature.parameters

        @functools.wraps(command)
        def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
            config = cast("Path | None", kwargs["config"] if has_config else kwargs.pop("project", None))
            with collecting_stale():
                _resolve_runs(kwargs, parameters, config)
                return command(*args, **kwargs)

        option = inspect.Parameter("project", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=ProjectOption)
        every = [*signature.parameters.values(), *([] if has_config else [option])]
        wrapper.__signature__ = signature.replace(parameters=every)  # type: ignore[attr-defined]
        wrapper.__annotations__ = {parameter.name: parameter.annotation for parameter in every}
        wrapper.run_names = RunNames(parameters, scored)  # type: ignore[attr-defined]
        return wrapper

    return decorate


def with_config_option(command: Callable[P, R]) -> Callable[P, R]:
    """The command with `--config FILE` beside its argument CONFIG, so that every command takes the config by one option."""
    signature = inspect.signature(command, eval_str=True)
    argument = signature.parameters.get("config")
    if argument is None or not any(isinstance(each, ArgumentInfo) for each in _metadata(argument)):
        return command

    @functools.wraps(command)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        given = kwargs.pop("project", None)
        if given is not None:
            if kwargs["config"] not in {argument.default, given}:
                raise UsageError(
                    "the config is given twice", expected="CONFIG or --config", got=f"{kwargs['config']} and {given}"
                )
            kwargs["config"] = given
        return command(*args, **kwargs)

    option = inspect.Parameter("project", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=SameConfigOption)
    every = [*signature.parameters.values(), option]
    wrapper.__signature__ = signature.replace(parameters=every)  # type: ignore[attr-defined]
    wrapper.__annotations__ = {parameter.name: parameter.annotation for parameter in every}
    return wrapper


def _metadata(parameter: inspect.Parameter) -> tuple[Any, ...]:
    return getattr(parameter.annotation, "__metadata__", ())


def with_named_testsets(command: Callable[P, R]) -> Callable[P, R]:
    """The command with the path of a test set in the place of its name."""

    @functools.wraps(command)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        _resolve_testsets(kwargs, cast("Path | None", kwargs.get("project")))
        return command(*args, **kwargs)

    return wrapper


def _resolve_testsets(kwargs: dict[str, Any], config: Path | None) -> None:
    def resolved(given: Any) -> Any:
        if not isinstance(given, Path) or given.exists():
            return given
        from cranfield.app.loading import named_testset

        return named_testset(given, config)

    for name in TESTSETS:
        if name in kwargs:
            given = kwargs[name]
            kwargs[name] = [resolved(each) for each in given] if isinstance(given, list) else resolved(given)


def _resolve_runs(kwargs: dict[str, Any], parameters: Sequence[str], config: Path | None) -> None:
    """Put the paths of saved runs in the place of the names of systems, and say on stderr which runs they are."""
    names = [spec for name in parameters for spec in _specs(kwargs.get(name)) if _may_be_name(spec)]
    if not names:
        return
    from cranfield.app.named_runs import Project

    project = Project.find(config)
    if project is None:
        return
    testset = kwargs.get("testset")
    _note_hidden(project, [testset, *(spec for name in parameters for spec in _specs(kwargs.get(name)))])
    found: dict[str, Path] = {}
    for spec in names:
        system = _place(spec)
        if project.is_system(system):
            set_name, path = project.run_of(system, testset)
            found[system] = path
            _note_stale(project, system, set_name, path)
        elif not Path(system).suffix:
            raise project.unknown(Path(system))
    for name in parameters:
        if kwargs.get(name) is not None:
            kwargs[name] = _replaced(kwargs[name], found)
    if found:
        typer.echo(f"note: {and_list([f'{name} is {path}' for name, path in found.items()])}", err=True)


def _note_hidden(project: Project, given: Sequence[object]) -> None:
    """Say on stderr which paths have the name of a system: the path is taken."""
    for path in [str(each) for each in given if each is not None]:
        if path in project.config.systems and Path(path).exists():
            typer.echo(f"note: {path} is taken as a path, and is a system of {project.path} too", err=True)


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
    _resolve_runs(runs, ("runs",), config)
    name = project.only_set(specs)
    chosen = project.config.sets[name]
    path = project.config.folder / chosen.path if chosen.options.given.get("qrels") is None else None
    given = options_of(chosen.options, project.config.folder, with_held_out(chosen.options))
    return runs["runs"], load_configured(project.config, name, given, allow_drift=True), path


def _note_stale(project: Project, system: str, set_name: str, path: Path) -> None:
    changed = list(project.stale(system, set_name, path))
    if changed:
        note_stale(system, changed)


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
    if Path(spec).exists():
        return False
    from cranfield.app.loading import can_be_name

    return can_be_name(Path(_place(spec)))


def _replaced(value: Any, found: Mapping[str, Path]) -> Any:
    """The runs of a parameter, with paths in the place of names."""
    if isinstance(value, list | tuple):
        return type(value)(_replaced(part, found) for part in value)
    path = found.get(_place(str(value)))
    if path is None or Path(value).exists():
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
    if not any(map(_may_be_name, runs if is_option else runs[:1])):
        return arguments
    from cranfield.app.named_runs import Project

    config = given.get("project")
    project = Project.find(Path(config) if isinstance(config, str) else None)
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
    typer.echo(f"note: from {project.path}: {shlex.join([path, *settings])}", err=True)
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
