"""Named conventions: the choices on which tools that print the same measure disagree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from cranfield.errors import UnknownNameError


@dataclass(frozen=True, slots=True)
class Convention:
    """One column of choices. A result always names the convention that scored it."""

    name: str
    sentence: str
    """What it is for, in a line."""
    file_order: Literal["score", "given", "rank"] = "score"
    """How a TREC run file is ordered: by score, as its lines stand, or by the rank column."""
    ties: Literal["descending", "ascending", "given"] = "descending"
    """How equal scores fall: by document id in byte order, or as they stand."""
    score_width: Literal[64, 32] = 64
    """Bits of a score when scores are compared."""
    gain: Literal["grade", "match"] = "grade"
    """What a match is worth: its grade, or 1 whatever the grade."""
    credit: Literal["declared", "every"] = "declared"
    """Who is paid when several results hit one expected item: as the judgment declares (once by default), or all."""
    ideal: Literal["judged", "one"] = "judged"
    """Ideal DCG: the expected items in their best order, cut at k; or fixed at 1."""


CONVENTIONS = {
    convention.name: convention
    for convention in (
        Convention("trec", "the default: trec_eval's choices, scores as 64-bit floats, missing queries count as 0"),
        Convention(
            "cupertino",
            "the order given, every match credited with gain 1, ideal DCG fixed at 1 (so nDCG may exceed 1)",
            file_order="given",
            gain="match",
            credit="every",
            ideal="one",
        ),
    )
}

DEFAULT_CONVENTION = "trec"


def convention_named(name: str) -> Convention:
    """Look a convention up; raise `UnknownNameError` with the nearest name when there is none."""
    if name not in CONVENTIONS:
        raise UnknownNameError.among("convention", name, CONVENTIONS)
    return CONVENTIONS[name]
