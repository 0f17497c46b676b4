"""What a gate gives to CI: JUnit, step summary, comments, and the marker of pytest."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from cranfield.app.experiment import ZERO, Experiment, prepare
from cranfield.app.loading import load
from cranfield.base.errors import Problem, SystemUnderTestError, UsageError, shorten
from cranfield.base.words import join_first
from cranfield.config import Config, load_config
from cranfield.evaluation.evidence.values import void_sentences
from cranfield.evaluation.options.blocks import Limits
from cranfield.evaluation.options.declaration import declared
from cranfield.evaluation.values import Evaluation
from cranfield.formats.io.files import decode, read_bytes, refusal, write_text
from cranfield.gate.config import gate_of
from cranfield.gate.forge.comment import (
    DEFAULT_MARKER,
    CommentResult,
    comment_body,
    fit_to_limit,
    marker_line,
    put_comment,
)
from cranfield.gate.result import GateResult
from cranfield.model import DEFAULT_CONVENTION, TestSet
from cranfield.systems import ConfiguredSystem

SUMMARY_VARIABLE = "GITHUB_STEP_SUMMARY"
SUMMARY_BYTES = 1024 * 1024
"""What a step may write for its summary page; more of it is shown nowhere."""
Forge = Literal["github", "gitlab"]


def write_junit(results: Sequence[tuple[GateResult, TestSet]], path: Path) -> None:
    """Write the result of a gate as JUnit XML; the old file or the new one is there, never a part.

    Args:
        results: each with its test set.
        path: of the file.

    Raises:
        UsageError: it cannot be written.
    """
    from cranfield.gate.junit import junit_xml

    try:
        write_text(path, [junit_xml(results)])
    except OSError as error:
        raise UsageError(refusal(path, error)) from error


def summary_page(environ: Mapping[str, str] = os.environ) -> Path:
    """The file that becomes the summary page of the step that runs.

    Raises:
        UsageError: nothing names one: this is no step of GitHub Actions.
    """
    named = environ.get(SUMMARY_VARIABLE)
    if not named:
        raise UsageError(
            f"{SUMMARY_VARIABLE} is not set",
            expected="a step of GitHub Actions (which sets the variable)",
            hint="the Markdown report has the same content.",
        )
    return Path(named)


def append_step_summary(text: str, environ: Mapping[str, str] = os.environ) -> str:
    """Append a Markdown report to the summary page of the step that runs.

    Args:
        text: the report; cut, and saying so, where the page has no room for it.
        environ: names the file in `GITHUB_STEP_SUMMARY`.

    Returns:
        What was done, as a line to show.

    Raises:
        UsageError: there is no such page here, it is full, or it cannot be written.
    """
    path = summary_page(environ)
    try:
        used = path.stat().st_size if path.exists() else 0
        begin = "\n\n" if used else ""
        source = "the report stored by the job"
        fits = fit_to_limit(text, SUMMARY_BYTES - used - len(begin), source=source, size=_n_bytes)
        if used + _n_bytes(begin + fits) > SUMMARY_BYTES:
            raise UsageError(f"the summary page of this step is full: {used} of {SUMMARY_BYTES} bytes are used")
        with path.open("ab") as stream:
            stream.write(_encoded(begin + fits))
    except OSError as error:
        raise UsageError(refusal(path, error)) from error
    return "wrote the step summary" + (", cut to its limit of 1 MiB" if fits != text else "")


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _n_bytes(text: str) -> int:
    return len(_encoded(text))


def comment(
    path: Path,
    *,
    forge: Forge | None = None,
    repo: str | None = None,
    number: int | None = None,
    marker: str = DEFAULT_MARKER,
    url: str | None = None,
    environ: Mapping[str, str] = os.environ,
) -> CommentResult:
    """Write a Markdown file as the one comment of its kind on a pull or merge request.

    Args:
        path: the report.
        forge: which; None is that of the job, or the one there is a token for.
        repo: OWNER/NAME, or the number of a project of GitLab; None is that of the job.
        number: of the pull or merge request; None is that of the job.
        marker: tells this comment from others of the same author.
        url: of the API; None is that of the job.
        environ: of the job; the token is in it and nowhere else.

    Raises:
        UsageError: something is missing, or the forge refused, with what to check.
    """
    from cranfield.gate.forge import github, gitlab
    from cranfield.gate.forge.api import Api

    marker_line(marker)
    text = decode(read_bytes(path, UsageError), path, UsageError)
    if not text.strip():
        raise UsageError("the report is empty", path=str(path))
    if number is not None and number < 1:
        raise UsageError(f"{{number}} is {shorten(number)}", expected="1 or more", parameters=("number",))
    of = {"github": github, "gitlab": gitlab}[forge or forge_of(environ)]
    repo, number = of.place(environ, repo, number)
    access = of.access(environ, url)
    text = text.replace(access.token, "(the token)")
    with Api(access) as api:
        thread = of.thread(api, repo, number)
        source = f"`{path.name}`, stored by the job" if path.name != "-" else "what the job printed"
        return put_comment(thread, comment_body(text, marker=marker, limit=thread.body_limit, source=source))


def forge_of(environ: Mapping[str, str]) -> Forge:
    """The forge whose job this is; elsewhere the one there is a token for.

    Raises:
        UsageError: nothing says so, or both.
    """
    signs: tuple[tuple[str, str], ...] = (("GITHUB_ACTIONS", "GITLAB_CI"), ("GITHUB_TOKEN", "GITLAB_TOKEN"))
    for github, gitlab in signs:
        if bool(environ.get(github)) != bool(environ.get(gitlab)):
            return "github" if environ.get(github) else "gitlab"
    expected = "{forge=github} or {forge=gitlab}, or a job of one of them"
    raise UsageError("no forge given", expected=expected, parameters=("forge",))


K = 10
SHOWN_REASONS = 3
"""Failed queries that a message names."""


@dataclass(frozen=True, slots=True)
class MarkerSettings:
    """What is to be scored. With a config and no more, what the config says."""

    testset: str | Path | TestSet | None = None
    """A test-set file, or one that is loaded; with a system of the config, the name of one of its several test sets."""
    system: str | Callable[..., Any] | None = None
    """`module:function`; a function; or the name of a system of the config."""
    run: str | Path | None = None
    """A run file in place of a system."""
    k: int | None = None
    """Results requested; 10, or as the config says."""
    convention: str | None = None
    """Scoring convention."""
    max_failed_share: float | None = None
    """More queries that fail, and there are no scores; 0.1, or as the config says."""
    evidence: Mapping[str, Any] | None = None
    """Evidence checks that differ from their table, by name; those of the config where there is one."""


def measure(settings: MarkerSettings, *, folder: Path, config_path: Path) -> Evaluation:
    """Collect, or read, and evaluate.

    Args:
        settings: what is to be scored.
        folder: what files and modules are relative to.
        config_path: the config, read where a system of it is named.

    Raises:
        InputError: a file that is missing or wrong.
        PreflightError: the system would not have worked.
        SystemUnderTestError: it failed on more queries than allowed.
        UsageError: the settings do not fit together.
    """
    is_file_or_function = callable(settings.system) or (isinstance(settings.system, str) and ":" in settings.system)
    if settings.run is not None or is_file_or_function:
        # A function, or nothing where a run file is scored, on a test set that is named or loaded.
        if settings.testset is None:
            raise UsageError("a system or a run needs a test set", expected="testset=PATH")
        if settings.run is not None and settings.system is not None:
            raise UsageError("both a run and a system", expected="one of the two")
        testset = settings.testset if isinstance(settings.testset, TestSet) else load(folder / settings.testset)
        systems = () if settings.run is not None else (_function_system(settings.system, folder),)
        k = K if settings.k is None else settings.k
        scoring = replace(ZERO, convention=settings.convention or DEFAULT_CONVENTION)
        experiment = Experiment(testset, systems, k=k, scoring=scoring)
    else:
        experiment = _of_config(settings, load_config(config_path))
    if settings.run is not None:
        evaluation = experiment.evaluate(folder / settings.run)
    else:
        (run,) = experiment.collect().values()
        evaluation = experiment.evaluate(run)
    limits = {name: value for name in declared(Limits) if (value := getattr(settings, name, None)) is not None}
    evaluation = replace(evaluation, limits=replace(evaluation.limits, **limits))
    _require_evidence(evaluation)
    return evaluation


def _function_system(function: object, folder: Path) -> ConfiguredSystem:
    from cranfield.systems.kinds.python import PythonSystem

    if isinstance(function, str):
        name = "".join(letter if letter.isalnum() or letter in "._-" else "." for letter in function)
        return PythonSystem.of(name, folder=folder, python=function)
    if not callable(function):
        raise UsageError(f"not a system: {shorten(function)}", expected="a function, or module:function")
    name = getattr(function, "__name__", type(function).__name__)
    return PythonSystem.calling(name if name.isidentifier() else "function", function)


def _of_config(settings: MarkerSettings, config: Config) -> Experiment:
    name = config.set_name(None if settings.testset is None else str(settings.testset))
    system = settings.system if isinstance(settings.system, str) else _only_system(config)
    experiment = prepare(config, name, [system], cache="off", isolated=False)
    convention = settings.convention or experiment.scoring.convention
    scoring = replace(experiment.scoring, convention=convention)
    return replace(experiment, k=settings.k or experiment.k, scoring=scoring)


def _only_system(config: Config) -> str:
    gate = gate_of(config)
    name = (None if gate is None else gate.system) or config.candidate
    if name is None and len(config.systems) == 1:
        (name,) = config.systems
    if name is None:
        raise UsageError("the config has several systems", expected=f"system=, one of {', '.join(config.systems)}")
    return name


def _require_evidence(evaluation: Evaluation) -> None:
    """Refuse scores that do not count: the zeros of a system that failed would look like answers."""
    broken = void_sentences(evaluation.evidence)
    if broken:
        reasons = [
            f"{query_id}: {outcome}, {reason}" for query_id, outcome, reason in evaluation.failures[:SHOWN_REASONS]
        ]
        if not reasons:
            run = evaluation.run
            missing = [query for query in evaluation.query_ids if run is not None and query not in run.answers]
            reasons = [f"no answer to {join_first(missing)}"] if missing else []
        raise SystemUnderTestError([Problem(sentence, hint="; ".join(reasons) or None) for sentence in broken])
