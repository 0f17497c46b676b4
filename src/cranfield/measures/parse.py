"""Text to Measure: `nDCG@10`, `P(rel=2)@5`, `nDCG(dcg='exp-log2')@10`, and trec_eval's names (`ndcg_cut_10`)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from cranfield.base.errors import CranfieldError, MeasureError, Problem, UsageError, shorten, unknown_name
from cranfield.measures.catalogue import (
    ALIASES,
    CATALOGUE,
    EXAMPLE,
    PRESETS,
    TREC_CUTS,
    known_cut,
    known_name,
    unknown_measure,
    with_name,
)
from cranfield.measures.families.composite import EXAMPLE as SUM
from cranfield.measures.families.composite import is_sum, read_sum, terms_of
from cranfield.measures.measure import COMPOSITE, READERS, Gains, Measure, MeasureSpec, Parameter, ParameterSpec, spell

MAX_CUTOFF = 2**31 - 1
LONGEST = 1000
"""No measure is written in more characters."""
_SHAPE = re.compile(r"\s*(?P<name>\w[\w-]*)(?:\s*\((?P<params>[^()]*)\))?(?:\s*@\s*(?P<cutoff>[^@\s]+))?\s*")
_SWAPPED = re.compile(r"\s*(?P<name>\w[\w-]*)\s*@\s*(?P<cutoff>[^@()\s]+)\s*\((?P<params>[^()]*)\)\s*")
"""`nDCG@10(dcg=log2)`: the parameters after the cutoff."""
_PARAM = re.compile(
    r"""\s*(?P<name>\w+)\s*=\s*(?:'(?P<single>[^']*)'|"(?P<double>[^"]*)"|(?P<map>\{[^{}]*\})|(?P<bare>[^\s'",{}]+))\s*(?:,|$)"""
)
_TREC = re.compile(r"(?P<name>[A-Za-z_]\w*?)[._](?P<cutoff>[0-9][0-9.]*)")
_RANX_LEVEL = re.compile(r"\s*(?P<measure>[A-Za-z]\w*(?:-\w+)?(?:[.@][0-9]+)?)-l(?P<level>[0-9]{1,4})\s*")
"""`precision@10-l2`, as ranx writes the lowest relevant grade."""
_RANX_RBP = re.compile(r"\s*rbp(?P<by>[.@])(?P<digits>[0-9]{1,9})\s*")
"""`rbp.95` or `rbp@95`: the digits of its persistence behind the point."""
_SENTENCE_TRANSFORMERS = re.compile(
    r"\s*(?:(?P<by>cosine|dot|euclidean|manhattan)_)?(?P<name>accuracy|precision|recall|ndcg|mrr|map)@(?P<k>[0-9]+)\s*"
)
"""`cosine_map@100`: a measure by the similarity that ranks."""
_RAGAS = re.compile(r"\s*context_(?P<name>recall|precision)(?:@(?P<k>[0-9]+))?\s*")
"""Names of Ragas for measures of judged results; without a cutoff they are of the whole list."""
_THERE = {
    "accuracy": "Success",
    "precision": "P",
    "recall": "R",
    "ndcg": "nDCG",
    "mrr": "RR",
    "map": "AP(divisor='reachable')",
}
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


def parse(text: str) -> Measure:
    """Read one measure; aliases become the catalogue's name, defaults disappear.

        >>> parse("MRR@10"), parse("P(rel=1)@5"), parse("ndcg_cut_10")
        (RR@10, P@5, nDCG@10)

    Raises:
        MeasureError: naming each thing wrong with it.
    """
    return parse_all([text])[0]


READERS.append(parse)


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


USUAL_K = 10
"""Results requested of a system, where no measure looks deeper."""
MAX_K = 1000
"""Results requested for a deeper cutoff; more are requested by a `k` that is declared."""


def deepest_cutoff(measures: Iterable[str | Measure], ranks: Iterable[int] = ()) -> int:
    """Number of results that measures and further ranks need, from 10 to 1000.

    Example:
        >>> deepest_cutoff(["R@20", "AP"])
        20
    """
    listed = list(measures)
    given = [each for each in listed if isinstance(each, Measure)]
    given += parse_all([each for each in listed if isinstance(each, str)])
    given += [term.measure for each in given if each.name == COMPOSITE for term in terms_of(each)]
    depths = [each.depth for each in given if each.depth is not None and not CATALOGUE[each.name].is_own]
    return min(max([USUAL_K, *depths, *ranks]), MAX_K)


