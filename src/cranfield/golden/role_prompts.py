"""The prompts of the roles: files of the package, and those that a user puts in their place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args

from pydantic import BaseModel, Field

from cranfield.agents.prompt import Prompt
from cranfield.base.errors import ConfigError, Problem, ProblemList, unknown_name
from cranfield.formats.io.validation import load_model
from cranfield.golden.records import Difficulty, Filled, GoldenModel, PromptUsed, TaskType

NAMES = (*(f"author-{each}" for each in get_args(TaskType)), "oracle", "adversary", "narrative", "checker")
"""Names of all prompts."""
VERSIONS: Mapping[str, int] = dict.fromkeys(NAMES, 1)
"""Version of the package's file of each prompt that is used."""
_COMMON, _RULES = "author-common-1", "@@rules@@"


class AuthorRules(GoldenModel):
    """What the prompt of one author has of its own."""

    name: Filled
    version: Annotated[int, Field(ge=1)]
    rules: Filled


class AuthorFrame(GoldenModel):
    """What the prompts of all authors share."""

    system: Filled
    user: Filled


@dataclass(frozen=True, slots=True)
class PromptPart:
    """Material in a message, between delimiters."""

    name: str
    title: str
    text: str


@dataclass(frozen=True)
class RolePrompts:
    """The prompt of every role, by its name."""

    prompts: Mapping[str, Prompt]

    @classmethod
    def load(cls, folder: Path | None = None) -> RolePrompts:
        """The prompts of the package, and in their place those of a folder.

        Args:
            folder: of YAML files with `name`, `version`, `system` and `user`, one for each prompt to replace.

        Raises:
            ConfigError: with every problem of the folder.
        """
        own = {name: _own(name) for name in NAMES}
        return cls(own if folder is None else {**own, **_replaced(folder)})

    def get(self, name: str) -> Prompt:
        """The prompt of a name."""
        return self.prompts[name]

    def used(self, name: str) -> PromptUsed:
        """For the provenance of a record."""
        prompt = self.prompts[name]
        return PromptUsed(label=prompt.label, digest=prompt.digest)


@cache
def _own(name: str) -> Prompt:
    file = f"{name}-{VERSIONS[name]}"
    if not name.startswith("author-"):
        return _shipped(file, Prompt)
    frame, own = _shipped(_COMMON, AuthorFrame), _shipped(file, AuthorRules)
    system = frame.system.replace(_RULES, own.rules.strip())
    return Prompt(name=own.name, version=own.version, system=system, user=frame.user)


_Model = TypeVar("_Model", bound=BaseModel)


def _shipped(file: str, model: type[_Model]) -> _Model:
    with as_file(files(__package__) / "prompts" / f"{file}.yaml") as path:
        return load_model(path, model, ConfigError)


def _replaced(folder: Path) -> dict[str, Prompt]:
    problems = ProblemList(ConfigError)
    found: dict[str, Prompt] = {}
    if not folder.is_dir():
        raise ConfigError("prompt folder not found", path=str(folder))
    for path in sorted(folder.glob("*.yaml")):
        try:
            prompt = load_model(path, Prompt, ConfigError)
        except ConfigError as error:
            problems.problems.extend(error.problems)
            continue
        problem = _problem(prompt, path)
        if prompt.name in found:
            problem = Problem(f"the folder has two prompts with the name {prompt.name}", path=str(path))
        if problem is None:
            found[prompt.name] = prompt
        else:
            problems.problems.append(problem)
    problems.raise_if_any()
    if not found:
        raise ConfigError("the folder has no prompts", path=str(folder), expected="files that end in .yaml")
    return found


def _problem(prompt: Prompt, path: Path) -> Problem | None:
    """Why a prompt cannot be used: its name, or a template that cannot be filled."""
    from jinja2 import TemplateError

    if prompt.name not in NAMES:
        return unknown_name("prompt", prompt.name, NAMES, path=str(path))
    try:
        filled = [prompt.fill(example) for example in EXAMPLES[prompt.name.partition("-")[0]]]
    except TemplateError as error:
        return Problem(f"a template of the prompt cannot be filled: {error}", path=str(path))
    if all(_PART.text in user and user.count(_NONCE) >= 2 and _PART.text not in system for system, user in filled):
        return None
    return Problem(
        "the prompt does not put the material between delimiters in the user's message",
        path=str(path),
        expected="every part of `parts` between two lines with `nonce`, as in the prompts of the package",
    )


_NONCE, _PART = "0" * 24, PromptPart("question", "The question:", "material-of-an-example")
_ALWAYS: Mapping[str, Any] = {"parts": [_PART], "nonce": _NONCE}
_AUTHOR = {**_ALWAYS, "task_type": "review", "target_kind": "entities", "rule": "entities: 1", "n_others": 0}
_ORACLE = {
    **_ALWAYS,
    "task_type": "review",
    "has_history": True,
    "must_mention": "3 to 8",
    "must_not_mention": "1 to 3",
    "narrative_words": "80 to 250",
}
EXAMPLES: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "author": [{**_AUTHOR, "difficulty": each} for each in get_args(Difficulty)],
    "oracle": [{**_ORACLE, "difficulty": each} for each in get_args(Difficulty)],
    "adversary": [{**_ALWAYS, "task_type": "review", "n_claims": 1, "has_history": True}],
    "narrative": [_ALWAYS],
    "checker": [{**_ALWAYS, "grades": [{"value": "1", "meaning": "they answer"}]}],
}
"""All values that the templates of a prompt are filled with, by the first word of its name."""
