"""What a report of an experiment is made from: a result, and the transcripts of its folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cranfield.benefit.folder import ExperimentFolder
from cranfield.benefit.result import BenefitResult
from cranfield.benefit.result_file import read_result
from cranfield.formats.io.files import write_text
from cranfield.project.benefit_score import result_of


def read_source(source: Path) -> tuple[BenefitResult, Path | None]:
    """A result, and the folder of its experiment where that was named.

    Raises:
        UsageError: there is no such folder, or its cells are not scored.
        InputError: it cannot be read.
    """
    return (result_of(source), source) if source.is_dir() else (read_result(source), None)


def transcripts_file(html: Path) -> Path:
    """`report.transcripts.html` of `report.html`."""
    return html.with_suffix(".transcripts.html")


def loss_transcripts(result: BenefitResult, run: Path, page: Path) -> list[Path]:
    """Write the transcripts of both arms of every task where the treatment was worse.

    Raises:
        InputError: a transcript is missing or damaged.
    """
    from cranfield.reporting.transcripts import transcripts_page

    write_text(page, [transcripts_page(_records(result, run), f"Tasks where {result.name} lost")])
    return [page]


def _records(result: BenefitResult, run: Path) -> Iterator[dict[str, Any]]:
    folder = ExperimentFolder.open(run)
    rows = {row.task_id: row for row in result.tasks}
    for loss in result.losses:
        for role, cells in rows[loss.task_id].arms.items():
            for cell in cells:
                if cell.transcript:
                    label = f"{role.value} ({result.arms[role]}), seed {cell.seed}"
                    yield folder.transcript(cell.transcript) | {"query_id": loss.task_id, "role": label}
