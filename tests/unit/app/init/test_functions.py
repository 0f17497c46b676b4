"""`init module:function`: what a function takes and returns is found out by trying it once, in a process of its own."""

from __future__ import annotations

import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from cranfield import Query, load
from cranfield.app.init.functions import Described, Parameter, arguments_of, function_system
from cranfield.app.init.shape import Known, Trial, TrialTarget
from cranfield.app.init.start import init_project
from cranfield.app.init.targets import command_system, targets_of
from cranfield.app.init.trial import make_system
from cranfield.base.errors import UsageError
from cranfield.config import load_config
from cranfield.model import Outcome

SOURCE = """
import asyncio, sys
from dataclasses import dataclass
from typing import NamedTuple

print("this module talks")
DOCS = {"lost key": ["k1", "k2", "k3"], "child seat": ["s1", "s2", "s3"]}

def ids(query, k): return DOCS[query][:k]
def pairs(text, top_k=2): return [(each, 1.0) for each in DOCS[text][:top_k]]
def named(*, question, limit=10, language="en"):
    return [{"doc_id": each, "score": 2, "title": each.upper(), "rank": 1} for each in DOCS[question][:limit]]
def filtered(query, filters=None, size=5): return {"results": [{"id": each} for each in DOCS[query][:size]]}
async def awaited(query, n=3):
    await asyncio.sleep(0)
    return DOCS[query][:n]
def alone(query): return DOCS[query]
def with_language(query, k, language): return [f"{each}" for each in DOCS[query][:k]]

@dataclass
class Result:
    doc: str
    relevance: float
    headline: str

class Plain:
    def __init__(self, each): self.doc_id, self.score, self._private = each, 1, object()

def objects(q, limit): return [Result(each, 1.0, each.upper()) for each in DOCS[q][:limit]]
def plain_objects(q, limit): return [Plain(each) for each in DOCS[q][:limit]]

class Index:
    def __init__(self, size=3): self.size = size
    def search(self, query, k): return DOCS[query][:k]
    def look(self, text, size): return DOCS[text][:size]

class Needs:
    def __init__(self, path): self.path = path
    def search(self, query, k): return []

index = Index()
def make(size=3): return Index(size)

def numbers(a: int, b: int): return 3
def unknown(query, collection): return []
def raises(query, k): raise RuntimeError("no index")
def exits(query, k): sys.exit(3)
def nothing(query, k): return None
def three(query, k): return 3
"""

READ = [
    ("ids", {}),
    ("pairs", {}),
    (
        "named",
        {
            "arguments": {"question": "{query}", "limit": "{k}"},
            "extract": {"json": "@", "id": "doc_id", "score": "score", "title": "title"},
        },
    ),
    ("filtered", {"arguments": {"query": "{query}", "size": "{k}"}, "extract": {"json": "results", "id": "id"}}),
    ("awaited", {}),
    ("alone", {"arguments": {"query": "{query}"}}),
    ("objects", {"extract": {"json": "@", "id": "doc", "score": "relevance", "title": "headline"}}),
    ("plain_objects", {"extract": {"json": "@", "id": "doc_id", "score": "score"}}),
    ("Index", {"with": {}}),
    ("index", {}),
    ("index.look", {}),
    ("make", {"with": {}}),
    ("with_language", {"arguments": {"query": "{query}", "k": "{k}", "language": "{params.language}"}}),
]


