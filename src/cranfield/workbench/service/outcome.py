"""What the experiment of a schedule came to, as its job keeps it and REST answers it."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class BenefitOutcome(BaseModel):
    """Result of the experiment of a schedule; it is stored in a file. A later server may add keys."""

    model_config = ConfigDict(extra="ignore")

    file: str
    """File of the result, in the folder of results of the schedule."""
    made_at: str
    """Time of the result, in ISO 8601."""
    unchanged: bool
    """Nothing is other than it was for this result: no cell was run, and all of this is of the earlier run."""
    sentence: str
    void: list[str]
    """Why the comparison is invalid; empty where it is not."""
    caveats: list[str]
    verdicts: dict[str, str]
    """Stratum, `task_type=locate, difficulty=easy`, to its verdict."""
    failed_rules: list[str]
    """Broken rules, of the default rules of `cranfield benefit gate`, each with what breaks it."""
