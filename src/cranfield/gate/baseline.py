"""The baseline: what a system scored once, accepted by a person and committed beside the config.

A file of JSON for people to read and to diff: keys sorted, one query a line. Nothing but `cranfield baseline accept`
writes it, and no run ever takes its own result for one. It is read strictly: with every problem, each with its line.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from cranfield.base.errors import InputError, Problem, ProblemList, UsageError, shorten
from cranfield.base.version import __version__
from cranfield.base.words import join_first
from cranfield.evaluation.values import Evaluation
from cranfield.formats.io.files import decode, read_bytes, shown, write_text
from cranfield.formats.io.located import Located, located_text
from cranfield.formats.io.tree import Unreadable
from cranfield.formats.io.validation import validate
from cranfield.gate.decimals import exact, mean
from cranfield.measures import CATALOGUE
from cranfield.measures.catalogue import is_composed
from cranfield.model import Outcome, Predicate, TestSet
from cranfield.repo.git import GitError, commit_of, git

VERSION = 1
MEAN_DECIMALS = 6
"""Means are in the file for people; what is compared are the values."""
ACCEPT = "cranfield baseline accept"
BY_HAND = f"do not edit or merge a baseline by hand: take one side as a whole, or create it again with `{ACCEPT}`"


@dataclass(frozen=True)
class Baseline:
    """What is in the file."""

    system: str
    config_digest: str
    """Digest of the system's config; empty where a run file did not state it."""
    testset: str
    testset_version: str
    testset_digest: str
    convention: str
    k: int
    measures: tuple[str, ...]
    """Sorted."""
    values: Mapping[str, tuple[float | None, ...]]
    """Query id to its values, in the order of `measures`; None where it has none."""
    outcomes: Mapping[str, str]
    accepted: str
    """ISO date."""
    commit: str
    """Commit of the repository when it was accepted; empty outside of one."""
    reason: str
    cranfield: str = __version__
    answers_digest: str = ""
    """Digest of the answers of databases to the predicates of the test set, which its own digest leaves out; empty
    without any."""
    depth: int | None = None
    """Results of each query that were looked at; None: all."""
    added: tuple[str, ...] = ()
    """Queries that were added to the test set since; it has no values of them."""

    def values_of(self, measure: str) -> Mapping[str, float]:
        """Query id to value, of the queries that have one."""
        if measure not in self.measures:
            return {}
        column = self.measures.index(measure)
        return {query_id: value for query_id, row in self.values.items() if (value := row[column]) is not None}

    def mean_of(self, measure: str) -> float | None:
        """The mean of its values; None where there is none."""
        values = self.values_of(measure)
        return float(mean([exact(value) for value in values.values()])) if values else None


HEAD = ("accepted", "commit", "config_digest", "convention", "cranfield", "k", "measures", "reason", "system")
"""Fields that stand in the file as they are."""


def baseline_of(
    evaluation: Evaluation, *, k: int, accepted: str, commit: str, reason: str, config_digest: str
) -> Baseline:
    """An evaluation as a baseline: every measure that is averaged over queries."""
    measures = {
        measure.canonical: measure for measure in evaluation.measures if CATALOGUE[measure.name].aggregate == "mean"
    }
    names = tuple(sorted(measures))
    outcomes = dict(zip(evaluation.query_ids, (outcome.value for outcome in evaluation.ranking.outcomes), strict=True))
    return Baseline(
        system=evaluation.name,
        config_digest=config_digest,
        testset=evaluation.testset.name,
        testset_version=evaluation.testset.version,
        testset_digest=evaluation.testset.digest,
        convention=evaluation.ranking.convention.name,
        k=k,
        measures=names,
        values={
            query_id: tuple(evaluation.value(measures[name], query_id) for name in names)
            for query_id in sorted(evaluation.query_ids)
        },
        outcomes=outcomes,
        accepted=accepted,
        commit=commit,
        reason=reason,
        answers_digest=answers_digest(evaluation.testset),
        depth=depth_of(evaluation),
    )


def depth_of(evaluation: Evaluation) -> int | None:
    """Results of each query that an evaluation looks at; None: all."""
    depth = evaluation.reading.get("depth")
    return depth if isinstance(depth, int) else None


