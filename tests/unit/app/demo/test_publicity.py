"""Which names are public, and by which name: made-up libraries of a few files, and no import of any of them."""

from __future__ import annotations

import pytest

from cranfield.app.demo.compiled import CompiledModule, describe_compiled
from cranfield.app.demo.entity import DocumentedObject
from cranfield.app.demo.source import is_private_module, public_entities, read_source_module


def public(files: dict[str, str], compiled: dict[str, list[str]] | None = None) -> dict[str, tuple[str, str]]:
    """Id to (dotted name, module) of what is public in a library of files and compiled modules."""
    modules = {}
    for path, text in files.items():
        name = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        modules[name] = read_source_module(text.encode(), name=name, path=path)
    described = {
        name: CompiledModule(name, "", tuple(compiled_entity(name, inner) for inner in names))
        for name, names in (compiled or {}).items()
    }
    return {entity.id: (entity.qualname, entity.module) for entity in public_entities(modules, described)}


def compiled_entity(module: str, inner: str) -> DocumentedObject:
    kind = "method" if "." in inner else "class"
    return DocumentedObject(f"{module}::{inner}", kind, inner.rpartition(".")[2], f"{module}.{inner}", module)


@pytest.mark.parametrize(
    ("name", "private"),
    [
        ("json.decoder", False),
        ("_csv", True),
        ("concurrent.futures._base", True),
        ("posix", True),
        ("__future__", False),
    ],
)
def test_a_private_module_is_known_by_its_name(name: str, private: bool) -> None:
    assert is_private_module(name) is private


def test_what_a_private_file_defines_is_public_by_the_module_that_offers_it() -> None:
    found = public(
        {
            "p/__init__.py": "from p._base import Shown\n__all__ = ['Shown']\n",
            "p/_base.py": "class Shown:\n    def m(self): ...\nclass Hidden: ...\n",
        }
    )
    assert found == {
        "p/__init__.py": ("p", "p"),
        "p/_base.py::Shown": ("p.Shown", "p"),
        "p/_base.py::Shown.m": ("p.Shown.m", "p"),
    }


def test_a_public_definition_takes_the_shorter_name_its_package_gives_it_and_keeps_its_module() -> None:
    found = public(
        {
            "p/__init__.py": "from .sub import *\n",
            "p/sub.py": "__all__ = ['f']\ndef f(): ...\ndef g(): ...\n",
        }
    )
    assert found["p/sub.py::f"] == ("p.f", "p.sub")
    assert found["p/sub.py::g"] == ("p.sub.g", "p.sub")


def test_an_unrelated_module_that_imports_a_name_does_not_rename_it() -> None:
    found = public({"a.py": "def f(): ...\n", "b.py": "from a import f\n__all__ = ['f']\n"})
    assert found["a.py::f"] == ("a.f", "a")


def test_a_compiled_name_gets_the_id_of_the_module_that_offers_it() -> None:
    found = public({"csv.py": "from _csv import reader\n__all__ = ['reader']\n"}, {"_csv": ["reader", "Dialect"]})
    assert found == {"csv.py": ("csv", "csv"), "csv::reader": ("csv.reader", "csv")}


def test_members_follow_their_compiled_class() -> None:
    found = public({"q.py": "from _q import Fast as Quick\n"}, {"_q": ["Fast", "Fast.get"]})
    assert found == {"q.py": ("q", "q"), "q::Quick": ("q.Quick", "q"), "q::Quick.get": ("q.Quick.get", "q")}


def test_python_source_goes_before_its_compiled_twin() -> None:
    text = "def push(): ...\ntry:\n    from _heapq import *\nexcept ImportError:\n    pass\n"
    assert public({"heapq.py": text}, {"_heapq": ["push"]}) == {
        "heapq.py": ("heapq", "heapq"),
        "heapq.py::push": ("heapq.push", "heapq"),
    }
    both = "try:\n    from _fast import *\nexcept ImportError:\n    from _slow import *\n"
    found = public({"num.py": both, "_slow.py": "class Num: ...\n"}, {"_fast": ["Num"]})
    assert found == {"num.py": ("num", "num"), "_slow.py::Num": ("num.Num", "num")}


def test_a_name_a_module_only_uses_is_not_offered() -> None:
    found = public({"a.py": "from _other import helper\n"}, {"_other": ["helper"]})
    assert found == {"a.py": ("a", "a")}
    listed = public({"a.py": "from _other import helper\n__all__ = ['f']\ndef f(): ...\n"}, {"_other": ["helper"]})
    assert "a::helper" not in listed


def test_a_chain_of_stars_is_followed_to_the_shortest_name() -> None:
    found = public(
        {"sqlite3/__init__.py": "from sqlite3.dbapi2 import *\n", "sqlite3/dbapi2.py": "from _sqlite3 import *\n"},
        {"_sqlite3": ["connect"]},
    )
    assert found["sqlite3::connect"] == ("sqlite3.connect", "sqlite3")


def test_a_module_that_puts_another_in_its_place_offers_all_of_it() -> None:
    found = public(
        {
            "c/__init__.py": "",
            "c/abc.py": "import _abc_source\nimport sys\nsys.modules[__name__] = _abc_source\n",
            "_abc_source.py": "__all__ = ['Sized']\nclass Sized: ...\nclass Other: ...\n",
        }
    )
    assert found["_abc_source.py::Sized"] == ("c.abc.Sized", "c.abc")
    assert "_abc_source.py::Other" not in found


def test_a_promised_name_that_a_package_imports_only_when_asked_is_found_below_it() -> None:
    found = public({"p/__init__.py": "__all__ = ['Late']\n", "p/late.py": "class Late: ...\n"})
    assert found["p/late.py::Late"] == ("p.Late", "p.late")


def test_modules_that_import_each_other_end() -> None:
    found = public({"a.py": "from b import *\nfrom b import x\n", "b.py": "from a import *\nfrom a import x\n"})
    assert set(found) == {"a.py", "b.py"}


def test_compiled_modules_are_described_by_a_child_interpreter() -> None:
    described = describe_compiled(["math", "_csv", "no_such_module"])
    assert sorted(described) == ["_csv", "math"]
    found = {entity.id: entity for entity in described["math"].entities}
    root = found["math::sqrt"]
    assert (root.kind, root.signature, root.parameters, root.path, root.start) == (
        "function",
        "sqrt(x, /)",
        ("x",),
        "",
        0,
    )
    assert root.doc == "Return the square root of x."


def test_members_of_a_compiled_class_say_how_they_are_bound() -> None:
    found = {entity.id: entity for entity in describe_compiled(["builtins"])["builtins"].entities}
    assert found["builtins::dict.get"].signature == "get(key, default=None, /)"
    assert found["builtins::dict.fromkeys"].decorators == ("classmethod",)
    assert found["builtins::str.maketrans"].decorators == ("staticmethod",)
    assert found["builtins::int.real"].kind == "property"
    assert found["builtins::ValueError"].bases == ("Exception",)
    assert found["builtins::memoryview"].is_context_manager
    assert not found["builtins::dict"].is_context_manager
    assert not any(entity.name.startswith("_") for entity in found.values())
    # an alias is described once, without repeating the members of what it stands for
    assert "builtins::OSError.errno" in found
    assert "builtins::IOError" in found
    assert "builtins::IOError.errno" not in found
