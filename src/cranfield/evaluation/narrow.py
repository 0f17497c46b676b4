"""Scores that are equal as 32-bit floats alone: what the measures would be where a tool compares them so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from cranfield.evaluation.caveat import Caveat, CaveatKind
from cranfield.evaluation.explain import differ
from cranfield.evaluation.values import Evaluation, known_mean
from cranfield.measures import compute
from cranfield.model import Convention, Run
from cranfield.numbers import format_value
from cranfield.ranking.value import Ranking
from cranfield.words import first_of, n_of

SHOWN = 3
"""Measures that a sentence names."""


def narrow_queries(run: Run) -> tuple[str, ...]:
    """Queries of a run ordered by score in which two different scores are equal as 32-bit floats."""
    if run.order == "given":
        return ()
    found = []
    for query_id, answer in run.answers.items():
        scores = np.unique([hit.score for hit in answer.hits if hit.score is not None])  # sorted, each once
        with np.errstate(over="ignore", under="ignore"):
            if len(scores) > 1 and len(np.unique(scores.astype(np.float32))) < len(scores):
                found.append(query_id)
    return tuple(found)


def narrow_caveat(evaluation: Evaluation, rank: Callable[[Convention], Ranking]) -> tuple[str, ...]:
    """A sentence on the measures that would differ where scores are compared as 32-bit floats; none where none would.

    Args:
        evaluation: at 64 bits.
        rank: the same run under another convention.
    """
    convention = evaluation.ranking.convention
    if convention.score_width == 32 or not evaluation.measures:
        return ()
    narrow = rank(replace(convention, score_width=32))
    if narrow.query_ids != evaluation.query_ids:
        return ()
    changes, changed = [], np.zeros(len(evaluation.query_ids), dtype=np.bool_)
    for measure in evaluation.measures:
        values, scored, _ = compute(measure, replace(narrow, convention=convention))
        here = np.where(evaluation.scored[measure], evaluation.values[measure], np.nan)
        there = np.where(scored, values, np.nan)
        differs = differ(here, there)
        if differs.any():
            changed |= differs
            changes.append(f"{measure} {format_value(known_mean(there))} instead of {format_value(known_mean(here))}")
    if not changes:
        return ()
    named = first_of([query for query, differs in zip(evaluation.query_ids, changed.tolist(), strict=True) if differs])
    sentence = (
        "scores that differ at 64 bits are equal at 32 bits, and tie in trec_eval 9 and pytrec_eval (convention trec9): "
        f"{first_of(changes, SHOWN)} in {n_of(int(changed.sum()), 'queries')} ({named})"
    )
    return (Caveat(sentence, CaveatKind.NARROW_SCORES),)
