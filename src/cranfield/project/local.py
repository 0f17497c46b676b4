"""The folder of what is kept on this machine beside a config: answers asked before, the history of evaluations."""

from __future__ import annotations

from pathlib import Path

from cranfield.errors import UsageError
from cranfield.formats.io.files import refusal

FOLDER = ".cranfield"
_IGNORE = ".gitignore"


def local_folder(folder_of_config: Path) -> Path:
    """`.cranfield/` in the folder of a config, made where it is not there; git does not look into it.

    Raises:
        UsageError: it cannot be made.
    """
    folder = folder_of_config / FOLDER
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / _IGNORE).exists():
            (folder / _IGNORE).write_text("*\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(refusal(folder, error)) from error
    return folder
