"""Trying a system that is not described yet: some queries are sent, and its answers tell how results are read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from cranfield.app.init.shape import UNLIKELY, Known, Settings, Shape, Trial, shape_of
from cranfield.base.errors import CranfieldError
from cranfield.config import expand_preset, system_config
from cranfield.model import Outcome, Query, Scalar
from cranfield.systems.calls.answer_schema import output_hint
from cranfield.systems.calls.extract import Extractor
from cranfield.systems.collect.preflight import preflight
from cranfield.systems.configured import ConfiguredSystem
from cranfield.systems.kinds.build import system_class
from cranfield.systems.kinds.python import FunctionSystem

TRIAL = "trial"
"""Name of a system and of a query that are tried."""
TRIAL_S = 10.0
"""Time limit of a call."""
_NUMBER = re.compile(r"(?<!\d)(?!0(?!\d)(?! ?m?s\b|\\\.\d))\d+")
"""A number in an escaped text, which may be another in the next answer; but a 0, which may count the results, stays."""
_LINE = "(?m)^"
"""What a pattern of lines begins with."""
_NOTHING = re.compile(r"(?i)\s*[(\[]?(?:no|none|nothing|not|0|sorry)(?:[ .,:!)\]][^\r\n]*)?\s*")
"""One line that says that nothing was found, in its first word."""
UNREAD: Settings = {"extract": {"json": "not_known_yet"}}
"""Stands for how results are read, as long as that is not known: what the system answers is kept."""


@dataclass(frozen=True, slots=True)
class TrialAnswers:
    """What a system answered to some queries."""

    outputs: Mapping[str, str]
    """By the text of the query."""
    problem: str = ""
    """Why a query has no answer; empty where all have one."""


@dataclass(frozen=True, slots=True)
class TrialReading:
    """Settings of a system whose answers can be read, and what was read."""

    settings: Settings
    shape: Shape
    ids: Mapping[str, Sequence[str]]
    """Text of a query to the ids of its results."""


def make_system(settings: Settings, folder: Path, environment: Mapping[str, str] | None = None) -> ConfiguredSystem:
    """A system for a trial.

    Raises:
        ConfigError: the settings are wrong.
    """
    limits = {"timeout_s": TRIAL_S, "retries": 0, **({"env": dict(environment)} if environment else {})}
    config = system_config(TRIAL, {**settings, **limits})
    system = system_class(expand_preset(config).kind)(TRIAL, config, folder)
    if isinstance(system, FunctionSystem):
        system.isolate({})  # it cannot end or change this process
    return system


def answers_of(
    settings: Settings,
    texts: Sequence[str],
    folder: Path,
    *,
    k: int,
    environment: Mapping[str, str] | None = None,
    params: Mapping[str, Scalar] = MappingProxyType({}),
) -> TrialAnswers:
    """Send some queries; the first that fails ends the trial.

    Args:
        settings: of the system, without `extract` where that is not known.
        texts: the queries.
        folder: of the config.
        k: results to ask for.
        environment: variables that the call needs and the config does not hold.
        params: of the query, for a command that has `{params.NAME}`.
    """
    outputs: dict[str, str] = {}
    try:
        system = make_system(settings, folder, environment)
    except CranfieldError as error:
        return TrialAnswers({}, _first_problem(error))
    try:
        preflight([system], k=k)
        for text in texts:
            exchange = system.ask(Query(TRIAL, text, params=params), k, is_shown=True)
            outcome = (
                exchange.answer.outcome
            )  # how the output is read is not known yet, and a blank one may find nothing
            if outcome.is_failure and outcome is not Outcome.UNPARSABLE:
                reason = exchange.answer.reason or outcome.value
                return TrialAnswers(outputs, "; ".join(filter(None, (reason, output_hint(exchange.stderr)))))
            outputs[text] = exchange.output
    except CranfieldError as error:
        return TrialAnswers(outputs, _first_problem(error))
    finally:
        system.close()
    return TrialAnswers(outputs)


def _first_problem(error: CranfieldError) -> str:
    return error.problems[0].sentence().removeprefix(f"system {TRIAL}: ").rstrip(".")


def query_hint(trial: Trial) -> str:
    """What to do where no results came."""
    tried = ", ".join(repr(text) for text in trial.texts())
    return f"tried with {tried}; {{query=TEXT}} tries another query"


def reading_of(settings: Settings, outputs: Mapping[str, str], known: Known, *, k: int) -> TrialReading | None:
    """The settings with how results are read, checked on the answers themselves; None where no results are found."""
    shape = shape_of(list(outputs.values()), known)
    if shape is None:
        return None
    whole = {**settings, "extract": dict(shape.extract)}
    ids = read_ids(whole, outputs, k=k)
    return TrialReading(whole, shape, ids) if any(ids.values()) else None


def read_ids(settings: Settings, outputs: Mapping[str, str], *, k: int) -> dict[str, list[str]]:
    """The ids of the results of some answers, read by the settings."""
    extractor = Extractor(expand_preset(system_config(TRIAL, settings)))
    return {text: [hit.public_id for hit in extractor.read(output, k).hits] for text, output in outputs.items()}


def with_empty(reading: TrialReading, outputs: Mapping[str, str], *, k: int) -> Settings:
    """The settings of a reading with what the system writes where it finds nothing.

    Args:
        reading: its settings have `extract`.
        outputs: answers by query: to `UNLIKELY`, and those with results, none of which the pattern may match: a header
            stands in every answer, and is a pattern only as all that is written.
        k: results that were asked for.
    """
    settings, output = reading.settings, outputs.get(UNLIKELY, "")
    extract: Mapping[str, Any] = settings["extract"]
    if _NOTHING.fullmatch(output) and extract.get("regex", "").startswith(_LINE):
        other = rf"(?![ \t]*{_escaped(output.strip())})"  # a line of words for nothing is no result
        settings = {**settings, "extract": {**extract, "regex": _LINE + other + extract["regex"].removeprefix(_LINE)}}
        if read_ids(settings, {text: outputs[text] for text in reading.ids}, k=k) != reading.ids:
            return reading.settings
    if not output.strip() or read_ids(settings, {UNLIKELY: output}, k=k)[UNLIKELY]:
        return reading.settings
    answer = Extractor(expand_preset(system_config(TRIAL, settings))).read(output, k)
    if answer.outcome is Outcome.EMPTY or "regex" not in extract:
        return settings
    full = [text for query, text in outputs.items() if reading.ids.get(query)]
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    patterns = map(_empty_pattern, lines)
    whole = r"\A\s*" + r"\s+".join(map(_escaped, lines)) + r"\s*\Z"  # of a header that stands in every answer
    empty = next((each for each in (*patterns, whole) if not any(re.search(each, text) for text in full)), None)
    return settings if empty is None else {**settings, "empty": empty}


def _empty_pattern(line: str) -> str:
    """A pattern of a line, as far as it does not repeat the query; of a line that begins with the query what follows it."""
    before, _, after = line.partition(UNLIKELY)
    words = before.rstrip(" '\"`:")
    escaped = _escaped(words or after.strip(" '\"`:") or line)
    return rf"(?m)^[ \t]*{escaped}" if words or not after.strip(" '\"`:") else escaped


def _escaped(text: str) -> str:
    """A pattern of a text, with any number for a number and any words for the query."""
    parts = [_NUMBER.sub(r"\\d+", re.escape(part).replace("\\ ", " ")) for part in text.split(UNLIKELY)]
    return ".*".join(parts)
