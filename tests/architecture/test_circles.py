"""No file of the package imports itself, directly or through others, and the headers of the kernel include down only.

Imports inside functions count, and those for types alone.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest

import cranfield

PACKAGE = Path(cranfield.__file__).parent
KERNEL = Path(__file__).resolve().parents[2] / "src" / "cranfield" / "ranking" / "kernel"
COMPILED = {"cranfield.ranking._kernel": ""}
"""Extension modules: they import nothing."""

Graph = Mapping[str, set[str]]


def module_name(path: Path) -> str:
    parts = ("cranfield", *path.relative_to(PACKAGE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(source: str, module: str, *, is_package: bool) -> Iterator[str]:
    """Dotted names that `source` imports: `from a import b` gives `a.b`."""
    package = module.split(".") if is_package else module.split(".")[:-1]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            target = ".".join([*base, *([node.module] if node.module else [])])
            yield from (f"{target}.{alias.name}" for alias in node.names)


def import_graph(sources: Mapping[str, str], packages: Iterable[str] = ()) -> dict[str, set[str]]:
    """Which module imports which. A name that is no module stands for the module that holds it."""
    packages = set(packages)
    graph: dict[str, set[str]] = {}
    for module, source in sources.items():
        found = set()
        for name in imports(source, module, is_package=module in packages):
            target = name if name in sources else name.rpartition(".")[0]
            if target in sources and target != module:
                found.add(target)
        graph[module] = found
    return graph


def circles(graph: Graph) -> list[list[str]]:
    """The strongly connected components of more than one node (Tarjan)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for target in sorted(graph.get(node, ())):
            if target not in index:
                visit(target)
                low[node] = min(low[node], low[target])
            elif target in stack:
                low[node] = min(low[node], index[target])
        if low[node] == index[node]:
            place = stack.index(node)
            component = stack[place:]
            del stack[place:]
            if len(component) > 1:
                found.append(sorted(component))

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return sorted(found)


def test_no_file_imports_itself_through_others() -> None:
    paths = sorted(PACKAGE.rglob("*.py"))
    sources = COMPILED | {module_name(path): path.read_text() for path in paths}
    graph = import_graph(sources, (module_name(path) for path in paths if path.name == "__init__.py"))
    assert circles(graph) == []


def test_no_header_of_the_kernel_includes_itself_through_others() -> None:
    graph = {
        path.name: set(re.findall(r'^#include "(.+)"', path.read_text(), re.MULTILINE))
        for path in KERNEL.glob("*.[ch]")
    }
    assert len(graph) > 10
    assert circles(graph) == []


@pytest.mark.parametrize(
    ("sources", "expected"),
    [
        ({"a": "import b", "b": "def f():\n    import a"}, [["a", "b"]]),
        ({"a": "import b", "b": "import c", "c": "from a import f"}, [["a", "b", "c"]]),
        ({"p": "", "p.a": "from .b import f", "p.b": "from . import a"}, [["p.a", "p.b"]]),
        ({"a": "import b", "b": "if TYPE_CHECKING:\n    import a"}, [["a", "b"]]),
        ({"a": "import b\nimport c", "b": "import c", "c": ""}, []),
    ],
)
def test_a_circle_is_found(sources: dict[str, str], expected: list[list[str]]) -> None:
    assert circles(import_graph(sources, packages=["p"])) == expected
