"""The machine result: the JSON that `--format json` prints and `results.json` holds.

Same inputs give the same bytes, in any folder and at any time: no path, no clock, no latency enters. The shapes are a
promise to scripts; a change that breaks one raises `SCHEMA_VERSION`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.errors import InternalError
from cranfield.evaluation.evidence.values import Finding
from cranfield.evaluation.judged import JudgedShare, judged_share
from cranfield.evaluation.strata import StratumSummary, summaries_by_stratum
from cranfield.evaluation.unjudged_values import Unjudged
from cranfield.evaluation.unseen import Unseen
from cranfield.evaluation.values import Comparison, Evaluation, Limits, MeasureComparison, StratumComparison, Summary
from cranfield.model import OtherJudgments, Query, TestSet
from cranfield.model.query import class_of
from cranfield.ranking.value import RankedHit, State
from cranfield.record import Fields, plain, record_of
from cranfield.reporting.derived import UNSEEN, duplicates, first_ranks, missed_items, outcome_counts, versions
from cranfield.stats.result import TestResult
from cranfield.words import UNPRINTABLE

if TYPE_CHECKING:
    from cranfield.evaluation.many_values import ManyComparison
    from cranfield.evaluation.sensitivity import Sensitivity
    from cranfield.evaluation.strata import StrataContrast
    from cranfield.measures import Measure

SCHEMA_VERSION = 1
LINES_AT_ONCE = 512
OTHER_JUDGMENTS = "name digest fallback n_judged n_own n_unjudged"
"""What is written of judgments that took the place of those of a test set."""
FIELDS: Fields = {
    Comparison: (
        "verdict=verdict.code verdict_sentence=verdict.sentence reasons=verdict.reasons disagreements=verdict.disagreements evidence "
        "baseline=baseline.name candidate=candidate.name primary test alpha margin seed n_draws limits comparisons=measures "
        "rank_one buckets moves strata unpaired=dropped unjudged unseen=verdict.unseen"
    ),
    Evaluation: (
        "name digest=run_digest config_digest=run.config_digest pilot reading n_queries=query_ids.__len__ measures=summaries"
    ),
    Finding: "check consequence system sentence queries=query_ids count total",
    JudgedShare: "measure mean n pooled? never_pooled?",
    Limits: "max_failed_share min_judged_share evidence?",
    MeasureComparison: (
        "baseline=baseline.mean candidate=candidate.mean delta estimate estimates ci_low ci_high interval_method effect_size n n_nonzero mde "
        "baseline_median=baseline.median candidate_median=candidate.median delta_median baseline_std=baseline.std "
        "candidate_std=candidate.std delta_std tests"
    ),
    OtherJudgments: OTHER_JUDGMENTS,
    Query: "text strata params",
    StratumComparison: "key value n baseline=baseline_mean candidate=candidate_mean delta ci_low ci_high",
    Summary: "aggregate mean median std ci_low ci_high n total geometric_mean weighted_mean",
    TestResult: "statistic p_two_sided p_one_sided p_adjusted ci_low ci_high estimate? note extra?",
    TestSet: "name version digest n_queries=queries.__len__ review=meta.review? qrels=other_judgments? notes?",
    Unjudged: "kind n_results n_queries n_judgments verdict best? why? sentence",
    Unseen: UNSEEN,
}
"""What is written of each class; see `cranfield.record`."""
OF_STRATUM: Fields = {
    StratumComparison: "n baseline=baseline_mean candidate=candidate_mean delta ci_low ci_high",
    StratumSummary: "mean=summary.mean median=summary.median ci_low=summary.ci_low ci_high=summary.ci_high n=summary.n",
}
IN_STRATUM: Fields = {Summary: "mean median ci_low ci_high n"}
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False)


def payload_of(
    result: Comparison | ManyComparison | Sequence[Evaluation],
    contrasts: Sequence[StrataContrast] = (),
    sensitivity: Sensitivity | None = None,
) -> dict[str, Any]:
    """What `--format json` prints of evaluations, or of a comparison of two or many: each system, and all findings."""
    if isinstance(result, Comparison):
        payload = _payload(result.evaluations, ("numpy", "scipy")) | record_of(result, FIELDS)
        payload |= _by_stratum(
            {m.canonical: strata for m, strata in result.strata_by_measure.items()}
        ) | _class_verdict(result)
        return payload | _classes(result) | _contrasts(contrasts) | _sensitivity(sensitivity)
    return _payload(_evaluations_of(result), ("numpy",)) | _contrasts(contrasts) | _evidence(result) | _many(result)


def _evidence(result: ManyComparison | Sequence[Evaluation]) -> dict[str, Any]:
    """What the evidence checks found in systems that are not compared."""
    if not isinstance(result, Sequence):
        return {}
    return {"evidence": plain([finding for each in result for finding in each.evidence], FIELDS)}


def _many(result: ManyComparison | Sequence[Evaluation]) -> dict[str, Any]:
    if isinstance(result, Sequence):
        return {}
    from cranfield.reporting.sections.many import many_record

    return many_record(result, FIELDS)


def _evaluations_of(result: Comparison | ManyComparison | Sequence[Evaluation]) -> Sequence[Evaluation]:
    return result if isinstance(result, Sequence) else result.evaluations


def results_payload(
    result: Comparison | ManyComparison | Sequence[Evaluation],
    contrasts: Sequence[StrataContrast] = (),
    sensitivity: Sensitivity | None = None,
) -> dict[str, Any]:
    """What `results.json` holds: the payload, and for each query its text, strata, and each side's answer."""
    places: dict[str, dict[str, Any]] = {}
    if isinstance(result, Comparison):
        for key, partition in (("bucket", result.buckets), ("move", result.moves)):
            for name, query_ids in partition.items():
                for query_id in query_ids:
                    places.setdefault(query_id, {})[key] = name
    evaluations = _evaluations_of(result)
    payload = payload_of(result if isinstance(result, Comparison) else evaluations, contrasts, sensitivity)
    ranks = [first_ranks(evaluation) for evaluation in evaluations]
    missed = [missed_items(evaluation) for evaluation in evaluations]
    payload["queries"] = {
        query.id: _query(query) | places.get(query.id, {}) | {"sides": _sides(query.id, evaluations, ranks, missed)}
        for query in evaluations[0].testset.queries
    }
    return payload if isinstance(result, Comparison) else payload | _many(result)