def answers_digest(testset: TestSet) -> str:
    """SHA-256 over the documents that databases named for each predicate; empty for a test set without any."""
    answers = {
        query_id: [sorted(target.ids or ()) for target in targets if isinstance(target, Predicate)]
        for query_id, targets in testset.targets.items()
    }
    answered = {query_id: answer for query_id, answer in answers.items() if answer}
    return "sha256:" + sha256(_json(answered).encode("utf-8", "surrogatepass")).hexdigest() if answered else ""


def baseline_text(baseline: Baseline) -> str:
    """The file: the same baseline gives the same bytes."""
    head = _head(baseline)
    head["digest"] = baseline_digest(baseline)
    lines = [f"  {_json(key)}: {_json(value)}," for key, value in sorted(head.items())]
    queries = [f"    {_json(query_id)}: {_json(_record(baseline, query_id))}" for query_id in sorted(baseline.values)]
    return "{\n" + "\n".join(lines) + '\n  "queries": {\n' + ",\n".join(queries) + "\n  }\n}\n"


def write_baseline(baseline: Baseline, path: Path) -> None:
    """Write the file; a reader sees the old one or the new one, never a part."""
    write_text(path, [baseline_text(baseline)], errors="surrogatepass")


def read_baseline(path: Path) -> Baseline:
    """Read the file.

    Raises:
        InputError: with all that is wrong with it, each with its line.
    """
    if not path.exists():
        hint = f"create a baseline from an inspected run with `{ACCEPT}`, and commit it"
        raise InputError("no baseline found", path=shown(path), hint=hint)
    return parse_baseline(decode(read_bytes(path, InputError), path, InputError), shown(path))


def parse_baseline(text: str, name: str) -> Baseline:
    """The text of a file as a baseline; `name` is what problems call the file. Raises as `read_baseline`."""
    try:
        located = located_text(text, Path(name), is_json=True)
    except Unreadable as unreadable:
        raise InputError([replace(problem, path=name) for problem in unreadable.problems]) from None
    problems = ProblemList(InputError)
    model = validate(located, _File, problems)
    if model is not None:
        problems.problems += _inconsistent(located, model)
    problems.raise_if_any()
    if model is None:
        raise InputError("not a baseline", path=name)
    baseline = model.content()
    if _head(baseline)["means"] != model.means:
        raise InputError(replace(located.problem("the means do not match the values", ("means",)), hint=BY_HAND))
    if baseline_digest(baseline) != model.digest:
        line, column = located.mark(("digest",))
        what = "the content has changed since it was accepted: its digest differs"
        raise InputError(what, path=name, line=line, column=column, hint=BY_HAND)
    return baseline


def with_added(baseline: Baseline, testset: TestSet) -> Baseline:
    """A baseline as one of a test set to which queries were added since; unchanged where something else changed.

    The digest of the others, by which this is known, covers their texts and judgments. Rules compare the queries of both.
    """
    old = tuple(query for query in testset.queries if query.id in baseline.values)
    if len(old) < len(baseline.values) or replace(testset, queries=old).digest != baseline.testset_digest:
        return baseline
    added = tuple(query_id for query_id in testset.query_ids if query_id not in baseline.values)
    return replace(baseline, testset_digest=testset.digest, added=added)


def misfits(
    baseline: Baseline, evaluation: Evaluation, *, k: int, measures: Sequence[str], name: str
) -> tuple[Problem, ...]:
    """Why a baseline is of another experiment than this evaluation, and cannot be held against it; nothing where it can."""
    testset = evaluation.testset
    facts = {
        "test set": (_short(baseline.testset_digest), _short(testset.digest)),
        "set of database answers": (_short(baseline.answers_digest), _short(answers_digest(testset))),
        "convention": (baseline.convention, evaluation.ranking.convention.name),
        "k": (str(baseline.k), str(k)),
        "depth": (_depth_text(baseline.depth), _depth_text(depth_of(evaluation))),
    }
    problems = [
        Problem(f"the baseline has a different {what}", path=name, expected=now, got=before)
        for what, (before, now) in facts.items()
        if before != now
    ]
    absent = [measure for measure in measures if measure not in baseline.measures]
    if absent:
        listed = ", ".join(baseline.measures)
        problems.append(Problem(f"the baseline has no {', '.join(absent)}", path=name, got=listed))
    sums = [measure for measure in measures if is_composed(measure)] if baseline.added else []
    if sums:
        what = (
            f"the baseline lacks queries of this test set ({join_first(baseline.added)}), by whose number the values of"
        )
        problems.append(Problem(f"{what} {', '.join(sums)} are weighted", path=name))
    hint = f"inspect the new results, then accept them: `{ACCEPT}`"
    return tuple(replace(problem, hint=hint) for problem in problems)


