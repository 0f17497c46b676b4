"""Random changes: of bytes, and of values of mappings, lists and scalars."""

from __future__ import annotations

import copy
import random
from collections.abc import Sequence
from typing import Any

BITS: tuple[bytes, ...] = (
    b"\n",
    b"\r",
    b"\r\n",
    b"\t",
    b" ",
    b"\0",
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b"\xed\xa0\x80",
    b"\xc2\xa0",
    b"\x1a",
    b"#",
    b"nan",
    b"inf",
    b"-inf",
    b"1e400",
    b"-0.0",
    b"1_0",
    b"0x1p3",
    b"9" * 400,
    b"9" * 5000,
    b"1e-400",
    b"-1",
    b"007",
    b'"',
    b"'",
    b"\\",
    b"\\u0000",
    b"\\ud800",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"[" * 2000,
    b'{"a":' * 500,
    b"&a",
    b"*a",
    b"<<",
    b"!!python/object:os.system",
    b"!!binary",
    b"%",
    b"---\n",
    b"? ",
    b"|",
    b">",
    b"- ",
    b"~",
    b"null",
    b"true",
    b"2020-01-01",
    b"0o7",
    b"1:60",
    b"=1+1",
    b"</top>",
    b"<top>",
    b"<!DOCTYPE",
    b"<![CDATA[",
    b"&e;",
    b"a" * 5000,
    b"PAR1",
    b"\x1f\x8b",
    b"BZh9",
    b"\x28\xb5\x2f\xfd",
    "\u2028\u202e\u0130\U0001f600".encode(),
)
VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    1,
    -1,
    2**31,
    2**63,
    10**400,
    0.5,
    -0.0,
    1e308,
    float("inf"),
    float("nan"),
    "",
    " ",
    "x",
    "a" * 3000,
    "\0",
    "\ud800",
    "${HOME}",
    "../..",
    "/dev/null",
    "-",
    "1",
    "nan",
    "{query}",
    "${",
    "{{",
    [],
    {},
    [[]],
    [None],
    {"": None},
    {"a": {"a": {}}},
    [1, "1", None],
    {1: 2},
    {None: 1},
    {True: 0},
    [["x"] * 3] * 3,
)


def mutate_bytes(draw: random.Random, data: bytes, others: Sequence[bytes] = ()) -> bytes:
    """The bytes after one to six changes; parts of `others` come in too."""
    changed = bytearray(data)
    for _ in range(draw.randrange(1, 7)):
        at = draw.randrange(len(changed) + 1)
        end = min(len(changed), at + draw.choice((1, 1, 2, 4, 16, 64, 1024)))
        match draw.randrange(8):
            case 0 if changed:
                changed[at % len(changed)] = draw.randrange(256)
            case 1:
                del changed[at:end]
            case 2:
                changed[at:at] = changed[at:end] * draw.choice((1, 1, 2, 30))
            case 3 | 4:
                changed[at : draw.choice((at, end))] = draw.choice(BITS)
            case 5:
                _swap_lines(draw, changed)
            case 6 if others:
                other = draw.choice(others)
                place = draw.randrange(len(other) + 1)
                changed[at:at] = other[place : place + draw.randrange(1, 200)]
            case 7 if not draw.randrange(4):
                del changed[at:]
    return bytes(changed[: 1 << 16])


def _swap_lines(draw: random.Random, data: bytearray) -> None:
    lines = data.split(b"\n")
    one, other = draw.randrange(len(lines)), draw.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]
    data[:] = b"\n".join(lines)


def mutate_tree(draw: random.Random, tree: Any, names: Sequence[str] = ()) -> Any:
    """A copy of a value of mappings and lists, after one to four changes: keys and values dropped, doubled, retyped, nested.

    Args:
        draw: the source of chance.
        tree: the value.
        names: keys that other values have.
    """
    tree = copy.deepcopy(tree)
    for _ in range(draw.randrange(1, 5)):
        places = list(_places(tree))
        if not places:
            return draw.choice(VALUES)
        owner, key = draw.choice(places)
        match draw.randrange(7):
            case 0:
                del owner[key]
            case 1 | 2:
                owner[key] = copy.deepcopy(draw.choice(VALUES))
            case 3:
                owner[key] = draw.choice(([owner[key]], {"a": owner[key]}, {str(key): owner[key]}, str(owner[key])))
            case 4:
                other, place = draw.choice(places)
                owner[key] = copy.deepcopy(other[place]) if place in _keys(other) else None
            case 5 if isinstance(owner, dict):
                name = draw.choice([*names, f"{key}s", str(key).upper(), "", "x" * 500])
                owner[name] = owner.pop(key) if draw.randrange(2) else copy.deepcopy(owner[key])
            case _ if isinstance(owner, list):
                owner.extend([copy.deepcopy(owner[key])] * draw.choice((1, 1, 40)))
    return tree


def _keys(owner: Any) -> Any:
    return owner if isinstance(owner, dict) else range(len(owner))


def _places(tree: Any) -> list[tuple[Any, Any]]:
    """Each owner and key, at any depth."""
    found: list[tuple[Any, Any]] = []
    todo = [tree]
    while todo and len(found) < 2000:
        owner = todo.pop()
        if isinstance(owner, dict | list):
            found += [(owner, key) for key in _keys(owner)]
            todo += [owner[key] for key in _keys(owner)]
    return found
