"""Functions in a process of their own: the answers of one in this process, and no way to end or change it."""

import os
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from cranfield.base.errors import PreflightError
from cranfield.formats.runs.record import answer_record, json_line
from cranfield.model import Hit, Outcome, Query
from cranfield.systems.collect.collection import collect
from cranfield.systems.collect.preflight import preflight
from cranfield.systems.kinds.python import PluginSystem, PythonSystem
from cranfield.systems.system import CallInterruptedError

SHAPES = r"""
import array, collections, os, sys, threading
from cranfield.base.errors import CranfieldError
from cranfield.model import Answer, Hit, Outcome

class Text(str):
    pass

class Endless:
    def __iter__(self):
        return self
    def __next__(self):
        return "d"

def raises(error):
    raise error

def breaks_off():
    yield "d1"
    raise ValueError("in the middle")

def deep():
    value = "d"
    for _ in range(2000):
        value = [value]
    return value

async def later(value):
    return value

def held():
    value = []
    value.append(value)
    return value

RETURNED = {
    "ids": lambda: ["d1", "d2"],
    "numbers": lambda: [7, 2**70, True],
    "a tuple": lambda: ("d1",),
    "pairs": lambda: [("d1", 2), ["d2", 0.1 + 0.2], ("d3", 1e300), ("d4", -0.0)],
    "hits": lambda: [Hit("d1", 1.0, "T", "1-2", 3.0), Hit(Text("d2"), None, Text("t"))],
    "objects": lambda: [{"id": "d1", "score": 1, "title": "T", "span": [1, 2], "tokens": 9, "other": object()}],
    "an array": lambda: array.array("i", [1, 2]),
    "an answer": lambda: Answer(Outcome.ANSWERED, (Hit("d1"),), fields={"a": (1, 2)}),
    "a failure": lambda: Answer(Outcome.ERROR, reason="no index\x00 \u2028 \ud800", fields={"at": 1}),
    "a failure with anything in it": lambda: Answer(Outcome.NONZERO_EXIT, reason=3, fields={"x": object()}),
    "missing": lambda: Answer(Outcome.MISSING),
    "an object with hits": lambda: {"hits": ["d1"], "fields": {"x": [1, None, {"y": 0.5}], "é": "\ud800"}},
    "a generator": lambda: (f"d{number}" for number in (1, 2)),
    "an endless one": lambda: Endless(),
    "one that breaks off": breaks_off,
    "characters": lambda: ["a b", "é\u2028\x85\x00", "\ud800", '"\\', "d\n1"],
    "empty": lambda: [],
    "nothing": lambda: None,
    "text": lambda: "d1",
    "a set": lambda: {"d1"},
    "deep": lambda: {"hits": ["d1"], "fields": {"x": deep()}},
    "in itself": lambda: held(),
    "not finite": lambda: [("d1", float("nan"))],
    "fields that are no values": lambda: {"hits": [], "fields": {"x": object()}},
    "an error": lambda: {"error": "index locked\nby x"},
    "blank": lambda: [" "],
    "long": lambda: ["d" * 3000],
    "an object of its own": lambda: object(),
    "awaited": lambda: later(["d1"]),
    "an exception": lambda: raises(ValueError("no index\nat x " + repr(object()))),
    "an exit": lambda: raises(SystemExit(3)),
    "an interruption": lambda: raises(KeyboardInterrupt()),
    "an exception of ours": lambda: raises(CranfieldError("wrong")),
    "a broken connection": lambda: raises(ConnectionResetError("reset")),
    "its thread": lambda: [threading.current_thread() is threading.main_thread()],
    "its folder": lambda: [os.getcwd()],
    "its environment": lambda: [os.environ["PATH"], str("INDEX" in os.environ)],
    "its path": lambda: [{"id": folder} for folder in sys.path if folder],
}

def search(query, k, **params):
    print("printed", query)
    sys.stdout.flush()
    os.write(1, b"written\n")
    if query.startswith("params"):
        return [query, k, *(f"{name}={value!r}" for name, value in params.items())]
    return RETURNED[query]()

async def asearch(query, k, **params):
    value = search(query, k, **params)
    return await value if hasattr(value, "__await__") else value

class Index:
    def __init__(self, name, folder, environment, **more):
        self.made = f"{name} {folder.name} {environment['INDEX']} {more}"
    def search(self, query, k):
        return [self.made, query]
    def close(self):
        print("closed")

def text(query, k):
    return '{"docs": ["d1"]}' if query == "text" else {"docs": [{"id": "d1"}, {"id": "d2"}]} if query == "ids" else {1}

def rows(query, k):
    return [{"id": "d1"}, {"id": query}]
"""
SHAPE_NAMES = [line.split('"')[1] for line in SHAPES.splitlines() if line.startswith('    "') and '": ' in line]


