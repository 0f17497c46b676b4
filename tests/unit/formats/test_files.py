"""Files are opened with their refusals in words, and replaced whole or not at all."""

from __future__ import annotations

import errno
import gzip
import io
import os
import stat
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import zstandard

from cranfield.base.errors import MissingExtraError, RunFormatError, TestSetError, UsageError
from cranfield.formats.io import files
from cranfield.formats.io.files import (
    DamagedZstdError,
    new_part,
    opened,
    read_bytes,
    refusal,
    remove_parts,
    stem,
    write_text,
)
from cranfield.formats.sniff import read_testset, sniff_run
from cranfield.formats.testsets.trec import read_qrels

Pack = Callable[[bytes], bytes]
PACKED = pytest.mark.parametrize("pack", [bytes, gzip.compress, zstandard.compress], ids=["plain", "gzip", "zst"])


def type_in(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    """Have some bytes on standard input."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


@pytest.mark.parametrize(
    ("cause", "expected"),
    [
        (FileNotFoundError(), "a/b: no such file."),
        (IsADirectoryError(), "a/b: this is a folder; expected a file."),
        (PermissionError(), "a/b: permission denied."),
        (gzip.BadGzipFile(), "a/b: the gzip data are damaged or cut short."),
        (EOFError(), "a/b: the gzip data are damaged or cut short."),
        (DamagedZstdError(), "a/b: the Zstandard data are damaged or cut short."),
        (OSError(errno.ENAMETOOLONG, "File name too long"), "a/b: file name too long."),
    ],
)
def test_a_refusal_is_said_in_words(cause: OSError | EOFError, expected: str) -> None:
    assert str(refusal(Path("a/b"), cause)) == expected


def test_a_file_in_no_folder_is_missing(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("x")
    with pytest.raises(RunFormatError, match="not a directory"):
        read_bytes(tmp_path / "f" / "g", RunFormatError)


@PACKED
def test_several_packed_parts_are_one_file(tmp_path: Path, pack: Pack) -> None:
    (tmp_path / "a").write_bytes(pack(b"one\n") + pack(b"two\n"))
    with opened(tmp_path / "a", RunFormatError) as stream:
        assert list(stream) == [b"one\n", b"two\n"]


@pytest.mark.parametrize("data", [b"", b"\x1f", b"\x1f\x8a", b"\x28\xb5\x2f", b"\x28\xb5\x2f\xfe"])
def test_short_files_are_not_taken_for_packed_ones(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a").write_bytes(data)
    assert read_bytes(tmp_path / "a", RunFormatError) == data


@PACKED
def test_a_large_file_is_unpacked_as_it_is_read(tmp_path: Path, pack: Pack) -> None:
    data = os.urandom(300_000) + b"0" * 3_000_000
    (tmp_path / "a").write_bytes(pack(data))
    with opened(tmp_path / "a", RunFormatError) as stream:
        assert stream.read(10) == data[:10]
        assert stream.read(1_000_000) == data[10:1_000_010]
        assert stream.read() == data[1_000_010:]
        assert stream.read() == b""


@pytest.mark.parametrize("at", [1, 4, 5, 12, 100_000])
def test_zst_that_is_cut_short_is_refused_with_its_path(tmp_path: Path, at: int) -> None:
    packed = zstandard.compress(os.urandom(200_000))
    (tmp_path / "a").write_bytes(zstandard.compress(b"whole\n") + packed[:at])
    with pytest.raises(RunFormatError, match=r"a: the Zstandard data are damaged or cut short\.$"):
        read_bytes(tmp_path / "a", RunFormatError)


@pytest.mark.parametrize(
    "damaged",
    [
        zstandard.ZstdCompressor(write_checksum=True).compress(b"one\n")[:-1] + b"\x00",
        zstandard.compress(b"one\n") + b"two\n",
        b"\x28\xb5\x2f\xfd" + b"\xff" * 100,
        # the header of a frame whose window is 2 GiB, more than anybody is asked to make room for
        b"\x28\xb5\x2f\xfd\x00\xa8" + b"\x01\x00\x00",
    ],
    ids=["wrong checksum", "something behind it", "no frame", "a window too large"],
)
def test_damaged_zst_is_refused_with_its_path(tmp_path: Path, damaged: bytes) -> None:
    (tmp_path / "a").write_bytes(damaged)
    with pytest.raises(RunFormatError, match=r"a: the Zstandard data are damaged or cut short\.$"):
        read_bytes(tmp_path / "a", RunFormatError)


def test_a_small_file_that_unpacks_to_a_large_one_is_not_held_in_memory(tmp_path: Path) -> None:
    size = 1 << 30
    compressor = zstandard.ZstdCompressor().compressobj(size=size)
    zeros = bytes(1 << 20)
    with (tmp_path / "a").open("wb") as stream:
        for _ in range(size // len(zeros)):
            stream.write(compressor.compress(zeros))
        stream.write(compressor.flush())
    assert (tmp_path / "a").stat().st_size < 100_000
    tracemalloc.start()
    try:
        with opened(tmp_path / "a", RunFormatError) as stream:
            assert stream.read(100) == bytes(100)
        assert tracemalloc.get_traced_memory()[1] < 100_000_000
    finally:
        tracemalloc.stop()


def test_zst_without_the_library_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_bytes(zstandard.compress(b"x"))
    monkeypatch.setitem(sys.modules, "zstandard", None)
    monkeypatch.setitem(sys.modules, "compression", None)
    with pytest.raises(MissingExtraError) as caught:
        read_bytes(tmp_path / "a", RunFormatError)
    assert str(caught.value).endswith(
        "a: zst needs an extra that is not installed.\nHint: run `pip install 'cranfield[zst]'`."
    )


@PACKED
def test_standard_input_is_a_file_that_can_be_read_again(monkeypatch: pytest.MonkeyPatch, pack: Pack) -> None:
    type_in(monkeypatch, pack(b"one\ntwo\n"))
    assert read_bytes(Path("-"), RunFormatError) == b"one\ntwo\n"
    with opened(Path("-"), RunFormatError) as stream:
        assert stream.readline() == b"one\n"
        assert read_bytes(Path("-"), RunFormatError) == b"one\ntwo\n"
        assert stream.readline() == b"two\n"
    type_in(monkeypatch, b"another")
    assert read_bytes(Path("-"), RunFormatError) == b"another"


def test_standard_input_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(RunFormatError, match=r"^<stdin>: standard input is closed\.$"):
        read_bytes(Path("-"), RunFormatError)


def test_damage_on_standard_input_is_refused_with_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    type_in(monkeypatch, gzip.compress(b"one\n")[:-4])
    with pytest.raises(RunFormatError, match=r"^<stdin>: the gzip data are damaged or cut short\.$"):
        read_bytes(Path("-"), RunFormatError)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("web.2024.qrels", "web.2024"),
        ("web.qrels.gz", "web"),
        ("d/web.qrels.zst", "web"),
        ("web.gz", "web"),
        (".gz", ".gz"),
        ("web", "web"),
        ("-", "stdin"),
    ],
)
def test_a_file_is_called_what_its_name_is_without_endings(path: str, name: str) -> None:
    assert stem(Path(path)) == name


QRELS = b"q1 0 a 1\nq1 0 b 0\n"


@PACKED
def test_qrels_may_be_packed(tmp_path: Path, pack: Pack) -> None:
    (tmp_path / "web.qrels.zst").write_bytes(pack(QRELS))
    for read in (read_qrels, read_testset):
        testset = read(tmp_path / "web.qrels.zst")
        assert (testset.name, testset.grades) == ("web", {"q1": {"a": 1.0, "b": 0.0}})


@PACKED
def test_qrels_may_come_from_standard_input(monkeypatch: pytest.MonkeyPatch, pack: Pack) -> None:
    type_in(monkeypatch, pack(QRELS))
    testset = read_testset("-")
    assert (testset.name, testset.grades) == ("stdin", {"q1": {"a": 1.0, "b": 0.0}})


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (
            b"q1 0 a 1\nq1 0 a 2\n",
            "<stdin>:2: query 'q1', document 'a' is judged twice; expected 1, as on line 1, got 2.",
        ),
        (b"q1 0 a 1\nq1 0 b\n", "<stdin>:2: 3 columns; expected 4: query iteration document grade, got 'q1 0 b'."),
        (b"", "<stdin>: the file is empty; expected "),
        (b"q1 Q0 a 1 1 t\n", "<stdin>: not a test set; expected "),
    ],
    ids=["judged twice", "a short line", "nothing", "a run"],
)
def test_problems_of_standard_input_name_it(monkeypatch: pytest.MonkeyPatch, data: bytes, problem: str) -> None:
    type_in(monkeypatch, data)
    with pytest.raises(TestSetError) as caught:
        read_testset("-")
    assert str(caught.value).startswith(problem)


@PACKED
def test_the_format_of_a_run_is_told_wherever_it_comes_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pack: Pack
) -> None:
    for data, expected in ((b"q1 Q0 a 1 1 t\n", "trec"), (b'{"cranfield_run": 1}\n', "jsonl")):
        (tmp_path / "a").write_bytes(pack(data))
        type_in(monkeypatch, pack(data))
        assert sniff_run(tmp_path / "a").name == sniff_run("-").name == expected


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


def test_a_file_for_a_library_is_new_whole_or_gone(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with new_part(path) as part:
        assert (part.read_bytes(), path.exists()) == (b"", False)
        part.write_bytes(b"all")
    assert path.read_bytes() == b"all"
    with pytest.raises(FileNotFoundError), new_part(path) as part:
        part.with_name("nothing").read_bytes()
    assert (path.read_bytes(), [each.name for each in tmp_path.iterdir()]) == (b"all", ["a.db"])


def test_what_a_killed_process_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    with new_part(tmp_path / "a-1.db") as part, new_part(tmp_path / "b.db") as other:
        (tmp_path / "a-2.db.part").touch()
        remove_parts(tmp_path, "a-*.db")
        assert sorted(each.name for each in tmp_path.iterdir()) == sorted([other.name, "a-2.db.part"])
        part.touch()


def test_a_long_name_is_written(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 250)
    write_text(path, ["x"])
    assert path.read_text() == "x"


def test_a_pipe_may_be_read_more_than_once(tmp_path):
    import os
    import threading

    from cranfield.base.errors import RunFormatError
    from cranfield.formats.io.files import opened

    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    threading.Thread(target=pipe.write_bytes, args=(b"q1 Q0 a 1 2 t\n",), daemon=True).start()
    for _ in range(2):
        with opened(pipe, RunFormatError) as stream:
            assert stream.read() == b"q1 Q0 a 1 2 t\n"


def test_a_link_stays_and_what_it_leads_to_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "away").mkdir()
    (tmp_path / "away/file").write_text("old")
    (tmp_path / "link").symlink_to("away/file")
    write_text(tmp_path / "link", ["new"])
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "away/file").read_text() == "new"
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["away", "file", "link"]


def test_a_folder_that_cannot_be_read_is_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    open_as_root = os.open

    def open_as_user(path: Any, flags: int, *args: Any, **options: Any) -> int:
        if path == tmp_path and not flags & os.O_PATH:
            raise PermissionError(errno.EACCES, "no", str(path))
        return open_as_root(path, flags, *args, **options)

    monkeypatch.setattr(os, "open", open_as_user)
    write_text(tmp_path / "a", ["text"])
    monkeypatch.undo()
    assert (tmp_path / "a").read_text() == "text"


def test_a_pipe_is_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="a device or a pipe cannot be replaced"):
        write_text(tmp_path / "pipe", ["new"])
    assert (tmp_path / "pipe").is_fifo()


def test_a_file_that_unpacks_out_of_proportion_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "FREE_BYTES", 1 << 20)
    path = tmp_path / "a.qrels.gz"
    for n, is_refused in ((1 << 19, False), (1 << 21, True)):
        path.write_bytes(gzip.compress(b"q 0 d 1\n" + b"\n" * n))
        if is_refused:
            with pytest.raises(TestSetError, match="unpacks to more than 250 times its size"):
                read_qrels(path)
        else:
            assert read_qrels(path).query_ids == ("q",)
