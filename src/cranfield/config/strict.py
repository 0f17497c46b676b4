"""Strict models of configuration files, and templates in their values.

A part validates in two steps: its fields one by one, then `problems`, what the fields only show together. All problems
of a file are reported at once, except those that `problems` would find in a part with a wrong field.
The context of a validation is the whole file as read, so that a name can be looked up wherever it stands.

`{query}`, `{k}`, `{params.NAME}`, `{python}` in a command, `{env.NAME}` in a request and `{port}` in both are placeholders. `{{word}}` is
the literal text `{word}`; braces around anything that is not a plain word (a JSON body, say) stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Any, ClassVar, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

from cranfield.base.errors import Problem, unknown_name
from cranfield.formats.io.tree import Loc
from cranfield.formats.io.validation import EXCLUDING, PROBLEM
from cranfield.model import Scalar

Finding = tuple[Loc, Problem]
"""Where, from the part that is checked, and what."""


def raise_findings(findings: Iterable[Finding]) -> None:
    """Raise all problems of a part as one pydantic error, each at its place.

    A place that leads into a model chosen by `by_key` has its tag before the keys of the model, as pydantic's own places.
    """
    details = [InitErrorDetails(type=_custom_error(problem), loc=place, input=None) for place, problem in findings]
    if details:
        raise ValidationError.from_exception_data("config", details)


def checked(*checks: Callable[[Any], Iterable[Finding]]) -> AfterValidator:
    """Validator of one field by checks that find problems in its value."""

    def validate(value: Any) -> Any:
        raise_findings(finding for check in checks for finding in check(value))
        return value

    return AfterValidator(validate)


def _custom_error(problem: Problem) -> PydanticCustomError:
    context = {name: getattr(problem, name) for name in ("message", "expected", "got", "hint")}
    # No lone surrogate (`"\ud800"` in JSON) can be part of a pydantic error.
    context = {name: text and text.encode("utf-8", "backslashreplace").decode() for name, text in context.items()}
    return PydanticCustomError(PROBLEM, "{message}", context)


class Strict(BaseModel):
    """Base of every part: unknown keys are problems, values are not coerced, nothing changes after loading."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        allow_inf_nan=False,
        use_attribute_docstrings=True,
        defer_build=True,
    )

    hints: ClassVar[Mapping[str, str]] = {}
    """What to do with a key that another model of `by_key` has and this one has not."""

    def problems(self, file: Mapping[str, Any]) -> Iterator[Finding]:  # noqa: ARG002 - for those that look names up
        """Everything wrong with a part whose fields are each valid; `file` is the whole config as read."""
        return iter(())

    @model_validator(mode="after")
    def _check(self, info: ValidationInfo) -> Self:
        raise_findings(self.problems(info.context or {}))
        return self


class ProductBlock(Strict):
    """A block of the config that a product adds."""

    about: ClassVar[str] = ""
    """Description in the published JSON Schema."""

    @property
    def measures(self) -> Sequence[str]:
        """Measures that it needs of every system."""
        return ()

    @property
    def depths(self) -> Sequence[int]:
        """Numbers of results that it needs of every query."""
        return ()


def by_key(*keys: str) -> Discriminator:
    """Choose between models by which one of `keys` is there: each is the tag of a model."""

    def tag(value: Any) -> str | None:
        if isinstance(value, BaseModel):
            present = {field.alias or name for name, field in type(value).model_fields.items()}
        elif isinstance(value, Mapping):
            present = set(value)
        else:
            return keys[0]  # whose model reports what was expected
        found = [key for key in keys if key in present] or _misspelt(keys, present)
        return found[0] if len(found) == 1 else None

    return Discriminator(tag, EXCLUDING, " ".join(keys))


def _misspelt(keys: Sequence[str], present: Iterable[Any]) -> list[str]:
    """The key that is probably meant: its model reports the misspelling, and all else that is wrong."""
    return [key for name in present for key in get_close_matches(str(name), keys, n=1, cutoff=0.7)][:1]


def exclusive_keys(part: BaseModel, *keys: str) -> Iterator[Finding]:
    """Check that exactly one of these keys of a part has a value."""
    found = [key for key in keys if getattr(part, key) is not None]
    if len(found) != 1:
        got = " and ".join(found) or "none"
        message = "keys that exclude each other" if found else "missing key"
        yield (), Problem(message, expected=f"exactly one of {', '.join(keys)}", got=got)