@pytest.fixture
def system(tmp_path: Path):
    """Make a system of a function of a module given as source, in a process of its own; ended when the test is over."""
    made = []

    def _system(source: str, name: str = "search", *, isolated: bool = True, **config) -> PythonSystem:
        (tmp_path / "engine.py").write_text(source, encoding="utf-8")
        made.append(PythonSystem.of("sut", folder=tmp_path, python=f"engine:{name}", **config))
        if isolated:
            made[-1].isolate({})
        return made[-1]

    yield _system
    for one in made:
        one.close()
    sys.modules.pop("engine", None)


def ask(system, text="grid", k=10, **params):
    return system.search(Query("q1", text, params=params), k)


def run_lines(system, testset) -> list[str]:
    """What is kept of a run, without its times."""
    run = collect(testset, system, k=3)
    return [
        json_line(answer_record(query_id, answer, replace(run.logs[query_id], latency_ms=0.0, at=None)))
        for query_id, answer in run.answers.items()
    ]


SAME = {
    "hits": ("search", {}, SHAPE_NAMES),
    "async": ("asearch", {}, SHAPE_NAMES),
    "sorted": ("search", {"order": "descending"}, ["pairs", "ids", "hits", "objects", "an answer"]),
    "params": ("search", {"params": {"boost": 2.5, "lang": "dé", "exact": True, "n": 10**20}}, ["params"]),
    "retries": ("search", {"retries": 1, "backoff_s": 0.001}, ["a broken connection", "an exception"]),
    "factory": ("Index", {"with": {"name": "old", "n": [1, {"a": None}]}, "env": {"INDEX": "a.db"}}, ["ids"]),
    "json": ("text", {"extract": {"json": "docs", "id": "id"}}, ["ids", "text", "other"]),
    "jsonl": ("rows", {"extract": {"jsonl": True, "id": "id"}}, ["ids", "text"]),
    "regex": ("text", {"extract": {"regex": r"d\d"}, "empty": "^$"}, ["ids", "text", "other"]),
    "at a time": ("search", {"concurrency": 8}, SHAPE_NAMES),
}


SLOW_ONES = {"hits", "sorted", "jsonl", "retries", "async"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in SLOW_ONES else name for name in SAME]
)
def test_a_run_is_the_same_as_one_of_a_function_in_this_process(system, testset_of, name):
    function, config, texts = SAME[name]
    testset = testset_of(*texts)
    both = [system(SHAPES, function, isolated=isolated, **config) for isolated in (False, True)]
    assert preflight([both[0]]) == preflight([both[1]])
    assert run_lines(both[0], testset) == run_lines(both[1], testset)
    assert both[0].config_digest == both[1].config_digest
    assert list(both[0].depends_on()) == list(both[1].depends_on())
    assert os.environ.get("INDEX") is None


