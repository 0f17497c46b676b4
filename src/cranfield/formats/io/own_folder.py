"""Folders that Cranfield fills by itself: caches, journals, outputs. No link is followed out of them.

The root is a folder that the user names, and may itself be a link. What is below it is opened component by component from
the descriptor of the folder above, without following links: no component can be exchanged between a check and its use.
Windows opens no folders: there each component is looked at by its path before its use.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from cranfield.errors import UsageError

PRIVATE_FOLDER, PRIVATE_FILE = 0o700, 0o600
"""Modes of what holds answers: for its owner alone."""
if sys.platform == "win32":
    NO_LINK = 0
else:
    NO_LINK = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    """A pipe is opened without waiting for its other end, and refused then."""
_KINDS = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFDIR: "a folder",
    stat.S_IFREG: "a file",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}
_HARMLESS = {stat.S_IFDIR: errno.EISDIR, stat.S_IFREG: errno.ENOTDIR}
"""A folder for a file, a file for a folder: nothing that leads elsewhere."""
_NO_FLUSH = {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EBADF}
"""Of file systems that cannot flush a folder, and of a folder that may be written to and not read."""


def flush(handle: int) -> None:
    """Return when a file, or the names in a folder, survive a power cut."""
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in _NO_FLUSH:
            raise


@dataclass(frozen=True, slots=True)
class Folder:
    """An open folder. Names are those of what is directly in it; none of them is followed where it is a link."""

    place: Path
    handle: int | None = None
    """Its descriptor; None where folders cannot be opened."""

    def names(self) -> list[str]:
        """All names in it."""
        with os.scandir(self.place if self.handle is None else self.handle) as entries:
            return [entry.name for entry in entries]

    def facts(self, name: str) -> os.stat_result:
        """The facts of a name; of a link its own."""
        return os.stat(self._at(name), dir_fd=self.handle, follow_symlinks=False)

    def check(self, name: str, expected: int = stat.S_IFREG) -> None:
        """Refuse a link, or anything but what is expected, under a name."""
        self._check(self.facts(name), name, expected)

    def open(self, name: str, flags: int, mode: int = PRIVATE_FILE) -> int:
        """Descriptor of a file; see `open_inside`."""
        return self._open(name, flags, stat.S_IFREG, mode)

    def create(self, name: str, mode: int) -> int:
        """Descriptor of a new file, to be written."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_LINK
        return os.open(self._at(name), flags, mode, dir_fd=self.handle)

    def inner(self, name: str, make: int | None) -> Folder:
        """A folder in it, opened; see `folder_inside`."""
        if make is not None:
            with suppress(FileExistsError):
                os.mkdir(self._at(name), make, dir_fd=self.handle)
                self.flush()
        if self.handle is None:
            self.check(name, stat.S_IFDIR)
            return Folder(self.place / name)
        return Folder(self.place / name, self._open(name, os.O_RDONLY, stat.S_IFDIR))

    def replace(self, name: str, target: Folder, new: str) -> None:
        """Give a file another name, there or in another folder; a file that has it is gone."""
        os.replace(self._at(name), target._at(new), src_dir_fd=self.handle, dst_dir_fd=target.handle)

    def take(self, path: Path, name: str) -> None:
        """Move a file from elsewhere to a name in it."""
        os.replace(path, self._at(name), dst_dir_fd=self.handle)

    def unlink(self, name: str) -> None:
        """Remove a file."""
        os.unlink(self._at(name), dir_fd=self.handle)

    def rmdir(self, name: str) -> None:
        """Remove an empty folder."""
        os.rmdir(self._at(name), dir_fd=self.handle)

    def flush(self) -> None:
        """Return when its names survive a power cut, where that can be asked for."""
        if self.handle is not None:
            flush(self.handle)

    def close(self) -> None:
        """Close it."""
        if self.handle is not None:
            os.close(self.handle)

    def _at(self, name: str) -> str | Path:
        return self.place / name if self.handle is None else name

    def _open(self, name: str, flags: int, expected: int, mode: int = PRIVATE_FILE) -> int:
        try:
            self.check(name, expected)
        except FileNotFoundError:
            if not flags & os.O_CREAT:
                raise
        handle = os.open(self._at(name), flags | NO_LINK, mode, dir_fd=self.handle)
        try:  # the name may be another file's by now
            self._check(os.fstat(handle), name, expected, is_changed=bool(flags & (os.O_WRONLY | os.O_RDWR)))
        except BaseException:
            os.close(handle)
            raise
        return handle

    def _check(self, found: os.stat_result, name: str, expected: int, *, is_changed: bool = False) -> None:
        kind, place = stat.S_IFMT(found.st_mode), self.place / name
        if kind != expected and kind in _HARMLESS:
            raise OSError(_HARMLESS[kind], os.strerror(_HARMLESS[kind]), str(place))
        if kind != expected:
            raise _refusal(place, _KINDS.get(kind, "a device"), expected)
        if is_changed and found.st_nlink > 1:
            raise _refusal(place, "a hard link of another file", expected)
        if self._is_shared() and not _is_trusted(found):
            raise _refusal(place, "of another user, in a folder that all users can write to", expected)

    def _is_shared(self) -> bool:
        """Whether all users can write to it."""
        return self.handle is not None and bool(os.fstat(self.handle).st_mode & stat.S_IWOTH)


