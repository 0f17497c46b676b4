"""Records of an experiment: a task, a cell, and what came of a run of an agent in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field

from cranfield.agents.answers.facts import FactKind
from cranfield.agents.answers.rows import FactRow
from cranfield.agents.budget import TYPICAL_BYTES, PriceList
from cranfield.agents.loop import Transcript
from cranfield.agents.protocol import Usage
from cranfield.base.words import printable
from cranfield.benefit.plan import ArmRole
from cranfield.formats.io.validation import ClosedModel, Filled

SCHEMA_VERSION = "1.0.0"
_Count = Annotated[int, Field(ge=0)]


class CellKey(ClosedModel):
    """A run that is planned: a task in an arm, with a seed."""

    task_id: Filled
    arm: ArmRole
    seed: _Count
    """0, 1, ...: pairs the arms. It is sent to the model, and no provider promises that it decides the answer."""

    def __str__(self) -> str:
        """`q01/treatment/0`."""
        return f"{self.task_id}/{self.arm}/{self.seed}"


class CellEnd(StrEnum):
    """How a run of a cell ended."""

    ANSWERED = "answered"
    TURNS = "turns"
    TOOL_CALLS = "tool_calls"
    TOKENS = "tokens"
    SECONDS = "seconds"
    """These limits of the plan were reached: a failure, which is scored."""
    NO_ANSWER = "no_answer"
    """The agent refused, or gave nothing that is an answer: scored as a failure."""
    INFRASTRUCTURE = "infrastructure"
    """A tool that never started, a server that is down: run again, never scored."""

    @property
    def is_scored(self) -> bool:
        """Whether the cell counts in its arm."""
        return self is not CellEnd.INFRASTRUCTURE


class ToolCount(ClosedModel):
    """Calls of a tool, counted from the transcript."""

    ok: _Count = 0
    error: _Count = 0


class CellUsage(ClosedModel):
    """What a run used. None: not known, which is not 0."""

    total: _Count | None = None
    """Tokens in and out."""
    uncached: _Count | None = None
    cache_read: _Count | None = None
    cache_write: _Count | None = None
    output: _Count | None = None
    """Those of the reasoning included."""
    reasoning: _Count | None = None
    requests: _Count | None = None
    unmeasured: _Count = 0
    """Requests that may have used tokens and did not report them; tokens are None then."""
    turns: _Count | None = None
    tool_calls: Mapping[str, ToolCount] | None = {}
    wall_s: Annotated[float, Field(ge=0)]
    model_s: Annotated[float, Field(ge=0)] | None = None
    """Part of `wall_s` that was spent in requests."""
    money: Annotated[float, Field(ge=0)] | None = None

    @property
    def n_tool_calls(self) -> int | None:
        """Number of calls of all tools."""
        if self.tool_calls is None:
            return None
        return sum(count.ok + count.error for count in self.tool_calls.values())

    @property
    def has_result(self) -> bool | None:
        """Whether a call of a tool gave a result that is no error."""
        return None if self.tool_calls is None else any(count.ok for count in self.tool_calls.values())


class Flaw(StrEnum):
    """Why a result of a tool, which is no error by its server, is none that an agent can use."""

    EMPTY = "empty"
    """No text, no item, or a sentence that there is none."""
    ERROR = "reads as an error"
    CUT = "cut"
    """A part of what the server sent: what it holds is content."""
    OTHER_SOURCE = "of another index"
    """It states another index, version or commit than the preflight did."""


class ToolResultNote(ClosedModel):
    """A result of a tool under test, without its text."""

    tool: Filled
    arguments: str
    """Digest."""
    text: str
    """Digest."""
    flaws: tuple[Flaw, ...] = ()
    shows_lines: bool = False
    """Lines of the repository stand in it."""
    names_files: bool = False
    """It names a file of the repository."""

    @property
    def has_content(self) -> bool:
        """Whether it answers the call."""
        return not {Flaw.EMPTY, Flaw.ERROR, Flaw.OTHER_SOURCE} & set(self.flaws)


class Delivery(ClosedModel):
    """What became of the tools under test in a run: of an arm that has some. None: not known, which is not 0."""

    offered: bool
    """Every tool of every server was in the first request."""
    missing: tuple[str, ...] = ()
    """Tools that were not."""
    called: _Count | None = 0
    answered: _Count | None = 0
    """Calls with a result that has content: no error, and nothing that is empty or reads as an error."""
    results: tuple[ToolResultNote, ...] | None = None
    """Results of the calls whose result is no error by its server, in their order; None: their texts are not known."""
    instructions_tokens: _Count | None = None
    """Estimated."""
    schema_tokens: _Count | None = None
    """Tokens of the tools' schemas in one request: measured against a request without them, else None."""
    schema_tokens_estimated: _Count | None = None
    """By their length: where they cannot be measured, this is all there is."""
    payload_tokens: _Count | None = None
    """Estimated, of all results of these tools."""