DEATHS = {
    "os._exit(0)": "the process ended with exit status 0 before it answered",
    "os._exit(3)": "the process ended with exit status 3 before it answered",
    "os.kill(os.getpid(), signal.SIGKILL)": "the process was killed by SIGKILL before it answered",
    "os.kill(os.getpid(), signal.SIGTERM)": "the process was killed by SIGTERM before it answered",
    "os.closerange(3, 100)": "the process closed its output but did not exit before it answered",
    "[os.write(fd, b'{]\\n') for fd in range(3, 30) if writable(fd)]; time.sleep(9)": (
        "the process wrote a line that is not JSON"
    ),
    '[os.write(fd, b\'{"id": 1, "answer": 3}\\n\') for fd in range(3, 30) if writable(fd)]; time.sleep(9)': (
        "the process wrote an answer to a call that is not pending"
    ),
}
DYING = """
import os, signal, stat, sys, threading, time

def writable(fd):
    try:
        return stat.S_ISFIFO(os.fstat(fd).st_mode) and os.readlink(f"/proc/self/fd/{fd}") and (
            int(open(f"/proc/self/fdinfo/{fd}").read().split()[3], 8) & os.O_WRONLY)
    except OSError:
        return False

def search(query, k):
    if query == "pid":
        return [os.getpid()]
    exec(query)
    return ["not reached"]
"""


def test_a_process_that_dies_is_an_error_of_its_query_and_the_next_one_gets_another(system, monkeypatch):
    monkeypatch.setattr("cranfield.base.concurrency.child_process._LAST_WORDS_S", 0.25)
    dying = system(DYING)
    pids = [ask(dying, "pid")[0].hits[0].id]
    for statement, reason in DEATHS.items():
        answer, _ = ask(dying, statement)
        assert (answer.outcome, answer.reason) == (Outcome.ERROR, reason)
        pids.append(ask(dying, "pid")[0].hits[0].id)
    assert len(set(pids)) == len(pids)


@pytest.mark.parametrize("source", ["os._exit(0)\n", "def search(query, k):\n    os._exit(0)\n"])
def test_a_process_that_ends_on_every_query_is_left_alone(system, source, monkeypatch):
    monkeypatch.setattr("cranfield.systems.calls.deaths.MAX_DEATHS", 2)
    dying = system("import os\n" + source)
    reasons = [ask(dying)[0].reason for _ in range(3)]
    assert ["ended with exit status 0" in reason for reason in reasons] == [True] * 3
    assert reasons[2].startswith("not sent: the program ended 2 times in a row without an answer")


HARMLESS = [
    "threading.Thread(target=sys.exit).start()",
    "os.chdir('/')",
    "sys.stdout = sys.stderr = None",
    "os.close(0); os.close(1)",
    "import builtins; builtins.open = None",
    "import atexit; atexit.register(os._exit, 0)",
    "sys.setrecursionlimit(100)",
]


def test_what_a_function_changes_stays_in_its_process(system):
    folder, opened = Path.cwd(), open
    changing = system(DYING)
    for statement in HARMLESS:
        assert ask(changing, statement)[0].hits == (Hit("not reached"),)
    changing.close()
    assert (Path.cwd(), open) == (folder, opened)
    assert sys.stdout is not None


def test_a_signal_handler_is_not_set_outside_the_main_thread_and_sigterm_ends_the_process_all_the_same(system, gone):
    stubborn = system(DYING + "for number in (signal.SIGINT, signal.SIGHUP): os.kill\n")
    pid = int(ask(stubborn, "pid")[0].hits[0].id)
    answer, _ = ask(stubborn, "signal.signal(signal.SIGTERM, signal.SIG_IGN)")
    assert answer.outcome is Outcome.ERROR
    stubborn.close()
    assert gone(pid)


def test_a_function_out_of_time_is_ended(system, set_timeout, gone):
    hanging = system(DYING)
    pid = int(ask(hanging, "pid")[0].hits[0].id)
    set_timeout(hanging, 0.2)
    answer, _ = ask(hanging, "time.sleep(60)")
    assert (answer.outcome, answer.reason) == (Outcome.TIMEOUT, "no answer in 0.2 s")
    assert gone(pid)
    set_timeout(hanging, 60)
    assert ask(hanging, "pid")[0].hits != (Hit(str(pid)),)


