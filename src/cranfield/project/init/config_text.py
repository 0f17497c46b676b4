"""The text of a new cranfield.yaml: values through the YAML writer, comments of our own words or made safe to print."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from cranfield.formats.io.yaml_text import yaml_text
from cranfield.measures import USUAL_K
from cranfield.words import printable, shorten_to

SCHEMA_LINE = "# yaml-language-server: $schema=cranfield.schema.json"
SCHEMA_NAME = "cranfield.schema.json"
COMMENT_WIDTH = 110
HEAD = """\
# Made by `cranfield init`. `cranfield run` sends the queries, scores the answers and compares the systems;
# `cranfield schema` prints every key, and an editor with YAML support completes them.
"""
VERDICT = """\
# The primary measure decides the verdict; `cranfield measures` lists the others. A margin is the largest
# difference that does not matter to you; with one, the verdict can be "equivalent".
"""
USUAL = (
    "# Results asked of each system for a query: by default 10, or as many as the deepest measure looks at.\n# k: 10\n"
)
OFFERED = (
    "    # Settings of its config file, as they are now: without the `# ` they are checked before the first query.\n"
)
SYSTEMS = "# One system is evaluated, two are compared, the first as the baseline; of more, all pairs.\n"


def config_text(
    testsets: Mapping[str, Any],
    systems: Mapping[str, Mapping[str, Any]],
    *,
    about: Mapping[str, str],
    notes: Mapping[str, Sequence[str]],
    checks: Mapping[str, Sequence[Mapping[str, Any]]] = MappingProxyType({}),
    k: int,
    measures: Sequence[str],
) -> str:
    """The whole file.

    Args:
        testsets: the keys that say what the queries are: `testset` or `testsets`, and `options`.
        systems: settings by name.
        about: name of a system, or "" for the test set, to what it is.
        notes: name of a system to what stays open.
        checks: name of a system to preflight checks that are offered, as comments.
        k: results asked of a system.
        measures: the primary measure, and those beside it; where it is alone the default list is beside it.
    """
    parts = [
        SCHEMA_LINE + "\n" + HEAD,
        comment(about[""]) + yaml_text(testsets),
        (comment("Results that are asked of each system for a query.") + yaml_text({"k": k}))
        if k != USUAL_K
        else USUAL,
        VERDICT
        + yaml_text({"primary": measures[0]} | ({"measures": list(measures)} if measures[1:] else {}))
        + "# margin: 0.01\n",
        SYSTEMS + "systems:\n" + "".join(_system_lines(systems, about, notes, checks)),
    ]
    return "\n".join(parts)


def _system_lines(
    systems: Mapping[str, Mapping[str, Any]],
    about: Mapping[str, str],
    notes: Mapping[str, Sequence[str]],
    checks: Mapping[str, Sequence[Mapping[str, Any]]],
) -> Iterator[str]:
    for name, settings in systems.items():
        for text in (about[name], *notes.get(name, ())):
            yield "  " + comment(text)
        yield yaml_text({"systems": {name: settings}}).partition("\n")[2]
        if checks.get(name):
            yield OFFERED
            yield "".join(f"    # {line}\n" for line in yaml_text({"preflight": list(checks[name])}).splitlines())


def comment(text: str) -> str:
    """A text as one line of comment, whatever it holds."""
    return f"# {shorten_to(printable(text), COMMENT_WIDTH)}\n"
