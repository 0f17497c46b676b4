"""All records of a run by id, and the state of each: what `golden status` prints, and what a resumed run goes on from."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from pydantic import BaseModel

from cranfield.agents.recording import RecordFolder, manifest_of
from cranfield.base.errors import InputError, Problem
from cranfield.formats.io.files import shown
from cranfield.golden.agreement import LabelOutcome
from cranfield.golden.outcomes import (
    AgreementRecord,
    GateFailure,
    QueueEntry,
    RecordFinding,
    Rejection,
    RunManifest,
    is_unreadable,
)
from cranfield.golden.parsed import LineCoverage, Lines, ParsedSource, Place, module_parts
from cranfield.golden.records import SCHEMA_VERSION, AdversaryReport, HumanReview, OracleAnswer, QueryCandidate
from cranfield.golden.rules import Bounds
from cranfield.golden.states import ENTERS_AT, STATES, EntryStep, State
from cranfield.model.judging import Disposition
from cranfield.ranking.matching.place import ENTITY_MARK, parts_of
from cranfield.repo.symbols import language_of


class Step(StrEnum):
    """A file of the folder, by its name."""

    CANDIDATES = "00_candidates.jsonl"
    ANSWERS = "01_oracle_answers.jsonl"
    REPORTS = "02_adversary_reports.jsonl"
    AGREEMENTS = "02_agreements.jsonl"
    GATE_FAILURES = "03_validation_failures.jsonl"
    REVIEW_QUEUE = "04_human_review_queue.jsonl"
    REJECTED = "05_rejected.jsonl"
    REVIEW_SAMPLES = "review_samples.jsonl"
    HUMAN_REVIEWS = "human_reviews.jsonl"
    TRANSCRIPTS = "transcripts.jsonl"


FEEDBACK = "feedback.jsonl"
"""Failures that people found in an earlier batch, where there are some."""


class RunFolder(RecordFolder[RunManifest]):
    """The files of a run."""

    files = Step
    schema_version = SCHEMA_VERSION

    @classmethod
    def read_manifest(cls, path: Path) -> RunManifest:
        """What the run is of."""
        hint = "give the folder printed by `cranfield golden run`"
        return manifest_of(path, RunManifest, SCHEMA_VERSION, missing="not a golden run", hint=hint)


class _Attempted(Protocol):
    @property
    def query_id(self) -> str: ...

    @property
    def attempt(self) -> int: ...


Record = TypeVar("Record", bound=_Attempted)


class Attempts(Generic[Record]):
    """Records of a step by id and attempt. Of two lines about the same attempt, the first holds."""

    def __init__(self, records: Sequence[Record] = ()) -> None:
        self._records: dict[tuple[str, int], Record] = {}
        for each in records:
            self.add(each)

    def add(self, record: Record) -> None:
        """Add a record."""
        self._records.setdefault((record.query_id, record.attempt), record)

    def remove(self, query_id: str, attempt: int) -> None:
        """Take a record away."""
        del self._records[query_id, attempt]

    def get(self, query_id: str, attempt: int) -> Record | None:
        """The record of an attempt."""
        return self._records.get((query_id, attempt))

    def __getitem__(self, key: tuple[str, int]) -> Record:
        """The record of an attempt that has one, by its state."""
        return self._records[key]

    def __iter__(self) -> Iterator[Record]:
        return iter(self._records.values())


@dataclass(frozen=True, slots=True)
class RecordStatus:
    """Where a record stands, and why."""

    query_id: str
    task_type: str
    difficulty: str
    state: State
    attempt: int
    reasons: tuple[RecordFinding, ...] = ()
    agreement: AgreementRecord | None = None

    @property
    def is_unreadable(self) -> bool:
        """Whether it ended because no reply of a role could be read."""
        return is_unreadable(self.reasons)

    @property
    def reason(self) -> str:
        """The kinds of the reasons, each once."""
        return ", ".join(dict.fromkeys(each.kind for each in self.reasons))


class RunIndex:
    """The records of a run folder."""

    def __init__(self, folder: RunFolder) -> None:
        """Read them.

        Raises:
            InputError: with every line that is damaged, or two end states of one record.
        """
        self.folder = folder
        self.candidates = {each.query_id: each for each in folder.read(Step.CANDIDATES, QueryCandidate)}
        self.answers = Attempts(folder.read(Step.ANSWERS, OracleAnswer))
        self.reports = Attempts(folder.read(Step.REPORTS, AdversaryReport))
        self.agreements = Attempts(folder.read(Step.AGREEMENTS, AgreementRecord))
        self.gate_failures = Attempts(folder.read(Step.GATE_FAILURES, GateFailure))
        self.queue = Attempts(folder.read(Step.REVIEW_QUEUE, QueueEntry))
        lines = folder.read(Step.REJECTED, Rejection)
        last = {(each.query_id, each.attempt): each for each in lines}
        rejections = [each for each in lines if not self._is_superseded(each, last)]
        self.rejections = Attempts([each for each in rejections if each.state is not State.DROPPED])
        self.dropped = {(each.query_id, each.attempt): each for each in rejections if each.state is State.DROPPED}
        self.reviews: dict[str, list[HumanReview]] = {}
        for review in folder.read(Step.HUMAN_REVIEWS, HumanReview):
            self.reviews.setdefault(review.query_id, []).append(review)
        self._check()

    def add(self, step: Step, record: BaseModel) -> None:
        """Append a record to its file, and to this index."""
        self.folder.append(step, record)
        if isinstance(record, QueryCandidate):
            self.candidates[record.query_id] = record
        elif isinstance(record, OracleAnswer):
            self.answers.add(record)
        elif isinstance(record, AdversaryReport):
            self.reports.add(record)
        elif isinstance(record, AgreementRecord):
            self.agreements.add(record)
        elif isinstance(record, GateFailure):
            self.gate_failures.add(record)
        elif isinstance(record, QueueEntry):
            self.queue.add(record)
        elif isinstance(record, Rejection):
            self.rejections.add(record)

    def reopen(self, query_id: str) -> None:
        """Ask again for what could not be read: the record goes on from the step before."""
        self.rejections.remove(query_id, self.attempt(query_id))

    def attempt(self, query_id: str) -> int:
        """1, and one more for each time that a person sent the record back."""
        reviews = self.reviews.get(query_id, ())
        return 1 + sum(each.disposition is Disposition.SEND_BACK for each in reviews)

    def hint(self, query_id: str) -> str:
        """What the person wrote who sent the record back last; empty on the first attempt."""
        sent = [each for each in self.reviews.get(query_id, ()) if each.disposition is Disposition.SEND_BACK]
        return sent[-1].hint if sent else ""

    def status(self, query_id: str) -> RecordStatus:
        """Status of a candidate, or of a draft that did not become one."""
        attempt = self.attempt(query_id)
        state, reasons = self._by_people(query_id, attempt)
        rejection = self.rejections.get(query_id, attempt)
        about = self.candidates.get(query_id) or rejection
        task_type, difficulty = (about.task_type, about.difficulty) if about is not None else (None, None)
        agreement = self.agreements.get(query_id, attempt)
        return RecordStatus(query_id, task_type or "", difficulty or "", state, attempt, tuple(reasons), agreement)

    def statuses(self) -> list[RecordStatus]:
        """Status of every draft by its id, those that did not become a candidate included."""
        return [
            self.status(query_id)
            for query_id in sorted({*self.candidates, *(each.query_id for each in self.rejections)})
        ]

    def _by_people(self, query_id: str, attempt: int) -> tuple[State, Sequence[RecordFinding]]:
        """What a person decided of this attempt, or what the steps did."""
        state, reasons = self._by_steps(query_id, attempt)
        reviews = self.reviews.get(query_id, ())
        last = reviews[-1] if reviews else None
        if (dropped := self.dropped.get((query_id, attempt))) is not None:
            return State.DROPPED, dropped.reasons
        if last is not None and last.disposition is Disposition.DROP:
            return State.DROPPED, [RecordFinding(kind=last.failure_mode or last.verdict, message=last.reason)]
        if (
            last is not None
            and last.disposition is Disposition.KEEP
            and STATES[state].fills_cell
            and STATES[state].is_end
        ):
            return State.KEPT, reasons
        return state, reasons

    def _by_steps(self, query_id: str, attempt: int) -> tuple[State, Sequence[RecordFinding]]:
        has_answer = self.answers.get(query_id, attempt) is not None
        rejection = self.rejections.get(query_id, attempt)
        if rejection is not None and not (rejection.state is State.RESERVE and has_answer):
            return rejection.state, rejection.reasons
        if (failure := self.gate_failures.get(query_id, attempt)) is not None:
            return State.GATE_FAILED, failure.failures
        if (agreement := self.agreements.get(query_id, attempt)) is not None:
            return _OF_OUTCOME[agreement.outcome], agreement.reasons
        if self.reports.get(query_id, attempt) is not None:
            return State.REPORTED, ()
        if attempt == 1 and has_answer and self.folder.manifest.more.get(ENTERS_AT) == EntryStep.PEOPLE:
            return State.PASSED, ()
        return (State.ANSWERED if has_answer else State.AUTHORED), ()

    def _is_superseded(self, rejection: Rejection, last: Mapping[tuple[str, int], Rejection]) -> bool:
        """Whether a later call asked again for what could not be read, with whatever end."""
        key = rejection.query_id, rejection.attempt
        if not is_unreadable(rejection.reasons):
            return False
        if last[key] is not rejection:
            return True
        came: Mapping[State, bool] = {
            State.NOT_AUTHORED: rejection.query_id in self.candidates,
            State.NO_ANSWER: self.answers.get(*key) is not None,
            State.NO_REPORT: self.reports.get(*key) is not None,
            State.NO_RATING: self.agreements.get(*key) is not None,
        }
        return came.get(rejection.state, False)

    def _check(self) -> None:
        """Raise where a record has two end states."""
        ends: dict[tuple[str, int], list[str]] = {}
        for step, found in (
            (Step.REJECTED, self.rejections),
            (Step.GATE_FAILURES, self.gate_failures),
            (Step.AGREEMENTS, self.agreements),
        ):
            for each in found:
                if not (isinstance(each, Rejection) and each.state is State.RESERVE):  # a reserve may be needed later
                    ends.setdefault((each.query_id, each.attempt), []).append(step)
        twice = {key: steps for key, steps in ends.items() if len(steps) > 1}
        if twice:
            raise InputError(
                [
                    Problem(f"{query_id} has an end in {' and in '.join(steps)}", path=shown(self.folder.path))
                    for (query_id, _), steps in twice.items()
                ]
            )


_OF_OUTCOME = {
    LabelOutcome.PASSED: State.PASSED,
    LabelOutcome.QUEUED: State.QUEUED,
    LabelOutcome.BLOCKED: State.BLOCKED,
}

_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")
_TOKEN = re.compile(r"[^\W_][\w-]*|_+\w[\w-]*")
CODE = re.compile(r"`([^`\n]+)`")
_QUOTED = re.compile(r"`([^`\n]{3,})`|\"([^\"\n]{3,})\"|(?<!\w)'([^'\n]{3,})'(?!\w)")
CALL = re.compile(r"\((?!(?:s|es|ies|d|ed|r|er|n|y|ly|al|ing)\))")
"""Follows a name that is called; `file(s)` is no call."""
_SUFFIXES = ("ations", "ation", "ings", "ing", "ions", "ion", "ers", "er", "ors", "or", "ed", "es", "s", "ly", "e")
_SHORTEST = 3
_STOP_WORDS = """
    a about after all also an and any are as at be because been before being between both but by can could did do does
    doing done each else even ever every for from get gets getting go goes got had has have having how i if in inside into is
    it its itself just let like made make makes making many may me might mine more most much must my need needs no nor not of
    off on once one only onto or other our out over own please same see shall she should show so some such take takes tell
    than that the their them then there these they thing things this those through to too under until up upon us use used
    uses using very via want wants was we were what when where whether which while who whom whose why will with within
    without would yes yet you your code function class method file files module explain walk happens happen work works
    working find look looking place start add new step review audit don doesn didn isn aren won couldn wouldn shouldn
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
"""Words that say nothing of a subject, and those that the phrasings of a task type are made of."""


