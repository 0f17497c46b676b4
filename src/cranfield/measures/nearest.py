"""Names in another case, and the nearest measure to a name that there is not, spelled whole."""

from __future__ import annotations

import re
from collections.abc import Callable

from cranfield.base.errors import CranfieldError, Problem, nearest_name, shorten
from cranfield.measures.catalogue import ALIASES, CATALOGUE, TREC_CUTS
from cranfield.measures.measure import Measure, MeasureSpec

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