def to_json(payload: Mapping[str, Any]) -> str:
    """The payload as indented JSON, keys in the order they were put in, ending in a line end.

    Raises:
        InternalError: a number in it is no number; such a thing is unscored, with a reason, and never gets this far.
    """
    return "".join(json_parts(payload))


def json_parts(payload: Mapping[str, Any]) -> Iterator[str]:
    """The same, part by part: a large result need not be in memory as text."""
    try:
        for part in _layout(payload, ""):
            # Beside what JSON escapes: halves of a character, and what a terminal would obey.
            yield (
                UNPRINTABLE.sub(lambda found: f"\\u{ord(found.group()):04x}", part)
                if UNPRINTABLE.search(part)
                else part
            )
    except ValueError as error:
        raise InternalError(f"the result has a number that JSON cannot represent: {error}") from error
    yield "\n"


def _layout(value: object, indent: str) -> Iterator[str]:
    """JSON in parts: a container of plain values on one line, any other with a line for each entry."""
    if isinstance(value, _Queries):
        yield from value.layout(indent)
        return
    entries = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    if not any(isinstance(entry, (Mapping, list)) and entry for entry in entries):
        yield _ENCODER.encode(value)
        return
    inner = indent + " "
    brackets = "{}" if isinstance(value, Mapping) else "[]"
    yield brackets[0]
    for position, entry in enumerate(value.items() if isinstance(value, Mapping) else entries):
        yield f"{',' if position else ''}\n{inner}"
        if isinstance(value, Mapping):
            key, entry = entry  # noqa: PLW2901 - a pair of a map is taken apart
            yield _ENCODER.encode(key) + ": "
        yield from _layout(entry, inner)
    yield f"\n{indent}{brackets[1]}"


