"""Check of ids that are the expected ones in another form: case, blanks, padding, separators, a constant prefix or suffix.

Only queries without a relevant result are searched. A form counts for a query where it makes a result equal to something
that the query expects. A prefix or suffix counts only where at least half of all results, or of all expected ids, have it;
a form that drops a part of the id, only where at least half of one side has such a part and it matches the other side as it
is: in one corpus, `guide#1` and `guide#2` are two documents.
"""

from __future__ import annotations

import operator
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from cranfield.base.patterns import Expression, any_match
from cranfield.base.words import shown_id
from cranfield.evaluation.evidence.values import MAX_LISTS, Found, Inspected, sample
from cranfield.ranking.matching.id_forms import FORMS, Form, is_boundary

MIN_QUERIES = 3


PROVES = 2
"""Queries that a form must make match where no result of any query matches as it is."""
FIRST_LISTS = 20
"""Queries that are searched first; the others where half as many as needed are found in these."""
MAX_AFFIXES = 50
"""Prefixes and suffixes that are counted over all results."""
LEAST_SHARE = 0.5


def _without_extension(text: str) -> str:
    return re.sub(r"\.[A-Za-z][A-Za-z0-9]{0,4}$", "", text)


PARTS: Mapping[str, Form] = {
    "what follows # or ? was removed": lambda text: re.sub(r"[#?].*$", "", text, flags=re.DOTALL),
    "the extension was removed": _without_extension,
    "the number of a chunk or version at the end was removed": lambda text: re.sub(
        r"(?:[#@:_.\-]+|(?<=\w)(?=chunk))(?:chunk|part|page|v)?[_\-]?\d+(?:\.\d+)*$", "", text
    ),
    "the folders were removed": lambda text: re.sub(r"^.*[/\\](?=.)", "", text, flags=re.DOTALL),
}
"""What is removed from the ids of one side, to the function that does it."""


def id_form(system: Inspected, limit: float) -> Iterator[Found]:
    """Results that would be relevant if their ids had the form of the expected ones."""
    unmatched = system.expecting & system.has_results & ~system.found
    total = int(system.expecting.sum())
    least = max(MIN_QUERIES, limit * total)
    if int(unmatched.sum()) < least:
        return
    places = np.flatnonzero(unmatched)
    for most in (FIRST_LISTS, MAX_LISTS):
        scale = max(len(places) / most, 1.0)
        pairs = _pairs(system, places, most)
        form, queries = _best(_by_affix(system, pairs) | _by_form(system, pairs) | _by_part(system, pairs))
        if len(queries) * scale < (least / 2 if most < min(MAX_LISTS, len(places)) else least):
            return
    about = "about " if scale > 1 else ""
    example = _example(pairs, queries[0])
    yield Found(
        f"{about}{round(len(queries) * scale)} of {total} queries have no relevant result, and would have one "
        f"if {form}{example}",
        tuple(system.query_ids[place] for place in queries),
        round(len(queries) * scale),
        total,
    )


def matching_form(system: Inspected, places: NDArray[np.int64]) -> str:
    """The transformation that makes results of two or more of the queries match; empty where there is none."""
    pairs = _pairs(system, places, FIRST_LISTS)
    form, queries = _best(_by_affix(system, pairs) | _by_form(system, pairs) | _by_part(system, pairs))
    return form if len(queries) >= PROVES else ""


def _best(by_form: Mapping[str, list[int]]) -> tuple[str, list[int]]:
    """The form that makes most queries match, and these queries."""
    return max(by_form.items(), key=lambda item: len(item[1]), default=("", []))


Pairs = Mapping[int, tuple[tuple[str, ...], frozenset[str]]]
"""Position of a query to those of its results that it does not expect, and what it expects."""


def _pairs(system: Inspected, places: NDArray[np.int64], most: int) -> Pairs:
    """Some of the queries, at equal distances."""
    pairs = {}
    for place in sample(places, most).tolist():
        expected = system.expected_of(place)
        pairs[place] = tuple(text for text in system.texts_of(place) if text not in expected), expected
    return pairs


def _by_form(system: Inspected, pairs: Pairs) -> dict[str, list[int]]:
    """Each form to the queries that it makes match."""
    found: dict[str, list[int]] = {}
    for place, (results, expected) in pairs.items():
        regexes = system.targets.get(place, ())
        for name, form in FORMS.items():
            formed = {form(text) for text in results}
            if formed & {form(text) for text in expected if text not in regexes} or (
                regexes and _matches_in_form(regexes, results, form)
            ):
                found.setdefault(name, []).append(place)
    return found


