"""A test set: queries, and the expected results of each.

Judgments come in two kinds. *Graded ids* say which documents are relevant and how much; a result that is not among them
is unjudged. *Targets* (patterns, spans, entities, files, predicates) say by a rule which results are relevant; their
truth is closed: what no target matches is not relevant, and nothing is unjudged.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, asdict, dataclass, field
from datetime import date, timedelta
from functools import cached_property
from hashlib import sha256
from typing import Annotated, Any, ClassVar, Literal

from cranfield.base.display import Displayed, in_line
from cranfield.base.words import count_noun
from cranfield.model.judging import Judging, Label
from cranfield.model.kinds import (
    AnyJson,
    AnyRegex,
    Count,
    Database,
    Date,
    FilledText,
    Flag,
    Grade,
    Id,
    InFile,
    Kind,
    OrNull,
    Share,
    Text,
    Whole,
    at_least,
)
from cranfield.model.note import Note
from cranfield.model.query import Query, negative_of, query_strata
from cranfield.model.target import Criteria, Entity, File, Legacy, Passage, Pattern, Predicate, Source, Span, Target


@dataclass(frozen=True, slots=True)
class MatchingRules(InFile):
    """How paths, lines and entities of results are normalised before matching."""

    line_base: Literal[0, 1] = 1
    """Line number of the first line of a file in the results."""
    min_overlap: Annotated[int, at_least(1, 1_000_000)] = 1
    """Minimum number of lines that a result and an expected span share."""
    strip: tuple[FilledText, ...] = ()
    """Prefixes that are removed from paths; the longest match is used."""
    roots: tuple[FilledText, ...] = ()
    """Folders at which paths begin; everything before the first of them is removed."""
    chunk_suffix: AnyRegex = r"::\d+$"
    """Regular expression of the suffix that a chunk adds to the id of its entity; it is removed."""
    ignore_identical_ids: Flag = False
    """Results whose id is that of their query are left out of the lists."""
    places: Flag = False
    """Graded ids that end in lines are places: a result with lines is looked up as `id:lines`."""
    urls: tuple[Literal["fragment", "slash", "scheme", "query"], ...] = ()
    """Parts of addresses that do not count where ids and the condition `url` are compared: `fragment` (`#install`), `slash` (at the end),
    `scheme` (with or without encryption), `query` (`?page=2`)."""
    quotes: Literal["spaces", "exact", "fuzzy"] = "spaces"
    """How quotes are compared with the text of a result: `spaces`: white space and forms of one character do not count; `exact`:
    character by character; `fuzzy`: as `spaces`, without regard to case, and as similar as `quote_similarity` says."""
    quote_similarity: Annotated[float, Kind(bounds={"gt": 0, "le": 1})] = 0.9
    """For `fuzzy` quotes, the least similarity to a part of the text: 1 − insertions and deletions / characters of both."""
    page_base: Literal[0, 1] = 1
    """Number of the first page of a document in the results."""


_ENCODER = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":"))
DEFAULT_REFRESH_DAYS = 90

Grouping = Literal["subtopic", "judge", "preference"]
"""What the group of a grouped judgment is: a subtopic of the query, one of several sets of judgments, or one of several
sets of preferences (higher values are preferred; a subgroup holds values that may be compared)."""


@dataclass(frozen=True, slots=True)
class GroupedJudgment:
    """One judgment that holds within a group only: a subtopic, a judge, or a set of preferences."""

    doc_id: str
    group: str
    value: float
    """Grade, or strength of preference."""
    subgroup: str = ""
    """For preferences: values are compared within a subgroup alone."""


@dataclass(frozen=True, slots=True)
class Rating:
    """Grade of a document by a rater; None where the rater has not judged it."""

    doc_id: str
    rater: str
    grade: float | None
    final: bool = False
    """Given by adjudication: it stands in the place of the other ratings of the document, which are kept."""
    reason: str = ""
    """Why, in the words of the rater; no part of the digest."""
    at: int | None = None
    """When, in milliseconds since 1970 (UTC); no part of the digest."""


@dataclass(frozen=True, slots=True)
class Anchor(InFile):
    """Position of an expected place in the code, by which it is found again when lines move."""

    _ALWAYS: ClassVar = frozenset({"offset", "lines"})

    symbol: FilledText
    """Symbol that contains the place: `src/index.rs::Index.add`, `docs/guide.md::Guide > Install`, or the file alone."""
    body: FilledText
    """SHA-256 of the text of the place, without blanks at line ends."""
    offset: Whole = 0
    """Distance in lines from the start of the symbol to the start of the place."""
    lines: Count = 1
    """Number of lines of the place."""


@dataclass(frozen=True, slots=True)
class Split(InFile):
    """The held-out queries and how they were sampled."""

    _ALWAYS: ClassVar = frozenset({"by"})

    seed: Whole
    """Random seed of the sample."""
    share: Share
    """Share of the queries that is held out."""
    by: tuple[FilledText, ...] = field(default=(), kw_only=True)
    """Strata of the stratified sample."""
    held_out: tuple[FilledText, ...]
    """Ids of the held-out queries."""


@dataclass(frozen=True)
class Meta(InFile):
    """Metadata of the test set, which `cranfield testset` updates; not part of its digest."""

    uncommitted: Text = ""
    """Changes of the repository that no commit had when the set was tied to it; empty: none."""
    review: Text = ""
    """Review status, such as `agent curated, pending human review` or `reviewed`."""
    scale: tuple[Grade, ...] = ()
    """Grades that judgments may have; empty: any grade."""
    made: Annotated[Date, OrNull()] = ""
    """Date of this version."""
    refresh_days: Annotated[int, at_least(1, 100_000)] = DEFAULT_REFRESH_DAYS
    """Days after `made` until the set is due for a refresh."""
    commit: Text = ""
    """Commit of the repository that the expected places refer to."""
    source_files: Mapping[Id, FilledText] = field(default_factory=dict)
    """Path to SHA-256 of each file with an expected place."""
    anchors: Mapping[Id, Anchor] = field(default_factory=dict)
    """Expected place (`src/index.rs:41-61`) to its anchor."""
    counts: Mapping[Id, Count] = field(default_factory=dict)
    """Stored counts of queries and judgments."""
    split: Split | None = None
    """The held-out queries."""
    previous: Text = ""
    """Digest of the previous version."""
    history: tuple[FilledText, ...] = ()
    """Changes, one sentence each, oldest first."""
    task_types: tuple[FilledText, ...] = ()
    """Values of the stratum `task_type`; empty: `locate`, `explain`, `debug`, `extend`, `review` and `general`."""
    judging: Judging | None = None
    """How the judgments were made, where they were frozen from a book."""
    assembly: Mapping[Id, Annotated[Any, AnyJson()]] = field(default_factory=dict)
    """How a golden set was assembled: models, prompts, tools, reviewers, error rates, retired models."""

    def days_overdue(self, today: date) -> int:
        """Days since it should have been refreshed; 0 where it is not overdue, or its date is not known."""
        return days_overdue(self.made, self.refresh_days, today)


def days_overdue(made: str, refresh_days: int, today: date) -> int:
    """Days since a test set of this date should have been refreshed; 0 where it is not overdue, or the date is not known."""
    try:
        due = date.fromisoformat(made) + timedelta(days=refresh_days)
    except (ValueError, OverflowError):
        return 0
    return max((today - due).days, 0)


@dataclass(frozen=True, slots=True)
class OtherJudgments:
    """Judgments that took the place of those of a test set, and of how many queries."""

    name: str
    digest: str
    """Digest of the other judgments alone."""
    fallback: bool
    """Whether queries that they do not judge keep the judgments of the set."""
    n_judged: int
    n_own: int
    """Queries that keep the judgments of the set."""
    n_unjudged: int
    """Queries left without a judgment."""


@dataclass(frozen=True, repr=False)
class TestSetHead:
    """What a test set says beside its queries."""

    __test__ = False

    name: FilledText
    """Name in reports."""
    _: KW_ONLY
    version: Text = ""
    """Version of the content, in any form."""
    description: Text = ""
    """Origin and purpose of the set."""
    sources: tuple[Source, ...] = ()
    """Sources of results, highest authority first; a result belongs to the first that matches."""
    matching: MatchingRules = field(default_factory=MatchingRules)
    """How results are matched with spans, entities and files."""
    databases: Mapping[Id, Database] = field(default_factory=dict)
    """Name to location of a database for predicates: `sqlite:corpus.db`, `duckdb:corpus.duckdb`, `env:VARIABLE`."""
    consensus: Text = ""
    """Consensus rule that combines ratings into judgments."""
    grouping: Grouping | None = None
    """Meaning of the groups in `groups`: subtopics, judges or preferences."""
    meta: Meta = field(default_factory=Meta, compare=False)
    """Metadata; not part of the digest."""


@dataclass(frozen=True, repr=False)
class TestSet(TestSetHead, Displayed):
    """Queries with their judgments. Identity is content: see `digest`."""

    queries: tuple[Query, ...]
    grades: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Query id to document id to grade. A grade under 0 means pooled but not judged."""
    targets: Mapping[str, tuple[Target, ...]] = field(default_factory=dict)
    """Query id to its targets. A query has graded ids or targets, not both."""
    groups: Mapping[str, tuple[GroupedJudgment, ...]] = field(default_factory=dict)
    """Query id to judgments by group, for measures that need them. Their documents stand in `grades` too, each with the
    highest value any group gave it."""
    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Query id to the files that its results should cover, for `FileCoverage`."""
    legacy: Mapping[str, Legacy] = field(default_factory=dict)
    """Query id to its legacy results, for `ModernFirst`."""
    forbidden: Mapping[str, tuple[Criteria, ...]] = field(default_factory=dict)
    """Query id to the results that must not be found, for `Forbidden`; no part of the grades."""
    ratings: Mapping[str, tuple[Rating, ...]] = field(default_factory=dict)
    """Query id to the grades of each rater. `grades` hold their consensus."""
    other_judgments: OtherJudgments | None = field(default=None, compare=False)
    """The judgments that took the place of the set's own; None where none did."""
    notes: tuple[Note, ...] = field(default=(), compare=False)
    """What its reader, and the steps that changed it, report. `str(note)` is the text."""
    made_ids: tuple[str, ...] = field(default=(), compare=False, repr=False)
    """Ids that were made from the questions, in the order of the file, where it has none; empty where it has."""
    labels: Mapping[str, Label] = field(default_factory=dict)
    """Query id to what answers of agents are scored by; no judgment, and no part of the digest."""

    def __hash__(self) -> int:
        """Hash of the name and the queries' ids: equal sets have equal hashes."""
        return hash((self.name, self.query_ids))

    @cached_property
    def query_ids(self) -> tuple[str, ...]:
        """Ids in the order of the file."""
        return tuple(query.id for query in self.queries)

    @cached_property
    def strata(self) -> Mapping[str, Mapping[str, str]]:
        """Query id to its strata, the class among them; without the queries that have none."""
        return {query.id: strata for query in self.queries if (strata := query_strata(query))}

    @cached_property
    def by_id(self) -> Mapping[str, Query]:
        """Queries by id."""
        return {query.id: query for query in self.queries}

    @property
    def n_judgments(self) -> int:
        """Graded ids, without those under 0, and targets."""
        graded = sum(grade >= 0 for grades in self.grades.values() for grade in grades.values())
        return graded + sum(map(len, self.targets.values()))

    @cached_property
    def unjudged_ids(self) -> tuple[str, ...]:
        """Ids of the queries without a judgment."""
        return tuple(query_id for query_id in self.query_ids if not self.is_judged(query_id))

    def is_judged(self, query_id: str) -> bool:
        """Whether a query has a judgment: a grade (also one under 0), a rule, or the statement that nothing is expected."""
        if self.grades.get(query_id) or query_id in self.targets:
            return True
        query = self.by_id.get(query_id)
        return query is not None and negative_of(query) is not None

    @cached_property
    def digest(self) -> str:
        """SHA-256 over queries and judgments, in id order; name, version and description do not enter."""
        hasher = sha256(b"cranfield testset 1\n")
        by_query = bool(self.files or self.legacy or self.ratings or self.forbidden)
        for query in sorted(self.queries, key=lambda query: query.id):
            record: list[object] = [
                query.id,
                query.text,
                dict(query.strata),
                dict(query.params),
                {doc_id: float(grade) for doc_id, grade in self.grades.get(query.id, {}).items()},
                [_target_record(target) for target in _by_kind(self.targets.get(query.id, ()))],
            ]
            if query.id in self.groups:
                record.append(
                    [self.grouping, [[g.doc_id, g.group, g.subgroup, g.value] for g in self.groups[query.id]]]
                )
            if query.weight != 1:
                record.append({"weight": query.weight})
            has_more = by_query or query.query_class or query.negative is not None or query.exhaustive or query.floors
            if has_more and (more := self._more(query)):
                record.append(more)
            text = _ENCODER.encode(record)
            hasher.update(text.encode("utf-8", "surrogatepass") + b"\n")
        if self.sources or self.matching != MatchingRules():
            matching = asdict(self.matching)
            usual = asdict(MatchingRules())
            for name in ("places", "ignore_identical_ids", "urls", "quotes", "quote_similarity", "page_base"):
                if matching[name] == usual[name]:  # a digest stays the same where they are as usual
                    del matching[name]
            rules = [[[s.name, s.pattern] for s in self.sources], matching]
            hasher.update(_ENCODER.encode(rules).encode("utf-8", "surrogatepass") + b"\n")
        return "sha256:" + hasher.hexdigest()

    @cached_property
    def labels_digest(self) -> str:
        """SHA-256 over the labels, in id order, without provenance; empty where there are none."""
        if not self.labels:
            return ""
        hasher = sha256(b"cranfield labels 1\n")
        for query_id in sorted(self.labels):
            text = _ENCODER.encode([query_id, self.labels[query_id].content])
            hasher.update(text.encode("utf-8", "surrogatepass") + b"\n")
        return "sha256:" + hasher.hexdigest()

    def _more(self, query: Query) -> dict[str, object]:
        """Properties that only some queries have."""
        legacy = self.legacy.get(query.id)
        more = {
            "class": query.query_class,
            "negative": None if query.negative is None else [query.negative.below, query.negative.field],
            "files": list(self.files.get(query.id, ())),
            "legacy": None if legacy is None else [list(legacy.ids), list(legacy.patterns)],
            "forbidden": [_target_record(target) for target in self.forbidden.get(query.id, ())],
            "exhaustive": query.exhaustive,
            "floors": dict(query.floors),
            "ratings": [
                [r.doc_id, r.rater, r.grade, *(["final"] if r.final else [])]
                for r in sorted(self.ratings.get(query.id, ()), key=lambda rating: (rating.doc_id, rating.rater))
            ],
        }
        return {name: value for name, value in more.items() if value}

    def _summary(self) -> str:
        version = f" {in_line(self.version)}" if self.version else ""
        n_judged = sum(map(len, self.grades.values())) + sum(map(len, self.targets.values()))
        return f"{in_line(self.name)}{version}: {count_noun(len(self.queries), 'queries')}, {count_noun(n_judged, 'judgments')}"


_KINDS = (Pattern, Span, Entity, File, Predicate, Criteria, Passage)


def _by_kind(targets: Iterable[Target]) -> list[Target]:
    """Targets by kind, in their order within a kind: the order of kinds carries no information."""
    return sorted(targets, key=lambda target: _KINDS.index(type(target)))


def _target_record(target: Target) -> list[object]:  # noqa: PLR0911 - a table of kinds
    """Identity of a target: its kind (except for a pattern) and its fields."""
    match target:
        case Pattern():
            return [target.regex, float(target.grade), target.credit, target.expected_count]
        case Span():
            return ["span", target.path, target.start, target.end, float(target.grade)]
        case Entity():
            lines = [list(span) for span in target.lines]
            return ["entity", target.id, float(target.grade), *([lines] if lines else [])]
        case File():
            return ["file", target.path, float(target.grade)]
        case Predicate():
            return ["predicate", target.sql, target.database, float(target.grade)]
        case Criteria():
            return ["criteria", dict(target.where), float(target.grade)]
        case Passage():
            return ["passage", target.quote, target.path, target.chars, target.pages, float(target.grade)]
