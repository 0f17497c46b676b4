"""What a config declares of a comparison before any number is seen."""

from __future__ import annotations

from cranfield.config import Config
from cranfield.config.models import SetConfig
from cranfield.evaluation.values import Limits
from cranfield.evaluation.verdict import CompareOptions


def declared_options(config: Config, chosen: SetConfig, seed: int = 0) -> CompareOptions:
    """What a config declares of a comparison on one of its test sets, but for the primary measure."""
    limits = Limits(config.limits.max_failed_share, config.limits.min_judged_share, config.evidence)
    return CompareOptions(
        *(None, config.test, config.alpha, config.margin, seed),
        n_draws=config.draws,
        limits=limits,
        verdict=chosen.verdict or config.verdict,
        strata=chosen.strata or "",
        adjust=config.adjust or "",
    )
