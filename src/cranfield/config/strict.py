"""The base of every part of a config, and the choice between models by a key.

A part validates in two steps: its fields one by one, then `problems`, what the fields only show together. All problems
of a file are reported at once, except those that `problems` would find in a part with a wrong field.
The context of a validation is the whole file as read, so that a name can be looked up wherever it stands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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

from cranfield.errors import Problem, unknown_name
from cranfield.formats.io.tree import Loc
from cranfield.formats.io.validation import EXCLUDING, PROBLEM

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
