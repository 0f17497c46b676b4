"""Results in an output that is no JSON: lines with columns, numbered lists, addresses. One table of what is tried."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cranfield.project.init.values import Known, Shape

LOOKED_AT = 200_000
"""Characters of an output."""
LEAST_SHARE = 0.6
"""Of the lines that are not blank, for a form that is a line a result."""
_NUMBER = r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?"


@dataclass(frozen=True, slots=True)
class TextForm:
    """A row of the table."""

    regex: str
    what: str
    is_line: bool = True
    """Whether each line is a result."""


FORMS = (
    TextForm(rf"(?m)^\S+[ \t]+Q0[ \t]+(?P<id>\S+)[ \t]+\d+[ \t]+(?P<score>{_NUMBER})(?=[ \t])", "lines of a TREC run"),
    TextForm(rf"(?m)^(?P<id>[^\t\r\n]+)\t(?P<score>{_NUMBER})(?=[\t\r]|$)", "lines of an id, a tab and a score"),
    TextForm(rf"(?m)^(?P<score>{_NUMBER})\t(?P<id>[^\t\r\n]+)", "lines of a score, a tab and an id"),
    TextForm(r"(?m)^(?P<id>[^\s:]+):(?P<span>\d+(?:-\d+)?)(?=:|$)", "lines `path:line`, as grep prints them"),
    TextForm(r"(?P<id>[A-Za-z][A-Za-z0-9+.\-]*://[^\s<>\"'`)\]}|]+)", "addresses in the text", is_line=False),
    TextForm(r"(?m)^[ \t]*\[?\d+[.):\]]\s+(?P<id>\S+)", "a numbered list"),
    TextForm(r"(?m)^(?P<id>[^\t\r\n]+)\t", "lines whose first column is an id"),
    TextForm(r"(?m)^(?P<id>\S+)[ \t]*\r?$", "lines of an id each"),
    TextForm(r"(?m)^(?P<id>\S+)(?=\s)", "lines whose first word is an id"),
)
"""In the order in which they are tried; those whose ids the test set expects go first."""


def text_shape(outputs: Sequence[str], known: Known) -> Shape | None:
    """How results are read from texts; None where no form fits."""
    outputs = [output[:LOOKED_AT] for output in outputs]
    best: tuple[int, TextForm] | None = None
    for form in FORMS:
        pattern = re.compile(form.regex)
        matches = [list(pattern.finditer(output)) for output in outputs]
        n_lines = sum(bool(line.strip()) for output in outputs for line in output.splitlines())
        n_found = sum(map(len, matches))
        if not n_found or (form.is_line and n_found < LEAST_SHARE * n_lines):
            continue
        n_known = known.count(match["id"] for found in matches for match in found)
        if best is None or n_known > best[0]:
            best = n_known, form
    if best is None:
        return None
    n_known, form = best
    extract: Mapping[str, Any] = {"regex": form.regex}
    return Shape(extract, form.what, n_known)
