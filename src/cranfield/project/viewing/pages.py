"""The HTML of a report as the viewer reads it: its links, its content policy, its title, whether Cranfield wrote it."""

from __future__ import annotations

import os
import posixpath
import re
from dataclasses import dataclass
from functools import lru_cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from cranfield.formats.io.own_folder import open_inside, read_inside

MARK = re.compile(rb"<html\b[^>]*\bclass=\"report\"")
"""Of every report and history that Cranfield writes."""
HEAD_BYTES = 2000
"""The mark is in these."""
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Page:
    """What the viewer takes from a page."""

    title: str
    policy: str
    """Its Content-Security-Policy; empty where it states none."""
    links: frozenset[str]
    """Relative links, without query and fragment, as paths from the page."""
    digests: frozenset[str]


def read_page(root: Path, path: Path) -> Page:
    """A page below a folder; it is parsed again when it has changed.

    Raises:
        UsageError: a link is in its place.
        OSError: it cannot be read.
    """
    found = path.lstat()
    return _read(root, path, found.st_mtime_ns, found.st_size)


@lru_cache(maxsize=500)
def _read(root: Path, path: Path, changed_ns: int, size: int) -> Page:  # noqa: ARG001 - what the cache is about
    return parse_page(read_inside(root, path))


def parse_page(data: bytes) -> Page:
    """The same of the bytes of a page."""
    parser, text = _Parser(), data.decode("utf-8", "replace")
    parser.feed(text)
    parser.close()
    digests = frozenset(DIGEST.findall(text))
    return Page(" ".join(parser.title.split()), parser.policy, frozenset(parser.links), digests)


def is_report(root: Path, path: Path) -> bool:
    """Whether a file below a folder is HTML that Cranfield wrote."""
    with os.fdopen(open_inside(root, path, os.O_RDONLY), "rb") as stream:
        return MARK.search(stream.read(HEAD_BYTES)) is not None


def target_of(page: str, link: str) -> str | None:
    """Where a link of a page leads, both from the root; None where that is outside of it.

    Example:
        >>> target_of("set/report.html", "../history.html"), target_of("report.html", "../x.html")
        ('history.html', None)
    """
    path = posixpath.normpath(posixpath.join(posixpath.dirname(page), link))
    return None if path == ".." or path.startswith(("../", "/")) else path


class _Parser(HTMLParser):
    """Collects links, the title and the content policy."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.title = self.policy = ""
        self.links: set[str] = set()
        self._is_title = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take what is in a tag."""
        given = {name: value or "" for name, value in attrs}
        self._is_title = tag == "title" and not self.title
        if tag == "meta" and given.get("http-equiv", "").casefold() == "content-security-policy" and not self.policy:
            self.policy = " ".join(given.get("content", "").split())
        for name in ("href", "src", "xlink:href"):
            if name in given and (link := _relative(given[name])):
                self.links.add(link)

    def handle_endtag(self, tag: str) -> None:
        """End the title."""
        self._is_title = self._is_title and tag != "title"

    def handle_data(self, data: str) -> None:
        """Take the text of the title."""
        if self._is_title:
            self.title += data


def _relative(link: str) -> str:
    """The path of a relative link; empty where it leads elsewhere or stays on the page."""
    try:
        parts = urlsplit(link.strip())
    except ValueError:
        return ""
    if parts.scheme or parts.netloc or parts.path.startswith("/"):
        return ""
    return unquote(parts.path)