def known_in(block: str, kind: str) -> Callable[[str, ValidationInfo], str]:
    """Validator of a name that is a key of another block of the file: of `systems`, of `testsets`."""

    def validate(name: str, info: ValidationInfo) -> str:
        known = None if info.context is None else info.context.get(block, {})
        if isinstance(known, Mapping) and name not in known:
            raise _custom_error(unknown_name(kind, name, map(str, known)))
        return name

    return validate


PARAMS = "params."
ENV = "env."
PORT = "port"
"""Placeholder of the port on which the program of `serve` listens, filled in before all others: see `with_port`."""
PLACEHOLDERS = ("query", "k", "python", PORT, PARAMS + "NAME")
"""Placeholders of a command, for messages and documentation."""
REQUEST_PLACEHOLDERS = ("query", "k", PORT, PARAMS + "NAME", ENV + "NAME")
"""Placeholders of a request, and of the arguments of a tool."""
NO_QUERY = "no {query}: every query would make the same call"

_WORD = r"[A-Za-z_][\w.\-]*"
_BRACES = re.compile(rf"\{{\{{(?P<literal>{_WORD})\}}\}}|\{{(?P<name>{_WORD})\}}")
_PARAM_NAME = re.compile(r"params\.[A-Za-z_][\w.\-]*")
_ENV_NAME = re.compile(r"env\.[A-Za-z_][A-Za-z0-9_]*")
_NOT_FLAGS = frozenset({"-", "--"})


def placeholders(element: str) -> Iterator[str]:
    """Names in braces in one argv element, known or not, in order."""
    for match in _BRACES.finditer(element):
        if match["name"] is not None:
            yield match["name"]


def is_placeholder(name: str, known: Sequence[str] = PLACEHOLDERS) -> bool:
    """True for a name that `fill` (or, with those of a request, `fill_value`) knows how to fill in."""
    if name.startswith(ENV):
        return ENV + "NAME" in known and _ENV_NAME.fullmatch(name) is not None
    return name in known or _PARAM_NAME.fullmatch(name) is not None


def texts(value: object) -> Iterator[str]:
    """Every text of a JSON value, keys too: where placeholders may stand."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield str(key)
            yield from texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from texts(item)


def environment_names(value: object) -> list[str]:
    """Names of the environment variables that the placeholders of a JSON value name."""
    names = {name for text in texts(value) for name in placeholders(text) if name.startswith(ENV)}
    return sorted(name.removeprefix(ENV) for name in names)


def request_values(
    *, query: str, k: int, params: Mapping[str, Scalar], environment: Mapping[str, str]
) -> dict[str, Scalar]:
    """What the placeholders of a request stand for, each with its type."""
    values: dict[str, Scalar] = {"query": query, "k": k}
    values |= {PARAMS + name: value for name, value in params.items()}
    return values | {ENV + name: value for name, value in environment.items()}


ABSENT = object()
"""What `fill_value` makes of a text that needs a parameter or variable that is not there."""


def fill_value(value: object, values: Mapping[str, Scalar]) -> Any:
    """Fill in a JSON value, in a single pass; `ABSENT` for a text that needs a parameter or variable that is not there.

    A text that is nothing but a placeholder becomes the value with its type. Of a mapping or list, what is absent is left
    out; a mapping or list inside that becomes empty is left out too. Keys are not filled in.
    """
    if isinstance(value, Mapping):
        filled = {key: _filled(item, values) for key, item in value.items()}
        return {key: item for key, item in filled.items() if item is not ABSENT}
    if isinstance(value, list | tuple):
        return [item for item in (_filled(element, values) for element in value) if item is not ABSENT]
    return _filled(value, values)


def _filled(value: object, values: Mapping[str, Scalar]) -> Any:
    if isinstance(value, str):
        return _filled_text(value, values)
    if isinstance(value, Mapping | list | tuple):
        return fill_value(value, values) or (ABSENT if value else value)
    return value


def _filled_text(text: str, values: Mapping[str, Scalar]) -> Any:
    if any(is_placeholder(name, REQUEST_PLACEHOLDERS) and name not in values for name in placeholders(text)):
        return ABSENT
    whole = _BRACES.fullmatch(text)
    if whole is not None and whole["name"] in values:
        return values[whole["name"]]
    return fill_text(text, {name: as_argument(value) for name, value in values.items()})


def with_port(value: Any, port: int) -> Any:
    """A part of a config, or a JSON value, with `{port}` filled in; every other placeholder, and `{{word}}`, stays."""
    if isinstance(value, str):
        return _BRACES.sub(lambda match: str(port) if match["name"] == PORT else match[0], value)
    if isinstance(value, BaseModel):
        return value.model_copy(update={name: with_port(getattr(value, name), port) for name in value.model_fields_set})
    if isinstance(value, Mapping):
        return {key: with_port(item, port) for key, item in value.items()}
    return [with_port(item, port) for item in value] if isinstance(value, list) else value


def fill_text(text: str, values: Mapping[str, str]) -> str:
    """Fill in one text, in a single pass; braces round a name that is not there stay."""
    return _BRACES.sub(lambda match: _replacement(match, values), text)


def as_argument(value: Scalar) -> str:
    """Spell a parameter the way a command line would: `true`, `17.0`, `ios`."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else repr(value)


