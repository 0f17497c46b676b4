"""YAML text read as a tree with places, and plain data written so that it reads back the same.

Works on parser events, because PyYAML's own composer can overflow the C stack.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from typing import Any

import yaml

from cranfield.base.errors import Problem
from cranfield.formats.io.tree import Node, NodeValue, TreeBuilder, Unreadable, real_number, scalar

SHORT_WIDTH = 110
"""Characters of a line of YAML that is made short."""
MAX_ALIAS_NODES = 100_000
"""What aliases repeat may not add more values than this: a few lines could otherwise stand for billions."""

_TAG = "tag:yaml.org,2002:"
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x80-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]")
_BREAK = re.compile("\r\n|[\r\n\x85\u2028\u2029]")


def parse_yaml(text: str) -> Node:
    """Read one YAML document.

    Raises:
        Unreadable: with the first syntax error, or with every duplicate key.
    """
    _refuse_control_characters(text)
    events = _Events(text)
    try:
        for event in yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            events.take(event)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (None, None)
        hint = None
        lines = _BREAK.split(text)
        if line is not None and line <= len(lines) and "\t" in lines[line - 1]:
            hint = "indent with spaces, not tabs"
        elif error.problem and "mapping values are not allowed" in error.problem:
            hint = "quote a text that contains a colon and a space"
        context = f" {error.context}" if error.context else ""
        raise Unreadable(
            [Problem(f"not valid YAML: {error.problem}{context}", line=line, column=column, hint=hint)], is_syntax=True
        ) from None
    root = events.builder.result()
    if root is None:
        raise Unreadable([Problem("the file contains only comments")])
    return root


def _refuse_control_characters(text: str) -> None:
    bad = _CONTROL.search(text)
    if bad is None:
        return
    before = text[: bad.start()]
    breaks = list(_BREAK.finditer(before))
    column = bad.start() - (breaks[-1].end() if breaks else 0) + 1
    raise Unreadable(
        [Problem(f"control character U+{ord(bad.group()):04X}", line=len(breaks) + 1, column=column)], is_syntax=True
    )


class _Events:
    """Turns parser events into a tree."""

    def __init__(self, text: str) -> None:
        self.builder = TreeBuilder()
        self.text = text
        self._anchors: dict[str, Node] = {}
        self._names: list[str | None] = []
        """Anchor of each list or mapping that is still open."""
        self._n_documents = 0
        self._n_alias_nodes = 0

    def take(self, event: yaml.Event) -> None:
        mark = event.start_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        if isinstance(event, yaml.ScalarEvent):
            self._scalar(event, line, column)
        elif isinstance(event, yaml.AliasEvent):
            self._alias(str(event.anchor), line, column)
        elif isinstance(event, (yaml.SequenceStartEvent, yaml.MappingStartEvent)):
            self._begin(event, line, column)
        elif isinstance(event, (yaml.SequenceEndEvent, yaml.MappingEndEvent)):
            self._name(self._names.pop(), self.builder.end())
        elif isinstance(event, yaml.DocumentStartEvent):
            self._n_documents += 1
            if self._n_documents > 1:
                raise Unreadable([Problem("a second document starts here", line=line, expected="one document a file")])

    def _begin(self, event: yaml.SequenceStartEvent | yaml.MappingStartEvent, line: int, column: int) -> None:
        self._refuse_as_key("a list or mapping", line, column)
        is_list = isinstance(event, yaml.SequenceStartEvent)
        if event.tag not in {None, "!", _TAG + ("seq" if is_list else "map")}:
            self._refuse_tag(event.tag, line, column)
        self.builder.begin(line, column, [] if is_list else {})
        self._names.append(event.anchor)

    def _scalar(self, event: yaml.ScalarEvent, line: int, column: int) -> None:
        if self.builder.wants_key:
            if event.anchor is not None:
                self._refuse_as_key("an anchor", line, column)
            self.builder.key(event.value, line, column)
            return
        node = Node(line, column, self._meaning(event, line, column))
        self._name(event.anchor, node)
        self.builder.add(node)

    def _meaning(self, event: yaml.ScalarEvent, line: int, column: int) -> NodeValue:
        tag, text = event.tag, str(event.value)
        if tag in {None, "!"}:
            return scalar(text) if event.implicit[0] else text
        if tag == _TAG + "str":
            return text
        meaning: NodeValue = scalar(text)
        if tag == _TAG + "float" and isinstance(meaning, int) and not isinstance(meaning, bool):
            meaning = real_number(text)
        kinds = {"int": int, "float": float, "bool": bool, "null": type(None)}
        kind = kinds.get(tag.removeprefix(_TAG))
        if kind is None:
            self._refuse_tag(tag, line, column)
        elif not isinstance(meaning, kind) or (kind is int and isinstance(meaning, bool)):
            name = tag.removeprefix(_TAG)
            raise Unreadable([Problem(f"the tag !!{name} does not fit {text!r}", line=line, column=column)])
        return meaning

    def _alias(self, anchor: str, line: int, column: int) -> None:
        self._refuse_as_key("an alias", line, column)
        target = self._anchors.get(anchor)
        if target is None:
            message = f"the alias *{anchor} refers to a value that is not defined yet"
            raise Unreadable([Problem(message, line=line, column=column)])
        self._n_alias_nodes += target.size
        if self._n_alias_nodes > MAX_ALIAS_NODES:
            message = f"aliases repeat more than {MAX_ALIAS_NODES} values"
            raise Unreadable([Problem(message, line=line, column=column, hint="write the values out")])
        self.builder.repeat(target, line, column)

    def _name(self, anchor: str | None, node: Node) -> None:
        if anchor is not None:
            self._anchors[anchor] = node

    def _refuse_as_key(self, what: str, line: int, column: int) -> None:
        if self.builder.wants_key:
            raise Unreadable([Problem(f"{what} as a key", line=line, column=column, expected="plain text")])

    def _refuse_tag(self, tag: str | None, line: int, column: int) -> None:
        name = str(tag).replace(_TAG, "!!", 1)
        raise Unreadable([Problem(f"the tag {name} is not supported", line=line, column=column, hint="leave it out")])


_ONLY_QUOTED = re.compile("[\r\x85\u2028\u2029]|[ \t]\n|^[ \n]")
"""Line ends that YAML would change, and white space that a block text would lose."""


class Dumper(yaml.SafeDumper):
    """YAML 1.2's scalars, no anchors, and lists indented below their key."""

    def ignore_aliases(self, data: object) -> bool:
        """Write repeated values out, without anchors: an edit of one must not change another."""
        del data
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: FBT001, FBT002  PyYAML's own signature
        """Indent lists too, which PyYAML leaves at the column of their key."""
        del indentless
        super().increase_indent(flow, False)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = None
    if scalar(text) != text or _ONLY_QUOTED.search(text):
        style = '"'
    elif "\n" in text:
        style = "|"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def _real(dumper: yaml.SafeDumper, number: float) -> yaml.ScalarNode:
    words = {"inf": ".inf", "-inf": "-.inf", "nan": ".nan"}
    return dumper.represent_scalar("tag:yaml.org,2002:float", words.get(repr(number), repr(number)))


