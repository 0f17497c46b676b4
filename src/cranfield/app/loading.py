"""Test sets and kept runs are loaded, and what options ask for is applied between the file and the first measure, in one order.

Imports no numpy: a run file can be read while that is imported.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from cranfield.base.errors import CranfieldError, Problem, TestSetError, UsageError, did_you_mean, shorten
from cranfield.base.words import join_first, printable
from cranfield.evaluation.options.blocks import NO_OPTIONS, TestSetOptions
from cranfield.formats.io.files import is_there, meta_path, shown
from cranfield.formats.registry import CATALOGUE, HUB
from cranfield.formats.sniff import detect_format, read_query_list, read_testset
from cranfield.model import LETTERS, QUERY_CLASSES, Query, TestSet, class_named
from cranfield.model.note import Note, NoteKind, info
from cranfield.model.query import NEGATIVE

if TYPE_CHECKING:
    from narwhals.typing import IntoFrame

    from cranfield.config.declared import SetOptions
    from cranfield.formats.testsets.field_mapping import FieldMapping
    from cranfield.model import Run
    from cranfield.model.arrays import ResultArrays


class ArrowStream(Protocol):
    """An object that exports Arrow data through the PyCapsule interface, such as a DuckDB relation."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The stream, as a capsule."""


Frame: TypeAlias = "IntoFrame | ArrowStream"
"""A data frame of any library that narwhals supports, or any Arrow stream, with a row per judgment or per result."""
Judgments: TypeAlias = "str | Path | Mapping[str, Mapping[str, float]] | Mapping[str, Collection[str]] | Frame"
"""What `load` makes a test set of: a file, query id -> document id -> grade, query id -> relevant ids, or a frame."""
TestSetLike: TypeAlias = "TestSet | Judgments"
"""A test set, or what `load` makes one of."""
RunLike: TypeAlias = (
    "Run | ResultArrays | str | Path | Mapping[str, Sequence[Any]] | Mapping[str, Mapping[str, float]] | Frame"
)
"""A collected run, arrays of results, a run file, query id -> results in order, query id -> document id -> score, or a frame.

A result is an id, an id with its score, or a document with its metadata."""

CONFIG = "cranfield.yaml"
_HEAD = 4096
_OWN = re.compile(r"""^["']?cranfield_testset["']?\s*:|["']cranfield_testset["']\s*:""", re.MULTILINE)
_NAME = re.compile(r"""^\s*["']?name["']?\s*:\s*["']?([^"'#\r\n,]+?)["']?\s*(?:[#,].*)?$""", re.MULTILINE)
_NO_NAME = re.compile(r"[/\\:*?]")
_OF_CATALOGUE = re.compile(rf"(?:(?P<folder>.*)/)?(?P<mark>{CATALOGUE}|{HUB})(?P<name>.+)", re.DOTALL)
_SUFFIXES = (".yaml", ".yml", ".json", ".jsonl", ".csv", ".tsv", ".qrels", ".txt")
_OTHERS = (".meta.json", ".schema.json")


def project_config(given: Path | None = None) -> Path | None:
    """The config of the project: the one that is given, else the nearest `cranfield.yaml`, here or above; None: there is none."""
    if given is not None:
        return given
    here = Path()
    return next((above / CONFIG for above in (here, *here.resolve().parents) if (above / CONFIG).is_file()), None)


def can_be_name(given: Path) -> bool:
    """Whether a path that is not there may be a name: it has no folder and no pattern, and is not `-`."""
    name = str(given)
    return not (_NO_NAME.search(name) or name in {"", "-", ".", ".."} or is_there(given))


def catalogue_name(given: Path) -> Path:
    """A name of a catalogue (`ir_datasets:NAME`, `hf:NAME`) that was joined to the folder of a config; any other path as it is.

    Of `hf:` and a folder, the folder is relative to that of the config.
    """
    found = _OF_CATALOGUE.fullmatch(str(given))
    if found is None or given.exists():
        return given
    inside = Path(found["folder"] or "", found["name"].split(":")[0])
    name = f"{found['folder']}/{found['name']}" if found["folder"] and inside.is_dir() else found["name"]
    return Path(found["mark"] + name)


