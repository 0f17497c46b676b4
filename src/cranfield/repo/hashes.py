"""Hashes of source files as test sets record them: of several kinds, in several spellings."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping

from cranfield.base.errors import Problem, TestSetError, shorten
from cranfield.model import MatchingRules
from cranfield.ranking.matching.place import path_of
from cranfield.repo.snapshot import Snapshot, blob_id

KINDS = ("sha256", "sha1", "git", "md5")
_HASH = re.compile(r"(?:(sha-?256|sha-?1|md5|git)[:-])?([0-9a-f]{7,64})", re.IGNORECASE)


def recorded_hashes(source_files: Mapping[str, str], rules: MatchingRules) -> dict[str, str]:
    """Path, as results are matched, to the recorded hash.

    Raises:
        TestSetError: with each entry that is no hash.
    """
    wrong = [path for path, written in source_files.items() if _HASH.fullmatch(written.strip()) is None]
    if wrong:
        raise TestSetError(
            [
                Problem(
                    f"the recorded hash of {path} is not a hash",
                    expected="SHA-256, SHA-1, MD5 or the id of a blob of git, in hexadecimal digits",
                    got=shorten(source_files[path]),
                )
                for path in wrong
            ]
        )
    return {path_of(path, rules): written for path, written in source_files.items()}


def is_hash_of(written: str, path: str, snapshot: Snapshot) -> bool:
    """Whether a recorded hash is that of a file as it is: SHA-256, SHA-1, MD5 or git's, whole or its first digits."""
    found = _HASH.fullmatch(written.strip())
    data = snapshot.data(path)
    if found is None or data is None:
        return False
    kind, digits = (found[1] or "").lower().replace("-", ""), found[2].lower()
    kinds = [kind] if kind else KINDS
    return any(_digest(name, data).startswith(digits) for name in kinds)


def _digest(kind: str, data: bytes) -> str:
    if kind == "git":
        return blob_id(data, "")
    return hashlib.new(kind, data, usedforsecurity=False).hexdigest()


def kept_hash(written: str | None, path: str, snapshot: Snapshot) -> str | None:
    """The hash to record of a file: the one that is recorded where it still holds; SHA-256 otherwise."""
    if written is not None and is_hash_of(written, path, snapshot):
        return written
    digest = snapshot.sha256(path)
    prefix = "sha256:" if written is not None and written.lower().startswith("sha256:") else ""
    return None if digest is None else prefix + digest


MAX_CHARS = 200
_PARTS = re.compile(
    r"(?P<folders>(?<![^/])\*\*/)|(?P<all>\*\*)|(?P<some>\*+)|(?P<one>\?)|(?P<set>\[[^\]/]+\])|(?P<text>.)", re.DOTALL
)
_RANGES = re.compile(r"(.)(?:-(.))?", re.DOTALL)
"""In brackets: `a-c`, or a character."""
_SIGNS = {"folders": "(?:[^/]+/)*", "all": ".*", "some": "[^/]*", "one": "[^/]"}


def glob_regex(glob: str) -> str:
    """A regular expression that a whole path matches.

    Args:
        glob: a pattern without `/` is one of the file's name, in any folder; one with `/`, at its beginning or inside, is one of the
            whole path; what ends in `/` stands for all files of a folder. `*` and `?` stand for anything but `/`, `**` for any folders,
            `[a-c]` and `[!a-c]` for a character, `{a,b}` for one of several texts.

    Raises:
        ValueError: it is too long, or braces are not closed.
    """
    if len(glob) > MAX_CHARS:
        raise ValueError(f"a pattern of paths has at most {MAX_CHARS} characters")
    pattern = glob.removeprefix("./")
    if "/" not in pattern.rstrip("/"):
        pattern = f"**/{pattern}"
    if pattern.endswith("/"):
        pattern += "**"
    found, depth = [], 0
    for part in _PARTS.finditer(pattern.removeprefix("/")):
        kind, text = str(part.lastgroup), part[0]
        if kind == "set":
            found.append(_characters(text[1:-1]))
        elif kind != "text":
            found.append(_SIGNS[kind])
        elif text == "{":
            found.append("(?:")
            depth += 1
        elif text == "}" and depth:
            found.append(")")
            depth -= 1
        else:
            found.append("|" if text == "," and depth else re.escape(text))
    if depth:
        raise ValueError(f"a brace of the pattern {glob!r} is not closed")
    return "".join(found)


def _characters(text: str) -> str:
    """Regular expression of `[a-c]`; a range that descends holds nothing, and is taken as its characters."""
    inverted, text = text.startswith(("!", "^")), text.lstrip("!^") or text
    escaped = (re.escape(low) + (f"-{re.escape(high)}" if high else "") for low, high in _RANGES.findall(text))
    expression = f"[{'^/' if inverted else ''}{''.join(escaped)}]"
    try:
        re.compile(expression)
    except re.error:
        return re.escape(f"[{text}]")
    return expression
