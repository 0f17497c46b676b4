"""The kinds of system under test, a model each: a system has the key of exactly one of them. Their digest, and their public form."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from functools import partial
from hashlib import sha256
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Discriminator,
    Field,
    RootModel,
    SecretStr,
    Tag,
    WithJsonSchema,
)

from cranfield.base.errors import Problem, unknown_name
from cranfield.config.owners import OfChange, OfRef
from cranfield.config.reading import Check, Extract, compile_empty_regex, compiles
from cranfield.config.services import Http, Mcp, check_arguments, check_url
from cranfield.config.strict import (
    PORT,
    Finding,
    Strict,
    by_key,
    check_command,
    check_placeholders,
    check_started_once,
    checked,
    known_in,
    placeholders,
    texts,
)
from cranfield.formats.io.validation import problems_of
from cranfield.model import Order, Scalar
from cranfield.model.kinds import ParamName, PlainScalar, Text, source_text, without_nul

MAX_CONCURRENCY = 64
KINDS = ("command", "http", "python", "mcp", "lines", "run", "fusion", "preset", "plugin")
"""Kinds of system; a system has exactly one of these keys."""

Secret = Annotated[
    SecretStr,
    BeforeValidator(source_text),
    WithJsonSchema({"type": ["string", "number", "boolean"], "writeOnly": True}),
]
Params = dict[ParamName, Annotated[PlainScalar, AfterValidator(without_nul)]]
ComponentName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_-]{0,63}$")]
NAME_PATTERN = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
"""The name of a system or of a test set: part of a file's name, and a heading."""
Name = Annotated[str, Field(pattern=f"^{NAME_PATTERN}$")]
SystemName = Annotated[Name, AfterValidator(known_in("systems", "system"))]
"""The name of a system of the same file."""
FusionMethod = Literal["rrf", "sum"]
Normalisation = Literal["min-max", "z", "none"]


class BaseSystem(Strict):
    """Keys common to all kinds of system."""

    kind: ClassVar[str]
    """Its key among `KINDS`."""

    params: OfChange[Params] = Field(default_factory=dict)
    """Parameters of every query, `{params.NAME}`; params of a test set or a query take precedence."""
    components: OfChange[Annotated[list[ComponentName], Field(min_length=2)] | None] = None
    """Components that can be disabled: `{params.components}` is a comma-separated list of the enabled ones, `{params.NAME}`
    is `true` or `false`. All are enabled, except in `cranfield components`."""
    concurrency: OfRef[Annotated[int, Field(ge=1, le=MAX_CONCURRENCY)]] = 1
    """Maximum number of concurrent calls. Latencies are comparable only at 1."""
    rate_per_s: OfRef[Annotated[float, Field(gt=0)] | None] = None
    """Maximum number of calls started per second; default: no limit."""
    preflight: OfRef[list[Check]] = Field(default_factory=list)
    """Checks before the first query, in addition to those of its kind."""


def _check_env(env: Mapping[str, SecretStr]) -> Iterator[Finding]:
    for name, value in env.items():
        if not name or "=" in name or "\0" in name:
            yield (name,), Problem("not the name of an environment variable")
        if "\0" in value.get_secret_value():
            yield (name,), Problem("the value contains a NUL character")


class VersionCommand(Strict):
    """A command whose output names the version of what a system answers from."""

    command: Annotated[
        list[Text],
        Field(min_length=1),
        checked(partial(check_started_once, hint="it is called once before the first query, and not for each query.")),
    ]
    """Program and arguments; no shell reads them, and `{python}` is filled in. It must end with 0 and print something: while
    that is unchanged, so is the index."""


class VersionField(Strict):
    """A field of the answers that names the version of what a system answers from."""

    field: Text
    """Name of a field, as in `extract.fields`. The first query is sent once to read it, before kept answers are used."""


def _dependency_kind(value: Any) -> Any:
    """The tag of an entry of `depends`."""
    find_key = _BY_KEY.discriminator
    return find_key(value) if isinstance(value, Mapping | Strict) and callable(find_key) else "file"


_BY_KEY = by_key("command", "field")
Dependency = Annotated[
    Annotated[Text, Tag("file")] | Annotated[VersionCommand, Tag("command")] | Annotated[VersionField, Tag("field")],
    Discriminator(_dependency_kind, _BY_KEY.custom_error_type, _BY_KEY.custom_error_message),
]
"""One thing that answers depend on: a file or folder, a command, or a field."""


