"""Types of expressions, as the type checker displays them: read from a copy of a file in which each is passed to `reveal_type`.

A type that has an attribute of every name, by a `__getattr__` or because nothing is known of it, is found by reading one
that is not defined.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from cranfield.codecheck.python.facts import Place
from cranfield.codecheck.python.probes import Copy, Edit
from cranfield.codecheck.python.ty import ATTRIBUTE, OF_UNION, REVEALED, SYNTAX, Diagnostic, Workplace

Span = tuple[Place, Place]
Expression = tuple[str, Place, Place]
"""File, first and last place."""
_FUNCTION = "reveal_type("
_TYPE = re.compile(r"`(?P<type>.*)`", re.DOTALL)
NO_SUCH_NAME = "cranfield_no_such_name"
_UNKNOWN = re.compile(r"Unknown|Any|Divergent|@Todo.*|Todo.*")
_OPEN, _CLOSED = "[(<{", "])>}"


def shown_type(text: str) -> str:
    """The type in a message of the type checker."""
    match = _TYPE.search(text)
    return match["type"] if match else ""


def components(displayed: str) -> list[str]:
    """The types of a union, without those of which nothing is known, and without None beside them."""
    if not displayed:
        return []
    parts, depth, part = [], 0, ""
    for position, sign in enumerate(displayed):
        depth += (sign in _OPEN) - (sign in _CLOSED and displayed[position - 1 : position + 1] != "->")
        if sign == "|" and depth == 0:
            parts.append(part.strip())
            part = ""
        else:
            part += sign
    known = [each for each in [*parts, part.strip()] if not _UNKNOWN.fullmatch(each)]
    return [] if known == ["None"] and parts else known


async def reveal_types(
    place: Workplace, texts: Mapping[str, str], expressions: Iterable[Expression], version: str, platform: str
) -> dict[Expression, str]:
    """Types of expressions. Those of a file whose copy cannot be read are left out.

    Raises:
        CheckerError: the type checker could not run.
    """
    by_file: dict[str, set[Span]] = defaultdict(set)
    for file, first, last in expressions:
        by_file[file].add((first, last))
    copies = {file: _revealing(texts[file], spans) for file, spans in by_file.items()}
    found: dict[Expression, str] = {}
    rows = await _check_copies(place, texts, {file: text for file, (text, _) in copies.items()}, version, platform)
    for row in rows:
        span = copies[row.file][1].get((row.line, row.column))
        if row.rule == REVEALED and span is not None:
            found.setdefault((row.file, *span), shown_type(row.message))
    broken = {row.file for row in rows if row.rule == SYNTAX}
    return {key: value for key, value in found.items() if key[0] not in broken}


async def types_of_any_name(
    place: Workplace, texts: Mapping[str, str], examples: Mapping[str, Expression], version: str, platform: str
) -> dict[str, str]:
    """Types that have an attribute of every name, and the type of such an attribute.

    Args:
        place: of the files.
        texts: of the files.
        examples: displayed type to an expression of it.
        version: of Python.
        platform: of the target.

    Raises:
        CheckerError: the type checker could not run.
    """
    found: dict[str, str] = {}
    left = dict(examples)
    while left:
        now: dict[str, Expression] = {}
        for displayed, expression in left.items():  # expressions that lie in expression another take turns
            if all(
                expression[0] != other[0] or expression[2] <= other[1] or other[2] <= expression[1]
                for other in now.values()
            ):
                now[displayed] = expression
        left = {displayed: expression for displayed, expression in left.items() if displayed not in now}
        copies = {
            file: Copy(
                texts[file],
                [edit for expression in now.values() if expression[0] == file for edit in _edits(expression, texts)],
            )
            for file in {expression[0] for expression in now.values()}
        }
        rows = await _check_copies(place, texts, {file: copy.text for file, copy in copies.items()}, version, platform)
        at = {(file, *copies[file].moved(first)): displayed for displayed, (file, first, _) in now.items()}
        refused = {at.get(row.place) for row in rows if row.rule in {ATTRIBUTE, OF_UNION}}
        for row in rows:
            displayed = at.get(row.place, "")
            if row.rule == REVEALED and displayed and displayed not in refused:
                found[displayed] = shown_type(row.message)
    return found


def _edits(expression: Expression, texts: Mapping[str, str]) -> list[Edit]:
    """An attribute that is not defined is looked at before an expression, whose value remains: other types follow from it."""
    file, first, last = expression
    again = Copy(texts[file], ()).between(first, last)
    return [Edit(first, first, f"({_FUNCTION}"), Edit(last, last, f".{NO_SUCH_NAME}), {again})[1]")]


async def _check_copies(
    place: Workplace, texts: Mapping[str, str], copies: Mapping[str, str], version: str, platform: str
) -> Sequence[Diagnostic]:
    for file, text in copies.items():
        (place.code / file).write_text(text, encoding="utf-8", errors="surrogatepass")
    try:
        return await place.run_types(version, platform, sorted(copies)) if copies else ()
    finally:
        for file in copies:
            (place.code / file).write_text(texts[file], encoding="utf-8", errors="surrogatepass")


def _revealing(text: str, spans: Iterable[Span]) -> tuple[str, dict[Place, Span]]:
    """A copy, and the expression whose type is revealed at each place of it."""
    starts, ends = defaultdict[Place, list[Span]](list), defaultdict[Place, int](int)
    for span in spans:
        starts[span[0]].append(span)
        ends[span[1]] += 1
    lines, places = [], dict[Place, Span]()
    for number, line in enumerate(text.split("\n"), 1):
        columns = sorted({column for row, column in (*starts, *ends) if row == number})
        parts, length, before = [], 0, 1
        for column in columns:
            piece = line[before - 1 : column - 1] + ")" * ends[number, column]
            parts.append(piece)
            length += len(piece)
            for span in sorted(starts[number, column], key=lambda span: span[1], reverse=True):
                parts.append(_FUNCTION)
                length += len(_FUNCTION)
                places[number, length + 1] = span
            before = column
        lines.append("".join([*parts, line[before - 1 :]]))
    return "\n".join(lines), places
