"""Looking at systems: one query to one of them, the systems of a config, the presets; as documents."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from cranfield.config import Config, load_config
from cranfield.config.reading import EveryAnswerCheck
from cranfield.errors import CranfieldError, Problem, UsageError, shorten
from cranfield.evaluation.evidence.repeats import repeated_ids
from cranfield.evaluation.evidence.table import CHECKS
from cranfield.evaluation.evidence.values import Finding
from cranfield.measures import USUAL_K
from cranfield.model import Query, Run, Scalar, TestSet, convention_named
from cranfield.model.answer_rule import parse_answer_rule
from cranfield.options.limits import Consequence, Setting
from cranfield.project.experiment import load_configured
from cranfield.project.loading import options_of, with_held_out
from cranfield.ranking import RankedHit, State, rank_run
from cranfield.record import Fields, plain, record_of
from cranfield.reporting.document import Block, Bullets, Code, Column, Document, KeyValues, Paragraph, Section, Table
from cranfield.systems import ConfiguredSystem, build_systems
from cranfield.systems.collect.preflight import preflight
from cranfield.systems.configured import Exchange
from cranfield.testsets.split import only

FEW_IDS = "few-ids"
"""The evidence check that one answer can show."""
NO_PARAMS: Mapping[str, Scalar] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Probe:
    """What came of a single query."""

    document: Document
    is_failure: bool


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
    findings = _findings(config, system, exchange)
    is_failure = exchange.answer.outcome.is_failure or any(_rules(system, exchange).values())
    graded = None if known is None else _graded(known, system, exchange, depth, config.scoring().convention_name)
    shown = _Shown(system, sent, depth, exchange, findings, graded, with_raw=raw)
    return Probe(_exchange_document(shown), is_failure)


@dataclass(frozen=True, slots=True)
class _Shown:
    """What the document of a probe shows."""

    system: ConfiguredSystem
    query: Query
    k: int
    exchange: Exchange
    findings: tuple[Finding, ...]
    graded: tuple[RankedHit, ...] | None
    """The first results with what the test set says of each; None where the query is not one of it."""
    with_raw: bool


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
) -> tuple[RankedHit, ...]:
    """The first results in the order in which they are scored."""
    query_id = known.queries[0].id
    run = Run(system.name, {query_id: exchange.answer}, depth=k, order=system.order)
    ranking = rank_run(known, run, convention_named(convention))
    return tuple(replace(hit, id=system.redactor.redact(hit.id)) for hit in ranking.top.get(query_id, ()))


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


def _exchange_document(shown: _Shown) -> Document:
    system, exchange = shown.system, shown.exchange
    answer, log = exchange.answer, exchange.log
    outcome = answer.outcome.value + (f": {answer.reason}" if answer.reason else "")
    facts = [
        ("outcome", outcome),
        ("hits", f"{len(answer.hits)} ({shown.k} requested)"),
        ("latency", f"{log.latency_ms:.1f} ms"),
        ("attempts", str(log.attempts)),
        ("order", "as returned" if system.order == "given" else f"by score, {system.order}"),
        *((f"field {name}", json.dumps(value, ensure_ascii=False)) for name, value in answer.fields.items()),
        *((f"rule {rule}", why or "kept") for rule, why in _rules(system, exchange).items()),
    ]
    raw = shown.with_raw or not answer.hits
    if exchange.output and not raw:
        facts.append(("raw output", f"{len(exchange.output):,} characters; --raw shows it"))
    table = _hits_table(exchange) if shown.graded is None else _graded_table(shown.graded)
    read: list[Block] = [KeyValues(tuple(facts)), *([table] if answer.hits else [])]
    if shown.findings:
        read.insert(0, Bullets(tuple(f"{each.consequence}: {each.sentence}" for each in shown.findings), "warning"))
    outputs = _raw(exchange, with_output=raw)
    sections = [
        Section("request", "Request", (Code(exchange.request, "sent to the system, secrets hidden", in_text=True),)),
        *([Section("raw", "Raw output", tuple(outputs))] if outputs else []),
        Section("hits", "Parsed answer", tuple(read)),
    ]
    known = () if shown.graded is None else (f"query {shown.query.id} of the test set",)
    payload = _exchange_payload(system, shown.query.text, shown.k, exchange)
    grades = {} if shown.graded is None else {"query_id": shown.query.id, "graded": _graded_records(shown.graded)}
    return Document(
        title=f"System {system.name}, query {shorten(shown.query.text)}",
        subtitle=(f"kind {system.config.kind}, k = {shown.k}", *known),
        sections=tuple(sections),
        tidy=lambda: table,
        payload=lambda: payload | grades | {"evidence": plain(shown.findings)},
    )


def _rules(system: ConfiguredSystem, exchange: Exchange) -> dict[str, str | None]:
    """The rules on every answer, and how this one breaks each; a failed call is no answer."""
    if exchange.answer.outcome.is_failure:
        return {}
    written = [check.every_answer for check in system.config.preflight if isinstance(check, EveryAnswerCheck)]
    return {str(rule): rule.violation(exchange.answer.fields) for rule in map(parse_answer_rule, written)}


def _raw(exchange: Exchange, *, with_output: bool) -> list[Code | Paragraph]:
    """Stderr, and the output where the results do not show it already."""
    raw: list[Code | Paragraph] = []
    if exchange.output and with_output:
        raw.append(Code(exchange.output, "output", in_text=True))
    if exchange.stderr:
        raw.append(Code(exchange.stderr, "stderr", in_text=True))
    return raw or ([Paragraph("The output is empty.")] if with_output else [])


SHOWN_HITS = 10
"""Results in plain text."""


def _hits_table(exchange: Exchange) -> Table:
    hits = exchange.answer.hits
    columns = (Column("rank", "count"), Column("id"), Column("score", "value"), Column("title"), Column("span"))
    rows = [
        (rank, hit.public_id, hit.score, hit.title or "", hit.public_span or "") for rank, hit in enumerate(hits, 1)
    ]
    return Table(columns, rows, "Hits in the order of the output, before sorting and cutting", shown=SHOWN_HITS)


def _graded_table(hits: Sequence[RankedHit]) -> Table:
    columns = (
        Column("rank", "count"),
        Column("grade"),
        Column("id"),
        Column("score", "value"),
        Column("title"),
        Column("span"),
    )
    rows = [(hit.rank, _grade(hit), hit.id, hit.score, hit.title or "", hit.span or "") for hit in hits]
    return Table(
        columns, rows, f"The first {len(hits)} results as they are scored, with their grades", shown=SHOWN_HITS
    )


def _grade(hit: RankedHit) -> str:
    """The grade of a result: that of what it matched, once; or that it is not judged."""
    if hit.state is not State.JUDGED:
        return "unjudged"
    return f"{hit.level}" if hit.credited or hit.item is None else "matched above"


def _graded_records(hits: Sequence[RankedHit]) -> list[dict[str, Any]]:
    return [{"rank": hit.rank, "id": hit.id, "grade": _grade(hit)} for hit in hits]


FIELDS: Fields = {
    Exchange: "request output stderr outcome=answer.outcome reason=answer.reason fields=answer.fields hits=answer.hits "
    "latency_ms=log.latency_ms attempts=log.attempts"
}


def _exchange_payload(system: ConfiguredSystem, query: str, k: int, exchange: Exchange) -> dict[str, Any]:
    public = [
        replace(hit, id=hit.public_id, span=hit.public_span, redacted_id=None, redacted_span=None)
        for hit in exchange.answer.hits
    ]
    hits = [{key: value for key, value in record_of(hit).items() if value is not None} for hit in public]
    head = {"system": system.name, "kind": system.config.kind, "query": query, "k": k}
    rules = _rules(system, exchange)
    return {**head, **record_of(exchange, FIELDS), "hits": hits, **({"rules": rules} if rules else {})}