def parse_typed(texts: Sequence[str]) -> tuple[tuple[Measure, ...], list[str]]:
    """Read several measures, each under the name that is written, and say which are repeated under another name.

        >>> parse_typed(["MRR@10", "RR@10"])
        ((MRR@10,), ['RR@10 is MRR@10 under another name: one column'])

    Raises:
        MeasureError: naming every bad one.
    """
    found: dict[Measure, Measure] = {}
    notes: dict[str, None] = {}
    parse_all(texts)
    for typed in map(as_typed, texts):
        first = found.setdefault(typed, typed)
        if str(first) != str(typed):
            notes[f"{typed} is {first} under another name: one column"] = None
    return tuple(found), list(notes)


def as_typed(text: str) -> Measure:
    """Read one measure with the alias that is written: `Hit@5` for `Success@5`, which is the same measure."""
    measure, match = _parse(text), _SHAPE.fullmatch(text)
    name = measure.name if match is None else match["name"]
    typed = replace(measure, shown=name)
    is_alias = name.casefold() != measure.name.casefold() and str(typed) == text.strip()
    return typed if is_alias else measure


@lru_cache(maxsize=1000)
def _parse(text: str) -> Measure:
    if len(text) > LONGEST:
        raise MeasureError(f"cannot read the measure {shorten(text)}", expected=f"at most {LONGEST} characters")
    if is_sum(text):
        return read_sum(text)
    return _of_another_tool(text) or _of_the_catalogue(text)


def _of_the_catalogue(text: str) -> Measure:
    """A measure in the spelling of the catalogue or of trec_eval."""
    swapped = _SWAPPED.fullmatch(text)
    if swapped is not None:
        meant = _parse(f"{swapped['name']}({swapped['params']})@{swapped['cutoff']}")
        raise MeasureError(f"{text}: the parameters must come before the cutoff", expected=str(meant))
    match = _SHAPE.fullmatch(text)
    if match is None:
        trec = _TREC.fullmatch(text.strip())  # a share holds a point, which no name does: iprec_at_recall_0.10
        if trec is not None and known_cut(trec["name"]) in TREC_CUTS:
            return _measure(text, TREC_CUTS[known_cut(trec["name"])], None, trec["cutoff"])
        raise MeasureError(f"cannot read the measure {shorten(text)}", expected="NAME, NAME@k or NAME(key=value)@k")
    name, params, cutoff = match["name"], match["params"], match["cutoff"]
    if name in CATALOGUE and params is None:
        return _measure(text, name, params, cutoff)
    trec = _TREC.fullmatch(name)
    known = name in CATALOGUE or name in ALIASES
    if not known and cutoff is None and trec is not None and known_cut(trec["name"]) in TREC_CUTS:
        return _measure(text, TREC_CUTS[known_cut(trec["name"])], params, trec["cutoff"])
    if (
        params is not None
        and params.strip() == "d"
        and f"{ALIASES.get(known_name(name), known_name(name))}(d)" in ALIASES
    ):
        return replace(_parse(name + (f"@{cutoff}" if cutoff is not None else "")), on_detail=True)
    if params is None and name in PRESETS:
        name, params = PRESETS[name]
    if cutoff is not None and name in TREC_CUTS:  # recall@10, success@5
        return _measure(text, TREC_CUTS[name], params, cutoff)
    name = name if name in PRESETS else known_name(name)
    return _measure(text, ALIASES.get(name, name), params, cutoff)


def _of_another_tool(text: str) -> Measure | None:
    """A measure in the spelling of ranx, sentence-transformers or Ragas; None of another spelling.

    Raises:
        MeasureError: a name that means one thing in one tool and another in the next.
    """
    if match := _RANX_RBP.fullmatch(text):
        if match["by"] == "@":
            raise MeasureError(
                f"{text.strip()} is a persistence in ranx, and a cutoff here",
                expected=f"rbp.{match['digits']}, for p = 0.{match['digits']}, or RBP@{match['digits']}",
            )
        return _parse(f"RBP(p=0.{match['digits']}, depth=0, scaled=False)")
    if match := _RAGAS.fullmatch(text):
        cutoff = f"@{match['k']}" if match["k"] else ""
        if match["name"] == "precision":
            return _parse(f"AP(divisor='retrieved'){cutoff}")
        return _parse(f"R{cutoff}" if cutoff else "SetR")
    if match := _RANX_LEVEL.fullmatch(text):
        return _from_grade(text, _parse(match["measure"]), int(match["level"]))
    if match := _SENTENCE_TRANSFORMERS.fullmatch(text):
        meant = f"{_THERE[match['name']]}@{match['k']}"
        if match["by"]:
            return _parse(meant)
        if match["name"] == "accuracy":
            raise MeasureError(
                f"{text.strip()} is one measure in sentence-transformers and another in ir_measures",
                expected=f"{meant}, the hit rate of sentence-transformers, or Accuracy@{match['k']} of ir_measures",
            )
    return None


