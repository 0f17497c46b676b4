"""Functions as systems: found, called, timed, and read, whatever they return or raise."""

import asyncio
import json
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from cranfield.base.errors import ConfigError, PreflightError
from cranfield.model import Answer, Hit, Outcome, Query
from cranfield.systems.collect.preflight import preflight
from cranfield.systems.kinds.python import PythonSystem
from cranfield.systems.system import CallInterruptedError


@pytest.fixture
def module(tmp_path: Path):
    """Write a module, and make a system of a function of it. Each has a name of its own, as Python keeps modules."""
    made = []

    def _module(
        source: str, name: str = "search", *, file: str = "engine.py", cwd: str = ".", **config
    ) -> PythonSystem:
        folder = tmp_path / cwd
        folder.mkdir(exist_ok=True, parents=True)
        (folder / file).write_text(source, encoding="utf-8")
        dotted = file.removesuffix(".py").replace("/", ".")
        made.append(PythonSystem.of("sut", folder=tmp_path, python=f"{dotted}:{name}", cwd=cwd, **config))
        return made[-1]

    yield _module
    for system in made:
        system.close()


def ask(system, text="grid", k=10, **params):
    return system.search(Query("q1", text, params=params), k)


def refused(system) -> str:
    with pytest.raises(PreflightError) as caught:
        preflight([system])
    return str(caught.value)


def test_a_function_is_called_with_the_query_k_and_the_params(module):
    source = "def search(query, k, lang='de', **more):\n    return [f'{query} {k} {lang} {sorted(more.items())}']\n"
    system = module(source, params={"boost": 2.5})
    assert ask(system, "grid", 3, lang="en")[0].hits == (Hit("grid 3 en [('boost', 2.5)]"),)


def test_an_async_function_is_awaited_on_the_loop(module):
    source = "import asyncio\nasync def search(query, k):\n    await asyncio.sleep(0)\n    return [query]\n"
    system = module(source)
    assert ask(system)[0].hits == (Hit("grid"),)
    assert preflight([system])[-1].found == "an async function"


def test_what_a_plain_function_hands_back_to_be_awaited_is_awaited(module):
    source = "async def inner(query):\n    return [query]\nsearch = lambda query, k: inner(query)\n"
    assert ask(module(source))[0].hits == (Hit("grid"),)


class Document:
    """As LangChain's: a text and its metadata."""

    def __init__(self, page_content, metadata):
        self.page_content, self.metadata = page_content, metadata


RETURNED = {
    "ids": (["d1", "d2"], (Hit("d1"), Hit("d2"))),
    "whole numbers": ([7, np.int64(8)], (Hit("7"), Hit("8"))),
    "a tuple": (("d1",), (Hit("d1"),)),
    "ids and scores": ([("d1", 2), ["d2", np.float32(0.5)]], (Hit("d1", 2.0), Hit("d2", 0.5))),
    "hits": ([Hit("d1", 1.0, "T", "1-2", 3.0)], (Hit("d1", 1.0, "T", "1-2", 3.0),)),
    "objects": (
        [{"id": "d1", "score": 1, "title": "T", "span": [1, 2], "tokens": 9, "other": 1}],
        (Hit("d1", 1.0, "T", "[1, 2]", 9.0),),
    ),
    "an array": (np.array(["d1", "d2"]), (Hit("d1"), Hit("d2"))),
    "an answer": (Answer(Outcome.ANSWERED, (Hit("d1"),)), (Hit("d1"),)),
    "an object with hits": ({"hits": ["d1"]}, (Hit("d1"),)),
    "documents of LangChain": (
        [Document("a text", {"source": "a.md", "start_index": 7}), (Document("b", {"source": "b.md"}), 0.5)],
        (
            Hit(
                "a.md",
                fields={"text": "a text", "source": "a.md", "start_index": 7, "start_char": 7, "end_char": 13},
            ),
            Hit("b.md", 0.5, fields={"text": "b", "source": "b.md"}),
        ),
    ),
    "documents of Haystack": (
        [{"content": "a text", "meta": {"file_path": "a.md"}, "score": 0.5}],
        (Hit("a.md", 0.5, fields={"content": "a text", "file_path": "a.md"}),),
    ),
    "a generator": ((f"d{number}" for number in (1, 2)), (Hit("d1"), Hit("d2"))),
}


