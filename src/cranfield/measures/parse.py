"""Text to Measure: `nDCG@10`, `P(rel=2)@5`, `nDCG(dcg='exp-log2')@10`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from cranfield.errors import CranfieldError, MeasureError, Problem, UsageError, shorten, unknown_name
from cranfield.measures.catalogue import ALIASES, CATALOGUE, MeasureSpec, ParameterSpec
from cranfield.measures.measure import Measure, Parameter

MAX_CUTOFF = 2**31 - 1
_SHAPE = re.compile(r"\s*(?P<name>[A-Za-z_][\w-]*)\s*(?:\((?P<params>[^()]*)\))?\s*(?:@\s*(?P<cutoff>[^@\s]+))?\s*")
_PARAM = re.compile(r"\s*(?P<name>\w+)\s*=\s*(?:'(?P<single>[^']*)'|\"(?P<double>[^\"]*)\"|(?P<bare>[^\s'\",]+))\s*")


def parse(text: str) -> Measure:
    """Read one measure; aliases become the catalogue's name, defaults disappear.

        >>> parse("MRR@10"), parse("P(rel=1)@5")
        (RR@10, P@5)

    Raises:
        MeasureError: naming each thing wrong with it.
    """
    return parse_all([text])[0]


def parse_all(texts: Sequence[str]) -> tuple[Measure, ...]:
    """Read several measures, dropping repeats; every bad one is named before anything fails."""
    measures: dict[Measure, None] = {}
    problems: list[Problem] = []
    for text in texts:
        try:
            measures[_parse(text)] = None
        except CranfieldError as error:
            problems.extend(error.problems)
    if problems:
        raise MeasureError(problems)
    return tuple(measures)


def _parse(text: str) -> Measure:
    match = _SHAPE.fullmatch(text)
    if match is None:
        raise MeasureError(f"cannot read the measure {shorten(text)}", expected="NAME, NAME@k or NAME(key=value)@k")
    name = ALIASES.get(match["name"], match["name"])
    if name not in CATALOGUE:
        problem = unknown_name("measure", match["name"], CATALOGUE, aliases=ALIASES, command="cranfield measures")
        raise UsageError(problem)
    spec = CATALOGUE[name]
    cutoff = _cutoff(text, spec, match["cutoff"])
    return Measure(name, _parameters(text, spec, match["params"]), cutoff)


def _cutoff(text: str, spec: MeasureSpec, cutoff: str | None) -> int | None:
    if cutoff is None:
        if spec.cutoff == "required":
            raise MeasureError(f"{text}: has no cutoff", expected=f"{spec.name}@k, for example {spec.name}@10")
        return None
    if not re.fullmatch(r"[0-9]{1,10}", cutoff) or not 1 <= int(cutoff) <= MAX_CUTOFF:
        raise MeasureError(f"{text}: cutoff is {cutoff}", expected="a whole number of 1 or more")
    return int(cutoff)


def _parameters(text: str, spec: MeasureSpec, given: str | None) -> tuple[tuple[str, Parameter], ...]:
    values: dict[str, Parameter] = {}
    known = {parameter.name: parameter for parameter in spec.parameters}
    for part in (given or "").split(",") if (given or "").strip() else []:
        match = _PARAM.fullmatch(part)
        if match is None:
            raise MeasureError(f"{text}: cannot read the parameter {shorten(part.strip())}", expected="key=value")
        if match["name"] not in known:
            raise UsageError(unknown_name(f"parameter of {spec.name}", match["name"], known))
        if match["name"] in values:
            raise MeasureError(f"{text}: parameter {match['name']} is given twice")
        raw = next(v for v in (match["single"], match["double"], match["bare"]) if v is not None)
        values[match["name"]] = _value(text, known[match["name"]], raw)
    return tuple((p.name, values[p.name]) for p in spec.parameters if values.get(p.name, p.default) != p.default)


def _value(text: str, spec: ParameterSpec, raw: str) -> Parameter:
    if isinstance(spec.default, str):
        if spec.choices and raw not in spec.choices:
            raise UsageError(unknown_name(f"value of {spec.name}", raw, spec.choices))
        return raw
    minimum = spec.minimum if spec.minimum is not None else -MAX_CUTOFF
    if not re.fullmatch(r"-?[0-9]{1,10}", raw) or not minimum <= int(raw) <= MAX_CUTOFF:
        raise MeasureError(f"{text}: {spec.name} is {raw}", expected=f"a whole number of {minimum} or more")
    return int(raw)
