"""Lays a pydantic model or a dataclass over located data, and says what does not fit in plain words, each at its line and column.

Nothing here knows a format: the models do.
"""

from __future__ import annotations

import ast
import inspect
import json
import textwrap
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, RootModel, Tag, TypeAdapter, ValidationError
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core.core_schema import DataclassSchema, DictSchema

from cranfield.base.errors import CranfieldError, Problem, ProblemList, unknown_name
from cranfield.base.words import and_list, or_list
from cranfield.formats.io.files import shown
from cranfield.formats.io.located import Located, load_located
from cranfield.formats.io.tree import Loc, describe, field_name
from cranfield.model.kinds import UnfitError

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


M = TypeVar("M")
"""A pydantic model, or a dataclass."""
Filled = Annotated[str, Field(min_length=1, pattern=r"\S")]
"""A text that is not blank."""

_EXPECTED = {
    "string_type": "text",
    "string_sub_type": "text",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing_size": "a smaller whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "set_type": "a list",
    "frozen_set_type": "a list",
    "dict_type": "keys with values",
    "mapping_type": "keys with values",
    "model_type": "keys with values",
    "model_attributes_type": "keys with values",
    "dataclass_type": "keys with values",
    "path_type": "a path",
    "none_required": "nothing",
    "greater_than": "more than {gt}",
    "greater_than_equal": "{ge} or more",
    "less_than": "less than {lt}",
    "less_than_equal": "{le} or less",
    "multiple_of": "a multiple of {multiple_of}",
    "literal_error": "{expected}",
    "enum": "{expected}",
    "union_tag_invalid": "{expected_tags}",
    "string_too_short": "{min_length} characters or more",
    "string_too_long": "{max_length} characters or fewer",
    "too_short": "{min_length} or more entries",
    "too_long": "{max_length} or fewer entries",
    "string_pattern_mismatch": "text like {pattern}",
}
"""Pydantic's error type to what was expected, in words."""

PROBLEM = "problem"
"""Type of a `PydanticCustomError` whose context holds the fields of a `Problem`; the field's name stands before it."""
EXCLUDING = "excluding_keys"
"""Type of a `PydanticCustomError` whose message lists keys of which exactly one has to be there."""

_UNKNOWN = {"extra_forbidden", "unexpected_keyword_argument"}
"""Types of the error on a key that a model, or a dataclass, does not have."""
_MERGE_HINT = "merge keys (<<) are not supported: write the keys out"
_ADAPTERS: dict[type, TypeAdapter[Any]] = {}


class ClosedModel(BaseModel):
    """Accepts nothing that it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def adapter_of(model: type) -> TypeAdapter[Any]:
    """What reads, checks, writes and describes values of a class."""
    if model not in _ADAPTERS:
        _ADAPTERS[model] = TypeAdapter(model)
    return _ADAPTERS[model]


def validate(
    located: Located, model: type[M], problems: ProblemList, *, context: Mapping[str, Any] | None = None
) -> M | None:
    """Build `model` from the data; on failure add every problem, with its place, and return None."""
    try:
        made: M = adapter_of(model).validate_python(located.top, context=context)
    except ValidationError as error:
        problems.problems += [finding.problem(located) for finding in _findings(error, model)]
        return None
    return made


def load_model(path: Path, model: type[M], error: type[CranfieldError]) -> M:
    """Read a YAML or JSON file as `model`.

    Raises:
        CranfieldError: of type `error`, with every problem of the file, each at its line and column.
    """
    located, problems = load_located(path, error), ProblemList(error)
    made = validate(located, model, problems)
    problems.raise_if_any()
    if made is None:
        raise error("not a valid file", path=shown(path))
    return made


def problems_of(
    model: type[BaseModel], values: object, *, context: Mapping[str, Any] | None = None
) -> Iterator[tuple[Loc, Problem]]:
    """Everything in plain values that does not fit `model`: where it stands in them, and the problem without a place."""
    try:
        model.model_validate(values, context=context)
    except ValidationError as error:
        for finding in _findings(error, model):
            yield finding.loc, finding.without_place()


def _findings(error: ValidationError, model: type) -> list[_Finding]:
    found: dict[tuple[Loc, str], _Finding] = {}
    for detail in error.errors(include_url=False):
        loc, owners, branches = _place(detail["loc"], model)
        finding = _finding(detail, loc, owners, branches)
        earlier = found.setdefault((loc, finding.group), finding)
        if earlier is not finding:
            earlier.merge(finding)
    return [f for f in found.values() if f.group not in {"value", "empty"} or not _is_explained(f.loc, found)]


def _is_explained(loc: Loc, found: Iterable[tuple[Loc, str]]) -> bool:
    """True when something inside is wrong: an entry that counts as absent, or what a union's meant branch has."""
    return any(len(other) > len(loc) and other[: len(loc)] == loc for other, _ in found)


