"""The catalogue: one table of measures, from which parser, help, docs, errors and tests are read."""

from __future__ import annotations

import importlib
import itertools
import re
from collections.abc import Callable, Iterator, MutableMapping
from threading import RLock
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from cranfield.base.errors import CranfieldError, Problem, UsageError, nearest_name, shorten
from cranfield.measures.measure import (
    LOOKS_AT_THE_LIST,
    READERS,
    WHY_NEEDED,
    Measure,
    MeasureSpec,
    Needs,
    Reason,
    order_is_random,
    refused,
    rounded,
    seen_by,
    unjudged,
    without_grade,
    without_value,
)
from cranfield.ranking.value import UNKNOWN_COUNT, Aspect, FloatQ, Ranking

FAMILIES = {
    "Common measures": "core",
    "Sums, counts and costs": "counts",
    "Other measures of trec_eval": "trec",
    "Passages of text": "texts",
    "Query classes": "aspects",
    "User models": "user_models",
    "Subtopics": "diversity",
    "Preferences and judges": "preference",
    "Weighted sums": "composite",
}
"""Heading to module, in the order help and docs list them; a family is imported when a name is not in those before it."""

_WAITING = list(FAMILIES.values())
"""Families that are not imported, in order."""
_LOCK = RLock()
Entry = TypeVar("Entry")


class CatalogueTable(MutableMapping[str, Entry]):
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


CATALOGUE: CatalogueTable[MeasureSpec] = CatalogueTable()
"""Name to spec. `register` adds to it."""

ALIASES: CatalogueTable[str] = CatalogueTable()
"""Other names that are understood and never printed."""

TREC_CUTS: CatalogueTable[str] = CatalogueTable()
"""trec_eval's names that a cutoff follows (`ndcg_cut_10`, `P.5`), and the names here."""

PRESETS: CatalogueTable[tuple[str, str]] = CatalogueTable()
"""Names that stand for a measure with some parameters (`ndcg_burges`), and those."""

DEFAULT_MEASURES = ("nDCG@10", "RR@10", "AP", "P@5", "R@10", "Success@5", "Judged@10")
"""The default list; the first is the primary measure."""

CHOOSING = ("judged_only", "gains", "only_grade", "only_best")
"""Parameters that change the ranking a kernel sees."""
LOOKED_FOR: dict[Needs, Aspect] = {
    "files": Aspect.FILE,
    "legacy": Aspect.LEGACY,
    "sources": Aspect.SOURCE,
    "forbidden": Aspect.FORBIDDEN,
}
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
    return _computed(spec, measure, ranking) if spec.composed is None else spec.composed(measure, ranking)


def _computed(
    spec: MeasureSpec, measure: Measure, ranking: Ranking
) -> tuple[FloatQ, NDArray[np.bool_], dict[str, str]]:
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
        # Where a list of documents is complete, all results are judged; which are not relevant has no row.
        complete = ranking.exhaustive if spec.diagnostic else None
        for i in np.flatnonzero(ranking.closed_world if complete is None else ranking.closed_world & ~complete):
            scored[i] = False
            reasons[ranking.query_ids[i]] = Reason.NOTHING_UNJUDGED
    if not looks_at_the_list:
        for queries, reason in itertools.chain(without_grade(measure, ranking), unjudged(ranking)):
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
    if need == "texts":
        return ranking.texts is not None
    if need == "passages":
        return ranking.texts is not None and ranking.texts.expects_passages
    if need == "silence":
        return ranking.silence is not None
    if need in LOOKED_FOR:
        return ranking.aspects is not None and bool((ranking.aspects.kind == LOOKED_FOR[need]).any())
    return ranking.groups is not None and ranking.groups.kind == need


def is_composed(measure: str | Measure) -> bool:
    """Whether a measure is made of others: a weighted sum, which is one number over all queries."""
    name = measure.name if isinstance(measure, Measure) else READERS[0](measure).name
    return CATALOGUE[name].composed is not None


def sign_of(measure: Measure) -> int:
    """1 where a higher value is better, else -1."""
    return 1 if CATALOGUE[measure.name].higher_is_better else -1


NAMES = {"R": "recall", "P": "precision", "nDCG": "ndcg", "RR": "mrr", "AP": "map"}
"""What the measures are called whose name is not a word; others are written in small letters, `RankOfFirst` as `rank_of_first`."""
_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_OTHER = re.compile(r"[^a-z0-9]+")


def measure_key(measure: Measure) -> str:
    """The key of a measure: letters, digits and `_` only. Different parameters give different keys.

    >>> from cranfield.measures import parse
    >>> [measure_key(parse(text)) for text in ("R@10", "nDCG(dcg='exp-log2')@10", "RR", "RankOfFirst", "IPrec@0.1")]
    ['recall_at_10', 'ndcg_dcg_exp_log2_at_10', 'mrr', 'rank_of_first', 'iprec_at_0_1']
    """
    name = base_key(measure)
    detail = "_detail" if measure.on_detail else ""
    params = "".join(f"_{key}_{value}" for key, value in measure.params)
    cutoff = "" if measure.cutoff is None else f"_at_{measure.cutoff:g}"
    return _OTHER.sub("_", f"{name}{detail}{params}{cutoff}".lower()).strip("_")


def base_key(measure: Measure) -> str:
    """The key without cutoff and parameters: `recall` of `R@10`."""
    return NAMES.get(measure.name) or _CAPITAL.sub("_", measure.name).lower()


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
OF_ANSWERS = frozenset((
    "faithfulness", "groundedness", "hallucination", "answerrelevancy", "answerrelevance", "responserelevancy",
    "answercorrectness", "factualcorrectness", "answersimilarity", "semanticsimilarity", "noisesensitivity",
))  # fmt: skip
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
            f"{shorten(name)} is not a ranking measure: it evaluates the text of an answer",
            expected=f"one of {len(CATALOGUE)} measures",
            hint="for the passages that an answer is written from, R@5 is the share of judged passages found, and Success@5 "
            "whether any was found; `cranfield answers score LABELS ANSWERS` scores answers against labels",
        )
    elsewhere = next((measure for measure, names in ELSEWHERE.items() if folded in names), None)
    if elsewhere is None:
        meant = _suggestion(name, params, cutoff, parse)
        hint = f"did you mean {meant}? {listing}" if meant else listing
    else:
        given = "divisor='retrieved'" if elsewhere == "AP" else params
        meant = _whole(elsewhere, given, cutoff, parse)
        hint = f"for judged results, {meant} is {'the same measure' if elsewhere == 'AP' else 'the nearest measure'}. {listing}"
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