@pytest.fixture
def trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Trial:
    (tmp_path / "mine.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    queries = tuple(Query(text, text) for text in ("lost key", "child seat"))
    return Trial(tmp_path, queries, Known(frozenset({"k1", "s2"})))


def tried(given: str, trial: Trial) -> Any:
    return function_system(TrialTarget(given, "function"), trial)


@pytest.mark.parametrize(("name", "more"), READ, ids=[name for name, _ in READ])
def test_the_config_says_how_it_is_called_and_read(name: str, more: dict[str, Any], trial: Trial) -> None:
    if name == "with_language":
        queries = tuple(Query(each.id, each.text, params={"language": "de"}) for each in trial.queries)
        trial = Trial(trial.folder, queries, trial.known)
    found = tried(f"mine:{name}", trial)
    assert found.settings == {"python": f"mine:{name}", **more}
    assert found.ids == {
        "lost key": ["k1", "k2", "k3"][: len(found.ids["lost key"])],
        "child seat": found.ids["child seat"],
    }
    assert "mine" not in sys.modules  # it was imported by other processes
    system = make_system(found.settings, trial.folder)
    try:
        answer = system.ask(Query("q", "lost key", params=trial.queries[0].params), 2).answer
    finally:
        system.close()
    assert answer.outcome is Outcome.ANSWERED
    assert [hit.public_id for hit in answer.hits][:2] == ["k1", "k2"]


def test_what_stays_open_is_said(trial: Trial) -> None:
    plain = Trial(trial.folder, (Query("q", "lost key"),), trial.known)
    assert tried("mine:alone", plain).notes == (
        "no parameter for the number of results was found; it returns at most 3",
    )
    assert (
        tried("mine:pairs", plain).what
        == "a Python function pairs(text, top_k=2): a list of pairs of an id and a score"
    )


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("numbers", "no parameter of the function is the query; .* got numbers\\(a: int, b: int\\)"),
        ("unknown", "no value is known for collection; .* got unknown\\(query, collection\\)"),
        ("raises", "the function failed; .* got RuntimeError: no index"),
        ("exits", "the function failed; .* got SystemExit: 3"),
        ("nothing", "no results in what the function returns; expected a list of ids, .* got nothing"),
        ("three", "no results in what the function returns; expected a list of ids, .* got '3'"),
        ("Needs", "expected Needs to be called without arguments, got .*'path'"),
        ("nope", "expected nope in the module mine, got nothing of that name"),
    ],
)
def test_a_function_that_is_no_search_is_refused_with_what_it_takes_or_gave(
    name: str, message: str, trial: Trial
) -> None:
    with pytest.raises(UsageError, match=message):
        tried(f"mine:{name}", Trial(trial.folder, (Query("q", "lost key"),)))


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            "import nonexistent_library",
            "got bad.py, line 1: ModuleNotFoundError: No module named 'nonexistent_library'",
        ),
        ("def f(query, k)\n  pass", "got bad.py, line 1: expected ':'"),
        ("import os\nos._exit(7)", "got 'the process ended with 7'"),
        ("raise SystemExit(4)", "got bad.py, line 1: SystemExit: 4"),
    ],
)
def test_a_module_that_cannot_be_imported_says_why(source: str, message: str, trial: Trial) -> None:
    (trial.folder / "bad.py").write_text(source)
    with pytest.raises(UsageError, match=message):
        tried("bad:f", trial)


def test_a_file_is_named_with_its_folder(trial: Trial) -> None:
    (trial.folder / "sub").mkdir()
    (trial.folder / "mine.py").rename(trial.folder / "sub" / "mine.py")
    (target,) = targets_of(["search=sub/mine.py:ids"])
    assert (target.kind, target.name) == ("function", "search")
    found = function_system(target, trial)
    assert (found.settings, found.name) == ({"python": "mine:ids", "cwd": "sub"}, "search")
    with pytest.raises(UsageError, match="no such file, folder or program"):
        targets_of(["sub/none.py:ids"])


def test_of_a_file_that_is_no_program_the_function_that_searches_is_found(trial: Trial) -> None:
    (trial.folder / "own.py").write_text(
        dedent("""
        def prepare(text): return text
        def search_all(query, k): return ["k1"]
        def _search(query, k): return []
        """)
    )
    (target,) = targets_of(["own.py"])
    assert command_system(target, trial).settings == {"python": "own:search_all"}
    (trial.folder / "program.py").write_text("import sys\nprint('k1')\ndef search(query, k): return sys.argv\n")
    (target,) = targets_of(["program.py"])
    assert "command" in command_system(target, trial).settings


def test_a_project_with_a_function_runs(trial: Trial) -> None:
    judged = {"lost key": {"k2": 1}, "child seat": {"s1": 1}}
    lines = "".join(f"- {{id: {text[:1]}, text: {text}, judgments: {{{doc}: 1}}}}\n" for text, (doc,) in judged.items())
    Path("set.yaml").write_text(f"cranfield_testset: 1\nname: s\nqueries:\n{lines}")
    init_project(["set.yaml", "mine:named", "mine:ids"], Path("cranfield.yaml"))
    config = load_config(Path("cranfield.yaml"))
    assert list(config.systems) == ["named", "ids"]
    assert len(load("set.yaml").queries) == 2


def parameter(
    name: str, kind: str = "", *, required: bool = True, position: bool = True, by_name: bool = True
) -> Parameter:
    return Parameter(name, position, by_name, required, kind)


@pytest.mark.parametrize(
    ("parameters", "arguments"),
    [
        ([parameter("query"), parameter("k")], None),
        ([parameter("words", "str"), parameter("how_many", "int")], None),
        ([parameter("k"), parameter("query")], {"query": "{query}", "k": "{k}"}),
        ([parameter("n", "int", required=False), parameter("words", "str")], {"words": "{query}", "n": "{k}"}),
        ([parameter("words", "str"), parameter("top", "other", required=False)], None),
    ],
)
def test_arguments_by_name_where_the_order_is_another(
    parameters: list[Parameter], arguments: dict[str, str] | None
) -> None:
    described = Described("f", "(...)", tuple(parameters), takes_any=False, is_made=False)
    assert arguments_of(described, [], "m:f")[0] == arguments


def test_what_cannot_be_passed_by_name_is_refused() -> None:
    parameters = (parameter("query", by_name=False), parameter("filters", "other", required=False), parameter("k"))
    with pytest.raises(UsageError, match="query cannot be passed by name"):
        arguments_of(Described("f", "(...)", parameters, takes_any=False, is_made=False), [], "m:f")
