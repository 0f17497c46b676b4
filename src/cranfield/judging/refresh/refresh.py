"""Replacing queries by what users ask today: which come, which leave, and the next version once two raters agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from hashlib import sha256
from pathlib import Path
from typing import Literal

from cranfield.app.named_runs import answers_of
from cranfield.base.errors import Problem, TestSetError, UsageError
from cranfield.base.numbers import format_value
from cranfield.base.words import count_noun
from cranfield.evaluation.testset.check_queries import lookup_for, same_form
from cranfield.evaluation.testset.consensus import with_consensus
from cranfield.evaluation.testset.edit import next_version, recorded
from cranfield.evaluation.testset.expected import is_relevant
from cranfield.evaluation.testset.split import draw, only, shuffled, shuffled_by_weight, strata_keys
from cranfield.formats.testsets.query_log import QueryLog
from cranfield.judging.raters.raters import RaterKappa
from cranfield.judging.refresh.files import Labels
from cranfield.model import Query, Rating, TestSet
from cranfield.model.query import CLASS
from cranfield.stats.agreement import Coefficient, cohens_kappa

Sample = Literal["random", "top", "frequency"]
SAMPLES: tuple[Sample, ...] = ("random", "top", "frequency")
DEFAULT_RULE = "mean"
ID_DIGITS = 8
_ROUNDING = 1e-9
STRATA_DRIFT = 0.1
"""A share of a stratum may change by so much before a refresh warns."""


@dataclass(frozen=True)
class RefreshPlan:
    """Which queries come and which leave."""

    testset: TestSet
    new: tuple[Query, ...]
    """With how often each was asked as its weight."""
    leaving: tuple[str, ...]
    sample: Sample
    seed: int
    n_log: int
    """Queries of the log that differ."""
    n_known: int
    """Queries of them that are in the set already, or were met while drawing as near duplicates of one in the set or
    drawn before."""


@dataclass(frozen=True)
class Renewal:
    """The next version, and the agreement it rests on."""

    plan: RefreshPlan
    testset: TestSet
    raters: tuple[str, str]
    kappa: Coefficient
    """Cohen's, with its interval, over the pairs of a query and a document that both labelled."""

    @property
    def agreement(self) -> RaterKappa:
        """Whether the raters agree enough."""
        return RaterKappa(self.raters, self.kappa)

    @property
    def strata_drift(self) -> tuple[str, ...]:
        """A sentence for each stratum whose values have other shares of the queries than before, beyond `STRATA_DRIFT`."""
        old, new = self.plan.testset, self.testset
        return tuple(sentence for key in strata_keys(old) if key != CLASS if (sentence := _drift(old, new, key)))


def _drift(old: TestSet, new: TestSet, key: str) -> str:
    before, after = (_shares(testset, key) for testset in (old, new))
    values = dict.fromkeys((*before, *after))
    far = [
        f"{value or 'without'} from {format_value(before.get(value, 0.0))} to {format_value(after.get(value, 0.0))}"
        for value in values
        if abs(after.get(value, 0.0) - before.get(value, 0.0)) > STRATA_DRIFT + _ROUNDING
    ]
    if not far:
        return ""
    return f"strata drift: the shares of {key} changed by more than {STRATA_DRIFT:g}: {', '.join(far)}"


def _shares(testset: TestSet, key: str) -> dict[str, float]:
    counted = Counter(query.strata.get(key, "") for query in testset.queries)
    return {value: n / len(testset.queries) for value, n in sorted(counted.items())}


