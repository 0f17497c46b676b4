"""Tools of real MCP servers, over stdio and HTTP: the same hits, and every way in which a call can fail."""

import json
import os
import signal
import sys
import threading
from pathlib import Path

import pytest

from cranfield.base.errors import MissingExtraError, PreflightError
from cranfield.model import Outcome, Query
from cranfield.systems.collect.preflight import preflight
from cranfield.systems.kinds.line_program import LinesSystem
from cranfield.systems.kinds.mcp import McpSystem
from cranfield.systems.system import CallInterruptedError

SERVER = Path(__file__).with_name("mcp_server.py")
ARGUMENTS = {"query": "{query}", "limit": "{k}", "lang": "{params.lang}"}
HITS = {"json": "hits", "id": "id", "score": "score", "title": "title", "fields": {"pid": "pid", "lang": "lang"}}


LEGACY = r"""
import json, os, sys, time
TOOL = {"name": "search", "inputSchema": {"type": "object", "properties": {"query": {"type": "string"}}}}
print("loading the index ...", flush=True)
print("a word on stderr", file=sys.stderr, flush=True)
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    reply = {"jsonrpc": "2.0", "id": message["id"]}
    if message["method"] == "initialize":
        version = message["params"]["protocolVersion"]
        reply["result"] = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {"name": "x", "version": "1"}}
    elif message["method"] == "tools/list":
        reply["result"] = {"tools": [TOOL]}
    elif message["method"] == "tools/call":
        kind, _, text = message["params"]["arguments"]["query"].partition(" ")
        block = {"type": "text", "text": text}
        if kind == "exit":
            print("going down", file=sys.stderr, flush=True)
            os._exit(3)
        if kind == "pid":
            block["text"] = json.dumps({"hits": [], "pid": os.getpid()})
        if kind == "token":
            block["text"] = "denied for " + os.environ["TOKEN"]
        if kind == "hang":
            open("hanging", "w").write(str(os.getpid()))
            time.sleep(60)
        if kind == "picture":
            block = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
        reply["result"] = {"content": [block], "isError": kind in ("bad", "token")}
        if kind == "refuse":
            del reply["result"]
            reply["error"] = {"code": -32000 - 7, "message": "too busy"}
    else:
        reply["error"] = {"code": -32601, "message": "no such method"}
    print(json.dumps(reply), flush=True)
"""


@pytest.fixture
def served(tmp_path: Path):
    """A system over stdio; ended when the test is over."""
    made = []

    def _served(*flags: str, command=None, tool="search", arguments=ARGUMENTS, **config) -> McpSystem:
        config.setdefault("extract", HITS)
        command = command or ["{python}", str(SERVER), "stdio", *flags]
        mcp = {"command": command, "tool": tool, "arguments": arguments}
        made.append(McpSystem.of("sut", folder=tmp_path, mcp=mcp, **config))
        return made[-1]

    yield _served
    for system in made:
        system.close()


@pytest.fixture
def older(served, script):
    """A system over stdio whose server knows an older protocol, does one thing at a time, and prints what it should not."""

    def _older(**config) -> McpSystem:
        command = ["{python}", "-I", "-S", script(LEGACY, "older.py")]
        extract = {"json": "hits", "fields": {"pid": "pid"}}
        return served(command=command, arguments={"query": "{query}"}, extract=extract, **config)

    return _older


@pytest.fixture
def http_server(tmp_path: Path, mcp_forks):
    """Start the server over HTTP; gives its process and its address."""
    started = []

    def _start(port: str = "0", **environment: str):
        started.append(mcp_forks.start(SERVER, "http", port, folder=tmp_path, **environment))
        return started[-1], f"http://127.0.0.1:{int(started[-1].first_line())}/mcp"

    yield _start
    for process in started:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def url(tmp_path_factory, mcp_forks):
    """The address of one server over HTTP for every test that leaves it as it is."""
    process = mcp_forks.start(SERVER, "http", folder=tmp_path_factory.mktemp("server"))
    yield f"http://127.0.0.1:{int(process.first_line())}/mcp"
    process.kill()


