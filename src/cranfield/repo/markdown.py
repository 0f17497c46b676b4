"""Sections of a Markdown file, by the path of their headings."""

from __future__ import annotations

import re

from cranfield.repo.definition import Definition

_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*")
_SETEXT = re.compile(r" {0,3}(=+|-+)[ \t]*")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_BREAK = re.compile(r" {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*")
_NO_PARAGRAPH = re.compile(r" {0,3}(?:>|[-+*][ \t]|\d{1,9}[.)][ \t]|\||<)|(?: {4}|\t)")
"""Beginnings of lines that a line of dashes does not make a heading."""


def markdown_definitions(text: str) -> tuple[list[Definition], str]:
    """Sections: from a heading to the next one of its level or above, blank lines at the end left out.

    Fenced code and the block of keys that a file may begin with hold no headings.
    """
    lines = text.split("\n")
    found = []
    path: list[tuple[int, int, str]] = []
    """Line, level and title of the sections that go on."""
    for line, level, title in (*_headings(lines), (len(lines) + 1, 0, "")):
        while path and path[-1][1] >= level:
            start, end = path[-1][0], line - 1
            while end > start and not lines[end - 1].strip():
                end -= 1
            found.append(Definition(tuple(name for _, _, name in path), "section", start, end))
            path.pop()
        path.append((line, level, title))
    return found, ""


def _headings(lines: list[str]) -> list[tuple[int, int, str]]:
    """Line, level and title of each heading."""
    found = []
    fence = ""
    paragraph: list[str] = []
    """Lines of the paragraph that goes on."""
    for number, line in enumerate(lines[_front_matter(lines) :], _front_matter(lines) + 1):
        mark = _FENCE.fullmatch(line)
        if fence:
            if mark and mark[1].startswith(fence) and not mark[2].strip():
                fence = ""
            continue
        if mark and not (mark[1][0] == "`" and "`" in mark[2]):
            fence, paragraph = mark[1], []
        elif heading := _ATX.fullmatch(line):
            found.append((number, len(heading[1]), (heading[2] or "").strip()))
            paragraph = []
        elif paragraph and (under := _SETEXT.fullmatch(line)):
            found.append((number - len(paragraph), 1 if under[1][0] == "=" else 2, " ".join(paragraph)))
            paragraph = []
        elif not line.strip() or _BREAK.fullmatch(line) or (not paragraph and _NO_PARAGRAPH.match(line)):
            paragraph = []
        else:
            paragraph.append(line.strip())
    return found


def _front_matter(lines: list[str]) -> int:
    """Lines of the block between `---` that a file may begin with."""
    if lines[0].rstrip() != "---":
        return 0
    return next((place + 1 for place, line in enumerate(lines) if place and line.rstrip() in {"---", "..."}), 0)