def _from_grade(text: str, measure: Measure, level: int) -> Measure:
    """A measure for which grades under a level are not relevant, or have no gain where gains are graded, as ranx has it."""
    known = {parameter.name for parameter in CATALOGUE[measure.name].parameters}
    given = dict(measure.params)
    if level <= 1:
        return measure
    if measure.name != "RBP" and "rel" in known:
        given["rel"] = level
    elif "gains" in known:
        given["gains"] = tuple((grade, 0.0) for grade in range(1, level))
    else:
        raise MeasureError(f"{text}: {measure.name} has no lowest relevant grade", expected=str(measure))
    params = tuple((each.name, given[each.name]) for each in CATALOGUE[measure.name].parameters if each.name in given)
    return Measure(measure.name, params, measure.cutoff)


def _measure(text: str, name: str, params: str | None, cutoff: str | None) -> Measure:
    if name not in CATALOGUE:
        from cranfield.measures.own import load_plugins

        broken = load_plugins()
        name = known_name(name)
        name = ALIASES.get(name, name)
        if broken or name not in CATALOGUE:
            unknown = [] if name in CATALOGUE else [unknown_measure(name, params, cutoff, parse)]
            raise UsageError([*unknown, *broken])
    spec = CATALOGUE[name]
    if spec.composed is not None:
        raise MeasureError(
            f"{text}: {spec.name} is written as a sum", expected=f"WEIGHT * MEASURE[KEY=VALUE] + …, as in {SUM}"
        )
    values, named_cutoff = _parameters(text, spec, params)
    if named_cutoff is not None and cutoff not in (None, named_cutoff):
        raise MeasureError(
            f"{text}: has two cutoffs, {named_cutoff} and {cutoff}", expected=f"one, as in {spec.spelling}"
        )
    others = [key for key, _ in values if key in ("rel", "only_best")]
    if others and "only_grade" in dict(values):
        raise MeasureError(
            f"{text}: only_grade is given together with {' and '.join(others)}",
            expected="only_grade=N for one grade, rel=N for every grade from N up, or only_best=True for the highest of each query",
        )
    return Measure(name, values, _cutoff(text, spec, cutoff or named_cutoff))


def _cutoff(text: str, spec: MeasureSpec, cutoff: str | None) -> int | float | None:
    if cutoff is None:
        if spec.cutoff == "required":
            example = f"{spec.name}@{EXAMPLE[spec.cutoff_kind]}"
            raise MeasureError(f"{text}: has no cutoff", expected=f"{spec.spelling}, for example {example}")
        return None
    if spec.cutoff == "none":
        raise MeasureError(f"{text}: {spec.name} takes no cutoff", expected=spec.name)
    if spec.cutoff_kind == "share":
        share = float(cutoff) if _NUMBER.fullmatch(cutoff) else math.nan
        if not 0 <= share <= 1:
            raise MeasureError(f"{text}: cutoff is {cutoff}", expected="a share from 0 to 1")
        return share
    if spec.cutoff_kind == "multiple":
        multiple = float(cutoff) if _NUMBER.fullmatch(cutoff) else math.nan
        if not 0 < multiple <= MAX_CUTOFF:
            raise MeasureError(f"{text}: cutoff is {cutoff}", expected="a number above 0")
        return multiple
    if not re.fullmatch(r"[0-9]{1,10}", cutoff) or not 1 <= int(cutoff) <= MAX_CUTOFF:
        expected = f"a whole number from 1 to {MAX_CUTOFF}" if len(cutoff) > 9 else "a whole number of 1 or more"
        raise MeasureError(f"{text}: cutoff is {cutoff}", expected=expected)
    return int(cutoff)