@pytest.fixture
def over_http(tmp_path: Path):
    made = []

    def _over(url: str, *, headers=None, tool="search", arguments=ARGUMENTS, **config) -> McpSystem:
        mcp = {"url": url, "tool": tool, "arguments": arguments, "headers": headers or {}}
        config.setdefault("backoff_s", 0.01)
        config.setdefault("extract", HITS)
        made.append(McpSystem.of("sut", folder=tmp_path, mcp=mcp, **config))
        return made[-1]

    yield _over
    for system in made:
        system.close()


def ask(system, text="grid", k=10, **params):
    return system.search(Query("q1", text, params=params), k)


def ids(answer):
    return [hit.id for hit in answer.hits]


def refused(system) -> str:
    with pytest.raises(PreflightError) as caught:
        preflight([system])
    return str(caught.value)


def test_a_tool_is_asked_with_its_arguments_and_answers_in_one_session(served, gone):
    system = served()
    answer, log = ask(system, "grid", 1, lang="en")
    # "grid" is in d1 (5 words) and d2 (3 words); the shorter is the better in BM25, and one was asked for.
    assert (answer.outcome, ids(answer), answer.fields["lang"]) == (Outcome.ANSWERED, ["d2"], "en")
    assert answer.hits[0].title == "grid of wires"
    assert log.stderr_head == "a word on stderr\n"
    again, _ = ask(system, "layout")
    assert (ids(again), again.fields["lang"]) == (["d3", "d1"], None)
    assert again.fields["pid"] == answer.fields["pid"]
    system.close()
    assert gone(answer.fields["pid"])


def test_stdio_and_http_and_lines_give_the_same_hits(served, url, over_http, tmp_path, script):
    source = f"""
import json, sys
sys.path.insert(0, {str(SERVER.parent)!r})
from mcp_server import found
for line in sys.stdin:
    call = json.loads(line)
    print(json.dumps({{"id": call["id"], "hits": found(call["query"], call["k"])}}), flush=True)
"""
    lines = LinesSystem.of("lines", folder=tmp_path, lines=["{python}", script(source)])
    systems = [served(), over_http(url), lines]
    for text in ("grid", "wires layout", "nothing", 'the "grid" OR'):
        first, *others = [ask(system, text)[0] for system in systems]
        assert [other.hits for other in others] == [first.hits, first.hits]
    assert ids(ask(lines, "wires")[0]) == ["d4", "d2"]
    lines.close()


@pytest.mark.parametrize("extract", [{"jsonl": True, "id": "id"}, {"regex": r'"id": "(\w+)"'}])
def test_text_is_read_where_the_tool_gives_no_structure(over_http, url, extract):
    system = over_http(url, tool="listing", arguments={"query": "{query}"}, extract=extract)
    assert ids(ask(system, "layout")[0]) == ["d3", "d1"]


@pytest.mark.parametrize(
    ("kind", "extract"),
    [
        ("rows", {"json": "@", "id": "id"}),
        ("rows", {"jsonl": True, "id": "id"}),
        ("text", {"json": "@", "id": "id"}),
        ("text", {"jsonl": True, "id": "id"}),
        ("lines", {"jsonl": True, "id": "id"}),
        ("structure", {"json": "result", "id": "id"}),
    ],
)
def test_a_list_is_read_however_it_is_sent(served, quick_python, kind, extract):
    command = [quick_python, str(SERVER.with_name("mcp_list_server.py")), kind]
    system = served(command=command, arguments={"query": "{query}"}, extract=extract)
    answers = {query: ask(system, query)[0] for query in ("grid", "wires", "nothing")}
    assert {query: (answer.outcome, ids(answer)) for query, answer in answers.items()} == {
        "grid": (Outcome.ANSWERED, ["d1", "d2"]),
        "wires": (Outcome.ANSWERED, ["d4"]),
        "nothing": (Outcome.EMPTY, []),
    }


