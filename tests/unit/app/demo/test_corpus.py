"""The corpus of the running interpreter: facts anybody can check, and that reading it imports and changes nothing."""

from __future__ import annotations

import ast
import os
import sys
from pathlib import Path

import pytest

from cranfield.app.demo.corpus import build_corpus
from cranfield.app.demo.entity import Corpus, DocumentedObject
from cranfield.base.errors import InputError


@pytest.mark.parametrize(
    ("entity_id", "kind", "qualname", "module"),
    [
        ("json/__init__.py", "module", "json", "json"),
        ("json/decoder.py", "module", "json.decoder", "json.decoder"),
        ("json/decoder.py::JSONDecoder", "class", "json.JSONDecoder", "json.decoder"),
        ("json/decoder.py::JSONDecoder.decode", "method", "json.JSONDecoder.decode", "json.decoder"),
        ("concurrent/futures/_base.py::Executor", "class", "concurrent.futures.Executor", "concurrent.futures"),
        (
            "concurrent/futures/thread.py::ThreadPoolExecutor",
            "class",
            "concurrent.futures.ThreadPoolExecutor",
            "concurrent.futures.thread",
        ),
        ("asyncio/streams.py::open_connection", "function", "asyncio.open_connection", "asyncio.streams"),
        ("_collections_abc.py::Mapping", "class", "collections.abc.Mapping", "collections.abc"),
        ("_pydecimal.py::Decimal", "class", "decimal.Decimal", "decimal"),
        ("zoneinfo/_zoneinfo.py::ZoneInfo", "class", "zoneinfo.ZoneInfo", "zoneinfo"),
        ("threading.py::Thread.daemon", "property", "threading.Thread.daemon", "threading"),
        ("typing.py::List", "data", "typing.List", "typing"),
        ("builtins", "module", "builtins", "builtins"),
        ("builtins::dict.get", "method", "builtins.dict.get", "builtins"),
        ("math::sqrt", "function", "math.sqrt", "math"),
        ("itertools::groupby", "class", "itertools.groupby", "itertools"),
        ("time::perf_counter", "function", "time.perf_counter", "time"),
        ("sys::exc_info", "function", "sys.exc_info", "sys"),
        ("collections::deque", "class", "collections.deque", "collections"),
        ("csv::reader", "function", "csv.reader", "csv"),
        ("sqlite3::connect", "function", "sqlite3.connect", "sqlite3"),
        ("os::listdir", "function", "os.listdir", "os"),
        ("topics::lambda", "topic", "Lambdas", ""),
        (f"{os.path.__name__}.py::join", "function", "os.path.join", "os.path"),
    ],
)
def test_known_things_are_there_under_the_name_people_use(
    corpus: Corpus, entity_id: str, kind: str, qualname: str, module: str
) -> None:
    found = corpus.by_id[entity_id]
    assert (found.kind, found.qualname, found.module) == (kind, qualname, module)
    assert found.name == ("lambda" if kind == "topic" else qualname.rpartition(".")[2])


@pytest.mark.parametrize(
    "entity_id",
    [
        "heapq::heappush",  # has Python source
        "queue.py::SimpleQueue",  # a placeholder; the real one is compiled
        "_csv::reader",
        "posix::listdir",
        "_pyio.py::open",
        "concurrent/futures/_base.py::LOGGER",
        "json/__main__.py",
        "encodings/cp1252.py",
    ],
)
def test_private_and_doubled_things_are_not(corpus: Corpus, entity_id: str) -> None:
    assert entity_id not in corpus


def test_tests_tools_and_other_peoples_packages_are_left_out(corpus: Corpus) -> None:
    folders = {part for entity in corpus for part in entity.path.split("/")[:-1]}
    tops = {entity.path.split("/")[0].removesuffix(".py") for entity in corpus if entity.path}
    assert folders.isdisjoint({"test", "tests", "site-packages", "dist-packages", "idlelib", "lib2to3", "turtledemo"})
    assert tops <= sys.stdlib_module_names


def test_ids_are_unique_and_stand_in_the_order_of_their_code_points(corpus: Corpus) -> None:
    ids = [entity.id for entity in corpus]
    assert ids == sorted(set(ids))
    assert len(corpus) == len(ids)