def plan_refresh(
    testset: TestSet, log: QueryLog, n: int, *, sample: Sample = "random", seed: int = 0, drop: Sequence[str] = ()
) -> RefreshPlan:
    """Choose N queries of a log, and N of the set that make room for them. The same arguments choose the same queries.

    Args:
        testset: the version that is.
        log: the queries of users.
        n: queries to replace.
        sample: `random`: each query of the log with the same chance; `top`: the most frequent; `frequency`: each with a
            chance in proportion to how often it was asked.
        seed: of both draws.
        drop: ids of those that leave; without, they are drawn from every stratum in proportion.

    Raises:
        UsageError: a number that the set or the log cannot give, or ids to drop that are not there.
    """
    if sample not in SAMPLES:
        raise UsageError(f"sample is {sample!r}", expected=", ".join(SAMPLES))
    if not 1 <= n <= len(testset.queries):
        raise UsageError(
            f"{count_noun(n, 'queries')} to be replaced",
            expected=f"1 to {len(testset.queries)}, the number of queries in the test set",
        )
    unknown = [query_id for query_id in drop if query_id not in testset.by_id]
    if unknown:
        raise UsageError(f"queries to drop are not in the test set: {', '.join(unknown)}")
    dropped = set(drop)
    if drop and len(dropped) != n:
        raise UsageError(
            f"{count_noun(len(dropped), 'queries')} to be dropped", expected=f"{n}, the number of new queries"
        )
    chosen, n_known = _chosen(testset, log, n, sample, seed)
    if len(chosen) < n:
        raise UsageError(
            f"the log has {count_noun(len(chosen), 'queries')} not in the test set",
            expected=f"{n}",
            got=(
                f"{count_noun(len(log.counts), 'queries')}, {n_known} of them in the test set or nearly identical "
                "to one of its queries"
            ),
        )
    leaving = (
        tuple(query_id for query_id in testset.query_ids if query_id in dropped)
        if drop
        else draw(testset, n, strata_keys(testset), seed, "leaving")
    )
    new = tuple(Query(_id(testset, text), text, weight=log.counts[text]) for text in chosen)
    return RefreshPlan(testset, new, leaving, sample, seed, len(log.counts), n_known)


def _chosen(testset: TestSet, log: QueryLog, n: int, sample: Sample, seed: int) -> tuple[list[str], int]:
    """The first N in the order of the sample that are not in the set, or nearly so; and how many were passed over."""
    match sample:
        case "random":
            order = shuffled(log.counts, seed, "log")
        case "top":
            order = list(log.counts)
        case "frequency":
            order = shuffled_by_weight(log.counts, seed, "log")
    texts = [query.text for query in testset.queries]
    known = {same_form(text) for text in texts}
    lookup = lookup_for(texts)
    for query in testset.queries:
        lookup.add(query.id, query.text)
    chosen: list[str] = []
    passed = 0
    for text in order:
        if len(chosen) == n:
            break
        if same_form(text) in known or lookup.nearest(text) is not None:
            passed += 1
            continue
        chosen.append(text)
        lookup.add(text, text)
    return chosen, passed


def _id(testset: TestSet, text: str) -> str:
    """An id that follows from the text, so that runs made for one plan fit the next."""
    digest = sha256(same_form(text).encode("utf-8", "surrogatepass")).hexdigest()
    for digits in range(ID_DIGITS, len(digest) + 1):
        if f"log-{digest[:digits]}" not in testset.by_id:
            return f"log-{digest[:digits]}"
    raise UsageError(f"no unused id for the query {text!r}")


def renew(
    plan: RefreshPlan, labels: Labels, *, rule: str = DEFAULT_RULE, version: str = "", seed: int = 0, today: date
) -> Renewal:
    """The next version: those that leave taken out, the new ones in, grades made of their ratings, provenance written.

    Args:
        plan: what comes and what leaves.
        labels: by two raters, for every query that comes.
        rule: makes grades of ratings.
        version: of the new set; empty is the one after the old.
        seed: of the resamples behind the interval of kappa.
        today: the date it is made.

    Raises:
        TestSetError: labels that do not belong to the plan, are off the scale, or leave a new query without anything
            relevant.
        UnknownNameError: there is no such rule.
        UsageError: the set's own ratings became grades by another rule.
    """
    _check_labels(plan, labels)
    kappa = cohens_kappa([row.grades[0] for row in labels.rows], [row.grades[1] for row in labels.rows], seed=seed)
    graded = with_consensus(_together(plan, labels, rule), rule)
    barren = [query for query in plan.new if not is_relevant(graded, query.id)]
    if barren:
        raise TestSetError(
            [
                Problem(
                    f"no document is relevant to the new query {query.id!r} ({query.text})",
                    path=labels.path,
                    hint="add a row with a relevant document to the sheet, or plan with another seed",
                )
                for query in barren
            ]
        )
    n = len(plan.new)
    written = "not defined" if kappa.value is None else format_value(kappa.value)
    sentence = (
        f"replaced {n} of {count_noun(len(plan.testset.queries), 'queries')} by queries of a log (sample {plan.sample}, seed {plan.seed}), "
        f"labelled by {' and '.join(labels.raters)}, Cohen's kappa {written}{RaterKappa(labels.raters, kappa).interval}, n={kappa.n}, grades by {rule}"
    )
    graded = replace(graded, version=version or next_version(plan.testset.version, today), notes=())
    return Renewal(plan, recorded(graded, sentence, today), labels.raters, kappa)


