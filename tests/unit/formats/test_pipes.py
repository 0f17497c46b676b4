"""Input without an end is refused; pipes are read however slow they are."""

import io
import os
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from cranfield.base.errors import InputError
from cranfield.formats.io import files
from cranfield.formats.io.files import read_bytes


@pytest.fixture(autouse=True)
def no_copies(monkeypatch):
    monkeypatch.setattr(files, "_COPIES", {})


@pytest.fixture
def pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    return tmp_path / "pipe"


@pytest.fixture
def writing():
    threads = []

    def start(write):
        threads.append(threading.Thread(target=write))
        threads[-1].start()

    yield start
    for thread in threads:
        thread.join()


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/urandom", "/dev/full", "/dev/tty", "/dev/ptmx"])
def test_a_device_is_refused(device):
    if not Path(device).exists():
        pytest.skip("no such device")
    with pytest.raises(InputError) as raised:
        read_bytes(Path(device), InputError)
    assert str(raised.value) == f"{device}: this is a device; expected a file, or a pipe that ends."


def test_the_empty_device_is_an_empty_file():
    assert read_bytes(Path(os.devnull), InputError) == b""


def test_a_link_to_a_device_is_refused(tmp_path):
    (tmp_path / "run.trec").symlink_to("/dev/zero")
    with pytest.raises(InputError, match="this is a device"):
        read_bytes(tmp_path / "run.trec", InputError)


def test_standard_input_from_a_device_is_refused(monkeypatch):
    with Path("/dev/zero").open("rb") as device:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(device))
        with pytest.raises(InputError, match="<stdin>: this is a device"):
            read_bytes(Path("-"), InputError)


def test_a_named_pipe_that_nobody_writes_is_refused(pipe, monkeypatch):
    monkeypatch.setattr(files, "WRITER_S", 0.05)
    with pytest.raises(InputError, match=r"no program opened this pipe for writing in 0\.05 s"):
        read_bytes(pipe, InputError)


def test_a_program_that_writes_slowly_is_waited_for(pipe, writing, monkeypatch):
    monkeypatch.setattr(files, "WRITER_S", 0.1)
    is_opened = threading.Event()

    def write():
        with pipe.open("wb", buffering=0) as stream:
            is_opened.set()
            threading.Event().wait(0.3)  # longer than for a program that opens it
            stream.write(b"slow ")
            threading.Event().wait(0.05)
            stream.write(b"bytes")

    writing(write)
    assert read_bytes(pipe, InputError) == b"slow bytes"


@pytest.mark.parametrize("data", [b"", b"x", b"y" * 200_000], ids=["none", "one", "more than a pipe holds"])
def test_a_pipe_of_the_shell_is_read(writing, data):
    reader, writer = os.pipe()

    def write():
        with os.fdopen(writer, "wb") as stream:
            stream.write(data)

    writing(write)
    try:
        assert read_bytes(Path(f"/dev/fd/{reader}"), InputError) == data
    finally:
        os.close(reader)


def test_a_pipe_without_an_end_is_refused(pipe, writing, monkeypatch):
    monkeypatch.setattr(files, "MAX_PIPE_BYTES", 100_000)

    def write():
        with suppress(BrokenPipeError), pipe.open("wb", buffering=0) as stream:
            while True:
                stream.write(b"y\n" * 1000)

    writing(write)
    with pytest.raises(InputError, match="was read from this pipe; expected an end"):
        read_bytes(pipe, InputError)
