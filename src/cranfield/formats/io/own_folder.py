"""Folders that Cranfield fills by itself: caches, journals, outputs. No link is followed out of them.

The root is a folder that the user names, and may itself be a link. What is below it is opened component by component from
the descriptor of the folder above, without following links: no component can be exchanged between a check and its use.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from cranfield.errors import UsageError

PRIVATE_FOLDER, PRIVATE_FILE = 0o700, 0o600
"""Modes of what holds answers: for its owner alone."""
_NO_LINK = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
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


@contextmanager
def folder_inside(root: Path, folder: Path, *, make: int | None = None) -> Iterator[int]:
    """Descriptor of a folder.

    Args:
        root: must exist.
        folder: `root`, or below it.
        make: the mode of missing folders, which are made; None: they raise `FileNotFoundError`.

    Raises:
        UsageError: a link is in its place, or another user's folder in one that all users can write to.
        OSError: it is missing, or a file.
    """
    handle, place = _open_root(root), root
    try:
        for name in folder.relative_to(root).parts:
            place /= name
            if make is not None:
                with suppress(FileExistsError):
                    os.mkdir(name, make, dir_fd=handle)
                    flush(handle)
            inner = _open(name, os.O_RDONLY, handle, place, stat.S_IFDIR)
            os.close(handle)
            handle = inner
        yield handle
    finally:
        os.close(handle)


def open_inside(root: Path, path: Path, flags: int, *, mode: int = PRIVATE_FILE) -> int:
    """Descriptor of a file, as `os.open`; folders above it must exist.

    Raises:
        UsageError: as of `folder_inside`; also a pipe or a device, and what would be changed under another name too.
        OSError: it is missing, or a folder.
    """
    with folder_inside(root, path.parent) as folder:
        return _open(path.name, flags, folder, path, stat.S_IFREG, mode)


def read_inside(root: Path, path: Path) -> bytes:
    """All bytes of a file; see `open_inside`."""
    with os.fdopen(open_inside(root, path, os.O_RDONLY), "rb") as stream:
        return stream.read()


def names_in(folder: int) -> list[str]:
    """All names in an open folder."""
    with os.scandir(folder) as entries:
        return [entry.name for entry in entries]


def check_inside(root: Path, path: Path, *, is_folder: bool = False) -> None:
    """Refuse what leads elsewhere before anything else is done; what cannot be used is refused where it is used."""
    with suppress(OSError), folder_inside(root, path.parent) as folder:
        check_name(path.name, folder, path, stat.S_IFDIR if is_folder else stat.S_IFREG)


def check_name(name: str, folder: int, place: Path, expected: int = stat.S_IFREG) -> None:
    """Refuse a link, or anything but what is expected, under a name of an open folder."""
    _check(os.stat(name, dir_fd=folder, follow_symlinks=False), folder, place, expected)


def _open_root(root: Path) -> int:
    flags = os.O_DIRECTORY | os.O_CLOEXEC
    try:
        return os.open(root, os.O_RDONLY | flags)
    except PermissionError:
        if not hasattr(os, "O_PATH"):
            raise
        return os.open(root, os.O_PATH | flags)  # files in it can be made, and its names are not flushed


def _open(name: str, flags: int, folder: int, place: Path, expected: int, mode: int = PRIVATE_FILE) -> int:
    try:
        check_name(name, folder, place, expected)
    except FileNotFoundError:
        if not flags & os.O_CREAT:
            raise
    handle = os.open(name, flags | _NO_LINK, mode, dir_fd=folder)
    try:  # the name may be another file's by now
        _check(os.fstat(handle), folder, place, expected, is_changed=bool(flags & (os.O_WRONLY | os.O_RDWR)))
    except BaseException:
        os.close(handle)
        raise
    return handle


def _check(found: os.stat_result, folder: int, place: Path, expected: int, *, is_changed: bool = False) -> None:
    kind = stat.S_IFMT(found.st_mode)
    if kind != expected and kind in _HARMLESS:
        raise OSError(_HARMLESS[kind], os.strerror(_HARMLESS[kind]), str(place))
    if kind != expected:
        raise _refusal(place, _KINDS.get(kind, "a device"), expected)
    if is_changed and found.st_nlink > 1:
        raise _refusal(place, "a hard link of another file", expected)
    if os.fstat(folder).st_mode & stat.S_IWOTH and found.st_uid not in {os.geteuid(), 0}:
        raise _refusal(place, "of another user, in a folder that all users can write to", expected)


def _refusal(place: Path, got: str, expected: int) -> UsageError:
    hint = "Cranfield neither reads nor writes it: find out what put it there, and remove it."
    return UsageError(f"this is {got}", path=str(place), expected=f"{_KINDS[expected]} of Cranfield's own", hint=hint)
