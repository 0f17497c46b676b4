"""The one comment of a job on a pull or merge request: its marker, its text, and how it is updated.

A comment belongs to the job if it begins with the marker *and* the owner of the token wrote it: comments of other people
that quote a report, or copy the marker, are not changed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, Protocol

from cranfield.base.errors import UsageError, shorten
from cranfield.base.words import HIDDEN

DEFAULT_MARKER = "report"
_MARKER = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9 ._/]|-(?!-)){0,99}")
ROUNDS = 3
"""Attempts, if the comment is deleted while it is being updated."""

Done = Literal["created", "updated", "unchanged"]


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment of a forge."""

    id: int
    """Increases with time."""
    author_id: int
    body: str
    url: str


class Thread(Protocol):
    """The comments of one pull or merge request."""

    body_limit: int
    """Maximum length of a comment, in characters."""

    def author_id(self) -> int:
        """Account id of the token's owner."""
        ...

    def comments(self) -> Iterator[Comment]:
        """All comments."""
        ...

    def create(self, body: str) -> Comment:
        """Create a comment."""
        ...

    def update(self, comment: Comment, body: str) -> Comment | None:
        """Replace the text of a comment; None if it no longer exists."""
        ...

    def delete(self, comment: Comment) -> None:
        """Delete a comment, if it still exists."""
        ...


@dataclass(frozen=True, slots=True)
class CommentResult:
    """Result of `put_comment`."""

    done: Done
    comment: Comment
    removed: int
    """Number of duplicates of the job that were deleted."""


def marker_line(marker: str = DEFAULT_MARKER) -> str:
    """The invisible first line of a comment.

    Raises:
        UsageError: the marker contains other characters than allowed.
    """
    if not _MARKER.fullmatch(marker) or marker.endswith("-"):
        expected = "at most 100 letters, digits, spaces, dots, slashes, underscores and single dashes"
        raise UsageError("use a few plain words as the marker", expected=expected, got=shorten(marker))
    return f"<!-- cranfield: {marker} -->"


def comment_body(text: str, *, marker: str, limit: int, source: str) -> str:
    """The body of a comment: the marker, and a report without mentions, shortened to the limit.

    Args:
        text: the report, in Markdown.
        marker: distinguishes several comments of a job.
        limit: maximum length in characters.
        source: place of the whole report, in words.
    """
    first = marker_line(marker) + "\n"
    return first + fit_to_limit(without_mentions(text), limit - len(first), source=source)


def put_comment(thread: Thread, body: str) -> CommentResult:
    """Update the oldest comment of the job, or create one; duplicates are deleted.

    Two concurrent jobs may create one comment each. Each then lists them again and keeps the oldest, so that one remains,
    with the text of the last job.
    """
    mark, _, _ = body.partition("\n")
    author = thread.author_id()

    def own_comments() -> list[Comment]:
        found = [
            comment
            for comment in thread.comments()
            if comment.author_id == author and comment.body.lstrip("\ufeff \r\n").startswith(mark)
        ]
        return sorted(found, key=lambda comment: comment.id)

    for _ in range(ROUNDS):
        known = own_comments()
        created = None
        if not known:
            created = thread.create(body)
            known = own_comments() or [created]
        kept, others = known[0], known[1:]
        done: Done = "created" if created is not None and kept.id == created.id else "unchanged"
        if not _is_same(kept.body, body):
            updated = thread.update(kept, body)
            if updated is None:
                continue  # it was deleted meanwhile
            kept, done = updated, "updated"
        for other in others:
            thread.delete(other)
        return CommentResult(done, kept, len(others))
    raise UsageError(
        "the comment was deleted while it was being updated",
        hint="check whether another job deletes it, and whether the token has write access",
    )


def _is_same(body: str, wanted: str) -> bool:
    """Equal up to line ends and trailing blanks, which forges change."""
    return body.replace("\r\n", "\n").rstrip() == wanted.replace("\r\n", "\n").rstrip()


_MENTIONS = (
    # Mentions of people and teams, also with an entity for the sign; not e-mail addresses or nDCG@10.
    (re.compile(r"(?<![A-Za-z0-9])@(?=\w)"), "@" + HIDDEN),
    (re.compile(r"&(?:#0*64|#[xX]0*40|commat);", re.IGNORECASE), "@" + HIDDEN),
    # References to issues and requests, plain, as entities and in URLs: they would be listed there.
    (re.compile(r"#(?=\d)(?!(?<=&#)\d+;)"), "#" + HIDDEN),
    (re.compile(r"!(?=\d)"), "!" + HIDDEN),
    (re.compile(r"(&(?:#0*3[35]|#[xX]0*2[13]|num|excl);)(?=\d)", re.IGNORECASE), r"\1" + HIDDEN),
    (re.compile(r"\b(GH-)(?=\d)", re.IGNORECASE), r"\1" + HIDDEN),
    (
        re.compile(r"(/(?:issues|pulls?|discussions|merge_requests|work_items|epics)/)(?=\d)", re.IGNORECASE),
        r"\1" + HIDDEN,
    ),
    # Commands to a forge or a bot: /merge, /close.
    (re.compile(r"^([ \t>]*)/(?=[A-Za-z])", re.MULTILINE), rf"\1{HIDDEN}/"),
    # Images: they would be loaded from other servers.
    (re.compile(r"!(?=\[)"), "!" + HIDDEN),
    (
        re.compile(
            r"<(?=(?:img|image|picture|video|audio|source|svg|object|embed|iframe|input|link|style)\b)", re.IGNORECASE
        ),
        "&lt;",
    ),
    # HTML comments: another marker, or one that hides the rest of the report.
    (re.compile(r"<!--"), "&lt;!--"),
)


def without_mentions(text: str) -> str:
    """Make `@name`, `#1`, `/merge` and images in queries and results ineffective.

    They look unchanged: a zero-width space follows the sign.
    """
    for pattern, instead in _MENTIONS:
        text = pattern.sub(instead, text)
    return text


def fit_to_limit(text: str, limit: int, *, source: str, size: Callable[[str], int] = len) -> str:
    """Shorten Markdown to a limit: collapsed sections are removed first, from the end, then lines; a note is appended.

    Args:
        text: verdict first, details in `<details>`.
        limit: maximum of `size`.
        source: place of the whole report, in words.
        size: the limited size: characters, or bytes.
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
        note = _cut_note(f"{folded} of its {n_folded} collapsed sections are omitted", source)
        whole = "".join(part for _, part in kept).rstrip() + note
        if size(whole) <= limit:
            return whole
    note = _cut_note("only its beginning is shown", source)
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
    return f"\n\n---\nThis report was shortened to fit into a comment: {what}. The full report is in {source}.\n"


def _parts(text: str) -> Iterator[tuple[bool, str]]:
    """Pieces of the text, and whether each is a collapsed section of the outermost level."""
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
