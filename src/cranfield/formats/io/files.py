"""Files: opened, replaced atomically, locked, read from pipes, kept in private folders.

What is inside a file is the business of the module named after its format.

Folders that Cranfield fills by itself (caches, journals, outputs) are opened component by component below the folder that the user
names, from the descriptor of the folder above and without following links: no component can be exchanged between a check and its
use. The named folder may itself be a link. Windows opens no folders: there each component is checked by its path before its use.
"""

from __future__ import annotations

import atexit
import errno
import gzip
import io
import os
import re
import select
import shutil
import stat
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import RawIOBase
from pathlib import Path
from typing import Any, BinaryIO, cast

from cranfield.base.errors import CranfieldError, MissingExtraError, Problem, UsageError
from cranfield.base.platforms import LOCKS, missing
from cranfield.formats.io.lz4_frames import LZ4_MAGIC, unpacked_lz4
from cranfield.formats.io.workbook import ZIP_MAGIC, is_workbook, sheet_text

WRITER_S = 30.0
"""Longest wait for a program to open a named pipe for writing; one that has opened it may take any time."""
MAX_PIPE_BYTES = 32 * 1024**3
"""More comes out of no pipe: it would fill the disk."""
_POLL_S = 0.01


class UnreadableError(OSError):
    """Neither a file nor a pipe with an end; the message says why."""

    def __init__(self, message: str, expected: str) -> None:
        super().__init__(errno.ENODEV, message)
        self.expected = expected


def refuse_device(place: Path | int, *, pipes: bool = False) -> None:
    """Refuse what may have no end: a device other than the empty one, a socket.

    Args:
        place: a path, or the number of an open file.
        pipes: refuse pipes too.

    Raises:
        UnreadableError: it is one.
    """
    try:
        found = place.stat() if isinstance(place, Path) else os.fstat(place)
    except (OSError, ValueError):
        return  # opening it says why
    mode = found.st_mode
    is_empty = stat.S_ISCHR(mode) and _is_empty_device(found)
    if stat.S_ISFIFO(mode) and pipes:
        raise UnreadableError("this is a pipe", expected="a file")
    if not (is_empty or stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISFIFO(mode)):
        raise UnreadableError("this is a device", expected="a file" if pipes else "a file, or a pipe that ends")


def _is_empty_device(found: os.stat_result) -> bool:
    """Whether a device is the empty one. Windows shows no number of it, and has few others."""
    return sys.platform == "win32" or found.st_rdev == Path(os.devnull).stat().st_rdev


@contextmanager
def standard_input() -> Iterator[tuple[bytes, BinaryIO]]:
    """No bytes, and the stream of standard input.

    Raises:
        UnreadableError: it is a device other than a terminal.
    """
    try:
        number = sys.stdin.fileno()
    except (OSError, ValueError):
        number = None  # replaced by a stream of Python
    if number is not None and not stat.S_ISSOCK(os.fstat(number).st_mode) and not os.isatty(number):
        refuse_device(number)
    yield b"", sys.stdin.buffer


@contextmanager
def opened_pipe(path: Path) -> Iterator[tuple[bytes, RawIOBase]]:
    """The first bytes of a named pipe, and the stream of the others, when a program has opened it for writing.

    Raises:
        UnreadableError: none does.
    """
    if sys.platform == "win32":
        raise UnreadableError("this is a named pipe, which is not supported on Windows", expected="a file")
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with os.fdopen(handle, "rb", buffering=0) as stream:
        deadline = time.monotonic() + WRITER_S
        while (first := stream.read(1)) == b"" and not _has_hung_up(handle):
            if time.monotonic() > deadline:
                expected = "a program that writes to it"
                raise UnreadableError(f"no program opened this pipe for writing in {WRITER_S:g} s", expected=expected)
            time.sleep(_POLL_S)
        os.set_blocking(handle, True)
        yield first or b"", stream


def _has_hung_up(handle: int) -> bool:
    """Whether a program had opened a pipe for writing, and has closed it."""
    if sys.platform == "win32":
        return False
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    return any(event & select.POLLHUP for _, event in poll.poll(0))