class CalledSystem(BaseSystem):
    """A system that is called itself."""

    cwd: OfChange[str] = "."
    """Working directory, relative to the config file; modules of `python` are searched here first."""
    env: OfChange[Annotated[dict[str, Secret], checked(_check_env)]] = Field(default_factory=dict)
    """Additional environment variables. Values are secrets: reports contain only the names."""
    timeout_s: OfRef[Annotated[float, Field(gt=0)]] = 30.0
    """Timeout of a call, in seconds."""
    retries: OfRef[Annotated[int, Field(ge=0, le=20)] | None] = None
    """Maximum number of retries after 429, 5xx or a broken connection, with exponential backoff; default: 3 for `http` and
    for `mcp` over HTTP, otherwise 0. The outcome is that of the last attempt; retries are counted."""
    backoff_s: OfRef[Annotated[float, Field(gt=0)]] = 0.5
    """Seconds before the first retry, doubled for each further retry; `Retry-After` takes precedence."""
    empty: OfRef[Annotated[str, compiles(compile_empty_regex)] | None] = None
    """Regular expression for the output of a query without results; other output without results is a parse failure."""
    depends: OfRef[list[Dependency]] = Field(default_factory=list)
    """What answers depend on: files and folders, relative to `cwd`; `{command: [...]}`, a command that prints the version of
    the index; `{field: NAME}`, a field of the answers that contains it. Kept answers are used only while all of it is unchanged,
    and are not used for a system without `depends`. Files named in a command, and the module of a function, are included."""


_ONCE = partial(check_started_once, hint="it is started once before the first query, and not for each query.")


def _as_commands(value: Any) -> Any:
    """A list of commands, also of one command."""
    return [value] if isinstance(value, list) and value and not any(isinstance(each, list) for each in value) else value


def _check_commands(commands: list[list[str]]) -> Iterator[Finding]:
    for place, command in enumerate(commands):
        yield from (((place, *inner), problem) for inner, problem in _ONCE(command))


_COMMAND_SCHEMA = {"type": "array", "minItems": 1, "items": {"type": ["string", "number", "boolean"]}}
Commands = Annotated[
    list[Annotated[list[Text], Field(min_length=1)]],
    BeforeValidator(_as_commands),
    checked(_check_commands),
    WithJsonSchema({"anyOf": [_COMMAND_SCHEMA, {"type": "array", "items": _COMMAND_SCHEMA}]}),
]
"""Commands that are run one after the other; one command may stand without the list around it."""


def _check_ready(text: str) -> Iterator[Finding]:
    yield from check_placeholders((), text, (PORT,))
    if text.startswith("/"):
        return
    if text.startswith("http://"):
        yield from check_url(text)
    else:
        yield (
            (),
            Problem("not a path or an address of http", expected="/health, http://localhost:{port}/health", got=text),
        )


class Serve(Strict):
    """A program that runs while a system is queried."""

    command: OfChange[Annotated[list[Text], Field(min_length=1), checked(_ONCE)]]
    """Program and arguments; no shell reads them, and `{port}` and `{python}` are filled in. It is started in `cwd` before the
    first query, with the port in the environment variable `PORT` too, stays in the foreground, and is ended with its
    child processes after the last query."""
    port: OfChange[Annotated[int, Field(ge=1, le=65535)] | None] = None
    """Port on which it listens, `{port}` in the settings of the system; default: a free port."""
    ready: OfChange[Annotated[Text, checked(_check_ready)] | None] = None
    """Path (`/health`) or address (`http://...`) that answers with status 200 when queries can be sent. Default: without `line`, the port has to
    accept a connection."""
    line: OfChange[Annotated[Text, Field(min_length=1)] | None] = None
    """Text of a line that it writes to stdout or stderr when queries can be sent: `listening`."""
    start_s: OfChange[Annotated[float, Field(gt=0)]] = 60.0
    """Time limit of its start, until it is ready, in seconds."""


_PORT_KINDS = frozenset({"command", "http", "mcp", "lines"})
"""Kinds of system in whose settings placeholders are checked."""


