"""The one comment that a job keeps on a pull or merge request: how it is marked, found, written and kept single.

A comment is ours when it begins with our marker *and* the owner of the token wrote it: somebody who quotes a report, or
copies the marker, keeps what they wrote.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, Protocol

from cranfield.errors import UsageError, shorten

DEFAULT_MARKER = "report"
_MARKER = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9 ._/]|-(?!-)){0,99}")
ROUNDS = 3
"""Times it starts over when a comment goes away while it is being written."""
HIDDEN = "\u200b"
"""A blank of no width: it parts a sign from the name behind it, so that the forge sees no name."""

Done = Literal["created", "updated", "unchanged"]


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment as a forge lists it."""

    id: int
    """Grows with time: the smaller is the older."""
    author_id: int
    body: str
    url: str


class Thread(Protocol):
    """The comments of one pull or merge request, to somebody who holds a token."""

    body_limit: int
    """Characters that a comment may have."""

    def author_id(self) -> int:
        """Who the token belongs to."""
        ...

    def comments(self) -> Iterator[Comment]:
        """All comments, of everybody."""
        ...

    def create(self, body: str) -> Comment:
        """Write a new one."""
        ...

    def update(self, comment: Comment, body: str) -> Comment | None:
        """Write one anew; None where it is no longer there."""
        ...

    def delete(self, comment: Comment) -> None:
        """Take one away; one that is no longer there is no error."""
        ...


@dataclass(frozen=True, slots=True)
class Written:
    """What became of the comment."""

    done: Done
    comment: Comment
    removed: int
    """Others of ours with the same marker that were taken away."""


def marker_line(marker: str = DEFAULT_MARKER) -> str:
    """The line that a comment of ours begins with; nobody sees it.

    Raises:
        UsageError: a marker that could end the line, or say something else.
    """
    if not _MARKER.fullmatch(marker) or marker.endswith("-"):
        expected = "at most 100 letters, digits, blanks, dots, slashes, underscores and single dashes"
        raise UsageError("a marker is a few plain words", expected=expected, got=shorten(marker))
    return f"<!-- cranfield: {marker} -->"


def comment_body(text: str, *, marker: str, limit: int, source: str) -> str:
    """The body of a comment: the marker, and a report in which nobody is called, cut where it is too long.

    Args:
        text: the report, in Markdown.
        marker: tells this comment from others of ours.
        limit: characters it may have.
        source: where the whole report is, in words.
    """
    first = marker_line(marker) + "\n"
    return first + fitted(uncalled(text), limit - len(first), source=source)


def put_comment(thread: Thread, body: str) -> Written:
    """Write the one comment: over the oldest of ours, or as a new one; others of ours with its marker are taken away.

    Two jobs at once may both find none and write one each. Each then looks again and keeps the oldest, so that one is
    left, with what the job that came last says.
    """
    mark, _, _ = body.partition("\n")
    author = thread.author_id()

    def ours() -> list[Comment]:
        found = [one for one in thread.comments() if one.author_id == author and _begins_with(one.body, mark)]
        return sorted(found, key=lambda comment: comment.id)

    for _ in range(ROUNDS):
        known = ours()
        created = None
        if not known:
            created = thread.create(body)
            known = ours() or [created]
        kept, others = known[0], known[1:]
        done: Done = "created" if created is not None and kept.id == created.id else "unchanged"
        if not _is_same(kept.body, body):
            updated = thread.update(kept, body)
            if updated is None:
                continue  # somebody took it away: look again
            kept, done = updated, "updated"
        for other in others:
            thread.delete(other)
        return Written(done, kept, len(others))
    raise UsageError(
        "the comment is not there when it is to be written anew",
        hint="does another job remove it, or may the token not write?",
    )


def _begins_with(body: str, mark: str) -> bool:
    return body.lstrip("\ufeff \r\n").startswith(mark)


def _is_same(body: str, wanted: str) -> bool:
    """Forges change line ends and blanks at the end."""
    return body.replace("\r\n", "\n").rstrip() == wanted.replace("\r\n", "\n").rstrip()


