"""Looking at systems: one query to one of them, the systems of a config, the presets; as documents."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from cranfield.app.experiment import load_configured
from cranfield.app.loading import options_of, with_held_out
from cranfield.base.errors import CranfieldError, Problem, UsageError, shorten
from cranfield.config import Config, load_config
from cranfield.config.reading import EveryAnswerCheck
from cranfield.evaluation.evidence.checks import repeated_ids
from cranfield.evaluation.evidence.inspection import CHECKS
from cranfield.evaluation.evidence.values import Finding
from cranfield.evaluation.options.blocks import Consequence, Setting
from cranfield.evaluation.testset.split import only
from cranfield.measures import USUAL_K
from cranfield.model import Hit, Outcome, Query, Run, Scalar, TestSet, convention_named
from cranfield.model.answer_rule import parse_answer_rule
from cranfield.model.results import Record, to_jsonable
from cranfield.ranking import rank_run
from cranfield.reporting.document import Block, Bullets, Code, Document, KeyValues, Paragraph, Section
from cranfield.reporting.table_spec import Col, TableSpec
from cranfield.systems import ConfiguredSystem, build_systems
from cranfield.systems.collect.preflight import preflight
from cranfield.systems.configured import Exchange

FEW_IDS = "few-ids"
"""The evidence check that one answer can show."""
NO_PARAMS: Mapping[str, Scalar] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Probe:
    """What came of a single query."""

    document: Document
    result: ProbeResult
    is_failure: bool


@dataclass(frozen=True, slots=True)
class GradedHit:
    """A result in the order in which results are scored."""

    rank: int
    grade: str
    """That of what it matched, once; or that it is not judged."""
    id: str
    score: float | None
    title: str | None
    span: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult(Record):
    """A call in full, without secrets, and its answer as it was read."""

    system: str
    kind: str
    """Kind of the system."""
    query: str
    query_id: str | None
    """None where the query is not one of the test set."""
    k: int
    order: str
    request: str
    output: str
    stderr: str
    outcome: Outcome
    reason: str | None
    fields: Mapping[str, Any]
    hits: tuple[Hit, ...]
    latency_ms: float
    attempts: int
    rules: Mapping[str, str | None]
    """Rules on every answer, and how this one breaks each; empty where the call failed: that is no answer."""
    graded: tuple[GradedHit, ...] | None
    """The first results with what the test set says of each; None where the query is not one of it."""
    evidence: tuple[Finding, ...]


def probe(
    config_path: Path,
    name: str,
    query: str,
    *,
    k: int | None = None,
    params: Sequence[str] = (),
    testset: str | None = None,
    raw: bool = False,
) -> Probe:
    """Send one query to one system of a config, after its preflight.

    Where the query is one of the test set, its results have their grades.

    Args:
        config_path: cranfield.yaml.
        name: of the system.
        query: its text; or the text or the id of a query of the test set.
        k: results to ask for; None as the config has it.
        params: `NAME=VALUE`, given with the query.
        testset: name of the set whose params are given, in a config of several.
        raw: show the raw output, where results were read from it too.

    Raises:
        InputError: the config, with all its problems, or a name that is not in it.
        PreflightError: something it needs is not there.
    """
    config = load_config(config_path)
    set_params = _set_params(config, testset)
    known = _known_query(config, testset, query) if name in config.systems else None
    given = _params(params)
    return probe_system(config, name, query, k=k, params=given, set_params=set_params, known=known, raw=raw)


def probe_system(
    config: Config,
    name: str,
    query: str,
    *,
    k: int | None = None,
    params: Mapping[str, Scalar] = NO_PARAMS,
    set_params: Mapping[str, Scalar] = NO_PARAMS,
    known: TestSet | None = None,
    raw: bool = False,
) -> Probe:
    """Send one query to one system of a config that is loaded; see `probe`.

    Args:
        config: the config.
        name: of the system.
        query: its text.
        k: results to ask for; None as the config has it.
        params: given with the query.
        set_params: those of a test set.
        known: a test set of this query alone.
        raw: as of `probe`.
    """
    (system,) = build_systems(config, [name], set_params, isolated=True)
    depth = k or config.k or USUAL_K
    sent = known.queries[0] if known is not None else Query("probe", query)
    try:
        preflight([system], k=depth)
        exchange = system.ask(replace(sent, params={**sent.params, **params}), depth, is_shown=True)
    finally:
        system.close()
    answer, log = exchange.answer, exchange.log
    result = ProbeResult(
        system=system.name,
        kind=system.config.kind,
        query=sent.text,
        query_id=None if known is None else sent.id,
        k=depth,
        order=system.order,
        request=exchange.request,
        output=exchange.output,
        stderr=exchange.stderr,
        outcome=answer.outcome,
        reason=answer.reason,
        fields=answer.fields,
        hits=tuple(
            replace(hit, id=hit.public_id, span=hit.public_span, redacted_id=None, redacted_span=None)
            for hit in answer.hits
        ),
        latency_ms=log.latency_ms,
        attempts=log.attempts,
        rules=_rules(system, exchange),
        graded=None if known is None else _graded(known, system, exchange, depth, config.scoring().convention_name),
        evidence=_findings(config, system, exchange),
    )
    is_failure = answer.outcome.is_failure or any(result.rules.values())
    return Probe(_probe_document(result, with_raw=raw), result, is_failure)


def _known_query(config: Config, testset: str | None, query: str) -> TestSet | None:
    """The test set of the config, with the one query of this text or id; None where there is none, or the set cannot be read."""
    if testset is None and config.testsets is not None and len(config.testsets) > 1:
        return None
    name = testset or next(iter(config.sets))
    try:
        options = config.sets[name].options
        found = load_configured(
            config, name, options_of(options, config.folder, with_held_out(options)), allow_drift=True
        )
    except CranfieldError:  # a system can be probed before there is a test set
        return None
    by_text = next((each.id for each in found.queries if each.text == query), query)
    return only(found, [by_text]) if by_text in found.by_id else None


def _graded(
    known: TestSet, system: ConfiguredSystem, exchange: Exchange, k: int, convention: str
) -> tuple[GradedHit, ...]:
    """The first results in the order in which they are scored."""
    query_id = known.queries[0].id
    run = Run(system.name, {query_id: exchange.answer}, depth=k, order=system.order)
    ranking = rank_run(known, run, convention_named(convention))
    return tuple(
        GradedHit(hit.rank, hit.grade_text, system.redactor.redact(hit.id), hit.score, hit.title, hit.span)
        for hit in ranking.top.get(query_id, ())
    )


def _set_params(config: Config, testset: str | None) -> Mapping[str, Scalar]:
    if testset is None and config.testsets is not None:
        return {}
    return config.sets[config.set_name(testset)].params


def _params(written: Sequence[str]) -> dict[str, Scalar]:
    """`NAME=VALUE` options, each value read as YAML reads it: `true`, `5`, `ios`."""
    import yaml

    found: dict[str, Scalar] = {}
    problems = []
    for text in written:
        name, equals, value_text = text.partition("=")
        try:
            value = yaml.safe_load(value_text)
        except yaml.YAMLError:
            value = value_text
        if not equals or not name.strip():
            problems.append(Problem(f"{{params}} is {shorten(text)}", expected="NAME=VALUE", parameters=("params",)))
        else:
            found[name.strip()] = value if isinstance(value, str | int | float | bool) else value_text
    if problems:
        raise UsageError(problems)
    return found


def _findings(config: Config, system: ConfiguredSystem, exchange: Exchange) -> tuple[Finding, ...]:
    """What the evidence checks find in one answer; what needs other queries, or a test set, is checked by a run."""
    setting = config.scoring().limits.evidence.get(FEW_IDS, Setting())
    found = repeated_ids(exchange.answer, system.public_config())
    if found is None or setting.consequence is Consequence.OFF:
        return ()
    consequence = setting.consequence or CHECKS[FEW_IDS].consequence
    return (Finding(FEW_IDS, consequence, system.name, found.sentence, (), found.count, found.total),)


def _rules(system: ConfiguredSystem, exchange: Exchange) -> dict[str, str | None]:
    """The rules on every answer, and how this one breaks each; a failed call is no answer."""
    if exchange.answer.outcome.is_failure:
        return {}
    written = [check.every_answer for check in system.config.preflight if isinstance(check, EveryAnswerCheck)]
    return {str(rule): rule.violation(exchange.answer.fields) for rule in map(parse_answer_rule, written)}


def _probe_document(found: ProbeResult, *, with_raw: bool) -> Document:
    facts = [
        ("outcome", found.outcome.value + (f": {found.reason}" if found.reason else "")),
        ("hits", f"{len(found.hits)} ({found.k} requested)"),
        ("latency", f"{found.latency_ms:.1f} ms"),
        ("attempts", str(found.attempts)),
        ("order", "as returned" if found.order == "given" else f"by score, {found.order}"),
        *((f"field {name}", json.dumps(value, ensure_ascii=False)) for name, value in found.fields.items()),
        *((f"rule {rule}", why or "kept") for rule, why in found.rules.items()),
    ]
    raw = with_raw or not found.hits
    if found.output and not raw:
        facts.append(("raw output", f"{len(found.output):,} characters; --raw shows it"))
    hits = _hits(found.hits) if found.graded is None else _graded_hits(found.graded)
    read: list[Block] = [KeyValues(tuple(facts)), *([hits.table(shown=SHOWN_HITS)] if found.hits else [])]
    if found.evidence:
        read.insert(0, Bullets(tuple(f"{each.consequence}: {each.sentence}" for each in found.evidence), "warning"))
    outputs = _raw(found, with_output=raw)
    sections = [
        Section("request", "Request", (Code(found.request, "sent to the system, secrets hidden", in_text=True),)),
        *([Section("raw", "Raw output", tuple(outputs))] if outputs else []),
        Section("hits", "Parsed answer", tuple(read)),
    ]
    known = () if found.query_id is None else (f"query {found.query_id} of the test set",)
    return Document(
        title=f"System {found.system}, query {shorten(found.query)}",
        subtitle=(f"kind {found.kind}, k = {found.k}", *known),
        sections=tuple(sections),
        tidy=hits.tidy,
        payload=lambda: to_jsonable(found),
    )


def _raw(found: ProbeResult, *, with_output: bool) -> list[Code | Paragraph]:
    """Stderr, and the output where the results do not show it already."""
    raw: list[Code | Paragraph] = []
    if found.output and with_output:
        raw.append(Code(found.output, "output", in_text=True))
    if found.stderr:
        raw.append(Code(found.stderr, "stderr", in_text=True))
    return raw or ([Paragraph("The output is empty.")] if with_output else [])


SHOWN_HITS = 10
"""Results in plain text."""


def _hits(hits: Sequence[Hit]) -> TableSpec[tuple[int, Hit]]:
    return TableSpec(
        "Hits in the order of the output, before sorting and cutting",
        list(enumerate(hits, start=1)),
        (
            Col("rank", lambda row: row[0], "count"),
            Col("id", lambda row: row[1].id),
            Col("score", lambda row: row[1].score, "value"),
            Col("title", lambda row: row[1].title or ""),
            Col("span", lambda row: row[1].span or ""),
        ),
    )


def _graded_hits(hits: Sequence[GradedHit]) -> TableSpec[GradedHit]:
    return TableSpec(
        f"The first {len(hits)} results as they are scored, with their grades",
        hits,
        (
            Col("rank", lambda hit: hit.rank, "count"),
            Col("grade", lambda hit: hit.grade),
            Col("id", lambda hit: hit.id),
            Col("score", lambda hit: hit.score, "value"),
            Col("title", lambda hit: hit.title or ""),
            Col("span", lambda hit: hit.span or ""),
        ),
    )
