"""Programs that tests run as npm has them: installed once in a checkout, in the versions and digests of a lock file."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
from pathlib import Path

import pytest

PACKAGES = Path(__file__).parents[1] / ".venv"


def node_modules(package: Path) -> Path:
    """The folder of the installed packages; the test is skipped where npm cannot install them.

    Args:
        package: folder of `package.json` and `package-lock.json`.
    """
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    folder = PACKAGES / f"npm-{package.name}"
    lock, done = (package / "package-lock.json").read_bytes(), folder / "installed.json"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)  # tests run in several processes
        if not done.exists() or done.read_bytes() != lock:
            shutil.copytree(package, folder, dirs_exist_ok=True)
            command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
            npm = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
            if npm.returncode:
                lines = [line for line in npm.stderr.splitlines() if "error" in line]
                pytest.skip(f"npm does not install {package.name} here: {' '.join(lines[:2])}")
            done.write_bytes(lock)
    return folder / "node_modules"
