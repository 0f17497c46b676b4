"""The rating scale of a measure, and the ranking it is computed on where each scale has its own."""

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
"""Parameters of measures that use graded relevance."""
NOT_ON_ITS_SCALE = "the run was not ranked on the scale of this measure: name the measure with the others"


def scale_for(measure: Measure) -> Scale | None:
    """`binary` where only relevance counts, `graded` where gains count; None where grades do not matter."""
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
