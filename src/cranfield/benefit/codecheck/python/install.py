"""Packages of a target, installed into a folder of their own: once for the same requirements and the same Python.

Only wheels are installed, because building a package runs its code: `wheels_only.py` holds for whatever a wheel, a variable or
a setting of pip names. What is installed is not run here.
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import platform
import re
import shutil
import sys
import tempfile
from asyncio import timeout
from collections.abc import Mapping, Sequence
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from cranfield.base.concurrency.child_process import NotStartedError, TooMuchOutputError, child_process, exit_reason
from cranfield.benefit.codecheck.python.environment import Environment
from cranfield.benefit.codecheck.python.packages import requirement_fault, without_passwords
from cranfield.benefit.codecheck.python.sandbox import find_python
from cranfield.benefit.codecheck.python.ty import RUNNING, CheckerError

PACKAGES_VARIABLE = "CRANFIELD_PACKAGES_DIR"
"""Where packages are kept, in the place of the folder of caches."""
_SECONDS = 900
_PLAIN = re.compile(r"\d+(\.\d+)*")
_SIGNS = re.compile(r"^(error:|[\s×╰─▶])*", re.IGNORECASE)
"""Before a line of an installer's report."""
_REASON_CHARS = 600
_MAX_ALONE = 20
"""Requirements that are tried one by one after a failure, to find all that cannot be installed."""

_RETRY_S = 60.0
"""From a failure until it is tried again."""

_installing: dict[tuple[asyncio.AbstractEventLoop, Path], tuple[asyncio.Task[Path], float]] = {}
"""Installations by event loop and folder, with the time of their beginning; those of a closed loop are forgotten."""


def requirement_lines(packages: Mapping[str, str]) -> tuple[str, ...]:
    """Packages as lines of a requirements file: `2.3` is any 2.3.x."""
    return tuple(
        f"{name}=={version}.*" if _PLAIN.fullmatch(version) else f"{name}=={version}" if version else name
        for name, version in packages.items()
    )


async def installed_environment(requirements: Sequence[str], version: str) -> Environment:
    """The packages of requirements, for a version of Python.

    Args:
        requirements: lines of a requirements file.
        version: of Python.

    Raises:
        CheckerError: a requirement cannot be installed; the message says which, and why.
    """
    if faults := [f"{without_passwords(line)}: {fault}" for line in requirements if (fault := requirement_fault(line))]:
        raise CheckerError(f"packages cannot be installed: {'; '.join(faults)}")
    given = json.dumps([*requirements, version, sys.platform, platform.machine()])
    folder = _packages_folder() / sha256(given.encode()).hexdigest()[:32]
    if not folder.is_dir():
        loop = asyncio.get_running_loop()
        for ended in [key for key in _installing if key[0].is_closed()]:
            del _installing[ended]
        key = loop, folder
        task, began = _installing.get(key, (None, 0.0))
        if task is None or task.cancelled() or (task.done() and loop.time() > began + _RETRY_S):
            task = asyncio.create_task(_install(requirements, version, folder))
            _installing[key] = task, loop.time()
        await asyncio.shield(task)
    return Environment(folder, version=version, python=find_python(version))


def _packages_folder() -> Path:
    if named := os.environ.get(PACKAGES_VARIABLE):
        return Path(named).absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(base) if base else Path.home() / ".cache") / "cranfield" / "packages"
    except RuntimeError:
        raise CheckerError(f"there is no home directory for packages: set {PACKAGES_VARIABLE}") from None


async def _install(requirements: Sequence[str], version: str, folder: Path) -> Path:
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix="new-") as temporary:
            new = Path(temporary) / "packages"
            new.mkdir()
            if reason := await _run(requirements, version, new):
                failed = await _all_that_fail(requirements, version, new) if len(requirements) > 1 else []
                raise CheckerError(f"packages cannot be installed: {'; '.join(failed) or reason}")
            new.rename(folder)
    except OSError as error:
        if error.errno in {errno.ENOTEMPTY, errno.EEXIST}:  # another process was faster
            return folder
        raise CheckerError(f"packages cannot be installed in {folder.parent}: {error.strerror}") from None
    return folder


async def _all_that_fail(requirements: Sequence[str], version: str, folder: Path) -> list[str]:
    """The requirements that cannot be installed even alone, each with the reason."""
    tried = [line for line in requirements if not line.startswith("-")][:_MAX_ALONE]
    options = [line for line in requirements if line.startswith("-")]
    reasons = [await _run([*options, line], version, folder, is_trial=True) for line in tried]
    found = [f"{line.split()[0]}: {reason}" for line, reason in zip(tried, reasons, strict=True) if reason]
    n_left = len(requirements) - len(options) - len(tried)
    return [*found, f"{n_left} more requirements were not tried individually"] if found and n_left else found


async def _run(requirements: Sequence[str], version: str, folder: Path, *, is_trial: bool = False) -> str:
    """Why the installer failed; empty: it did not."""
    file = folder.parent / "requirements.txt"
    file.write_text("\n".join([*requirements, ""]), encoding="utf-8")
    argv = [*_installer(version), "--only-binary", ":all:", "--target", str(folder), "-r", str(file)]
    argv += ["--dry-run", "--no-deps"] if is_trial else []
    # The user's, with mirrors and certificates; without the variable by which pip starts itself with another Python.
    env = {name: value for name, value in os.environ.items() if name != "PIP_PYTHON"}
    try:
        async with child_process(argv, cwd=folder.parent, env=env) as child, timeout(_SECONDS):
            status = await child.run()
            output = child.stderr_from(0)
    except TimeoutError:
        return f"time limit of {_SECONDS} s exceeded"
    except (NotStartedError, TooMuchOutputError) as error:
        return str(error)
    return _reason(output, status) if status else ""


def _installer(version: str) -> list[str]:
    """The program that installs, with the options of the Python that it installs for."""
    if pip := _pip():
        python = find_python(version)
        runs = sys.executable if version == RUNNING or not python else python
        of_version = [] if python else ["--python-version", version]
        script = str(Path(__file__).with_name("wheels_only.py"))
        start = [runs, "-I", script, pip, "install", *of_version]
        return [*start, "--no-input", "--disable-pip-version-check", "--quiet"]
    if uv := shutil.which("uv"):
        return [uv, "pip", "install", "--python-version", version, "--quiet"]
    raise CheckerError(
        "packages cannot be installed: neither pip nor uv is available; declare an `environment` with the packages"
    )


def _pip() -> str:
    """Path of the script by which any Python runs the pip of this environment; empty: there is none."""
    try:
        runner = Path(str(distribution("pip").locate_file("pip/__pip-runner__.py")))
    except PackageNotFoundError:
        return ""
    return str(runner) if runner.is_file() else ""


def _reason(output: str, status: int) -> str:
    """What the installer says of its failure."""
    lines = [line for line in output.splitlines() if line.strip() and not line.startswith(("WARNING", "hint:"))]
    first = next((number for number, line in enumerate(lines) if line[:6].lower() == "error:"), max(0, len(lines) - 3))
    return " ".join(_SIGNS.sub("", line) for line in lines[first:])[:_REASON_CHARS] or exit_reason(status)
