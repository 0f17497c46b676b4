"""The roles: who writes, answers, attacks, judges and checks; with which prompt, tools and typed output.

Every task is a fresh conversation. What comes from the repository, from a model or from a person stands between delimiters that
it cannot contain, as material and not as instruction.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol, TypeVar, get_args

from pydantic import BaseModel, Field, create_model

from cranfield.agents.loop import AgentTask, NoTools, Prompt, Toolset, clean, nonce
from cranfield.agents.settings import ModelSettings
from cranfield.agents.tools.source import HISTORY_TOOLS, TOOL_NAMES, AllowedTools
from cranfield.base.errors import ConfigError, Problem, ProblemList, unknown_name
from cranfield.formats.io.validation import Filled, load_model
from cranfield.golden.agreement import Claim, claims_of
from cranfield.golden.plan import TargetKind
from cranfield.golden.records import (
    AdversaryDraft,
    AdversaryReport,
    CandidateDraft,
    CitedFact,
    Difficulty,
    GoldenModel,
    NarrativeJudgment,
    OracleAnswer,
    OracleDraft,
    PromptUsed,
    QueryCandidate,
    RowCheck,
    TargetSpan,
    TaskType,
)
from cranfield.golden.rules import MUST_MENTION, MUST_NOT_MENTION, NARRATIVE_WORDS, RULES

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

SOURCE_TOOLS = frozenset(TOOL_NAMES) - HISTORY_TOOLS


class GoldenRole(StrEnum):
    """Who does a step."""

    AUTHOR = "author"
    ORACLE = "oracle"
    ADVERSARY = "adversary"
    JUDGE = "judge"
    """Judge of narratives."""
    CHECKER = "checker"
    """Checker of rows of an existing set."""


@dataclass(frozen=True, slots=True)
class RoleRow:
    """What belongs to a role."""

    prompt: str
    """Its name; of the author, one for each task type begins so."""
    output: type[BaseModel]
    tools: frozenset[str]
    history_for: frozenset[TaskType] = frozenset()
    """Task types for which it also gets the tools over the history."""


_REVIEW: frozenset[TaskType] = frozenset({"review"})
ROLES: Mapping[GoldenRole, RoleRow] = {
    GoldenRole.AUTHOR: RoleRow("author", CandidateDraft, SOURCE_TOOLS),
    GoldenRole.ORACLE: RoleRow("oracle", OracleDraft, SOURCE_TOOLS, _REVIEW),
    GoldenRole.ADVERSARY: RoleRow("adversary", AdversaryDraft, SOURCE_TOOLS, _REVIEW),
    GoldenRole.JUDGE: RoleRow("narrative", NarrativeJudgment, frozenset()),
    GoldenRole.CHECKER: RoleRow("checker", RowCheck, SOURCE_TOOLS),
}


def prompt_name(role: GoldenRole, task_type: TaskType | None = None) -> str:
    """`author-locate`, `oracle`."""
    return f"author-{task_type}" if role is GoldenRole.AUTHOR else ROLES[role].prompt


def toolset_of(role: GoldenRole, task_type: TaskType | None, tools: Toolset) -> Toolset:
    """What a role may call of the tools over a repository. No other tools are there, so none of the system under test."""
    row = ROLES[role]
    names = row.tools | (HISTORY_TOOLS if task_type in row.history_for else frozenset())
    return AllowedTools(tools, names) if names else NoTools()


@dataclass(frozen=True, slots=True)
class CellBrief:
    """What an author is given."""

    task_type: TaskType
    difficulty: Difficulty
    target_kind: TargetKind = "entities"
    scope: tuple[str, ...] = ()
    """Folders and files that it writes from; empty: the whole repository."""
    focus_area: str = ""
    places: tuple[str, ...] = ()
    """Modules and headings that it may choose from; empty: any."""
    others: tuple[str, ...] = ()
    """Texts of the queries that there are already, not to be repeated."""
    feedback: tuple[str, ...] = ()
    """Failures that people found in an earlier batch."""
    hint: str = ""
    """Hint of a person."""


class CheckedPlace(Protocol):
    """A row as a checker sees it: without its grade."""

    @property
    def query_text(self) -> str:
        """The question."""
        ...

    @property
    def file(self) -> str:
        """Path."""
        ...

    @property
    def entity(self) -> str:
        """Its id; empty where it is none."""
        ...

    @property
    def lines(self) -> tuple[int, int] | None:
        """First and last line; None: the whole."""
        ...

    @property
    def grades(self) -> Sequence[float]:
        """All that its set uses."""
        ...


def author_task(settings: ModelSettings, cell: CellBrief, prompts: RolePrompts) -> AgentTask:
    """Write one query of a cell."""
    rule = RULES[cell.task_type, cell.difficulty]
    parts = [
        PromptPart("scope", "Look only at these folders and files:", _list(cell.scope)),
        PromptPart("focus", "Begin here:", cell.focus_area),
        PromptPart("places", "Choose the targets among these places:", _list(cell.places)),
        PromptPart(
            "others",
            "These questions exist already. Yours has other targets, and is built in another way:",
            _list(cell.others),
        ),
        *_remarks(cell.feedback, cell.hint),
    ]
    values = {
        "task_type": cell.task_type,
        "difficulty": cell.difficulty,
        "target_kind": cell.target_kind,
        "rule": f"entities: {rule.entities}; files: {rule.files}; folders: {rule.folders}",
        "n_others": len(cell.others),
    }
    output = draft_type(cell.task_type, cell.difficulty, cell.target_kind)
    return _task(settings, prompts.get(prompt_name(GoldenRole.AUTHOR, cell.task_type)), parts, values, output)


def oracle_task(
    settings: ModelSettings,
    candidate: QueryCandidate,
    prompts: RolePrompts,
    *,
    feedback: tuple[str, ...] = (),
    hint: str = "",
) -> AgentTask:
    """Write the canonical answer of a candidate. The reasons of its author are not given."""
    targets = candidate.model_dump(include={"target_entity_ids", "target_files", "target_spans"})
    parts = [
        _question(candidate.query_text),
        PromptPart(
            "targets",
            "Its targets, as its author has them:",
            _json({name: value for name, value in targets.items() if value}),
        ),
        *_remarks(feedback, hint),
    ]
    values = {
        "task_type": candidate.task_type,
        "difficulty": candidate.difficulty,
        "has_history": candidate.task_type in ROLES[GoldenRole.ORACLE].history_for,
        "must_mention": str(MUST_MENTION),
        "must_not_mention": str(MUST_NOT_MENTION),
        "narrative_words": str(NARRATIVE_WORDS),
    }
    return _task(settings, prompts.get(prompt_name(GoldenRole.ORACLE)), parts, values, OracleDraft)


def adversary_task(
    settings: ModelSettings, candidate: QueryCandidate, answer: OracleAnswer, prompts: RolePrompts
) -> AgentTask:
    """Try to falsify an answer: its claims, without the reasoning of the oracle (rationales, confidence, notes, evidence)."""
    claims = cited_claims(answer)
    parts = [
        _question(candidate.query_text),
        PromptPart("claims", f"The {len(claims)} claims of the reference answer:", "\n".join(map(_json, claims))),
        PromptPart("narrative", "Its narrative:", answer.canonical_narrative),
    ]
    values = {
        "task_type": candidate.task_type,
        "n_claims": len(claims),
        "has_history": candidate.task_type in ROLES[GoldenRole.ADVERSARY].history_for,
    }
    return _task(settings, prompts.get(prompt_name(GoldenRole.ADVERSARY)), parts, values, AdversaryDraft)


def judge_task(
    settings: ModelSettings,
    candidate: QueryCandidate,
    answer: OracleAnswer,
    report: AdversaryReport,
    prompts: RolePrompts,
) -> AgentTask:
    """Compare the narrative of an answer with the findings of the adversary."""
    doubts = [
        f"{each.verdict}: {each.claim}{f' ({each.note})' if each.note else ''}"
        for each in report.claim_verdicts
        if each.verdict != "supported"
    ]
    missing = [*report.missing_entities, *report.missing_files]
    parts = [
        _question(candidate.query_text),
        PromptPart("narrative", "The narrative:", answer.canonical_narrative),
        PromptPart("findings", "The findings of the reviewer:", report.findings or "(the reviewer wrote none)"),
        PromptPart("doubts", "Claims of the answer that the reviewer did not find supported:", _list(doubts)),
        PromptPart("missing", "Places that the reviewer misses in the answer:", _list(missing)),
        PromptPart("issues", "Other issues that the reviewer reports:", _list(report.blocking_issues)),
    ]
    return _task(settings, prompts.get(prompt_name(GoldenRole.JUDGE)), parts, {}, NarrativeJudgment)


def check_task(settings: ModelSettings, row: CheckedPlace, prompts: RolePrompts) -> AgentTask:
    """Check a row of an existing set: path, lines and grade."""
    place = {
        "file": row.file,
        "lines": list(row.lines or ()) or "all",
        **({"entity": row.entity} if row.entity else {}),
    }
    values = {"grades": _grades(row.grades)}
    parts = [
        _question(row.query_text),
        PromptPart("place", "The place that is listed among its answers:", _json(place)),
    ]
    return _task(settings, prompts.get(prompt_name(GoldenRole.CHECKER)), parts, values, RowCheck)


def cited_claims(answer: OracleAnswer) -> list[dict[str, Any]]:
    """Every claim that needs a verdict, with the role of an entity and the citations of a fact."""
    more: dict[Claim, dict[str, Any]] = {}
    for entity in answer.expected_entities:
        more["entity", entity.entity_id] = {"role": entity.role}
    for fact in answer.must_mention_facts:
        more["must_mention_fact", fact.fact] = _citations(fact)
    for fact in answer.must_not_mention_facts:
        more["must_not_mention_fact", fact.fact] = _citations(fact)
    claims = dict.fromkeys(claims_of(answer))
    return [{"claim_type": kind, "claim": text, **more.get((kind, text), {})} for kind, text in claims]


def _citations(fact: CitedFact) -> dict[str, Any]:
    return {"citations": [f"{each.file}:{each.start}-{each.end}" for each in fact.citations]}


@cache
def draft_type(task_type: TaskType, difficulty: Difficulty, target_kind: TargetKind) -> type[CandidateDraft]:
    """The output of an author: what the cell demands is required, so that a draft without it is sent back at once."""
    fields: dict[str, Any] = {}
    if target_kind == "files":
        fields["target_files"] = (Annotated[list[Filled], Field(min_length=1)], ...)
    elif target_kind == "spans":
        fields["target_spans"] = (Annotated[list[TargetSpan], Field(min_length=1, max_length=3)], ...)
    else:
        fields["target_entity_ids"] = (Annotated[list[Filled], Field(min_length=1)], ...)
    if difficulty != "easy":
        fields["difficulty_rationale"] = (Filled, ...)
    if task_type == "general":
        expected = tuple(each for each in get_args(TaskType) if each != "general")
        fields["classifier_expectation"] = (Literal[expected], ...)
    else:
        fields["classifier_expectation"] = (None, None)
    return create_model("CandidateDraft", __base__=CandidateDraft, __doc__="The question, and its targets.", **fields)


def _task(
    settings: ModelSettings,
    prompt: Prompt,
    parts: Sequence[PromptPart],
    values: Mapping[str, Any],
    output: type[BaseModel],
) -> AgentTask:
    given = [PromptPart(part.name, part.title, clean(part.text).strip()) for part in parts if part.text.strip()]
    mark = nonce(prompt, [part.text for part in given])
    system, user = prompt.fill({**values, "parts": given, "nonce": mark})
    return AgentTask(
        model=settings.model,
        system=system,
        prompt=user,
        output=output,
        sampling=settings.sampling,
        output_mode=settings.output_mode,
        timeout_s=settings.timeout_s,
        limits=settings.agent_limits,
    )


def _question(text: str) -> PromptPart:
    return PromptPart("question", "The question:", " ".join(text.split()))


def _remarks(feedback: Iterable[str], hint: str) -> list[PromptPart]:
    return [
        PromptPart("feedback", "Reviewers found these failures in earlier work of this kind:", _list(feedback)),
        PromptPart("hint", "A hint of the person who sent it back:", hint),
    ]


def _list(texts: Iterable[str]) -> str:
    return "\n".join(f"- {' '.join(text.split())}" for text in texts)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _grades(used: Sequence[float]) -> list[dict[str, str]]:
    """Grades from the best, with what they mean."""
    grades = sorted({grade for grade in used if grade > 0}, reverse=True) or [1]
    meanings = ["they answer the question by themselves"]
    meanings += ["they answer a part of it, or much of it"] * (len(grades) - 2)
    meanings += ["they help to answer it, and are not the answer"]
    return [{"value": f"{grade:g}", "meaning": meaning} for grade, meaning in zip(grades, meanings, strict=False)]
