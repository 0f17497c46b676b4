"""The catalogue of measures: names, spellings and parameters, and the nearest name to one that is unknown."""

from __future__ import annotations

import importlib
import math
import re
from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence
from dataclasses import replace
from threading import RLock
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from cranfield.errors import CranfieldError, MeasureError, Problem, UsageError, nearest_name, shorten, unknown_name
from cranfield.measures.measure import (
    LOOKS_AT_THE_LIST,
    READERS,
    WHY_NEEDED,
    Gains,
    Measure,
    MeasureSpec,
    Needs,
    Parameter,
    ParameterSpec,
    Reason,
    order_is_random,
    refused,
    rounded,
    seen_by,
    spell,
    unjudged,
    without_value,
)
from cranfield.ranking.value import UNKNOWN_COUNT, Aspect, FloatQ, Ranking

FAMILIES = {
    "Common measures": "core",
    "Sums, counts and costs": "counts",
    "Other measures of trec_eval": "trec",
    "Query classes": "aspects",
    "User models": "user_models",
    "Subtopics": "diversity",
    "Preferences and judges": "preference",
}
"""Heading to module, in the order help and docs list them; a family is imported when a name is not in those before it."""

_WAITING = list(FAMILIES.values())
"""Families that are not imported, in order."""
_LOCK = RLock()
Entry = TypeVar("Entry")


class Table(MutableMapping[str, Entry]):
    """A dict over all families that imports them as they are needed."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}

    def __getitem__(self, name: str) -> Entry:
        while name not in self._entries and _WAITING:
            _import_family()
        return self._entries[name]

    def __setitem__(self, name: str, entry: Entry) -> None:
        self._entries[name] = entry

    def __delitem__(self, name: str) -> None:
        del self._entries[name]

    def __iter__(self) -> Iterator[str]:
        while _WAITING:
            _import_family()
        return iter(self._entries)

    def __len__(self) -> int:
        return sum(1 for _ in self)


CATALOGUE: Table[MeasureSpec] = Table()
"""Name to spec. `register` adds to it."""

ALIASES: Table[str] = Table()
"""Other names that are understood and never printed."""

TREC_CUTS: Table[str] = Table()
"""trec_eval's names that a cutoff follows (`ndcg_cut_10`, `P.5`), and the names here."""

PRESETS: Table[tuple[str, str]] = Table()
"""Names that stand for a measure with some parameters (`ndcg_burges`), and those."""

DEFAULT_MEASURES = ("nDCG@10", "RR@10", "AP", "P@5", "R@10", "Success@5", "Judged@10")
"""The default list; the first is the primary measure."""

CHOOSING = ("judged_only", "gains")
"""Parameters that change the ranking a kernel sees."""


LOOKED_FOR: dict[Needs, Aspect] = {"files": Aspect.FILE, "legacy": Aspect.LEGACY, "sources": Aspect.SOURCE}
"""Needs that are side columns."""


def _import_family() -> None:
    """Add the next family to the tables."""
    with _LOCK:
        if not _WAITING:
            return
        for spec in _specs(_WAITING[0]):
            CATALOGUE[spec.name] = spec
            _index(spec)
        del _WAITING[0]


def _specs(family: str) -> tuple[MeasureSpec, ...]:
    specs: tuple[MeasureSpec, ...] = importlib.import_module(f"cranfield.measures.families.{family}").SPECS
    return specs


def _index(spec: MeasureSpec) -> None:
    ALIASES.update(dict.fromkeys(spec.aliases, spec.name))
    PRESETS.update({name: (spec.name, parameters) for name, parameters in spec.presets})
    if spec.trec_name and spec.trec_name != spec.name:
        ALIASES[spec.trec_name] = spec.name
    if spec.trec_cut_name:
        TREC_CUTS[spec.trec_cut_name] = spec.name


OWN = "Your own"
"""Heading of what `register` added."""


