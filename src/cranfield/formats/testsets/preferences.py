"""Whether the preferences of a group agree with each other."""

from __future__ import annotations

import graphlib
import itertools
from collections.abc import Callable, Iterator, Mapping

from cranfield.base.errors import Problem, shorten
from cranfield.formats.io.delimited import short

Item = tuple[str, str, str]
"""Document, group and subgroup."""
Subgroups = Mapping[str, Mapping[str, float]]
"""Subgroup to document to value."""
Line = Callable[[Item], int | None]


def preference_problems(
    query_id: str, values: Mapping[Item, float], line_of: Line = lambda _: None
) -> Iterator[Problem]:
    """Everything that is wrong with the preferences of a query.

    Args:
        query_id: as messages name it.
        values: strength of preference; 0 is not relevant.
        line_of: line of an item, where the source has lines.
    """
    by_group: dict[str, dict[str, dict[str, float]]] = {}
    for item, value in values.items():
        document, group, subgroup = item
        if value < 0:
            message = f"query {query_id!r}, group {group!r}, document {document!r}: the value is negative"
            yield Problem(message, line=line_of(item), expected="0 or more", got=short(value))
        by_group.setdefault(group, {}).setdefault(subgroup, {})[document] = value
    for group, subgroups in by_group.items():
        if len(subgroups) > 1:
            where = f"query {query_id!r}, group {group!r}"
            yield from _zero_problems(where, group, subgroups, line_of)
            yield from _cycle_problems(where, group, subgroups, line_of)


def _zero_problems(where: str, group: str, subgroups: Subgroups, line_of: Line) -> Iterator[Problem]:
    """Documents that are relevant in one subgroup and not in another."""
    first: dict[str, str] = {}
    for subgroup, values in subgroups.items():
        for document, value in values.items():
            other = first.setdefault(document, subgroup)
            earlier = subgroups[other][document]
            if (earlier == 0) is not (value == 0):
                places = [line_of((document, group, other)), line_of((document, group, subgroup))]
                texts = [
                    short(shown_value) + (f" on line {line}" if line else "")
                    for shown_value, line in zip((earlier, value), places, strict=True)
                ]
                yield Problem(
                    f"{where}, document {document!r} is relevant in one subgroup only",
                    line=max((line for line in places if line is not None), default=None),
                    expected="a value of 0 in all subgroups of a group, or in none",
                    got=" and ".join(texts),
                )


def _cycle_problems(where: str, group: str, subgroups: Subgroups, line_of: Line) -> Iterator[Problem]:
    """Preferences that contradict each other. Steps between the documents keep the number of edges small."""
    order: graphlib.TopologicalSorter[str | int] = graphlib.TopologicalSorter()
    step = itertools.count()
    for values in subgroups.values():
        best_first = sorted(values, key=lambda document: -values[document])
        classes = [list(same) for _, same in itertools.groupby(best_first, key=lambda document: values[document])]
        for higher, lower in itertools.pairwise(classes):
            between = next(step)
            order.add(between, *higher)
            for document in lower:
                order.add(document, between)
    try:
        order.prepare()
    except graphlib.CycleError as error:
        documents = [node for node in error.args[1] if isinstance(node, str)]
        if documents[0] != documents[-1]:  # the cycle was entered at a step
            documents.append(documents[0])
        lines = [
            line_of((document, group, subgroup))
            for document in documents
            for subgroup, values in subgroups.items()
            if document in values
        ]
        yield Problem(
            f"{where}: its preferences contradict each other",
            line=max((line for line in lines if line is not None), default=None),
            expected="an order without a cycle in each group",
            got=shorten(" > ".join(documents)),
            hint="put differing opinions in separate groups",
        )
