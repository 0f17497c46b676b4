"""Parts of a config whose keys are options, and names in a config that are looked up in a table: what the declarations say of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_origin

from pydantic import AfterValidator, BaseModel, BeforeValidator, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from cranfield.base.errors import CranfieldError, Problem, unknown_name
from cranfield.config.owners import FieldOwner
from cranfield.config.strict import Finding, Strict, checked, raise_findings
from cranfield.evaluation.options.blocks import SET_OPTIONS
from cranfield.evaluation.options.declaration import Declared, declared
from cranfield.evaluation.options.keys import model_with, within_bounds
from cranfield.model import CONVENTIONS
from cranfield.model.kinds import Text


def _check_measure(name: str) -> Iterator[Finding]:
    from cranfield.measures import parse

    try:
        parse(name)
    except CranfieldError as error:
        yield from (((), problem) for problem in error.problems)


def _check_mean(name: str) -> Iterator[Finding]:
    from cranfield.measures import CATALOGUE, parse

    problems = list(_check_measure(name))
    yield from problems
    if not problems and CATALOGUE[parse(name).name].aggregate != "mean":
        hint = "choose one that is averaged over queries, such as AP."
        yield (), Problem(f"{name} is one number over all queries, not a mean of values per query", hint=hint)


def _check_test(name: str) -> Iterator[Finding]:
    from cranfield.stats.table import TESTS

    if name not in TESTS:
        yield (), unknown_name("test", name, TESTS)


def _check_adjustment(name: str) -> Iterator[Finding]:
    from cranfield.stats.table import ADJUSTMENTS

    if name not in ADJUSTMENTS:
        yield (), unknown_name("adjustment", name, ADJUSTMENTS)


def _check_convention(name: str) -> Iterator[Finding]:
    if name not in CONVENTIONS:
        yield (), unknown_name("convention", name, CONVENTIONS)


MeasureName = Annotated[str, checked(_check_measure)]
MeanMeasureName = Annotated[str, checked(_check_mean)]
"""A measure that is averaged over queries."""
TestName = Annotated[str, checked(_check_test)]
AdjustmentName = Annotated[str, checked(_check_adjustment)]
ConventionName = Annotated[str, checked(_check_convention)]


class _ByCheck:
    """The schema of the block: a property for each check, made when a schema is requested."""

    def __get_pydantic_json_schema__(self, _schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        from cranfield.evaluation.evidence.inspection import CHECKS
        from cranfield.evaluation.options.blocks import Consequence

        consequence = core_schema.literal_schema([*map(str, Consequence), False])  # some YAML readers make false of off
        threshold = core_schema.float_schema(ge=0)
        parts = {"consequence": consequence, "threshold": threshold}
        fields = {name: core_schema.typed_dict_field(part, required=False) for name, part in parts.items()}
        both = core_schema.typed_dict_schema(fields, extra_behavior="forbid")
        entry = core_schema.union_schema([consequence, threshold, both], ref="EvidenceSetting")
        reference = core_schema.definition_reference_schema("EvidenceSetting")
        setting = handler(core_schema.definitions_schema(reference, [entry]))
        handler.resolve_ref_schema(setting)["description"] = "Consequence of a finding, its threshold, or both."
        return {
            "type": "object",
            "properties": {check.name: {**setting, "description": check.sentence} for check in CHECKS.values()},
            "additionalProperties": False,
        }


def _as_settings(written: Mapping[str, Any]) -> dict[str, Any]:
    """Each entry as a `Setting`; every unknown name and value is a problem."""
    from cranfield.evaluation.evidence.inspection import known_setting

    settings: dict[str, Any] = {}
    findings: list[Finding] = []
    for name, value in written.items():
        try:
            settings[name] = known_setting(name, value)
        except CranfieldError as error:
            findings += [((name,), problem) for problem in error.problems]
    raise_findings(findings)
    return settings


EvidenceConfig = Annotated[dict[str, Any], AfterValidator(_as_settings), _ByCheck()]

B = TypeVar("B")
M = TypeVar("M", bound=BaseModel)
NAMES: Mapping[str, Any] = MappingProxyType(
    {"tests": TestName, "adjustments": AdjustmentName, "conventions": ConventionName, "measures": MeasureName}
)
"""Names that an option takes to the type of a key."""


def with_keys(
    base: type[M], name: str, options: Iterable[Declared], *, otherwise: str | None = None, doc: str | None = None
) -> type[M]:
    """As `model_with`, a part of a config: names of tables are checked, and each key says who decides it."""

    def kind(key: Declared) -> Any:
        is_open = otherwise is not None or key.kind != key.bare or key.default == ()
        own = _type(key)
        return Annotated[own | None if is_open else own, FieldOwner(key.option.owner)]

    return model_with(base, name, options, kind, otherwise=otherwise, doc=doc)


def block_of(block: type[B], part: BaseModel, **more: Any) -> B:
    """A block of options, with the values of the keys that a part of a config has, and further ones."""
    values = {name: getattr(part, name) for name in declared(block) if name in type(part).model_fields}
    return block(**{**values, **more})


def _type(key: Declared) -> Any:
    bare = key.bare
    if key.option.choices:
        return NAMES[key.option.choices]
    if (parse := key.option.parse) is not None:
        read = BeforeValidator(lambda value: parse(value) if isinstance(value, str) else value, float | str)
        return Annotated[within_bounds(bare, key), read]
    if bare in {str, Path}:
        return Text
    if get_origin(bare) is Mapping:
        return dict[Text, Text]
    if key.default == ():
        return Text | list[Text]
    return within_bounds(bare, key)


if TYPE_CHECKING:
    _Keys = Strict
else:
    _Keys = with_keys(Strict, "SetKeys", SET_OPTIONS.values())


class SetOptions(_Keys):
    """Changes to a test set before it is used, as with the options of `cranfield evaluate`."""

    @property
    def given(self) -> dict[str, Any]:
        """The options that the file gives, by key."""
        return {name: value for name in self.model_fields_set if (value := getattr(self, name)) is not None}

    def over(self, other: SetOptions) -> SetOptions:
        """These options, and those of the other block that are not given here."""
        return self.model_copy(update={name: value for name, value in other.given.items() if name not in self.given})
