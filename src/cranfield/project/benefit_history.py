"""The history of experiments: a line for every result, in `.cranfield/benefit.jsonl` of the folder of results.

Void results have their line too, and are marked.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from cranfield.agents.record_folder import now
from cranfield.benefit.history import BenefitHistory, PastResult, PastStratum
from cranfield.benefit.result import BenefitResult
from cranfield.errors import UsageError
from cranfield.formats.io.files import refusal
from cranfield.formats.io.own_folder import read_inside
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
        past = PastResult(
            time=now(),
            git_commit=None if where is None else where.commit,
            dirty=where is not None and where.dirty,
            file=path.name,
            strata=tuple(
                PastStratum.model_validate(each.model_dump(include=set(PastStratum.model_fields)))
                for each in result.strata
            ),
            is_void=result.is_void,
            arms={role.value: name for role, name in result.arms.items()},
            **result.model_dump(
                include={"name", "run", "version", "plan_digest", "labels_digest", "commit", "sentence"}
            ),
        )
        append(path.parent, past.model_dump(mode="json"), file=FILE)
    except UsageError as error:
        return f"the history was not written: {error}"
    return None


def read_results(folder: Path) -> BenefitHistory:
    """Read the history of a folder of results; empty where there is none.

    Raises:
        UsageError: it cannot be read.
    """
    path = folder / FOLDER / FILE
    try:
        text = read_inside(folder, path)
    except FileNotFoundError:
        return BenefitHistory(())
    except OSError as error:
        raise UsageError(refusal(path, error)) from error
    found: dict[str, PastResult] = {}
    damaged: list[tuple[int, str]] = []
    for number, line in enumerate(text.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            past = PastResult.model_validate_json(line)
            found.pop(past.run, None)
            found[past.run] = past
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            damaged.append((number, f"{'.'.join(map(str, first['loc']))}: {first['msg']}".lstrip(": ")))
    return BenefitHistory(tuple(found.values()), tuple(damaged))
