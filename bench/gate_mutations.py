"""What the mechanical gate catches: good records over Cranfield's own source, made from its symbols, and each broken in one way.

    python bench/gate_mutations.py [--each-kind N]

prints the table of kinds x checks. No model is asked: texts are made of fixed words.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import cycle, islice
from pathlib import Path

import cranfield
from cranfield.agents.loop import Read
from cranfield.golden.gate import GateCheck, RecordGateReport, gate
from cranfield.golden.parsed import ParsedSource, folder_of, module_parts
from cranfield.golden.records import CitedFact, CitedLines, Evidence, ExpectedEntity, OracleAnswer, QueryCandidate
from cranfield.golden.rules import RULES
from cranfield.repo.snapshot import take
from cranfield.repo.symbols import Symbol

PACKAGE = Path(cranfield.__file__).parent
ROOMS = ("agents/", "repo/", "matching/", "testsets/", "errors.py")
N_RECORDS = 200
MAX_OF_A_FILE = 5
SUBJECTS = [
    "lantern",
    "harbour",
    "meadow",
    "orchard",
    "velvet",
    "copper",
    "glacier",
    "saddle",
    "walnut",
    "ribbon",
    "thistle",
    "pebble",
]
PROSE = (
    "It is best to read this part first, because all that follows depends on it, and because a change here shows in every "
    "place that comes after. The values go in at the top and come out at the end; nothing is kept between two calls, so the "
    "same input gives the same result. Whoever takes it up again should begin with the name above, then follow the calls one "
    "by one, and look at what each of them returns before the next one is made. What goes wrong on the way is raised to the "
    "caller, who is told where it happened."
)


@dataclass(frozen=True)
class Record:
    """A record with the log of what was read."""

    candidate: QueryCandidate
    answer: OracleAnswer
    reads: tuple[Read, ...]

    def asking(self, **changes: object) -> Record:
        """With another candidate; nothing is validated, as in a file that another tool wrote."""
        return replace(self, candidate=self.candidate.model_copy(update=changes))

    def answering(self, **changes: object) -> Record:
        """With another answer, which is not validated either."""
        return replace(self, answer=self.answer.model_copy(update=changes))


def own_source(rooms: Sequence[str] = ROOMS) -> ParsedSource:
    """Some rooms of the package, as they stand."""
    snapshot = take(PACKAGE)
    return ParsedSource(replace(snapshot, files={path: "" for path in snapshot.files if path.startswith(tuple(rooms))}))


def good_records(source: ParsedSource, n: int = N_RECORDS, seed: int = 0) -> list[Record]:
    """Records that break no rule, of every task type and difficulty in turn."""
    rng = random.Random(seed)
    by_file = {path: symbols for path in sorted(source.files) if len(symbols := _usable(path, source)) >= MAX_OF_A_FILE}
    return [_good(number, cell, by_file, source, rng) for number, cell in enumerate(islice(cycle(RULES), n), start=1)]


def _usable(path: str, source: ParsedSource) -> list[Symbol]:
    """Functions and methods that are not small, alone under their names, in a file with room around them."""
    outline = source.outline(path)
    if outline is None or len(outline.lines) < 60:
        return []
    alone = {symbols[0].id for symbols in outline.entities.values() if len(symbols) == 1}
    kinds = {"function", "method"}
    return [symbol for symbol in outline.symbols if symbol.kind in kinds and symbol.id in alone and symbol.lines >= 4]


def _good(
    number: int,
    cell: tuple[str, str],
    by_file: Mapping[str, list[Symbol]],
    source: ParsedSource,
    rng: random.Random,
) -> Record:
    rule = RULES[cell]
    task_type, difficulty = cell
    n_files = rule.files.least
    while True:
        paths = rng.sample(sorted(by_file), n_files)
        if len({folder_of(path) for path in paths}) >= rule.folders.least:
            break
    picked = [rng.choice(by_file[path]) for path in paths]
    more = [symbol for symbol in by_file[paths[0]] if symbol not in picked]
    picked += rng.sample(more, max(0, rule.entities.least - len(picked)))
    roles = ["primary", *["supporting"] * (len(picked) - 1)]
    context = rng.choice([symbol for path in sorted(by_file) if path not in paths for symbol in by_file[path]])
    if number % 2:
        picked, roles = [*picked, context], [*roles, "contextual"]
    shared = {"query_id": f"q_{number:05}", "task_type": task_type, "difficulty": difficulty, "commit": "0" * 40}
    subject, other = rng.sample(SUBJECTS, 2)
    candidate = QueryCandidate(
        **shared,
        query_text=f"How does the {subject} reach the {other} when several of them come at the same time?",
        target_entity_ids=[symbol.id for symbol, role in zip(picked, roles, strict=True) if role != "contextual"],
        difficulty_rationale="" if difficulty == "easy" else "several parts act together",
        classifier_expectation="locate" if task_type == "general" else None,
        authored_by="a script",
        created_at="2026-01-01T00:00:00Z",
    )
    answer = OracleAnswer(
        **shared,
        expected_entities=[
            ExpectedEntity(entity_id=symbol.id, role=role) for symbol, role in zip(picked, roles, strict=True)
        ],
        expected_files=list(dict.fromkeys(_path(symbol) for symbol in picked)),
        expected_line_ranges=[_lines(symbol) for symbol in picked],
        must_mention_facts=_facts(picked, number),
        must_not_mention_facts=[CitedFact(fact=f"The {subject} is kept in a global variable.")],
        canonical_narrative=_narrative(picked),
        source_evidence=[Evidence(**_lines(symbol).model_dump(), read_at_step=1) for symbol in picked],
        confidence="high",
        authored_by="a script",
        created_at="2026-01-01T00:00:00Z",
    )
    return Record(candidate, answer, tuple(read for symbol in picked for read in _shown(symbol, source)))


def _path(symbol: Symbol) -> str:
    return symbol.id.partition("::")[0]


def _lines(symbol: Symbol) -> CitedLines:
    return CitedLines(file=_path(symbol), start=symbol.start, end=symbol.end)


def _shown(symbol: Symbol, source: ParsedSource) -> Iterator[Read]:
    """Two reads that meet in the middle of a symbol, with a line around it."""
    path, middle = _path(symbol), (symbol.start + symbol.end) // 2
    yield Read(path, max(1, symbol.start - 1), middle)
    yield Read(path, middle + 1, min(len(source.lines(path) or ()), symbol.end + 1))


def _facts(picked: Sequence[Symbol], number: int) -> list[CitedFact]:
    cited = list(islice(cycle(picked), 3 + number % 6))
    return [
        CitedFact(
            fact=f"Line {symbol.start + place % symbol.lines} belongs to `{symbol.names[-1]}`, fact {place}.",
            citations=[CitedLines(file=_path(symbol), start=symbol.start, end=symbol.start + 2)],
        )
        for place, symbol in enumerate(cited)
    ]


def _narrative(picked: Sequence[Symbol]) -> str:
    """Names every entity, the class of a method and a path, in prose that is full of words that are names elsewhere."""
    named = [f"`{'.'.join(symbol.names)}` ({_path(symbol)}, lines {symbol.start} to {symbol.end})" for symbol in picked]
    return f"The work is done by {', then '.join(named)}. {PROSE} See `{picked[0].names[0]}` for the whole."


Mutation = Callable[[Record, ParsedSource], Record | None]
"""A record broken in one way; None where this way does not apply to it."""


def _first(record: Record) -> ExpectedEntity:
    return record.answer.expected_entities[0]


def _with_first(record: Record, **changes: object) -> Record:
    first, *others = record.answer.expected_entities
    return record.answering(expected_entities=[first.model_copy(update=changes), *others])


def _unseen(record: Record, source: ParsedSource) -> str:
    """A file of code that the record does not mention."""
    known = {read.path for read in record.reads}
    return next(path for path in sorted(source.files) if path not in known and len(source.lines(path) or ()) > 20)


def _unseen_symbol(record: Record, source: ParsedSource, wanted: Callable[[str], bool]) -> Symbol | None:
    """The first symbol of another file whose last name is wanted, and names nothing that is expected."""
    allowed = {
        part for entity in record.answer.expected_entities for part in entity.entity_id.split("::")[1].split(".")
    }
    for name, ids in source.named.items():
        if wanted(name) and name not in allowed and not any(_near(entity, record) for entity in ids):
            return source.symbols(ids[0])[0]
    return None


def _near(entity: str, record: Record) -> bool:
    return entity.partition("::")[0] in record.answer.expected_files


def _lines_changed(part: CitedLines, **changes: int | str) -> CitedLines:
    return part.model_copy(update=changes)


def _range(record: Record, **changes: int | str) -> Record:
    first, *others = record.answer.expected_line_ranges
    return record.answering(expected_line_ranges=[_lines_changed(first, **changes), *others])


def _evidence(record: Record, **changes: int | str) -> Record:
    first, *others = record.answer.source_evidence
    return record.answering(source_evidence=[_lines_changed(first, **changes), *others])


def _citation(record: Record, **changes: int | str) -> Record:
    first, *others = record.answer.must_mention_facts
    cited = [_lines_changed(first.citations[0], **changes)]
    return record.answering(must_mention_facts=[first.model_copy(update={"citations": cited}), *others])


def _says(record: Record, words: str) -> Record:
    return record.answering(canonical_narrative=f"{record.answer.canonical_narrative} {words}")


def _asks(record: Record, words: str) -> Record:
    return record.asking(query_text=f"{record.candidate.query_text} {words}")


def _shifted(record: Record, source: ParsedSource) -> Record | None:
    """The first line range, moved to lines of the same file that were not read."""
    part = record.answer.expected_line_ranges[0]
    length = part.end - part.start
    n_lines = len(source.lines(part.file) or ())
    for start in range(1, n_lines - length):
        moved = range(start, start + length + 1)
        if not any(
            read.path == part.file and read.start <= line <= read.end for read in record.reads for line in moved
        ):
            return _range(record, start=start, end=start + length)
    return None


def _outside(record: Record, source: ParsedSource) -> Record | None:
    """The first line range, moved to the first lines of its file, of no expected entity; they were read."""
    part = record.answer.expected_line_ranges[0]
    ranges = [lines for each in record.answer.expected_entities for lines in source.ranges(each.entity_id)]
    if min(start for start, _ in ranges) < 3:
        return None
    return replace(_range(record, start=1, end=2), reads=(*record.reads, Read(part.file, 1, 2)))


def _other_symbol(record: Record, source: ParsedSource) -> Record | None:
    """The first entity, exchanged for one of its file of which nothing was read."""
    path = _first(record).entity_id.partition("::")[0]
    for symbol in _usable(path, source):
        lines = range(symbol.start, symbol.end + 1)
        if not any(read.path == path and read.start <= line <= read.end for read in record.reads for line in lines):
            return _with_first(record, entity_id=symbol.id)
    return None


def _other_difficulty(record: Record, _: ParsedSource) -> Record | None:
    counted = [entity for entity in record.answer.expected_entities if entity.role != "contextual"]
    other = "hard" if len(counted) == 1 else "easy" if len(counted) > 3 or _n_files(counted) > 1 else None
    if other is None or other == record.candidate.difficulty:
        return None
    return record.asking(difficulty=other).answering(difficulty=other)


def _n_files(entities: Sequence[ExpectedEntity]) -> int:
    return len({entity.entity_id.partition("::")[0] for entity in entities})


def _names_in_words(record: Record, _: ParsedSource) -> Record | None:
    """A hard query that says the names of its targets in plain words."""
    if record.candidate.difficulty != "hard":
        return None
    words = " ".join(entity.rpartition("::")[2] for entity in record.candidate.target_entity_ids)
    return record.asking(query_text=words.replace("_", " ").replace(".", " "))


def _quotes_lines(record: Record, source: ParsedSource) -> Record | None:
    """A query that quotes a line of each target that stands nowhere else."""
    if record.candidate.difficulty == "easy":
        return None
    quoted = []
    for entity in record.candidate.target_entity_ids:
        path = entity.partition("::")[0]
        ((start, end),) = source.ranges(entity)
        lines = (source.lines(path) or ())[start:end]
        unique = (line.strip() for line in lines if len(line.strip()) > 12 and not set(line) & set("\"'`"))
        line = next((line for line in unique if len(source.lines_with(line) or ()) == 1), None)
        if line is None:
            return None
        quoted.append(f'"{line}"')
    return _asks(record, " ".join(quoted))


def _says_symbol(wanted: Callable[[str], bool], form: str) -> Mutation:
    def mutate(record: Record, source: ParsedSource) -> Record | None:
        symbol = _unseen_symbol(record, source, wanted)
        return None if symbol is None else _says(record, form.format(symbol.names[-1]))

    return mutate


def _says_qualified(joint: str) -> Mutation:
    """Names a method of another class in prose: `Index::add`."""

    def mutate(record: Record, source: ParsedSource) -> Record | None:
        symbol = _unseen_symbol(record, source, lambda name: any(map(_is_method, source.named[name])))
        return None if symbol is None else _says(record, f"It calls {joint.join(symbol.names)} then.")

    return mutate


def _is_method(entity: str) -> bool:
    return entity.partition("::")[2].count(".") == 1


def _leaked(form: Callable[[str], str]) -> Mutation:
    def mutate(record: Record, _: ParsedSource) -> Record | None:
        name = _first(record).entity_id.partition("::")[2].rpartition(".")[2]
        return _asks(record, form(name)) if "_" in name.strip("_") else None

    return mutate


def _facts_changed(kind: str, change: Callable[[list[CitedFact]], list[CitedFact]]) -> Mutation:
    return lambda record, _: record.answering(**{kind: change(getattr(record.answer, kind))})


def _numbered(facts: Sequence[CitedFact], n: int) -> list[CitedFact]:
    return [facts[0].model_copy(update={"fact": f"{facts[0].fact} {place}"}) for place in range(n)]


PAST = 99_999
KINDS: Mapping[str, tuple[GateCheck | None, Mutation]] = {
    "wrong symbol": (GateCheck.ENTITIES, lambda r, _: _with_first(r, entity_id=f"{_first(r).entity_id}_x")),
    "symbol of another file": (
        GateCheck.ENTITIES,
        lambda r, s: _with_first(r, entity_id=f"{_unseen(r, s)}::{_first(r).entity_id.partition('::')[2]}x"),
    ),
    "symbol without a file": (
        GateCheck.ENTITIES,
        lambda r, _: _with_first(r, entity_id=_first(r).entity_id.replace(".py", "_x.py")),
    ),
    "wrong file": (
        GateCheck.FILES,
        lambda r, _: r.answering(expected_files=[f"x/{r.answer.expected_files[0]}", *r.answer.expected_files[1:]]),
    ),
    "file that is not there": (
        GateCheck.FILES,
        lambda r, _: r.answering(expected_files=[*r.answer.expected_files, "src/none.py"]),
    ),
    "missing file of entity": (
        GateCheck.FILES_OF_PLACES,
        lambda r, _: r.answering(expected_files=r.answer.expected_files[1:]),
    ),
    "range in another file": (
        GateCheck.FILES_OF_PLACES,
        lambda r, s: r.answering(
            expected_line_ranges=[*r.answer.expected_line_ranges, CitedLines(file=_unseen(r, s), start=1, end=2)]
        ),
    ),
    "range outside every entity": (GateCheck.LINE_RANGES, _outside),
    "range past the end": (GateCheck.LINE_RANGES, lambda r, _: _range(r, end=PAST)),
    "range from line 0": (GateCheck.LINE_RANGES, lambda r, _: _range(r, start=0)),
    "swapped start and end": (
        GateCheck.LINE_RANGES,
        lambda r, _: _range(r, start=r.answer.expected_line_ranges[0].end, end=r.answer.expected_line_ranges[0].start),
    ),
    "shifted range": (GateCheck.READ, _shifted),
    "unread symbol in its place": (GateCheck.READ, _other_symbol),
    "unread evidence": (
        GateCheck.READ,
        lambda r, s: r.answering(
            source_evidence=[
                *r.answer.source_evidence,
                Evidence(file=_unseen(r, s), start=1, end=9, read_at_step=1),
            ]
        ),
    ),
    "evidence wider than read": (
        GateCheck.READ,
        lambda r, s: _evidence(r, start=1, end=len(s.lines(r.answer.source_evidence[0].file) or ())),
    ),
    "half of a read lost": (GateCheck.READ, lambda r, _: replace(r, reads=r.reads[1:])),
    "nothing read": (GateCheck.READ, lambda r, _: replace(r, reads=())),
    "evidence past the end": (GateCheck.EVIDENCE, lambda r, _: _evidence(r, end=PAST)),
    "evidence from line 0": (GateCheck.EVIDENCE, lambda r, _: _evidence(r, start=0)),
    "evidence of no file": (GateCheck.EVIDENCE, lambda r, _: _evidence(r, file="src/none.py")),
    "no evidence": (GateCheck.EVIDENCE, lambda r, _: r.answering(source_evidence=[])),
    "name-dropped function": (GateCheck.NAME_DROPS, _says_symbol(lambda name: "_" in name.strip("_"), "It calls {}.")),
    "name-dropped word in backticks": (
        GateCheck.NAME_DROPS,
        _says_symbol(lambda name: name in {"take", "connected", "git", "elsewhere"}, "It calls `{}` then."),
    ),
    "name-dropped class": (
        GateCheck.NAME_DROPS,
        _says_symbol(
            lambda name: (
                name[:1].isupper() and any(c.isupper() for c in name[2:]) and "_" not in name and not name.isupper()
            ),
            "A {}.",
        ),
    ),
    "name-dropped method": (GateCheck.NAME_DROPS, _says_qualified("::")),
    "name-dropped module": (
        GateCheck.NAME_DROPS,
        lambda r, s: _says(r, f"It is set up in {'.'.join(module_parts(_unseen(r, s))[-2:])}."),
    ),
    "name-dropped file": (GateCheck.NAME_DROPS, lambda r, s: _says(r, f"It is set up in {_unseen(r, s)}.")),
    "invented file": (
        GateCheck.NAME_DROPS,
        lambda r, s: _says(r, f"It is set up in {min(s.top_folders)}/invented.py."),
    ),
    "uncited fact": (
        GateCheck.CITATIONS,
        _facts_changed("must_mention_facts", lambda facts: [facts[0].model_copy(update={"citations": []}), *facts[1:]]),
    ),
    "citation past the end": (GateCheck.CITATIONS, lambda r, _: _citation(r, end=PAST)),
    "citation outside the evidence": (
        GateCheck.CITATIONS,
        lambda r, s: _citation(r, file=_unseen(r, s), start=1, end=2),
    ),
    "too few facts": (GateCheck.FACTS, _facts_changed("must_mention_facts", lambda facts: facts[:2])),
    "too many facts": (GateCheck.FACTS, _facts_changed("must_mention_facts", lambda facts: _numbered(facts, 9))),
    "repeated fact": (GateCheck.FACTS, _facts_changed("must_mention_facts", lambda facts: [*facts[:4], facts[0]])),
    "no mistake to avoid": (GateCheck.FACTS, _facts_changed("must_not_mention_facts", lambda _: [])),
    "too many mistakes": (GateCheck.FACTS, _facts_changed("must_not_mention_facts", lambda facts: _numbered(facts, 4))),
    "too long narrative": (GateCheck.NARRATIVE, lambda r, _: _says(r, PROSE * 2)),
    "too short narrative": (GateCheck.NARRATIVE, lambda r, _: r.answering(canonical_narrative="It is done there.")),
    "no narrative": (GateCheck.NARRATIVE, lambda r, _: r.answering(canonical_narrative="")),
    "unknown role": (GateCheck.ROLES, lambda r, _: _with_first(r, role="main")),
    "no primary entity": (GateCheck.ROLES, lambda r, _: _with_first(r, role="supporting")),
    "repeated entity": (
        GateCheck.ROLES,
        lambda r, _: r.answering(expected_entities=[*r.answer.expected_entities, _first(r)]),
    ),
    "wrong difficulty": (GateCheck.DIFFICULTY, _other_difficulty),
    "answer of another type": (
        GateCheck.DIFFICULTY,
        lambda r, _: r.answering(task_type="review" if r.answer.task_type != "review" else "debug"),
    ),
    "hard query in the words of its targets": (GateCheck.DIFFICULTY, _names_in_words),
    "no rationale": (
        GateCheck.RATIONALE,
        lambda r, _: None if r.candidate.difficulty == "easy" else r.asking(difficulty_rationale=" "),
    ),
    "no expectation of the classifier": (
        GateCheck.RATIONALE,
        lambda r, _: r.asking(classifier_expectation=None) if r.candidate.task_type == "general" else None,
    ),
    "leaked identifier": (GateCheck.LEAK, _leaked(lambda name: f"Is it {name}?")),
    "identifier run together": (GateCheck.LEAK, _leaked(lambda name: f"Is it {name.replace('_', '')}?")),
    "identifier with hyphens": (GateCheck.LEAK, _leaked(lambda name: f"Is it {name.strip('_').replace('_', '-')}?")),
    "leaked file": (
        GateCheck.LEAK,
        lambda r, _: _asks(r, f"Is it in {r.candidate.target_entity_ids[0].partition('::')[0]}?"),
    ),
    "quoted line of each target": (GateCheck.GREP_ONLY, _quotes_lines),
    "nothing expected": (
        GateCheck.SCORER,
        lambda r, _: r.answering(expected_entities=[], expected_files=[], expected_line_ranges=[]),
    ),
    "false fact with a citation": (
        None,
        _facts_changed(
            "must_mention_facts",
            lambda facts: [facts[0].model_copy(update={"fact": "It sleeps for a second."}), *facts[1:]],
        ),
    ),
    "wrong statement in prose": (None, lambda r, _: _says(r, "Every second value is lost.")),
}
"""Kind to the check that must catch it, and how a record is broken. None: no check can; the adversary and people may."""


def run(source: ParsedSource, records: Sequence[Record], each: int) -> Iterator[tuple[str, Record, RecordGateReport]]:
    """Reports of records that are broken, `each` of every kind, spread over all records."""
    place = 0
    for kind, (_, mutate) in KINDS.items():
        n = 0
        for record in islice(cycle(records), place, place + len(records)):
            broken = mutate(record, source)
            place = (place + 1) % len(records)
            if broken is not None:
                yield kind, broken, gate(broken.candidate, broken.answer, broken.reads, source)
                n += 1
            if n == each:
                break


def table(reports: Sequence[tuple[str, Record, RecordGateReport]]) -> str:
    """Kinds x checks: how many records of a kind each check failed."""
    counts = Counter((kind, check) for kind, _, report in reports for check in report.failed)
    total = Counter(kind for kind, _, _ in reports)
    columns = [check for check in GateCheck if any(counts[kind, check] for kind in total)]
    width = max(map(len, total))
    lines = [f"{'kind':{width}}  {'n':>3}  " + "  ".join(check.value for check in columns)]
    for kind, n in total.items():
        cells = (f"{counts[kind, check] or '.':>{len(check.value)}}" for check in columns)
        lines.append(f"{kind:{width}}  {n:>3}  " + "  ".join(map(str, cells)))
    return "\n".join(lines)


def main() -> None:
    """Print how many good records pass, and the table."""
    parser = argparse.ArgumentParser(description="What the mechanical gate catches.")
    parser.add_argument("--each-kind", type=int, default=20, help="records that are broken in each way")
    options = parser.parse_args()
    source = own_source()
    records = good_records(source)
    passed = [gate(record.candidate, record.answer, record.reads, source).passed for record in records]
    print(f"{sum(passed)} of {len(records)} good records pass.\n")
    print(table(list(run(source, records, options.each_kind))))


if __name__ == "__main__":
    main()