def named_testset(given: Path, config: Path | None = None) -> Path:
    """The path of a test set that is given by its path or by its name.

    A name is one of `testsets` in the config, the name that a test set has, or the name of its file without its end. The
    folder is that of the config, or the working folder where there is none.

    Args:
        given: path or name.
        config: of the project; None: the nearest `cranfield.yaml`, here or above.

    Raises:
        UsageError: there is no such file, and no set of that name; lists the names. Or several files have it.
    """
    given = catalogue_name(given)
    if not can_be_name(given) or given.suffix in _SUFFIXES:
        return given
    name = str(given)
    config = project_config(config)
    found = sets_by_name(Path() if config is None else config.parent, config)
    if name in found:
        paths = found[name]
        if len(paths) > 1:
            raise UsageError(
                f"the name {shorten(name)} is used by several test sets",
                expected="a path",
                got=", ".join(map(str, paths)),
            )
        return paths[0]
    raise UsageError(
        f"no test set {shorten(name)}",
        expected="a path, or one of " + ", ".join(sorted(found)) if found else "the path of a test set",
        hint=did_you_mean(name, sorted(found)),
    )


def sets_by_name(folder: Path, config: Path | None = None) -> dict[str, tuple[Path, ...]]:
    """Name of each test set of a folder to its files; one where no two have a name in common.

    Args:
        folder: to look in.
        config: whose names of test sets are known; None: `cranfield.yaml` in the folder.
    """
    config = config or folder / CONFIG
    found: dict[str, dict[Path, None]] = {}
    declared = _declared(config)
    for name, path in declared.items():
        found[name] = {path: None}
    for path in sorted(folder.iterdir()):
        if not path.name.startswith(".") and path.name not in {CONFIG, config.name} and _is_testset(path):
            for name in dict.fromkeys(
                [path.name.removesuffix(path.suffix) if path.is_file() else path.name, *_names_in(path)]
            ):
                if name not in declared:
                    found.setdefault(name, {}).setdefault(path)
    return {name: tuple(paths) for name, paths in found.items()}


def _declared(config: Path) -> dict[str, Path]:
    """The names under `testsets` in a config."""
    if not config.is_file():
        return {}
    from cranfield.config.load import load_config

    sets = load_config(config).sets
    return {name: config.parent / chosen.path for name, chosen in sets.items() if name}


def _is_testset(path: Path) -> bool:
    if path.is_file() and (path.suffix not in _SUFFIXES or path.name.endswith(_OTHERS)):
        return False
    from cranfield.formats.sniff import detect_format

    try:
        detect_format(path, "testset", None, TestSetError)
    except (TestSetError, OSError):
        return False
    return True


def _names_in(path: Path) -> list[str]:
    """The name that a test set of Cranfield's own form has."""
    if path.suffix not in {".yaml", ".yml", ".json"}:
        return []
    with path.open("rb") as stream:
        head = stream.read(_HEAD).decode("utf-8", "replace")
    found = _NAME.search(head) if _OWN.search(head) else None
    return [found[1].strip()] if found else []


@dataclass(frozen=True)
class SetOverrides:
    """What a call gives in place of the block `options` of a config, and of its measures."""

    options: TestSetOptions = NO_OPTIONS
    depth: int | None = None
    measures: tuple[str, ...] = ()
    """Reported in place of those of the config."""
    keep_going: bool = False
    """Send every query also to a system whose first queries all fail alike."""


NO_OVERRIDES = SetOverrides()


def options_of(settings: SetOptions, folder: Path, overrides: SetOverrides = NO_OVERRIDES) -> SetOverrides:
    """The options of a test set of a config, with those that a call gives in their place.

    Args:
        settings: the block `options`.
        folder: of the config, which its paths are relative to.
        overrides: of the call.
    """
    from cranfield.formats.testsets.overlay import RANGES

    given = settings.given
    depth = given.pop("depth", None)
    given |= {name: folder / given[name] for name in ("qrels", "queries") if name in given}
    if "strata" in given:
        specs = (given["strata"],) if isinstance(given["strata"], str) else given["strata"]
        given["strata"] = tuple(spec if RANGES.fullmatch(spec) else str(folder / spec) for spec in specs)
    called = {
        row.name: getattr(overrides.options, row.name)
        for row in fields(TestSetOptions)
        if getattr(overrides.options, row.name) != getattr(NO_OPTIONS, row.name)
    }
    if "databases" in given and "databases" in called:
        called["databases"] = {**given["databases"], **called["databases"]}
    depth = overrides.depth if overrides.depth is not None else depth
    return replace(overrides, options=TestSetOptions(**given | called), depth=depth)