def copy_of(first: bytes, rest: BinaryIO | RawIOBase) -> Any:
    """A file with bytes, and all that a stream has left; it is there as long as we are."""
    # Windows does not open a second time what is removed when it is closed.
    is_removed = sys.platform != "win32"
    copy = tempfile.NamedTemporaryFile(prefix="cranfield-input-", delete=is_removed)  # noqa: SIM115  closed at the end
    if not is_removed:
        atexit.register(
            Path(copy.name).unlink, missing_ok=True
        )  # after it is closed: the last that is registered comes first
    atexit.register(copy.close)  # what stands in a module may never be collected
    n_bytes = copy.write(first)
    while part := rest.read(1 << 20):
        n_bytes += len(part)
        if n_bytes > MAX_PIPE_BYTES:
            raise UnreadableError(f"over {MAX_PIPE_BYTES // 1024**3} GB was read from this pipe", expected="an end")
        copy.write(part)
    copy.flush()
    return copy


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
"""Errors of file systems that cannot flush a folder, and of a folder that may be written to and not read."""


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
    hint = "Cranfield neither reads nor writes it: find out which program created it, and remove it."
    return UsageError(f"this is {got}", path=str(place), expected=f"{_KINDS[expected]} created by Cranfield", hint=hint)


GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
ZSTD_STEP = 1024
"""Packed bytes that are unpacked at once: even of the most that they can come to, there is room for."""
_PACKED = re.compile(r"(?<=.)\.(gz|zst)$", re.IGNORECASE)
MAX_PROBLEMS = 1000
"""Reading a file goes no further when it has found so many."""
STDIN = "-"
"""The path that stands for standard input."""


MAX_LINE_BYTES = 1 << 20
"""Most bytes of a line of columns, without its line feed: no id or tag is that long; the C kernel has the same
limit."""
MAX_RECORD_BYTES = 1 << 28
"""Most bytes of a line that holds a whole answer."""
MAX_RATIO = 250
"""Largest ratio of the bytes of an unpacked file to those of the packed one, where it has more than FREE_BYTES: text is
packed 3 to 50 times."""
FREE_BYTES = 1 << 26
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
"""Byte order mark of UTF-8: some editors begin a file with it."""


_UTF_16 = ("UTF-16 text", "UTF-8", "save it as UTF-8; `iconv -f UTF-16 -t UTF-8 FILE > NEW` does it")
_NO_TEXT: Mapping[re.Pattern[bytes], tuple[str, str, str]] = {
    re.compile(rb"BZh[1-9]1AY&SY"): (
        "packed by bzip2",
        "a plain, gzip or Zstandard file",
        "`bunzip2 -k FILE` unpacks it",
    ),
    re.compile(rb"\xfd7zXZ\x00"): ("packed by xz", "a plain, gzip or Zstandard file", "`xz -dk FILE` unpacks it"),
    re.compile(rb"7z\xbc\xaf\x27\x1c"): (
        "a 7-Zip archive",
        "a plain, gzip or Zstandard file",
        "`7z x FILE` unpacks it",
    ),
    re.compile(rb"PK\x03\x04"): ("a zip archive", "a plain, gzip or Zstandard file", "`unzip FILE` unpacks it"),
    re.compile(rb"\xff\xfe([^\x00]\x00){4}"): _UTF_16,
    re.compile(rb"\xfe\xff(\x00[^\x00]){4}"): _UTF_16,
}
"""What files begin with that are not read: what each is, what is expected in its place, and what makes it that."""
_SIGNATURE_BYTES = 10


class ExpandingError(EOFError):
    """A packed file unpacks to far more than any text does."""


class DamagedZstdError(EOFError):
    """Zstandard data that cannot be unpacked, or end too soon."""


def shown(path: Path) -> str:
    """A path as messages name it."""
    return "<stdin>" if str(path) == STDIN else str(path)


def split_part(path: Path) -> tuple[Path, str]:
    """The file and the part of it that `FILE#part` names; the path and nothing where it is a file, or names none."""
    text = str(path)
    if "#" in text and not path.exists():
        place = text.find("#")
        while place > 0:
            file = Path(text[:place])
            if text[:place] == STDIN or file.exists():
                return file, text[place + 1 :]
            place = text.find("#", place + 1)
    return path, ""


def is_there(path: Path) -> bool:
    """Whether a path exists; of `FILE#part`, whether the file does."""
    return path.exists() or bool(split_part(path)[1])


def stem(path: Path) -> str:
    """A file's name without the endings that say how it is packed and what it is: `web.2024` for `web.2024.qrels.gz`."""
    return "stdin" if str(path) == STDIN else Path(unpacked_name(path)).stem


def unpacked_name(path: Path) -> str:
    """A file's name without the ending that says how it is packed."""
    return _PACKED.sub("", path.name)


def suffix_of(path: Path) -> str:
    """The ending that says what a file is, in lower case: `.tsv` for `a.TSV.gz`."""
    return Path(unpacked_name(path)).suffix.lower()