class SearchSystem(CalledSystem):
    """A system whose output is read."""

    before: OfChange[Commands] = Field(default_factory=list)
    """A command, or a list of commands, run once in `cwd` before the first query, such as one that builds the index. Each must end
    with 0, otherwise no query is sent. Systems with the same `before`, `serve`, `after`, `cwd` and `env` share one run of them."""
    serve: OfChange[Serve | None] = None
    """A program that runs while the system is queried; its port is `{port}` in the settings of the system."""
    after: OfChange[Commands] = Field(default_factory=list)
    """A command, or a list of commands, run in `cwd` at the end in any case: also after a failure or an interruption."""
    explain: OfChange[bool] = False
    """Keep how the score of each result came about, as `cranfield run --explain` does for every system. A preset asks its
    engine for it; other systems get the parameter `explain`, and their results have an `explanation`."""
    order: OfChange[Order] = "given"
    """Order of the results: as given, or sorted by score, descending (higher is better) or ascending."""
    extract: OfChange[Extract | None] = None
    """How results are read from the output; default: the format of the kind."""

    def problems(self, _: Mapping[str, Any]) -> Iterator[Finding]:
        """An order by scores that are not read, a version in a field that is not read, and a port that there is not."""
        yield from self._unread_fields()
        yield from self._unserved_ports()
        if self.order != "given" and self.extract is not None and not self.extract.has_score:
            yield (
                ("order",),
                Problem(
                    f"{self.order} sorts the results by score, but no score is extracted",
                    hint="name it in extract (a group called score, or score: PATH), or use order: given.",
                ),
            )

    def _unserved_ports(self) -> Iterator[Finding]:
        keys = ("before", "after", *({self.kind} & _PORT_KINDS))
        for key in keys if self.serve is None else ():
            if any(PORT in placeholders(text) for text in texts(self.model_dump(include={key}))):
                hint = "write serve: {command: [...]}, whose port it is; {{port}} is the literal text {port}."
                yield (key,), Problem("{port} without a program that listens on it", hint=hint)

    def _unread_fields(self) -> Iterator[Finding]:
        if self.extract is None:
            return
        read = getattr(self.extract, "fields", {})
        for place, entry in enumerate(self.depends):
            if isinstance(entry, VersionField) and entry.field not in read:
                expected = "a name in extract.fields" + (f": {', '.join(read)}" if read else "")
                yield (
                    ("depends", place, "field", "field"),
                    Problem(f"the field {entry.field} is not read", expected=expected),
                )


class ExtractedSystem(SearchSystem):
    """A system whose output has no fixed format."""

    extract: OfChange[Extract]
    """How results are read from the output."""


class CommandConfig(ExtractedSystem):
    """A program that is started for each query."""

    kind = "command"

    command: OfChange[Annotated[list[Text], Field(min_length=1), checked(check_command)]]
    """Program and arguments; no shell reads them. `{query}`, `{k}`, `{params.NAME}` and `{python}` are filled in. An
    argument whose parameter is absent is dropped, with the flag before it. Put `--` before `{query}` where the program
    takes options, so that a query that starts with `-` is still a query."""


class HttpConfig(ExtractedSystem):
    """A request to an HTTP service for each query."""

    kind = "http"

    http: OfChange[Http]
    """The request to send."""


class McpConfig(ExtractedSystem):
    """A tool of an MCP server, called for each query."""

    kind = "mcp"

    mcp: OfChange[Mcp]
    """A tool of an MCP server, over stdio or HTTP."""


class LinesConfig(SearchSystem):
    """A long-running program that answers lines of JSON."""

    kind = "lines"

    lines: OfChange[
        Annotated[
            list[Text],
            Field(min_length=1),
            checked(
                partial(check_started_once, hint="each query comes on stdin, as a line of JSON: query, k and params.")
            ),
        ]
    ]
    """Program and arguments. The program is started once, reads one JSON object per line and writes one line per answer."""


def _check_function(text: str) -> Iterator[Finding]:
    module, colon, name = text.partition(":")
    if not colon or not all(part.isidentifier() for part in (*module.split("."), *name.split("."))):
        yield (), Problem("not the name of a function", expected="module:name", got=text)


class PythonConfig(SearchSystem):
    """A Python function, called for each query."""

    kind = "python"

    python: OfChange[Annotated[Text, checked(_check_function)]]
    """A function, `module:name`, called as `name(query, k)`, plain or async; with `with`, a factory of that function."""
    with_: OfChange[dict[str, Any] | None] = Field(default=None, alias="with")
    """Arguments of the factory."""
    arguments: OfChange[Annotated[dict[str, Any], checked(check_arguments)] | None] = None
    """Arguments of the function by name, in place of `(query, k, **params)`, with placeholders as in the body of an HTTP request:
    `{text: "{query}", top_k: "{k}"}`. One whose parameter is absent is left out."""

    def problems(self, file: Mapping[str, Any]) -> Iterator[Finding]:
        """Also an environment that the function cannot see."""
        if self.env and self.with_ is None:
            hint = "`with` arguments go to the factory; the environment is passed to it as `environment`."
            yield ("env",), Problem("a function has the environment of Cranfield's own process", hint=hint)
        yield from super().problems(file)


