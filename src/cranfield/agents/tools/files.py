"""The files that tools show: their texts, the paths by which an agent names them, and which lines count as read."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from cranfield.agents.loop import RESULT_CHARS, Read
from cranfield.agents.prompt import clean
from cranfield.base.words import count_noun, join_first, printable
from cranfield.repo.hashes import glob_regex
from cranfield.repo.snapshot import Snapshot, as_text


@dataclass(frozen=True, slots=True)
class ToolLimits:
    """Limits on one result. Two agents that are compared get the same."""

    files: int = 500
    """That are listed."""
    hits: int = 100
    """Most hits of a search."""
    lines: int = 500
    """Most lines of a file that is read."""
    line_chars: int = 1_000
    """Longer lines are cut, and do not count as read."""
    symbols: int = 500
    commits: int = 50
    chars: int = 30_000
    """Most characters in the lines of any result."""
    search_s: float = 10.0

    def __post_init__(self) -> None:
        if self.chars + self.line_chars + 1_000 > RESULT_CHARS:
            raise ValueError(f"a result of an agent's tool has at most {RESULT_CHARS} characters")


class WrongCallError(Exception):
    """The call asks for what is not there; the message is for the model."""


@dataclass(frozen=True)
class SourceFiles:
    """Files by the paths that an agent writes."""

    texts: Mapping[str, str | None]
    """None: the file is there, and has no text or cannot be read."""
    limits: ToolLimits

    def text(self, given: str) -> str:
        """The text of a file.

        Raises:
            WrongCallError: there is no such file, or it has no text.
        """
        path = plain(given)
        if path not in self.texts:
            raise WrongCallError(self.missing(path))
        text = self.texts[path]
        if text is None:
            raise WrongCallError(f"{printable(path)} is not shown: it is binary, or too large")
        return text

    def missing(self, path: str) -> str:
        """The message about a path that is not a file."""
        if any(known.startswith(f"{path}/") for known in self.texts):
            return f"{printable(path)} is a folder: list_files lists it"
        name = posixpath.basename(path)
        alike = sorted(known for known in self.texts if posixpath.basename(known) == name)
        hint = (
            f"; files of that name: {join_first(map(printable, alike))}"
            if alike
            else "; list_files lists those there are"
        )
        return f"there is no file {printable(path)}{hint}"

    def check_folder(self, given: str, *, or_file: bool = False) -> None:
        """Check that there is such a folder, or file.

        Raises:
            WrongCallError: there is none.
        """
        path = plain(given)
        if not (or_file and path in self.texts) and not any(known.startswith(f"{path}/") for known in self.texts):
            raise WrongCallError(f"there is no {'file or folder' if or_file else 'folder'} {printable(path)}")

    def lines(self, given: str) -> list[str]:
        """The lines of a file, with the errors of `text`."""
        lines = self.text(given).split("\n")
        return lines if lines[-1] else lines[:-1]

    def size(self, path: str) -> str:
        """`12 lines`."""
        return "no text" if self.texts[path] is None else count_noun(len(self.lines(path)), "lines")

    def cut(self, line: str) -> str:
        """A line as it is shown."""
        most = self.limits.line_chars
        return clean(line if len(line) <= most else f"{line[:most]} ... {len(line) - most:,} more characters")

    def reads(self, path: str, shown: Sequence[int], lines: Sequence[str]) -> tuple[Read, ...]:
        """Runs of lines that were shown whole."""
        reads: list[Read] = []
        for number in shown:
            if len(lines[number - 1]) > self.limits.line_chars:
                continue
            if reads and reads[-1].end == number - 1:
                reads[-1] = Read(path, reads[-1].start, number)
            else:
                reads.append(Read(path, number, number))
        return tuple(reads)


def read_texts(snapshot: Snapshot, withheld: Collection[str] = ()) -> dict[str, str | None]:
    """Every file by path; None where it has no text, or cannot be read."""
    texts: dict[str, str | None] = dict.fromkeys(path for path in sorted(snapshot.files) if path not in withheld)
    texts.update((path, as_text(data)) for path, data in snapshot.each() if path in texts)
    return texts


def plain(path: str) -> str:
    """A path as the snapshot has it.

    Raises:
        WrongCallError: it leads out of the repository.
    """
    if path.startswith(("/", "~")) or ".." in path.split("/") or "\\" in path or "\0" in path:
        raise WrongCallError("a path is relative to the repository, with `/` between folders and without `..`")
    return posixpath.normpath(path) if path.strip("./") else ""


def paths_regex(folder: str, glob: str) -> str:
    """A regular expression of the whole paths in a folder that match a pattern; empty: all paths.

    Raises:
        WrongCallError: the pattern, or the folder, is not valid.
    """
    start = f"{re.escape(plain(folder))}/" if plain(folder) else ""
    try:
        pattern = glob_regex(glob) if glob else ".*"
    except ValueError as error:
        raise WrongCallError(str(error)) from None
    if not start:
        return pattern if glob else ""
    return f"(?={start}){pattern}" if "/" in glob else start + pattern