SLOW = """
import pathlib, time

def search(query, k):
    if query == "hang":
        time.sleep(60)
    pathlib.Path(__file__).with_name(f"began-{query}").touch()
    while not pathlib.Path(__file__).with_name("go").exists():
        time.sleep(0.01)
    with pathlib.Path(__file__).with_name("calls").open("a") as calls:
        calls.write(query + "\\n")
    return [query]
"""


def test_other_calls_are_answered_before_the_process_of_a_timeout_is_ended(system, set_timeout, tmp_path, wait_for):
    slow = system(SLOW, concurrency=3)
    preflight([slow])
    answers = {}

    def one(text: str) -> None:
        answers[text] = ask(slow, text)[0]

    set_timeout(slow, 60)
    threads = [threading.Thread(target=one, args=(text,)) for text in ("a", "b")]
    for thread in threads:
        thread.start()
    wait_for(lambda: (tmp_path / "began-a").exists() and (tmp_path / "began-b").exists())
    set_timeout(slow, 0.2)
    one("hang")
    set_timeout(slow, 60)
    (tmp_path / "go").touch()
    one("c")
    for thread in threads:
        thread.join(60)
    assert {text: answer.outcome for text, answer in answers.items()} == {
        "hang": Outcome.TIMEOUT,
        **dict.fromkeys("abc", Outcome.ANSWERED),
    }
    assert sorted((tmp_path / "calls").read_text().split()) == ["a", "b", "c"]


@pytest.mark.parametrize("hangs", ["def search(query, k):\n    time.sleep(60)\n", "time.sleep(60)\n"])
def test_an_interruption_is_heard_in_a_function_and_while_it_is_loaded(system, hangs, tmp_path, wait_for):
    began = tmp_path / "began"
    source = f"import pathlib, time\npathlib.Path({str(began)!r}).touch()\n{hangs}"
    hanging = system(source, timeout_s=60)
    raised = threading.Event()

    def call() -> None:
        with pytest.raises(CallInterruptedError):
            ask(hanging)
        raised.set()

    thread = threading.Thread(target=call)
    thread.start()
    wait_for(began.exists)
    hanging.interrupt()
    assert raised.wait(20)
    thread.join(20)


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import os\nos._exit(0)\n", "expected search to be loaded, got the process ended with exit status 0 before"),
        ("\nraise ValueError('no index')\n", "got engine.py, line 2: ValueError: no index"),
        ("def find(query, k):\n    pass\n", "got nothing of that name.\nHint: it has find."),
        ("def search(query):\n    pass\n", "expected search to take (query, k), got search(query): too many"),
    ],
)
def test_the_preflight_fails_where_it_cannot_be_loaded(system, source, found):
    broken = system(source)
    with pytest.raises(PreflightError) as caught:
        preflight([broken])
    assert found in str(caught.value)


@pytest.mark.slow
def test_loading_is_not_part_of_the_latency(system):
    answer, log = ask(system("import time\ntime.sleep(2)\ndef search(query, k):\n    return [query]\n"))
    assert answer.outcome is Outcome.ANSWERED
    assert log.latency_ms < 2000


def test_an_import_that_does_not_end_fails_the_preflight(system, monkeypatch):
    monkeypatch.setattr("cranfield.systems.kinds.function_process.LOAD_S", 0.2)
    with pytest.raises(PreflightError, match=r"expected search to be loaded, got not in 0\.2 s"):
        preflight([system("import time\ntime.sleep(60)\n")])