def stem(word: str) -> str:
    """A word without its ending: `parsers`, `parsing` and `parse` are one. Crude, and the same on both sides."""
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= _SHORTEST and not word.endswith("ss"):
            word = word[: -len(suffix)]
            break
    return word[:-1] if len(word) > _SHORTEST and word[-1] == word[-2] else word


def name_parts(name: str) -> list[str]:
    """The words of a name, case folded: `read_fileText2` is read, file, text, 2."""
    return [part.casefold() for part in _PART.findall(name)]


@lru_cache(maxsize=4096)
def content_words(text: str) -> frozenset[str]:
    """The stems of the words that carry the subject of a text; names are split into their parts."""
    return frozenset(stem(part) for part in name_parts(text) if len(part) >= 2 and part not in STOP_WORDS)


def jaccard(first: frozenset[str], second: frozenset[str]) -> Fraction:
    """Common words, as a part of all; 0 where there are none."""
    either = first | second
    return Fraction(len(first & second), len(either)) if either else Fraction(0)


def target_names(entity_ids: Iterable[str], files: Iterable[str], source: ParsedSource) -> list[str]:
    """Names, titles and headings of targets: qualified names, stems of files, and the first heading of a page."""
    names = []
    for entity in entity_ids:
        path, _, name = entity.partition(ENTITY_MARK)
        names += [name, _stem_of(path)]
    for path in files:
        names.append(_stem_of(path))
        outline = source.outline(path) if language_of(path) == "markdown" else None
        if outline is not None and len(outline.symbols) > 1:
            names += outline.symbols[1].names
    return list(dict.fromkeys(names))


