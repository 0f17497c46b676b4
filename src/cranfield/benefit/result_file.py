"""Files of results in a folder: `benefit_v1.0.json`, `benefit_v1.1.json`."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import ValidationError

from cranfield.base.errors import InputError, Problem
from cranfield.benefit.result import BenefitResult
from cranfield.formats.io.delimited import FileVersion, file_versions
from cranfield.formats.io.files import read_bytes, shown, write_text

RESULT = "benefit"
"""Begins their names."""


def read_result(path: Path) -> BenefitResult:
    """Read a result.

    Raises:
        InputError: the file is none, with what does not fit.
    """
    try:
        return BenefitResult.model_validate_json(read_bytes(path, InputError))
    except ValidationError as error:
        problems = []
        for each in error.errors(include_url=False, include_input=False)[:5]:
            text = f"{'.'.join(map(str, each['loc']))}: {each['msg'].removeprefix('Value error, ')}".lstrip(": ")
            problems.append(Problem(f"not a result of an experiment: {text}", path=shown(path)))
        raise InputError(problems) from None


def write_result(result: BenefitResult, folder: Path) -> Path:
    """Write a result under its version: that of the same run where the folder has it; else the next one.

    Raises:
        InputError: a result of the folder is damaged.
    """
    known = {version: read_result(path) for version, path in file_versions(folder, RESULT).items()}
    version = next((version for version, other in known.items() if other.run == result.run), None)
    if version is None:
        version = _next(result, known)
    path = folder / version.file_name(RESULT)
    record = result.model_copy(update={"version": str(version)}).model_dump(mode="json")
    folder.mkdir(parents=True, exist_ok=True)
    write_text(path, [json.dumps(record, ensure_ascii=True, indent=1, allow_nan=False) + "\n"])
    return path


def _next(result: BenefitResult, known: dict[FileVersion, BenefitResult]) -> FileVersion:
    same = [version.major for version, other in known.items() if other.plan_digest == result.plan_digest]
    if not same:
        return FileVersion(max((version.major for version in known), default=0) + 1, 0)
    minors = [version.minor for version in known if version.major == same[-1]]
    return FileVersion(same[-1], max(minors) + 1)