@pytest.mark.parametrize("name", RETURNED)
def test_every_form_of_a_list_of_hits_is_read(name):
    value, hits = RETURNED[name]
    answer, _ = ask(PythonSystem.calling("f", lambda query, k: value))
    assert (answer.outcome, answer.hits) == (Outcome.ANSWERED, hits)


NOT_READ = {
    "nothing": (None, "the answer is null, not a list of hits, or an object with hits"),
    "text": ("d1", "the answer is text, not a list of hits"),
    "a number": (3, "the answer is a number, not a list of hits"),
    "a set": ({"d1"}, "the answer is a set, not a list of hits"),
    "no hits": ({"d1": 0.5}, 'the answer is an object without "hits"'),
    "a mapping for hits": ({"hits": {"d1": 0.5}}, "the answer is an object, not a list of hits"),
    "three in a row": ([("d1", 1, 2)], "result 1 is a list of 3, not an id and its score"),
    "no id": (["d1", None], "result 2 has no id"),
    "a blank id": ([" "], "result 1 has no id"),
    "a number that is not an id": ([1.5], "result 1 has a number for an id"),
    "a score that is none": ([("d1", "high")], "result 1 has no score that is a finite number"),
    "a score beyond all": ([("d1", float("nan"))], "result 1 has no score that is a finite number"),
    "true for a score": ([("d1", True)], "result 1 has no score that is a finite number"),
    "tokens under 0": (
        [{"id": "d1", "tokens": -1}],
        "result 1 has a token count that is not a finite number of 0 or more",
    ),
    "fields that JSON cannot say": ({"hits": [], "fields": {"x": object()}}, "fields cannot be written as JSON"),
    "fields that are not finite": ({"hits": [], "fields": {"x": float("inf")}}, "fields cannot be written as JSON"),
    "fields that are no object": ({"hits": [], "fields": ["x"]}, "fields are a list, not an object"),
    "a document without a source": (
        [Document("a text", {"page": 3})],
        "result 1 is a document without an id; expected id",
    ),
    "an object of its own": ([object()], "result 1 has an object for an id"),
}


@pytest.mark.parametrize("name", NOT_READ)
def test_anything_else_is_unparsable_with_a_reason(name):
    value, reason = NOT_READ[name]
    answer, _ = ask(PythonSystem.calling("f", lambda query, k: value))
    assert answer.outcome is Outcome.UNPARSABLE
    assert reason in answer.reason


def test_an_empty_list_is_an_honest_empty_answer():
    assert ask(PythonSystem.calling("f", lambda query, k: []))[0] == Answer(Outcome.EMPTY)


def test_fields_travel_with_the_answer_as_plain_values():
    fields = {"confidence": np.float64(0.25), "local": True, "tokens": np.array([1, 2])}
    answer, _ = ask(PythonSystem.calling("f", lambda query, k: {"hits": ["d1"], "fields": fields}))
    assert json.loads(json.dumps(dict(answer.fields))) == {"confidence": 0.25, "local": True, "tokens": [1, 2]}


def test_an_error_in_the_answer_is_an_error():
    answer, _ = ask(PythonSystem.calling("f", lambda query, k: {"error": "index locked\nby x"}))
    assert (answer.outcome, answer.reason) == (Outcome.ERROR, "index locked")


def test_a_list_to_be_sorted_needs_its_scores():
    system = PythonSystem.calling("f", lambda query, k: ["d1"], order="descending")
    assert (ask(system)[0].outcome, system.order) == (Outcome.UNPARSABLE, "descending")


@pytest.mark.parametrize(
    ("value", "extract", "hits"),
    [
        ({"docs": [{"uri": "d1", "w": 2}]}, {"json": "docs", "id": "uri", "score": "w"}, (Hit("d1", 2.0),)),
        ([["d1", 5]], {"json": "@", "id": "[0]", "tokens": "[1]"}, (Hit("d1", tokens=5.0),)),
        ('{"docs": ["d1"]}', {"json": "docs"}, (Hit("d1"),)),
        ([{"id": "d1"}, {"id": "d2"}], {"jsonl": True, "id": "id"}, (Hit("d1"), Hit("d2"))),
        ("see docs://a and docs://b", {"regex": r"docs://\w+"}, (Hit("docs://a"), Hit("docs://b"))),
    ],
)
def test_extract_reads_any_json_value(module, value, extract, hits):
    system = module(f"def search(query, k):\n    return {value!r}\n", extract=extract)
    assert ask(system)[0].hits == hits


