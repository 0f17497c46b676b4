"""docs/architecture.md names what there is: every link leads to a definition, every folder is in the table."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
PAGE = CHECKOUT / "docs" / "architecture.md"
LINK = re.compile(r"\[`([\w.]+)`\]\(\.\./(src/[\w/]+\.py)\)")
PACKAGE = CHECKOUT / "src" / "cranfield"


def definitions(source: str) -> set[str]:
    """Names that a module defines at its top level, and the methods of its classes as `Class.method`."""
    found: set[str] = set()
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{inner.name}" for inner in node.body if isinstance(inner, ast.FunctionDef)}
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return found


@pytest.mark.parametrize(("name", "file"), sorted(set(LINK.findall(PAGE.read_text(encoding="utf-8")))))
def test_a_link_of_the_page_leads_to_a_definition(name: str, file: str) -> None:
    assert name in definitions((CHECKOUT / file).read_text(encoding="utf-8"))


def paths(page: str) -> list[str]:
    """What stands in the page as a path: `app/run.py`, `tests/e2e/test_core_alone.py`, `golden/steps`."""
    return re.findall(r"`((?:\w+/)+\w+(?:\.py)?)`", page)


@pytest.mark.parametrize("path", sorted(set(paths(PAGE.read_text(encoding="utf-8")))))
def test_a_path_of_the_page_is_there(path: str) -> None:
    assert any((folder / path).exists() for folder in (PACKAGE, CHECKOUT))


@pytest.mark.parametrize(
    ("name", "file"), sorted(set(re.findall(r"`(\w+)` in `((?:\w+/)+\w+\.py)`", PAGE.read_text(encoding="utf-8"))))
)
def test_a_name_is_in_the_file_that_the_page_says(name: str, file: str) -> None:
    assert name in definitions((PACKAGE / file if (PACKAGE / file).exists() else CHECKOUT / file).read_text())


def test_the_page_has_links_to_hold() -> None:
    assert len(LINK.findall(PAGE.read_text(encoding="utf-8"))) > 20


def test_every_folder_of_the_package_is_in_the_table() -> None:
    listed = re.findall(r"^\| `(\w+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists())


def test_a_name_that_is_not_defined_is_found() -> None:
    assert definitions("x = 1\ny: int = 2\ndef f(): ...\nclass C:\n    def m(self): ...") == {"x", "y", "f", "C", "C.m"}