def _parameters(
    text: str, spec: MeasureSpec, given: str | None
) -> tuple[tuple[tuple[str, Parameter], ...], str | None]:
    """The parameters between the brackets, and the cutoff where it is one of them: `nDCG(cutoff=10)`, `IPrec(recall=0.4)`."""
    values: dict[str, Parameter] = {}
    cutoffs: list[str] = []
    known = {parameter.name: parameter for parameter in spec.parameters}
    cutoff_names = {"cutoff", "recall"} if spec.cutoff_kind == "share" else {"cutoff"}
    for match in _split(text, spec, given or ""):
        if match["name"] in cutoff_names - known.keys() and match["bare"] is not None and not cutoffs:
            cutoffs.append(match["bare"])
            continue
        if match["name"] in cutoff_names and cutoffs:
            raise MeasureError(f"{text}: parameter {match['name']} is given twice")
        if match["name"] not in known:
            raise UsageError(unknown_name(f"parameter of {spec.name}", match["name"], known))
        if match["name"] in values:
            raise MeasureError(f"{text}: parameter {match['name']} is given twice")
        raw = next(v for v in (match["single"], match["double"], match["map"], match["bare"]) if v is not None)
        values[match["name"]] = _value(text, known[match["name"]], raw)
    changed = tuple((p.name, values[p.name]) for p in spec.parameters if values.get(p.name, p.default) != p.default)
    return changed, cutoffs[0] if cutoffs else None


def _split(text: str, spec: MeasureSpec, given: str) -> Iterator[re.Match[str]]:
    """The parameters between the brackets, one match each."""
    position = 0
    while given[position:].strip():
        match = _PARAM.match(given, position)
        if match is None:
            raise MeasureError(
                f"{text}: cannot read the parameter {shorten(given[position:].strip())}",
                expected=f"key=value, as in {named}"
                if (named := with_name(text, spec, given, _parse))
                else "key=value",
            )
        yield match
        position = match.end()


def _value(text: str, spec: ParameterSpec, raw: str) -> Parameter:
    """Read one value; the type of the default is the type that is expected."""
    if isinstance(spec.default, tuple):
        return _gains(text, raw)
    if isinstance(spec.default, bool):
        if raw.lower() not in {"true", "false"}:
            raise MeasureError(f"{text}: {spec.name} is {raw}", expected="True or False")
        return raw.lower() == "true"
    if isinstance(spec.default, str):
        if spec.choices and raw not in spec.choices:
            raise UsageError(unknown_name(f"value of {spec.name}", raw, spec.choices))
        return raw
    whole = isinstance(spec.default, int)
    pattern = r"[+-]?[0-9]{1,10}" if whole else _NUMBER
    value = float(raw) if re.fullmatch(pattern, raw) else math.nan
    low = -MAX_CUTOFF if spec.minimum is None else spec.minimum
    high = MAX_CUTOFF if spec.maximum is None else spec.maximum
    outside = (spec.above_minimum and value == low) or (spec.below_maximum and value == high)
    if not (low <= value <= high and not outside):
        raise MeasureError(
            f"{text}: {spec.name} is {raw}", expected=f"a {'whole ' if whole else ''}number{_bounds(spec)}"
        )
    return int(raw) if whole else value


def _bounds(spec: ParameterSpec) -> str:
    if spec.minimum is not None and spec.maximum is None and not spec.above_minimum:
        return f" of {spell(spec.minimum)} or more"
    words = []
    if spec.minimum is not None:
        words.append(f"{'above' if spec.above_minimum else 'from'} {spell(spec.minimum)}")
    if spec.maximum is not None:
        words.append(f"{'below' if spec.below_maximum else 'up to'} {spell(spec.maximum)}")
    return (" " + " and ".join(words)) if words else ""


def _gains(text: str, raw: str) -> Gains:
    """`{1: 3, 2: 9}`, by grade."""
    gains: dict[int, float] = {}
    for pair in raw.strip("{}").split(","):
        grade, _, gain = (part.strip() for part in pair.partition(":"))
        if (
            not re.fullmatch(r"[+-]?[0-9]{1,10}", grade)
            or not _NUMBER.fullmatch(gain)
            or not math.isfinite(float(gain))
        ):
            raise MeasureError(
                f"{text}: cannot read the gain {shorten(pair.strip())}", expected="grade: gain, as in {1: 3, 2: 9}"
            )
        if int(grade) in gains:
            raise MeasureError(f"{text}: the gain of grade {int(grade)} is given twice")
        gains[int(grade)] = float(gain)
    return tuple(sorted(gains.items()))