def by_family() -> dict[str, list[MeasureSpec]]:
    """Every measure under the heading of its family."""
    families = {
        heading: [spec for spec in _specs(module) if spec.name in CATALOGUE] for heading, module in FAMILIES.items()
    }
    listed = {spec.name for specs in families.values() for spec in specs}
    own = [spec for name, spec in CATALOGUE.items() if name not in listed]
    return families | ({OWN: own} if own else {})


def register(spec: MeasureSpec) -> None:
    """Add a measure of your own to the catalogue: it parses, prints and is reported like any other.

    Raises:
        UsageError: its name, or one of its other names, is taken.
    """
    taken = [name for name in (spec.name, *spec.aliases) if name in CATALOGUE or name in ALIASES or name in PRESETS]
    if taken:
        raise UsageError(f"measure {spec.name!r} is not added: {', '.join(taken)} is taken", expected="a new name")
    CATALOGUE[spec.name] = spec
    _index(spec)


def compute(measure: Measure, ranking: Ranking) -> tuple[FloatQ, NDArray[np.bool_], dict[str, str]]:
    """Score every query.

    Returns:
        float64[Q] values (0 where unscored), bool[Q] which queries are scored, and the reason of each that is not.
    """
    spec = CATALOGUE[measure.name]
    kernel = _kernel(spec, measure, ranking)
    if isinstance(kernel, Reason):
        why: dict[str, str] = dict.fromkeys(ranking.query_ids, kernel)
        return np.zeros(ranking.n_queries), np.zeros(ranking.n_queries, dtype=np.bool_), why
    looks_at_the_list = spec.needs in LOOKS_AT_THE_LIST
    seen = ranking if looks_at_the_list else seen_by(measure, ranking, diagnostic=spec.diagnostic)
    parameters = {name: value for name, value in measure.params if name not in CHOOSING}
    with np.errstate(over="ignore", invalid="ignore"):  # an infinite worth leaves its query without a value
        values = kernel(seen, measure.cutoff, **parameters)
    scored = np.isfinite(values)
    reasons = {ranking.query_ids[i]: spec.why_unscored for i in np.flatnonzero(~scored)}
    if spec.why_unscored is Reason.NEEDS_COUNT:
        uncounted = set(ranking.expected_query[ranking.expected_count == UNKNOWN_COUNT].tolist())
        reasons |= {ranking.query_ids[i]: Reason.TOO_LARGE for i in np.flatnonzero(~scored) if i not in uncounted}
    if not spec.closed_world:
        for i in np.flatnonzero(ranking.closed_world):
            scored[i] = False
            reasons[ranking.query_ids[i]] = Reason.NOTHING_UNJUDGED
    if not looks_at_the_list:
        for queries, reason in unjudged(ranking):
            scored[queries] = False
            reasons |= {ranking.query_ids[i]: reason for i in queries}
    if not spec.diagnostic:
        for queries, reason in without_value(measure, ranking, only_failures=looks_at_the_list):
            scored[queries] = False
            reasons = {ranking.query_ids[i]: reason for i in queries} | reasons
        values = rounded(values, ranking.convention.decimals)
    for queries, reason in refused(measure, ranking):
        scored[queries] = False
        reasons |= {ranking.query_ids[i]: reason for i in queries}
    return np.where(scored, values, 0.0), scored, reasons


def _kernel(spec: MeasureSpec, measure: Measure, ranking: Ranking) -> Callable[..., FloatQ] | Reason:
    """The kernel of a measure under the convention of a ranking, or why no query has a value."""
    if spec.needs is not None and not _carries(ranking, spec.needs):
        return WHY_NEEDED[spec.needs]
    if ranking.cut_at is not None and measure.depth is not None and measure.depth > ranking.cut_at and not spec.is_own:
        return Reason.CUT_SHORT
    if ranking.convention.ties != "expected":
        return spec.kernel
    return (spec.over_ties if order_is_random(measure, ranking) else None) or Reason.NO_FORMULA_FOR_TIES