READ_ONLY = {".xlsx", ".lz4"}
"""Suffixes of files that are read and not written."""
META_SUFFIX = ".meta.json"


def meta_path(path: Path) -> Path:
    """The file beside a test set that says what its own format has no room for."""
    place = path if path.name else path.resolve()  # a folder may be the one we are in
    return place.with_name(place.name + META_SUFFIX)


def refusal(path: Path, error: OSError | EOFError | zlib.error) -> Problem:  # noqa: PLR0911 - a table of errors
    """Say why the system would not give or take a file."""
    where = shown(path)
    if isinstance(error, UnreadableError):
        return Problem(str(error.strerror), path=where, expected=error.expected)
    if isinstance(error, FileNotFoundError):
        return Problem("no such file", path=where)
    if isinstance(error, IsADirectoryError):
        return Problem("this is a folder", path=where, expected="a file")
    if isinstance(error, PermissionError):
        return Problem("permission denied", path=where)
    if isinstance(error, ExpandingError):
        return Problem(f"the file unpacks to more than {MAX_RATIO} times its size", path=where, hint="unpack it first")
    if isinstance(error, DamagedZstdError):
        return Problem("the Zstandard data are damaged or cut short", path=where)
    if isinstance(error, (gzip.BadGzipFile, EOFError, zlib.error)):
        return Problem("the gzip data are damaged or cut short", path=where)
    return Problem((error.strerror or str(error)).lower(), path=where)


@contextmanager
def opened(path: Path, error: type[CranfieldError]) -> Iterator[BinaryIO]:
    """Open a file for reading bytes, unpacking gzip, Zstandard and LZ4 where its first bytes say so; `-` is standard input.

    An Excel workbook is read as CSV, and the LZ4 files of ranx as JSON.

    Standard input is copied to a temporary file when it is first opened, and may be opened any number of times.

    Raises:
        CranfieldError: of type `error`, when the file is missing, a folder, unreadable or damaged.
        MissingExtraError: it is Zstandard, and no library is there to unpack it.
    """
    try:
        with _readable_again(path).open("rb") as stream:
            begin = stream.read(_SIGNATURE_BYTES)
            magic = begin[: len(ZSTD_MAGIC)]
            stream.seek(0)
            if magic.startswith(GZIP_MAGIC):
                with gzip.GzipFile(fileobj=stream) as unpacked, _limited(unpacked, stream) as buffered:
                    yield buffered
            elif magic == ZSTD_MAGIC:
                with _ZstdReader(stream, shown(path)) as raw, _limited(raw, stream) as buffered:
                    yield buffered
            elif magic == LZ4_MAGIC:
                yield io.BytesIO(unpacked_lz4(stream.read(), shown(path), error))
            elif magic == ZIP_MAGIC and is_workbook(Path(stream.name)):
                yield io.BytesIO(sheet_text(Path(stream.name), shown(path), error))
            elif other := next((what for sign, what in _NO_TEXT.items() if sign.match(begin)), None):
                what, expected, hint = other
                raise error(Problem(f"this is {what}", path=shown(path), expected=expected, hint=hint))
            else:
                yield stream
    except (OSError, EOFError, zlib.error) as cause:
        raise error(refusal(path, cause)) from cause


def bounded_lines(stream: BinaryIO, path: Path, error: type[CranfieldError], most: int) -> Iterator[bytes]:
    """The lines of a stream, the first without a byte order mark.

    Raises:
        CranfieldError: of type `error`, when one is longer than `most` bytes: a file without line feeds is not read whole.
    """
    number = 0
    while line := stream.readline(most + 2):
        number += 1
        if len(line.rstrip(b"\n")) > most:
            raise error(Problem(f"the line is longer than {most} bytes", path=shown(path), line=number))
        yield line.removeprefix(BYTE_ORDER_MARK) if number == 1 else line


@contextmanager
def seekable(stream: BinaryIO) -> Iterator[BinaryIO]:
    """The stream, or a copy of what is left of it where it cannot be read twice."""
    if stream.seekable():
        yield stream
        return
    with tempfile.TemporaryFile() as copy:
        shutil.copyfileobj(stream, copy)
        copy.seek(0)
        yield cast("BinaryIO", copy)


@contextmanager
def from_here(stream: BinaryIO, place: int) -> Iterator[BinaryIO]:
    """The stream, from a place that it was at before."""
    stream.seek(place)
    yield stream