class LineRange(ClosedModel):
    """Lines of a file, both ends included."""

    path: Filled
    start: Annotated[int, Field(ge=1)]
    end: Annotated[int, Field(ge=1)]


class NamedPlaces(ClosedModel):
    """Places that an answer names in fields of its own."""

    entities: tuple[Filled, ...] = ()
    files: tuple[Filled, ...] = ()
    lines: tuple[LineRange, ...] = ()


class ReadLines(ClosedModel):
    """Lines that a tool showed."""

    path: Filled
    start: _Count
    end: _Count
    turn: _Count
    tool: Filled


class CellRecord(ClosedModel):
    """A run of a cell. A cell has the runs that failed by their infrastructure, and at most one that is scored."""

    schema_version: str = SCHEMA_VERSION
    key: CellKey
    attempt: Annotated[int, Field(ge=1)]
    position: Annotated[int, Field(ge=0)]
    """In the planned order of all cells."""
    started_at: str
    end: CellEnd
    error: str = ""
    """Name in the catalogue of errors."""
    message: str = ""
    answer: str = ""
    named: NamedPlaces | None = None
    """None: the agent has no such fields, or left them empty, and places are read from the text of the answer."""
    files: Mapping[str, str] = {}
    """Files of code that the agent wrote, by path."""
    usage: CellUsage
    delivery: Delivery | None = None
    """None: the arm has no tool under test."""
    reads: tuple[ReadLines, ...] | None = ()
    """None: not known, as the results of tools are not."""
    models: tuple[str, ...] = ()
    """Names by which the provider reported the model."""
    versions: Mapping[str, str] = {}
    """Versions of the agent, and of each server."""
    transcript: str = ""
    """Name of its file in the run folder: `sha256-....json`."""


class PreflightRecord(ClosedModel):
    """What a tool under test says of itself."""

    schema_version: str = SCHEMA_VERSION
    arm: ArmRole
    tool: Filled
    ok: bool
    message: str = ""
    """What is wrong."""
    after_run: bool = False
    """It was asked after cells were run: whether it is still what it was before."""
    found: Mapping[str, Any] = {}
    """`index`, `version`, `commit` as reported."""
    server: str = ""
    """Name and version of the MCP server."""
    tools: tuple[str, ...] = ()
    """That it lists."""
    instructions_digest: str = ""
    schema_digest: str = ""
    usage: CellUsage | None = None
    """Usage of the requests that measured the schemas of the arm: in its first record, every time. They are sent
    once."""


class ScoreReason(StrEnum):
    """Why a cell is no success, or is not decided."""

    TURNS = "limit:turns"
    TOOL_CALLS = "limit:tool_calls"
    TOKENS = "limit:tokens"
    SECONDS = "limit:seconds"
    NO_ANSWER = "no_answer"
    FACT_MISSING = "fact_missing"
    WRONG_STATEMENT = "wrong_statement"
    STRUCTURE = "structure_incomplete"
    NO_CODE = "no_code"
    COMPILES = "compiles"
    SYMBOLS = "symbols"
    AVAILABLE = "available"
    NOT_DEPRECATED = "not_deprecated"
    TESTS = "tests"
    """These checks of code failed; the first of them is named."""
    NO_JUDGE = "no_judge"
    NO_MAJORITY = "no_majority"
    JUDGE_FAILED = "judge_failed"
    CHECK_MISSING = "check_missing"
    SYMBOLS_UNKNOWN = "symbols_unknown"
    """These leave a cell undecided. The last: no check failed, no test ran the code, and symbols could not be looked up."""


_OF_A_VERDICT = frozenset({ScoreReason.NO_JUDGE, ScoreReason.NO_MAJORITY, ScoreReason.JUDGE_FAILED})