@dataclass
class _Finding:
    """One complaint, before it is a sentence. Complaints of a union's branches about one value are merged."""

    loc: Loc
    group: str
    message: str
    expected: list[str] = field(default_factory=list)
    got: str | None = None
    hint: str | None = None
    unknown: Problem | None = None
    at_key: bool = False
    """The key itself is wrong, not its value."""

    def merge(self, other: _Finding) -> None:
        self.expected += [what for what in other.expected if what not in self.expected]

    def problem(self, located: Located) -> Problem:
        if self.unknown is not None:
            line, column = located.mark(self.loc, key=True)
            hint = _MERGE_HINT if self.loc[-1] == "<<" else self.unknown.hint
            return replace(self.unknown, path=shown(located.path), line=line, column=column, hint=hint)
        return located.problem(
            self.message,
            self.loc,
            key=self.at_key,
            expected=" or ".join(self._wanted()) or None,
            got=self.got,
            hint=self.hint,
        )

    def without_place(self) -> Problem:
        """The problem, without the place."""
        if self.unknown is not None:
            return self.unknown
        return Problem(self.message, expected=" or ".join(self._wanted()) or None, got=self.got, hint=self.hint)

    def _wanted(self) -> list[str]:
        """What was expected, each kind of number once."""
        return [what for what in self.expected if what != "a whole number" or "a number" not in self.expected]


def _finding(detail: ErrorDetails, loc: Loc, owners: list[Any], branches: Mapping[str, Any]) -> _Finding:
    kind, context, name = detail["type"], detail.get("ctx", {}), field_name(loc)
    if kind in {"missing", "union_tag_not_found", *_UNKNOWN}:
        return _key_finding(kind, context, loc, owners, branches)
    if kind == EXCLUDING:
        # Tag and model of everything that may stand at `loc`.
        here = [inner for owner in owners for inner in _inner(owner, loc[-1])] if loc else owners
        return _excluding_finding(detail["msg"].split(), detail["input"], loc, dict(filter(None, map(_tagged, here))))
    got: str | None = describe(detail["input"])
    at_key = detail["loc"][-1:] == ("[key]",)
    if kind in {"string_too_short", "too_short"} and context.get("min_length") == 1:
        return _Finding(loc, "empty", f"{name} is empty", at_key=at_key)
    if kind in _EXPECTED:
        expected = _EXPECTED[kind].format(**{key: _short(value) for key, value in context.items()})
        return _Finding(
            loc, "value", f"wrong value for {name}" if name else "wrong value", [expected], got, at_key=at_key
        )
    message = detail["msg"]
    wanted = []
    hint = None
    cause = context.get("error")
    if isinstance(cause, Exception):
        message, got = str(cause), None
    if isinstance(cause, UnfitError) or kind == PROBLEM:
        own: Mapping[str, Any] = vars(cause) if isinstance(cause, UnfitError) else context
        wanted = [own["expected"]] if own.get("expected") else []
        got, hint = own.get("got"), own.get("hint")
    if name:
        message = f"{name} {message}" if isinstance(cause, UnfitError) else f"{name}: {message}"
    return _Finding(loc, message, message, wanted, got, hint, at_key=at_key)