def overlap(query: str, names: Iterable[str]) -> tuple[int, int]:
    """How many of the content words of a query stand in names, and how many it has."""
    words = content_words(query)
    known = frozenset(word for name in names for word in content_words(name))
    return len(words & known), len(words)


def is_distinctive(name: str) -> bool:
    """Whether a name is no word of prose: it has `_`, a digit or an inner capital letter; `JSON`, all of capitals, is one."""
    if "_" in name or any(char.isdigit() for char in name):
        return True
    return any(char.isupper() for char in name[1:]) and not name.isupper()


def leaks(query: str, entity_ids: Iterable[str], files: Iterable[str]) -> list[str]:
    """What of the names of its targets a query contains.

    A leak is:

    - a name that is no word of prose (`smart_answer`, `MarkdownParser`, `bm25`), in any case, also with its parts run together
      or joined by hyphens (`smartanswer`, `smart-answer`) as one token. The parts as words of their own (`smart answer`) are
      none: that is how people speak;
    - a name of one word of prose (`run`, `_run`, `JSON`, `Snapshot`) where it is written as code: in backticks, before `(`,
      after a dot, `::` or `#`, with its leading `_`; and, where it begins with a capital, written so within a sentence;
    - the name of a file: `parser.py`, its stem by the same rules, and with its folder, `tools/parser`;
    - a heading of two words or more, word by word.
    """
    found: dict[str, None] = {}
    files = list(dict.fromkeys([*files, *(entity.partition(ENTITY_MARK)[0] for entity in entity_ids)]))
    for path in files:
        if re.search(rf"(?<!\w){re.escape(posixpath.basename(path))}(?!\w)", query, re.IGNORECASE):
            found[posixpath.basename(path)] = None
        elif _has_name(query, _stem_of(path)):
            found[_stem_of(path)] = None
        elif len(parts := module_parts(path)) > 1 and _stands_in(query, "/".join(parts[-2:])):
            found["/".join(parts[-2:])] = None
    for entity in entity_ids:
        path, _, qualified = entity.partition(ENTITY_MARK)
        if language_of(path) == "markdown":
            words = qualified.rpartition(" > ")[2].split()
            heading = r"\W+".join(map(re.escape, words))
            if len(words) > 1 and re.search(rf"(?<!\w){heading}(?!\w)", query, re.IGNORECASE):
                found[" ".join(words)] = None
            continue
        for name in parts_of(entity):
            if name and _has_name(query, name):
                found[name] = None
    return list(found)