def fill(command: Sequence[str], *, query: str, k: int, python: str, params: Mapping[str, Scalar]) -> list[str]:
    """Fill a command in, in a single pass: what comes from a query is never read again as a placeholder.

    An element that needs a parameter the query does not have is dropped; where that element does not start with `-`
    itself, the flag right before it goes as well.
    """
    values = {"query": query, "k": str(k), "python": python}
    values |= {PARAMS + name: as_argument(value) for name, value in params.items()}
    filled: list[str] = []
    flag_kept = False  # whether the last element of `filled` is a flag that waits for its value
    for element in command:
        absent = any(name.startswith(PARAMS) and name not in values for name in placeholders(element))
        if absent:
            if flag_kept and not element.startswith("-"):
                filled.pop()
            flag_kept = False
            continue
        filled.append(fill_text(element, values))
        # A flag is recognised in the config, not in the query that is filled in.
        flag_kept = element.startswith("-") and "=" not in element and element not in _NOT_FLAGS
    return filled


def _replacement(match: re.Match[str], values: Mapping[str, str]) -> str:
    if match["literal"] is not None:
        return "{" + match["literal"] + "}"
    return values.get(match["name"], match[0])


def check_placeholders(place: Loc, text: str, known: Sequence[str]) -> Iterator[Finding]:
    """Names in braces that are no placeholder."""
    for name in placeholders(text):
        if not is_placeholder(name, known):
            near = [*known]
            if "." in name:  # {param.min_ios}, {params.min ios}
                near.append("params." + name.split(".", 1)[1])
            problem = unknown_name("placeholder", name, near)
            literal = f"{{{{{name}}}}} is the literal text {{{name}}}."
            hint = f"{problem.hint} {literal}" if problem.hint else literal
            yield place, replace(problem, expected=", ".join(known), hint=hint)


def depends_on_query(value: object, known: Sequence[str]) -> bool:
    """Whether a query changes the call; also true where a placeholder is misspelt, which is a problem of its own."""
    names = {name for text in texts(value) for name in placeholders(text)}
    return any(name == "query" or name.startswith("params.") or not is_placeholder(name, known) for name in names)


def check_command(command: list[str]) -> Iterator[Finding]:
    """A command that is started once for each query."""
    for index, element in enumerate(command):
        yield from check_placeholders((index,), element, PLACEHOLDERS)
    yield from _check_program(command)
    if any(name != "python" for name in placeholders(command[0]) if is_placeholder(name)):
        yield (0,), Problem("the program itself cannot depend on the query", got=command[0])
    if not depends_on_query(command[1:], PLACEHOLDERS):
        yield (), Problem(NO_QUERY)


def check_started_once(command: list[str], hint: str) -> Iterator[Finding]:
    """A command that is started once for all queries, so that no query can be an argument."""
    yield from _check_program(command)
    for index, element in enumerate(command):
        for name in placeholders(element):
            if name in {"python", PORT}:
                continue
            if is_placeholder(name):
                yield (index,), Problem("the program is started once, for all queries", got=element, hint=hint)
            else:
                yield from check_placeholders((index,), f"{{{name}}}", ("python", PORT))


def check_opened_once(value: object) -> Iterator[Finding]:
    """Texts of a session that is opened once for all queries: variables of the environment may stand in them."""
    for text in texts(value):
        for name in placeholders(text):
            if is_placeholder(name, REQUEST_PLACEHOLDERS) and name != PORT and not name.startswith(ENV):
                hint = "put values that depend on the query in arguments."
                yield (), Problem("the session is opened once, for all queries", got=text, hint=hint)
            else:
                yield from check_placeholders((), f"{{{name}}}", (ENV + "NAME", PORT))


def check_request(value: object) -> Iterator[Finding]:
    """Texts of a request that is sent for each query."""
    for text in texts(value):
        yield from check_placeholders((), text, REQUEST_PLACEHOLDERS)


def _check_program(command: list[str]) -> Iterator[Finding]:
    if not command[0].strip():
        yield (0,), Problem("the program's name is blank")