def test_an_error_of_the_tool_is_an_error_with_its_first_line(over_http, url):
    system = over_http(url)
    answer, _ = ask(system, "fail")
    assert answer.outcome is Outcome.ERROR
    assert "no such index" in answer.reason
    assert "line 3" not in answer.reason
    assert ids(ask(system, "garden")[0]) == ["d3"]


def test_values_of_the_environment_are_hidden(older):
    answer, log = ask(older(env={"TOKEN": "open-sesame"}), "token")
    assert answer.reason == "denied for ${TOKEN}"
    assert "sesame" not in log.stdout_head


def pid_of(system) -> int:
    return ask(system, "pid")[0].fields["pid"]


def test_a_server_that_dies_in_the_middle_fails_the_call_and_the_next_one_starts_it(older):
    system = older()
    first = pid_of(system)
    answer, log = ask(system, "exit")
    assert (answer.outcome, answer.reason) == (Outcome.ERROR, "the server ended with exit status 3")
    assert log.stderr_head == "going down\n"
    assert pid_of(system) != first


def test_a_server_that_died_between_two_calls_is_started_anew(older, gone):
    system = older()
    first = pid_of(system)
    os.kill(first, signal.SIGKILL)
    assert gone(first)
    # Whether the next call finds it gone or sees it go is a matter of moments; the one after that is answered.
    ask(system, "pid")
    assert pid_of(system) != first


def test_a_call_out_of_time_is_a_timeout_and_the_next_one_has_another_server(older, tmp_path, gone, set_timeout):
    system = older()
    first = pid_of(system)
    set_timeout(system, 1)
    answer, _ = ask(system, "hang")
    assert (answer.outcome, answer.reason) == (Outcome.TIMEOUT, "no answer in 1 s")
    set_timeout(system, 60)
    assert int((tmp_path / "hanging").read_text()) == first
    assert pid_of(system) != first
    assert gone(first)


def test_an_interruption_ends_the_call_and_the_server(older, tmp_path, wait_for, gone):
    system = older(timeout_s=60)
    raised = []

    def call() -> None:
        with pytest.raises(CallInterruptedError) as caught:
            ask(system, "hang")
        raised.append(caught)

    thread = threading.Thread(target=call)
    thread.start()
    wait_for(lambda: (tmp_path / "hanging").exists() and (tmp_path / "hanging").read_text())
    system.interrupt()
    thread.join(20)
    assert raised
    assert gone(int((tmp_path / "hanging").read_text()))


def test_several_calls_are_under_way_in_one_session(over_http, url):
    system = over_http(url, concurrency=4)
    expected = {"grid": ["d2", "d1"], "layout": ["d3", "d1"], "wires": ["d4", "d2"], "garden": ["d3"]}
    answers = {}
    threads = [
        threading.Thread(target=lambda text=text: answers.update({text: ids(ask(system, text)[0])}))
        for text in expected
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert answers == expected


def test_the_preflight_opens_the_session_and_says_what_it_found(older):
    system = older()
    held = [(one.check, one.found) for one in preflight([system])]
    assert held[1:] == [
        ("command {python} -I -S older.py", "an executable file"),
        ("tool search", "found, and it takes the arguments"),
    ]
    assert ask(system, 'ok {"hits": []}')[0].outcome is Outcome.EMPTY


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        (
            "serach",
            {"query": "{query}"},
            "expected the tool serach, got listing, search, upload.\nHint: did you mean search?",
        ),
        ("upload", {"query": "{query}"}, "(document, name), got no document; no name; query, which is unknown to it"),
        ("search", {"limit": "{k}", "q": "{query}"}, "got no query; q, which is unknown to it"),
        ("search", {"query": "{query}", "limits": "{k}"}, "limits, which is unknown to it.\nHint: did you mean limit?"),
        ("search", {"query": "{query}", "limit": "about {k}"}, "limit is 'about 10', not of type integer"),
        ("search", {"query": ["{query}"]}, "query is ['a query'], not of type string"),
    ],
)
def test_a_tool_that_is_not_there_or_takes_other_arguments_fails_the_preflight(over_http, url, tool, arguments, said):
    assert said in refused(over_http(url, tool=tool, arguments=arguments))