class RunConfig(CalledSystem):
    """A run file with stored answers."""

    kind = "run"
    hints: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("order", "extract", "before", "serve", "after", "explain"), "leave it out: the run file has its results."
    )
    explain: ClassVar[bool] = True
    order: ClassVar[Order] = "given"
    extract: ClassVar[None] = None
    before: ClassVar[tuple[list[str], ...]] = ()
    serve: ClassVar[None] = None
    after: ClassVar[tuple[list[str], ...]] = ()

    run: OfChange[Text]
    """Run file in any run format, relative to the config file."""


class Fusion(Strict):
    """The results of several systems, fused into one list."""

    of: OfChange[Annotated[list[SystemName], Field(min_length=2)]]
    """Names of systems in this file."""
    method: OfChange[FusionMethod] = "rrf"
    """`rrf`: reciprocal ranks; `sum`: weighted sum of normalised scores."""
    rrf_k: OfChange[Annotated[float, Field(ge=0)]] = 60
    """The constant of reciprocal-rank fusion: a result at rank r gets 1 / (rrf_k + r)."""
    weights: OfChange[dict[Name, Annotated[float, Field(ge=0)]]] = Field(default_factory=dict)
    """Weights by system; default 1."""
    normalise: OfChange[Normalisation] = "min-max"
    """Normalisation of scores for `sum`, per query: `min-max` to 0 to 1, `z` to mean 0 and standard deviation 1, or none."""
    depth: OfChange[Annotated[int, Field(ge=1)] | None] = None
    """Number of results requested from each system; default: 100, or k if that is larger."""

    def problems(self, _: Mapping[str, Any]) -> Iterator[Finding]:
        """Parts that are named twice, weights of other systems, weights that are all 0."""
        if len(set(self.of)) < len(self.of):
            yield ("of",), Problem("a system is named twice", hint="give it a weight.")
        for part in self.weights:
            if part not in self.of:
                yield ("weights", part), unknown_name("part of the fusion", part, self.of)
        if all(self.weights.get(part, 1) == 0 for part in self.of):
            yield (
                ("weights",),
                Problem("every part of the fusion has weight 0", expected="a weight above 0 for at least one"),
            )


class FusionConfig(BaseSystem):
    """A fusion of other systems of the file, each called by its own settings."""

    kind = "fusion"
    hints: ClassVar[Mapping[str, str]] = dict.fromkeys(
        SearchSystem.model_fields.keys() - BaseSystem.model_fields.keys() - {"explain"},
        "set it for each of the fused systems.",
    )
    cwd: ClassVar[str] = "."
    env: ClassVar[Mapping[str, SecretStr]] = {}
    timeout_s: ClassVar[float] = 30.0
    retries: ClassVar[None] = None
    backoff_s: ClassVar[float] = 0.5
    order: ClassVar[Order] = "given"
    extract: ClassVar[None] = None
    empty: ClassVar[None] = None
    depends: ClassVar[tuple[Dependency, ...]] = ()
    before: ClassVar[tuple[list[str], ...]] = ()
    serve: ClassVar[None] = None
    after: ClassVar[tuple[list[str], ...]] = ()

    fusion: OfChange[Fusion]
    """Other systems of this file, fused."""
    explain: OfChange[bool] = False
    """Keep what each of them gives to the score of a result, with its own explanation where it has one."""


class PresetConfig(SearchSystem):
    """A template of a system for a search engine."""

    kind = "preset"

    preset: OfChange[Text]
    """Name of a template for a search engine, such as `elasticsearch` or `sqlite`; its settings are in `with`."""
    with_: OfChange[dict[str, Any] | None] = Field(default=None, alias="with")
    """Settings of the preset."""

    def problems(self, file: Mapping[str, Any]) -> Iterator[Finding]:
        """Also a preset that there is not, or settings that do not fit it."""
        from cranfield.config.presets import PRESETS

        yield from super().problems(file)
        if self.preset not in PRESETS:
            yield ("preset",), unknown_name("preset", self.preset, PRESETS)
            return
        problems = list(problems_of(PRESETS[self.preset].settings, self.with_ or {}))
        yield from ((("with", *place), problem) for place, problem in problems)
        if not problems:
            model, form = _expanded(self)
            yield from ((("with",), problem) for _, problem in problems_of(model, form))