def grep_terms(query: str) -> list[str]:
    """What a person would search for: each word of three letters or more that carries the subject, and what is quoted."""
    quoted = [next(filter(None, groups)) for groups in _QUOTED.findall(query)]
    words = [token for token in _TOKEN.findall(query) if len(token) >= _SHORTEST]
    return list(dict.fromkeys([*quoted, *(word for word in words if word.casefold() not in STOP_WORDS)]))


def found_by_grep(
    query: str, targets: Mapping[str, Sequence[Lines]], source: ParsedSource, bounds: Bounds
) -> list[str]:
    """The terms by which a plain search alone answers a query; none where it does not.

    The test: `grep -i -F` for one term of the query at a time (`grep_terms`), over all text files. A term counts where it is
    on at most `grep_lines` lines of at most `grep_files` files. The search answers the query where every target has a line
    that such a term finds.

    Args:
        query: its text.
        targets: label of each target to its lines.
        source: the files.
        bounds: see there.
    """
    finding: dict[str, None] = {}
    missing = set(targets)
    for term in grep_terms(query):
        places = source.lines_with(term)
        if places is None or not _is_selective(places, bounds):
            continue
        hits = LineCoverage((path, line, line) for path, line in places)
        hit = {target for target, lines in targets.items() if any(hits.shared(*part) for part in lines)}
        if hit:
            finding[term] = None
            missing -= hit
    return list(finding) if targets and not missing else []


