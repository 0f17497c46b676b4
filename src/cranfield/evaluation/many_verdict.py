"""The verdict of a comparison of many systems: a sentence, its reasons, and what disagrees with it."""

from __future__ import annotations

from collections.abc import Sequence

from cranfield.evaluation.caveat import Caveat, CaveatKind
from cranfield.evaluation.evidence.values import void_sentences
from cranfield.evaluation.many_values import ManyComparison, ManyVerdict
from cranfield.evaluation.pairing import has_value
from cranfield.evaluation.unseen import Found, Unseen, nearest, unseen_queries
from cranfield.evaluation.verdict import sign_of
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.measures import CATALOGUE
from cranfield.numbers import format_count, format_p, format_value
from cranfield.words import and_list, first_of, n_of

NAMED = 5
"""Systems that a sentence names; of more it gives the number."""


def verdict_of_many(many: ManyComparison) -> ManyVerdict:
    """Which systems are best; invalid where the evidence is void, or where nothing could have been found."""
    k = len(many.evaluations)
    void = void_sentences(many.evidence)
    if void:
        sentence = f"No verdict on these {k} systems: the comparison does not count."
        return ManyVerdict(VerdictCode.INVALID, sentence, void)
    if not many.procedure.can_find:
        sentence = f"No verdict on these {k} systems: no difference could have been significant."
        return ManyVerdict(VerdictCode.INVALID, sentence, (many.procedure.why_not,))
    names = many.names
    best = tuple(names[place] for place in many.best_first if not many.wins[names[place]][1])
    how = f"({many.primary}, n = {len(many.query_ids)}, {many.procedure.text})"
    if len(best) == k:
        sentence = f"No significant difference between any two of the {k} systems {how}."
        notes = (*_against_baseline(many), *_few_moving(many))
        return ManyVerdict(VerdictCode.NOT_SIGNIFICANT, sentence, notes, _disagreements(many, best))
    means = dict(zip(names, many.summaries[many.primary], strict=True))
    shown = [f"{name} ({format_value(means[name].mean)})" for name in best]
    notes, found = _against_baseline(many), _disagreements(many, best)
    if not best:
        sentence = f"No system is best: each of the {k} is significantly worse than another {how}."
        return ManyVerdict(VerdictCode.SEVERAL_BEST, sentence, (), found)
    if len(best) == 1:
        over = many.wins[best[0]][0]
        some = f"{over} of the {k - 1} others, and each of the rest is worse than another"
        others = "each of the others" if over == k - 1 else some
        sentence = f"{shown[0]} is best of {k} systems: better than {others} {how}."
        return ManyVerdict(VerdictCode.ONE_BEST, sentence + _left_out(many, best), notes, found, best)
    after = and_list(shown[1:]) if len(shown) <= NAMED else first_of(shown[1:], NAMED - 1)
    verb = "is" if len(best) == 2 else "are"
    sentence = f"{shown[0]} is best of {k} systems; {after} {verb} not shown to be worse {how}."
    return ManyVerdict(VerdictCode.SEVERAL_BEST, sentence + _left_out(many, best), notes, found, best)


def _left_out(many: ManyComparison, best: Sequence[str]) -> str:
    """Why systems are not among the best although their mean is better than that of one of these; empty without any."""
    sign = sign_of(many.primary)
    means = {name: about.mean or 0.0 for name, about in zip(many.names, many.summaries[many.primary], strict=True)}
    order = [many.names[place] for place in many.best_first]
    lowest = best[-1]
    left = [name for name in order if name not in best and sign * means[name] > sign * means[lowest]]
    if not left:
        return ""
    over = [{pair.winner for pair in many.pairs if name in {pair.first, pair.second}} - {name} for name in left]
    common = [name for name in order if all(name in winners for winners in over)]
    shown = [f"{name} ({format_value(means[name])})" for name in left]
    named = and_list(shown) if len(shown) <= NAMED else first_of(shown, NAMED)
    have, are = ("has", "is") if len(left) == 1 else ("have", "are")
    than = common[0] if common else "another system"
    return f" {named} {have} a better mean than {lowest}, but {are} significantly worse than {than}."


