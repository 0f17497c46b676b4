"""Dataclasses with arrays in their fields are compared by identity: numpy has no truth of an array, and no hash."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import cranfield
from cranfield import Query, TestSet, compare, evaluate

ROOT = Path(cranfield.__file__).parent
ALIAS = re.compile(r"^(\w+) = NDArray\[", re.MULTILINE)
NOT_HELD = re.compile(r"\b(Callable|ClassVar)\[")
"""Annotations that mention arrays and hold none."""


def aliases_of(trees: dict[str, ast.Module]) -> dict[str, set[str]]:
    """Module to the names that are types of arrays in it: NDArray, what is assigned from it, and what is imported of these."""
    found: dict[str, set[str]] = {module: {"NDArray"} for module in trees}
    for module, tree in trees.items():
        for node in tree.body:
            if isinstance(node, ast.Assign) and ast.unparse(node.value).startswith("NDArray["):
                found[module] |= {each.id for each in node.targets if isinstance(each, ast.Name)}
    for module, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module in found:
                found[module] |= {each.asname or each.name for each in node.names if each.name in found[node.module]}
    return found


def compared_by_value(trees: dict[str, ast.Module]) -> Iterator[str]:
    """Dataclasses over arrays whose `==` compares their fields."""
    aliases = aliases_of(trees)
    for module, tree in trees.items():
        for node in ast.walk(tree):
            if not isinstance(node, ast.ClassDef):
                continue
            decorators = [text for each in node.decorator_list if "dataclass" in (text := ast.unparse(each))]
            fields = [ast.unparse(each.annotation) for each in node.body if isinstance(each, ast.AnnAssign)]
            has_array = any(
                aliases[module] & set(re.findall(r"\w+", field)) for field in fields if not NOT_HELD.search(field)
            )
            if decorators and has_array and not any("eq=False" in each for each in decorators):
                yield f"{module}.{node.name}"


def test_no_dataclass_compares_arrays() -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in ROOT.rglob("*.py")}
    names = {"NDArray", *(name for text in texts.values() for name in ALIAS.findall(text))}
    mentioned = re.compile(rf"\b({'|'.join(names)})\b")
    trees = {
        f"cranfield.{path.relative_to(ROOT).with_suffix('').as_posix().replace('/', '.')}": ast.parse(text)
        for path, text in texts.items()
        if ALIAS.search(text) or ("@dataclass" in text and mentioned.search(text))
    }
    assert len(trees) > 50
    assert list(compared_by_value(trees)) == []


def test_the_search_finds_a_class_that_compares_arrays() -> None:
    source = "Floats = NDArray[np.float64]\n@dataclass(frozen=True)\nclass A:\n    x: Floats | None\n"
    user = "from m import Floats\n@dataclass\nclass B:\n    x: Floats\n@dataclass(eq=False)\nclass C:\n    x: Floats\n"
    assert list(compared_by_value({"m": ast.parse(source), "n": ast.parse(user)})) == ["m.A", "n.B"]


def test_results_can_be_compared_looked_up_and_be_keys() -> None:
    testset = TestSet("t", (Query("q1"), Query("q2")), {"q1": {"d1": 1}, "q2": {"d2": 1}})
    runs = {"q1": ["d1"], "q2": ["d2"]}, {"q1": ["d2"], "q2": ["d2"]}
    one, other = (evaluate(testset, run, name=name) for run, name in zip(runs, "ab", strict=True))
    results = [one, other, one.ranking, other.ranking, compare(one, other), compare(other, one)]
    assert [results.index(each) for each in results] == list(range(6))
    assert len(set(results)) == 6
    assert one != other
    assert one == one
    assert one != evaluate(testset, runs[0], name="a"), "another evaluation is another object"