def _depth_text(depth: int | None) -> str:
    return "all results" if depth is None else str(depth)


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class _Query(_Strict):
    outcome: str
    values: dict[str, float | None]


class _TestSet(_Strict):
    answers: str
    digest: str
    name: str
    version: str


class _File(_Strict):
    """The keys of the file."""

    accepted: str = Field(pattern=r"^\d{4}-\d\d-\d\d$")
    version: Literal[1] = Field(alias="cranfield_baseline")
    commit: str
    config_digest: str
    convention: str
    cranfield: str
    depth: int | None = Field(default=None, ge=1)
    digest: str
    k: int = Field(ge=1)
    means: dict[str, float | None]
    measures: list[str] = Field(min_length=1)
    queries: dict[str, _Query] = Field(min_length=1)
    reason: str
    system: str
    testset: _TestSet

    def content(self) -> Baseline:
        return Baseline(
            system=self.system,
            config_digest=self.config_digest,
            testset=self.testset.name,
            testset_version=self.testset.version,
            testset_digest=self.testset.digest,
            convention=self.convention,
            k=self.k,
            measures=tuple(self.measures),
            values={
                query_id: tuple(query.values[measure] for measure in self.measures)
                for query_id, query in self.queries.items()
            },
            outcomes={query_id: query.outcome for query_id, query in self.queries.items()},
            accepted=self.accepted,
            commit=self.commit,
            reason=self.reason,
            cranfield=self.cranfield,
            answers_digest=self.testset.answers,
            depth=self.depth,
        )


def _inconsistent(located: Located, model: _File) -> list[Problem]:
    """What the types alone do not tell."""
    problems = []
    if sorted(set(model.measures)) != model.measures:
        problems.append(located.problem("measures are not sorted, or occur twice", ("measures",)))
    outcomes = {outcome.value for outcome in Outcome}
    for query_id, query in model.queries.items():
        place = ("queries", query_id)
        if set(query.values) != set(model.measures):
            expected, got = ", ".join(model.measures), ", ".join(sorted(query.values)) or "none"
            problems.append(located.problem(f"values of query {query_id!r}", place, expected=expected, got=got))
        if query.outcome not in outcomes:
            expected = " or ".join(sorted(outcomes))
            problems.append(
                located.problem(f"outcome of query {query_id!r}", place, expected=expected, got=query.outcome[:80])
            )
    return problems


def _head(baseline: Baseline) -> dict[str, Any]:
    means = {measure: baseline.mean_of(measure) for measure in baseline.measures}
    return {
        **{name: getattr(baseline, name) for name in HEAD},
        "testset": {
            "answers": baseline.answers_digest,
            "digest": baseline.testset_digest,
            "name": baseline.testset,
            "version": baseline.testset_version,
        },
        **({"depth": baseline.depth} if baseline.depth is not None else {}),
        "cranfield_baseline": VERSION,
        "means": {name: None if value is None else round(value, MEAN_DECIMALS) for name, value in means.items()},
    }


def _record(baseline: Baseline, query_id: str) -> dict[str, Any]:
    values = dict(zip(baseline.measures, baseline.values[query_id], strict=True))
    return {"outcome": baseline.outcomes[query_id], "values": values}


def baseline_digest(baseline: Baseline) -> str:
    """SHA-256 over everything that counts, and the means shown to people."""
    queries = {query_id: _record(baseline, query_id) for query_id in baseline.values}
    text = _json({**_head(baseline), "queries": queries})
    return "sha256:" + sha256(b"cranfield baseline 1\n" + text.encode("utf-8", "surrogatepass")).hexdigest()


def _json(value: object) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False)


def _short(digest: str) -> str:
    return digest[:19]


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
    # Refuse a name of several refs: git prefers a tag to a branch, and a local branch to a remote one.
    places = [f"refs/{kind}/{name}" for kind in ("tags", "heads", "remotes")]
    listed = git(top, "for-each-ref", "--format=%(refname)", *places).decode("utf-8", "replace").split("\n")
    found = [place for place in places if place in listed]
    if len(found) > 1:
        raise UsageError(
            f"{len(found)} refs have the name {shorten(name)}",
            got=", ".join(sorted(found)),
            hint=f"say which: {found[-1]}",
        )
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
