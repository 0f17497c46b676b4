"""`cranfield snapshot`: the first results of every query as a file for git, and what changed since it was accepted."""

from __future__ import annotations

import operator
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from cranfield.app.evaluate import score
from cranfield.app.experiment import AnswerCache, Experiment, prepare, prepare_all, require_one_set
from cranfield.app.history import local_folder
from cranfield.app.loading import CONFIG, NO_OVERRIDES, SetOverrides, load_file
from cranfield.base.errors import CranfieldError, Problem, UsageError
from cranfield.config import load_config
from cranfield.evaluation.options.blocks import ScoringOptions
from cranfield.evaluation.options.declaration import command_words
from cranfield.evaluation.snapshot import (
    DEPTH,
    SnapshotAction,
    SnapshotResult,
    SnapshotSet,
    SnapshotStatus,
    form_of,
    query_snapshots,
    snapshot_changes,
    snapshot_text,
)
from cranfield.evaluation.testset.split import evaluated_part
from cranfield.formats.io.files import decode, is_there, read_bytes, refusal, write_text
from cranfield.model import Run, TestSet

DEFAULT = Path("cranfield-snapshot.txt")
FOLDER = "snapshot"
"""Folder of the collected runs, in `.cranfield/` next to the config."""


@dataclass(frozen=True)
class SnapshotOptions:
    """What is written, and where."""

    k: int | None = None
    """Results of each query; None: as many as the file has, or `DEPTH`."""
    scores: bool = False
    """Also True where the file has them."""
    out: Path | None = None
    """None: `DEFAULT`, with the names of test set and system where the config has several."""
    action: SnapshotAction = SnapshotAction.WRITE


@dataclass(frozen=True)
class _Target:
    """One file: of a test set and a system."""

    path: Path
    command: str
    """Writes the file for the first time."""
    k: int
    scores: bool
    kept: str | None
    """Its text; None: there is no file."""


def snapshot_run(
    testset: Path,
    run: Path,
    wanted: SnapshotOptions,
    *,
    testset_format: str | None = None,
    scoring: ScoringOptions | None = None,
    overrides: SetOverrides = NO_OVERRIDES,
) -> tuple[SnapshotSet, tuple[Path, ...]]:
    """Write the snapshot of a run file, or compare it with the file that is there.

    Args:
        testset: a test set, or a list of queries without judgments.
        run: the results.
        wanted: what is written.
        testset_format: of the test set, where the content does not tell.
        scoring: how the run is read.
        overrides: what is done to the test set, and the depth.

    Returns:
        The result, and the files that were written.

    Raises:
        InputError: test set or run, with all their problems.
        UsageError: there is no file to compare with, or it cannot be written.
    """
    scoring = replace(scoring or ScoringOptions(), depth=overrides.depth)
    words = [_word(testset), _word(run), *(["--testset-format", testset_format] if testset_format else [])]
    words += [word for pair in command_words(scoring, {"convention", "duplicates", "run_format"}) for word in pair]
    targets, problems = _targets([((), "")], words, wanted, overrides)
    problems += [] if is_there(run) else [refusal(run, FileNotFoundError())]
    with _joined(problems):
        queries = load_file(testset, testset_format, overrides.options, judged=False)
        queries = queries if overrides.options.part is not None else evaluated_part(queries)
    return _finish([_compared(targets[0], queries, run, scoring, wanted)], targets, wanted)


