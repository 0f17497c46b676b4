"""A rule of a gate from its YAML."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from cranfield.formats.io.located import located_text
from cranfield.gate.config import Rule

_READER: TypeAdapter[Any] = TypeAdapter(Rule)


def rule_of(text: str) -> Any:
    """The rule that stands in the text, checked."""
    return _READER.validate_python(located_text(text, Path("rule.yaml"), is_json=False).top)