@contextmanager
def folder_inside(root: Path, folder: Path, *, make: int | None = None) -> Iterator[Folder]:
    """Open a folder.

    Args:
        root: must exist.
        folder: `root`, or below it.
        make: the mode of missing folders, which are made; None: they raise `FileNotFoundError`.

    Raises:
        UsageError: a link is in its place, or another user's folder in one that all users can write to.
        OSError: it is missing, or a file.
    """
    opened = _open_root(root)
    try:
        for name in folder.relative_to(root).parts:
            inner = opened.inner(name, make)
            opened.close()
            opened = inner
        yield opened
    finally:
        opened.close()


def open_inside(root: Path, path: Path, flags: int, *, mode: int = PRIVATE_FILE) -> int:
    """Descriptor of a file, as `os.open`; folders above it must exist.

    Raises:
        UsageError: as of `folder_inside`; also a pipe or a device, and what would be changed under another name too.
        OSError: it is missing, or a folder.
    """
    with folder_inside(root, path.parent) as folder:
        return folder.open(path.name, flags, mode)


def read_inside(root: Path, path: Path) -> bytes:
    """All bytes of a file; see `open_inside`."""
    with os.fdopen(open_inside(root, path, os.O_RDONLY), "rb") as stream:
        return stream.read()


def check_inside(root: Path, path: Path, *, is_folder: bool = False) -> None:
    """Refuse what leads elsewhere before anything else is done; what cannot be used is refused where it is used."""
    with suppress(OSError), folder_inside(root, path.parent) as folder:
        folder.check(path.name, stat.S_IFDIR if is_folder else stat.S_IFREG)


if sys.platform == "win32":

    def _open_root(root: Path) -> Folder:
        if not root.is_dir():
            number = errno.ENOTDIR if root.exists() else errno.ENOENT
            raise OSError(number, os.strerror(number), str(root))
        return Folder(root)

    def _is_trusted(found: os.stat_result) -> bool:  # noqa: ARG001 - the mode of a folder does not say who may write
        return True
else:

    def _open_root(root: Path) -> Folder:
        flags = os.O_DIRECTORY | os.O_CLOEXEC
        try:
            return Folder(root, os.open(root, os.O_RDONLY | flags))
        except PermissionError:
            if not hasattr(os, "O_PATH"):
                raise
            # Files in it can be made, and its names are not flushed.
            return Folder(root, os.open(root, os.O_PATH | flags))

    def _is_trusted(found: os.stat_result) -> bool:
        """Whether it is of this user or of the operating system."""
        return found.st_uid in {os.geteuid(), 0}


def _refusal(place: Path, got: str, expected: int) -> UsageError:
    hint = "Cranfield neither reads nor writes it: find out what put it there, and remove it."
    return UsageError(f"this is {got}", path=str(place), expected=f"{_KINDS[expected]} of Cranfield's own", hint=hint)