class PluginConfig(SearchSystem):
    """A kind of system provided by an installed package."""

    kind = "plugin"

    plugin: OfChange[Text]
    """A kind of system provided by an installed package; its settings are in `with`."""
    with_: OfChange[dict[str, Any] | None] = Field(default=None, alias="with")
    """Settings of the plugin."""


SystemConfig = Annotated[
    Annotated[CommandConfig, Tag("command")]
    | Annotated[HttpConfig, Tag("http")]
    | Annotated[PythonConfig, Tag("python")]
    | Annotated[McpConfig, Tag("mcp")]
    | Annotated[LinesConfig, Tag("lines")]
    | Annotated[RunConfig, Tag("run")]
    | Annotated[FusionConfig, Tag("fusion")]
    | Annotated[PresetConfig, Tag("preset")]
    | Annotated[PluginConfig, Tag("plugin")],
    by_key(*KINDS),
]
"""A system under test: what it is, how it is called, and how its answers are read."""


class SystemRoot(RootModel[Any], defer_build=True):
    """A system alone."""

    root: SystemConfig  # `RootModel[SystemConfig]` would be built when it is imported


def expand_preset(system: SystemConfig) -> SystemConfig:
    """The system that a preset stands for; keys written with the preset go first. Other kinds unchanged."""
    if not isinstance(system, PresetConfig):
        return system
    model, form = _expanded(system)
    return model.model_validate(form)


def _expanded(system: PresetConfig) -> tuple[type[HttpConfig | PythonConfig], dict[str, Any]]:
    from cranfield.config.presets import PRESETS

    preset = PRESETS[system.preset]
    form = dict(preset.fill(preset.settings.model_validate(system.with_ or {})))
    form = dict(preset.explained(form)) if system.explain else form
    keys = {name: getattr(system, name) for name in system.model_fields_set - {"preset", "with_"}}
    if "depends" in form:  # its paths are relative to the config file, those of a system to its `cwd`
        keys["depends"] = [*(os.path.relpath(path, system.cwd) for path in form["depends"]), *system.depends]
    return HttpConfig if "http" in form else PythonConfig, form | keys


def with_explanations(system: SystemConfig) -> SystemConfig:
    """The same system, whose results say how their scores came about."""
    return system if isinstance(system, RunConfig) else system.model_copy(update={"explain": True})


SHARED = (
    "cwd", "env", "before", "serve", "after", "params", "components", "timeout_s", "concurrency", "rate_per_s", "retries", "backoff_s", "explain", "order",
    "extract", "empty", "depends", "preflight",
)  # fmt: skip
"""Keys that several kinds of system have, in the order in which they are shown."""


def config_digest(system: SystemConfig, params: Mapping[str, Scalar] = MappingProxyType({})) -> str:
    """SHA-256 over the canonical JSON of the system's config; values of secrets are covered.

    Args:
        system: the system.
        params: of its test set, given with every query; without any the digest is of the system alone.
    """
    keys = _keys(system)
    text = json.dumps(
        [keys, dict(params)] if params else keys,
        sort_keys=True,
        ensure_ascii=False,
        separators=(",", ":"),
        default=str,
    )
    return "sha256:" + sha256(b"cranfield system 1\n" + text.encode("utf-8", "surrogatepass")).hexdigest()


def public_config(system: SystemConfig) -> dict[str, Any]:
    """The keys of a system in plain JSON values; of `env` only the sorted names."""
    keys: dict[str, Any] = json.loads(json.dumps(_keys(system), default=str))
    if "env" in keys:
        keys["env"] = sorted(keys["env"])
    return {key: keys[key] for key in sorted(keys, key=lambda key: SHARED.index(key) if key in SHARED else -1)}


def _keys(value: object) -> object:
    if isinstance(value, BaseModel):
        fields = type(value).model_fields
        names = [name for name in fields if name in value.model_fields_set]  # the models' order, whatever the file's
        names.sort(key=lambda name: name not in type(value).__annotations__)  # its own fields, then those it inherits
        return {fields[name].alias or name: _keys(getattr(value, name)) for name in names}
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    if isinstance(value, dict):
        return {key: _keys(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_keys(item) for item in value]
    return value
