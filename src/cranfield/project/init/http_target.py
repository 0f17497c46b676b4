"""An address that answers a search: the parameter of the query, the form of the answer, or a preset for its engine."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit, urlunsplit

from cranfield.config.services import SECRET_PARAMETERS
from cranfield.config.template import placeholders
from cranfield.errors import CranfieldError, Problem, UsageError
from cranfield.project.init.command_target import open_notes
from cranfield.project.init.engine_target import Engine, engines_of
from cranfield.project.init.mcp_target import mcp_system, mcp_tools
from cranfield.project.init.trial import UNREAD, Answers, Reading, answers_of, read_ids, reading_of, with_empty
from cranfield.project.init.values import (
    K_NAMES,
    QUERY_NAMES,
    UNLIKELY,
    FoundSystem,
    Settings,
    Target,
    Trial,
    literal,
)

GUESSED = ("q", "query", "text", "search")
"""Names that are tried where the address has no parameter of the query."""
GUESSED_K = ("size", "limit", "k", "top_k", "rows", "n", "num", "count", "per_page")
"""Names that are tried where the address has no parameter of the number of results."""
FEW = 3
"""Results that such a trial asks for."""
SAMPLE_WORD = "test"


@dataclass(frozen=True, slots=True)
class Request:
    """A request that may be the search."""

    settings: Settings
    is_guess: bool
    """Whether the parameter of the query is a guess, so that another query has to bring another answer."""
    words: tuple[str, ...] = ()
    """Query in the address."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Secrets that the address holds, by the variables that the config names in their place."""


def http_system(target: Target, trial: Trial) -> FoundSystem:
    """Find out how an address is asked and how its answer is read.

    Tried in turn: a preset for its engine, the address as it is, usual parameters of a query, an MCP server.

    Raises:
        UsageError: nothing brought a list of results; says what each attempt got.
    """
    got: list[str] = []
    shown = address_of(target)
    if target.given.rstrip("/").endswith("/mcp"):
        return _server(target, trial)
    for engine in engines_of(target.given, trial):
        if (found := _engine(engine, target, trial, got)) is not None:
            return found
    for request in requests_of(target.given, trial):
        if (found := _request(request, target, trial, got)) is not None:
            return found
    try:
        return _server(target, trial)
    except CranfieldError as error:
        got.append(error.problems[0].got or error.problems[0].message)
    raise UsageError(
        Problem(
            "no request brought a list of results",
            path=shown,
            expected="JSON with a list of results, or lines with ids",
            got="; ".join(dict.fromkeys(got)),
            hint=_hint(got),
            parameters=("header",),
        )
    )


def _server(target: Target, trial: Trial) -> FoundSystem:
    place = {"url": target.given, **({"headers": dict(trial.headers)} if trial.headers else {})}
    return mcp_system(target, place, mcp_tools(target, place, trial), trial)


def _hint(got: Sequence[str]) -> str:
    if any(f"HTTP {status}" in text for status in ("401", "403") for text in got):
        return "{header} 'Authorization: Bearer {env.TOKEN}' sends what it asks for, from the variable TOKEN"
    return "give the address of one search with a query that finds something: 'http://host/search?q=word'"


def address_of(target: Target) -> str:
    """The address without its parameters, which may hold a secret."""
    return target.given.partition("?")[0]


def _engine(engine: Engine, target: Target, trial: Trial, got: list[str]) -> FoundSystem | None:
    texts = trial.texts(*engine.words) or (SAMPLE_WORD,)
    answers = answers_of(engine.settings, texts, trial.folder, k=trial.k)
    ids = read_ids(engine.settings, answers.outputs, k=trial.k) if answers.outputs else {}
    if answers.problem or not any(ids.values()):
        got.append(answers.problem or f"no results by the preset {engine.settings['preset']}")
        return None
    what = f"the preset {engine.settings['preset']}"
    return FoundSystem(address_of(target), target.name or engine.name, engine.settings, what, ids, engine.notes)


def _request(request: Request, target: Target, trial: Trial, got: list[str]) -> FoundSystem | None:
    texts = trial.texts(*request.words) or (SAMPLE_WORD,)
    extra = [UNLIKELY] if request.is_guess else []
    whole = {**request.settings, **UNREAD}
    answers = answers_of(whole, [*texts, *extra], trial.folder, k=trial.k, environment=request.environment)
    outputs = {text: output for text, output in answers.outputs.items() if text != UNLIKELY}
    reading = reading_of(request.settings, outputs, trial.known, k=trial.k)
    if reading is None or (extra and not _depends_on_query(reading, answers.outputs, trial)):
        got.append(answers.problem or _summary(outputs))
        return None
    name = target.name or _name_of(target.given)
    reading = _with_k(reading, request, texts, trial)
    if "regex" in reading.settings["extract"] and not extra:
        nothing = answers_of(whole, [UNLIKELY], trial.folder, k=trial.k, environment=request.environment)
        answers = Answers({**outputs, **nothing.outputs})
    settings = with_empty(reading, answers.outputs, k=trial.k)
    found = FoundSystem(address_of(target), name, settings, f"an HTTP service: {reading.shape.what}", reading.ids)
    notes = [*open_notes(found, reading.shape.other_ids)]
    notes += [f"set the variable {name}, which stands in place of a secret" for name in request.environment]
    if not asks_for_k(reading.settings):
        most = max(map(len, reading.ids.values()))
        notes.append(f"no parameter for the number of results was found; it answers with {most}")
    return replace(found, notes=tuple(notes))