Dumper.add_representer(str, _text)
Dumper.add_representer(float, _real)


def yaml_text(data: Mapping[str, Any]) -> str:
    """The data in its own order, as one block of YAML."""
    return _dumped(data, is_flow=False)


def short_yaml(data: Mapping[str, Any], *, opened: int = 0, indent: str = "") -> str:
    """The same in few lines: a value takes one line where it fits.

    Args:
        data: keys and values.
        opened: levels of mappings that take a line for each key all the same.
        indent: before every line.
    """
    lines: list[str] = []
    for key, value in data.items():
        flow = _dumped({key: value}, is_flow=True).strip()[1:-1]
        if isinstance(value, dict) and value and (opened or len(indent) + len(flow) > SHORT_WIDTH):
            name = _dumped({key: None}, is_flow=True).strip()[1:-1].rpartition(":")[0]
            lines.append(f"{indent}{name}:\n{short_yaml(value, opened=max(opened - 1, 0), indent=indent + '  ')}")
        elif len(indent) + len(flow) > SHORT_WIDTH or "\n" in flow:
            lines += [f"{indent}{line}\n" for line in _dumped({key: value}, is_flow=False).splitlines()]
        else:
            lines.append(f"{indent}{flow}\n")
    return "".join(lines)


def _dumped(data: Mapping[str, Any], *, is_flow: bool) -> str:
    return str(
        yaml.dump(
            dict(data),
            Dumper=Dumper,
            allow_unicode=True,
            sort_keys=False,
            width=sys.maxsize,
            default_flow_style=is_flow,
        )
    )
