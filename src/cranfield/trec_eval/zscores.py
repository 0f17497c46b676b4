"""Means and deviations of a reference set of runs, and values seen against them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from cranfield.errors import InputError, ProblemList, shorten
from cranfield.formats.io.cells import number_of
from cranfield.formats.io.files import opened

MISSING = -1000000.0
"""What trec_eval prints where the file does not say."""
LINE = "query measure mean deviation"

Reference = Mapping[tuple[str, str], tuple[float, float]]
"""(query, measure as printed) to (mean, standard deviation)."""


def read_zscores(path: Path) -> Reference:
    """Read lines `query measure mean deviation`.

    Raises:
        InputError: with every bad line, and with lines that say the same thing twice.
    """
    problems = ProblemList(InputError)
    reference: dict[tuple[str, str], tuple[float, float]] = {}
    with opened(path, InputError) as stream:
        for number, line in enumerate(stream, start=1):
            columns = [column.decode("utf-8", "surrogateescape") for column in line.split()]
            if not columns:
                continue
            numbers = [found for text in columns[2:] if (found := number_of(text)) is not None]
            if len(columns) != len(LINE.split()) or len(numbers) < len(columns[2:]):
                got = shorten(" ".join(columns))
                problems.add("cannot read the line", path=str(path), line=number, expected=f"`{LINE}`", got=got)
                continue
            key = (columns[0], columns[1])
            if key in reference:
                what = f"query {key[0]!r}, measure {key[1]!r} is given twice"
                problems.add(what, path=str(path), line=number, expected="one line each")
            reference[key] = (numbers[0], numbers[1])
    problems.raise_if_any()
    return reference


def zscores(values: Sequence[float], query_ids: Sequence[str], label: str, reference: Reference) -> list[float]:
    """How many standard deviations each value is above the mean; MISSING where the reference does not say."""
    scores = []
    for query_id, value in zip(query_ids, values, strict=True):
        mean, deviation = reference.get((query_id, label), (math.nan, 0.0))
        if deviation:
            scores.append((value - mean) / deviation)
        else:
            scores.append(0.0 if value == mean else MISSING)
    return scores