def _carries(ranking: Ranking, need: Needs) -> bool:
    if need == "tokens":
        return ranking.tokens_returned is not None
    if need == "silence":
        return ranking.silence is not None
    if need in LOOKED_FOR:
        return ranking.aspects is not None and bool((ranking.aspects.kind == LOOKED_FOR[need]).any())
    return ranking.groups is not None and ranking.groups.kind == need


_GLUED = re.compile(r"(?P<name>.*?[A-Za-z])[._]?(?P<cutoff>[0-9]+)")
"""`p5`, `ndcg_10`: a name and a cutoff without the @."""
EXAMPLE = {"rank": "10", "share": "0.1", "multiple": "0.5"}
"""A cutoff of each kind."""

ELSEWHERE = {
    "R": ("contextrecall", "contextualrecall", "contextentityrecall", "retrievalrecall"),
    "AP": ("contextprecision", "contextualprecision"),
    "P": ("contextrelevance", "contextrelevancy", "contextualrelevancy", "idbasedcontextprecision"),
    "F1": ("f", "fscore", "f1score", "fmeasure", "fbeta"),
}
"""Measure to the names that tools for answers of language models have for it, or for what is nearest to it."""
OF_ANSWERS = frozenset(
    (
        *("faithfulness", "groundedness", "hallucination", "answerrelevancy", "answerrelevance", "responserelevancy"),
        *("answercorrectness", "factualcorrectness", "answersimilarity", "semanticsimilarity", "noisesensitivity"),
    )
)
"""Names of measures of an answer's text, which no order of results gives."""


def known_name(name: str) -> str:
    """The name in the case that is known: `rbp` is `RBP`, `p` is `P`; unchanged where no name, or several, differ by case."""
    if name in CATALOGUE or name in ALIASES or name in TREC_CUTS:
        return name
    folded = name.casefold()
    same = [known for known in (*CATALOGUE, *ALIASES) if known.casefold() == folded]
    return same[0] if len({ALIASES.get(known, known) for known in same}) == 1 else name


def known_cut(name: str) -> str:
    """The same for a name of trec_eval before a cutoff: `p` of `p_5`."""
    same = [known for known in TREC_CUTS if known.casefold() == name.casefold()]
    return name if name in TREC_CUTS or len(same) != 1 else same[0]


def unknown_measure(name: str, params: str | None, cutoff: str | None, parse: Callable[[str], Measure]) -> Problem:
    """The problem of an unknown name; its hint is the nearest measure with the parameters and the cutoff that were given."""
    listing = "`cranfield measures` lists them."
    folded = re.sub(r"[\W_]", "", name.casefold())
    if folded in OF_ANSWERS:
        return Problem(
            f"{shorten(name)} is no measure of a ranking: it is of the text of an answer",
            expected=f"one of {len(CATALOGUE)} measures",
            hint="of the results that an answer is written from, R@5 says how many of the judged passages are there, Success@5 "
            "whether one is; `cranfield answers score LABELS ANSWERS` scores answers against labels",
        )
    elsewhere = next((measure for measure, names in ELSEWHERE.items() if folded in names), None)
    if elsewhere is None:
        meant = _suggestion(name, params, cutoff, parse)
        hint = f"did you mean {meant}? {listing}" if meant else listing
    else:
        given = "divisor='retrieved'" if elsewhere == "AP" else params
        meant = _whole(elsewhere, given, cutoff, parse)
        hint = (
            f"of results that are judged, {meant} is {'the same' if elsewhere == 'AP' else 'nearest to it'}. {listing}"
        )
    return Problem(f"unknown measure {shorten(name)}", expected=f"one of {len(CATALOGUE)} measures", hint=hint)