def test_what_json_cannot_say_is_unparsable_where_extract_is_to_read_it(module):
    answer, _ = ask(module("def search(query, k):\n    return {1, 2}\n", extract={"json": "@"}))
    assert (answer.outcome, answer.reason) == (Outcome.UNPARSABLE, "what it returned cannot be written as JSON")


@pytest.mark.parametrize("kind", ["def", "async def"])
@pytest.mark.parametrize(
    ("raised", "reason"),
    [
        ("ValueError('no index\\nat x')", "ValueError: no index"),
        ("KeyError()", "KeyError"),
        ("SystemExit(3)", "SystemExit: 3"),
        ("TimeoutError('slow')", "TimeoutError: slow"),
        ("RuntimeError(str(object()))", "RuntimeError: <object object>"),
        ("__import__('asyncio').CancelledError()", "CancelledError"),
        ("ValueError('key ' + __import__('os').environ['HOME'])", "ValueError: key ${HOME}"),
    ],
)
def test_whatever_it_raises_is_an_error_in_one_line(module, kind, raised, reason):
    source = f"{kind} search(query, k):\n    raise {raised}\n"
    system = module(source)
    system.redactor = type(system.redactor)({"HOME": __import__("os").environ["HOME"]})
    answer, log = ask(system)
    assert (answer.outcome, answer.reason) == (Outcome.ERROR, reason)
    assert "engine.py" in log.stderr_head
    assert "Traceback" in log.stderr_head


def test_a_broken_connection_is_tried_again_where_retries_are_asked_for(module):
    source = """
calls = []
def search(query, k):
    calls.append(query)
    if len(calls) < 3:
        raise ConnectionResetError("reset")
    return ["d1"]
"""
    answer, log = ask(module(source, retries=2, backoff_s=0.01))
    assert (answer.hits, log.attempts) == ((Hit("d1"),), 3)


def test_a_function_out_of_time_is_left_to_itself_and_the_next_call_goes_on(set_timeout):
    let_go = threading.Event()
    threads = []

    def search(query, k):
        threads.append(threading.current_thread())
        if query == "hang":
            let_go.wait(60)
        return [query]

    system = PythonSystem.calling("f", search, timeout_s=0.3)
    late, _ = ask(system, "hang")
    assert (late.outcome, late.reason) == (Outcome.TIMEOUT, "no answer in 0.3 s")
    set_timeout(system, 60)
    assert ask(system, "b")[0].hits == (Hit("b"),)
    assert threads[0].is_alive()
    assert threads[0].daemon
    let_go.set()
    system.close()
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()


def test_an_async_function_out_of_time_is_cancelled(wait_for):
    ended = []

    async def search(query, k):
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(query)

    answer, _ = ask(PythonSystem.calling("f", search, timeout_s=1))
    assert answer.outcome is Outcome.TIMEOUT
    wait_for(lambda: ended == ["grid"])


@pytest.mark.parametrize("is_async", [False, True])
def test_an_interruption_ends_the_wait(is_async, wait_for):
    began, let_go = threading.Event(), threading.Event()

    def search(query, k):
        began.set()
        let_go.wait(60)

    async def asearch(query, k):
        began.set()
        await asyncio.sleep(60)

    system = PythonSystem.calling("f", asearch if is_async else search, timeout_s=60)
    raised = []

    def call() -> None:
        with pytest.raises(CallInterruptedError) as caught:
            ask(system)
        raised.append(caught)

    thread = threading.Thread(target=call)
    thread.start()
    assert began.wait(20)
    system.interrupt()
    thread.join(20)
    let_go.set()
    assert raised


def test_one_at_a_time_is_always_the_same_thread_from_loading_on(module):
    # SQLite's connections refuse every thread but the one that made them.
    source = """
import sqlite3
connection = sqlite3.connect(":memory:")
def search(query, k):
    return [str(connection.execute("select 1").fetchone()[0])]
"""
    system = module(source)
    preflight([system])
    assert [ask(system)[0].hits for _ in range(3)] == [(Hit("1"),)] * 3


