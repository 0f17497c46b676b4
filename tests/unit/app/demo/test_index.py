"""The two databases: same content from the same corpus, whatever the order; whole or not there."""

from __future__ import annotations

import json
import random
from contextlib import closing
from pathlib import Path

import pytest

from cranfield.app.demo.entity import Corpus, DocumentedObject
from cranfield.app.demo.index import DESIGNS, FIELDS, PLAIN, SystemDesign, TextTable, write_database
from cranfield.app.demo.search import open_read_only, search
from cranfield.base.errors import UsageError

QUERIES = ("json decoder", "run_in_executor", "open a file and read lines", "deprecated", "asyncio.run")


def answers(path: Path) -> list[list[dict[str, object]]]:
    with closing(open_read_only(str(path))) as connection:
        return [search(connection, query, 50) for query in QUERIES]


@pytest.mark.parametrize("design", DESIGNS, ids=lambda design: design.name)
def test_results_do_not_depend_on_the_order_of_building(corpus: Corpus, tmp_path: Path, design: SystemDesign) -> None:
    asked = ("json", "asyncio", "io", "threading")  # every query has a result in them, whatever else a library has
    corpus = Corpus(
        tuple(each for place, each in enumerate(corpus) if place % 5 == 0 or each.module.partition(".")[0] in asked)
    )
    shuffled = list(corpus)
    random.Random(7).shuffle(shuffled)
    write_database(corpus, design, tmp_path / "one.db")
    write_database(Corpus(tuple(shuffled)), design, tmp_path / "two.db")
    assert answers(tmp_path / "one.db") == answers(tmp_path / "two.db")
    assert all(answers(tmp_path / "one.db"))


@pytest.mark.parametrize("design", DESIGNS, ids=lambda design: design.name)
def test_the_same_corpus_gives_the_same_bytes(corpus: Corpus, tmp_path: Path, design: SystemDesign) -> None:
    small = Corpus(corpus.entities[:300])
    for name in ("one.db", "two.db"):
        write_database(small, design, tmp_path / name)
    assert (tmp_path / "one.db").read_bytes() == (tmp_path / "two.db").read_bytes()


def test_attributes_can_be_asked_for_in_sql(corpus: Corpus, tmp_path: Path) -> None:
    write_database(corpus, PLAIN, tmp_path / "plain.db")
    with closing(open_read_only(str(tmp_path / "plain.db"))) as connection:
        (count,) = connection.execute("SELECT count(*) FROM entity").fetchone()
        assert count == len(corpus)
        row = connection.execute(
            "SELECT kind, title, module, path, parameters, is_async FROM entity WHERE id = ?",
            ["asyncio/threads.py::to_thread"],
        ).fetchone()
    assert row == ("function", "asyncio.to_thread", "asyncio.threads", "asyncio/threads.py", "func args kwargs", 1)


def entities(*specs: tuple[str, str, str]) -> Corpus:
    return Corpus(
        tuple(DocumentedObject(f"m::{name}", kind, name, f"m.{name}", "m", doc=doc) for name, kind, doc in specs)
    )  # type: ignore[arg-type]  # kinds of a table


def found(path: Path, query: str) -> list[str]:
    with closing(open_read_only(str(path))) as connection:
        return [str(hit["id"]).removeprefix("m::") for hit in search(connection, query, 10)]


def test_only_the_candidate_finds_a_part_of_a_compound_name(tmp_path: Path) -> None:
    corpus = entities(("JSONDecoder", "class", ""), ("other", "function", "Does something."))
    for design in DESIGNS:
        write_database(corpus, design, tmp_path / f"{design.name}.db")
    assert found(tmp_path / "plain.db", "decoder") == []
    assert found(tmp_path / "fields.db", "decoder") == ["JSONDecoder"]


def test_only_the_candidate_knows_that_words_have_endings(tmp_path: Path) -> None:
    corpus = entities(("f", "function", "Decodes a document."), ("g", "function", "Something else."))
    for design in DESIGNS:
        write_database(corpus, design, tmp_path / f"{design.name}.db")
    assert found(tmp_path / "plain.db", "decoding documents") == []
    assert found(tmp_path / "fields.db", "decoding documents") == ["f"]


def test_the_candidate_puts_a_name_before_a_mention_and_the_modern_before_the_deprecated(tmp_path: Path) -> None:
    mention = DocumentedObject("m::a", "function", "a", "m.a", "m", doc="gather " * 3)
    named = DocumentedObject("m::gather", "function", "gather", "m.gather", "m", doc="Nothing.")
    write_database(Corpus((mention, named)), FIELDS, tmp_path / "names.db")
    assert found(tmp_path / "names.db", "gather") == ["gather", "a"]
    old = DocumentedObject("m::a", "function", "a", "m.a", "m", doc="Wait for all.", is_deprecated=True)
    new = DocumentedObject("m::b", "function", "b", "m.b", "m", doc="Wait for all.")
    for design, order in ((FIELDS, ["b", "a"]), (PLAIN, ["a", "b"])):
        write_database(Corpus((old, new)), design, tmp_path / f"{design.name}.db")
        assert found(tmp_path / f"{design.name}.db", "wait all") == order


def test_how_to_search_is_read_from_the_database(corpus: Corpus, tmp_path: Path) -> None:
    write_database(Corpus(corpus.entities[:5]), FIELDS, tmp_path / "fields.db")
    with closing(open_read_only(str(tmp_path / "fields.db"))) as connection:
        (text,) = connection.execute("SELECT value FROM config WHERE key = 'search'").fetchone()
    config = json.loads(text)
    assert config == FIELDS.search_config
    assert [table["name"] for table in config["tables"]] == ["names", "places", "texts"]


def test_a_failed_write_leaves_the_old_database_and_no_rest(corpus: Corpus, tmp_path: Path) -> None:
    path = tmp_path / "plain.db"
    path.write_bytes(b"old")
    broken = SystemDesign("broken", (TextTable("everything", {"doc": 1}, "no_such_tokenizer"),))
    with pytest.raises(UsageError) as caught:
        write_database(Corpus(corpus.entities[:5]), broken, path)
    assert caught.value.problems[0].hint
    assert [entry.name for entry in tmp_path.iterdir()] == ["plain.db"]
    assert path.read_bytes() == b"old"


def test_a_folder_that_is_not_there_is_said(corpus: Corpus, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        write_database(Corpus(corpus.entities[:5]), PLAIN, tmp_path / "absent" / "plain.db")
    (problem,) = caught.value.problems
    assert problem.path == str(tmp_path / "absent" / "plain.db")
    assert "could not be written" in problem.message


def test_both_systems_are_told_apart_by_their_data_alone() -> None:
    assert [design.name for design in DESIGNS] == ["plain", "fields"]
    assert PLAIN.search_config != FIELDS.search_config
