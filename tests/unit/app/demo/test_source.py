"""Reading one source file: made-up files, so that each rule stands next to what it makes of it."""

from __future__ import annotations

from textwrap import dedent

import pytest

from cranfield.app.demo.entity import DocumentedObject
from cranfield.app.demo.source import FromImport, SourceModule, read_source_module


def read(text: str, *, name: str = "made.up", path: str = "made/up.py") -> SourceModule:
    return read_source_module(dedent(text).encode(), name=name, path=path)


def entity(text: str, inner: str) -> DocumentedObject:
    found = {e.id: e for e in read(text).entities}
    return found[f"made/up.py::{inner}"]


def inner_names(text: str) -> list[str]:
    return [e.id.partition("::")[2] for e in read(text).entities[1:]]


def test_a_module_is_an_entity_with_its_own_documentation() -> None:
    module = read('"""What it is."""\nx = 1\n').entities[0]
    assert (module.id, module.kind, module.name, module.qualname) == ("made/up.py", "module", "up", "made.up")
    assert (module.doc, module.start, module.end) == ("What it is.", 1, 2)


def test_documentation_that_a_module_assigns_counts_too() -> None:
    assert read('x = 1\n__doc__ = "Assigned."\n').entities[0].doc == "Assigned."


def test_functions_classes_and_methods_are_named_by_their_place() -> None:
    text = """
        def run(a, b=1, *rest, key=None, **more) -> int:
            "Runs."
        class Outer(Base, metaclass=Meta):
            class Inner:
                def deep(self): ...
            def method(self, x, /, y): ...
    """
    assert inner_names(text) == ["run", "Outer", "Outer.Inner", "Outer.Inner.deep", "Outer.method"]
    run = entity(text, "run")
    assert (run.kind, run.doc) == ("function", "Runs.")
    assert run.signature == "run(a, b=1, *rest, key=None, **more) -> int"
    assert run.parameters == ("a", "b", "rest", "key", "more")
    method = entity(text, "Outer.method")
    assert (method.kind, method.qualname) == ("method", "made.up.Outer.method")
    assert (method.signature, method.parameters) == ("method(x, /, y)", ("x", "y"))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("self", "m()"),
        ("self, x", "m(x)"),
        ("self, x=1, y=2", "m(x=1, y=2)"),
        ("self, /, x", "m(x)"),
        ("self, x, /, y", "m(x, /, y)"),
        ("self=None", "m()"),
        ("*args", "m(*args)"),
        ("self, *, key", "m(*, key)"),
    ],
)
def test_a_methods_signature_is_the_one_its_caller_sees(arguments: str, expected: str) -> None:
    assert entity(f"class C:\n    def m({arguments}): ...\n", "C.m").signature == expected


def test_a_static_method_keeps_its_first_parameter() -> None:
    assert entity("class C:\n    @staticmethod\n    def m(x): ...\n", "C.m").signature == "m(x)"


def test_a_class_shows_how_it_is_called_and_what_it_rests_on() -> None:
    found = entity("class C(a.B, D[int]):\n    def __init__(self, x, y=2): ...\n", "C")
    assert (found.signature, found.parameters, found.bases) == ("C(x, y=2)", ("x", "y"), ("a.B", "D"))


def test_a_span_starts_at_the_first_decorator_and_ends_with_the_body() -> None:
    text = "x = 1\n@one\n@two(3)\ndef f():\n    pass\n    return 1\ny = 2\n"
    found = entity(text, "f")
    assert (found.start, found.end) == (2, 6)
    assert found.decorators == ("one", "two")


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        ("def _private(self): ...", False),
        ("def __len__(self): ...", False),
        ("def __len__(self):\n        'Says how many.'", True),
        ("def __mangled(self): ...", False),
        ("def public(self): ...", True),
    ],
)
def test_private_members_go_and_special_ones_stay_where_documented(body: str, kept: bool) -> None:
    assert (len(inner_names(f"class C:\n    {body}\n")) == 2) is kept


def test_of_several_definitions_the_first_with_documentation_stays() -> None:
    text = """
        if fast:
            def f(a): ...
        else:
            def f(b):
                "Slow."
        try:
            import g
        except ImportError:
            def g():
                "First."
            def g():
                "Second."
    """
    assert entity(text, "f").parameters == ("b",)
    assert entity(text, "g").doc == "First."


def test_a_property_is_its_getter() -> None:
    text = """
        class C:
            @property
            def p(self): ...
            @p.setter
            def p(self, value):
                "Sets."
    """
    found = entity(text, "C.p")
    assert (found.kind, found.doc, found.decorators) == ("property", "", ("property",))


def test_what_only_a_script_defines_is_left_out() -> None:
    assert inner_names("def f(): ...\nif __name__ == '__main__':\n    def g(): ...\n    class C: ...\n") == ["f"]