def with_held_out(settings: SetOptions, overrides: SetOverrides = NO_OVERRIDES) -> SetOverrides:
    """The overrides by which a test set of a config keeps the queries that its split holds out, unless a part is named."""
    if "part" in settings.given or overrides.options.part is not None:
        return overrides
    return replace(overrides, options=replace(overrides.options, part="all"))


def load(
    source: Judgments,
    *,
    format: str | None = None,  # noqa: A002 - the word its users know
    columns: Mapping[str, str] | None = None,
    options: TestSetOptions = NO_OPTIONS,
    mapping: FieldMapping | Mapping[str, Any] | None = None,
) -> TestSet:
    """Read a test set in any of its formats, detected from the content, and apply the options.

    Predicates are evaluated on their databases, and ratings become grades.

    Args:
        source: the file, or the name of a test set in the folder of the config; or a mapping of query id to document id to
            grade, or to a set or list of relevant ids; or a data frame with a row per judgment.
        format: name of a file's format, to say so instead. Qrels whose second column says something have to be named:
            `subtopics`, `judges` or `preferences`.
        columns: what a frame's columns are called, where the names are unusual: `{"query_id": "topic"}`.
        options: what else is done to it: other judgments, strata, classes, a consensus, a repository it must be true of.
        mapping: of a file of queries of any form, which of its fields say what: `{"text": "q", "expected": "relevant"}`, as
            under `testset` in a config; None: proposed from its data.

    Raises:
        TestSetError: with every problem of the file, each with its line; grades that are not on the declared scale, and
            unknown task types, are problems too.
    """
    if isinstance(source, str | Path):
        return load_file(Path(source), format, options, mapping=mapping)
    if format is not None:
        raise UsageError(f"format is {shorten(format)}", expected="no format: it applies to files only")
    from cranfield.formats.testsets.judgments import qrels_from_frame, qrels_from_mapping

    read = qrels_from_mapping(source) if isinstance(source, Mapping) else qrels_from_frame(source, columns=columns)
    return log_unused(apply_options(read, options), read.name)


def load_file(
    source: Path,
    format: str | None = None,  # noqa: A002 - as above
    options: TestSetOptions = NO_OPTIONS,
    *,
    mapping: FieldMapping | Mapping[str, Any] | None = None,
    judged: bool = True,
) -> TestSet:
    """Read a test set from a file and apply the options, as `load` does.

    Args:
        source: as of `load`.
        format: as of `load`.
        options: as of `load`.
        mapping: as of `load`.
        judged: False for what needs no judgment: a list of queries is read too.

    Raises:
        TestSetError: as `load`.
    """
    path = named_testset(source)
    mapping = mapping_of(path, format, options.map if mapping is None else mapping)
    stored = read_stored(path, format, mapping, judged=judged)
    refuse_undeclared(stored, path)
    return log_unused(apply_options(stored, options, path.parent, path), shown(path))


def log_unused(testset: TestSet, name: str) -> TestSet:
    """Name what the sources of a test set hold and the set does not: on stderr, unless the program logs elsewhere."""
    for note in testset.notes:
        if note.kind in {NoteKind.NOT_CARRIED, NoteKind.UNUSED}:
            import logging

            logging.getLogger("cranfield").warning("note: %s: %s", name, printable(str(note)))
    return testset


def refuse_undeclared(testset: TestSet, path: Path) -> None:
    """Refuse grades that are not on the declared scale, and unknown task types.

    Raises:
        TestSetError: with all of them, each at its line where that is found.
    """
    from cranfield.evaluation.testset.declared import undeclared

    found = undeclared(testset)
    if found:
        from cranfield.formats.splice.trees import place_of_item

        texts = {query.id: query.text for query in testset.queries}
        problems = []
        for each in found:
            names = tuple(name for name in (each.query_id, texts.get(each.query_id, "")) if name)
            problems.append(each.problem(shown(path), *place_of_item(path, names, each.item)))
        raise TestSetError(problems)


