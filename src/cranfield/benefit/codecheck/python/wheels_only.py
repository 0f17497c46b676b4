"""Run pip so that it builds nothing: `wheels_only.py PIP_RUNNER ARGUMENT...`.

`--only-binary` holds for packages of an index alone: a wheel, a setting or a variable may name a source by its address, and
pip runs its code to build it. Here every program of Python that pip starts is refused; a wheel needs none.
Started as a script. Only the standard library and pip are imported.
"""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Sequence

REFUSED = "a package has no wheel: only wheels are installed, because a build runs code of the package"
_OF_VERSION = "-sS"
"""First argument of the one program that is no build: on macOS it tells the version of the system."""


def refuse_builds(event: str, arguments: Sequence[object]) -> None:
    """An audit hook."""
    if event in {"os.exec", "os.posix_spawn", "os.system"}:
        raise _refusal()
    if event == "subprocess.Popen" and isinstance(arguments[1], list | tuple):
        first, *rest = map(str, arguments[1])
        programs = {os.path.realpath(str(each)) for each in (arguments[0], first)}
        if os.path.realpath(sys.executable) in programs and rest[:1] != [_OF_VERSION]:
            raise _refusal()


def _refusal() -> Exception:
    """What pip reports in a line, without a traceback."""
    known = sys.modules.get("pip._internal.exceptions")
    kind: type[Exception] = getattr(known, "InstallationError", RuntimeError)
    return kind(REFUSED)


def main() -> None:
    """Run pip."""
    del sys.argv[0]
    sys.addaudithook(refuse_builds)
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