def _together(plan: RefreshPlan, labels: Labels, rule: str) -> TestSet:
    """The queries that stay and those that come, with ratings."""
    old = plan.testset
    if old.ratings and old.consensus and old.consensus != rule:
        raise UsageError(
            f"the ratings of the test set were converted to grades by {old.consensus}",
            got=rule,
            hint=f"{{rule={old.consensus}}}",
            parameters=("rule",),
        )
    kept = only(old, set(old.query_ids) - set(plan.leaving))
    ratings = {
        query.id: (
            *(
                Rating(row.doc_id, rater, grade)
                for row in labels.rows
                if row.query_id == query.id
                for rater, grade in zip(labels.raters, row.grades, strict=True)
            ),
            *labels.adjudicated.get(query.id, ()),
        )
        for query in plan.new
    }
    weighted = any(query.weight != 1 for query in old.queries)
    new = tuple(
        replace(query, weight=query.weight if weighted else 1.0, strata=dict(labels.strata.get(query.id, {})))
        for query in plan.new
    )
    return replace(
        kept,
        queries=(*kept.queries, *new),
        ratings={**kept.ratings, **ratings},
        consensus=rule,
        meta=replace(kept.meta, previous=old.digest),
    )


def _check_labels(plan: RefreshPlan, labels: Labels) -> None:
    """Refuse labels that do not belong to the plan, or leave a new query without anything relevant.

    Raises:
        TestSetError: with everything that is wrong.
    """
    wanted = {query.id: query.text for query in plan.new}
    given = {row.query_id for row in labels.rows}
    problems = [
        Problem(
            f"query {row.query_id!r} is not in the sample",
            path=labels.path,
            line=row.line,
            hint="use the same log, number of queries, seed and test set as in the plan",
        )
        for row in labels.rows
        if row.query_id not in wanted
    ]
    problems += [
        Problem(f"query {query_id!r} ({text}) has no label", path=labels.path)
        for query_id, text in wanted.items()
        if query_id not in given
    ]
    scale = set(plan.testset.meta.scale)
    problems += [
        Problem(
            f"grade {grade:g} by {rater} is not on the scale",
            path=labels.path,
            line=row.line,
            expected=", ".join(f"{item:g}" for item in plan.testset.meta.scale),
        )
        for row in labels.rows
        for rater, grade in zip(labels.raters, row.grades, strict=True)
        if scale and grade not in scale
    ]
    if problems:
        raise TestSetError(sorted(problems, key=lambda problem: problem.line or 0))


def candidates(plan: RefreshPlan, runs: Sequence[Path], depth: int) -> dict[str, list[str]]:
    """The first results of each run for each new query, pooled: ids once, sorted, so that none stands first."""
    new_queries = TestSet(plan.testset.name, plan.new)
    pools: dict[str, set[str]] = {}
    for run in runs:
        _, answers = answers_of(new_queries, run, depth)
        for query_id, hits in answers.items():
            pools.setdefault(query_id, set()).update(hit.id for hit in hits)
    return {query_id: sorted(pool) for query_id, pool in pools.items()}
