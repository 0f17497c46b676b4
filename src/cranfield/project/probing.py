"""Looking at systems: one query to one of them, the systems of a config, the presets; as documents."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from cranfield.config import Config, SystemConfig, expand_preset, load_config, public_config, system_config
from cranfield.config.presets import PRESETS, Preset
from cranfield.config.reading import EveryAnswerCheck
from cranfield.config.services import McpServer
from cranfield.config.systems import FusionConfig, HttpConfig, McpConfig, PresetConfig
from cranfield.errors import Problem, UnknownNameError, UsageError, shorten
from cranfield.evaluation.evidence.repeats import repeated_ids
from cranfield.evaluation.evidence.table import CHECKS
from cranfield.evaluation.evidence.values import Consequence, Finding, Setting
from cranfield.model import Query, Scalar
from cranfield.model.answer_rule import parse_answer_rule
from cranfield.record import Fields, plain, record_of
from cranfield.reporting.document import Block, Bullets, Code, Column, Document, KeyValues, Paragraph, Section, Table
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
    is_failure: bool


def probe(
    config_path: Path,
    name: str,
    query: str,
    *,
    k: int | None = None,
    params: Sequence[str] = (),
    testset: str | None = None,
) -> Probe:
    """Send one query to one system of a config, after its preflight.

    Args:
        config_path: cranfield.yaml.
        name: of the system.
        query: its text.
        k: results to ask for; None as the config has it.
        params: `NAME=VALUE`, given with the query.
        testset: name of the set whose params are given, in a config of several.

    Raises:
        InputError: the config, with all its problems, or a name that is not in it.
        PreflightError: something it needs is not there.
    """
    config = load_config(config_path)
    return probe_system(config, name, query, k=k, params=_params(params), set_params=_set_params(config, testset))


def probe_system(
    config: Config,
    name: str,
    query: str,
    *,
    k: int | None = None,
    params: Mapping[str, Scalar] = NO_PARAMS,
    set_params: Mapping[str, Scalar] = NO_PARAMS,
) -> Probe:
    """Send one query to one system of a config that is loaded; see `probe`.

    Args:
        config: the config.
        name: of the system.
        query: its text.
        k: results to ask for; None as the config has it.
        params: given with the query.
        set_params: those of a test set.
    """
    (system,) = build_systems(config, [name], set_params, isolated=True)
    depth = k or config.k
    try:
        preflight([system], k=depth)
        exchange = system.ask(Query("probe", query, params=params), depth, is_shown=True)
    finally:
        system.close()
    findings = _findings(config, system, exchange)
    is_failure = exchange.answer.outcome.is_failure or any(_rules(system, exchange).values())
    return Probe(_exchange_document(system, query, depth, exchange, findings), is_failure)


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
    setting = config.evidence.get(FEW_IDS, Setting())
    found = repeated_ids(exchange.answer, system.public_config())
    if found is None or setting.consequence is Consequence.OFF:
        return ()
    consequence = setting.consequence or CHECKS[FEW_IDS].consequence
    return (Finding(FEW_IDS, consequence, system.name, found.sentence, (), found.count, found.total),)


def _exchange_document(
    system: ConfiguredSystem, query: str, k: int, exchange: Exchange, findings: tuple[Finding, ...]
) -> Document:
    answer, log = exchange.answer, exchange.log
    outcome = answer.outcome.value + (f": {answer.reason}" if answer.reason else "")
    facts = [
        ("outcome", outcome),
        ("hits", f"{len(answer.hits)} ({k} requested)"),
        ("latency", f"{log.latency_ms:.1f} ms"),
        ("attempts", str(log.attempts)),
        ("order", "as returned" if system.order == "given" else f"by score, {system.order}"),
        *((f"field {name}", json.dumps(value, ensure_ascii=False)) for name, value in answer.fields.items()),
        *((f"rule {rule}", why or "kept") for rule, why in _rules(system, exchange).items()),
    ]
    table = _hits_table(exchange)
    read: list[Block] = [KeyValues(tuple(facts)), *([table] if answer.hits else [])]
    if findings:
        read.insert(0, Bullets(tuple(f"{each.consequence}: {each.sentence}" for each in findings), "warning"))
    sections = [
        Section("request", "Request", (Code(exchange.request, "sent to the system, secrets hidden", in_text=True),)),
        Section("raw", "Raw output", tuple(_raw(exchange))),
        Section("hits", "Parsed answer", tuple(read)),
    ]
    return Document(
        title=f"System {system.name}, query {shorten(query)}",
        subtitle=(f"kind {system.config.kind}, k = {k}",),
        sections=tuple(sections),
        tidy=lambda: table,
        payload=lambda: _exchange_payload(system, query, k, exchange) | {"evidence": plain(findings)},
    )


def _rules(system: ConfiguredSystem, exchange: Exchange) -> dict[str, str | None]:
    """The rules on every answer, and how this one breaks each; a failed call is no answer."""
    if exchange.answer.outcome.is_failure:
        return {}
    written = [check.every_answer for check in system.config.preflight if isinstance(check, EveryAnswerCheck)]
    return {str(rule): rule.violation(exchange.answer.fields) for rule in map(parse_answer_rule, written)}


def _raw(exchange: Exchange) -> list[Code | Paragraph]:
    raw: list[Code | Paragraph] = []
    if exchange.output:
        raw.append(Code(exchange.output, "output", in_text=True))
    if exchange.stderr:
        raw.append(Code(exchange.stderr, "stderr", in_text=True))
    return raw or [Paragraph("The output is empty.")]


def _hits_table(exchange: Exchange) -> Table:
    columns = (Column("rank", "count"), Column("id"), Column("score", "value"), Column("title"), Column("span"))
    rows = [
        (rank, hit.public_id, hit.score, hit.title or "", hit.public_span or "")
        for rank, hit in enumerate(exchange.answer.hits, 1)
    ]
    return Table(columns, rows, "Hits in the order of the output, before sorting and cutting", shown=None)


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


def systems_document(config_path: Path) -> Document:
    """The systems of a config, a line each; nothing is started."""
    config = load_config(config_path)
    columns = (
        Column("system"),
        Column("kind"),
        Column("target"),
        Column("timeout"),
        Column("concurrency", "count"),
        Column("components"),
    )
    rows = [
        (
            name,
            f"preset {system.preset}" if isinstance(system, PresetConfig) else system.kind,
            _target(expand_preset(system)),
            f"{system.timeout_s:g} s",
            system.concurrency,
            ", ".join(system.components or ()),
        )
        for name, system in config.systems.items()
    ]
    table = Table(
        columns, rows, "`cranfield system probe NAME QUERY` sends a query to one of them", shown=None, wrap=True
    )
    return Document(
        title=f"{len(rows)} systems" if len(rows) > 1 else "1 system",
        subtitle=(str(config_path),),
        sections=(Section("systems", "Systems", (table,)),),
        tidy=lambda: table,
        payload=lambda: {"systems": {name: public_config(system) for name, system in config.systems.items()}},
    )


def _target(system: SystemConfig) -> str:
    """The command, address, function or file, as written."""
    if isinstance(system, HttpConfig):
        return system.http.url
    if isinstance(system, McpConfig):
        tool = system.mcp
        return f"{tool.tool} of {tool.url if isinstance(tool, McpServer) else ' '.join(tool.command)}"
    if isinstance(system, FusionConfig):
        return f"{system.fusion.method} of {', '.join(system.fusion.of)}"
    written = getattr(system, system.kind)
    return " ".join(written) if isinstance(written, list) else str(written)


def filled_yaml(config_path: Path, name: str) -> str:
    """A system of a config as YAML, its preset filled in."""
    config = load_config(config_path)
    if name not in config.systems:
        raise UnknownNameError.among("system", name, config.systems)
    return _yaml({name: public_config(expand_preset(config.systems[name]))})


def _yaml(value: object) -> str:
    import yaml

    text: str = yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=120)
    return text


def presets_document(name: str | None = None) -> Document:
    """The table of presets; or one of them, with the settings of `with` and its expansion."""
    if name is not None and name not in PRESETS:
        raise UnknownNameError.among("preset", name, PRESETS)
    if name is not None:
        return _preset_document(PRESETS[name])
    rows = [(preset.name, preset.title, ", ".join(_needed(preset))) for preset in PRESETS.values()]
    columns = (Column("preset"), Column("description"), Column("needs"))
    table = Table(columns, rows, "`cranfield system presets NAME` shows one in full", shown=None)
    return Document(
        title="Presets",
        subtitle=("forms of other kinds of system, filled in",),
        sections=(Section("presets", "Presets", (table,)),),
        tidy=lambda: table,
        payload=lambda: {preset.name: preset.settings.model_json_schema() for preset in PRESETS.values()},
    )


def _needed(preset: Preset) -> list[str]:
    return [field.alias or name for name, field in preset.settings.model_fields.items() if field.is_required()]


def _preset_document(preset: Preset) -> Document:
    columns = (Column("setting"), Column("required"), Column("meaning"))
    rows = [
        (field.alias or name, "yes" if field.is_required() else "", " ".join((field.description or "").split()))
        for name, field in preset.settings.model_fields.items()
    ]
    table = Table(columns, rows, "Settings of `with`", shown=None, wrap=True)
    example = {"preset": preset.name, "with": dict(preset.example)}
    yaml_text = _yaml(example)
    comes_to = _yaml(public_config(expand_preset(system_config("example", example))))
    return Document(
        title=f"preset {preset.name}",
        subtitle=(preset.title,),
        sections=(
            Section("settings", "Settings", (table,)),
            Section(
                "example",
                "Example",
                (Code(yaml_text, "in the config", in_text=True), Code(comes_to, "expanded", in_text=True)),
            ),
        ),
        tidy=lambda: table,
        payload=lambda: dict(preset.settings.model_json_schema()),
    )
