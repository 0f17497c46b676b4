"""The guide to the measures: which one answers which question, each in plain words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse

from cranfield.base.errors import CranfieldError
from cranfield.measures import DEFAULT_MEASURES, parse
from cranfield.measures.catalogue import CATALOGUE, by_family
from cranfield.model.convention import CONVENTIONS
from cranfield.workbench.server.access import Caller, require
from cranfield.workbench.server.pages import render_page

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cranfield.measures import MeasureSpec

router = APIRouter()
Self = Annotated[Caller, Depends(require("account"))]
CHOICES = (
    ("People read the first page", ("nDCG@10", "Success@5"), "Grades and order matter; results below the first page do not."),
    ("There is one right answer", ("RR@10", "Success@1"), "Only the rank of the first good result matters."),
    ("Everything must be found", ("R@100", "AP"), "As in patents, law and reviews: missing results matter more than order."),
    ("A program or a model reads the results", ("R@10", "TokensToHit"), "Results outside the list cannot be used, and reading has a cost."),
    ("Grades are yes or no", ("P@10", "AP@10", "RR@10"), "nDCG also works, but has no graded relevance to use."),
    ("Few results are graded", ("Judged@10", "Bpref"), "Check the judged share first, and grade the missing results."),
    ("Nothing should be found", ("Silence",), "For queries without a right answer."),
)  # fmt: skip
"""Situation, measures, why."""
CHOSEN = {
    ("P", "precision_over", "judged"): "2 good results among the 4 graded ones of the first 5 give P@5 = 0.5: a result without a grade is not counted. The order does not matter.",
    ("P", "precision_over", "returned"): "2 good results give P@5 = 0.4 where 5 or more results were returned, and 0.5 where only 4 were. The order does not matter.",
    ("AP", "average_precision_over", "found"): "Rewards good results at high ranks: the mean of the precision at the rank of each good result. A good document that was not found is not counted. Its mean over queries is MAP.",
    ("nDCG", "ideal", "retrieved"): "How close the order of the results is to the best order of the same results. 1: no order is better. Good documents that were not found are not counted.",
    ("nDCG", "ideal", "one"): "Sum of the good results, each discounted by its rank. 1 is one good result at the top; more good results give more than 1.",
}  # fmt: skip
"""Measure, choice of a convention and its value to the meaning in plain words, where it is not that of the catalogue."""


def plain_words(spelling: str, convention: str = "") -> tuple[str, str] | None:
    """Name in the catalogue and meaning in plain words of a measure under a convention; None for an unknown one."""
    try:
        spec = CATALOGUE[parse(spelling).name]
    except CranfieldError:
        return None
    choices = CONVENTIONS.get(convention)
    chosen = (
        words
        for (name, choice, value), words in CHOSEN.items()
        if name == spec.name and getattr(choices, choice, "") == value
    )
    return spec.name, next(chosen, spec.plain or spec.sentence)


def explained(spellings: Iterable[str], convention: str = "") -> list[tuple[str, str, str]]:
    """Spelling, name and meaning in plain words of each measure that the catalogue knows, each name once, under a convention."""
    found: dict[str, tuple[str, str, str]] = {}
    for spelling in spellings:
        words = plain_words(spelling, convention)
        if words is not None:
            found.setdefault(words[0], (spelling, *words))
    return list(found.values())


@router.get("/measures")
def measures(request: Request, caller: Self) -> HTMLResponse:
    """Explain the measures: by situation, by question, and all of the catalogue."""
    families: dict[str, list[MeasureSpec]] = by_family()
    listed = [spec for specs in families.values() for spec in specs if spec.question]
    return render_page(
        request,
        "measures.html",
        caller,
        choices=CHOICES,
        questions=listed,
        families={name: [spec for spec in specs if not spec.question] for name, specs in families.items()},
        default=DEFAULT_MEASURES,
    )
