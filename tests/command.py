"""Run a command line of cranfield in this process, which starts in no time."""

from __future__ import annotations

import io
import os
import subprocess
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from unittest import mock


def call(*arguments: str | Path, folder: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    """`call("gate", "--from", "out")`, in a folder and with variables beside those of this process."""
    from cranfield.cli.main import run_command_line

    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", "backslashreplace", newline="") for _ in range(2))
    with chdir(folder or "."), mock.patch.dict(os.environ, environment), redirect_stdout(out), redirect_stderr(err):
        status = run_command_line([str(argument) for argument in arguments])
    printed = []
    for stream in (out, err):
        stream.flush()
        printed.append(stream.buffer.getvalue().decode())  # type: ignore[attr-defined]  # a BytesIO
    return subprocess.CompletedProcess(arguments, status, *printed)
