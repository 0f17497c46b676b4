"""Coding tasks: a prompt, the platform that the code must run on, and the checks that decide success.

A file of tasks is YAML or JSON. A reference solution shows that a task can be solved, and a trap that its checks find what
they are there for. `benefit.tasks` turns them into tasks of an experiment, and `codecheck` runs the checks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import sha256
from importlib.resources import as_file, files
from importlib.resources.abc import Traversable
from pathlib import Path, PurePosixPath
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from cranfield.base.errors import ConfigError, Problem, ProblemList, UnknownNameError
from cranfield.base.words import join_first
from cranfield.benefit.codecheck.python.packages import (
    read_requirements,
    required_packages,
    requirement_fault,
    without_passwords,
)
from cranfield.benefit.codecheck.report import CodeCheck, Target
from cranfield.formats.io.located import Located, load_located
from cranfield.formats.io.tree import Loc
from cranfield.formats.io.validation import ClosedModel, Filled, validate
from cranfield.model.kinds import Text

SHIPPED = "package:"
"""Begins the source of a file that ships with Cranfield."""
_MECHANICAL = (CodeCheck.COMPILES, CodeCheck.SYMBOLS, CodeCheck.AVAILABLE, CodeCheck.NOT_DEPRECATED)

_MAX_NAMED = 40
"""Packages that a prompt names: a lock file has all that those need, too."""


def _inside(path: str) -> str:
    parts = PurePosixPath(path).parts
    if path.startswith("/") or "\\" in path or ".." in parts or not parts:
        raise ValueError("must be a path within the folder of the answer, such as main.py")
    return path


_FilePath = Annotated[Filled, AfterValidator(_inside)]


class TargetSettings(ClosedModel):
    """What the code must run on. What a task leaves out is that of its file."""

    language: str = ""
    """`python`, `typescript`, `swift`, or one whose checker is configured."""
    platform: str = ""
    """`macos`, `linux`, `node`; empty: any."""
    version: Text = ""
    """Version of the platform or the language: `3.11`, `14.0`."""
    packages: Mapping[Filled, Text] = {}
    """Third-party packages that are there, with versions: `2.3` is any 2.3.x. They are installed where nothing else is named."""
    requirements: Filled | tuple[Filled, ...] = ()
    """Python packages that are installed: a file of requirements or a lock file (`pylock.toml`), or their lines."""
    environment: str = ""
    """Folder of an environment of Python that has the packages, or its Python: nothing is installed."""


class Trap(ClosedModel):
    """A wrong answer that looks right: a symbol that does not exist, a deprecated call."""

    fails: CodeCheck
    """The check that must find it."""
    symbol: str = ""
    """That the finding names, or a part of it; empty: any."""
    files: Mapping[_FilePath, str]


class CodingTask(ClosedModel):
    """A task whose answer is code."""

    id: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,59}$")]
    prompt: Filled
    """What a developer asks, without the names that the answer needs."""
    writes: Annotated[tuple[_FilePath, ...], Field(min_length=1)]
    """Files that the answer must have; it may have others."""
    target: TargetSettings = TargetSettings()
    criteria: tuple[CodeCheck, ...] = ()
    """Checks that must pass; empty: compiles, symbols, available and not_deprecated, and tests where there are some."""
    strata: Mapping[Filled, Text] = {}
    """Values by which results are split, such as `task_type: migrate`, `difficulty: easy`."""
    baseline_answerable: bool | None = None
    """Whether an agent without the tool under test can plausibly do it."""
    tests: str = ""
    """Program that is run beside the files of the answer; exit status 0 passes. The agent does not see it."""
    reference: Mapping[_FilePath, str] = {}
    """Files that pass every check."""
    traps: tuple[Trap, ...] = ()
    source: str = ""
    """Where the facts of the task can be looked up."""

    @property
    def checks(self) -> tuple[CodeCheck, ...]:
        """The criteria, written or by default."""
        return self.criteria or (*_MECHANICAL, *([CodeCheck.TESTS] if self.tests else []))

    @property
    def runs_on(self) -> Target:
        """The target as a checker takes it."""
        target = self.target
        lines = (target.requirements,) if isinstance(target.requirements, str) else target.requirements
        return Target(target.language, target.platform, target.version, target.packages, lines, target.environment)

    @property
    def full_prompt(self) -> str:
        """The prompt with the target and the files to write: what the agent of both arms is given."""
        target = self.target
        where = f"{target.platform} {target.version}" if target.platform else f"{target.language} {target.version}"
        named = [f"{name} {version}".strip() for name, version in target.packages.items()]
        packages = join_first(named or required_packages(self.runs_on.requirements), _MAX_NAMED)
        lines = [
            f"{self.prompt.rstrip()}\n",
            f"Language: {target.language}. It must run on {where.strip()}, without deprecated calls.",
            f"Packages besides the standard library: {packages or 'none'}.",
            f"Write: {', '.join(self.writes)}.",
        ]
        return "\n".join(lines)


class CodingFile(ClosedModel):
    """A file of coding tasks."""

    cranfield_coding_tasks: Literal[1]
    name: Filled
    target: TargetSettings
    """Target of all tasks, where a task does not name another one."""
    verified: bool = True
    """Whether a checker has passed every reference and failed every trap."""
    unverified_reason: str = ""
    tasks: Annotated[tuple[CodingTask, ...], Field(min_length=1)]

    @property
    def digest(self) -> str:
        """SHA-256 of what it says, however it is written."""
        return "sha256:" + sha256(self.model_dump_json().encode()).hexdigest()


def load_coding_tasks(source: str, folder: Path) -> CodingFile:
    """Read a file of coding tasks, each with its whole target.

    Args:
        source: path, relative to `folder`, or `package:NAME` of a file that ships with Cranfield.
        folder: of the plan.

    Raises:
        ConfigError: with everything that does not fit, each at its line.
        UnknownNameError: no such file ships with Cranfield.
    """
    if not source.startswith(SHIPPED):
        return _read(folder / source)
    with as_file(_shipped(source.removeprefix(SHIPPED))) as path:
        return _read(path)


def _shipped(name: str) -> Traversable:
    folder = files(__package__) / "coding_tasks"
    shipped = {file.name.removesuffix(".yaml"): file for file in folder.iterdir() if file.name.endswith(".yaml")}
    if name not in shipped:
        raise UnknownNameError.among("file of coding tasks", name, shipped)
    return shipped[name]


def _read(path: Path) -> CodingFile:
    located, problems = load_located(path, ConfigError), ProblemList(ConfigError)
    read = validate(located, CodingFile, problems)
    if read is not None:
        problems.problems += _problems(read, located)
        read = _with_packages(read, located, problems)
    problems.raise_if_any()
    if read is None:
        raise ConfigError("not a file of coding tasks", path=str(path))
    return read.model_copy(update={"tasks": tuple(_with_target(task, read.target) for task in read.tasks)})


def _with_packages(read: CodingFile, located: Located, problems: ProblemList) -> CodingFile:
    """The file with the lines of its files of requirements, and whole paths of environments."""
    target = _resolved(read.target, located, ("target",), problems)
    tasks = [
        task.model_copy(update={"target": _resolved(task.target, located, ("tasks", position, "target"), problems)})
        for position, task in enumerate(read.tasks)
    ]
    return read.model_copy(update={"target": target, "tasks": tuple(tasks)})


def _resolved(target: TargetSettings, located: Located, here: Loc, problems: ProblemList) -> TargetSettings:
    folder, found = located.path.parent, dict[str, object]()
    if target.environment:
        found["environment"] = str(folder.resolve() / target.environment)
        if not target.packages:
            expected = "the packages in the prompt, such as {numpy: '2.3'}"
            problem = located.problem("`environment` without `packages`", (*here, "environment"), expected=expected)
            problems.problems.append(problem)
        if target.requirements:
            problems.problems.append(located.problem("give either `environment` or `requirements`, not both", here))
    if isinstance(target.requirements, str):
        try:
            found["requirements"] = read_requirements(folder / target.requirements)
        except ConfigError as error:
            problems.problems += error.problems
    else:
        for index, line in enumerate(target.requirements):
            if fault := requirement_fault(line):
                problems.problems.append(
                    located.problem(fault, (*here, "requirements", index), got=without_passwords(line))
                )
    return target.model_copy(update=found)


def _with_target(task: CodingTask, target: TargetSettings) -> CodingTask:
    own = {name: getattr(task.target, name) for name in task.target.model_fields_set}
    return task.model_copy(update={"target": target.model_copy(update=own)})


def _problems(read: CodingFile, located: Located) -> Iterator[Problem]:
    """What does not fit together."""
    if not read.verified and not read.unverified_reason.strip():
        yield located.problem("`verified: false` requires `unverified_reason`", ("verified",))
    if not read.target.language:
        yield located.problem("`target` has no language", ("target",), expected="such as python")
    strata, ids = set(read.tasks[0].strata), set[str]()
    for position, task in enumerate(read.tasks):
        here = ("tasks", position)
        if task.id in ids:
            yield located.problem(f"task {task.id} occurs twice", (*here, "id"))
        ids.add(task.id)
        if set(task.strata) != strata:
            names = ", ".join(sorted(strata)) or "none"
            yield located.problem(
                f"task {task.id}: strata differ from those of the first task", (*here, "strata"), expected=names
            )
        if CodeCheck.TESTS in task.criteria and not task.tests.strip():
            yield located.problem(f"task {task.id}: its criteria include tests, but it has none", (*here, "criteria"))
        if task.reference and (missing := [path for path in task.writes if path not in task.reference]):
            message = f"task {task.id}: the reference lacks {', '.join(missing)}"
            yield located.problem(message, (*here, "reference"))
        for index, trap in enumerate(task.traps):
            if trap.fails not in task.checks:
                message = f"task {task.id}: a trap fails {trap.fails}, which is not a criterion of the task"
                yield located.problem(message, (*here, "traps", index, "fails"))
