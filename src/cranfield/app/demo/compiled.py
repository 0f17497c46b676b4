"""Modules without Python source (`math`, `itertools`, `_csv`): described by a child interpreter, read here as entities.

Nothing is imported into this process: see `introspect`, the script the child runs.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cranfield.app.demo.entity import DocumentedObject
from cranfield.base.errors import InternalError

TIMEOUT_S = 60
SCRIPT = Path(__file__).with_name("introspect.py")


@dataclass(frozen=True)
class CompiledModule:
    """One module as the interpreter describes it; ids and names are those of the module itself."""

    name: str
    doc: str
    entities: tuple[DocumentedObject, ...]
    """Its public classes, their members, and its functions; the module itself is not among them."""


def describe_compiled(names: Iterable[str]) -> dict[str, CompiledModule]:
    """Describe the modules that this interpreter has among `names`."""
    command = [sys.executable, "-I", "-S", "-W", "ignore", str(SCRIPT), *sorted(names)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, encoding="utf-8", errors="replace", timeout=TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise InternalError(f"the interpreter did not describe its own modules in {TIMEOUT_S} s") from error
    if done.returncode != 0:
        raise InternalError(
            f"the interpreter could not describe its own modules (exit {done.returncode})",
            got=done.stderr.strip()[-300:] or None,
        )
    described: dict[str, Any] = json.loads(done.stdout.rstrip("\n").rpartition("\n")[2])
    return {name: _module(name, content) for name, content in described.items()}


def _module(name: str, content: Mapping[str, Any]) -> CompiledModule:
    entities = tuple(_entity(name, item) for item in content["items"])
    return CompiledModule(name, content["doc"].strip(), entities)


def _entity(module: str, item: Mapping[str, Any]) -> DocumentedObject:
    inner: str = item["inner"]
    return DocumentedObject(
        id=f"{module}::{inner}",
        kind=item["kind"],
        name=inner.rpartition(".")[2],
        qualname=f"{module}.{inner}",
        module=module,
        signature=item["signature"],
        doc=item["doc"].strip(),
        parameters=_parameters(item["signature"]),
        decorators=tuple(item.get("decorators", ())),
        bases=tuple(item.get("bases", ())),
        is_context_manager=bool(item.get("is_context_manager")),
        is_deprecated=False,
    )


def _parameters(signature: str) -> tuple[str, ...]:
    """Parameter names in a signature of the interpreter; defaults and the marks `/` and `*` are dropped."""
    inner = signature.partition("(")[2].rstrip(")")
    names = (part.partition("=")[0].strip().lstrip("*") for part in inner.split(","))
    return tuple(name for name in names if name.isidentifier())
