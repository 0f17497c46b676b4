"""A mapping for a file of queries, proposed from its data: the names that people use, and the values that stand there."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from cranfield.base.errors import CranfieldError, Problem, TestSetError
from cranfield.base.words import join_first
from cranfield.formats.io.delimited import JUDGMENT_COLUMNS
from cranfield.formats.io.files import shown, suffix_of
from cranfield.formats.testsets.field_mapping import EXPECTED_VALUE, FieldMapping, FileValues, file_values
from cranfield.formats.testsets.items import (
    FILE_NAME,
    URL,
    are_documents,
    are_expected,
    are_flags,
    are_graded,
    are_lists_of_texts,
    are_numbers,
    are_places,
    are_scalars,
    are_texts,
    are_values,
    by_query,
    depth_of,
    is_by_id,
    is_object,
    is_there,
    is_word,
    items_of,
    leaves,
    lines_condition,
    names_expected,
    object_conditions,
    says_something,
    singles,
)
from cranfield.formats.testsets.names import (
    ANSWERS,
    ASSERTIONS,
    EXHAUSTIVE,
    EXPECTED,
    FILTERS,
    FORBIDDEN,
    FORBIDDEN_NAME,
    GRADE_WORDS,
    IDS,
    KNOWN_SHAPES,
    LAST_OF_TEXT,
    LISTS,
    MAYBE_IDS,
    MESSAGES,
    NEEDS,
    NEGATIVE,
    NO_EXPECTATION,
    NOT_RELEVANT,
    NOTES,
    OF_DOCUMENT,
    OF_FIELD,
    OF_GRADE,
    OF_LINES,
    PARAMS,
    PLACES,
    PLACES_ALONE,
    QUERY_LISTS,
    RESULTS,
    STRATA,
    TEXTS,
    TIERS,
    TOPS,
    VARIANTS,
    WEAK_TEXTS,
    WEIGHTS,
    expected_names,
    floor_of,
    is_graded,
    plain,
    quoted,
    tier_name,
)
from cranfield.model.kinds import PARAM_NAME

_NEGATED = re.compile(r"(^|_)(not|no|never|absent|exclude[sd]?|forbids?|forbidden|without|missing)(_|$)")
_NUMBERED = re.compile(r".*[a-z]_\d+")
_LISTED = frozenset({"ids", "docs", "documents", "files", "sources", "paths", "urls", "chunks"})
"""Words of names of several documents, which may stand in one text."""
_HOLDERS = (
    "thresholds",
    "threshold",
    "floors",
    "minimum",
    "minimums",
    "requirements",
    "requires",
    "require",
    *ASSERTIONS,
)
MAX_DEPTH = 4
"""Most keys on the way to a field of an item."""
MAX_SAMPLED = 200
"""Items that a proposal looks at."""
PROSE_WORDS = 4
MAX_FILE_BYTES = 64 << 20


def propose(source: FileValues, known: Collection[str] = ()) -> FieldMapping:
    """The mapping that a file's own names and values suggest.

    Args:
        source: the data.
        known: ids that a system returned: a key whose values are among them says what is expected.

    Raises:
        TestSetError: no list of queries, no text or id of a query, or nothing that is expected; with the keys that are there.
    """
    if (found_whole := _judged_apart(source.values) or by_query(source.values)) is not None:
        return found_whole
    found = items_of(source.values)
    if found is None:
        keys = join_first(source.values) if isinstance(source.values, Mapping) else ""
        raise _not_found(
            source, "no list of queries", f"a list, or one under a key such as {join_first(LISTS[:5])}", keys
        )
    path, items = found
    is_single = isinstance(source.values, Mapping) and items == [source.values]
    mapping = _Proposal(
        path,
        items[:MAX_SAMPLED],
        known,
        is_table=source.is_table,
        is_single=is_single,
        depth=depth_of(source.values),
    ).mapping()
    has_keys = is_by_id(source.values, path) and not is_single
    if mapping.text is None and mapping.id is None and not has_keys:
        expected = f"a key such as {join_first(TEXTS[:5])}"
        raise _not_found(source, "no field with the text of a query", expected, join_first(items[0], 12))
    if not (mapping.expected or mapping.negative or mapping.forbidden):
        expected = f"a key such as {join_first((*EXPECTED[:1], 'relevant', 'qrels', 'must_find'))}"
        raise _not_found(source, "no field with what is expected", expected, join_first(items[0], 12))
    return mapping


def _not_found(source: FileValues, message: str, expected: str, got: str) -> TestSetError:
    hint = (
        "a mapping names the fields: `testset: {file: FILE, text: …, expected: …}` in cranfield.yaml, or {map=KEY=PATH}"
    )
    return TestSetError(
        message, path=shown(source.path), expected=expected, got=got or None, hint=hint, parameters=("map",)
    )


def what_is_missing(path: Path) -> Problem | None:
    """Why no mapping can be proposed for a file with a list of records; None of any other file."""
    try:
        source = file_values(path)
    except (CranfieldError, OSError, ImportError):
        return None
    if items_of(source.values) is None:
        return None
    try:
        propose(source)
    except TestSetError as error:
        return error.problems[0]
    return None


def is_mappable(path: Path) -> bool:
    """Whether a mapping can be proposed for a file."""
    try:
        stat = path.stat()
    except OSError:
        return False
    if not path.is_file() or stat.st_size > MAX_FILE_BYTES:
        return False
    return _is_mappable(path, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=8)
def _is_mappable(path: Path, _modified: int, _size: int) -> bool:
    if _is_table_of_judgments(path) or suffix_of(path) not in {
        ".json",
        ".jsonl",
        ".ndjson",
        ".yaml",
        ".yml",
        ".toml",
        ".csv",
        ".tsv",
        ".xlsx",
        ".parquet",
        ".txt",
        "",
    }:
        return False
    try:
        source = file_values(path)
        mapping = propose(source)
    except (CranfieldError, OSError, ImportError):
        return False
    return not (source.is_table and mapping.text is None)


def _is_table_of_judgments(path: Path) -> bool:
    """Whether a Parquet file has a column of documents beside one of queries."""
    with path.open("rb") as stream:
        if stream.read(4) != b"PAR1":
            return False
    from pyarrow import parquet

    try:
        names = {name.lower() for name in parquet.read_schema(path).names}
    except (OSError, ValueError):
        return False
    return bool(names & {*JUDGMENT_COLUMNS["query_id"]} and names & {*JUDGMENT_COLUMNS["doc_id"]})


def _judged_apart(values: Any) -> FieldMapping | None:
    """The mapping of a file with what is expected beside its queries, by their ids: `{queries: …, qrels: {q1: [a]}}`."""
    if not isinstance(values, dict):
        return None
    judged = [name for name in values if plain(name) in EXPECTED and isinstance(values[name], dict) and values[name]]
    for name in (name for name in values if plain(name) in QUERY_LISTS and judged):
        queries, qrels = values[name], quoted(judged[0])
        ids = {str(key) for key in values[judged[0]]}
        path = quoted(name)
        if isinstance(queries, dict) and all(isinstance(text, str) for text in queries.values()):
            if ids <= {str(key) for key in queries}:
                return FieldMapping(items=path, text=EXPECTED_VALUE, qrels=qrels)
        elif (found := items_of(queries, path)) is not None:
            proposal = _Proposal(found[0], found[1][:MAX_SAMPLED])
            if ids <= {str(key) for key in queries} or {*map(str, proposal.id_values())} & ids:
                return proposal.mapping(qrels)
    return None


class _Proposal:
    """Finds the fields of items by name, and where names say nothing by value."""

    def __init__(
        self,
        path: str,
        items: Sequence[Mapping[str, Any]],
        known: Collection[str] = (),
        *,
        is_table: bool = False,
        is_single: bool = False,
        depth: int = 5,
    ) -> None:
        self.path = path
        self.items = items
        self.known = {*known}
        self.is_table = is_table
        self.is_single = is_single
        """Whether the file is one query, so that weak names say nothing."""
        self.depth = depth
        self.fields: dict[str, tuple[str, list[Any]]] = {}
        """Path of a field to its name as it is compared, and its values, item by item."""
        self.keys: dict[str, tuple[str, ...]] = {}
        """Path of a field to its keys."""
        self.inside: set[str] = set()
        """Paths of fields within what is expected, as `expect.recall_at_5`."""
        holders = {*expected_names(), *ANSWERS, *_HOLDERS}
        for keys in dict.fromkeys(path for item in items for path in _fields_of(item)):
            path = ".".join(map(quoted, keys))
            self.fields[path] = (plain(keys[-1]), [_at(item, keys) for item in items])
            self.keys[path] = keys
            if any(plain(key) in holders for key in keys[:-1]):
                self.inside.add(path)
        self.used: set[str] = set()

    def id_values(self) -> list[Any]:
        """Values of the field of ids."""
        path = next((path for name in IDS for path, (each, _) in self.fields.items() if each == name), None)
        return self._present(path) if path else []

    def mapping(self, qrels: str | None = None) -> FieldMapping:
        """The mapping of the items.

        Args:
            qrels: path of what is expected of them by id, where it stands beside them.
        """
        if qrels is None and (shape := self._known_shape()) is not None:
            return shape
        text = self._text()
        id_path = self._take(IDS, are_scalars, outside=True) or self._take(MAYBE_IDS, self._are_ids, outside=True)
        forbidden = self._take(FORBIDDEN, are_values) or self._take_like(FORBIDDEN_NAME.fullmatch, are_values)
        not_relevant = self._take(NOT_RELEVANT, are_values)
        exhaustive = self._take(EXHAUSTIVE, are_flags)
        negative = self._take(NEGATIVE, are_flags)
        floors, top = self._floors(), self._take(TOPS, are_numbers)
        is_query = text is not None and self.fields[text][0] not in WEAK_TEXTS and not self.is_single
        expected = self._expected(is_query=is_query) if qrels is None else None
        if expected is None and qrels is None:
            expected, refused = self._asserted()
            forbidden = forbidden or refused
        expected = self._with_its_neighbours(expected)
        found = self._values(expected or forbidden)
        where, urls = self._where(expected or forbidden, found)
        grade, grades = self._grade(found)
        params = self._params()
        strata = self._strata()
        return FieldMapping(
            items=self.path,
            id=id_path,
            text=text,
            expected=expected,
            qrels=qrels,
            where=where,
            grade=grade,
            grades=grades,
            split=self._split(expected),
            not_relevant=not_relevant,
            forbidden=forbidden,
            exhaustive=exhaustive,
            negative=negative,
            strata=strata,
            params=params,
            floors=floors,
            top=top or self._top_of_objects(expected),
            need=self._take(NEEDS, are_texts, outside=True),
            notes=self._take(NOTES, are_texts, outside=True),
            weight=self._take(WEIGHTS, are_numbers, outside=True),
            urls=urls,
        )

    def _add(self, path: str, name: str) -> str:
        """Take a path that is made of several fields as one."""
        import jmespath

        compiled = jmespath.compile(path)
        self.fields[path] = (name, [compiled.search(item) for item in self.items])
        self.used.add(path)
        return path

    def _text(self) -> str | None:
        """Path of the text of a query; of a conversation, the last message of the user."""
        if (path := self._take(TEXTS, are_texts, outside=True)) is not None:
            return path
        last_word = self._take_like(lambda name: name.rpartition("_")[2] in LAST_OF_TEXT, are_texts, outside=True)
        if last_word is not None:
            return last_word
        for name in MESSAGES:
            path = next((path for path, (each, _) in self.fields.items() if each == name), None)
            messages = [inner for value in self._present(path) for inner in singles(value)] if path else []
            if path and messages and all(isinstance(each, Mapping) and "content" in each for each in messages):
                self.used.add(path)
                return self._add(f"{path}[?role == 'user' || role == 'human'] | [-1].content", name)
        return self._take(WEAK_TEXTS, are_texts, outside=True) or self._take(VARIANTS, are_lists_of_texts, outside=True)

    def _known_shape(self) -> FieldMapping | None:
        keys = {plain(name) for item in self.items for name in item}
        for required, shape in KNOWN_SHAPES.values():
            if keys >= required and not keys & {*EXPECTED} - required:
                chat = all(isinstance(item.get("input"), list) for item in self.items)
                if "ideal" in required and not chat:
                    continue
                there = {key: self._there(path) if isinstance(path, str) else path for key, path in shape.items()}
                self.used |= {each for path in there.values() if isinstance(path, str) for each in path.split(" || ")}
                known: dict[str, Any] = {key: path for key, path in there.items() if path}
                return FieldMapping(items=self.path, strata=self._strata(), **known)
        return None

    def _there(self, path: str) -> str:
        """The alternatives of a path that items have: `vars.query || vars.question`; empty where none has a value."""
        import jmespath

        parts = path.split(" || ") if "?" not in path else [path]
        n_found = {part: sum(jmespath.search(part, item) is not None for item in self.items) for part in parts}
        if path == "id" and n_found[path] < len(self.items):
            return ""
        return " || ".join(part for part in parts if n_found[part])

    def _present(self, path: str) -> list[Any]:
        return [value for value in self.fields[path][1] if is_there(value)]

    def _take(self, names: Sequence[str], fits: Callable[[list[Any]], bool], *, outside: bool = False) -> str | None:
        """The path of the first name that a field has whose values fit; the shallowest, where several have it.

        Args:
            names: as they are compared.
            fits: whether values may be of it.
            outside: whether it does not stand within what is expected.
        """
        for name in names:
            if (path := self._take_like(name.__eq__, fits, outside=outside)) is not None:
                return path
        return None

    def _take_like(
        self, is_name: Callable[[str], object], fits: Callable[[list[Any]], bool], *, outside: bool = False
    ) -> str | None:
        """The path of the first field, the shallowest first, with such a name and values that fit."""
        for path in sorted(self.fields, key=lambda each: each.count(".")):
            if path in self.used or not is_name(self.fields[path][0]) or (outside and path in self.inside):
                continue
            values = self._present(path)
            if values and fits(values):
                self.used.add(path)
                return path
        return None

    def _are_ids(self, values: list[Any]) -> bool:
        """Whether every item has one, and each is another: a name or a key may also be none."""
        return are_scalars(values) and len(values) == len(self.items) == len({*map(str, values)})

    def _floors(self) -> dict[str, str]:
        depths = Counter(
            int(value)
            for path, (name, _) in self.fields.items()
            if name in {"k", "top_k", "topk", "limit"}
            for value in self._present(path)
            if str(value).isdigit() and int(value) > 0
        )
        k = depths.most_common(1)[0][0] if depths else self.depth
        found: dict[str, str] = {}
        for path, (name, _) in self.fields.items():
            measure = floor_of(name, k, is_inside=path in self.inside)
            if measure is not None and measure not in found and are_numbers(self._present(path)):
                found[measure] = path
                self.used.add(path)
        return found

    def _expected(self, *, is_query: bool) -> str | None:
        """Path of what is expected: by its name, unless ids that a system returned stand elsewhere alone.

        Args:
            is_query: whether the text of the query is surely that, so that a name as `url` is enough.
        """
        found = self._expected_by_name(is_query=is_query)
        if not self.known or self._returned(found):
            return found
        other = next(
            (
                path
                for path, (name, _) in self.fields.items()
                if path not in self.used and name not in ASSERTIONS and self._returned(path)
            ),
            None,
        )
        if other is None:
            return found
        self.used.discard(found or other)
        self.used.add(other)
        return other

    def _returned(self, path: str | None) -> bool:
        """Whether a field has ids that a system returned."""
        values = [] if path is None else self._present(path)
        return bool({text for value in values for text in leaves(value)} & self.known)

    def _expected_by_name(self, *, is_query: bool) -> str | None:
        found = self._tiers() or self._numbered() or self._take_expected(EXPECTED)
        found = found or self._take_like(names_expected, are_expected)
        if found is not None or not is_query:
            return self._with_others(found)
        alone = [name for name in PLACES if name in PLACES_ALONE]
        return (
            self._take([name for name in PLACES if name not in PLACES_ALONE], are_documents)
            or self._take(alone, lambda values: are_documents(values) and are_places(values))
            or self._take_expected(ANSWERS)
            or self._judged_list()
            or self._only_list()
        )

    def _with_others(self, found: str | None) -> str | None:
        """What is expected where some items have another key for it: `expected_id || expected_ids`."""
        if found not in self.keys or all(value is not None for value in self.fields[found][1]):
            return found
        values = self.fields[found][1]
        for path, (name, others) in self.fields.items():
            is_other = path not in self.used and (name in EXPECTED or names_expected(name))
            rows = [other for value, other in zip(values, others, strict=True) if value is None]
            if is_other and are_expected(self._present(path)) and len(self._present(path)) == sum(map(is_there, rows)):
                self.used.add(path)
                return self._add(f"{found} || {path} || {found}", self.fields[found][0])  # the last one for `[]`
        return found

    def _take_expected(self, names: Sequence[str]) -> str | None:
        for name in names:
            is_id = {"id", "ids"} & {*name.split("_")}
            if (taken := self._take((name,), are_values if is_id else are_expected)) is not None:
                return taken
        return None

    def _judged_list(self) -> str | None:
        """A list of results, each with a grade: what was judged."""
        of_grade = {*OF_GRADE} - {"score", "weight", "level", "tier", "label"}

        def are_judged(values: list[Any]) -> bool:
            rows = [row for value in values for row in singles(value)]
            keys = [{plain(key) for key in row} if isinstance(row, Mapping) else set() for row in rows]
            return bool(keys) and all(each & of_grade and each & {*OF_DOCUMENT, *OF_FIELD} for each in keys)

        return self._take_like(bool, are_judged)

    def _only_list(self) -> str | None:
        lists = [
            path
            for path, (name, values) in self.fields.items()
            if path not in self.used
            and any(isinstance(value, list) and value for value in values)
            and all(value is None or isinstance(value, list) for value in values)
            and not NO_EXPECTATION.match(name)
            and not RESULTS.search(name)
            and name not in (*MESSAGES, *ASSERTIONS, *PLACES)
        ]
        if len(lists) == 1:
            self.used.add(lists[0])
            return lists[0]
        return None

    def _tiers(self) -> str | None:
        """Grades in keys of their own as a list of lists: `[[primary][], [secondary][]]`."""
        paths: dict[str, str] = {}
        for path, (name, _) in self.fields.items():
            values = self._present(path)
            if path not in self.used and values and are_expected(values):
                paths.setdefault(tier_name(name), path)
        for row in TIERS:
            there = [paths[name] for name in row if name in paths]
            if len(there) > 1:
                self.used |= {*there}
                name = self.fields[there[0]][0]
                return self._add("[" + ", ".join(f"[{path}][]" for path in there) + "]", name)
        return None

    def _numbered(self) -> str | None:
        """Columns of one name with a number, `expected_1`, `expected_2`, as a list."""
        paths = [path for path, (name, _) in self.fields.items() if self.is_table and _NUMBERED.fullmatch(name)]
        stems = {self.fields[path][0].rpartition("_")[0] for path in paths}
        if len(paths) < 2 or len(stems) != 1 or not names_expected(stem := stems.pop()):
            return None
        self.used |= {*paths}
        return self._add(f"[{', '.join(paths)}]", stem)

    def _asserted(self) -> tuple[str | None, str | None]:
        """Paths of what a list of assertions expects and forbids, by their types: `assertions[?type == 'rank']`."""
        for path, (name, _) in list(self.fields.items()):
            rows = [row for value in self._present(path) for row in singles(value)]
            types: list[Any] = list(
                dict.fromkeys(row.get("type") if isinstance(row, Mapping) else None for row in rows)
            )
            if name not in ASSERTIONS or path in self.used or not all(map(is_word, types)) or not types:
                continue
            self.used.add(path)
            refused = [each for each in types if _NEGATED.search(plain(each))]
            found = [self._of_types(path, rows, those) for those in ([*(set(types) - {*refused})], refused)]
            return found[0], found[1]
        return None, None

    def _of_types(self, path: str, rows: Sequence[Mapping[str, Any]], types: Sequence[str]) -> str | None:
        """Path of the assertions of some types that name a document or a text."""
        useful = [each for each in types if all(says_something(row) for row in rows if row["type"] == each)]
        if not useful:
            return None
        those = " || ".join(f"type == '{each}'" for each in sorted(useful))
        is_value = all("value" in row for row in rows if row["type"] in useful)
        return self._add(f"{path}[?{those}]" + (".value[]" if is_value else ""), plain(useful[0]))

    def _with_its_neighbours(self, expected: str | None) -> str | None:
        """What is expected with the grade or the lines that stand beside it, one document an item: `{doc: doc, grade: grade}`."""
        if expected not in self.keys or self.fields[expected][0] in ANSWERS or not are_scalars(self._present(expected)):
            return expected
        parent = self.keys.get(expected, ())[:-1]
        neighbours = {
            self.fields[path][0]: path
            for path, keys in self.keys.items()
            if keys[:-1] == parent and path not in self.used and self._present(path)
        }
        grade = next(
            (neighbours[n] for n in OF_GRADE if n in neighbours and are_graded(self._present(neighbours[n]))), None
        )
        are_flags = grade is not None and all(isinstance(value, bool) for value in self._present(grade))
        grade = grade if self._has_repeated_texts() or self.is_table or are_flags else None
        lines = next(([neighbours[n] for n in names] for names in OF_LINES if {*names} <= neighbours.keys()), [])
        lines = lines if are_places(self._present(expected)) else []
        if not grade and not lines:
            return expected
        fields = [*lines, *([grade] if grade else [])]
        self.used |= {*fields}
        keys = ", ".join(
            [f"{EXPECTED_VALUE}: {expected}", *(f"{quoted(self.keys[path][-1])}: {path}" for path in fields)]
        )
        return self._add(f"{expected} && {{{keys}}}", self.fields[expected][0])

    def _has_repeated_texts(self) -> bool:
        texts = [
            str(value) for name in TEXTS for each, values in self.fields.values() if each == name for value in values
        ]
        return len({*texts}) < len(texts)

    def _top_of_objects(self, expected: str | None) -> str | None:
        """Path of the rank that the one expected object of an item has: `expected[0].max_rank`."""
        if expected is None or expected.startswith(("[", "{")) or " && " in expected:
            return None
        values = self._present(expected)
        rows = [row for value in values for row in singles(value) if isinstance(row, Mapping)]
        if not rows or any(isinstance(value, list) and len(value) > 1 for value in values):
            return None
        key = next((key for name in TOPS for row in rows for key in row if plain(key) == name), None)
        if key is None or not are_numbers([row[key] for row in rows if row.get(key) is not None]):
            return None
        first = f"{expected} | [0]" if isinstance(values[0], list) else expected
        return f"{first}.{quoted(str(key))}"

    def _split(self, expected: str | None) -> str | None:
        """What separates values in the cells of a table."""
        if expected is None or not (self.is_table or _LISTED & {*self.fields[expected][0].split("_")}):
            return None
        cells = [value for value in self._present(expected) if isinstance(value, str) and value[:1] not in {"[", "{"}]
        for separator in ("|", ";", "\n", ","):
            if any(separator in cell for cell in cells) and not any(
                " " in part.strip() for cell in cells for part in cell.split(separator)
            ):
                return separator
        return None

    def _values(self, expected: str | None) -> list[Any]:
        """Single expected values."""
        if expected is None:
            return []
        split = self._split(expected)
        found: list[Any] = []
        for value in self._present(expected):
            cells = value.split(split) if split and isinstance(value, str) else [value]
            found += [single for cell in cells for single in singles(cell)]
        return found

    def _where(
        self, expected: str | None, found: Sequence[Any]
    ) -> tuple[dict[str, str], tuple[Literal["fragment", "slash"], ...]]:
        """The conditions of expected values, and what of their addresses does not count."""
        objects = [value for value in found if isinstance(value, Mapping)]
        texts = [str(value) for value in found if not isinstance(value, Mapping)]
        where: dict[str, str] = {}
        name = self.fields[expected][0] if expected else ""
        if objects and all(EXPECTED_VALUE in value for value in objects):  # a value with what stands beside it
            texts = [str(value[EXPECTED_VALUE]) for value in objects]
            where = {self._text_condition(name, texts): EXPECTED_VALUE, **lines_condition(objects)}
        elif objects:
            where |= object_conditions(objects)
        if not where or len(objects) < len(found):
            where |= {self._text_condition(name, texts): "@"}
        addresses = [
            str(value.get(name)) for value in objects for name in value if plain(name) in {"url", "uri", "link", "href"}
        ]
        has_urls = any(URL.fullmatch(text) for text in (*texts, *addresses))
        return where, ("fragment", "slash") if has_urls else ()

    def _text_condition(self, name: str, texts: Sequence[str]) -> str:  # noqa: PLR0911 - a table of names and values
        """What a plain value is: an id, the end of a path, an address, a title, or words of the text."""
        words = {*name.split("_")}
        is_of_list = "top" in words and not any(" " in text for text in texts)  # `top_5_must_contain: [a]`
        is_prose = bool(texts) and sum(len(text.split()) >= PROSE_WORDS for text in texts) * 2 > len(texts)
        if words & {
            "contains",
            "contain",
            "substring",
            "substrings",
            "quote",
            "quotes",
            "passage",
            "passages",
            "snippets",
            "keywords",
            "phrases",
        }:
            return "id" if words & {"id", "ids"} or is_of_list else "text contains"
        if texts and all(URL.fullmatch(text) for text in texts):
            return "url"
        if words & {"title", "titles"}:
            return "title"
        if words & {"id", "ids"}:
            return "id"
        if self.known and {*texts} & self.known:
            return "id"
        if is_prose or (words & {"ideal", "answer", "answers", "text"} and any(" " in text for text in texts)):
            return "text contains"
        is_files = bool(texts) and all(FILE_NAME.fullmatch(text) for text in texts)
        return "path ends" if is_files or words & {"file", "files", "path", "paths"} else "id"

    def _grade(self, found: Sequence[Any]) -> tuple[str | None, Mapping[str, float]]:
        objects = [value for value in found if isinstance(value, Mapping)]
        for name in OF_GRADE:
            key = next((key for value in objects for key in value if plain(key) == name), None)
            values = [value[key] for value in objects if key in value and value[key] is not None]
            if not values:
                continue
            words = {value for value in values if isinstance(value, str)}
            if not words:
                return (quoted(str(key)), {}) if all(isinstance(value, int | float) for value in values) else (None, {})
            table = next((table for table in GRADE_WORDS if {word.lower() for word in words} <= {*table}), None)
            if table is not None:
                return quoted(str(key)), {
                    word: table[word.lower()] for word in sorted(words, key=lambda w: -table[w.lower()])
                }
            if all(word.replace(".", "", 1).isdigit() for word in words):
                return quoted(str(key)), {}
        return None, {}

    def _params(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for path, (name, values) in self.fields.items():
            keys = path.split(".")
            inside = len(keys) > 1 and plain(keys[-2]) in FILTERS
            is_scalar = all(value is None or isinstance(value, str | int | float) for value in values)
            if path in self.used or not is_scalar or not (name in PARAMS or inside):
                continue
            parameter = re.sub(r"\W+", "_", keys[-1].strip('"'))
            if PARAM_NAME.fullmatch(parameter) and parameter not in found:
                found[parameter] = path
                self.used.add(path)
        return found

    def _strata(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for path, (name, _) in self.fields.items():
            present = self._present(path)
            if path in self.used or not present:
                continue
            is_text = all(isinstance(value, str | int | bool) for value in present)
            is_tags = name in {"tags", "labels", "categories"} and all(
                isinstance(value, list) and all(isinstance(tag, str) for tag in value) for value in present
            )
            groups = (
                is_text and len({*map(str, present)}) < len(present) and all(len(str(value)) <= 40 for value in present)
            )
            if is_tags or (is_text and (name in STRATA or groups)):
                key = path.rsplit(".", 1)[-1].strip('"')
                if key not in found:
                    found[key] = path
                    self.used.add(path)
        return found


def _fields_of(item: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Keys of the fields of an item, and of those of its mappings; an expected object is one field."""
    for name, value in item.items():
        keys = (*above, str(name))
        is_parts = isinstance(value, dict) and value and not is_graded(value) and not is_object(plain(name), value)
        if is_parts and len(keys) < MAX_DEPTH:
            yield from _fields_of(value, keys)
        elif not is_parts:
            yield keys


def _at(item: Mapping[str, Any], keys: Sequence[str]) -> Any:
    value: Any = item
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value