def _by_stratum(measured: Mapping[str, Sequence[StratumComparison] | Sequence[StratumSummary]]) -> dict[str, Any]:
    """Every measure within each stratum; nothing where there are no strata."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for measure, strata in measured.items():
        for stratum in strata:
            numbers = record_of(stratum, OF_STRATUM)
            entry = {"key": stratum.key, "value": stratum.value, "measures": {}}
            found.setdefault((stratum.key, stratum.value), entry)["measures"][measure] = numbers
    return {"by_stratum": list(found.values())} if found else {}


def _class_verdict(comparison: Comparison) -> dict[str, Any]:
    """The verdict of each class; nothing where one mean decides."""
    if comparison.by_class is None:
        return {}
    from cranfield.reporting.sections.class_verdict import FIELDS

    return {"verdict_by_class": record_of(comparison.by_class, FIELDS)}


def _contrasts(contrasts: Sequence[StrataContrast]) -> dict[str, Any]:
    if not contrasts:
        return {}
    from cranfield.reporting.sections.strata import FIELDS

    return {"contrasts": plain(contrasts, FIELDS)}


def _sensitivity(sensitivity: Sensitivity | None) -> dict[str, Any]:
    if sensitivity is None:
        return {}
    from cranfield.reporting.sections.verdict import FIELDS

    return {"sensitivity": record_of(sensitivity, FIELDS)}


def _of_classes(evaluation: Evaluation) -> dict[Measure, tuple[StratumSummary, ...]]:
    """Measures of classes within their strata; nothing where no query has a class, so that nothing more is imported."""
    if not evaluation.ranking.classes:
        return {}
    from cranfield.evaluation.classes import class_measures_by_stratum

    return class_measures_by_stratum(evaluation)


def _classes(result: Evaluation | Comparison) -> dict[str, Any]:
    """The classes of question; nothing where no query has one, so that nothing more is imported."""
    evaluation = result.baseline if isinstance(result, Comparison) else result
    if not evaluation.ranking.classes:
        return {}
    from cranfield.evaluation.classes import by_class, compare_classes
    from cranfield.reporting.sections.classes import classes_payload

    return {"classes": classes_payload(compare_classes(result) if isinstance(result, Comparison) else by_class(result))}


def _payload(evaluations: Sequence[Evaluation], libraries: Sequence[str]) -> dict[str, Any]:
    summaries = [summary for evaluation in evaluations for summary in evaluation.summaries.values()]
    return {
        "schema_version": SCHEMA_VERSION,
        "testset": record_of(evaluations[0].testset, FIELDS),
        "convention": evaluations[0].ranking.convention.name,
        "ci_level": summaries[0].ci_level if summaries else None,
        "systems": [_system(evaluation) for evaluation in evaluations],
        "provenance": {"versions": dict(versions(*libraries))},
    }


def _system(evaluation: Evaluation) -> dict[str, Any]:
    failures = [{"query": query, "outcome": out, "reason": reason} for query, out, reason in evaluation.failures]
    measure = evaluation.measures[0] if evaluation.measures else None
    judged = judged_share(evaluation.ranking, None if measure is None else measure.depth)
    by_measure = {each: summaries_by_stratum(evaluation, each) for each in evaluation.measures}
    strata = () if measure is None else by_measure[measure]
    return {
        **record_of(evaluation, FIELDS),
        "strata": [
            {"key": stratum.key, "value": stratum.value, "measure": measure.canonical if measure else None}
            | record_of(stratum.summary, IN_STRATUM)
            for stratum in strata
        ],
        **_by_stratum({each.canonical: found for each, found in (by_measure | _of_classes(evaluation)).items()}),
        **_classes(evaluation),
        **_confusion(evaluation),
        "n_failed": len(failures),
        "failures": failures,
        "outcomes": outcome_counts(evaluation),
        "judged": record_of(judged, FIELDS),
        "n_duplicates": duplicates(evaluation),
        "warnings": list(evaluation.warnings),
        "queries": _Queries(evaluation),
    }


def figures_record(evaluation: Evaluation) -> dict[str, Any]:
    """The figures of a system as `results.json` has them, without those of each query."""
    record = _system(evaluation)
    return {key: record[key] for key in ("n_queries", "measures", "by_stratum", "outcomes", "judged") if key in record}


def _confusion(evaluation: Evaluation) -> dict[str, Any]:
    if not evaluation.confusions:
        return {}
    from cranfield.reporting.sections.confusion import confusion_record

    return {"confusion": [confusion_record(found) for found in evaluation.confusions]}


class _Queries(Mapping[str, dict[str, Any]]):
    """Query id to its value per measure, null with a reason where it has none; each made when it is looked at."""

    def __init__(self, evaluation: Evaluation) -> None:
        self.evaluation = evaluation
        self.columns = [
            (measure.canonical, evaluation.values[measure], evaluation.scored[measure], evaluation.unscored[measure])
            for measure in evaluation.measures
        ]

    def __getitem__(self, query_id: str) -> dict[str, Any]:
        place = self.evaluation.index[query_id]
        record: dict[str, Any] = {
            name: values.item(place) if scored.item(place) else None for name, values, scored, _ in self.columns
        }
        if None in record.values():
            reasons = {name: why.get(query_id, "") for name, _, _, why in self.columns if record[name] is None}
            record["unscored"] = reasons
        return record

    def layout(self, indent: str) -> Iterator[str]:
        """The same as JSON, a line a query, many lines at a time. A number is written as `json` writes it."""
        evaluation = self.evaluation
        line = ": {" + ", ".join(f"{_ENCODER.encode(name)}: %r" for name, *_ in self.columns) + "}"
        if (
            not self.columns
            or "%" in line.replace("%r", "")
            or not all(np.isfinite(v).all() for _, v, _, _ in self.columns)
        ):
            yield _ENCODER.encode(dict(self))
            return
        whole = np.logical_and.reduce([scored for _, _, scored, _ in self.columns]).tolist()
        rows = list(zip(*(values.tolist() for _, values, _, _ in self.columns), strict=True))
        separator = "{"
        for start in range(0, len(rows), LINES_AT_ONCE):
            parts = []
            for place in range(start, min(start + LINES_AT_ONCE, len(rows))):
                query_id = evaluation.query_ids[place]
                record = line % rows[place] if whole[place] else ": " + _ENCODER.encode(self[query_id])
                parts.append(f"{separator}\n{indent} {_ENCODER.encode(query_id)}{record}")
                separator = ","
            yield "".join(parts)
        yield f"\n{indent}}}" if rows else "{}"

    def __iter__(self) -> Iterator[str]:
        return iter(self.evaluation.query_ids)

    def __len__(self) -> int:
        return len(self.evaluation.query_ids)


def _query(query: Query) -> dict[str, Any]:
    return record_of(query, FIELDS) | ({"class": name} if (name := class_of(query)) else {})


def _sides(
    query_id: str,
    evaluations: Sequence[Evaluation],
    ranks: Sequence[Mapping[str, int | None]],
    missed: Sequence[Callable[[str], list[str]]],
) -> list[dict[str, Any]]:
    sides: list[dict[str, Any]] = []
    for evaluation, first, missed_by in zip(evaluations, ranks, missed, strict=True):
        index = evaluation.index.get(query_id)
        if index is None:  # left out of this system's means, because its run does not answer it
            sides.append({"system": evaluation.name, "outcome": None})
            continue
        ranking = evaluation.ranking
        sides.append(
            {
                "system": evaluation.name,
                "outcome": ranking.outcomes[index].value,
                "reason": ranking.reasons.get(query_id),
                "n_returned": int(ranking.n_returned[index]),
                "n_duplicates": int(ranking.n_duplicates[index]),
                "first_relevant_rank": first[query_id],
                "missed": missed_by(query_id),
                **_fields(evaluation, query_id),
                "hits": [_hit(hit) for hit in ranking.top.get(query_id, ())],
            }
        )
    return sides


def _fields(evaluation: Evaluation, query_id: str) -> dict[str, Any]:
    """What the answer says of itself, where it says anything."""
    answer = evaluation.run.answers.get(query_id) if evaluation.run is not None else None
    return {"fields": dict(answer.fields)} if answer is not None and answer.fields else {}


def _hit(hit: RankedHit) -> dict[str, Any]:
    return {
        "rank": hit.rank,
        "id": hit.id,
        "title": hit.title,
        "grade": hit.level if hit.state is State.JUDGED else None,
        **({"pooled": True} if hit.state is State.POOLED else {}),
        "item": hit.item,
        "credited": hit.credited,
        **({"span": hit.span} if hit.span is not None else {}),
    }
