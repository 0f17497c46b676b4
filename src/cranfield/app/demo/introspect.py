"""Describes modules that have no Python source, on standard output as one line of JSON.

A stand-alone script: `compiled` runs it in a fresh interpreter (`python -I -S introspect.py NAME...`), so that nothing
is imported into the caller and the answer does not depend on what the caller has imported. Standard library only.
"""

import importlib
import json
import sys
import types

Described = dict[str, object]

MEMBER_KINDS: tuple[tuple[type, str, tuple[str, ...]], ...] = (
    (types.MethodDescriptorType, "method", ()),
    (types.ClassMethodDescriptorType, "method", ("classmethod",)),
    (classmethod, "method", ("classmethod",)),
    (staticmethod, "method", ("staticmethod",)),
    (types.GetSetDescriptorType, "property", ()),
    (types.MemberDescriptorType, "property", ()),
)
"""Which members of a compiled class are described, as what, and with which decorator they would have been written."""


def signature_of(name: str, value: object) -> str:
    """Return the signature, without the bound first argument; empty if the interpreter has none."""
    text = getattr(value, "__text_signature__", None)
    if not isinstance(text, str):
        return ""
    parts = [part.strip() for part in text.strip()[1:-1].split(",")]
    if parts[0].startswith("$"):
        parts = parts[2:] if parts[1:2] == ["/"] else parts[1:]
    return f"{name}({', '.join(parts)})"


def doc_of(value: object) -> str:
    """Return the documentation string, or nothing."""
    doc = getattr(value, "__doc__", None)
    return doc if isinstance(doc, str) else ""


def describe_class(name: str, cls: type) -> list[Described]:
    """Describe a class and the members it defines itself; special methods carry boilerplate and are left out."""
    own = vars(cls)
    found: list[Described] = [
        {
            "inner": name,
            "kind": "class",
            "signature": signature_of(name, cls),
            "doc": doc_of(cls) if "__doc__" in own else "",
            "bases": [base.__name__ for base in cls.__bases__ if base is not object],
            "is_context_manager": "__enter__" in own or "__aenter__" in own,
        }
    ]
    # An alias (`socket.error` of `OSError`) is described once; its members belong to the class of that name.
    for member in sorted(own) if cls.__name__ == name else ():
        value = own[member]
        described = next(((kind, names) for type_, kind, names in MEMBER_KINDS if isinstance(value, type_)), None)
        if member.startswith("_") or described is None:
            continue
        kind, decorators = described
        target = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        found.append(
            {
                "inner": f"{name}.{member}",
                "kind": kind,
                "signature": signature_of(member, target) if kind == "method" else "",
                "doc": doc_of(target),
                "decorators": list(decorators),
            }
        )
    return found


def describe_module(module: types.ModuleType) -> Described:
    """Describe the public classes and functions of a module."""
    items: list[Described] = []
    names = [name for name in sorted(vars(module)) if not name.startswith("_")]
    for name in names:
        value = vars(module)[name]
        if isinstance(value, type):
            items.extend(describe_class(name, value))
        elif isinstance(value, types.BuiltinFunctionType):
            signature = signature_of(name, value)
            items.append({"inner": name, "kind": "function", "signature": signature, "doc": doc_of(value)})
    return {"doc": doc_of(module), "items": items}


def main(names: list[str]) -> int:
    """Describe the named modules; one that this machine does not have is left out."""
    described = {}
    for name in names:
        try:
            module = importlib.import_module(name)
        except ImportError:
            # Not built here, or for another operating system.
            continue
        described[name] = describe_module(module)
    # A module may print on import (readline sends a terminal sequence), so the answer has a line of its own.
    sys.stdout.write("\n" + json.dumps(described) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
