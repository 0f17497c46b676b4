"""What a report of an experiment is made from: a result, and the transcripts of its folder."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from cranfield.agents.record_folder import MANIFEST
from cranfield.benefit.assemble import last_scores
from cranfield.benefit.folder import ExperimentFolder
from cranfield.benefit.plan import ArmRole
from cranfield.benefit.records import ScoreRecord, deciding_facts
from cranfield.benefit.result import BenefitResult
from cranfield.benefit.result_file import RESULT, read_result
from cranfield.errors import UnknownNameError, unknown_name
from cranfield.formats.io.files import write_text
from cranfield.formats.io.versions import newest_version
from cranfield.project.benefit_score import result_of


def read_source(source: Path) -> tuple[BenefitResult, Path | None]:
    """A result, and the folder of its experiment where that was named, from which it is made anew.

    Of a folder of results the newest version is read.

    Raises:
        UsageError: there is no such folder, or its cells are not scored.
        InputError: it cannot be read.
    """
    path = source if (source / MANIFEST).is_file() else newest_version(source, RESULT)
    return (result_of(path), path) if path.is_dir() else (read_result(path), None)


def transcripts_file(html: Path) -> Path:
    """`report.transcripts.html` of `report.html`."""
    return html.with_suffix(".transcripts.html")


def loss_transcripts(result: BenefitResult, run: Path, page: Path) -> list[Path]:
    """Write the transcripts of both arms of every task where the treatment was worse.

    Raises:
        InputError: a transcript is missing or damaged.
    """
    write_transcripts(
        run, page, f"{result.name}: tasks where the treatment was worse", tasks=[loss.task_id for loss in result.losses]
    )
    return [page]


def write_transcripts(
    run: Path, page: Path, title: str, *, tasks: Sequence[str] = (), arms: Collection[ArmRole] = tuple(ArmRole)
) -> tuple[int, list[str]]:
    """Write the transcripts of an experiment as one page, by task, seed and arm, each with its score where it has one.

    Args:
        run: folder of the experiment.
        page: HTML file.
        title: of the page.
        tasks: ids, in this order; empty: all tasks.
        arms: of these runs.

    Returns:
        How many there are, and the runs that have none: their agent crashed, or a tool did not start.

    Raises:
        UnknownNameError: with every task that the experiment has not.
        UsageError: there is no experiment.
        InputError: a transcript is missing or damaged.
    """
    from cranfield.reporting.transcripts import transcripts_page

    folder = ExperimentFolder.open(run)
    names, known = folder.plan.arms, [task.id for task in folder.tasks().tasks]
    if unknown := [unknown_name("task", name, known) for name in tasks if name not in known]:
        raise UnknownNameError(unknown)
    places = {name: place for place, name in enumerate(tasks or known)}
    cells = [cell for cell in folder.cells() if cell.key.task_id in places and cell.key.arm in arms]
    cells.sort(key=lambda cell: (places[cell.key.task_id], cell.key.seed, list(ArmRole).index(cell.key.arm)))
    scores, records, without = last_scores(folder.scores()), list[Mapping[str, Any]](), list[str]()
    for cell in cells:
        key, transcript = cell.key, folder.transcript(cell.transcript) if cell.transcript else {}
        if not transcript:
            without.append(str(key))
            continue
        score = _words(scores.get(key)) if cell.end.is_scored else "failed, not scored"
        role = f"{key.arm.value} ({names[key.arm].name}), seed {key.seed}{score and ': '}{score}"
        records.append(transcript | {"query_id": key.task_id, "role": role, "attempt": cell.attempt})
    write_text(page, [transcripts_page(records, title)])
    return len(records), without


def _words(score: ScoreRecord | None) -> str:
    """The score of a cell; empty: it has none yet."""
    if score is None:
        return ""
    end = {True: "success", False: "no success", None: "not decided"}[score.success]
    which = "; ".join(f"{fact.id}: {fact.statement}" for fact in deciding_facts(score.why, score.facts))
    return f"{end}, {score.why.value}{which and f' ({which})'}" if score.why else end
