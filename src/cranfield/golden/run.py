"""A run from its plan: the checks before it, its folder, and the pipeline over its models."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from cranfield.errors import ConfigError
from cranfield.golden.models import shared_model_problems
from cranfield.golden.plan import Plan
from cranfield.golden.plan_check import check_plan
from cranfield.repo.snapshot import Snapshot, take


def source_snapshot(repo: Path, at: str | None = None) -> Snapshot:
    """The files of a commit, by default of HEAD; without git, of the folder as it stands.

    Raises:
        UsageError: there is no such folder or commit.
    """
    if at is not None:
        return take(repo, at)
    folder = take(repo)
    return take(repo, folder.commit) if folder.commit else folder


def snapshot_digest(snapshot: Snapshot) -> str:
    """SHA-256 of the paths and contents of all files."""
    digest = sha256()
    for path, data in snapshot.each():
        digest.update(f"{path}\0{sha256(data).hexdigest()}\n".encode("utf-8", "surrogateescape"))
    return f"sha256:{digest.hexdigest()}"


def require_valid(plan: Plan, snapshot: Snapshot) -> None:
    """Refuse a plan that cannot be run.

    Raises:
        ConfigError: with every problem.
    """
    problems = [*check_plan(plan, snapshot), *shared_model_problems(plan)]
    if problems:
        raise ConfigError(problems)