def _short(value: object) -> object:
    """A whole float without its point."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _key_finding(
    kind: str, context: Mapping[str, Any], loc: Loc, owners: list[Any], branches: Mapping[str, Any]
) -> _Finding:
    if kind in _UNKNOWN:
        elsewhere = [tag for tag, branch in branches.items() if loc[-1] in _keys(branch)]
        if elsewhere:
            got = next(tag for tag, branch in branches.items() if branch in owners)
            hint = getattr(branches[got], "hints", {}).get(loc[-1])
            message = f"{field_name(loc)} can only be used with {', '.join(elsewhere)}"
            return _Finding(loc, "extra", message, got=got, hint=hint, at_key=True)
        known = {key for owner in owners for key in _keys(owner)}
        others = {key for branch in branches.values() for key in _keys(branch)}
        return _Finding(loc, "extra", "", unknown=unknown_name("key", str(loc[-1]), known, aliases=others - known))
    if kind == "missing":
        missing, parent = str(loc[-1]), field_name(loc[:-1])
    else:
        missing, parent = str(context["discriminator"]).strip("'"), field_name(loc)
    return _Finding(loc, "missing", f"missing key {missing!r}" + (f" in {parent}" if parent else ""))


def _excluding_finding(
    keys: Sequence[str], value: Mapping[str, Any], loc: Loc, models: Mapping[str, type[BaseModel]]
) -> _Finding:
    found = [key for key in keys if key in value]
    name = field_name(loc)
    message = ("keys that exclude each other" if found else "missing key") + (f" in {name}" if name else "")
    hint = f"keep one of {and_list(found)}." if found else _where_keys_belong(value, models)
    known = {key for model in models.values() for key in _keys(model)}
    unknown = ", ".join(str(key) for key in value if key not in known)
    got = " and ".join(found) or (f"none, and the unknown key {unknown}" if unknown and hint is None else "none")
    return _Finding(loc, "excluding", message, [f"exactly one of {', '.join(keys)}"], got, hint)


def _where_keys_belong(value: Mapping[str, Any], models: Mapping[str, type[BaseModel]]) -> str | None:
    """The hint for keys that stand one level too high: `url` of a system, instead of `url` under `http`."""
    known = {key for model in models.values() for key in _keys(model)}
    for key in value:
        tags = [tag for tag, model in models.items() if key not in known and key in _keys_under(model, tag)]
        if tags:
            return f"{key} is a key of {or_list(tags)}: write `{tags[0]}: {{{key}: …}}`."
    return None


def _keys_under(model: type[BaseModel], key: str) -> set[str]:
    """The keys that may stand in the value of `key`."""
    branches = [pair[1] if (pair := _tagged(branch)) else branch for branch in _inner(model, key)]
    return {name for branch in branches for name in _keys(branch)}


def _place(loc: Sequence[str | int], model: type) -> tuple[Loc, list[Any], Mapping[str, Any]]:
    """Where an error is in the data, the models that own its last step, and the tagged models these were chosen from.

    Pydantic's own place also names the branch of a union it tried, and `[key]` for a mapping's key: both are left out.
    """
    steps: list[str | int] = []
    here: list[Any] = _unwrap(model.model_fields["root"].annotation) if issubclass(model, RootModel) else [model]
    owners = here
    branches: dict[str, Any] = {}
    chosen_from: dict[str, Any] = {}
    branch_is_next = len(here) > 1
    for step in loc:
        if step == "[key]":
            continue
        if branch_is_next:
            chosen_from = dict(filter(None, map(_tagged, here)))
            here = (
                [chosen_from[step]]
                if step in chosen_from
                else [branch for branch in here if _is_branch(branch, step)] or here
            )
            branch_is_next = False
            continue
        branches, chosen_from = chosen_from, {}
        steps.append(step)
        owners, here = here, []
        for owner in owners:
            here += [inner for inner in _inner(owner, step) if inner not in here]
        branch_is_next = len(here) > 1
    return tuple(steps), owners, branches


def _unwrap(annotation: Any) -> list[Any]:
    """Branches of a union, without None and without `Annotated`, but for those that have a tag."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return [annotation] if _tagged(annotation) else _unwrap(get_args(annotation)[0])
    if origin in {Union, types.UnionType}:
        return [branch for part in get_args(annotation) if part is not type(None) for branch in _unwrap(part)]
    return [annotation]