def deciding_facts(why: ScoreReason | None, facts: Iterable[FactRow]) -> list[FactRow]:
    """The statements that a reason is about: facts that are missing, wrong statements that are made, verdicts that are not there."""
    if why in _OF_A_VERDICT:
        return [fact for fact in facts if fact.right is None]
    kinds = {ScoreReason.FACT_MISSING: FactKind.MUST, ScoreReason.WRONG_STATEMENT: FactKind.MUST_NOT}
    if why not in kinds:
        return []
    return [fact for fact in facts if fact.right is False and fact.id.startswith(f"{kinds[why]}.")]


class ScoreRecord(ClosedModel):
    """The score of a cell, unsealed."""

    schema_version: str = SCHEMA_VERSION
    key: CellKey
    sealed_id: Filled
    """Under which it was scored."""
    success: bool | None
    """None: not decided, such as a vote without a majority."""
    why: ScoreReason | None = None
    """None: a success."""
    facts_correct: bool | None = None
    facts_score: float | None = None
    facts: tuple[FactRow, ...] = ()
    """Statements of the label, with the votes of the judge."""
    structure_correct: bool | None = None
    structure_score: float | None = None
    checks: Mapping[str, str] = {}
    """Check of code to `passed`, `failed`, `unknown` or `missing`."""
    unknown_symbols: int = 0
    """Symbols of the code of which no check knows whether they exist."""
    findings: tuple[Mapping[str, Any], ...] = ()
    """Findings of the checks: file, line, symbol, message."""
    notes: tuple[str, ...] = ()
    """Why checks did not decide."""
    gold_recall: float | None = None
    """Share of the lines of the gold spans among what was read; None: there are none, or what was read is not known."""
    recall_by_turn: tuple[float, ...] = ()
    gold_used: float | None = None
    """Share of the gold spans that were read and that the answer names."""
    redacted: tuple[str, ...] = ()
    """Names of a tool or an arm that the answer says and its task does not: they were removed before it was scored."""


_NAME_CHARS = 100
"""Most characters of the name of a tool, which a model may have invented."""


def cell_usage(transcript: Transcript, prices: PriceList) -> CellUsage:
    """The usage of a run of the reference agent.

    Where an answer was kept from an earlier call of the run, its time is that of the request that was sent then: the time of
    the run is at least that of its requests and tools.
    """
    in_tools = sum(use.wall_s for use in transcript.uses)
    plain = plain_usage(transcript.usage, transcript.task.model, prices)
    more = {
        "turns": transcript.turns,
        "tool_calls": tool_counts(transcript),
        "wall_s": max(transcript.wall_s, transcript.model_s + in_tools),
        "model_s": transcript.model_s,
    }
    return plain.model_copy(update=more)


def plain_usage(usage: Usage, model: str, prices: PriceList) -> CellUsage:
    """The usage of requests, without the times and tools around them."""
    return CellUsage(
        **token_fields(usage),
        requests=usage.requests,
        unmeasured=usage.unmeasured,
        turns=None,
        tool_calls={},
        wall_s=0.0,
        model_s=None,
        money=None if usage.unmeasured else prices.cost(model, usage),
    )


def token_fields(usage: Usage) -> dict[str, int | None]:
    """Tokens by kind, each counted once: input is what no cache held. All None where one request did not report its tokens."""
    kinds = ("total", "uncached", "cache_read", "cache_write", "output", "reasoning")
    if usage.unmeasured:
        return dict.fromkeys(kinds)
    is_known = usage.input is not None and usage.cache_read is not None
    # A provider that bills no writes into its cache reports none.
    uncached = (usage.input or 0) - (usage.cache_read or 0) - (usage.cache_write or 0)
    values = (
        usage.total,
        max(0, uncached) if is_known else None,
        usage.cache_read,
        usage.cache_write,
        usage.output,
        usage.reasoning,
    )
    return dict(zip(kinds, values, strict=True))


def tool_counts(transcript: Transcript) -> Mapping[str, ToolCount]:
    """Calls by tool, those of tools that do not exist among them, counted from the transcript."""
    calls = Counter((printable(use.call.name)[:_NAME_CHARS], use.result.is_error) for use in transcript.uses)
    return {
        name: ToolCount(ok=calls[name, False], error=calls[name, True]) for name in sorted({name for name, _ in calls})
    }


def estimated_tokens(text: str) -> int:
    """Tokens of a text, estimated by its length."""
    return -(-len(text.encode("utf-8", "replace")) // TYPICAL_BYTES)
