"""Evidence checks that look for likeness: families of ids that never return, and systems that answer alike."""

from __future__ import annotations

import operator
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from cranfield.evaluation.evidence.values import MOST_LISTS, Found, Inspected, Sides, sample
from cranfield.matching.id_forms import FORMS, Form, is_boundary
from cranfield.patterns import Expression, any_match
from cranfield.words import and_list, n_of, shown_id

FEWEST_QUERIES_OF_FAMILY = 3
_SEPARATED = re.compile(r"[^/:#]+(?:://|/|::|:|#)")
_LETTERS = re.compile(r"[A-Za-z]+(?=[-_.]?\d)")
_LITERAL = re.compile(r"\^?((?:[\w:/@-]|\\[^\w])+)")


def families(text: str) -> tuple[str, ...]:
    """The families of an id, the widest first: `a://b/` has `a://` and `a://b/`, `FT911-3` has `FT`.

    Example:
        >>> families("apple-docs://swift/hashable"), families("FT911-3"), families("12")
        (('apple-docs://', 'apple-docs://swift/'), ('FT',), ())
    """
    found: list[str] = []
    end = 0
    while len(found) < 2 and (part := _SEPARATED.match(text, end)) is not None:
        end = part.end()
        found.append(text[:end])
    if not found and (letters := _LETTERS.match(text)) is not None:
        found.append(letters[0])
    return tuple(found)


def literal(regex: str) -> str:
    """The text that every match of an expression starts with, as far as that is plain: `a://b` of `^a://b($|/)`."""
    found = _LITERAL.match(regex)
    return re.sub(r"\\(.)", r"\1", found[1]) if found is not None else ""


def missing_family(sides: Sides, limit: float) -> Iterator[Found]:
    """A family that several queries expect alone, and that is in no result, while the other queries are answered."""
    systems = sides.systems
    by_family = _queries_by_family(systems[0])
    if not by_family:
        return
    found = set().union(*(system.ids_of(system.found) for system in systems))
    expecting = set(systems[0].ids_of(systems[0].expecting))
    reported: list[str] = []
    for family, queries in by_family.items():
        others = expecting - set(queries)
        if len(queries) < FEWEST_QUERIES_OF_FAMILY or not others or any(family.startswith(wider) for wider in reported):
            continue
        rate = len(found & others) / len(others)
        # Were its queries as easy as the others, none of them would be found with this probability.
        if found & set(queries) or (1 - rate) ** len(queries) > limit or _is_returned(systems, family, queries):
            continue
        reported.append(family)
        names = and_list([system.name for system in systems])
        yield Found.of(
            f"{n_of(len(queries), 'queries')} expect ids under {family!r} only, and {names} never "
            f"{'returns' if len(systems) == 1 else 'return'} one, while {len(found & others)} of the {len(others)} other queries are "
            "answered: is that part of the corpus indexed?",
            queries,
            len(expecting),
        )


def _queries_by_family(system: Inspected) -> dict[str, list[str]]:
    """Family to the queries whose every expected id is in it; those of a sample of the queries."""
    places = sample(np.flatnonzero(system.expecting), 2 * MOST_LISTS)
    queries: dict[str, list[str]] = {}
    for place in places.tolist():
        regexes = system.targets.get(place, ())
        texts = [literal(text) if text in regexes else text for text in system.expected_of(place)]
        shared = [set(families(text)) for text in texts]
        for family in set.intersection(*shared) if shared else ():
            queries.setdefault(family, []).append(system.query_ids[place])
    return dict(sorted(queries.items(), key=lambda item: (len(item[0]), item[0])))


def _is_returned(systems: Sequence[Inspected], family: str, queries: list[str]) -> bool:
    """Whether any of the first results is of a family."""
    wanted = set(queries)
    for system in systems:
        lists = [each.hits for each in system.lists]
        places = [place for place, query_id in enumerate(system.query_ids) if query_id in wanted]
        lists += [system.hits_of(place) for place in places[:MOST_LISTS]]
        if any(doc_id.startswith(family) for hits in lists for doc_id, _ in hits):
            return True
        if any(text.startswith(family) for place in places[:MOST_LISTS] for text in system.texts_of(place)):
            return True
    return False


FEWEST_QUERIES = 3
PROVES = 2
"""Queries that a form must make match where no result of any query matches as it is."""
FIRST_LISTS = 20
"""Queries that are searched first; the others where half as many as needed are found in these."""
MOST_AFFIXES = 50
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
    least = max(FEWEST_QUERIES, limit * total)
    if int(unmatched.sum()) < least:
        return
    places = np.flatnonzero(unmatched)
    for most in (FIRST_LISTS, MOST_LISTS):
        scale = max(len(places) / most, 1.0)
        pairs = _pairs(system, places, most)
        form, queries = _best(_by_affix(system, pairs) | _by_form(system, pairs) | _by_part(system, pairs))
        if len(queries) * scale < (least / 2 if most < min(MOST_LISTS, len(places)) else least):
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
    counts = Counter({affix: len(places) for affix, places in found.items() if len(places) >= FEWEST_QUERIES})
    if not counts:
        return kept
    returned = [system.text_of(each.query, hit) for each in system.lists for hit in each.hits]
    universe = [_beginning(text) if text in regexes else text for text in system.universe]
    for affix, _ in counts.most_common(MOST_AFFIXES):
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
