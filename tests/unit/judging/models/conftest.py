"""A book of two queries, and models that rate it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from cranfield.agents.protocol import Request
from cranfield.agents.settings import Connection
from cranfield.books.pool_file import Pool, PooledItem, PooledQuery, PooledRun
from cranfield.books.settings import BookSettings
from cranfield.books.store.store import Store, open_store
from cranfield.judging.documents.texts import DocumentTexts
from cranfield.judging.models.prompt import load_prompt
from cranfield.judging.models.run import RateOptions, Texts

DOCS = {
    "lock": {
        "flock": ("flock", "Locks a file: others wait until it is unlocked."),
        "unlink": ("unlink", "Removes a file."),
        "secret-id": ("", "A lock of hair."),
    },
    "read": {
        "open": ("open", "Opens a file to read or write."),
        "print": ("print", "Writes text to a stream."),
    },
}


@pytest.fixture(scope="session")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made once: migrations take longer than a test."""
    path = tmp_path_factory.mktemp("books") / "books.db"
    opened = open_store(path)
    opened.books.create("demo", make_pool(), BookSettings())
    opened.close()
    return path


@pytest.fixture(scope="session")
def one_store(database: Path, tmp_path_factory: pytest.TempPathFactory) -> Store:
    """The store, whose file each test has anew: the engine stays, since it compiles each statement once."""
    return open_store(shutil.copy(database, tmp_path_factory.mktemp("one") / "books.db"))


@pytest.fixture
def store(database: Path, one_store: Store) -> Iterator[Store]:
    """A store with the book `demo`."""
    one_store.close()
    shutil.copy(database, Path(one_store.database.where))
    yield one_store
    one_store.close()


def make_pool() -> Pool:
    queries = tuple(
        PooledQuery(id=name, text=f"{name} a file", need=f"How to {name} a file", notes="") for name in DOCS
    )
    items = tuple(
        PooledItem(query=query, doc=doc, fields={"title": title, "text": text}, runs={"hidden-run": rank})
        for query, docs in DOCS.items()
        for rank, (doc, (title, text)) in enumerate(docs.items(), start=41)
    )
    runs = (PooledRun(name="hidden-run", digest="sha256:0"),)
    return Pool(name="demo", method="depth", depth=50, runs=runs, queries=queries, items=items)


@pytest.fixture
def options() -> RateOptions:
    """Calls of a model without waiting between retries."""
    connection = Connection("openai:small", base_url="http://127.0.0.1:9/v1", backoff_s=0.0)
    return RateOptions(connection, load_prompt(), concurrency=2)


@pytest.fixture
def texts() -> Texts:
    """Texts from the fields of the runs."""
    source = DocumentTexts()
    return lambda item: source.get(item.doc, item.fields)


def grade(value: object, reason: str = "r") -> str:
    """An answer."""
    return json.dumps({"grade": value, "reason": reason})


def document_of(request: Request) -> str:
    """The text between the delimiters of a request with one document."""
    return request.messages[0].text.partition('number="1">\n')[2].rpartition("\n</document-")[0]
