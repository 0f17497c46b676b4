"""Test sets in the layout that BEIR and MTEB have on Hugging Face's hub: `hf:mteb/scifact`, `hf:FOLDER`, or the folder itself.

A data set of three configurations: `corpus`, `queries` (`_id`, `text`), and judgments, `default` or `qrels` (`query-id`,
`corpus-id`, `score`); of several languages, `de-queries` or `queries-de` and so on. A folder is a clone of the hub's
repository, or what `save_to_disk` wrote of each configuration. Their library `datasets` reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from cranfield.base.errors import CranfieldError, MissingExtraError, TestSetError, UnknownNameError, shorten
from cranfield.base.words import count_noun
from cranfield.formats.io.delimited import QUERY_COLUMNS
from cranfield.formats.io.files import shown
from cranfield.formats.registry import HUB, HUB_FOLDERS, SAVED
from cranfield.formats.testsets.judgments import qrels_from_frame
from cranfield.model import Query, TestSet
from cranfield.model.note import info

Tables = Mapping[str, Any]
"""Split to table."""
Configs = Mapping[str, Callable[[], Any]]
"""Name of a configuration to what loads it."""
JUDGMENTS = ("qrels", "default")
SPLIT = "test"
OF_FILE_NAMES = {"dev": "validation", "valid": "validation", "val": "validation"}
"""Names of splits as the library reads them from names of files."""
ID, TEXT = "_id", "text"
COLUMNS = {
    "query_id": ("query-id", "query_id"),
    "doc_id": ("corpus-id", "corpus_id", "doc_id"),
    "grade": ("score", "relevance"),
}


def read_hub_dataset(path: Path | str) -> TestSet:
    """Read a test set: `hf:NAME`, `hf:NAME:SPLIT`, `hf:NAME:LANGUAGE`, `hf:NAME:LANGUAGE:SPLIT`, or a folder.

    Queries that the split does not judge are left out, and counted.

    Raises:
        MissingExtraError: `datasets` is not installed.
        TestSetError: it has no queries or judgments, the split has to be named, or the data cannot be had or read.
    """
    where = str(path)
    source, *parts = _parts(where)
    try:
        with _quiet():
            return _read(where, source, parts)
    except CranfieldError:
        raise
    except Exception as cause:  # whatever a download or a parser raises
        reason = shorten(" ".join(str(cause).split()) or type(cause).__name__)
        hint = "a folder is read without a network: `hf:FOLDER`, of a clone or of `save_to_disk`"
        message = f"the data of {source!r} could not be fetched or read: {reason}"
        raise TestSetError(message, path=where, hint=None if Path(source).exists() else hint) from cause


def _parts(where: str) -> list[str]:
    """Source, and what stands behind it."""
    given = where.removeprefix(HUB)
    return [given] if Path(given).exists() else given.split(":")


def _read(where: str, source: str, parts: list[str]) -> TestSet:
    configs = _configs(source)
    languages = sorted({name.removesuffix("-queries") for name in configs if name.endswith("-queries")} | {
        name.removeprefix("queries-") for name in configs if name.startswith("queries-")
    })  # fmt: skip
    language = parts.pop(0) if parts and parts[0] in languages else ""
    if languages and not language and "queries" not in configs:
        hint = f"name one: {HUB}{source}:{languages[0]}"
        raise TestSetError("several sets in this data set", path=where, expected=", ".join(languages), hint=hint)
    judged = _judgments(where, source, configs, language)
    split = _split(where, source, judged, parts[0] if parts else None)
    name = "-".join([Path(source).name, *filter(None, (language, "" if split == SPLIT else split))])
    made = _graded(where, judged[split], name)
    queries = _load(where, configs, "queries", language)
    texts = _texts(where, queries, split)
    notes = [*_notes(texts, made, judged, split)]
    if Path(source).is_dir() and _name_of(configs, "corpus", language) is not None:
        notes += _unknown_documents(made, _load(where, configs, "corpus", language))
    return replace(
        made,
        name=name,
        queries=tuple(Query(query_id, texts.get(query_id, "")) for query_id in made.query_ids),
        notes=(*made.notes, *info(*notes)),
    )


@contextmanager
def _quiet() -> Iterator[None]:
    """No progress bars of the library while it reads.

    Raises:
        MissingExtraError: it is not installed.
    """
    try:
        import datasets
    except ImportError:
        raise MissingExtraError.for_extra("a data set of Hugging Face", "huggingface") from None
    shown_before = datasets.is_progress_bar_enabled()
    datasets.disable_progress_bars()
    try:
        yield
    finally:
        if shown_before:
            datasets.enable_progress_bars()


def _configs(source: str) -> Configs:
    from datasets import get_dataset_config_names, load_dataset, load_from_disk

    folder = Path(source)
    if not folder.is_dir():
        names = dict.fromkeys([*get_dataset_config_names(source), *_cached(source)])
        return {name: partial(load_dataset, source, name) for name in names}
    inside = sorted(sub for sub in folder.iterdir() if sub.is_dir() and not sub.name.startswith("."))
    saved = {
        sub.name: partial(load_from_disk, str(sub)) for sub in inside if any((sub / name).is_file() for name in SAVED)
    }
    if saved:
        return saved
    card = folder / "README.md"
    if card.is_file() and "config_name:" in card.read_text("utf-8", "replace"):
        return {name: partial(load_dataset, str(folder), name) for name in get_dataset_config_names(str(folder))}
    found = {sub.name: partial(load_dataset, str(folder), data_dir=sub.name) for sub in inside}
    if not found:
        raise TestSetError("no data set in this folder", path=shown(folder), expected=", ".join(HUB_FOLDERS))
    return found


def _cached(source: str) -> list[str]:
    """The configurations in the local cache, where no network is asked: the library lists only one of them then."""
    from datasets import config
    from datasets.naming import camelcase_to_snakecase

    *owner, name = source.split("/")
    folder = Path(config.HF_DATASETS_CACHE, "___".join([*owner, camelcase_to_snakecase(name)]))
    return sorted(sub.name for sub in folder.glob("*") if sub.is_dir()) if config.HF_HUB_OFFLINE else []


def _name_of(configs: Configs, role: str, language: str) -> str | None:
    names = [f"{language}-{role}", f"{role}-{language}"] if language else [role]
    return next((name for name in names if name in configs), None)


def _load(where: str, configs: Configs, role: str, language: str) -> Tables:
    name = _name_of(configs, role, language)
    if name is None:
        found = ", ".join(configs) or "none"
        raise TestSetError(f"no {role} in this data set", path=where, expected=f"a configuration {role}", got=found)
    return _tables(configs[name]())


def _tables(loaded: Any) -> Tables:
    """The splits of what was loaded; what was saved without splits is one."""
    return loaded if isinstance(loaded, dict) else {str(loaded.split or SPLIT): loaded}


def _judgments(where: str, source: str, configs: Configs, language: str) -> Tables:
    """Judgments by split; BEIR has them in a data set of their own, `NAME-qrels`."""
    names = [name for role in JUDGMENTS if (name := _name_of(configs, role, language)) is not None]
    names += [language] if language in configs else []
    if not names and not Path(source).is_dir():
        from datasets import load_dataset

        return _tables(load_dataset(f"{source}-qrels"))
    if not names:
        return _load(where, configs, JUDGMENTS[0], language)
    return _tables(configs[names[0]]())


def _split(where: str, source: str, judged: Tables, given: str | None) -> str:
    if given is not None:
        given = OF_FILE_NAMES.get(given, given) if given not in judged else given
        if given not in judged:
            raise UnknownNameError.among(f"split of {source}", given, judged)
        return given
    if SPLIT in judged or len(judged) == 1:
        return SPLIT if SPLIT in judged else next(iter(judged))
    hint = f"name one: {HUB}{source}:{next(iter(judged))}"
    raise TestSetError("several splits, and none is `test`", path=where, expected=", ".join(judged), hint=hint)


def _column(where: str, table: Any, names: tuple[str, ...]) -> str:
    found = next((name for name in names if name in table.column_names), None)
    if found is None:
        got = ", ".join(table.column_names)
        raise TestSetError(f"no column {names[0]}", path=where, expected=" or ".join(names), got=got)
    return found


def _graded(where: str, table: Any, name: str) -> TestSet:
    columns = {role: _column(where, table, names) for role, names in COLUMNS.items()}
    # `data.table` has all rows of the file, of which an index may have chosen some.
    chosen = table.select_columns([*columns.values()]).with_format("arrow")[:]
    return qrels_from_frame(chosen, columns=columns, name=name)


def _texts(where: str, splits: Tables, split: str) -> dict[str, str]:
    """Texts by id: of the split of the judgments first, then of others."""
    found: dict[str, str] = {}
    for name in sorted(splits, key=lambda each: each != split):
        table = splits[name]
        ids, texts = _column(where, table, (ID, *QUERY_COLUMNS["query_id"])), _column(where, table, QUERY_COLUMNS[TEXT])
        for query_id, text in zip(table[ids], table[texts], strict=True):
            found.setdefault(str(query_id), str(text or ""))
    return found


def _notes(texts: Mapping[str, str], made: TestSet, judged: Tables, split: str) -> Iterator[str]:
    if others := sorted(set(judged) - {split}):
        yield f"judgments are of the split {split}; others are {', '.join(others)}"
    counts = {
        "unjudged queries, left out": sum(query_id not in made.grades for query_id in texts),
        "judged queries without a text": sum(not texts.get(query_id) for query_id in made.grades),
    }
    yield from (count_noun(n, what) for what, n in counts.items() if n)


def _unknown_documents(made: TestSet, corpus: Tables) -> Iterator[str]:
    """Count the judged ids that the corpus does not hold."""
    missing = {doc_id for grades in made.grades.values() for doc_id in grades}
    for table in corpus.values():
        if ID in table.column_names:
            missing.difference_update(map(str, table[ID]))
    if missing:
        more = ", …" if len(missing) > 1 else ""
        yield f"not in the corpus: {count_noun(len(missing), 'judged documents')}, {shorten(min(missing))}{more}"
