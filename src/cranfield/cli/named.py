"""Names in the place of paths: of a test set its name, of a run the name of its system; settings of the config with them."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cranfield.app.command import RunNames, note
from cranfield.cli.present import note_stale
from cranfield.words import and_list

if TYPE_CHECKING:
    from cranfield.app.named_runs import Project
    from cranfield.model import TestSet

TESTSETS = ("testset", "testsets", "old", "new")
"""Arguments of commands that are test sets."""
CONFIG_HELP = (
    "Configuration file whose systems and test sets are known by name; default: cranfield.yaml, here or above."
)
SAME_CONFIG_HELP = "The same as CONFIG; every command takes it so."

LOG_ENDING = ".log.jsonl"
"""Of the log that `run` writes beside each run."""


def resolve_testsets(kwargs: dict[str, Any], config: Path | None) -> None:
    """Put the path of a test set in the place of its name."""

    def resolved(given: Any) -> Any:
        if not isinstance(given, Path) or given.exists():
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
        note(f"note: {and_list([f'{name} is {path}' for name, path in found.items()])}")


def _note_hidden(project: Project, given: Sequence[object]) -> None:
    """Say on stderr which paths have the name of a system: the path is taken."""
    for path in [str(each) for each in given if each is not None]:
        if path in project.config.systems and Path(path).exists():
            note(f"note: {path} is taken as a path, and is a system of {project.path} too")


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