def mapping_of(
    path: Path,
    format: str | None,  # noqa: A002 - as above
    given: FieldMapping | Mapping[str, Any],
) -> FieldMapping | None:
    """The mapping of a file of queries: as given, or that of the project's config, where that names the file.

    Raises:
        UsageError: what is given names no field of a mapping, or is no JMESPath.
    """
    if not isinstance(given, Mapping):
        return given
    if given:
        from cranfield.formats.testsets.field_mapping import mapping_from

        return mapping_from(given)
    config = project_config() if format in (None, "mapped") and path.is_file() else None
    if config is None or path.name.encode() not in config.read_bytes():  # far cheaper than to find the format out again
        return None
    from cranfield.config.load import load_config

    try:
        if (format or detect_format(path, "testset", None, TestSetError).name) != "mapped":
            return None
        sets = load_config(config).sets.values()
    except CranfieldError:
        return None  # the command may not need it, and reading the file says what is wrong with that
    own = path.resolve()
    return next((each.mapping for each in sets if each.mapping and (config.parent / each.path).resolve() == own), None)


def read_stored(
    path: Path,
    format: str | None = None,  # noqa: A002 - as above
    mapping: FieldMapping | None = None,
    *,
    judged: bool = True,
) -> TestSet:
    """Read a test set as its file has it, with the metadata of the file beside it.

    Args:
        path: its file.
        format: name of its format, where the content does not tell.
        mapping: which fields of the file say what; None: its format tells, or one is proposed.
        judged: as of `load_file`.

    Raises:
        TestSetError: the file cannot be read as one.
    """
    if mapping is None:
        testset = read_testset(path, format) if judged else read_query_list(path, format)
    else:
        from cranfield.formats.testsets.mapping import read_mapped

        testset = read_mapped(path, mapping)
    if not meta_path(path).exists():
        return testset
    from cranfield.formats.testsets.storage import with_meta

    return with_meta(testset, path)


def apply_options(
    testset: TestSet, options: TestSetOptions = NO_OPTIONS, folder: Path | None = None, own: Path | None = None
) -> TestSet:
    """A test set with everything done to it that it or the caller asks for.

    Args:
        testset: as its file has it.
        options: what the caller asks for.
        folder: where the set's relative places are; by default the working folder.
        own: its file, whose own changes are none of the repository's.

    Raises:
        TestSetError: the options do not fit the set.
        UsageError: an option that cannot be.
    """
    testset = _with_files(testset, options)
    if options.classes is not None:
        testset = with_classes(testset, options.classes)
    testset = _with_matching(testset, options)
    if testset.ratings or any(value is not None for value in (options.consensus, options.scale, options.to_scale)):
        testset = _with_grades(testset, options)
    if testset.meta.judging is not None:
        from cranfield.evaluation.testset.judging_notes import judging_notes

        testset = replace(testset, notes=(*testset.notes, *info(*judging_notes(testset))))
    if any(target_needs_database(testset)):
        from cranfield.systems.predicates.databases import ask

        testset = ask(testset, folder or Path(), places=options.databases)
    if options.repo is not None:
        from cranfield.app.drift import check_repository

        testset = check_repository(
            testset,
            options.repo,
            allow_drift=options.allow_drift,
            at=options.at,
            intact=options.intact,
            allow_dirty=options.allow_dirty,
            own=own,
        )
    elif options.allow_drift or options.at is not None or options.intact or options.allow_dirty:
        parameters = ("allow_drift", "at", "intact", "allow_dirty", "repo")
        message = "{allow_drift}, {at}, {intact} and {allow_dirty} need a repository"
        raise UsageError(message, hint="name it with {repo=DIR}", parameters=parameters)
    elif testset.meta.uncommitted:
        text = f"When the set was made: {testset.meta.uncommitted.removesuffix('.')}."
        testset = replace(testset, notes=(Note(NoteKind.UNCOMMITTED, text), *testset.notes))
    if options.part is not None:
        from cranfield.evaluation.testset.split import part

        testset = part(testset, options.part)
    return testset


def target_needs_database(testset: TestSet) -> Sequence[str]:
    """Queries with a predicate that was not evaluated yet."""
    return [
        query_id
        for query_id, targets in testset.targets.items()
        if any(getattr(target, "sql", None) is not None and getattr(target, "ids", ()) is None for target in targets)
    ]


def _with_files(testset: TestSet, options: TestSetOptions) -> TestSet:
    from cranfield.formats.sniff import read_testset

    if options.qrels is not None:
        from cranfield.formats.testsets.overlay import with_judgments

        testset = with_judgments(testset, read_testset(options.qrels), fallback=options.qrels_fallback)
    elif options.qrels_fallback:
        hint = "name them with {qrels=FILE}"
        raise UsageError("{qrels_fallback} needs other judgments", hint=hint, parameters=("qrels_fallback", "qrels"))
    if options.queries is not None:
        from cranfield.formats.sniff import read_queries
        from cranfield.formats.testsets.overlay import with_queries

        testset = with_queries(testset, read_queries(options.queries))
    for strata in options.strata:
        from cranfield.formats.testsets.overlay import with_strata

        testset = with_strata(testset, strata)
    return testset