_COPIES: dict[object, tuple[object, Any]] = {}
"""Path of a pipe, or identity of a `sys.stdin`, to that source and the copy of what came out of it."""


def _readable_again(path: Path) -> Path:
    """A path that can be opened any number of times: a copy, where this one gives its bytes once."""
    is_stdin = str(path) == STDIN
    if not is_stdin and not path.is_fifo():
        refuse_device(path)
        return path
    if is_stdin and sys.stdin is None:
        raise OSError(errno.EBADF, "standard input is closed")
    source, key = (sys.stdin, id(sys.stdin)) if is_stdin else (path, str(path))
    if key not in _COPIES:
        with standard_input() if is_stdin else opened_pipe(path) as (first, rest):
            _COPIES[key] = source, copy_of(first, rest)
    return Path(_COPIES[key][1].name)


def _limited(unpacked: Any, packed: BinaryIO) -> io.BufferedReader:
    """What a packed file unpacks to, as long as that is in proportion to its size."""
    return io.BufferedReader(_LimitedReader(unpacked, os.fstat(packed.fileno()).st_size), 1 << 16)


class _LimitedReader(io.RawIOBase):
    """Unpacked bytes, up to MAX_RATIO times the packed ones."""

    def __init__(self, unpacked: Any, n_packed: int) -> None:
        self._unpacked = unpacked
        self._left = max(FREE_BYTES, MAX_RATIO * n_packed)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        """Fill a buffer with what comes next."""
        n: int = self._unpacked.readinto(buffer)
        self._left -= n
        if self._left < 0:
            raise ExpandingError
        return n


class _ZstdReader(io.RawIOBase):
    """What Zstandard frames unpack to, one after the other."""

    def __init__(self, packed: BinaryIO, name: str) -> None:
        self._packed = packed
        _, self._frames, self._errors = _zstd(name)
        self._frame: Any = None
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        """Fill a buffer with what comes next; 0 at the end of the last frame."""
        while not self._ready:
            data = self._packed.read(ZSTD_STEP)
            if not data:
                if self._frame is not None:
                    raise DamagedZstdError
                return 0
            self._ready = memoryview(self._unpack(data))
        n = min(len(buffer), len(self._ready))
        buffer[:n] = self._ready[:n]
        self._ready = self._ready[n:]
        return n

    def _unpack(self, data: bytes) -> bytes:
        parts: list[bytes] = []
        try:
            while data:
                if self._frame is None:
                    self._frame = self._frames()
                parts.append(self._frame.decompress(data))
                data = b""
                if self._frame.eof:
                    data, self._frame = self._frame.unused_data, None
        except self._errors as cause:
            raise DamagedZstdError from cause
        return b"".join(parts)


def _zstd(name: str) -> tuple[Callable[[bytes], bytes], Callable[[], Any], type[Exception]]:
    """What packs bytes as Zstandard, what unpacks a frame, and its error: Python's own from 3.14 on, or `zstandard`."""
    try:
        from compression import zstd  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        pass
    else:
        return zstd.compress, zstd.ZstdDecompressor, zstd.ZstdError
    try:
        import zstandard
    except ImportError:
        raise MissingExtraError.for_extra(f"{name}: zst", "zst") from None
    pack = zstandard.ZstdCompressor().compress
    return pack, lambda: zstandard.ZstdDecompressor().decompressobj(), zstandard.ZstdError


def read_bytes(path: Path, error: type[CranfieldError]) -> bytes:
    """All bytes of a file, unpacked where it is packed; see `opened`."""
    with opened(path, error) as stream:
        return stream.read()


