"""Run tests beside the code that they test: `driver.py FOLDER TESTS TOKEN` writes the token when the tests have passed.

Started as a script in a sandbox. A program that ends early, or whose code under test ends it, writes no token.
"""

from __future__ import annotations

import runpy
import sys
import traceback

PROCESSES = 64


def limit_processes() -> None:
    """Limit how many processes there are."""
    try:
        import resource
    except ImportError:  # not on this platform
        return
    _, hard = resource.getrlimit(resource.RLIMIT_NPROC)
    most = PROCESSES if hard == resource.RLIM_INFINITY else min(PROCESSES, hard)
    resource.setrlimit(resource.RLIMIT_NPROC, (most, most))


def main() -> None:
    """Run the tests."""
    folder, tests, token = sys.argv[1:]
    sys.argv = [tests]
    sys.path.insert(0, folder)
    limit_processes()
    try:
        runpy.run_path(tests, run_name="__main__")
    except SystemExit as error:  # as unittest.main ends
        frames = traceback.extract_tb(error.__traceback__)
        if error.code or any(frame.filename.startswith(f"{folder}/") for frame in frames):
            raise
    sys.stdout.write(f"\n{token}\n")


if __name__ == "__main__":
    main()
