"""Opening and replacing files, with every refusal of the system said as a Problem.

What is inside a file is the business of the module named after its format.
"""

from __future__ import annotations

import gzip
import io
import os
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Literal, overload

from cranfield.errors import CranfieldError, Problem

GZIP_MAGIC = b"\x1f\x8b"


def refusal(path: Path, error: OSError | EOFError | zlib.error) -> Problem:
    """Say why the system would not give or take a file."""
    where = str(path)
    if isinstance(error, FileNotFoundError):
        return Problem("no such file", path=where)
    if isinstance(error, IsADirectoryError):
        return Problem("this is a folder", path=where, expected="a file")
    if isinstance(error, PermissionError):
        return Problem("permission denied", path=where)
    if isinstance(error, (gzip.BadGzipFile, EOFError, zlib.error)):
        return Problem("the gzip data are damaged or cut short", path=where)
    return Problem((error.strerror or str(error)).lower(), path=where)


@contextmanager
def opened(path: Path, error: type[CranfieldError]) -> Iterator[BinaryIO]:
    """Open a file for reading bytes, unpacking gzip where its first bytes say so.

    Raises:
        CranfieldError: of type `error`, when the file is missing, a folder, unreadable or damaged gzip.
    """
    try:
        with path.open("rb") as stream:
            magic = stream.read(len(GZIP_MAGIC))
            stream.seek(0)
            if magic == GZIP_MAGIC:
                with gzip.GzipFile(fileobj=stream) as unpacked, io.BufferedReader(unpacked) as buffered:
                    yield buffered
            else:
                yield stream
    except (OSError, EOFError, zlib.error) as cause:
        raise error(refusal(path, cause)) from cause


def read_bytes(path: Path, error: type[CranfieldError]) -> bytes:
    """All bytes of a file, unpacked where it is gzip."""
    with opened(path, error) as stream:
        return stream.read()


@overload
def decode(data: bytes, path: Path, error: type[CranfieldError]) -> str: ...
@overload
def decode(data: bytes, path: Path, error: type[CranfieldError], *, errors: Literal["surrogatepass"]) -> str: ...
def decode(data: bytes, path: Path, error: type[CranfieldError], *, errors: str = "strict") -> str:
    """Bytes as UTF-8 text, without a byte order mark; the first bad byte is named by its offset and line."""
    try:
        return data.decode("utf-8-sig", errors)
    except UnicodeDecodeError as cause:
        # The codec counts from behind a byte order mark, and hands back the bytes that it counted in.
        offset = cause.start + len(data) - len(cause.object)
        raise error(
            Problem(
                f"not UTF-8: byte 0x{data[offset]:02x} at offset {offset}",
                path=str(path),
                line=data.count(b"\n", 0, offset) + 1,
                hint="save the file as UTF-8",
            )
        ) from None


def write_text(path: Path, parts: Iterable[str], *, errors: str = "strict") -> None:
    """Write text as UTF-8 so that a reader sees the old file or the new one, never a part of it.

    Args:
        path: replaced at the end; its folder must exist.
        parts: joined as they come; line ends are written as they are.
        errors: how Python encodes what is no Unicode: `surrogateescape` gives bytes back, `surrogatepass` keeps them.
    """
    write_bytes(path, (part.encode("utf-8", errors) for part in parts))


def write_bytes(path: Path, parts: Iterable[bytes]) -> None:
    """Write bytes as `write_text` writes text: all of them or none."""
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name[:100]}.", suffix=".part", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.writelines(parts)
        Path(temporary).chmod(_default_mode())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _default_mode() -> int:
    """Mode an ordinary new file would have; temporary files are private."""
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
