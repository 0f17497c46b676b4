"""Where the runs of the last `cranfield run` are: noted next to the config, so that a system's name finds its run."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from cranfield.app.history import FOLDER, local_folder
from cranfield.base.errors import UsageError
from cranfield.formats.io.files import read_inside, write_text
from cranfield.systems.collect.collection import RUNS

FILE = "saved-runs.json"
"""In `.cranfield/`: test set to system to the path of its run, relative to the folder of the config."""
DEFAULT_OUT = "cranfield-out"
"""Output folder of `cranfield run` where none is given."""


def note_runs(folder: Path, testset: str, systems: Iterable[str], out: Path) -> None:
    """Note where the runs of systems were saved. Write errors are ignored: the runs in the default folder are found.

    Args:
        folder: of the config.
        testset: its name; empty where the config has one.
        systems: their names.
        out: output folder of this test set.
    """
    with suppress(OSError, UsageError):
        local_folder(folder)
        places = _read(folder)
        places.setdefault(testset, {}).update(
            {name: _relative(out / RUNS / f"{name}.jsonl", folder) for name in systems}
        )
        text = json.dumps(places, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
        write_text(folder / FOLDER / FILE, [text], root=folder, private=True)


def saved_run(folder: Path, testset: str, system: str) -> Path | None:
    """The run that the last `cranfield run` saved of a system on a test set; None where there is none.

    It is where it was noted; without a note, in the default folder, here or next to the config.

    Args:
        folder: of the config.
        testset: its name; empty where the config has one.
        system: its name.
    """
    noted = _read(folder).get(testset, {}).get(system)
    if isinstance(noted, str) and "\0" not in noted:
        places = [folder / noted]
    else:
        places = [parent / DEFAULT_OUT / testset / RUNS / f"{system}.jsonl" for parent in (Path(), folder)]
    return next((from_here(path) for path in places if path.is_file()), None)


def _read(folder: Path) -> dict[str, dict[str, Any]]:
    """What was noted; nothing where the file is not there, or is another's."""
    with suppress(OSError, ValueError, UsageError):
        found = json.loads(read_inside(folder, folder / FOLDER / FILE))
        if isinstance(found, dict) and all(isinstance(value, dict) for value in found.values()):
            return found
    return {}


def _relative(path: Path, folder: Path) -> str:
    """The path from the folder of the config: a project that is moved finds its runs."""
    absolute = os.path.normpath(path.absolute())
    with suppress(ValueError):  # on Windows: another drive
        return Path(os.path.relpath(absolute, folder)).as_posix()
    return absolute


def from_here(path: Path) -> Path:
    """Relative to the working folder where it is inside."""
    absolute = Path(os.path.normpath(path.absolute()))
    return absolute.relative_to(Path.cwd()) if absolute.is_relative_to(Path.cwd()) else absolute