def test_the_corpus_is_the_whole_library(corpus: Corpus) -> None:
    kinds = [entity.kind for entity in corpus]
    # Python 3.11 to 3.13, with and without tkinter, lie between 9,900 and 11,200.
    assert 8_000 < len(corpus) < 20_000
    assert kinds.count("topic") > 60
    assert kinds.count("module") > 250
    assert sum(bool(entity.doc) for entity in corpus) > 6_000


def test_every_span_holds_the_definition_it_names(corpus: Corpus, library: Path) -> None:
    lines: dict[str, list[str]] = {}
    checked = 0
    for entity in corpus:
        if not entity.path or entity.kind in {"module", "topic"}:
            continue
        if entity.path not in lines:
            lines[entity.path] = (library / entity.path).read_bytes().decode("utf-8", "replace").split("\n")
        span = lines[entity.path][entity.start - 1 : entity.end]
        assert span, entity.id
        opens_with_name = any(_defines(line, entity) for line in span)
        assert opens_with_name, f"{entity.id}: {span[0]!r}"
        assert span[0].lstrip().startswith(("@", "def ", "async def ", "class ", entity.name)) or entity.kind == "data"
        checked += 1
    assert checked > 7_000


def _defines(line: str, entity: DocumentedObject) -> bool:
    text = line.strip().removeprefix("async ").strip()
    if entity.kind == "data":
        return entity.name in text
    return text.replace("\t", " ").startswith((f"def {entity.name}", f"class {entity.name}"))


def test_a_span_can_be_parsed_on_its_own(corpus: Corpus, library: Path) -> None:
    entity = corpus.by_id["json/decoder.py::JSONDecoder"]
    text = (library / entity.path).read_text(encoding="utf-8").splitlines()[entity.start - 1 : entity.end]
    (node,) = ast.parse("\n".join(text)).body
    assert isinstance(node, ast.ClassDef)
    assert ast.get_docstring(node) == entity.doc


def test_what_has_no_source_has_no_span(corpus: Corpus) -> None:
    for entity in corpus:
        assert bool(entity.path) == bool(entity.start) == bool(entity.end), entity.id
        assert entity.start <= entity.end


def test_documented_deprecations_are_known(corpus: Corpus) -> None:
    for entity_id in ("threading.py::Condition.notifyAll", "abc.py::abstractproperty"):
        assert corpus.by_id[entity_id].is_deprecated, entity_id
    for entity_id in ("threading.py::Condition.notify_all", "abc.py::abstractmethod", "builtins::dict"):
        assert not corpus.by_id[entity_id].is_deprecated, entity_id


def test_reading_the_library_imports_none_of_it(demo_before_its_run: Path) -> None:
    imported = (demo_before_its_run / "imported.txt").read_text().split()
    # The codec of a file that says it is latin-1; how sysconfig finds the library; what running a child takes.
    by_the_way = ("cranfield.", "encodings.", "_sysconfigdata", "_posixsubprocess", "msvcrt", "_winapi")
    assert [name for name in imported if not name.startswith(by_the_way)] == []


@pytest.mark.slow
def test_the_corpus_does_not_depend_on_locale_hash_seed_or_folder(corpus: Corpus) -> None:
    """The corpus of the tests was read by a process in which each of them differs."""
    assert "\n".join(map(repr, build_corpus())) == "\n".join(map(repr, corpus))


def test_the_order_of_the_file_system_does_not_matter(tmp_path: Path) -> None:
    for names in (("csv", "abc", "json"), ("json", "csv", "abc")):
        folder = tmp_path / names[0]
        for name in names:
            (folder / name).mkdir(parents=True)
            (folder / name / "__init__.py").write_text(f'"""About {name}."""\ndef f(): ...\n', encoding="utf-8")
    first, second = (build_corpus(tmp_path / name) for name in ("csv", "json"))
    assert first == second
    assert "json/__init__.py::f" in first


def test_a_library_without_topics_is_read_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "abc.py").write_text('"""Hello."""\n', encoding="utf-8")
    (tmp_path / "not_of_the_library.py").write_text("def f(): ...\n", encoding="utf-8")
    messages: list[str] = []
    found = build_corpus(tmp_path, progress=messages.append)
    assert [line.split()[0] for line in messages] == ["reading", "describing"]
    assert "abc.py" in found
    assert not any(entity.kind == "topic" for entity in found)
    assert not any(entity.path.startswith("not_of") for entity in found)


def test_a_library_without_source_is_refused_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        build_corpus(tmp_path)
    (problem,) = caught.value.problems
    assert problem.path == str(tmp_path)
    assert "no source files" in problem.message
    assert problem.hint
