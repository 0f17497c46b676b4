"""Files of traces for `cranfield init`: each step of them is a system, and a section of the report says what they hold."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from cranfield.app.init.shape import FoundSystem
from cranfield.app.runs_by_name import with_ids
from cranfield.base.errors import Problem, RunFormatError, UsageError
from cranfield.base.words import count_noun
from cranfield.formats.io.files import shown
from cranfield.formats.traces.runs import Choice, choice_of, read_steps, run_of
from cranfield.formats.traces.survey import StepSurvey, TraceSurvey, survey_of
from cranfield.model import TestSet
from cranfield.reporting.document import Block, Bullets, Code, Section
from cranfield.reporting.table_spec import Col, Columns, TableSpec


def trace_systems(given: Path, written: str, name: str, testset: TestSet | None) -> Iterator[FoundSystem]:
    """A system for each step of a file that has documents; of `FILE#choice`, for the step that is chosen.

    Args:
        given: the file, or `FILE#choice`.
        written: the file, as it goes into a config.
        name: of the system, where the user gave one.
        testset: whose queries a step has to answer; None: any.

    Raises:
        RunFormatError: no step is as chosen, or several are.
        UsageError: no step answers a query of the test set.
    """
    file, choice = choice_of(given)
    found = read_steps(file, RunFormatError, choice.query)
    survey = survey_of(found, file)
    prefix = f"{shown(file)}#"
    chosen = str(given)[len(prefix) :] if choice != Choice() else ""
    words = [chosen] if chosen else [step.choice[len(prefix) :] for step in survey.steps if step.n_documents]
    systems = []
    for word in words or [""]:
        run = run_of(found, choice_of(Path(f"{prefix}{word}"))[1] if word else choice, file)
        if testset is not None:
            run, _ = with_ids(testset, run)
            if not any(query_id in testset.by_id for query_id in run.answers):
                continue
        settings = {"run": f"{written}#{word}" if word else written}
        answered = {query_id: [hit.public_id for hit in answer.hits] for query_id, answer in run.answers.items()}
        what = f"{run.notes[0]}: {count_noun(len(answered), 'queries')}"
        systems.append(
            FoundSystem(f"{prefix}{word}" if word else str(given), name or _name(run.name, file), settings, what, answered,
                        run.notes[1:] if chosen else (), run=file, traces=survey)
        )  # fmt: skip
    if not systems:
        expected = "spans whose texts are those of the queries, or query=trace for those of the first spans"
        raise UsageError(
            Problem("no step of these traces answers a query of the test set", path=shown(file), expected=expected)
        )
    yield from (replace(system, traces=survey) for system in systems)


def _name(run: str, file: Path) -> str:
    """The name of a run without that of its file."""
    return run.removeprefix(f"{file.stem}-") or file.stem


def trace_section(systems: Sequence[FoundSystem]) -> tuple[tuple[Section, ...], dict[str, object]]:
    """What each file of traces holds: a section of the report, and its data; nothing where there is none."""
    surveys = dict.fromkeys(system.traces for system in systems if system.traces is not None)
    if not surveys:
        return (), {}
    blocks = tuple(block for survey in surveys for block in _blocks(survey))
    return (Section("traces", "Traces", blocks),), {"traces": [asdict(survey) for survey in surveys]}


def _blocks(survey: TraceSurvey) -> Iterator[Block]:
    """The steps of a file, what it holds, and the first commands."""
    columns: Columns[StepSurvey] = (
        Col("step", lambda step: step.kind),
        Col("span", lambda step: step.name),
        Col("spans", lambda step: step.n_spans, "count"),
        Col("traces", lambda step: step.n_traces, "count"),
        Col("queries", lambda step: step.n_queries, "count"),
        Col("documents", lambda step: step.n_documents, "count"),
        Col("longest list", lambda step: step.most, "count"),
        Col("failed", lambda step: step.n_failed or None, "count"),
        Col("without query", lambda step: step.n_without_query or None, "count"),
        Col("without documents", lambda step: step.n_without_documents or None, "count"),
    )
    yield TableSpec(f"Retrievals in {survey.file}", survey.steps, columns).filled().table(wrap=True)
    yield Bullets(tuple(survey.sentences()))
    usable = [step.choice for step in survey.steps if step.n_documents]
    commands = [shlex.join(["cranfield", "evaluate", "GOLDEN", choice]) for choice in usable[:1]]
    commands += [shlex.join(["cranfield", "compare", "GOLDEN", *usable[:2]])] if len(usable) > 1 else []
    commands.append(shlex.join(["cranfield", "testset", "convert", survey.file, "queries.yaml"]))
    yield Code("\n".join(commands) + "\n", "", in_text=True)
