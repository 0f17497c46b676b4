"""Arrows go down: which room of the house may import which, as a table, read by AST.

`TABLE` is the one place that says so. Changing it is a decision: write a page in decisions/.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from pathlib import Path

import pytest

import cranfield
from cranfield.plugins import BUILT_IN

PACKAGE = Path(cranfield.__file__).parent

CORE = frozenset({
    "base", "plugins", "model", "stats", "formats", "ranking", "measures", "evaluation", "config", "systems",
    "reporting", "repo", "app",
})  # fmt: skip
SHARED = frozenset({"agents", "books"})
"""What several products stand on, and the core does not know."""
PRODUCTS = frozenset(BUILT_IN)
"""None knows another; the workbench alone shows what the others make."""
GROUND = {"base"}
# Room to what it may import besides itself and the ground. A dotted entry opens that one module, not its room.
TABLE: dict[str, AbstractSet[str]] = {
    "base": set(),
    "plugins": set(),
    "model": set(),
    "stats": set(),
    "formats": {"plugins", "model"},
    "ranking": {"model", "formats"},
    "repo": {"model", "ranking.matching"},
    "measures": {"plugins", "model", "ranking.value"},
    "evaluation": {"plugins", "model", "stats", "ranking", "measures"},
    "config": {"plugins", "model", "formats", "measures", "stats.table", "evaluation.options", "evaluation.evidence"},
    "systems": {"plugins", "model", "formats", "config", "evaluation.options", "ranking.collected"},
    "reporting": {"plugins", "model", "stats", "formats.io.files", "measures", "evaluation", "ranking.value"},
    "app": CORE,
    "cli": CORE,
    "agents": {
        "model",
        "stats",
        "formats",
        "ranking.matching",
        "repo",
        "evaluation.options",
        "systems.calls.redact",
    },
    "books": {"model", "formats", "evaluation.options"},
    "testsets": CORE,
    "gate": CORE,
    "judging": CORE | SHARED,
    "golden": CORE | SHARED,
    "benefit": CORE | SHARED,
    "scale": CORE,
    "compat": CORE - {"app", "config", "systems", "reporting", "repo"} | {"app.evaluate"},
    "workbench": CORE | SHARED | PRODUCTS | {"cli"},
    "pytest_plugin": {"gate"},
    # The face (cranfield/__init__.py) and `python -m cranfield` only point at the rooms.
    "": CORE | {"scale"},
    "__main__": {"cli"},
}
NOT_AT_THE_FACE = {"numpy", "scipy", "pydantic", "rich", "typer", "yaml", "jinja2", "jmespath", "vl_convert"}
NOT_BEFORE_A_COMMAND_RUNS = NOT_AT_THE_FACE - {"typer"}


def imported_modules(source: str, module: str, *, is_package: bool) -> Iterator[tuple[int, str]]:
    """Line and dotted name of every module of ours that `source` imports, wherever the statement stands."""
    package = module.split(".") if is_package else module.split(".")[:-1]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names if alias.name.split(".")[0] == "cranfield")
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            target = ".".join([*base, *([node.module] if node.module else [])])
            if target == "cranfield":
                # `from cranfield import stats` names a room.
                yield from ((node.lineno, f"cranfield.{alias.name}") for alias in node.names)
            elif target.startswith("cranfield."):
                yield node.lineno, target


def room_of(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def is_allowed(room: str, target: str) -> bool:
    if room_of(target) in {room, *GROUND} and room_of(target):
        return True
    inner = target.removeprefix("cranfield.")
    return any(inner == entry or inner.startswith(entry + ".") for entry in TABLE[room])


def violations(source: str, module: str, where: str, *, is_package: bool = False) -> list[str]:
    room = room_of(module)
    if room not in TABLE:
        return [f"{where}:1: room '{room}' is not in the table"]
    return [
        f"{where}:{line}: {room or 'the face'} may not import {target}"
        for line, target in imported_modules(source, module, is_package=is_package)
        if not is_allowed(room, target)
    ]


def module_name(path: Path) -> str:
    parts = ("cranfield", *path.relative_to(PACKAGE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def test_every_import_goes_down() -> None:
    found = [
        line
        for path in sorted(PACKAGE.rglob("*.py"))
        for line in violations(
            path.read_text(),
            module_name(path),
            f"src/cranfield/{path.relative_to(PACKAGE)}",
            is_package=path.name == "__init__.py",
        )
    ]
    assert not found, "\n".join(found)


def test_every_room_of_the_table_exists() -> None:
    present = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert set(TABLE) - {"", "__main__"} <= present


def test_the_core_knows_no_product_and_no_product_another() -> None:
    opened = {room: {entry.split(".")[0] for entry in entries} for room, entries in TABLE.items()}
    for room in (*CORE, *SHARED, "cli"):
        assert not opened[room] & PRODUCTS, room
    for room in PRODUCTS - {"workbench"}:
        assert not opened[room] & PRODUCTS - {room}, room


def test_the_table_has_no_circle() -> None:
    above: dict[str, set[str]] = {
        room: {entry.split(".")[0] for entry in entries} for room, entries in TABLE.items() if room
    }
    while free := {room for room, entries in above.items() if not entries & set(above) - {room}}:
        above = {room: entries for room, entries in above.items() if room not in free}
    assert not above, f"these rooms rest on each other: {sorted(above)}"


@pytest.mark.parametrize(
    ("module", "source", "expected"),
    [
        ("cranfield.measures.rr", "from cranfield.formats import trec", "measures may not import cranfield.formats"),
        (
            "cranfield.measures.rr",
            "import cranfield.reporting.html",
            "measures may not import cranfield.reporting.html",
        ),
        ("cranfield.measures.rr", "from cranfield.ranking import join", "measures may not import cranfield.ranking"),
        ("cranfield.stats.t", "def f():\n    from ..model import Run", "stats may not import cranfield.model"),
        ("cranfield.stats.t", "from cranfield import model", "stats may not import cranfield.model"),
        ("cranfield.model.run", "from .. import cli", "model may not import cranfield.cli"),
        (
            "cranfield.app.evaluate",
            "from cranfield.cli.main import main",
            "app may not import cranfield.cli.main",
        ),
        ("cranfield.evaluation.x", "if TYPE_CHECKING:\n    from cranfield.systems import y", "cranfield.systems"),
        ("cranfield.attic.x", "import json", "room 'attic' is not in the table"),
    ],
)
def test_an_arrow_going_up_is_found(module: str, source: str, expected: str) -> None:
    found = violations(source, module, "made-up.py")
    assert len(found) == 1
    assert expected in found[0]


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("cranfield.measures.rr", "from cranfield.ranking.value import Ranking"),
        ("cranfield.measures.rr", "from cranfield.base.version import __version__"),
        ("cranfield.measures.rr", "from .measure import Measure"),
        ("cranfield.stats.t", "from cranfield.base.errors import UsageError"),
        ("cranfield.cli.main", "from cranfield.app import evaluate"),
    ],
)
def test_an_arrow_going_down_is_not(module: str, source: str) -> None:
    assert violations(source, module, "made-up.py") == []


def loaded_after(statement: str) -> set[str]:
    """Top-level names in sys.modules of a fresh interpreter after `statement`."""
    code = f"import sys; {statement}; print(*sorted({{name.split('.')[0] for name in sys.modules}}))"
    return set(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split())


def test_the_face_imports_nothing_heavy() -> None:
    assert loaded_after("import cranfield") & NOT_AT_THE_FACE == set()


def test_the_command_line_starts_without_anything_heavy() -> None:
    assert loaded_after("import cranfield.cli.main") & NOT_BEFORE_A_COMMAND_RUNS == set()


def test_measures_and_evaluation_start_without_scipy() -> None:
    assert "scipy" not in loaded_after("import cranfield.measures, cranfield.ranking, cranfield.evaluation")


def test_the_face_lists_its_names_in_order_and_each_is_there() -> None:
    names = getattr(cranfield, "__all__", [])
    assert list(names) == sorted(names)
    assert len(set(names)) == len(names)
    for name in names:
        assert getattr(cranfield, name) is not None
    assert set(names) <= set(dir(cranfield))


def test_a_name_of_the_face_is_not_hidden_by_a_room_of_the_same_name() -> None:
    """Importing a room sets it as an attribute of the package, over whatever has its name there."""
    rooms = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    assert rooms & set(cranfield.__all__) == set()


def test_the_face_says_so_when_a_name_is_not_there() -> None:
    with pytest.raises(AttributeError, match="evalute"):
        _ = cranfield.evalute  # type: ignore[attr-defined]
