"""Which scale a measure is made for, and the ranking it is computed on where an evaluation has one for each scale."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cranfield.evaluation.values import Evaluation
from cranfield.measures import CATALOGUE, Measure
from cranfield.ranking.value import Ranking

if TYPE_CHECKING:
    from cranfield.stats.scale import Scale

RATED_BY_SLOT = "searchtweak"
"""The convention under which each measure has a scale of its own, and ratings are mapped to it one by one."""
GAINS = frozenset({"gains", "min_rel", "max_rel"})
"""Parameters of measures that look at how good a result is, and not only whether it is relevant."""
NOT_ON_ITS_SCALE = "its scale is another one, which the run was not ranked on: ask for the measure with the others"


def scale_for(measure: Measure) -> Scale | None:
    """`binary` where relevant or not is all it asks, `graded` where gains count; None where no grade matters."""
    spec = CATALOGUE[measure.name]
    names = {parameter.name for parameter in spec.parameters}
    if spec.diagnostic or spec.needs is not None:
        return None
    return "graded" if names & GAINS or "rel" not in names else "binary"


def ranking_for(evaluation: Evaluation, measure: Measure) -> Ranking | None:
    """The ranking that a measure is computed on; None where each scale has its own, and there is none of this one."""
    if not evaluation.on_scales:
        return evaluation.ranking
    scale = evaluation.scales.get(measure) or scale_for(measure)
    return evaluation.ranking if scale is None else evaluation.on_scales.get(scale)
