"""Plain data as YAML text that `yaml_tree` reads back the same: quoted wherever unquoted text would mean something else."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from typing import Any

import yaml

from cranfield.formats.io.tree import scalar

_ONLY_QUOTED = re.compile("[\r\x85\u2028\u2029]|[ \t]\n|^[ \n]")
"""Line ends that YAML would change, and white space that a block text would lose."""


class _Dumper(yaml.SafeDumper):
    """YAML 1.2's scalars, no anchors, and lists indented below their key."""

    def ignore_aliases(self, data: object) -> bool:
        """Write repeated values out, without anchors: an edit of one must not change another."""
        del data
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: FBT001, FBT002  PyYAML's own signature
        """Indent lists too, which PyYAML leaves at the column of their key."""
        del indentless
        super().increase_indent(flow, False)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = None
    if scalar(text) != text or _ONLY_QUOTED.search(text):
        style = '"'
    elif "\n" in text:
        style = "|"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def _real(dumper: yaml.SafeDumper, number: float) -> yaml.ScalarNode:
    words = {"inf": ".inf", "-inf": "-.inf", "nan": ".nan"}
    return dumper.represent_scalar("tag:yaml.org,2002:float", words.get(repr(number), repr(number)))


_Dumper.add_representer(str, _text)
_Dumper.add_representer(float, _real)


def yaml_text(data: Mapping[str, Any]) -> str:
    """The data in its own order, as one block of YAML."""
    return str(yaml.dump(dict(data), Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=sys.maxsize))
