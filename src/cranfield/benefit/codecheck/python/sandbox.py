"""Run code that nothing is known of: in bubblewrap, without network, on a read-only file system, within limits.

Without bubblewrap, or where the system allows no namespaces, nothing is run.
"""

from __future__ import annotations

import secrets
import shutil
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from cranfield.benefit.codecheck.python.environment import PACKAGES, Environment
from cranfield.benefit.codecheck.python.ty import RUNNING, CheckerError, OutputError, ProgramOutput, run_limited

_SECONDS, _BYTES, _PROCESSES = 30, 2 << 30, 64
_FILE_BYTES = 256 << 20
"""Most bytes of temporary files, which are in memory."""
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/localtime", "/etc/alternatives")
_CODE, _TESTS, _DEVICES = "/code", "/tests", "/dev"
_SCRATCH = "/" + "tmp"
_VARIABLES = {
    "PATH": "/usr/bin:/bin",
    "HOME": _SCRATCH,
    "LANG": "C.UTF-8",
    "OMP_NUM_THREADS": "1",  # each thread takes address space
    "OPENBLAS_NUM_THREADS": "1",
}


async def run_tests(
    code: Path, tests: str, python: str, environment: Environment, *, seconds: int = _SECONDS, program: str = ""
) -> str:
    """Why the tests of the files in `code` fail, run with a Python and the packages of an environment; empty: they pass.

    Raises:
        CheckerError: there is no bubblewrap that works here.
    """
    folder = code.parent / "tests"
    folder.mkdir()
    (folder / "tests.py").write_bytes(tests.encode("utf-8", "surrogatepass"))
    shutil.copy(Path(__file__).with_name("driver.py"), folder)
    start = await sandboxed_python(python, {_CODE: code, _TESTS: folder, **environment.inside}, folder, program)
    token = secrets.token_hex(16)
    argv = [*start, f"{_TESTS}/driver.py", _CODE, f"{_TESTS}/tests.py", *PACKAGES]
    try:
        output = await run_limited(
            argv, cwd=folder, seconds=seconds, n_bytes=_BYTES, n_processes=_PROCESSES, line=token
        )
    except OutputError:
        return "the program wrote too much"
    return "" if _passed(output, token) else _reason(output)


async def sandboxed_python(python: str, folders: Mapping[str, Path], cwd: Path, program: str = "") -> list[str]:
    """The command that runs a script with a Python in bubblewrap.

    Args:
        python: that runs it.
        folders: that it can read, by their paths in the sandbox.
        cwd: in which bubblewrap is started.
        program: path of bubblewrap; default: the one on the path.

    Raises:
        CheckerError: there is none that works here.
    """
    program = program or shutil.which("bwrap") or ""
    if not program:
        raise CheckerError("bubblewrap (bwrap) is not installed")
    options = [program, "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--clearenv"]
    prefix = str(Path(python).parents[1])
    read = {place: place for place in (*_SYSTEM, *([] if prefix == "/" else [prefix]))}
    for inside, outside in (read | {inside: str(path) for inside, path in folders.items()}).items():
        options += ["--ro-bind-try", outside, inside]
    options += ["--proc", "/proc", "--dev", _DEVICES]
    for place in (_SCRATCH, f"{_DEVICES}/shm"):
        options += ["--size", str(_FILE_BYTES), "--tmpfs", place]
    options += ["--remount-ro", _DEVICES, "--remount-ro", "/", "--chdir", _SCRATCH]
    for name, value in _VARIABLES.items():
        options += ["--setenv", name, value]
    start = [*options, python, "-I", "-S", "-B"]
    empty = await run_limited([*start, "-c", ""], cwd=cwd, seconds=_SECONDS, n_bytes=_BYTES)
    if empty.status != 0:
        raise CheckerError(f"bubblewrap does not work here: {empty.describe()}")
    return start


def _passed(output: ProgramOutput, token: str) -> bool:
    return output.status == 0 and output.stdout.decode("utf-8", "replace").rstrip("\n").endswith(f"\n{token}")


def _reason(output: ProgramOutput) -> str:
    return "the program ended before its tests" if output.status == 0 else output.describe()


@cache
def find_python(version: str) -> str:
    """Path of a Python of a version; empty: there is none that runs."""
    if version == RUNNING:
        return str(Path(sys.executable).resolve())
    found = shutil.which(f"python{version}")
    if not found:
        return ""
    argv = [found, "-I", "-c", "import sys; print(*sys.version_info[:2], sep='.'); print(sys.executable)"]
    try:
        lines = subprocess.run(argv, capture_output=True, text=True, timeout=_SECONDS, check=True).stdout.splitlines()
    except (OSError, subprocess.SubprocessError):  # such as a shim of a version that is not installed
        return ""
    return str(Path(lines[1]).resolve()) if lines[:1] == [version] else ""