@pytest.mark.parametrize(
    ("query", "outcome", "reason"),
    [
        ('ok {"hits": ["d1"]}', Outcome.ANSWERED, None),
        ('ok {"hits": []}', Outcome.EMPTY, None),
        ("ok rubbish", Outcome.UNPARSABLE, "the output is not JSON (line 1, column 1)"),
        ("bad first\nsecond", Outcome.ERROR, "first"),
        ("bad ", Outcome.ERROR, "the tool reported a failure without a reason"),
        ("refuse ", Outcome.ERROR, "too busy"),
        ("picture ", Outcome.UNPARSABLE, "the tool answered with image, not text"),
    ],
)
def test_a_server_of_an_older_kind_is_spoken_to_and_its_answers_are_told_apart(older, query, outcome, reason):
    answer, _ = ask(older(), query)
    assert (answer.outcome, answer.reason) == (outcome, reason)


@pytest.mark.parametrize(
    ("source", "timeout_s", "said"),
    [
        ("while True: print('x' * 100, flush=True)\n", 0.5, "got no answer in 0.5 s"),
        ("raise SystemExit(4)\n", 60, "got the server ended with exit status 4"),
        ("import sys\nprint('no index', file=sys.stderr)\nsys.exit(1)\n", 60, "Hint: it wrote 'no index'"),
        ("import sys, time\nsys.stderr.write('no lock\\n')\ntime.sleep(60)\n", 1.5, "Hint: it wrote 'no lock'"),
        # The cause is the last line, after as many as a traceback has; here all of them are longer than a hint.
        (
            f"import sys\nfor n in range(99): print(n, '{'x' * 40}', file=sys.stderr)\nsys.exit('no table')\n",
            60,
            "/ no table'",
        ),
        ("raise OSError('no table docs in index.db')\n", 60, "/ OSError: no table docs in index.db'"),
    ],
)
def test_a_program_that_is_no_server_fails_the_preflight_and_is_gone(
    served, script, source, timeout_s, said, tmp_path, gone
):
    pid = "import os\nopen('pid', 'w').write(str(os.getpid()))\n"
    assert said in refused(served(command=["{python}", script(pid + source)], timeout_s=timeout_s))
    assert gone(int((tmp_path / "pid").read_text()))


def test_the_end_of_stderr_is_shown_without_secrets(served, script, monkeypatch):
    monkeypatch.setenv("KEY", "open-sesame")
    source = "import os, sys\nsys.exit('x' * 400 + ' refused ' + os.environ['TOKEN'])\n"
    said = refused(served(command=["{python}", script(source)], env={"TOKEN": "open-sesame"}, timeout_s=60))
    assert "refused ${TOKEN}'" in said
    assert "sesame" not in said


def test_a_server_that_cannot_be_started_fails_the_preflight_and_every_call(served):
    system = served(command=["./absent"])
    said = refused(system)
    assert "command ./absent; expected an executable file, got nothing there" in said
    assert "tool search" not in said
    answer, _ = ask(system)
    assert (answer.outcome, answer.reason) == (Outcome.ERROR, "could not be started: the program does not exist")


def test_headers_come_from_the_environment_and_are_hidden(http_server, over_http, monkeypatch):
    _, url = http_server(WANTED_TOKEN="open-sesame")
    monkeypatch.setenv("KEY", "open-sesame")
    system = over_http(url, headers={"Authorization": "Bearer {env.KEY}"})
    assert ids(ask(system, "garden")[0]) == ["d3"]
    assert "sesame" not in json.dumps(system.public_config())
    answer, log = ask(over_http(url))
    assert (answer.outcome, answer.reason, log.attempts) == (Outcome.ERROR, "HTTP 401 Unauthorized", 1)
    monkeypatch.delenv("KEY")
    absent = over_http(url, headers={"Authorization": "Bearer {env.KEY}"})
    assert "environment KEY; expected a variable of the environment, got it is not set" in refused(absent)


