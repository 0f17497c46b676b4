"""Run tests of code that nothing is known of: in bubblewrap, without network, on a read-only file system, within limits.

Without bubblewrap, or where the system allows no namespaces, nothing is run.
"""

from __future__ import annotations

import secrets
import shutil
import sys
from pathlib import Path

from cranfield.codecheck.deprecations import is_older
from cranfield.codecheck.python.ty import CheckerError, Output, run_limited

_SECONDS, _BYTES = 30, 2 << 30
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/localtime", "/etc/alternatives")
_CODE, _TESTS = "/code", "/tests"
_SCRATCH = "/" + "tmp"


async def run_tests(code: Path, tests: str, python: str, *, seconds: int = _SECONDS, program: str = "") -> str:
    """Why the tests of the files in `code` fail, run with a Python; empty: they pass.

    Raises:
        CheckerError: there is no bubblewrap that works here.
    """
    program = program or shutil.which("bwrap") or ""
    if not program:
        raise CheckerError("tests are not run, because bubblewrap (bwrap) is not installed")
    folder = code.parent / "tests"
    folder.mkdir()
    (folder / "tests.py").write_bytes(tests.encode("utf-8", "surrogatepass"))
    shutil.copy(Path(__file__).with_name("driver.py"), folder)
    start = [*_sandbox(program, code, folder, python), python, "-I", "-S", "-B"]
    empty = await run_limited([*start, "-c", ""], cwd=folder, seconds=_SECONDS, n_bytes=_BYTES)
    if empty.status != 0:
        raise CheckerError(f"tests are not run, because bubblewrap does not work here: {empty.describe()}")
    token = secrets.token_hex(16)
    argv = [*start, f"{_TESTS}/driver.py", _CODE, f"{_TESTS}/tests.py", token]
    output = await run_limited(argv, cwd=folder, seconds=seconds, n_bytes=_BYTES)
    return "" if _passed(output, token) else _reason(output)


def _passed(output: Output, token: str) -> bool:
    return output.status == 0 and output.stdout.decode("utf-8", "replace").rstrip("\n").endswith(f"\n{token}")


def _reason(output: Output) -> str:
    return "the program ended before its tests" if output.status == 0 else output.describe()


def find_python(version: str) -> str:
    """Path of a Python of a version, or of this one where that is newer; empty: there is none."""
    this = ".".join(map(str, sys.version_info[:2]))
    found = sys.executable if version == this else shutil.which(f"python{version}")
    if not found and is_older(version, this):
        found = sys.executable
    return str(Path(found).resolve()) if found else ""


def _sandbox(program: str, code: Path, tests: Path, python: str) -> list[str]:
    options = [program, "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--clearenv"]
    read = {place: place for place in (*_SYSTEM, str(Path(python).parents[1]))}
    for inside, outside in (read | {_CODE: str(code), _TESTS: str(tests)}).items():
        options += ["--ro-bind-try", outside, inside]
    options += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", _SCRATCH, "--chdir", _SCRATCH]
    for name, value in (("PATH", "/usr/bin:/bin"), ("HOME", _SCRATCH), ("LANG", "C.UTF-8")):
        options += ["--setenv", name, value]
    return options
