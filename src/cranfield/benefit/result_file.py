"""Files of results in a folder: `benefit_v1.0.json`, `benefit_v1.1.json`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from cranfield.benefit.result import BenefitResult
from cranfield.errors import InputError, Problem
from cranfield.formats.io.files import read_bytes, shown, write_text

_FILE = re.compile(r"benefit_v([1-9]\d{0,5})\.(0|[1-9]\d{0,5})\.json")


class ResultVersion(NamedTuple):
    """A version of a result."""

    major: int
    """Another one for another plan."""
    minor: int
    """Another one for another run of the same plan."""

    def __str__(self) -> str:
        """`1.0`."""
        return f"{self.major}.{self.minor}"

    @property
    def file_name(self) -> str:
        """`benefit_v1.0.json`."""
        return f"benefit_v{self}.json"


def result_versions(folder: Path) -> dict[ResultVersion, Path]:
    """Version to file, in order."""
    names = ((path, _FILE.fullmatch(path.name)) for path in (folder.iterdir() if folder.is_dir() else ()))
    found = {ResultVersion(int(match[1]), int(match[2])): path for path, match in names if match and path.is_file()}
    return dict(sorted(found.items()))


def read_result(path: Path) -> BenefitResult:
    """Read a result.

    Raises:
        InputError: the file is none, with what does not fit.
    """
    try:
        return BenefitResult.model_validate_json(read_bytes(path, InputError))
    except ValidationError as error:
        problems = [
            Problem(
                ": ".join(
                    filter(
                        None,
                        (
                            "not a result of an experiment",
                            ".".join(map(str, each["loc"])),
                            each["msg"].removeprefix("Value error, "),
                        ),
                    )
                ),
                path=shown(path),
            )
            for each in error.errors(include_url=False, include_input=False)[:5]
        ]
        raise InputError(problems) from None


def write_result(result: BenefitResult, folder: Path) -> Path:
    """Write a result under its version: that of the same run where the folder has it; else the next one.

    Raises:
        InputError: a result of the folder is damaged.
    """
    known = {version: read_result(path) for version, path in result_versions(folder).items()}
    version = next((version for version, other in known.items() if other.run == result.run), None)
    if version is None:
        version = _next(result, known)
    path = folder / version.file_name
    record = result.model_copy(update={"version": str(version)}).model_dump(mode="json")
    folder.mkdir(parents=True, exist_ok=True)
    write_text(path, [json.dumps(record, ensure_ascii=True, indent=1, allow_nan=False) + "\n"])
    return path


def baseline_of(result: BenefitResult, folder: Path) -> Path | None:
    """The newest valid result of another run of the same plan; None where there is none. A void one is no baseline."""
    for path in reversed(result_versions(folder).values()):
        other = read_result(path)
        if other.plan_digest == result.plan_digest and other.run != result.run and not other.is_void:
            return path
    return None


def _next(result: BenefitResult, known: dict[ResultVersion, BenefitResult]) -> ResultVersion:
    same = [version.major for version, other in known.items() if other.plan_digest == result.plan_digest]
    if not same:
        return ResultVersion(max((version.major for version in known), default=0) + 1, 0)
    minors = [version.minor for version in known if version.major == same[-1]]
    return ResultVersion(same[-1], max(minors) + 1)