def decode(data: bytes, path: Path, error: type[CranfieldError]) -> str:
    """Bytes as UTF-8 text, without a byte order mark; the first bad byte is named by its offset and line."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as cause:
        # The codec counts from behind a byte order mark, and hands back the bytes that it counted in.
        offset = cause.start + len(data) - len(cause.object)
        raise error(
            Problem(
                f"not UTF-8: byte 0x{data[offset]:02x} at offset {offset}",
                path=shown(path),
                line=data.count(b"\n", 0, offset) + 1,
                hint="save the file as UTF-8",
            )
        ) from None


def write_text(
    path: Path, parts: Iterable[str], *, errors: str = "strict", root: Path | None = None, private: bool = False
) -> None:
    """Write text as UTF-8 so that a reader sees the old file or the new one, never a part of it.

    Args:
        path: replaced at the end; its folder must exist.
        parts: joined as they come; line ends are written as they are.
        errors: how Python encodes what is no Unicode: `surrogateescape` gives bytes back, `surrogatepass` keeps them.
        root: as of `write_bytes`.
        private: as of `write_bytes`.
    """
    write_bytes(path, (part.encode("utf-8", errors) for part in parts), root=root, private=private)


def write_bytes(
    path: Path,
    parts: Iterable[bytes],
    *,
    root: Path | None = None,
    private: bool = False,
    keep: bool = True,
    is_workbook: bool = False,
) -> None:
    """Write bytes as `write_text` writes text: all of them or none; packed where the name ends in `.gz` or `.zst`.

    A link that the user names stays one: what it leads to is replaced. Below `root` links are refused.

    Args:
        path: replaced at the end.
        parts: joined as they come.
        root: a folder of the user's below which the names are ours; missing folders are made there. None: the user named
            the file.
        private: the file, and folders that are made for it, are for their owner alone.
        keep: return when the file would survive a power cut; off for what can be made again.
        is_workbook: the bytes are an Excel workbook, which may have the suffix of one.

    Raises:
        UsageError: it is a device or a pipe, which nothing replaces, or a link below `root`.
        OSError: the system would not take it.
        MissingExtraError: it is to be Zstandard, and no library is there to pack it.
    """
    if suffix_of(path) in READ_ONLY and not is_workbook:
        expected = "a file name with another extension, such as .csv or .json"
        raise UsageError(f"not written: {suffix_of(path)} files are read only", path=str(path), expected=expected)
    target = Path(os.path.realpath(path)) if root is None else path
    if root is None and target.exists() and not (target.is_file() or target.is_dir()):
        raise UsageError("a device or a pipe cannot be replaced", path=str(path), expected="a file")
    if found := _PACKED.search(path.name):
        packer = _gzip if found[1].lower() == "gz" else _zstd(shown(path))[0]
        parts = [packer(b"".join(parts))]
    make = None if root is None else PRIVATE_FOLDER if private else 0o777
    try:
        with folder_inside(target.parent if root is None else root, target.parent, make=make) as folder:
            if root is not None:
                with suppress(FileNotFoundError):
                    folder.check(target.name)
            _replace(target.name, folder, parts, PRIVATE_FILE if private else 0o666, keep=keep)
    except OSError as error:
        error.filename, error.filename2 = str(path), None  # it has names without their folder
        raise


def _replace(name: str, folder: Folder, parts: Iterable[bytes], mode: int, *, keep: bool) -> None:
    """Write a file of an open folder under another name, and give it its own at the end."""
    temporary = _part_name(name)
    handle = folder.create(temporary, mode)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.writelines(parts)
            if keep:
                stream.flush()
                flush(handle)
        folder.replace(temporary, folder, name)
    except BaseException:
        with suppress(FileNotFoundError):
            folder.unlink(temporary)
        raise
    if keep:
        folder.flush()


@contextmanager
def new_part(path: Path) -> Iterator[Path]:
    """A new empty file beside another, for a library that writes to a path; it takes the name of the other at the end.

    It has a random name, so that no link can be put in its place before. Where an error leaves the block, it is removed.
    """
    part = path.with_name(_part_name(path.name))
    os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_LINK, 0o666))
    try:
        yield part
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def remove_parts(folder: Path, names: str) -> None:
    """Remove what `new_part` and `write_bytes` left in a folder when their process was killed.

    Args:
        folder: that nothing else is writing to.
        names: of the whole files, as a pattern: `queries-*.parquet`.
    """
    for path in folder.glob(f".{names}.{'[0-9a-f]' * 16}.part"):
        path.unlink(missing_ok=True)


def _part_name(name: str) -> str:
    return f".{name[:40]}.{os.urandom(8).hex()}.part"


def _gzip(data: bytes) -> bytes:
    """The same bytes give the same file, whenever and under whatever name it is written."""
    return gzip.compress(data, mtime=0)


@contextmanager
def path_lock(path: Path, *, wait: bool = True) -> Iterator[None]:
    """Lock a folder or a file against other processes that lock it; the lock ends with the process.

    Where there are no locks, nothing is locked.

    Raises:
        BlockingIOError: another process holds the lock, and `wait` is off.
    """
    if missing(LOCKS):
        yield
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        try:
            lock(handle, wait=wait)
        except BlockingIOError:
            raise
        except OSError:
            pass  # a file system without locks
        yield
    finally:
        os.close(handle)


def lock(handle: int, *, wait: bool = True) -> None:
    """Lock an open file, as `path_lock` does, until it is closed; an error of the system is raised."""
    if sys.platform != "win32":
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
