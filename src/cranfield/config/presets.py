"""Presets: forms of other kinds of system, filled in for a search engine. One table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from cranfield.config.models import Strict, SystemConfig


@dataclass(frozen=True, slots=True)
class Preset:
    """One row of the table."""

    name: str
    title: str
    """What it is for, in a line."""
    settings: type[Strict]
    """What `with` takes; its fields and their descriptions are the documentation."""
    fill: Callable[[Any], Mapping[str, Any]]
    """From the settings to the keys of a system, as they would be written in cranfield.yaml."""
    example: Mapping[str, Any]
    """A `with` that is enough, for the documentation and the tests."""


PRESETS: dict[str, Preset] = {}


def filled(system: SystemConfig) -> SystemConfig:
    """A system whose preset is filled in; what is written beside the preset goes first. Others as they are.

    Raises:
        KeyError: there is no such preset.
        pydantic.ValidationError: `with` is not what it takes.
    """
    if system.preset is None:
        return system
    preset = PRESETS[system.preset]
    base = SystemConfig.model_validate(preset.fill(preset.settings.model_validate(system.with_ or {})))
    written = system.model_fields_set - {"preset", "with_"}
    return base.model_copy(update={name: getattr(system, name) for name in written})
