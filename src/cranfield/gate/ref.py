"""Read a file from a git ref, which a pull request cannot change.

Git is called by its program, without a shell; a ref is resolved to a commit first, and a path may not lead out of the
repository.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from cranfield.base.errors import UsageError, shorten
from cranfield.repo.git import GitError, commit_of, git


@dataclass(frozen=True, slots=True)
class Ref:
    """A commit of the repository that a folder is in."""

    name: str
    """As the user named it: `origin/main`."""
    commit: str
    top: Path
    """Folder of the repository."""

    def shown(self, path: Path) -> str:
        """Name of a file in messages: `origin/main:eval/cranfield.yaml`."""
        return f"{self.name}:{self._inside(path)}"

    def read(self, path: Path, *, hint: str) -> bytes:
        """The content of a file at this commit.

        Args:
            path: in the working tree.
            hint: the next step where the commit has no such file.

        Raises:
            UsageError: it leads out of the repository, or the commit has no such file.
        """
        inside = self._inside(path)
        place = f"{self.commit}:{inside}"
        try:
            is_file = git(self.top, "cat-file", "-t", place, fetches=True).strip() == b"blob"
        except GitError:
            is_file = False
        if not is_file:
            raise UsageError(f"file not found in {self.name}", path=inside, hint=hint)
        try:
            return git(self.top, "cat-file", "blob", place, fetches=True)
        except GitError as error:
            raise UsageError(f"git cannot read it from {self.name}", path=inside, got=str(error)) from None

    def _inside(self, path: Path) -> str:
        # Not resolved inside of the repository: a link in the working tree must not choose what is read.
        # Of folders that are the top, the outermost: a link inside may lead back to it.
        full = Path(os.path.normpath(path.absolute()))
        tops = [folder for folder in full.parents if Path(os.path.realpath(folder)) == self.top]
        if not tops:
            raise UsageError("the file is outside the repository", path=str(path), expected="a file tracked by git")
        return full.relative_to(tops[-1]).as_posix()


def ref_named(name: str, folder: Path) -> Ref:
    """Look a ref up in the repository that a folder is in.

    Raises:
        UsageError: there is no repository, or no such ref, or more than one; or the folder is in a repository of its own
            within the one that the process stands in.
    """
    try:
        top = _top(folder)
    except GitError as error:
        raise UsageError(
            f"a baseline ref requires a git repository: {error}", path=str(folder), got=f"the ref {name}"
        ) from None
    _require_own(folder, top)
    is_name = name.isprintable() and not name.startswith("-") and ":" not in name
    try:
        commit = commit_of(top, name) if name and is_name else ""
    except GitError:
        commit = ""
    if not commit:
        remote, slash, branch = name.partition("/")
        fetch = f"git fetch {remote} {branch}" if slash and branch else "git fetch"
        hint = f"fetch it first: `{fetch}`; actions/checkout fetches only one commit unless fetch-depth: 0 is set"
        raise UsageError(f"git ref {shorten(name)} not found", hint=hint)
    _require_unique(name, top)
    _require_no_new_submodule(name, top)
    return Ref(name, commit, top)


def _top(folder: Path) -> Path:
    return Path(os.fsdecode(git(folder, "rev-parse", "--show-toplevel").rstrip(b"\n")))


def _require_own(folder: Path, top: Path) -> None:
    """Refuse a submodule, or a link to another repository: a change could add one with its own refs."""
    try:
        here = _top(Path())
    except GitError:
        return
    full = Path(os.path.normpath(folder.absolute()))
    if here != top and any(Path(os.path.realpath(path)) == here for path in (full, *full.parents)):
        raise UsageError(
            "the config is in a nested repository, but refs are resolved in the outer one",
            path=str(folder),
            expected=str(here),
            got=str(top),
            hint="to use the refs of the nested repository, run the command inside it",
        )


def _require_no_new_submodule(name: str, top: Path) -> None:
    """Refuse a submodule that is a folder of files in the ref of the repository around it: a change made it one."""
    around = git(top, "rev-parse", "--show-superproject-working-tree").rstrip(b"\n")
    if not around:
        return
    outer = Path(os.fsdecode(around))
    inside = Path(os.path.relpath(top, outer)).as_posix()
    with suppress(GitError):  # the ref, or the folder, is not there
        if git(outer, "cat-file", "-t", f"{commit_of(outer, name)}:{inside}").strip() == b"tree":
            raise UsageError(
                f"the folder is a submodule here, but an ordinary folder in {shorten(name)} of the outer repository",
                path=str(top),
                expected=f"the repository of {outer}",
                hint="merge the change to a submodule first, checked by a gate without a baseline ref",
            )


def _require_unique(name: str, top: Path) -> None:
    """Refuse a name of several refs: git prefers a tag to a branch, and a local branch to a remote one."""
    places = [f"refs/{kind}/{name}" for kind in ("tags", "heads", "remotes")]
    listed = git(top, "for-each-ref", "--format=%(refname)", *places).decode("utf-8", "replace").split("\n")
    found = [place for place in places if place in listed]
    if len(found) > 1:
        raise UsageError(
            f"{len(found)} refs have the name {shorten(name)}",
            got=", ".join(sorted(found)),
            hint=f"say which: {found[-1]}",
        )