def test_a_server_over_http_that_went_away_and_came_back_is_found_again(http_server, over_http):
    process, url = http_server()
    system = over_http(url, retries=0)
    assert ids(ask(system, "garden")[0]) == ["d3"]
    process.kill()
    process.wait()
    answer, _ = ask(system, "garden")
    assert (answer.outcome, answer.reason) == (Outcome.ERROR, "the connection was refused")
    tried = over_http(url, retries=2)
    answer, log = ask(tried)
    assert (answer.reason, log.attempts) == ("the connection was refused (tried 3 times)", 3)
    assert "expected a server that answers, got the connection was refused" in refused(tried)
    http_server(url.removesuffix("/mcp").rpartition(":")[2])
    assert ids(ask(system, "garden")[0]) == ["d3"]


def test_a_busy_server_over_http_is_asked_again(http_server, over_http):
    _, url = http_server(REFUSALS="4")
    once = over_http(url, retries=0)
    assert ask(once)[0].reason == "HTTP 429 Too Many Requests"
    answer, log = ask(over_http(url))
    assert (ids(answer), log.attempts) == (["d2", "d1"], 4)


def test_a_session_that_the_server_has_forgotten_is_opened_again(http_server, over_http):
    first, url = http_server()
    system = over_http(url)
    pid = ask(system)[0].fields["pid"]
    first.kill()
    first.wait()
    # Another process serves the same address now: what the session was, it does not know.
    http_server(url.removesuffix("/mcp").rpartition(":")[2])
    answer, _ = ask(system)
    assert ids(answer) == ["d2", "d1"]
    assert answer.fields["pid"] != pid


def test_http_calls_out_of_time_are_timeouts(over_http, url, set_timeout):
    system = over_http(url)
    assert ids(ask(system)[0])
    set_timeout(system, 0.5)
    answer, _ = ask(system, "hang")
    assert (answer.outcome, answer.reason) == (Outcome.TIMEOUT, "no answer in 0.5 s")


USER = """
from cranfield.model import Query
from cranfield.systems.kinds.mcp import McpSystem
mcp = {"command": ["{python}", "-I", "-S", "older.py"], "tool": "search"}
system = McpSystem.of("sut", folder=FOLDER, mcp=mcp, extract={"json": "hits", "fields": {"pid": "pid"}}, timeout_s=60)
print(system.search(Query("q1", ASKED), 1)[0].fields["pid"])
"""


@pytest.fixture
def user(tmp_path, script, forks):
    """Start a process that asks a server and ends without closing it."""

    def _user(asked: str):
        script(LEGACY, "older.py")
        script(USER.replace("FOLDER", repr(str(tmp_path))).replace("ASKED", repr(asked)), "user.py")
        return forks.start(tmp_path / "user.py")

    return _user


def test_nothing_is_left_when_we_are_killed(tmp_path, user, wait_for, gone):
    ours = user("hang")
    wait_for(lambda: (tmp_path / "hanging").exists() and (tmp_path / "hanging").read_text(), 60)
    ours.send_signal(signal.SIGKILL)
    ours.wait()
    assert gone(int((tmp_path / "hanging").read_text()))


def test_nothing_is_left_when_we_end_without_closing(user, gone):
    ended = user("pid")
    said, errors = ended.communicate()
    assert (ended.returncode, errors) == (0, "")
    assert gone(int(said))


def test_without_the_library_the_extra_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "mcp", None)
    with pytest.raises(MissingExtraError, match=r"cranfield\[mcp\]"):
        McpSystem.of("sut", folder=tmp_path, mcp={"command": ["serve"], "tool": "search"}, extract={"json": "hits"})
