"""Names of measures for programs: `recall_at_10` for `R@10`, as keys of JSON and names of metrics have them."""

from __future__ import annotations

import re

from cranfield.measures.measure import Measure

NAMES = {"R": "recall", "P": "precision", "nDCG": "ndcg", "RR": "mrr", "AP": "map"}
"""What the measures are called whose name is not a word; others are written in small letters, `RankOfFirst` as `rank_of_first`."""
_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_OTHER = re.compile(r"[^a-z0-9]+")


def measure_key(measure: Measure) -> str:
    """The key of a measure: letters, digits and `_` only. Different parameters give different keys.

    >>> from cranfield.measures import parse
    >>> [measure_key(parse(text)) for text in ("R@10", "nDCG(dcg='exp-log2')@10", "RR", "RankOfFirst", "IPrec@0.1")]
    ['recall_at_10', 'ndcg_dcg_exp_log2_at_10', 'mrr', 'rank_of_first', 'iprec_at_0_1']
    """
    name = base_key(measure)
    detail = "_detail" if measure.on_detail else ""
    params = "".join(f"_{key}_{value}" for key, value in measure.params)
    cutoff = "" if measure.cutoff is None else f"_at_{measure.cutoff:g}"
    return _OTHER.sub("_", f"{name}{detail}{params}{cutoff}".lower()).strip("_")


def base_key(measure: Measure) -> str:
    """The key without cutoff and parameters: `recall` of `R@10`."""
    return NAMES.get(measure.name) or _CAPITAL.sub("_", measure.name).lower()