def test_calls_of_a_concurrent_system_run_at_the_same_time():
    together = threading.Barrier(3)

    def search(query, k):
        together.wait(20)
        return [query]

    system = PythonSystem.calling("f", search, concurrency=3)
    answers = []
    threads = [threading.Thread(target=lambda text=text: answers.append(ask(system, text)[0])) for text in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(answer.hits[0].id for answer in answers) == ["a", "b", "c"]


FACTORY = """
class Index:
    def __init__(self, name, folder, environment):
        self.seen = f"{name} {(folder / 'engine.py').exists()} {environment.get('TOKEN')}"
    def search(self, query, k):
        return [self.seen]
    def close(self):
        open(CLOSED, "w").close()
"""


def test_with_makes_what_is_asked_and_closes_it(module, tmp_path):
    closed = tmp_path / "closed"
    source = FACTORY.replace("CLOSED", repr(str(closed)))
    system = module(source, "Index", **{"with": {"name": "old"}}, env={"TOKEN": "abc"})
    assert ask(system)[0].hits == (Hit("old True abc"),)
    system.close()
    assert closed.exists()


def test_a_function_that_with_makes_is_called(module):
    source = "def make(prefix):\n    return lambda query, k: [prefix + query]\n"
    assert ask(module(source, "make", **{"with": {"prefix": "x-"}}))[0].hits == (Hit("x-grid"),)


def test_modules_are_looked_for_in_cwd_and_beside_the_config_and_the_path_is_as_before(module, tmp_path):
    (tmp_path / "beside_config.py").write_text("NAME = 'beside'\n")
    before = list(sys.path)
    system = (
        module(
            "from beside_config import NAME\ndef search(query, k):\n    return [NAME]\n",
            file="inner/deep.py",
            cwd="app",
        )
        if (tmp_path / "app" / "inner").mkdir(parents=True) is None
        else None
    )
    assert ask(system)[0].hits == (Hit("beside"),)
    assert sys.path == before


def test_two_systems_have_modules_of_the_same_name_each_its_own(module):
    inner = "WHO = {!r}\n"
    source = "from helper_of_both import WHO\ndef search(query, k):\n    return [WHO]\n"
    systems = []
    for who in ("old", "new"):
        module(inner.format(who), file="helper_of_both.py", cwd=who)
        systems.append(module(source, file="same_name.py", cwd=who))
    assert [ask(system)[0].hits for system in systems] == [(Hit("old"),), (Hit("new"),)]


@pytest.mark.parametrize(
    ("source", "name", "said"),
    [
        ("def search(query, k)\n    pass\n", "search", "got engine.py, line 1: expected ':'"),
        ("import absent_module_x\n", "search", "got engine.py, line 1: ModuleNotFoundError: No module named 'absent_"),
        ("\nraise ValueError('no index')\n", "search", "got engine.py, line 2: ValueError: no index"),
        ("def find(query, k):\n    pass\n", "search", "got nothing of that name.\nHint: it has find."),
        ("search = 3\n", "search", "expected search to be a function, or to have a method search, got an int"),
        ("class Index:\n    pass\n", "Index", "expected Index to be a function, got a class.\nHint: with `with: {}`"),
        ("def search(query):\n    pass\n", "search", "expected search to take (query, k), got search(query): too many"),
    ],
)
def test_the_preflight_says_what_python_said(module, source, name, said):
    assert said in refused(module(source, name))


def test_the_preflight_says_that_there_is_no_such_module(tmp_path):
    system = PythonSystem.of("sut", folder=tmp_path, python="no_such_module_y:search")
    assert "expected the module no_such_module_y, got no module named no_such_module_y" in refused(system)
    answer, _ = ask(system)
    assert (answer.outcome, answer.reason) == (
        Outcome.ERROR,
        "the module no_such_module_y: no module named no_such_module_y",
    )


def test_params_that_the_function_does_not_take_fail_the_preflight(module):
    system = module("def search(query, k):\n    pass\n", params={"boost": 2})
    assert "expected search to take (query, k, boost), got search(query, k): got an unexpected keyword" in refused(
        system
    )


@pytest.mark.parametrize(
    ("source", "settings", "said"),
    [
        ("def make(a): ...\n", {"b": 1}, "expected make to take b, got make(a): missing a required argument: 'a'"),
        ("def make():\n    raise OSError('locked')\n", {}, "got engine.py, line 2: OSError: locked"),
        ("def make():\n    return 3\n", {}, "expected make to be a function, or to have a method search, got an int"),
        ("make = 3\n", {}, "expected make to be a function that takes `with`, got an int"),
    ],
)
def test_a_factory_that_fails_fails_the_preflight(module, source, settings, said):
    assert said in refused(module(source, "make", **{"with": settings}))


def test_an_environment_that_nobody_would_see_fails_the_preflight(module):
    system = module("def make():\n    return print\n", "make", **{"with": {}}, env={"TOKEN": "x"})
    assert "expected make to take environment, for the system has an env, got make()" in refused(system)


def test_the_modules_that_it_imports_are_what_it_depends_on(module, tmp_path):
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "__init__.py").write_text("")
    (tmp_path / "parts" / "index.py").write_text("import json\n")
    (tmp_path / "unrelated.py").write_text("")
    system = module("def search(query, k):\n    from parts import index\n    return []\n")
    found = {path.relative_to(tmp_path.resolve()).as_posix() for path in system.depends_on()}
    assert found == {"engine.py", "parts/__init__.py", "parts/index.py"}