def _depends_on_query(reading: Reading, outputs: Mapping[str, str], trial: Trial) -> bool:
    """Whether an unlikely word brings other results, so that the parameter is the query."""
    other = read_ids(reading.settings, {UNLIKELY: outputs.get(UNLIKELY, "")}, k=trial.k)[UNLIKELY]
    return all(found != other for found in reading.ids.values() if found)


def _with_k(reading: Reading, request: Request, texts: Sequence[str], trial: Trial) -> Reading:
    """The reading with a parameter for the number of results: one of the usual names, where it changes the number."""
    longest = max(texts, key=lambda text: len(reading.ids.get(text, ())))
    if asks_for_k(reading.settings) or len(reading.ids.get(longest, ())) <= FEW:
        return reading
    request_settings = reading.settings["http"]
    place = "json" if "json" in request_settings else "parameters"
    for name in GUESSED_K:
        body = {**request_settings.get(place, {}), name: "{k}"}
        settings = {**reading.settings, "http": {**request_settings, place: body}}
        answers = answers_of(settings, [longest], trial.folder, k=FEW, environment=request.environment)
        ids = read_ids(settings, answers.outputs, k=FEW).get(longest, []) if not answers.problem else []
        if len(ids) == FEW:
            return replace(reading, settings=settings)
    return reading


def asks_for_k(settings: Settings) -> bool:
    """Whether a request says how many results it wants."""
    return "{k}" in repr(settings)


def _summary(outputs: Mapping[str, str]) -> str:
    first = next((output for output in outputs.values() if output.strip()), "")
    return repr(first.strip()[:60]) if first else "an empty answer"


def requests_of(address: str, trial: Trial) -> Iterator[Request]:
    """Requests that may be the search, the likeliest first."""
    parts = urlsplit(address)
    path = unquote(parts.path) if "%7B" in parts.path.upper() else parts.path  # {query} as a browser copies it
    base = literal(urlunsplit((parts.scheme, parts.netloc, path, "", "")))
    written = parse_qsl(parts.query, keep_blank_values=True)
    environment = {_variable(name): value for name, value in written if _is_secret(name, value)}
    has_query = any("query" in placeholders(text) for text in (base, *(value for _, value in written)))
    name = "" if has_query else _query_parameter(written, trial)
    parameters = _parameters(written, name)
    if has_query or name:
        words = tuple(value for key, value in written if key == name and value.strip())
        yield Request(_http(base, trial, parameters), is_guess=False, words=words, environment=environment)
        return
    for guess in GUESSED:
        settings = _http(base, trial, {**parameters, guess: "{query}"})
        yield Request(settings, is_guess=True, environment=environment)
    for guess in GUESSED[1::-1]:
        settings = _http(base, trial, parameters, {"json": {guess: "{query}"}})
        yield Request(settings, is_guess=True, environment=environment)


def _http(
    url: str, trial: Trial, parameters: Mapping[str, Any], body: Mapping[str, Any] = MappingProxyType({})
) -> Settings:
    optional = {"headers": dict(trial.headers), "parameters": dict(parameters)}
    return {"http": {"url": url, **{key: value for key, value in optional.items() if value}, **body}}


def _query_parameter(written: Sequence[tuple[str, str]], trial: Trial) -> str:
    """The parameter of the query: one with a usual name, else the only one, else one that a person names."""
    names = list(dict.fromkeys(name for name, _ in written if name.lower() not in SECRET_PARAMETERS))
    usual = [name for name in QUERY_NAMES if name in names]
    if usual:
        return usual[0]
    free = [name for name, value in written if name in names and name not in K_NAMES and not value.isdigit()]
    if len(free) < 2:
        return free[0] if free else ""
    return trial.ask("Which parameter holds the query?", free[0], free)


def _parameters(written: Sequence[tuple[str, str]], query: str) -> dict[str, Any]:
    """The parameters as they go into the config: the query, the number of results and secrets as placeholders."""
    found: dict[str, Any] = {}
    for name, value in written:
        new = _parameter(name, value, query)
        if name in found and name != query:
            before = found[name]
            found[name] = [*before, new] if isinstance(before, list) else [before, new]
        else:
            found[name] = new
    return found


def _parameter(name: str, value: str, query: str) -> str:
    if name == query:
        return "{query}"
    if name in K_NAMES and value.isdigit():
        return "{k}"
    return f"{{env.{_variable(name)}}}" if _is_secret(name, value) else literal(value)


def _is_secret(name: str, value: str) -> bool:
    return name.casefold() in SECRET_PARAMETERS and "{env." not in value


def _variable(name: str) -> str:
    return "SEARCH_" + re.sub(r"\W", "_", name, flags=re.ASCII).upper()


def _name_of(address: str) -> str:
    """The host and the last step of the path."""
    parts = urlsplit(address)
    steps = [step for step in parts.path.split("/") if step and "{" not in step]
    return "-".join([parts.hostname or "http", *steps[-1:]])