def _matches_in_form(regexes: Iterable[str], results: Iterable[str], form: Form) -> bool:
    if form is str.casefold:
        return any(any_match(Expression(regex, re.IGNORECASE), results) for regex in regexes)
    formed = [form(text) for text in results if form(text) != text]
    return any(any_match(regex, formed) for regex in regexes)


def _by_part(system: Inspected, pairs: Pairs) -> dict[str, list[int]]:
    """Each part of the ids of one side that can be removed, to the queries that this makes match."""
    found: dict[str, list[int]] = {}
    for name, form in PARTS.items():
        matching = [(place, sides) for place, pair in pairs.items() if any(sides := _sides_without(form, *pair))]
        if not matching:
            continue
        returned = [system.text_of(each.query, hit) for each in system.lists for hit in each.hits]
        of_results, of_expected = (_has_part(texts, form) for texts in (returned, system.universe))
        of_both = form is _without_extension and of_results and of_expected and _no_common(returned, system.universe)
        allowed = (of_results, of_expected, of_both)
        if places := [place for place, sides in matching if any(map(operator.and_, sides, allowed))]:
            found[name] = places
    return found


def _sides_without(form: Form, results: Collection[str], expected: Collection[str]) -> tuple[bool, bool, bool]:
    """Whether a result is an expected id once the part is removed from the results, the expected ids, or both."""
    results_without, expected_without = set(map(form, results)), set(map(form, expected))
    return (
        not results_without.isdisjoint(expected),
        not expected_without.isdisjoint(results),
        not results_without.isdisjoint(expected_without),
    )


def _no_common(results: Iterable[str], expected: Iterable[str]) -> bool:
    """Whether no result has the extension of an expected id: `.html` and `.md`, not `.h` and `.cpp` of one corpus."""
    extensions = ({text.removeprefix(_without_extension(text)) for text in texts} for texts in (results, expected))
    return next(extensions).isdisjoint(next(extensions))


def _has_part(texts: Collection[str], form: Form) -> bool:
    return sum(form(text) != text for text in texts) >= LEAST_SHARE * len(texts)


def _by_affix(system: Inspected, pairs: Pairs) -> dict[str, list[int]]:
    """Each prefix or suffix to remove or to add, with the queries that it makes match."""
    found: dict[tuple[str, str, str], list[int]] = {}
    regexes = frozenset(system.patterns)
    for place, (results, expected) in pairs.items():
        ids = {_beginning(text) if text in regexes else text for text in expected}
        affixes = {affix for text in results for other in ids for affix in _affixes(text, other)}
        for affix in affixes:
            found.setdefault(affix, []).append(place)
    kept: dict[str, list[int]] = {}
    counts = Counter({affix: len(places) for affix, places in found.items() if len(places) >= MIN_QUERIES})
    if not counts:
        return kept
    returned = [system.text_of(each.query, hit) for each in system.lists for hit in each.hits]
    universe = [_beginning(text) if text in regexes else text for text in system.universe]
    for affix, _ in counts.most_common(MAX_AFFIXES):
        what, side, text = affix
        texts = returned if what == "removed" else universe
        has = sum(each.startswith(text) if side == "prefix" else each.endswith(text) for each in texts)
        if has >= LEAST_SHARE * len(texts):
            of = "results" if what == "removed" else "expected ids"
            kept[f"the {side} {text!r} of {of} were removed"] = found[affix]
    return kept


def _beginning(regex: str) -> str:
    """The id with which what a pattern matches begins: `docs://a` of `^docs://a($|/)`."""
    literal = re.match(r"\^?((?:[^\\^$.|?*+()\[\]{}]|\\\W)*)", regex)
    return re.sub(r"\\(\W)", r"\1", literal[1]) if literal is not None else ""


def _affixes(text: str, other: str) -> Iterator[tuple[str, str, str]]:
    """The prefix or suffix by which a result is longer (`removed`) or shorter (`added`) than an expected id."""
    for what, longer, shorter in (("removed", text, other), ("added", other, text)):
        if not shorter or len(longer) <= len(shorter):
            continue
        if longer.endswith(shorter):
            affix = longer[: -len(shorter)]
            if is_boundary(affix[-1], shorter[0]):
                yield what, "prefix", affix
        elif longer.startswith(shorter):
            affix = longer[len(shorter) :]
            if is_boundary(shorter[-1], affix[0]):
                yield what, "suffix", affix


def _example(pairs: Pairs, place: int) -> str:
    """A result and an expected id of the query that look most alike."""
    from difflib import SequenceMatcher

    results, expected = pairs[place]
    texts = [(text, other) for text in sorted(results)[:20] for other in sorted(expected)[:20]]
    if not texts:
        return ""
    text, other = max(texts, key=lambda two: SequenceMatcher(None, two[0].casefold(), two[1].casefold()).ratio())
    return f" (returned {shown_id(text)}, expected {shown_id(other)})"
