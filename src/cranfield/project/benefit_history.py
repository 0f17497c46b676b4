"""The history of experiments: a line for every result, in `.cranfield/benefit.jsonl` of the folder of results.

Void results have their line too, and are marked. git ignores the history and not the results: those without a line, as in another
clone, are read from their files.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from cranfield.agents.record_folder import now
from cranfield.benefit.history import BenefitHistory, DamagedLine, PastResult, PastStratum
from cranfield.benefit.result import BenefitResult
from cranfield.benefit.result_file import RESULT, read_result
from cranfield.errors import UsageError
from cranfield.formats.io.files import refusal
from cranfield.formats.io.own_folder import read_inside
from cranfield.formats.io.versions import file_versions
from cranfield.project.history import append
from cranfield.project.history_files import FOLDER
from cranfield.repo.git import standing

FILE = "benefit.jsonl"


def remember_result(result: BenefitResult, path: Path) -> str | None:
    """Append a result to the history of its folder.

    Args:
        result: as it was written.
        path: of its file.

    Returns:
        Why it was not written; None where it was. The file of the result matters more.
    """
    try:
        where = standing(path.parent)
        past = _past_of(
            result,
            path,
            time=now(),
            git_commit=None if where is None else where.commit,
            dirty=where is not None and where.dirty,
        )
        append(path.parent, past, file=FILE)
    except UsageError as error:
        return f"the history was not written: {error}"
    return None


def _past_of(result: BenefitResult, path: Path, *, time: str, **fields: Any) -> PastResult:
    return PastResult(
        time=time,
        file=path.name,
        strata=tuple(
            PastStratum.model_validate(each.model_dump(include=set(PastStratum.model_fields))) for each in result.strata
        ),
        is_void=result.is_void,
        uncommitted=result.tree.uncommitted,
        arms={role.value: name for role, name in result.arms.items()},
        **result.model_dump(include={"name", "run", "version", "plan_digest", "labels_digest", "commit", "sentence"}),
        **fields,
    )


def read_results(folder: Path) -> BenefitHistory:
    """Read the history of a folder of results, and the results that have no line in it, in the order of their times.

    Raises:
        UsageError: the history cannot be read.
        InputError: a result without a line is damaged.
    """
    history = _read_lines(folder)
    known = {past.file for past in history.results}
    without = [path for path in file_versions(folder, RESULT).values() if path.name not in known]
    if not without:
        return history
    results = [(read_result(path), path) for path in without]
    found = [_past_of(result, path, time=result.made_at or "unknown") for result, path in results]
    return replace(history, results=tuple(sorted((*history.results, *found), key=lambda past: past.time)))


def _read_lines(folder: Path) -> BenefitHistory:
    path = folder / FOLDER / FILE
    try:
        text = read_inside(folder, path)
    except FileNotFoundError:
        return BenefitHistory()
    except OSError as error:
        raise UsageError(refusal(path, error)) from error
    found: dict[str, PastResult] = {}
    damaged: list[DamagedLine] = []
    for number, line in enumerate(text.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            past = PastResult.model_validate_json(line)
            found.pop(past.run, None)
            found[past.run] = past
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            damaged.append(DamagedLine(number, f"{'.'.join(map(str, first['loc']))}: {first['msg']}".lstrip(": ")))
    return BenefitHistory(results=tuple(found.values()), damaged=tuple(damaged))