def test_of_an_installed_module_only_its_own_file_counts(tmp_path):
    system = PythonSystem.of("sut", folder=tmp_path, python="json.decoder:JSONDecoder")
    assert [path.name for path in system.depends_on()] == ["decoder.py"]


def test_a_function_at_hand_has_a_digest_of_its_source():
    def first(query, k):
        return ["d1"]

    def second(query, k):
        return ["d2"]

    digests = [PythonSystem.calling("f", one).config_digest for one in (first, first, second)]
    assert digests[0] == digests[1] != digests[2]
    assert PythonSystem.calling("f", first).public_config()["python"].endswith(":first")


def test_an_object_with_a_method_search_is_a_function_at_hand():
    class Index:
        def search(self, query, k):
            return [query]

    assert ask(PythonSystem.calling("f", Index()))[0].hits == (Hit("grid"),)


def test_settings_of_a_function_at_hand_are_checked():
    with pytest.raises(ConfigError, match="concurrency"):
        PythonSystem.calling("f", print, concurrency=0)


def test_the_time_of_a_call_is_that_of_the_function():
    def search(query, k):
        time.sleep(0.05)
        return []

    assert ask(PythonSystem.calling("f", search))[1].latency_ms >= 50


NAMED = """
def named(*, text, top_k=3, language="en"):
    return [f"{text}-{n}-{language}" for n in range(top_k)]

async def awaited(limit, question):
    return [f"{question}-{n}" for n in range(limit)]
"""


@pytest.mark.parametrize(
    ("name", "arguments", "params", "expected"),
    [
        ("named", {"text": "{query}", "top_k": "{k}"}, {}, ["q-0-en", "q-1-en"]),
        ("named", {"text": "about {query}", "top_k": 1}, {}, ["about q-0-en"]),
        ("named", {"text": "{query}", "top_k": 1, "language": "{params.lang}"}, {"lang": "de"}, ["q-0-de"]),
        ("named", {"text": "{query}", "top_k": 1, "language": "{params.lang}"}, {}, ["q-0-en"]),
        ("awaited", {"question": "{query}", "limit": "{k}"}, {}, ["q-0", "q-1"]),
    ],
)
def test_arguments_by_name_take_the_place_of_the_usual_ones(module, name, arguments, params, expected):
    system = module(NAMED, name, arguments=arguments)
    preflight([system], k=2)
    assert [hit.id for hit in ask(system, "q", 2, **params)[0].hits] == expected


def test_arguments_that_a_function_does_not_take_fail_before_the_first_query(module):
    system = module(NAMED, "named", arguments={"words": "{query}", "top_k": "{k}"})
    with pytest.raises(
        PreflightError, match=r"expected named to take words, top_k, its `arguments`, got named\(\*, text"
    ):
        preflight([system], k=2)
    with pytest.raises(ConfigError, match="every query would make the same call"):
        module(NAMED, "named", arguments={"top_k": "{k}"})
