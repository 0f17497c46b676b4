"""The published JSON Schema of the files of a run, made from the models by which they are read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import GenericAlias
from typing import Any

from pydantic import BaseModel, Field, create_model

from cranfield.formats.io.files import write_text
from cranfield.formats.io.validation import published_schema, schema_text
from cranfield.golden.index import FEEDBACK, Step
from cranfield.golden.outcomes import AgreementRecord, GateFailure, QueueEntry, Rejection, TranscriptLine
from cranfield.golden.records import AdversaryReport, HumanReview, OracleAnswer, QueryCandidate, ReviewFeedback
from cranfield.golden.review import Sample

SCHEMA_FILE = Path(__file__).with_name("golden_run.schema.json")
LINES: Mapping[str, type[BaseModel]] = {
    Step.CANDIDATES: QueryCandidate,
    Step.ANSWERS: OracleAnswer,
    Step.REPORTS: AdversaryReport,
    Step.AGREEMENTS: AgreementRecord,
    Step.GATE_FAILURES: GateFailure,
    Step.REVIEW_QUEUE: QueueEntry,
    Step.REJECTED: Rejection,
    Step.REVIEW_SAMPLES: Sample,
    Step.HUMAN_REVIEWS: HumanReview,
    Step.TRANSCRIPTS: TranscriptLine,
    FEEDBACK: ReviewFeedback,
}
"""What a line of each file is."""


def run_schema() -> dict[str, Any]:
    """The schema (draft 2020-12) of a mapping from the names of the files to their lines."""
    fields: dict[str, Any] = {
        Path(name).stem.lstrip("0123456789_"): (GenericAlias(list, (model,)), Field(default=[], alias=str(name)))
        for name, model in LINES.items()
    }
    doc = "The files of a run: JSON Lines, of which each is such a record."
    return published_schema(create_model("GoldenRun", __doc__=doc, **fields), **{"$id": "urn:cranfield:golden-run:1"})


if __name__ == "__main__":
    write_text(SCHEMA_FILE, [schema_text(run_schema())])
