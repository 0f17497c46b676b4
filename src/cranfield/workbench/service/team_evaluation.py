"""A new evaluation by a team: keywords or a test set, systems, a book to judge the results in, measures that follow it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from cranfield.base.errors import CranfieldError, MeasureError, Problem, ProblemList, UsageError, shorten
from cranfield.base.words import join_first
from cranfield.books.settings import SCALES, BookSettings, GradeScale, Mode
from cranfield.books.store.schema import BookState
from cranfield.evaluation.values import RATED_BY_SLOT
from cranfield.judging.book.imports import scale_for
from cranfield.measures import USUAL_K, Measure, deepest_cutoff, parse_all
from cranfield.model import DEFAULT_CONVENTION, Query, TestSet, convention_named
from cranfield.model.query_ids import is_unfit, text_ids
from cranfield.stats.consensus import DEFAULT_RULE
from cranfield.workbench.service.live_measures import without_map
from cranfield.workbench.service.requests import EvaluateRequest
from cranfield.workbench.service.responses import Trigger
from cranfield.workbench.service.snapshot import empty_pool

if TYPE_CHECKING:
    from cranfield.books.store.values import BookInfo
    from cranfield.config.models import SetConfig
    from cranfield.workbench.service.service import Service
    from cranfield.workbench.service.values import JobInfo


MAX_KEYWORDS = 20_000
MAX_CHARS = 1_000
"""Most characters of one keyword."""


@dataclass(frozen=True, slots=True)
class Keywords:
    """What was pasted."""

    texts: tuple[str, ...]
    """Each once, in the order of the first."""
    repeated: tuple[tuple[int, int, str], ...]
    """Line, the line that it repeats, and its text."""
    blank: tuple[int, ...]
    """Lines without a keyword that have one after them."""

    @property
    def left_out(self) -> tuple[str, ...]:
        """A sentence for each line that is left out."""
        lines = [(line, f"line {line} repeats line {first}: {shorten(text)}") for line, first, text in self.repeated]
        lines += [(line, f"line {line} is blank") for line in self.blank]
        return tuple(sentence for _, sentence in sorted(lines))


def read_keywords(pasted: str) -> Keywords:
    r"""Read one keyword a line; spaces around it do not count, and a tab counts as a space.

    Raises:
        UsageError: with every line that is no keyword, or there is none.

    Example:
        >>> found = read_keywords("red shoes\n\nboots\nred shoes\n")
        >>> found.texts, found.left_out
        (('red shoes', 'boots'), ('line 2 is blank', "line 4 repeats line 1: 'red shoes'"))
    """
    problems = ProblemList(UsageError)
    lines = [line.replace("\t", " ").strip() for line in pasted.rstrip().replace("\r\n", "\n").split("\n")]
    first: dict[str, int] = {}
    repeated, blank = [], []
    for number, text in enumerate(lines, start=1):
        if not text:
            blank.append(number)
        elif is_unfit(text):
            problems.add("the keyword contains a control character", path=f"line {number}", got=shorten(text))
        elif len(text) > MAX_CHARS:
            problems.add(
                "the keyword is too long",
                path=f"line {number}",
                expected=f"at most {MAX_CHARS} characters",
                got=str(len(text)),
            )
        elif text in first:
            repeated.append((number, first[text], text))
        else:
            first[text] = number
    if len(first) > MAX_KEYWORDS:
        problems.add("too many keywords", expected=f"at most {MAX_KEYWORDS}", got=str(len(first)))
    if not first and not problems.problems:
        problems.add("no keywords", expected="one per line")
    problems.raise_if_any()
    return Keywords(tuple(first), tuple(repeated), tuple(blank))


def keyword_testset(name: str, texts: Sequence[str]) -> TestSet:
    """A test set of queries without judgments. The id of a query is its text, so that a later list knows it again."""
    queries = tuple(Query(query_id, text) for query_id, text in zip(text_ids(texts), texts, strict=True))
    return TestSet(name, queries, {})


NEW_BOOK = "/new"
"""No name of a book: a new one is made."""
NO_BOOK = "/"
"""No name of a book: results are scored by the judgments of the test set alone."""
USUAL_BOOK = "//"
"""No name of a book: `NO_BOOK` for a test set with judgments, for keywords and for one without the book of that name,
where it takes grades, else `NEW_BOOK`."""
OWN_SCALE = "of the test set"
DEFAULT_MEASURES = "MAP@{k}, MRR@{k}, nDCG@{k}"
"""Measures of keywords, at their depth."""
MAX_NAMED = 20
"""Lines left out that are named one by one."""
MAX_TEXT = 5_000_000
T = TypeVar("T")
Line = Annotated[str, Field(max_length=1_000)]


class TeamRequest(BaseModel):
    """What the form sends."""

    model_config = ConfigDict(frozen=True)

    name: Annotated[str, Field(max_length=200)] = ""
    """Name of the list of keywords, and of a new book."""
    keywords: Annotated[str, Field(max_length=MAX_TEXT)] = ""
    testset: Line = ""
    systems: list[Line] = Field(default_factory=list)
    variants: list[Line] = Field(default_factory=list)
    k: Annotated[Annotated[int, Field(ge=1, le=10_000)] | None, BeforeValidator(lambda sent: sent or None)] = None
    """This, the measures and the convention, where they are empty: of a test set as the config has them; of keywords as
    SearchTweak has them. A depth that neither has is that of the measures."""
    measures: Line = ""
    """Spellings, separated by commas or spaces."""
    convention: Line = ""
    book: Line = USUAL_BOOK
    """Name of a book that is there; `NEW_BOOK`; `NO_BOOK`; `USUAL_BOOK`."""
    scale: Line = ""
    """Empty: that of the book that is chosen; of a new one graded, 0 to 3."""
    raters: Annotated[int, Field(ge=1, le=10)] = 1
    escalate: bool = False
    """A further rater is asked where grades differ by 2 or more, then it is adjudicated; otherwise the rule decides alone."""
    guideline: Annotated[str, Field(max_length=100_000)] = ""
    members: list[int] = Field(default_factory=list)
    """Accounts that judge in a new book."""

    @property
    def spellings(self) -> list[str]:
        """The measures, each once."""
        return list(dict.fromkeys(self.measures.replace(",", " ").split()))


def start_evaluation(service: Service, wanted: TeamRequest, by: int) -> tuple[JobInfo, ...]:
    """Store the keywords, make the book, and submit the jobs: one for the systems, one for each variant.

    Raises:
        UsageError: with everything that is wrong; nothing is stored then.
    """
    problems: list[Problem] = []
    keywords = _tried(problems, lambda: read_keywords(wanted.keywords)) if wanted.keywords.strip() else None
    testset = _testset(service, wanted, keywords, problems)
    wanted = with_usual(service, wanted, testset)
    measures = _tried(problems, lambda: parse_all(wanted.spellings)) or ()
    _tried(problems, lambda: convention_named(wanted.convention) if wanted.convention else None)
    problems += _problems(service, wanted, keywords, measures)
    settings = _tried(problems, lambda: _settings(service, wanted, testset)) if wanted.book != NO_BOOK else None
    if settings is not None:
        problems += without_map(measures, settings.scale.grades, wanted.convention)
    if problems or testset is None:
        raise UsageError(problems)
    ref = wanted.testset
    if keywords is not None:
        ref = service.testsets.keep(wanted.name.strip(), testset, by=by).ref
    book = "" if settings is None else _book(service, wanted, testset, settings, by)
    request = EvaluateRequest(
        testset=ref,
        k=wanted.k,
        measures=tuple(wanted.spellings) or None,
        convention=wanted.convention or None,
        book=book,
        note=_note(keywords),
    )
    parts = [request.model_copy(update={"systems": tuple(wanted.systems)})] if wanted.systems else []
    parts += [request.model_copy(update={"variant": variant}) for variant in wanted.variants]
    return tuple(service.jobs.submit(part, trigger=Trigger.PAGE, by=by) for part in parts)


def with_usual(service: Service, wanted: TeamRequest, testset: TestSet | None) -> TeamRequest:
    """The request with what the form left empty, as far as the config does not have it when the job runs."""
    is_judged = testset is not None and testset.n_judgments > 0
    own = wanted.name.strip() or wanted.testset
    open_books = {each.name for each in service.store.books.all() if takes_grades(each)}
    usual_book = NO_BOOK if is_judged else own if own in open_books else NEW_BOOK
    book = wanted.book if wanted.book != USUAL_BOOK else usual_book
    usual: dict[str, object] = {"book": book}
    if wanted.keywords.strip():
        usual |= {"k": wanted.k or usual_k(service, wanted), "convention": wanted.convention or RATED_BY_SLOT}
        usual["measures"] = wanted.measures or DEFAULT_MEASURES.format(k=usual["k"])
    elif book != NO_BOOK:  # a book names what it is scored by from the start
        config = service.config()
        chosen = None if config is None else config.settings_of(service.testsets.config_key(wanted.testset))
        usual["k"] = wanted.k or usual_k(service, wanted)
        usual["convention"] = wanted.convention or (
            DEFAULT_CONVENTION if config is None else config.scoring().convention_name
        )
        usual["measures"] = wanted.measures or ", ".join(measures_of(chosen)) or DEFAULT_MEASURES.format(k=usual["k"])
    return wanted.model_copy(update=usual)


def takes_grades(book: BookInfo) -> bool:
    """Whether results can be put into a book, to be graded."""
    return book.settings.mode is Mode.GRADE and book.state == BookState.OPEN


def measures_of(chosen: SetConfig | None) -> list[str]:
    """The measures of a test set of the config, the primary one first; empty where it names none."""
    if chosen is None:
        return []
    return list(dict.fromkeys([*([chosen.primary] if chosen.primary else []), *(chosen.measures or ())]))


def _note(keywords: Keywords | None) -> str:
    """Which lines of the keywords are left out; empty where none is."""
    if keywords is None or not keywords.left_out:
        return ""
    return f"left out of the keywords: {join_first(keywords.left_out, MAX_NAMED)}"


def _tried(problems: list[Problem], make: Callable[[], T]) -> T | None:
    try:
        return make()
    except CranfieldError as error:
        problems += error.problems
        return None


def _testset(
    service: Service, wanted: TeamRequest, keywords: Keywords | None, problems: list[Problem]
) -> TestSet | None:
    if keywords is not None:
        return keyword_testset(wanted.name.strip(), keywords.texts)
    return _tried(problems, lambda: service.testsets.load(wanted.testset)) if wanted.testset else None


def _problems(
    service: Service, wanted: TeamRequest, keywords: Keywords | None, measures: Sequence[Measure]
) -> Iterator[Problem]:
    has_keywords = bool(wanted.keywords.strip())
    if has_keywords == bool(wanted.testset):
        got = "both" if has_keywords else "neither"
        yield Problem("the evaluation has no queries", expected="keywords, or a test set", got=got)
    name = wanted.name.strip()
    if has_keywords and not name:
        yield Problem(
            "the keywords have no name", path="name", hint="a list with an existing name becomes a new version"
        )
    if keywords is not None and service.testsets.config_key(name) is not None:
        yield Problem(f"the config of the server has a test set {name}", path="name", hint="choose another name")
    if not wanted.systems and not wanted.variants:
        yield Problem("no system is selected", path="systems", expected="one or more")
    config = service.config()
    for system in wanted.systems:
        if config is None or system not in config.systems:
            yield Problem(f"unknown system {system}", path="systems")
    depth = wanted.k or usual_k(service, wanted)
    for measure in measures:
        if measure.depth is not None and measure.depth > depth:
            hint = "increase the depth, or lower the cutoff"
            yield Problem(
                f"{measure} requires {measure.depth} results", path="measures", got=f"depth {depth}", hint=hint
            )


def usual_k(service: Service, wanted: TeamRequest) -> int:
    """Results requested where no depth is written: of a test set as the config has it, else as deep as the measures look."""
    config = service.config() if wanted.testset else None
    try:
        if config is None:
            return deepest_cutoff(wanted.spellings)
        return config.results_requested(
            config.settings_of(service.testsets.config_key(wanted.testset)), wanted.spellings
        )
    except MeasureError:  # it is among the problems already
        return USUAL_K


def _settings(service: Service, wanted: TeamRequest, testset: TestSet | None) -> BookSettings:
    """Those of the book that is chosen, or of a new one.

    Raises:
        UsageError: the book is closed or holds preferences, or there is one of the new name; a viewer is to judge.
    """
    if wanted.book != NEW_BOOK:
        info = service.store.books.get(wanted.book)
        if not takes_grades(info):
            raise UsageError(f"book {info.name} is closed, or holds preferences", path="book", hint="choose another")
        own = info.settings.scale.name
        if {own, wanted.scale} <= SCALES.keys() and own != wanted.scale:
            hint = f"select the scale {own}, or a new book; grades of another scale are not carried over"
            raise UsageError(
                f"book {info.name} is judged on the scale {own}", path="scale", got=wanted.scale, hint=hint
            )
        return info.settings
    if set(wanted.members) - {each.id for each in service.store.people.raters()}:
        raise UsageError(
            "some of the selected accounts cannot judge", path="raters", expected="active accounts, no viewers"
        )
    name = wanted.name.strip() or wanted.testset
    if any(info.name == name for info in service.store.books.all()):
        hint = "select it to carry its grades over, or enter another name"
        raise UsageError(f"book {name} already exists", path="name", hint=hint)
    scale = _scale(wanted.scale, testset)
    differ = max(scale.grades) - min(scale.grades) + 1
    return BookSettings(
        scale=scale,
        raters_per_item=wanted.raters,
        most_raters=wanted.raters + 1 if wanted.escalate else wanted.raters,
        escalate_from=min(2, differ - 1) if wanted.escalate else differ,
        consensus=RATED_BY_SLOT if wanted.convention == RATED_BY_SLOT else DEFAULT_RULE,
    )


def _scale(name: str, testset: TestSet | None) -> GradeScale:
    if name == OWN_SCALE and testset is not None:
        return scale_for(testset)
    if (name or "graded") not in SCALES:
        raise UsageError(f"unknown scale {name}", path="scale", expected=", ".join(SCALES))
    return SCALES[name or "graded"]


def _book(service: Service, wanted: TeamRequest, testset: TestSet, settings: BookSettings, by: int) -> str:
    """The name of the book, which is made where it is new."""
    if wanted.book != NEW_BOOK:
        return wanted.book
    name = wanted.name.strip() or wanted.testset
    guideline = wanted.guideline.replace("\r\n", "\n").strip() or None
    info: BookInfo = service.store.books.create(
        name.replace("/", "-").replace("\\", "-"),
        empty_pool(testset, wanted.k or USUAL_K, name),
        settings,
        guideline=guideline,
        by=by,
    )
    for account in wanted.members:
        service.store.people.join(info.id, account)
    return info.name
