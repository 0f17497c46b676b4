"""How much of the expected text a list holds, however documents were cut into results: recall, precision, overlap, and what comes twice.

Results and expected passages are intervals of documents, in characters, lines or pages (`ranking.matching.passages`). A list is read
down to rank k, or as far as its results fit into a budget, whichever ends first. Axis: Q queries.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby

import numpy as np

from cranfield.measures.measure import REL, MeasureSpec, ParameterSpec
from cranfield.model.texts import Part, QueryTexts, ResultText, covered
from cranfield.ranking.value import FloatQ, Ranking

UNKNOWN = "a result that is read says neither place nor text, or its cost; or the list was cut before the budget was used (raise k)"
NO_PASSAGE = f"it expects something else than passages or lines, or {UNKNOWN}"
SIZE_UNKNOWN = f"nothing was returned, or {UNKNOWN}"

BUDGET = ParameterSpec(
    "budget", 0, "tokens of the results that are read, from the first on, as far as they fit; 0: all", 0
)
CHARACTERS = ParameterSpec("characters", 0, "the same limit in characters of the results' texts; 0: none", 0)


def text_recall(ranking: Ranking, cutoff: int | None, *, rel: int = 1, budget: int = 0, characters: int = 0) -> FloatQ:
    """Share of the expected text that the results hold together.

    Returns:
        float64[Q] in [0, 1]; NaN where a query expects no passage.

    Conventions:
        text that several results hold, or several passages, counts once · a query without an answer has 0.
    """
    return _over(ranking, cutoff, rel, budget, characters, lambda found, _, expected: found / expected)


def text_precision(
    ranking: Ranking, cutoff: int | None, *, rel: int = 1, budget: int = 0, characters: int = 0
) -> FloatQ:
    """Share of the text of the results that is expected text; what is returned again counts in the divisor alone.

    Returns:
        float64[Q] in [0, 1]; 0 where nothing was returned; NaN where a query expects no passage.
    """
    return _over(ranking, cutoff, rel, budget, characters, lambda found, read, _: found / read if read else 0.0)


def text_iou(ranking: Ranking, cutoff: int | None, *, rel: int = 1, budget: int = 0, characters: int = 0) -> FloatQ:
    """Expected text that the results hold, over all text that is expected or returned.

    Returns:
        float64[Q] in [0, 1]; NaN where a query expects no passage.

    Source:
        Smith & Troynikov 2024, "Evaluating Chunking Strategies for Retrieval", Chroma: retrieved text counts as often as it is
        retrieved.
    """
    return _over(
        ranking, cutoff, rel, budget, characters, lambda found, read, expected: found / (read + expected - found)
    )


def redundancy(ranking: Ranking, cutoff: int | None, *, budget: int = 0, characters: int = 0) -> FloatQ:
    """Share of the text of the results that results before them hold too.

    Returns:
        float64[Q] in [0, 1]; NaN where nothing was returned, or a result says neither its place nor a text.

    Conventions:
        by place where results say it; else by their texts: eight words in a row that were returned before.
    """
    values = np.full(ranking.n_queries, math.nan)
    for place, texts in enumerate(_texts(ranking)):
        results = _read(ranking, place, texts, cutoff, budget, characters)
        if results:
            read = sum(result.size for result in results)
            values[place] = sum(result.again for result in results) / read if read else 0.0
    return values


def _over(
    ranking: Ranking,
    cutoff: int | None,
    rel: int,
    budget: int,
    characters: int,
    ratio: Callable[[float, float, float], float],
) -> FloatQ:
    """A ratio of the expected text that is found, the text that was read, and the expected text."""
    values = np.full(ranking.n_queries, math.nan)
    for place, texts in enumerate(_texts(ranking)):
        if texts.expected is None:
            continue
        start = ranking.expected_start[place]
        relevant = (ranking.expected_level[start : ranking.expected_start[place + 1]] >= rel).tolist()
        expected = _length([part for part in texts.expected if relevant[part.item]])
        results = _read(ranking, place, texts, cutoff, budget, characters)
        if results is None:
            continue
        found = _length([part for result in results for part in result.parts if relevant[part.item]])
        read = sum(result.size for result in results)
        # A quote has a length of its own where its place is not known, so that a rounding error may lie above 1.
        values[place] = min(ratio(found, read, expected), 1.0) if expected else 0.0
    return values


def _texts(ranking: Ranking) -> list[QueryTexts]:
    if ranking.texts is None:
        return [QueryTexts(None, ())] * ranking.n_queries
    return [ranking.texts.of(query_id) for query_id in ranking.query_ids]


def _read(
    ranking: Ranking, place: int, texts: QueryTexts, cutoff: int | None, budget: int, characters: int
) -> Sequence[ResultText] | None:
    """The results of a query that are read: to the cutoff, and as far as they fit.

    None where that is not known: what a result costs is not, or the list was cut, and what follows would have fitted too.
    """
    returned = texts.results[: int(ranking.n_returned[place])]
    read = returned[:cutoff]
    for limit, costs in ((budget, [each.tokens for each in read]), (characters, [each.characters for each in read])):
        if not limit:
            continue
        spent = np.cumsum(costs)
        fitting = int(np.argmax(~(spent <= limit))) if len(spent) and not (spent <= limit).all() else len(spent)
        if fitting < len(spent) and math.isnan(spent[fitting]):
            return None
        read = read[:fitting]
    is_cut = ranking.cut_at is not None and len(returned) >= ranking.cut_at
    return None if is_cut and (budget or characters) and len(read) == len(returned) != cutoff else read


def _length(parts: Sequence[Part]) -> float:
    """Length of what parts cover together, each region for itself."""
    by_region = groupby(sorted(parts, key=lambda part: part.region), key=lambda part: part.region)
    return sum(covered([part.interval for part in of_region]) for _, of_region in by_region)


_of_passages = partial(
    MeasureSpec,
    cutoff="optional",
    parameters=(REL, BUDGET, CHARACTERS),
    source="Smith & Troynikov 2024, Evaluating Chunking Strategies for Retrieval, Chroma",
    unscored_by_run=True,
    why_unscored=NO_PASSAGE,
    defined_for="queries that expect passages of text, or lines of files, alone",
    needs="passages",
)
"""A row of a measure of how much of the expected text is there."""

SPECS = (
    _of_passages(
        name="TextRecall",
        question="Is the text that answers in front of the model?",
        plain=(
            "The share of the expected text that the results hold together, however documents are cut. Two ways of cutting, and two "
            "sizes of results, can be compared by it."
        ),
        title="recall of text",
        sentence="Share of the expected text that is in the first k results, or in those that fit into a budget.",
        formula="|union of (result i and expected text), i <= k| / |expected text|",
        kernel=text_recall,
        aliases=("text_recall", "token_recall", "span_recall"),
    ),
    _of_passages(
        name="TextPrecision",
        question="How much of what is read was asked for?",
        plain="The share of the text of the results that is expected text. Long results lower it, and text that comes twice.",
        title="precision of text",
        sentence="Share of the text of the first k results, or of those that fit into a budget, that is expected.",
        formula="|union of (result i and expected text), i <= k| / sum_{i<=k} |result i|",
        kernel=text_precision,
        aliases=("text_precision", "token_precision", "span_precision"),
    ),
    _of_passages(
        name="TextIoU",
        question="Is the text that answers there, and nothing else?",
        plain="The expected text that was returned, over all text that is expected or returned: 1 if exactly that was returned.",
        title="intersection over union of text",
        sentence="Expected text in the first k results, divided by all text that is expected or returned there.",
        formula="h / (sum_{i<=k} |result i| + |expected text| - h), h = |union of (result i and expected text), i <= k|",
        kernel=text_iou,
        aliases=("text_iou", "token_iou"),
    ),
    MeasureSpec(
        name="Redundancy",
        question="How much is read twice?",
        plain="The share of the text of the results that results before them hold too: what overlapping passages cost.",
        unscored_by_run=True,
        title="redundancy",
        sentence="Share of the text of the first k results that an earlier result holds too.",
        formula="sum_{i<=k} |result i and the results before it| / sum_{i<=k} |result i|",
        cutoff="optional",
        kernel=redundancy,
        parameters=(BUDGET, CHARACTERS),
        higher_is_better=False,
        source="the share of retrieved text that Smith & Troynikov 2024 count more than once",
        why_unscored=SIZE_UNKNOWN,
        defined_for="queries with a result, if results say their places or have texts",
        needs="texts",
    ),
)
