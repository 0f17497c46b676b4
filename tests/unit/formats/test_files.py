"""Files are opened with their refusals in words, and replaced whole or not at all."""

from __future__ import annotations

import errno
import gzip
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from cranfield.errors import RunFormatError
from cranfield.formats.files import opened, read_bytes, refusal, write_text


@pytest.mark.parametrize(
    ("cause", "expected"),
    [
        (FileNotFoundError(), "a/b: no such file."),
        (IsADirectoryError(), "a/b: this is a folder; expected a file."),
        (PermissionError(), "a/b: permission denied."),
        (gzip.BadGzipFile(), "a/b: the gzip data are damaged or cut short."),
        (EOFError(), "a/b: the gzip data are damaged or cut short."),
        (OSError(errno.ENAMETOOLONG, "File name too long"), "a/b: file name too long."),
    ],
)
def test_a_refusal_is_said_in_words(cause: OSError | EOFError, expected: str) -> None:
    assert str(refusal(Path("a/b"), cause)) == expected


def test_a_file_in_no_folder_is_missing(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("x")
    with pytest.raises(RunFormatError, match="not a directory"):
        read_bytes(tmp_path / "f" / "g", RunFormatError)


def test_several_packed_parts_are_one_file(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(gzip.compress(b"one\n") + gzip.compress(b"two\n"))
    with opened(tmp_path / "a", RunFormatError) as stream:
        assert list(stream) == [b"one\n", b"two\n"]


@pytest.mark.parametrize("data", [b"", b"\x1f", b"\x1f\x8a"])
def test_short_files_are_not_taken_for_packed_ones(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a").write_bytes(data)
    assert read_bytes(tmp_path / "a", RunFormatError) == data


def test_text_replaces_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("old")
    write_text(path, ["n\u00e9", "w\r\n"])
    assert path.read_bytes() == b"n\xc3\xa9w\r\n"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a"]


def test_a_new_file_has_the_mode_any_new_file_has(tmp_path: Path) -> None:
    (tmp_path / "usual").touch()
    write_text(tmp_path / "a", ["x"])
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == stat.S_IMODE((tmp_path / "usual").stat().st_mode)


def test_a_writer_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("old")

    def parts() -> Iterator[str]:
        yield "new"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_text(path, parts())
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a"]


def test_a_long_name_is_written(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 250)
    write_text(path, ["x"])
    assert path.read_text() == "x"