def snapshot_systems(
    config_path: Path,
    wanted: SnapshotOptions,
    *,
    systems: Sequence[str] = (),
    testset: str | None = None,
    allow_drift: bool = False,
    cache: AnswerCache = "use",
    overrides: SetOverrides = NO_OVERRIDES,
) -> tuple[SnapshotSet, tuple[Path, ...]]:
    """Send every query to the systems of a config; write a snapshot of each, or compare it with the file that is there.

    Args:
        config_path: cranfield.yaml.
        wanted: what is written.
        systems: names of those that are queried; none: all of the config.
        testset: name of the only test set; None: all of the config.
        allow_drift: accept a test set that no longer matches its repository.
        cache: what is done with the answers of earlier runs.
        overrides: options of the test set, in place of those of the config.

    Returns:
        The result, and the files that were written.

    Raises:
        InputError: config or test set, with all their problems.
        UsageError: there is no file to compare with, or it cannot be written.
        PreflightError: a check failed; no query was sent.
        Interrupted: the same call continues where it stopped.
    """
    config = load_config(config_path)
    require_one_set(config, overrides)
    names = list(config.sets) if testset is None else [config.set_name(testset)]
    of_set = {name: list(dict.fromkeys(systems or config.sets[name].systems or config.systems)) for name in names}
    pairs = [(name, system) for name in names for system in of_set[name]]
    words = [] if config_path == Path(CONFIG) else [_word(config_path)]
    words += ["--allow-drift"] if allow_drift else []
    labels = []
    for name, system in pairs:
        own = [*(["--testset", name] if len(config.sets) > 1 else ())]
        own += ["--system", system] if len(config.systems) > 1 else []
        parts = [*([name] if len(config.sets) > 1 else ()), *([system] if len(config.systems) > 1 else ())]
        labels.append((tuple(own), "-".join(parts)))
    targets, problems = _targets(labels, words, wanted, overrides)
    by_pair = dict(zip(pairs, targets, strict=True))

    def prepare_set(name: str) -> Experiment:
        made = prepare(
            config, name, of_set[name], allow_drift=allow_drift, cache=cache, overrides=overrides, judged=False
        )
        return replace(made, k=max(made.k, *(by_pair[name, system].k for system in of_set[name])))

    found: list[tuple[SnapshotResult, str]] = []
    with ExitStack() as stack:
        with _joined(problems):
            check = operator.attrgetter("checks" if not problems else "testset")  # nothing is started in vain
            experiments = stack.enter_context(prepare_all(prepare_set, names, check))
        folder = local_folder(config.folder) / FOLDER
        for experiment in experiments:
            with experiment.collected(folder / experiment.name, root=config.folder) as runs:
                for system, run in runs.items():
                    target = by_pair[experiment.name, system]
                    found.append(_compared(target, experiment.testset, run, experiment.scoring, wanted))
    return _finish(found, targets, wanted)


@contextmanager
def _joined(problems: Sequence[Problem]) -> Iterator[None]:
    """Report the problems of the files together with those of config and test set."""
    try:
        yield
    except CranfieldError as error:
        error.problems = tuple(dict.fromkeys((*problems, *error.problems)))
        raise
    if problems:
        raise UsageError(problems)


def _targets(
    labels: Sequence[tuple[tuple[str, ...], str]],
    words: Sequence[str],
    wanted: SnapshotOptions,
    overrides: SetOverrides,
) -> tuple[list[_Target], list[Problem]]:
    """The files, each with the command that writes it and the text that it has; and what is wrong with them.

    Args:
        labels: for each file the words of the command that select it, and the end of its name.
        words: of the command, for all.
        wanted: what is written.
        overrides: of the call.
    """
    targets, problems = [], []
    for own, label in labels:
        path = wanted.out or DEFAULT
        if label and (wanted.out is None or len(labels) > 1):
            path = path.with_stem(f"{path.stem}-{label}")
        usual = DEFAULT.with_stem(f"{DEFAULT.stem}-{label}") if label else DEFAULT
        command = ["cranfield", "snapshot", *words, *own]
        kept, (k, scores), problem = _kept(path)
        k, scores = wanted.k or k, wanted.scores or scores
        command += [] if k == DEPTH else ["-k", str(k)]
        command += ["--scores"] if scores else []
        command += [] if path == usual else ["--out", _word(path)]
        command += [word for pair in _option_words(overrides) for word in pair]
        written = shlex.join(command)
        if kept is None and problem is None and wanted.action is SnapshotAction.CHECK:
            hint = f"`{written}` writes it"
            problem = Problem("there is no snapshot to compare with", path=str(path), hint=hint)
        problems += [] if problem is None else [problem]
        targets.append(_Target(path, written, k, scores, kept))
    return targets, problems