_CALLS = (
    # Somebody's name, a team's, and the same with the sign spelled as an entity; an address or nDCG@10 is neither.
    (re.compile(r"(?<![A-Za-z0-9])@(?=\w)"), "@" + HIDDEN),
    (re.compile(r"&(?:#0*64|#[xX]0*40|commat);", re.IGNORECASE), "@" + HIDDEN),
    # Numbers of issues and requests, plain, as entities and in addresses: a line is left in what they name.
    (re.compile(r"#(?=\d)(?!(?<=&#)\d+;)"), "#" + HIDDEN),
    (re.compile(r"!(?=\d)"), "!" + HIDDEN),
    (re.compile(r"(&(?:#0*3[35]|#[xX]0*2[13]|num|excl);)(?=\d)", re.IGNORECASE), r"\1" + HIDDEN),
    (re.compile(r"\b(GH-)(?=\d)", re.IGNORECASE), r"\1" + HIDDEN),
    (
        re.compile(r"(/(?:issues|pulls?|discussions|merge_requests|work_items|epics)/)(?=\d)", re.IGNORECASE),
        r"\1" + HIDDEN,
    ),
    # Orders to a forge or a bot: /merge, /close.
    (re.compile(r"^([ \t>]*)/(?=[A-Za-z])", re.MULTILINE), rf"\1{HIDDEN}/"),
    # Pictures: they would be fetched from wherever they are.
    (re.compile(r"!(?=\[)"), "!" + HIDDEN),
    (
        re.compile(
            r"<(?=(?:img|image|picture|video|audio|source|svg|object|embed|iframe|input|link|style)\b)", re.IGNORECASE
        ),
        "&lt;",
    ),
    # A marker of ours anywhere but on the first line, and what would hide all that comes after it.
    (re.compile(r"<!--"), "&lt;!--"),
)


def uncalled(text: str) -> str:
    """A report in which no `@name`, `#1` or `/merge` of a query or a result does anything, and no picture is shown.

    They look the same: a blank of no width stands behind the sign.
    """
    for pattern, instead in _CALLS:
        text = pattern.sub(instead, text)
    return text


def fitted(text: str, limit: int, *, source: str, size: Callable[[str], int] = len) -> str:
    """Markdown in at most `limit`: folded parts go first, from the end, then lines; a last line says what was cut.

    Args:
        text: verdict first, detail in `<details>`.
        limit: of `size`.
        source: where all of it is, in words.
        size: what is limited: characters, or bytes.
    """
    if size(text) <= limit:
        return text
    parts = list(_parts(text))
    n_folded = sum(is_folded for is_folded, _ in parts)
    kept = parts[:]
    for index in range(len(parts) - 1, -1, -1):
        if not parts[index][0]:
            continue
        kept[index] = (True, "")
        folded = sum(is_folded and not part for is_folded, part in kept)
        note = _cut_note(f"{folded} of its {n_folded} folded parts are left out", source)
        whole = "".join(part for _, part in kept).rstrip() + note
        if size(whole) <= limit:
            return whole
    note = _cut_note("only its beginning is here", source)
    lines: list[str] = []
    used = size(note) + size("\n```\n")
    for line in "".join(part for _, part in kept).splitlines(keepends=True):
        used += size(line)
        if used > limit:
            break
        lines.append(line)
    begun = "".join(lines).rstrip()
    fences = [line.lstrip()[:3] for line in begun.splitlines() if line.lstrip().startswith(("```", "~~~"))]
    return begun + (f"\n{fences[-1]}" if len(fences) % 2 else "") + note


def _cut_note(what: str, source: str) -> str:
    return f"\n\n---\nThis report was cut, because it is too long to stand here: {what}. The whole is in {source}.\n"


def _parts(text: str) -> Iterator[tuple[bool, str]]:
    """The text in pieces, and whether each is a folded part of the outermost level."""
    depth, piece = 0, ""
    for line in text.splitlines(keepends=True):
        opens, closes = line.startswith("<details"), line.startswith("</details>")
        if opens:
            if not depth and piece:
                yield False, piece
                piece = ""
            depth += 1
        piece += line
        if closes and depth:
            depth -= 1
            if not depth:
                yield True, piece
                piece = ""
    if piece:
        yield depth > 0, piece