def unseen_of_many(many: ManyComparison, verdict: ManyVerdict) -> Unseen | None:
    """What stands beside the verdict of few queries: of the significant pairs that put a system among the best, or of all
    significant ones where none is, the one that turns first; without any, the share alone.
    """
    if verdict.code is VerdictCode.INVALID:
        return None
    significant = [pair for pair in many.pairs if pair.is_significant]
    leading = [pair for pair in significant if pair.winner in verdict.best]
    alone = unseen_queries(VerdictCode.MIXED, Found(len(many.query_ids), None, None, None, 1), many.options.alpha)
    return nearest(pair.unseen for pair in leading or significant) or alone


def _against_baseline(many: ManyComparison) -> tuple[str, ...]:
    """Each system against the baseline, by verdict, the worse ones first; empty without a baseline."""
    found = {
        code: [pair.second for pair in many.against if pair.verdict is code]
        for code in (VerdictCode.WORSE, VerdictCode.BETTER, VerdictCode.NOT_SIGNIFICANT)
    }
    notes = [f"{code.text}: {_named(names)}" for code, names in found.items() if names]
    sentence = f"against {many.baseline}{_family(many)}, {'; '.join(notes)}"
    return (Caveat(sentence, CaveatKind.FINDING),) if notes else ()


def _family(many: ManyComparison) -> str:
    """Why a system differs from the baseline here and not among all pairs, where one does: fewer tests to adjust for."""
    of_all = {frozenset((pair.first, pair.second)) for pair in many.pairs if pair.is_significant}
    if all(pair.is_significant == (frozenset((pair.first, pair.second)) in of_all) for pair in many.against):
        return ""
    return f" (p adjusted for {len(many.against)} pairs; in groups and ranks for {len(many.pairs)})"


def _named(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= NAMED else f"{len(names)} ({first_of(names, NAMED)})"


def _few_moving(many: ManyComparison) -> tuple[str, ...]:
    """How many queries tell systems apart, where most do not."""
    n, moving = many.procedure.n_queries, many.procedure.n_moving
    return () if 2 * moving >= n else (f"the systems differ on {moving} of {n_of(n, 'queries')}",)


def _disagreements(many: ManyComparison, best: Sequence[str]) -> tuple[str, ...]:
    """Omnibus tests and measures that disagree with the verdict, a sentence each."""
    notes = []
    some_pair = len(best) < len(many.evaluations)
    n_pairs = sum(pair.is_significant for pair in many.pairs)
    pairs = {0: "no pair is", 1: "one pair is"}.get(n_pairs, f"{format_count(n_pairs)} pairs are")
    for name, result in many.omnibus.items():
        p = result.p_two_sided
        if p is not None and (p <= many.options.alpha) != some_pair:
            word = "not significant" if some_pair else "significant"
            notes.append(f"{name.capitalize()} test of all systems {word} (p {format_p(p)}), although {pairs}")
    leader = many.names[many.best_first[0]]
    for measure, row in many.summaries.items():
        if measure == many.primary or CATALOGUE[measure.name].diagnostic:
            continue
        means = [(about.mean or 0.0) * sign_of(measure) for about in row]
        first = many.names[means.index(max(means))]
        if means[many.best_first[0]] < max(means) and first not in best:
            notes.append(f"{measure} puts {first} first, and {leader} is first by {many.primary}")
    unpaired = [q for q in many.dropped if any(has_value(each, many.primary, q) for each in many.evaluations)]
    if unpaired:
        n = len(unpaired)
        count = "1 query does not count" if n == 1 else f"{n} queries do not count"
        notes.append(f"{count}, as not every system has a value of {many.primary} there")
    return tuple(notes)