def _option_words(overrides: SetOverrides) -> Iterator[tuple[str, ...]]:
    """The options of a test set that are given, as the command line takes them."""
    from cranfield.evaluation.options.blocks import SET_OPTIONS

    for name, option in SET_OPTIONS.items():
        value = overrides.depth if name == "depth" else getattr(overrides.options, name)
        if isinstance(value, Mapping):
            yield from ((option.flag, f"{key}={place}") for key, place in value.items())
        elif value is True:
            yield (option.flag,)
        elif value is not None and value is not False:
            for each in value if isinstance(value, tuple | list) else (value,):
                yield option.flag, _word(each) if isinstance(each, Path) else str(each)


def _kept(path: Path) -> tuple[str | None, tuple[int, bool], Problem | None]:
    """The text of a file, None where there is none; how many results it has, and whether scores; and what is wrong with it."""
    usual = (DEPTH, False)
    try:
        if not path.exists():
            is_folder = path.parent.is_dir()
            return None, usual, None if is_folder else Problem("there is no such folder", path=str(path.parent))
        text = decode(read_bytes(path, UsageError), path, UsageError)
        return text, form_of(text, str(path)), None
    except CranfieldError as error:
        return None, usual, replace(error.problems[0], hint=error.problems[0].hint or "--out names another file")
    except OSError as error:
        return None, usual, refusal(path, error)


def _word(path: Path) -> str:
    """A path relative to the working folder, so that it is the same on every machine."""
    if not path.is_absolute():
        return path.as_posix()
    try:
        return Path(os.path.relpath(path)).as_posix()
    except ValueError:  # another drive of Windows
        return path.name


def _compared(
    target: _Target, testset: TestSet, run: Run | Path, scoring: ScoringOptions, wanted: SnapshotOptions
) -> tuple[SnapshotResult, str]:
    """The snapshot of a run beside the file that is there, and its text."""
    evaluation = score(testset, run, (), replace(scoring, missing="zero", keep=target.k))
    queries = query_snapshots(evaluation, target.k)
    text = snapshot_text(
        queries,
        testset=testset.name,
        system=evaluation.name,
        k=target.k,
        command=f"{target.command} --accept",
        scores=target.scores,
        forbids=bool(testset.forbidden),
    )
    path = target.path.as_posix()
    changes = None if target.kept is None else snapshot_changes(target.kept, text, path=path)
    is_same = changes is not None and changes.is_same
    status = SnapshotStatus.WRITTEN if changes is None else SnapshotStatus.SAME if is_same else SnapshotStatus.DIFFERENT
    if status is SnapshotStatus.DIFFERENT and wanted.action is SnapshotAction.ACCEPT:
        status = SnapshotStatus.ACCEPTED
    result = SnapshotResult(
        testset=testset.name,
        system=evaluation.name,
        path=path,
        k=target.k,
        status=status,
        n_failed=sum(outcome.is_failure for outcome in evaluation.ranking.outcomes),
        changes=changes,
        queries=queries,
    )
    return result, text


def _finish(
    found: Sequence[tuple[SnapshotResult, str]], targets: Sequence[_Target], wanted: SnapshotOptions
) -> tuple[SnapshotSet, tuple[Path, ...]]:
    """Write the files that are new or accepted; of an accepted one whose queries are the same, the header too."""
    kept = {target.path.as_posix(): target.kept for target in targets}
    written = []
    for each, text in found:
        is_new = each.status is SnapshotStatus.WRITTEN
        if (is_new or wanted.action is SnapshotAction.ACCEPT) and kept[each.path] != text:
            path = Path(each.path)
            try:
                write_text(path, [text])
            except OSError as error:
                raise UsageError(refusal(path, error)) from error
            written.append(path)
    return SnapshotSet(snapshots=tuple(each for each, _ in found)), tuple(written)