def _is_selective(places: Sequence[Place], bounds: Bounds) -> bool:
    return len(places) <= bounds.grep_lines and len({path for path, _ in places}) <= bounds.grep_files


def _has_name(query: str, name: str) -> bool:
    """Whether a query contains a name by the rules of `leaks`."""
    if name.startswith("_") and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", query):
        return True
    name = name.strip("_") or name
    if is_distinctive(name):
        wanted = _run_together(name)
        return any(_run_together(token) == wanted for token in _tokens(query))
    word = re.escape(name)
    as_code = rf"(?<!\w){word}{CALL.pattern}|(?:\.|::|\w#){word}(?!\w)|(?:\bdef|\bclass|\bfn|\bfunc) {word}(?!\w)"
    if re.search(as_code, query) or any(name in re.findall(r"\w+", code) for code in CODE.findall(query)):
        return True
    return name[:1].isupper() and not name.isupper() and bool(re.search(rf"(?<=[^.?!:\s] ){word}(?!\w)", query))


def _stands_in(query: str, path: str) -> bool:
    return re.search(rf"(?<![\w.-]){re.escape(path)}(?![\w-])", query.replace("\\", "/")) is not None


def _tokens(query: str) -> Iterator[str]:
    """Runs of letters, digits, `_` and `-`, and the parts that hyphens join."""
    for token in _TOKEN.findall(query):
        yield token
        if "-" in token:
            yield from token.split("-")


def _run_together(name: str) -> str:
    return re.sub(r"[_-]", "", name).casefold()


def _stem_of(path: str) -> str:
    """`parser` of `src/parser.py`; of `__init__.py` and the like, the name of the folder."""
    stem_ = posixpath.splitext(posixpath.basename(path))[0]
    if stem_ in {"__init__", "__main__", "index", "mod", "lib", "main", "README"}:
        return posixpath.basename(posixpath.dirname(path)) or stem_
    return stem_