def _suggestion(name: str, params: str | None, cutoff: str | None, parse: Callable[[str], Measure]) -> str | None:
    glued = _GLUED.fullmatch(name) if cutoff is None else None
    for stem, cut in [(name, cutoff)] + ([(glued["name"], glued["cutoff"])] if glued else []):
        nearest = _nearest(stem)
        if nearest is None or (glued and stem == name and _nearest(glued["name"]) == nearest):
            continue
        return _whole(nearest, params, cut, parse)
    return None


def _nearest(name: str) -> str | None:
    """The catalogue's name of the nearest name, whatever its case."""
    targets = {known.casefold(): TREC_CUTS[known] for known in TREC_CUTS}
    targets |= {known.casefold(): ALIASES[known] for known in ALIASES}
    targets |= {known.casefold(): known for known in CATALOGUE}
    folded = name.casefold()
    near = folded if folded in targets else nearest_name(folded, sorted(targets))
    return None if near is None else targets[near]


def _whole(name: str, params: str | None, cutoff: str | None, parse: Callable[[str], Measure]) -> str:
    """The spelling that parses, with as much of what was given as it takes; a required cutoff that is missing is an example."""
    spec = CATALOGUE[name]
    example = EXAMPLE[spec.cutoff_kind] if spec.cutoff == "required" else None
    for with_params in dict.fromkeys((params, None)):
        for with_cutoff in dict.fromkeys((cutoff, example, None)):
            text = name + (f"({with_params})" if with_params else "") + (f"@{with_cutoff}" if with_cutoff else "")
            try:
                return str(parse(text))
            except CranfieldError:
                continue
    return name


def with_name(text: str, spec: MeasureSpec, given: str, parse: Callable[[str], Measure]) -> str:
    """The spelling of a measure whose only parameter has no name: `RBP(p=0.5)` for `rbp(.5)`; empty where none parses."""
    value, after = given.strip(), text.rpartition(")")[2].strip()
    spellings = [f"{spec.name}({parameter.name}={value}){after}" for parameter in spec.parameters]
    if value.isdecimal() and not after:
        spellings.insert(0, f"{spec.name}@{value}")
    for spelling in spellings if "=" not in value else ():
        try:
            return str(parse(spelling))
        except CranfieldError:
            continue
    return ""


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
MOST_K = 1000
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
    depths = [each.depth for each in given if each.depth is not None and not CATALOGUE[each.name].is_own]
    return min(max([USUAL_K, *depths, *ranks]), MOST_K)


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


def _parse(text: str) -> Measure:
    if len(text) > LONGEST:
        raise MeasureError(f"cannot read the measure {shorten(text)}", expected=f"at most {LONGEST} characters")
    return _of_another_tool(text) or _of_the_catalogue(text)


def _of_the_catalogue(text: str) -> Measure:
    """A measure in the spelling of the catalogue or of trec_eval."""
    swapped = _SWAPPED.fullmatch(text)
    if swapped is not None:
        meant = _parse(f"{swapped['name']}({swapped['params']})@{swapped['cutoff']}")
        raise MeasureError(f"{text}: the parameters stand after the cutoff", expected=str(meant))
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
    """A measure in the spelling of ranx or sentence-transformers; None of another spelling.

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
    values, named_cutoff = _parameters(text, spec, params)
    if named_cutoff is not None and cutoff not in (None, named_cutoff):
        raise MeasureError(
            f"{text}: has two cutoffs, {named_cutoff} and {cutoff}", expected=f"one, as in {spec.spelling}"
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
    if not _within(spec, value):
        raise MeasureError(
            f"{text}: {spec.name} is {raw}", expected=f"a {'whole ' if whole else ''}number{_bounds(spec)}"
        )
    return int(raw) if whole else value


def _within(spec: ParameterSpec, value: float) -> bool:
    low = -MAX_CUTOFF if spec.minimum is None else spec.minimum
    high = MAX_CUTOFF if spec.maximum is None else spec.maximum
    outside = (spec.above_minimum and value == low) or (spec.below_maximum and value == high)
    return low <= value <= high and not outside


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
