"""The output of a program, and lines of a file in a folder or at a commit."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from cranfield.base.concurrency.child_process import NotStartedError, TooMuchOutputError, child_process, exit_reason
from cranfield.base.concurrency.loop import event_loop
from cranfield.config.documents import CommandSource, DocumentFormat, FileSource, fill_placeholders, placeholder_names
from cranfield.formats.io.files import NO_LINK
from cranfield.judging.documents.values import Content, DocumentError, DocumentFailureKind, Reader, Wanted
from cranfield.model import Hit, MatchingRules
from cranfield.ranking.matching.place import place_of
from cranfield.repo.git import GitError, commit_of, git

ENVIRONMENT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "TZ")
"""Variables that every command gets."""
_FORMATS: Mapping[str, DocumentFormat] = {
    ".md": "markdown",
    ".markdown": "markdown",
    ".html": "html",
    ".htm": "html",
    ".txt": "text",
    "": "text",
}
"""Suffix to format; other files are code."""
_NO_FILE = "File not found."
_OUTSIDE = "The path is outside the folder of documents."


@dataclass(frozen=True, slots=True)
class CommandReader(Reader):
    """The output of a program, started once for each document."""

    config: CommandSource
    folder: Path

    def read(self, wanted: Wanted) -> Content:
        """What the program prints."""
        argv = filled_arguments(self.config.command, wanted.values)
        names = {*ENVIRONMENT, *self.config.env}
        env = {name: value for name, value in os.environ.items() if name in names}
        try:
            output = event_loop().run(self._output(argv, env))
        except NotStartedError as error:
            raise DocumentError(
                DocumentFailureKind.FAILED, f"The command of this source could not be started: {error}."
            ) from None
        except TooMuchOutputError:
            raise DocumentError(
                DocumentFailureKind.TOO_LARGE, f"The document is larger than {self.config.max_bytes:,} bytes."
            ) from None
        except TimeoutError:
            raise DocumentError(
                DocumentFailureKind.TIMED_OUT,
                f"The command of this source did not end within {self.config.timeout_s:g} s.",
            ) from None
        return Content(output.decode("utf-8", "replace"))

    async def _output(self, argv: list[str], env: Mapping[str, str]) -> bytes:
        cwd, most = self.folder / self.config.cwd, self.config.max_bytes
        async with (
            asyncio.timeout(self.config.timeout_s),
            child_process(argv, cwd=cwd, env=env, max_output_bytes=most) as child,
        ):
            status = await child.run()
            if status:
                message = f"The command of this source failed: {exit_reason(status)}."
                raise DocumentError(DocumentFailureKind.FAILED, message)
            if not child.stdout.strip():
                raise DocumentError(DocumentFailureKind.NOT_FOUND, "The command of this source printed nothing.")
            return bytes(child.stdout)


def filled_arguments(command: list[str], values: Mapping[str, str]) -> list[str]:
    """A command with its placeholders filled in.

    Raises:
        DocumentError: because of the id an argument would begin with `-`, and `--` does not stand before it; or a path in it would
            have `..`.
    """
    argv: list[str] = []
    for argument in command:
        filled = fill_placeholders(argument, values)
        if (
            placeholder_names(argument)
            and filled.startswith("-")
            and not argument.startswith("-")
            and "--" not in command[: len(argv)]
        ):
            raise DocumentError(DocumentFailureKind.REFUSED, "The id starts like a command option.")
        if filled.split("/").count("..") > argument.split("/").count(".."):
            raise DocumentError(DocumentFailureKind.REFUSED, _OUTSIDE)
        argv.append(filled)
    return argv


@dataclass(frozen=True, slots=True)
class FileReader(Reader):
    """Files in a folder, or at a commit."""

    config: FileSource
    folder: Path

    def read(self, wanted: Wanted) -> Content:
        """The file, or the lines that the id names."""
        span = wanted.fields.get("span")
        named = Hit(
            fill_placeholders(self.config.file.path, wanted.values), span=span if isinstance(span, str) else None
        )
        place = place_of(named, MatchingRules())
        check_path(place.path)
        root = self.folder / self.config.file.root
        at, most = self.config.file.at, self.config.max_bytes
        data = read_file(root, place.path, most) if at is None else read_committed(root, at, place.path, most)
        if b"\0" in data[:8000]:
            raise DocumentError(DocumentFailureKind.FAILED, "The file is not text.")
        text = data.decode("utf-8-sig", "replace").replace("\r\n", "\n").replace("\r", "\n")
        kind = self.config.format or _FORMATS.get(PurePosixPath(place.path).suffix.lower(), "code")
        first = 1
        if place.lines is not None:
            first, last = place.lines
            lines = text.split("\n")
            if first < 1 or first > len(lines):
                raise DocumentError(
                    DocumentFailureKind.NOT_FOUND, f"The file has {len(lines)} lines, and no line {first}."
                )
            text = "\n".join(lines[first - 1 : last])
        return Content(text, kind, title=wanted.doc_id, first_line=first)


def check_path(path: str) -> None:
    """Refuse a path that leads out of a folder, or into the store of git.

    Raises:
        DocumentError: it does.
    """
    parts = path.split("/")
    if path.startswith(("/", "~")) or ".." in parts or "\\" in path or not path or path == ".":
        raise DocumentError(DocumentFailureKind.REFUSED, _OUTSIDE)
    if any(part.casefold().rstrip(". ") == ".git" for part in parts):
        raise DocumentError(DocumentFailureKind.REFUSED, "The path is inside the .git folder.")


def read_file(root: Path, path: str, most: int) -> bytes:
    """A regular file below a folder; links may not lead out of it.

    Raises:
        DocumentError: it is not there, is larger than `most` bytes, or lies outside.
    """
    try:
        home = root.resolve(strict=True)
        found = (home / path).resolve(strict=True)
    except (OSError, RuntimeError, ValueError):
        raise DocumentError(DocumentFailureKind.NOT_FOUND, _NO_FILE) from None
    if not found.is_relative_to(home):
        raise DocumentError(DocumentFailureKind.REFUSED, _OUTSIDE)
    if not found.is_file():
        raise DocumentError(DocumentFailureKind.NOT_FOUND, "The path is not a file.")
    check_path(found.relative_to(home).as_posix())
    try:
        # A pipe that takes its place now must not block, and a link must not be followed.
        with os.fdopen(os.open(found, os.O_RDONLY | NO_LINK), "rb") as stream:
            data = stream.read(most + 1)
    except OSError:
        raise DocumentError(DocumentFailureKind.NOT_FOUND, "The file cannot be read.") from None
    if len(data) > most:
        raise DocumentError(DocumentFailureKind.TOO_LARGE, f"The document is larger than {most:,} bytes.")
    return data


def read_committed(root: Path, at: str, path: str, most: int) -> bytes:
    """A file at a commit, from git's store.

    Raises:
        DocumentError: it is not there, is a link, or is larger than `most` bytes.
    """
    try:
        commit = commit_of(root, at)
        listed = git(root, "--literal-pathspecs", "ls-tree", "-z", "-l", commit, "--", path).split(b"\0")[0]
    except GitError:
        raise DocumentError(
            DocumentFailureKind.FAILED, "The repository of this source cannot be read at its commit."
        ) from None
    about, _, name = listed.partition(b"\t")
    if os.fsdecode(name) != path or not about.startswith(b"100"):
        raise DocumentError(DocumentFailureKind.NOT_FOUND, "File not found at the commit.")
    _, _, blob, size = about.split()
    if not size.isdigit() or int(size) > most:
        raise DocumentError(DocumentFailureKind.TOO_LARGE, f"The document is larger than {most:,} bytes.")
    try:
        return git(root, "cat-file", "blob", blob.decode())
    except GitError:
        raise DocumentError(DocumentFailureKind.FAILED, "The repository of this source cannot be read.") from None