def test_what_was_made_is_closed_and_the_process_ends_by_itself(system, tmp_path):
    source = f"""
import atexit, pathlib
def leave(name):
    pathlib.Path({str(tmp_path)!r}, name).touch()
atexit.register(leave, "atexit")
class Index:
    def search(self, query, k):
        return [query]
    def close(self):
        leave("close")
"""
    closing = system(source, "Index", **{"with": {}})
    ask(closing)
    closing.close()
    assert (tmp_path / "close").exists()
    assert (tmp_path / "atexit").exists()
    assert ask(closing)[0].hits == (Hit("grid"),)


def test_systems_of_the_same_function_share_a_process(tmp_path):
    (tmp_path / "engine.py").write_text("import os\ndef search(query, k, **params):\n    return [os.getpid()]\n")
    processes = {}
    systems = [
        PythonSystem.of(f"s{n}", folder=tmp_path, python="engine:search", params={"n": n}, order="given")
        for n in range(3)
    ]
    for one in systems:
        one.isolate(processes)
    try:
        assert len({ask(one)[0].hits[0].id for one in systems} | {str(os.getpid())}) == 2
    finally:
        for one in systems:
            one.close()


def test_a_secret_is_not_on_the_command_line_and_not_in_the_environment(system, tmp_path):
    source = """
import pathlib
class Index:
    def __init__(self, environment):
        self.token = environment["TOKEN"]
    def search(self, query, k):
        seen = [pathlib.Path("/proc/self", name).read_bytes() for name in ("cmdline", "environ")]
        return {"hits": [], "fields": {"seen": [self.token.encode() in text for text in seen], "n": len(self.token)}}
"""
    answer, _ = ask(system(source, "Index", **{"with": {}}, env={"TOKEN": "abcdefgh1234"}))
    assert answer.fields == {"seen": [False, False], "n": 12}


@pytest.mark.slow
def test_an_answer_that_is_too_long_is_an_error(system, monkeypatch):
    monkeypatch.setattr("cranfield.systems.kinds.function_process.FunctionProcess.max_line_bytes", 1024**2)
    long = system("def search(query, k):\n    return ['d' * int(query)]\n")
    answer, _ = ask(long, str(2 * 1024**2))
    assert (answer.outcome, answer.reason) == (Outcome.ERROR, "the process wrote a line of over 1 MB")
    assert ask(long, "3")[0].hits == (Hit("ddd"),)


def test_a_plugin_is_made_in_a_process_of_its_own(tmp_path, monkeypatch):
    info = tmp_path / "acme_own-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-own\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[cranfield.systems]\nacme = acme_own:make\n")
    (tmp_path / "acme_own.py").write_text(
        "import os\ndef make(name, settings, folder, params):\n"
        "    return lambda query, k, **params: [f'{name} {settings} {folder.name} {params}', os.getpid()]\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    plugin = PluginSystem.of("sut", folder=tmp_path, plugin="acme", with_={"index": "old"}, params={"boost": 2})
    plugin.isolate({})
    try:
        assert preflight([plugin])[-1].found == "made of acme-own 1"
        hits = ask(plugin, lang="en")[0].hits
    finally:
        plugin.close()
    assert hits[0].id == f"sut {{'index': 'old'}} {tmp_path.name} {{'boost': 2, 'lang': 'en'}}"
    assert hits[1].id != str(os.getpid())


def test_any_text_is_a_query_and_nothing_slow_is_imported_in_the_process(system):
    source = """
import sys
def search(query, k):
    return {"hits": sorted({name.partition(".")[0] for name in sys.modules}), "fields": {"query": query}}
"""
    echo = system(source)
    for text in ("\ud800", "a\nb", "\u2028\x85", "é" * 5000, ""):
        answer, _ = ask(echo, text, k=1000)
        assert answer.fields == {"query": text}
    found = {hit.id for hit in answer.hits}
    assert "cranfield" in found
    assert found.isdisjoint({"pydantic", "yaml", "numpy", "scipy", "typer", "tenacity", "httpx2", "zipfile", "email"})
