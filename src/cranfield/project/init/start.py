"""`cranfield init`: find out what the arguments are, try what can be asked, and write a config that runs."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from cranfield.config import Config, load_config
from cranfield.errors import NoCommonQueryError, Problem, UsageError, shorten
from cranfield.formats.io.files import write_text
from cranfield.formats.testsets.native import write_testset_yaml
from cranfield.model import Query, TestSet
from cranfield.project.init.command_target import command_system
from cranfield.project.init.config_text import SCHEMA_NAME, config_text
from cranfield.project.init.engine_target import database_systems
from cranfield.project.init.files import FoundFile, found_files, written_path
from cranfield.project.init.http_target import SAMPLE_WORD, http_system
from cranfield.project.init.names import BEFORE, unique_names
from cranfield.project.init.starter import head_of, starter_testset
from cranfield.project.init.targets import EXPECTED, targets_of
from cranfield.project.init.testset_choice import ChosenTestSet, choose_testset, known_of, measures_for
from cranfield.project.init.values import Ask, FoundSystem, Target, Trial, take_default
from cranfield.project.schemas import DEFAULT_SCHEMA, schema_named
from cranfield.ranking.stored import read_run_file
from cranfield.systems.collect.collector import require_texts
from cranfield.words import n_of

STARTER_NAME = "testset.yaml"
LARGE_BYTES = 64 * 1024 * 1024
"""Run files of this size and more are not read here."""
K = 10
LARGE_K = 1000
"""Results a query of run files that are not read here: as many as TREC takes."""


@dataclass(frozen=True, slots=True)
class InitResult:
    """What was written, and what was found out."""

    config: Path
    starter: Path | None
    """A test set that was written; None where there was one."""
    written: tuple[Path, ...]
    systems: Mapping[str, FoundSystem]
    testset: ChosenTestSet
    files: tuple[FoundFile, ...]
    is_judged: bool
    """Whether the test set has judgments, so that the first run gives a verdict."""


def init_project(
    arguments: Sequence[str],
    config: Path,
    *,
    ask: Ask = take_default,
    query: str = "",
    headers: Sequence[str] = (),
    force: bool = False,
) -> InitResult:
    """Write a config, its schema, and a starter test set where there is none.

    Args:
        arguments: files, folders, addresses, commands; none: the working folder.
        config: the file to write.
        ask: asks what cannot be found out.
        query: tried first with every system; of a starter the first query.
        headers: `NAME: VALUE`, sent with every request over HTTP; a secret is `{env.VARIABLE}`.
        force: replace an existing config or starter.

    Raises:
        UsageError: an argument is nothing that is known, or a file is there already.
        InputError: a file holds mistakes.
    """
    _refuse_existing(config, force=force)
    folder = config.absolute().parent
    inferred = _inferred(arguments, folder, ask=ask, query=query, headers=headers)
    starter = None if inferred.chosen.keys else config.with_name(STARTER_NAME)
    if starter is not None:
        _refuse_existing(starter, force=force)
    chosen = replace_starter(inferred.chosen, inferred.trial, inferred.systems)
    return _write(config, starter, inferred.systems, chosen, inferred.files)


def config_of(arguments: Sequence[str], folder: Path) -> Config:
    """The config that `init` would write for its arguments, in memory.

    Args:
        arguments: as of `init_project`, a test set with judgments among them.
        folder: that paths in the config are relative to.

    Raises:
        UsageError: an argument is nothing that is known, or there are no judgments.
        InputError: a file holds mistakes.
    """
    inferred = _inferred(arguments, folder)
    if not inferred.chosen.keys:
        hint = "cranfield init writes a starter test set, to be judged"
        raise UsageError("no test set with judgments", expected="qrels, or a file of queries with expected results",
                         got=", ".join(arguments), hint=hint)  # fmt: skip
    return _check(_config_text(inferred.systems, inferred.chosen), folder)


class _Inferred(NamedTuple):
    """What the arguments are."""

    systems: Mapping[str, FoundSystem]
    chosen: ChosenTestSet
    files: Sequence[FoundFile]
    trial: Trial


def _inferred(
    arguments: Sequence[str], folder: Path, *, ask: Ask = take_default, query: str = "", headers: Sequence[str] = ()
) -> _Inferred:
    """Find out what the arguments are, and try the systems among them."""
    targets = targets_of(arguments)
    files = [file for target in targets if target.kind == "path" for file in found_files(target)]
    chosen = choose_testset(files, folder)
    first = (Query("q1", query), *chosen.first()) if query else chosen.first()
    is_queried = [target for target in targets if target.kind != "path" or _needs_query(target, files)]
    if chosen.keys and chosen.testset is not None and is_queried:
        require_texts(chosen.testset)
    trial = Trial(folder, first, known_of(chosen), ask, K, _headers(headers))
    if not trial.queries and any(_needs_query(target, files) for target in targets):
        trial = replace(trial, queries=(Query("q1", ask("A query that finds something?", SAMPLE_WORD)),))
    systems = _named([_with_doubt(system, trial) for system in _systems(targets, files, chosen, trial)])
    if not systems:
        raise UsageError(Problem("no system to evaluate", expected=f"besides the test set, {EXPECTED}",
                                 hint="cranfield init qrels.txt old.run new.run"))  # fmt: skip
    return _Inferred(systems, chosen, files, trial)


def _headers(written: Sequence[str]) -> dict[str, str]:
    found = {}
    for header in written:
        name, colon, value = header.partition(":")
        if not colon or not name.strip() or not value.strip():
            expected = "NAME: VALUE, such as 'Authorization: Bearer {env.TOKEN}'"
            message = f"{{header}} is {shorten(header)}"
            raise UsageError(message, expected=expected, parameters=("header",))
        found[name.strip()] = value.strip()
    return found


def _with_doubt(system: FoundSystem, trial: Trial) -> FoundSystem:
    """The system with a note where no result is one that the test set expects."""
    found = [doc_id for ids in system.ids.values() for doc_id in ids]
    if system.run is not None or not found or not trial.known or trial.known.count(found):
        return system
    note = f"none of its first results is judged or expected; are its ids, such as {found[0]}, those of the test set?"
    return replace(system, notes=(*system.notes, note))


def _needs_query(target: Target, files: Sequence[FoundFile]) -> bool:
    """Whether a system cannot be tried without a query of the test set."""
    is_database = any(file.role == "database" and file.target == target for file in files)
    return target.kind == "command" or is_database


def _systems(
    targets: Sequence[Target], files: Sequence[FoundFile], chosen: ChosenTestSet, trial: Trial
) -> list[FoundSystem]:
    """The systems, in the order of the arguments."""
    found: list[FoundSystem] = []
    for target in targets:
        if target.kind == "command":
            found.append(command_system(target, trial))
        elif target.kind == "url":
            found.append(http_system(target, trial))
        else:
            inside = [file for file in files if file.target == target or file.path.parent == target.path]
            found += [_run_system(file, chosen, trial) for file in inside if file.role == "run"]
            for file in inside:
                if file.role == "database":
                    found += database_systems(file.target, written_path(file.path, trial.folder), trial)
    return found


def _run_system(file: FoundFile, chosen: ChosenTestSet, trial: Trial) -> FoundSystem:
    """A run file, which has to answer queries of the test set."""
    settings = {"run": written_path(file.path, trial.folder)}
    name = file.target.name or _stem(file.path)
    found = FoundSystem(file.target.given, name, settings, file.what, run=file.path)
    if file.path.stat().st_size >= LARGE_BYTES:
        return found
    testset = chosen.testset if chosen.has_judgments or chosen.testset else None
    try:
        run = read_run_file(file.path, testset)
    except NoCommonQueryError as error:
        raise UsageError([replace(problem, path=file.target.given) for problem in error.problems]) from None
    answered = {query_id: [hit.public_id for hit in answer.hits] for query_id, answer in run.answers.items()}
    return replace(found, what=f"{file.what}: {n_of(len(answered), 'queries')}", ids=answered)


def _stem(path: Path) -> str:
    """A file's name without its last ending; the folder's too where the name says nothing."""
    return (
        f"{path.parent.name}-{path.stem}" if path.stem.lower() in {"run", "results"} and path.parent.name else path.stem
    )


def _named(found: Sequence[FoundSystem]) -> dict[str, FoundSystem]:
    """The systems by name; the first is the baseline: the only one whose name is a word for what was before, if there is one."""
    named = dict(zip(unique_names([system.name for system in found]), found, strict=True))
    before = [name for name in named if BEFORE.search(name)]
    return {before[0]: named[before[0]], **named} if len(before) == 1 else named


def replace_starter(chosen: ChosenTestSet, trial: Trial, systems: Mapping[str, FoundSystem]) -> ChosenTestSet:
    """The chosen test set, or the starter where files hold none."""
    if chosen.keys:
        return chosen
    queries = chosen.queries or trial.queries or _queries_of(systems)
    testset = starter_testset(queries, list(systems.values()), chosen.testset)
    return replace(chosen, testset=testset, about=chosen.about or f"a starter: {n_of(len(queries), 'queries')}")


def _queries_of(systems: Mapping[str, FoundSystem]) -> tuple[Query, ...]:
    """The queries that systems were tried with, or that run files answer."""
    tried = dict.fromkeys(text for system in systems.values() if system.run is None for text in system.ids)
    if tried:
        return tuple(Query(f"q{number}", text) for number, text in enumerate(tried, start=1))
    ids = dict.fromkeys(query_id for system in systems.values() for query_id in system.ids)
    if not ids:
        raise UsageError("no query is known", expected="qrels, a test set, or a file of queries")
    return tuple(Query(query_id, query_id) for query_id in ids)


def _write(
    config: Path,
    starter: Path | None,
    systems: Mapping[str, FoundSystem],
    chosen: ChosenTestSet,
    files: Sequence[FoundFile],
) -> InitResult:
    texts: dict[Path, str] = {config.with_name(SCHEMA_NAME): schema_named(DEFAULT_SCHEMA).text}
    if starter is not None and chosen.testset is not None:
        texts[starter] = head_of(chosen.testset) + _testset_text(chosen.testset)
        chosen = replace(chosen, keys={"testset": starter.name})
    texts[config] = _config_text(systems, chosen)
    _check(texts[config])
    for path, text in texts.items():
        write_text(path, [text])
    is_judged = starter is None or chosen.has_judgments
    return InitResult(config, starter, tuple(texts), systems, chosen, tuple(files), is_judged)


def _config_text(systems: Mapping[str, FoundSystem], chosen: ChosenTestSet) -> str:
    return config_text(
        chosen.keys,
        {name: dict(system.settings) for name, system in systems.items()},
        about={"": _sentence(chosen.about), **{name: _sentence(system.what) for name, system in systems.items()}},
        notes={name: system.notes for name, system in systems.items()},
        checks={name: system.checks for name, system in systems.items()},
        k=_depth(systems.values()),
        measures=measures_for(chosen.testset),
    )


def _depth(systems: Iterable[FoundSystem]) -> int:
    """Of run files alone all of their results, or AP and recall would be of the first ten; of a system that is asked, ten."""
    depths = []
    for system in systems:
        if system.run is None:
            return K
        depths.append(max(map(len, system.ids.values())) if system.ids else LARGE_K)
    return max(K, *depths)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _testset_text(testset: TestSet) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, STARTER_NAME)
        write_testset_yaml(testset, path)
        return path.read_text(encoding="utf-8")


def _check(text: str, folder: Path | None = None) -> Config:
    """Read the text as the config that it is meant to be, before a file is made of it; its paths are relative to `folder`."""
    with tempfile.TemporaryDirectory() as made:
        path = Path(made, "cranfield.yaml")
        write_text(path, [text])
        return load_config(path, folder)


def _refuse_existing(path: Path, *, force: bool) -> None:
    if not path.absolute().parent.is_dir():
        raise UsageError("no such folder", path=str(path.parent))
    if path.is_symlink() or path.exists():
        if force and path.is_file():
            return
        hint = "{force} replaces it; {config=FILE} writes another file"
        raise UsageError("the file is there already", path=str(path), hint=hint, parameters=("force", "config"))
