"""Run tests beside the code that they test: `driver.py FOLDER TESTS PACKAGES...` writes the token of its stdin when the tests have passed.

Started as a script in a sandbox. A program that ends early, or whose code under test ends it, writes no token. The token is in no
argument or file that this code could read.
"""

from __future__ import annotations

import functools
import os
import runpy
import sys
import traceback

PROCESSES = 64


def limit_processes() -> None:
    """Limit how many processes there are."""
    if sys.platform == "win32":
        return
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_NPROC)
    most = PROCESSES if hard == resource.RLIM_INFINITY else min(PROCESSES, hard)
    resource.setrlimit(resource.RLIMIT_NPROC, (most, most))


def main() -> None:
    """Run the tests."""
    folder, tests, *packages = sys.argv[1:]
    tell_end = functools.partial(os.write, 1, b"\n" + os.read(0, 100).strip() + b"\n")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.argv = [tests]
    sys.path[:] = [folder, *sys.path, *packages]
    limit_processes()
    try:
        runpy.run_path(tests, run_name="__main__")
    except SystemExit as error:  # as unittest.main ends
        frames = traceback.extract_tb(error.__traceback__)
        if error.code or any(frame.filename.startswith(f"{folder}/") for frame in frames):
            raise
    sys.stdout.flush()
    tell_end()


if __name__ == "__main__":
    main()
