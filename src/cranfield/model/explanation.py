"""How the score of a result came about, as a bounded tree of names and numbers: one form for all engines."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

MAX_NODES = 400
"""Nodes of an explanation."""
MAX_DEPTH = 24
"""Levels of an explanation."""
MAX_CHARS = 16_000
"""Characters of all names of an explanation."""
MAX_NAME = 200
"""Characters of one name."""
_UNCUT_NAME = 4 * MAX_NAME
"""Characters of a name before redaction: a truncated secret would not be recognised."""
NOT_READ = "not read"
"""Name of an explanation that is of no form that is known."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """A part of a score: its name, its value, and the parts that it is computed from."""

    name: str
    value: float | None = None
    """None: the engine gives no number for it."""
    children: tuple[Explanation, ...] = ()
    cut: int = 0
    """Parts directly or further below it that were left out because of a bound, or because they hold no number."""

    def __iter__(self) -> Iterator[Explanation]:
        """Itself and all parts below it, in their order."""
        waiting = [self]
        while waiting:
            part = waiting.pop()
            yield part
            waiting += reversed(part.children)

    @property
    def n_cut(self) -> int:
        """Parts that were left out of the whole tree."""
        return sum(part.cut for part in self)

    def renamed(self, rename: Callable[[str], str]) -> Explanation:
        """The same tree with other names."""
        children = tuple(child.renamed(rename) for child in self.children)
        return Explanation(rename(self.name), self.value, children, self.cut)

    def shortened(self) -> Explanation:
        """The same tree with names of at most `MAX_NAME` characters: once secrets are redacted."""
        if all(len(part.name) <= MAX_NAME for part in self):
            return self
        return self.renamed(lambda name: name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 1]}…")

    def record(self) -> dict[str, Any]:
        """The tree as JSON has it; what is empty is left out."""
        found: dict[str, Any] = {"name": self.name}
        if self.value is not None:
            found["value"] = self.value
        if self.children:
            found["children"] = [child.record() for child in self.children]
        return found | ({"cut": self.cut} if self.cut else {})


Children = Sequence[Any]
Reading = Callable[[Any], tuple[str, float | None, Children, int] | None]
"""From a part as an engine gives it to its name, its value, the parts below, and how many of these hold no number; None: it is no part."""


@dataclass(slots=True)
class _Node:
    name: str
    value: float | None
    cut: int
    children: list[_Node] = field(default_factory=list)

    def frozen(self) -> Explanation:
        return Explanation(self.name, self.value, tuple(child.frozen() for child in self.children), self.cut)


def bounded(root: Any, read: Reading) -> Explanation | None:
    """The tree of a value that an engine gives, level by level, until a bound is reached; what is left out is counted.

    Args:
        root: the value.
        read: what it says of one part.

    Returns:
        The tree; None where the value is no explanation.
    """
    found = read(root)
    if found is None:
        return None
    top = _Node(found[0][:_UNCUT_NAME], found[1], found[3])
    n_nodes, n_chars = 1, min(len(top.name), MAX_NAME)
    waiting: deque[tuple[_Node, Iterable[Any], int]] = deque([(top, found[2], 2)])
    while waiting:
        owner, children, depth = waiting.popleft()
        for child in children:
            read_child = read(child)
            if read_child is None:
                owner.cut += 1
                continue
            name, value, below, n_unread = read_child
            name = name[:_UNCUT_NAME]
            size = min(len(name), MAX_NAME)
            if n_nodes == MAX_NODES or depth > MAX_DEPTH or n_chars + size > MAX_CHARS:
                owner.cut += 1
                continue
            node = _Node(name, value, n_unread)
            owner.children.append(node)
            n_nodes, n_chars = n_nodes + 1, n_chars + size
            if below:
                waiting.append((node, below, depth + 1))
    return top.frozen()


def explanation_from_record(record: object) -> Explanation:
    """The tree of which `Explanation.record` made a record. The record is not trusted.

    Raises:
        ValueError: a part of it is no part.
    """

    def read(part: Any) -> tuple[str, float | None, Children, int]:
        fields = part if isinstance(part, Mapping) else {}
        value, children, cut = fields.get("value"), fields.get("children", []), fields.get("cut", 0)
        wrong = {
            "a part without a name": not isinstance(fields.get("name"), str),
            "children that are no list": not isinstance(children, list),
            "a value that is no number": isinstance(value, bool) or not isinstance(value, int | float | None),
            "a cut that is no count": isinstance(cut, bool) or not isinstance(cut, int) or cut < 0,
        }
        if problem := next((what for what, is_so in wrong.items() if is_so), ""):
            raise ValueError(problem)
        try:
            return part["name"], None if value is None else float(value), children, cut
        except OverflowError:
            raise ValueError("a value that is too large") from None

    found = bounded(record, read)
    if found is None:
        raise ValueError("no explanation")
    return found