def _tagged(annotation: Any) -> tuple[str, Any] | None:
    """Tag and model of a branch that a `Discriminator` chooses."""
    if get_origin(annotation) is not Annotated:
        return None
    branch, *metadata = get_args(annotation)
    return next(((item.tag, branch) for item in metadata if isinstance(item, Tag)), None)


def _inner(owner: Any, step: str | int) -> list[Any]:
    """What may stand under a key or position of `owner`; nothing where that is not known."""
    if _is_model(owner):
        annotations = [annotation for names, annotation in _fields(owner) if step in names]
    elif isinstance(step, int) and get_args(owner):
        annotations = [get_args(owner)[0]]
    else:
        annotations = list(get_args(owner)[-1:])
    return [branch for annotation in annotations for branch in _unwrap(annotation)]


def _is_branch(branch: Any, name: str | int) -> bool:
    """True when pydantic calls this branch of a union by `name`: its class, or the value of its discriminator."""
    if not _is_model(branch):
        return False
    literals = [value for _, annotation in _fields(branch) for value in get_args(annotation)]
    return branch.__name__ == name or name in literals


def _keys(branch: Any) -> set[str]:
    """The keys of a model as they stand in a file; none of a branch that is text or a number."""
    return {names[0] for names, _ in _fields(branch)} if _is_model(branch) else set()


def _fields(model: Any) -> list[tuple[tuple[str, ...], Any]]:
    """Names of each field, first that in a file, and its annotation."""
    if not is_dataclass(model):
        return [((info.alias or name, name), info.annotation) for name, info in model.model_fields.items()]
    hints = get_type_hints(model, include_extras=True)
    return [((row.metadata.get("alias", row.name), row.name), hints[row.name]) for row in fields(model)]


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and (issubclass(annotation, BaseModel) or is_dataclass(annotation))


WIDTH = 120


class _Published(GenerateJsonSchema):
    def field_title_should_be_set(self, _: object) -> bool:
        """Leave out titles that repeat the names of fields."""
        return False

    def dict_schema(self, schema: DictSchema) -> dict[str, Any]:
        """Keys have one pattern; pydantic says it as `patternProperties`, which alone forbids nothing."""
        made = super().dict_schema(schema)
        return made | {"additionalProperties": False} if "patternProperties" in made else made

    def dataclass_schema(self, schema: DataclassSchema) -> dict[str, Any]:
        """The string under each field is its description."""
        made = super().dataclass_schema(schema)
        described = _descriptions(schema["cls"])
        for row in fields(schema["cls"]):
            if row.name in described:
                made["properties"][row.metadata.get("alias", row.name)]["description"] = described[row.name]
        return made


def _descriptions(kind: type) -> dict[str, str]:
    """Field to the string under it, in the class or in one that it derives from."""
    found: dict[str, str] = {}
    for each in reversed([base for base in kind.__mro__ if "__dataclass_fields__" in vars(base)]):
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(each))).body
        body = tree.body if isinstance(tree, ast.ClassDef) else []
        for row, after in pairwise(body):
            if isinstance(row, ast.AnnAssign) and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
                found[ast.unparse(row.target)] = inspect.cleandoc(str(after.value.value))
    return found


def published_schema(model: type, **head: str) -> dict[str, Any]:
    """The schema (draft 2020-12) of a model or a dataclass; `head` stands before it."""
    schema = adapter_of(model).json_schema(schema_generator=_Published)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **head, **schema}


def schema_text(schema: dict[str, Any]) -> str:
    """A schema as its file holds it: a short value takes one line."""
    return _text(schema, 0) + "\n"


def _text(value: Any, indent: int) -> str:
    line = json.dumps(value, ensure_ascii=False)
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    if len(line) + indent < WIDTH or not inner:
        return line
    margin, closing = "\n" + " " * (indent + 2), "\n" + " " * indent
    if isinstance(value, list):
        return "[" + ",".join(margin + _text(each, indent + 2) for each in value) + closing + "]"
    rows = (f"{margin}{json.dumps(key)}: {_text(each, indent + 2)}" for key, each in value.items())
    return "{" + ",".join(rows) + closing + "}"
