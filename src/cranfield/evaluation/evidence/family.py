"""Check of a family of expected ids (a scheme, a folder, a collection) that no run ever returns while others match."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np

from cranfield.evaluation.evidence.inspected import MOST_LISTS, Inspected, Sides, sample
from cranfield.evaluation.evidence.values import Found
from cranfield.words import and_list, n_of

FEWEST_QUERIES = 3
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
        if len(queries) < FEWEST_QUERIES or not others or any(family.startswith(wider) for wider in reported):
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