def with_classes(testset: TestSet, spec: str) -> TestSet:
    """Give each query the class that one of its strata says.

    Args:
        testset: queries with strata.
        spec: the stratum, with classes for its values where they are no names or letters of classes themselves:
            `kind:symbol=canonical,question=prose`. A query whose value has no class is measured as all are.

    Raises:
        TestSetError: no query has the stratum, or none of its values is a class.
        UnknownNameError: there is no such class.
    """
    key, _, pairs = spec.partition(":")
    names: dict[str, str] = {}
    for pair in filter(None, pairs.split(",")):
        value, equals, name = pair.partition("=")
        if not equals:
            raise UsageError(f"classes {spec!r}", expected="KEY, or KEY:value=class,value=class")
        names[value.strip()] = class_named(name.strip()).name
    values = {query.strata[key] for query in testset.queries if key in query.strata}
    known = names or {
        value: LETTERS.get(value, value) for value in values if LETTERS.get(value, value) in QUERY_CLASSES
    }
    if not values & set(known):
        listed = ", ".join(sorted(values)) or "no query has it"
        raise TestSetError(
            f"stratum {key!r} names no question class",
            expected="a name or letter of " + ", ".join(QUERY_CLASSES),
            got=listed,
            hint="name them: KEY:value=class,…",
        )
    queries = tuple(
        replace(query, query_class=known.get(query.strata.get(key, ""), query.query_class)) for query in testset.queries
    )
    _refuse_judged_negatives(testset, queries)
    unmet = [value for value in names if value not in values]
    notes = [f"classes by {key}: no query is {', '.join(map(repr, unmet))}"] if unmet else []
    return replace(testset, queries=queries, notes=(*testset.notes, *info(*notes)))


def _refuse_judged_negatives(testset: TestSet, queries: Sequence[Query]) -> None:
    """Refuse the class of negative queries for those that something is relevant to."""
    wrong = [
        query.id
        for query in queries
        if query.query_class == NEGATIVE
        and (testset.targets.get(query.id) or any(grade > 0 for grade in testset.grades.get(query.id, {}).values()))
    ]
    if wrong:
        raise TestSetError(
            f"queries of class {NEGATIVE} have relevant documents: {join_first(wrong)}",
            expected="no relevant document for a query of this class",
        )


def _with_matching(testset: TestSet, options: TestSetOptions) -> TestSet:
    rules = testset.matching
    if options.line_base is not None:
        rules = replace(rules, line_base=options.line_base)
    if options.min_overlap is not None:
        rules = replace(rules, min_overlap=options.min_overlap)
    if options.ignore_identical_ids:
        rules = replace(rules, ignore_identical_ids=True)
    return testset if rules == testset.matching else replace(testset, matching=rules)


def _with_grades(testset: TestSet, options: TestSetOptions) -> TestSet:
    from cranfield.evaluation.testset.consensus import on_other_scale, with_consensus
    from cranfield.stats.scale import LEVELS, scale_named

    rule, scale = options.consensus, options.scale
    if options.to_scale is not None:
        graded = on_other_scale(testset, options.to_scale, rule, scale=scale)
    else:
        graded = with_consensus(testset, rule, scale=scale)
    # The convention has its own rule where none is named.
    graded = replace(graded, consensus=rule or testset.consensus)
    if scale is not None and options.to_scale is None:
        return replace(graded, meta=replace(graded.meta, scale=LEVELS[scale_named(scale)]))
    return graded


def databases_of(pairs: Sequence[str]) -> dict[str, str]:
    """`NAME=PLACE` options as a mapping."""
    found: dict[str, str] = {}
    problems: list[Problem] = []
    for pair in pairs:
        name, equals, place = pair.partition("=")
        if not equals or not name or not place:
            # What is written may hold a password: it is not repeated.
            problems.append(Problem("a database is not of the form NAME=PLACE", expected="corpus=sqlite:corpus.db"))
        found[name] = place
    if problems:
        raise UsageError(problems)
    return found