@pytest.mark.parametrize(
    ("text", "names", "complete"),
    [
        ("__all__ = ['a', 'b']", {"a", "b"}, True),
        ("__all__ = ('a',)\n__all__ += ['b']\n__all__.append('c')\n__all__.extend(['d'])", set("abcd"), True),
        ("__all__ = ['a']\n__all__.extend(name for name in dir() if name)", {"a"}, False),
        ("__all__ = other.__all__ + ('b',)", {"b"}, False),
        ("x = 1", set(), False),
    ],
)
def test_the_export_list_is_read_as_far_as_it_is_written_out(text: str, names: set[str], complete: bool) -> None:
    module = read(text)
    assert (module.exported, module.is_export_list_complete) == (names, complete)


def test_exported_assignments_are_entities_and_others_are_not() -> None:
    text = "__all__ = ['A', 'B']\nA = _alias(list)\nC = 3\nB: int = 1\nA.__doc__ = 'Deprecated alias.'\n"
    assert inner_names(text) == ["A", "B"]
    found = entity(text, "A")
    assert (found.kind, found.signature, found.doc) == ("data", "A = _alias(list)", "Deprecated alias.")
    assert found.is_deprecated


def test_an_assignment_that_stands_in_for_an_import_is_no_entity() -> None:
    text = "__all__ = ['Q']\ntry:\n    from _queue import Q\nexcept ImportError:\n    Q = None\n"
    module = read(text)
    assert len(module.entities) == 1
    assert "Q" not in module.defined


@pytest.mark.parametrize(
    ("statement", "path", "expected"),
    [
        ("from a.b import c as d", "p/q.py", FromImport("a.b", (("c", "d"),))),
        ("from .r import *", "p/q.py", FromImport("p.r", (("*", "*"),))),
        ("from . import r", "p/q.py", FromImport("p", (("r", "r"),))),
        ("from .r import x", "p/q/__init__.py", FromImport("p.q.r", (("x", "x"),))),
        ("from ..r import x", "p/q/__init__.py", FromImport("p.r", (("x", "x"),))),
        ("import sys\nsys.modules[__name__] = _other", "p/q.py", FromImport("_other", (("*", "*"),))),
    ],
)
def test_imports_are_resolved_from_where_they_stand(statement: str, path: str, expected: FromImport) -> None:
    name = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    assert read(statement, name=name, path=path).imports == [expected]


@pytest.mark.parametrize(
    ("text", "deprecated"),
    [
        ("def f():\n    'Old.\\n\\n    .. deprecated:: 3.8'", True),
        ("def f():\n    'Deprecated alias of g.'", True),
        ("def f():\n    '**DEPRECATED**'", True),
        ("def f():\n    'This name is deprecated, use g.'", True),
        ("def f():\n    'Does it.\\n\\n    This function is deprecated.'", True),
        ("def f(a):\n    'Does it.\\n\\n    The argument a is deprecated.'", False),
        ("def f():\n    import warnings\n    warnings.warn('f is old', DeprecationWarning, stacklevel=2)", True),
        ("def f():\n    warnings._deprecated('f', remove=(3, 15))", True),
        ("def f(a=None):\n    if a:\n        warnings.warn('a is old', DeprecationWarning)", False),
        ("def f():\n    warnings.warn('slow', RuntimeWarning)", False),
        ("@warnings.deprecated('use g')\ndef f(): ...", True),
        ("def f():\n    'Find undeprecated things.'", False),
    ],
)
def test_deprecation_is_about_the_thing_and_not_about_an_argument(text: str, deprecated: bool) -> None:
    assert entity(text, "f").is_deprecated is deprecated


@pytest.mark.parametrize(
    ("text", "flags"),
    [
        ("async def f(): ...", {"is_async"}),
        ("def f():\n    yield 1", {"is_generator"}),
        ("def f():\n    x = yield from g()", {"is_generator"}),
        ("def f():\n    def g():\n        yield 1\n    return g", set()),
        ("def f():\n    return 'yield'", set()),
        ("@contextlib.contextmanager\ndef f():\n    yield", {"is_generator", "is_context_manager"}),
        ("class f:\n    def __enter__(self): ...", {"is_context_manager"}),
        ("class f:\n    async def __aenter__(self): ...", {"is_context_manager"}),
        ("class f:\n    def enter(self): ...", set()),
    ],
)
def test_attributes_are_read_off_the_source(text: str, flags: set[str]) -> None:
    found = entity(text, "f")
    assert {name for name in ("is_async", "is_generator", "is_context_manager") if getattr(found, name)} == flags


def test_a_module_that_warns_on_import_is_deprecated() -> None:
    assert read("import warnings\nwarnings._deprecated(__name__, remove=(3, 13))\n").entities[0].is_deprecated
    assert not read("import warnings\ndef f():\n    warnings._deprecated('f')\n").entities[0].is_deprecated
