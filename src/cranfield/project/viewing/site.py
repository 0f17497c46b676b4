"""The pages that the viewer answers with: reports of one folder and the files that they link to, nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from hmac import compare_digest
from http import HTTPStatus
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from cranfield.errors import CranfieldError
from cranfield.formats.io.own_folder import read_inside
from cranfield.project.viewing.find import PAGES, report_names
from cranfield.project.viewing.pages import parse_page, read_page, target_of
from cranfield.reporting import Document, render
from cranfield.reporting.document import Cell, Column, Link, Paragraph, Section, Table

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".htm": "text/html; charset=utf-8",
    ".md": "text/plain; charset=utf-8",
    ".txt": "text/plain; charset=utf-8",
    ".csv": "text/csv; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".png": "image/png",
}
"""Endings of the files that are served."""
MOST_PAGES = 2_000
STRICT = "default-src 'none'; style-src 'unsafe-inline'; img-src data: 'self'; base-uri 'none'; form-action 'none'"
"""The policy of a page that states none, and of other files."""
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


@dataclass(frozen=True, slots=True)
class Response:
    """An answer to a request."""

    status: HTTPStatus
    body: bytes
    content_type: str = "text/plain; charset=utf-8"
    policy: str = STRICT
    location: str = ""

    @property
    def headers(self) -> dict[str, str]:
        """The headers, with the policy of the page, which no other page may frame."""
        location = {"Location": self.location} if self.location else {}
        policy = f"{self.policy.rstrip('; ')}; frame-ancestors 'none'"
        return {"Content-Type": self.content_type, "Content-Security-Policy": policy, **HEADERS, **location}


@dataclass(frozen=True, slots=True)
class Site:
    """The reports of a folder, below a first path segment that other programs do not know."""

    root: Path
    start: str
    """The first page; empty: the list."""
    token: str

    def respond(self, target: str) -> Response:
        """The answer to a GET request of a target, such as `/TOKEN/report.html?x`."""
        path = unquote(urlsplit(target).path)
        prefix, slash, name = path.removeprefix("/").partition("/")
        if not compare_digest(prefix.encode("utf-8", "replace"), self.token.encode()):
            return _not_found("no such page: the address has to be the one that `cranfield view` printed")
        if not slash:
            return Response(HTTPStatus.FOUND, b"", location=f"/{self.token}/")
        if not name:
            return self._listed()
        if name not in self.names():
            return _not_found("no such page: only reports of this folder are shown, and the files that they link to")
        try:
            return self._file(name)
        except (OSError, CranfieldError) as error:
            return Response(HTTPStatus.FORBIDDEN, f"{error}\n".encode())

    def names(self) -> frozenset[str]:
        """Every file that is served, from the root: reports, and what can be reached from them by links."""
        found = list(report_names(self.root))
        if self.start and self.start not in found:
            found.append(self.start)
        served = set(found)
        while found and len(served) < MOST_PAGES:
            page = found.pop()
            for link in self._links(page):
                target = target_of(page, link)
                if target is None or target in served or PurePosixPath(target).suffix.lower() not in TYPES:
                    continue
                served.add(target)
                found.append(target)
        return frozenset(served)

    def _links(self, page: str) -> frozenset[str]:
        if PurePosixPath(page).suffix.lower() not in PAGES:
            return frozenset()
        try:
            return read_page(self.root, self.root / page).links
        except (OSError, CranfieldError):
            return frozenset()

    def _file(self, name: str) -> Response:
        path = self.root / name
        body, suffix = read_inside(self.root, path), path.suffix.lower()
        policy = read_page(self.root, path).policy if suffix in PAGES else ""
        return Response(HTTPStatus.OK, body, TYPES[suffix], policy or STRICT)

    def _listed(self) -> Response:
        names = list(report_names(self.root))
        if len(names) == 1:
            return Response(HTTPStatus.FOUND, b"", location=Link("", names[0]).href)
        text = render(list_document(self.root, names), "html").encode()
        return Response(HTTPStatus.OK, text, TYPES[".html"], parse_page(text).policy or STRICT)


def _not_found(text: str) -> Response:
    return Response(HTTPStatus.NOT_FOUND, f"{text}\n".encode())


def list_document(root: Path, names: list[str]) -> Document:
    """The list of the reports in a folder."""
    rows: list[tuple[Cell, ...]] = []
    for name in names:
        path = root / name
        try:
            title, at = read_page(root, path).title, path.lstat().st_mtime
        except (OSError, CranfieldError):
            continue
        rows.append((Link(name, name), title, f"{datetime.fromtimestamp(at):%Y-%m-%d %H:%M}"))  # noqa: DTZ006 - local time
    columns = (Column("file"), Column("title"), Column("written"))
    block = Table(columns, rows, "", shown=None) if rows else Paragraph("No report.")
    return Document(
        title=f"Reports in {root.resolve().name or root}",
        subtitle=(),
        sections=(Section("reports", "Reports", (block,)),),
        tidy=lambda: Table(columns, rows, ""),
        payload=lambda: {"reports": names},
    )
