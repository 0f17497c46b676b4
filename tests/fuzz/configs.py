"""Configs: keys dropped, doubled, retyped and nested; a config or a ConfigError that says where, and never slow.

They begin with the configs of the examples and of the documentation, and with ones made from the JSON schema.
"""

from __future__ import annotations

import json
import random
import re
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from mutate import mutate_bytes, mutate_tree
from runner import main

from cranfield.base.errors import ConfigError
from cranfield.config import load_config

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```yaml\n(.*?)^```", re.MULTILINE | re.DOTALL)


@cache
def bases() -> tuple[bytes, ...]:
    """Configs to begin with."""
    files = [path.read_text("utf-8") for path in sorted(ROOT.glob("examples/*/cranfield.yaml"))]
    pages = [block for path in sorted(ROOT.glob("docs/**/*.md")) for block in BLOCK.findall(path.read_text("utf-8"))]
    return tuple(text.encode() for text in (*files, *(page for page in pages if "systems:" in page)))


@cache
def trees() -> tuple[Any, ...]:
    """The same as values."""
    found = []
    for base in bases():
        try:
            found.append(yaml.safe_load(base))
        except yaml.YAMLError:
            continue  # a page may show a part
    return tuple(tree for tree in found if isinstance(tree, dict))


@cache
def schema() -> dict[str, Any]:
    return json.loads((ROOT / "src/cranfield/config/cranfield.schema.json").read_text("utf-8"))


@cache
def names() -> tuple[str, ...]:
    """Every key of the schema."""
    found: set[str] = set()
    todo: list[Any] = [schema()]
    while todo:
        value = todo.pop()
        if isinstance(value, dict):
            found |= set(value.get("properties", {}))
            todo += value.values()
        elif isinstance(value, list):
            todo += value
    return tuple(sorted(found))


def from_schema(draw: random.Random, part: dict[str, Any], depth: int = 0) -> Any:
    """A value that a part of the schema more or less allows."""
    if "$ref" in part:
        part = schema()["$defs"][part["$ref"].rpartition("/")[2]]
    if depth > 8:
        return None
    if choices := part.get("anyOf") or part.get("oneOf"):
        return from_schema(draw, draw.choice(choices), depth + 1)
    if "const" in part or "enum" in part:
        return part["const"] if "const" in part else draw.choice(part["enum"])
    kind = part.get("type")
    if kind == "object" or "properties" in part:
        needed, share = part.get("required", ()), draw.choice((0.1, 0.4))
        properties = part.get("properties", {}).items()
        made = {k: from_schema(draw, v, depth + 1) for k, v in properties if k in needed or draw.random() < share}
        more = part.get("additionalProperties")
        if isinstance(more, dict):
            made |= {draw.choice(("old", "new", "x")): from_schema(draw, more, depth + 1) for _ in range(2)}
        return made
    if kind == "array":
        return [from_schema(draw, part.get("items", {}), depth + 1) for _ in range(draw.randrange(4))]
    scalars = {"integer": (1, 2, 10), "number": (0.5, 1), "boolean": (True, False), "null": (None,)}
    return draw.choice(scalars.get(str(kind), ("old", "new", "q.yaml", "{query}", "nDCG@10")))


def make(draw: random.Random) -> bytes:
    """The text of a config."""
    kind = draw.randrange(4)
    if kind == 0:
        return mutate_bytes(draw, draw.choice(bases()), bases())
    tree = from_schema(draw, schema()) if kind == 1 else mutate_tree(draw, draw.choice(trees()), names())
    try:
        text = json.dumps(tree) if draw.randrange(4) else yaml.safe_dump(tree, allow_unicode=True)
    except (TypeError, ValueError, yaml.YAMLError):  # keys of several types; a number of too many digits
        text = yaml.safe_dump(json.loads(json.dumps(tree, default=str, skipkeys=True))) if kind == 1 else repr(tree)
    return text.encode("utf-8", "surrogatepass")


FOLDER = tempfile.TemporaryDirectory(prefix="cranfield-fuzz-")


def check(text: bytes) -> str | None:
    """What is wrong with how a config is loaded."""
    path = Path(FOLDER.name) / "cranfield.yaml"
    path.write_bytes(text)
    try:
        load_config(path)
    except ConfigError as error:
        lost = [problem for problem in error.problems if problem.path != str(path) or not problem.message]
        return f"a problem without its place: {lost[0]!r}" if lost or not error.problems else None
    return None


if __name__ == "__main__":
    sys.exit(main(make, check, inputs=50_000))
