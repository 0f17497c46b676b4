"""Services, programs and functions that mean harm, or were written badly: the run goes on, and its evidence stays whole."""

import asyncio
import gzip
import itertools
import logging
import os
import signal
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from cranfield.app.experiment import collect_options
from cranfield.base.concurrency.child_process import MAX_OUTPUT_BYTES
from cranfield.base.concurrency.retry import retry_after_s
from cranfield.base.errors import ConfigError
from cranfield.config import system_config
from cranfield.config.load import load_config
from cranfield.config.reading import ProbeCheck
from cranfield.formats.runs.jsonl import read_run
from cranfield.formats.runs.record import answer_record, json_line
from cranfield.model import Outcome, Query
from cranfield.systems import collect_all
from cranfield.systems.calls.deaths import MAX_DEATHS
from cranfield.systems.calls.redact import Redactor
from cranfield.systems.collect.collection import collect
from cranfield.systems.collect.collector import Dispatcher, interleave
from cranfield.systems.collect.dependencies import dependency_digest
from cranfield.systems.collect.preflight import preflight
from cranfield.systems.kinds.line_program import LinesSystem
from cranfield.systems.kinds.python import PythonSystem

SECRET = "s3cr3t/token+of=mine"


def ask(system, text: str = "grid", k: int = 10):
    return system.search(Query("q1", text), k)


@pytest.fixture
def calling():
    """A system that calls a function at hand; closed with the test."""
    made = []

    def _calling(function, **settings) -> PythonSystem:
        made.append(PythonSystem.calling("function", function, **settings))
        return made[-1]

    yield _calling
    for system in made:
        system.close()


# Secrets


def test_a_secret_that_a_service_sends_back_is_in_no_title_and_no_field(serve, servers, http_system, monkeypatch):
    monkeypatch.setenv("TOKEN", SECRET)

    def echo(received):
        said = received.headers["authorization"]
        return servers.json_reply(
            {"hits": [{"id": "d1", "title": f"for {said}"}], "of": {"user": [said, 1]}, said: said}
        )

    system = http_system(
        serve(echo).url,
        http={"headers": {"Authorization": "Bearer {env.TOKEN}"}},
        extract={"json": "hits", "id": "id", "title": "title", "fields": {"of": "of", "all": "@"}},
    )
    answer, log = ask(system)
    assert SECRET not in json_line(answer_record("q1", answer, log))
    assert answer.hits[0].title == "for Bearer ${TOKEN}"
    assert answer.fields["of"] == {"user": ["Bearer ${TOKEN}", 1]}


def test_a_secret_in_the_error_of_a_function_is_hidden_where_the_words_are_cut(calling, tmp_path):
    (tmp_path / "leaky.py").write_text(
        "def make(environment):\n"
        "    def find(query, k):\n"
        "        raise ValueError('x' * int(query) + environment['TOKEN'])\n"
        "    return find\n",
        encoding="utf-8",
    )
    system = PythonSystem.of("leaky", folder=tmp_path, python="leaky:make", with_={}, env={"TOKEN": SECRET})
    try:
        for length in (270, 280, 286, 295, 1990, 1999):
            answer, log = ask(system, str(length))
            for text in (answer.reason, log.stderr_head, log.stdout_head):
                assert not any(SECRET[start : start + 4] in text for start in range(len(SECRET) - 3)), (length, text)
    finally:
        system.close()


def test_the_address_of_a_database_is_a_secret(tmp_path, monkeypatch):
    monkeypatch.setenv("DOCS_DSN", "hunter2-is-no-address")
    written = {"preset": "postgres", "with": {"dsn_env": "DOCS_DSN", "table": "docs", "vector_column": "v"}}
    system = PythonSystem("docs", system_config("sut", written), tmp_path)
    try:
        answer, log = ask(system)
    finally:
        system.close()
    assert answer.outcome is Outcome.ERROR
    assert "hunter2" not in json_line(answer_record("q1", answer, log))


@pytest.mark.parametrize("value", ["abc", "x"])
def test_a_short_secret_is_not_shown_in_the_request(serve, servers, http_system, monkeypatch, value):
    monkeypatch.setenv("PIN", value)
    service = serve(lambda _: servers.json_reply({"hits": []}))
    http = {"headers": {"X-Pin": "pin={env.PIN};"}, "parameters": {"q": "{query}", "pin": "{env.PIN}"}}
    shown = http_system(service.url, http=http).ask(Query("q1", "grid"), 10, is_shown=True).request
    assert f"pin={value}" not in shown
    assert "X-Pin: pin=${PIN};" in shown
    assert service.requests[0].headers["x-pin"] == f"pin={value};"


def test_no_library_tells_a_log_of_everything_what_opens_the_door(serve, servers, http_system, monkeypatch, caplog):
    monkeypatch.setenv("TOKEN", SECRET)
    caplog.set_level(logging.DEBUG)
    system = http_system(
        serve(lambda _: servers.json_reply({"hits": []}, **{"X-Echo": SECRET})).url,
        http={"headers": {"Authorization": "Bearer {env.TOKEN}"}},
    )
    ask(system)
    assert SECRET not in caplog.text
    assert not logging.getLogger("hpack").isEnabledFor(logging.DEBUG)


# Values


@pytest.mark.parametrize(
    ("value", "outcome"),
    [
        ("1e999", Outcome.UNPARSABLE),  # an infinity that is spelled as a number
        ("[" * 900 + "]" * 900, None),
        ("9" * 4000, None),
        ('"\\ud800"', Outcome.ANSWERED),
        ('"\\u0000\\u001b[31m"', Outcome.ANSWERED),
    ],
    ids=["infinity", "deep", "huge", "surrogate", "control"],
)
def test_a_field_of_any_value_is_written_or_refused_and_stops_no_run(make_system, testset_of, tmp_path, value, outcome):
    body = f'{{"hits": [{{"id": "d1"}}], "f": {value}}}'
    system = make_system(
        f"import sys; sys.stdout.write({body!r})", extract={"json": "hits", "id": "id", "fields": {"f": "f"}}
    )
    run = collect_all(testset_of("grid"), [system], out_dir=tmp_path / "out")["sut"]
    if outcome is not None:
        assert run.answers["q1"].outcome is outcome
    assert read_run(tmp_path / "out" / "runs" / "sut.jsonl").answers == run.answers


def test_a_million_hits_are_cut_to_what_anybody_looks_at(calling):
    answer, _ = ask(calling(lambda query, k: [str(number) for number in range(1_000_000)]))
    assert (answer.outcome, len(answer.hits)) == (Outcome.ANSWERED, 10_000)


# HTTP


def test_a_small_body_that_unpacks_to_gigabytes_is_refused(serve, servers, http_system):
    packed = gzip.compress(b" " * (MAX_OUTPUT_BYTES * 8))
    system = http_system(serve(lambda _: servers.Sent(200, {"Content-Encoding": "gzip"}, packed)).url)
    answer, _ = ask(system)
    assert (answer.outcome, answer.reason) == (Outcome.UNPARSABLE, "over 16 MB of output")


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"HTTP/1.1 200 OK\r\nX: " + b"a" * 2_000_000 + b"\r\n\r\n", None),
        (b"HTTP/1.1 200 OK\r\n" + b"".join(b"X-%d: y\r\n" % n for n in range(100_000)) + b"\r\n", None),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nrubbish", None),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc", None),
        (b"HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n", "HTTP 302 Found, to"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", "the output is blank, not JSON"),
    ],
    ids=["long header", "many headers", "chunks", "short", "redirect", "nothing"],
)
def test_an_answer_that_is_none_is_a_failure_with_its_reason(serve, servers, http_system, raw, reason):
    answer, log = ask(http_system(serve(lambda _: servers.Sent(raw=raw)).url, retries=1))
    assert answer.outcome.is_failure
    assert answer.reason.startswith(reason or "")
    assert "root:" not in log.stdout_head


@pytest.mark.parametrize(
    "value",
    ["1" + "0" * 400, "-5", "nan", "inf", "1e9", "Mon, 01 Jan 0001 00:00:00 +2359", "Fri, 31 Dec 9999 23:59:59 -2359"],
)
def test_whatever_a_service_asks_to_wait_is_no_error_of_ours(value):
    wait_s = retry_after_s(value)
    assert wait_s is None or wait_s >= 0


def test_a_connection_that_was_closed_between_two_calls_is_no_failure(serve, servers, http_system):
    body = b'{"hits": [{"id": "d1"}]}'
    raw = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: keep-alive\r\n\r\n%s" % (len(body), body)
    service = serve(lambda _: servers.Sent(raw=raw))  # says that it stays, and goes
    system = http_system(service.url)
    for _ in range(5):
        answer, _log = ask(system)
        assert [hit.id for hit in answer.hits] == ["d1"]
    assert len(service.requests) == 5


# Functions


def test_a_list_without_end_is_taken_as_far_as_anybody_looks(calling):
    for endless in (lambda query, k: itertools.count(), lambda query, k: {"hits": map(str, itertools.count())}):
        answer, _ = ask(calling(endless, timeout_s=20))
        assert (answer.outcome, len(answer.hits)) == (Outcome.ANSWERED, 10_000)


def test_a_generator_without_end_to_be_sorted_is_refused(calling):
    answer, _ = ask(
        calling(lambda query, k: ((str(n), n) for n in itertools.count()), order="descending", timeout_s=20)
    )
    assert (answer.outcome, answer.reason) == (Outcome.UNPARSABLE, "over 10000 results, to be sorted by score")


def test_a_list_that_comes_late_is_out_of_time(calling):
    waits = threading.Event()

    class Slow:
        def __iter__(self):
            waits.wait(60)
            return iter(["d1"])

    for function in (lambda query, k: (waits.wait(60) for _ in [1]), lambda query, k: Slow()):
        answer, _ = ask(calling(function, timeout_s=0.3))
        assert answer.outcome is Outcome.TIMEOUT
    waits.set()


def test_a_list_that_fails_as_it_is_read_is_an_error(calling):
    class Broken(list):
        def __iter__(self):
            raise RuntimeError("the index is gone")

    answer, _ = ask(calling(lambda query, k: Broken(["d1"])))
    assert (answer.outcome, answer.reason) == (Outcome.ERROR, "RuntimeError: the index is gone")


def test_a_list_that_holds_itself_is_unparsable(calling):
    loop: list = []
    loop.append(loop)
    answer, _ = ask(calling(lambda query, k: loop))
    assert answer.outcome is Outcome.UNPARSABLE


class Odd(BaseException):
    pass


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError, Odd])
@pytest.mark.parametrize("is_async", [False, True])
def test_whatever_a_function_raises_ends_its_query_and_no_other(calling, testset_of, kind, is_async):
    def find(query, k):
        if query == "bad":
            raise kind("no")
        return [query]

    async def find_later(query, k):
        return find(query, k)

    system = calling(find_later if is_async else find)
    run = collect(testset_of("a", "bad", "b"), system)
    assert [answer.outcome for answer in run.answers.values()] == [Outcome.ANSWERED, Outcome.ERROR, Outcome.ANSWERED]


def test_an_async_function_that_never_yields_hurts_no_other_system(calling, serve, servers, http_system):
    let_go = threading.Event()

    async def stuck(query, k):
        let_go.wait(60)
        return []

    try:
        answer, _ = ask(calling(stuck, timeout_s=0.3))
        assert answer.outcome is Outcome.TIMEOUT
        other = http_system(serve(lambda _: servers.json_reply({"hits": [{"id": "d1"}]})).url, timeout_s=10)
        answer, _ = ask(other)
        assert [hit.id for hit in answer.hits] == ["d1"]
    finally:
        let_go.set()


def test_what_a_function_prints_is_not_among_the_results(calling, capsys):
    def loud(query, k):
        print("loading the index ...")
        return ["d1"]

    answer, _ = ask(calling(loud))
    printed = capsys.readouterr()
    assert answer.hits[0].id == "d1"
    assert printed.out == ""
    assert "loading the index" in printed.err


def test_what_a_module_prints_as_it_is_imported_is_not_among_the_results(tmp_path, capsys):
    (tmp_path / "loud_module.py").write_text("print('hello')\ndef find(query, k):\n    return []\n", encoding="utf-8")
    system = PythonSystem.of("loud", folder=tmp_path, python="loud_module:find")
    ask(system)
    system.close()
    assert capsys.readouterr() == ("", "hello\n")


def test_a_function_that_changes_the_folder_moves_no_result(calling, testset_of, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    def find(query, k):
        os.chdir(elsewhere)
        return [query]

    system = calling(find)
    collect_all(testset_of("a", "b"), [system], out_dir="out")
    system.close()
    assert (tmp_path / "out" / "runs" / "function.jsonl").is_file()
    assert list(elsewhere.iterdir()) == []
    assert Path.cwd() == tmp_path


# Programs that stay


def lines(tmp_path, script, source, **config) -> LinesSystem:
    return LinesSystem.of("sut", folder=tmp_path, lines=["{python}", "-I", "-S", script(source)], **config)


def test_a_program_whose_child_holds_its_output_is_seen_to_have_ended(tmp_path, script):
    system = lines(
        tmp_path,
        script,
        "import os, sys, time\nsys.stdin.readline()\nif os.fork() == 0:\n    time.sleep(60)\nos._exit(3)\n",
        timeout_s=20,
    )
    answer, _ = ask(system)
    system.close()
    assert (answer.outcome, answer.reason) == (Outcome.ERROR, "ended with exit status 3")


def test_a_flood_of_lines_holds_up_nobody_else(tmp_path, script, serve, servers, http_system):
    flood = lines(tmp_path, script, "import sys\nwhile True:\n    sys.stdout.write('{}\\n' * 10000)\n", timeout_s=5)
    other = http_system(serve(lambda _: servers.json_reply({"hits": [{"id": "d1"}]})).url, timeout_s=3)
    try:
        next(check for _, check in flood.ready_steps())()
        time.sleep(0.5)  # the flood rises
        for _ in range(5):
            answer, _log = ask(other)
            assert [hit.id for hit in answer.hits] == ["d1"]
        answer, _ = ask(flood)
        assert answer.outcome is Outcome.UNPARSABLE
    finally:
        flood.close()


# MCP


HOSTILE_MCP = r"""
import json, os, sys, time
def say(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n"); sys.stdout.flush()
tool = {"name": "search", "inputSchema": {"type": "object", "properties": {"query": {"type": "string"}}},
        "outputSchema": {"type": "object", "properties": {"hits": {"type": "array"}}, "required": ["hits"]}}
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    if message["method"] == "initialize":
        if os.path.exists("dies"):
            sys.stderr.write("no index\n"); sys.stderr.flush(); os._exit(4)
        version = message["params"]["protocolVersion"]
        result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {"name": "x", "version": "1"}}
        say(id=message["id"], result=result)
    elif message["method"] == "tools/list":
        say(id=message["id"], result={"tools": [tool]})
    elif message["method"] == "tools/call":
        kind = message["params"]["arguments"]["query"]
        result = {"content": [{"type": "text", "text": "{}"}], "structuredContent": {"hits": [{"id": "d1"}]}}
        if kind == "flood":
            for n in range(3_000):
                say(method="notifications/message", params={"level": "info", "data": "x" * 50})
            sys.stderr.write("y" * 5_000_000)
        if kind == "mismatch":
            result["structuredContent"] = {"hits": 3}
        if kind == "picture":
            result = {"content": [{"type": "image", "data": "AAAA", "mimeType": "image/png"}], "structuredContent": {"hits": []}}
        if kind == "resource":
            result = {"content": [{"type": "resource_link", "uri": "file:///etc/passwd", "name": "x"}], "structuredContent": {"hits": []}}
        if kind == "gone":
            tool["name"] = "other"; say(method="notifications/tools/list_changed")
            say(id=message["id"], error={"code": -32602, "message": "no such tool"}); continue
        if kind == "giant":
            sys.stdout.write(" " * (17 * 1024 * 1024) + "\n"); sys.stdout.flush()
        if kind == "half":
            sys.stdout.write('{"jsonrpc": "2.0", "id"'); sys.stdout.flush(); os._exit(5)
        say(id=message["id"], result=result)
    else:
        say(id=message["id"], error={"code": -32601, "message": "no such method"})
"""


@pytest.fixture
def mcp(tmp_path, script):
    """A server over stdio that behaves as the query says."""
    from cranfield.systems.kinds.mcp import McpSystem

    name = script(HOSTILE_MCP, "server.py")
    said = {"command": ["{python}", "-I", "-S", name], "tool": "search"}
    system = McpSystem.of("tool", folder=tmp_path, mcp=said, extract={"json": "hits", "id": "id"}, timeout_s=30)
    yield system
    system.close()


@pytest.mark.parametrize(
    ("query", "outcome"),
    [
        ("flood", Outcome.ANSWERED),
        ("mismatch", Outcome.ERROR),
        ("picture", Outcome.EMPTY),
        ("resource", Outcome.EMPTY),
        ("gone", Outcome.ERROR),
        ("giant", Outcome.ERROR),
        ("half", Outcome.ERROR),
    ],
)
def test_whatever_a_tool_does_is_an_answer_or_a_failure_and_the_next_call_is_answered(mcp, query, outcome):
    answer, _ = ask(mcp, query)
    assert answer.outcome is outcome, answer
    assert [hit.id for hit in ask(mcp, "grid")[0].hits] == ["d1"]


def test_a_server_that_dies_on_every_call_is_left_alone_after_some(mcp):
    reasons = [ask(mcp, "half")[0].reason for _ in range(MAX_DEATHS + 1)]
    ended = "the server ended with exit status 5"
    assert reasons == [
        *[ended] * MAX_DEATHS,
        f"not sent: the program ended 5 times in a row without an answer (the last time: {ended})",
    ]


def test_a_server_that_dies_as_the_session_is_opened_fails_each_call_with_its_words(mcp, tmp_path):
    (tmp_path / "dies").touch()
    for _ in range(2):
        answer, log = ask(mcp)
        assert (answer.outcome, answer.reason) == (Outcome.ERROR, "the server ended with exit status 4")
        assert log.stderr_head == "no index\n"


@pytest.mark.parametrize("encoding", [None, "gzip"])
def test_an_answer_without_end_over_http_is_cut_off(serve, servers, tmp_path, encoding):
    from cranfield.systems.kinds.mcp import McpSystem

    body = b" " * (MAX_OUTPUT_BYTES * 2)
    headers = {"Content-Type": "application/json"}
    if encoding is not None:
        body, headers = gzip.compress(body), {**headers, "Content-Encoding": encoding}
    service = serve(lambda _: servers.Sent(200, headers, body))
    said = {"url": f"{service.url}/mcp", "tool": "search"}
    system = McpSystem.of(
        "tool", folder=tmp_path, mcp=said, extract={"json": "hits"}, retries=0, backoff_s=0.01, timeout_s=20
    )
    try:
        answer, _ = ask(system)
    finally:
        system.close()
    assert answer.outcome is Outcome.ERROR
    assert ("16 MB" if encoding is None else "an encoding that was not requested") in answer.reason


# The run


def test_sigterm_before_the_first_query_is_an_interruption_too(calling):
    heard = []
    before = signal.signal(signal.SIGTERM, lambda *_: heard.append("not as an interruption"))

    def find(query, k):
        os.kill(os.getpid(), signal.SIGTERM)
        waits.wait(5)
        return ["d1"]

    waits = threading.Event()
    system = PythonSystem.calling("function", find)
    system.config = system.config.model_copy(update={"preflight": [ProbeCheck(probe="grid")]})
    try:
        with pytest.raises(KeyboardInterrupt):
            preflight([system])
    finally:
        waits.set()
        signal.signal(signal.SIGTERM, before)
        system.close()
    assert heard == []


def test_what_sqlite_has_not_written_into_its_file_yet_counts(tmp_path, servers):
    database = tmp_path / "docs.db"
    servers.Engine.at(database)
    with closing(sqlite3.connect(database)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        written = {"preset": "sqlite", "with": {"database": "docs.db", "table": "docs"}}
        system = PythonSystem("docs", system_config("sut", written), tmp_path)
        assert ask(system)[0].hits
        before = dependency_digest(system)
        assert dependency_digest(system) == before
        with writer:
            writer.execute("INSERT INTO docs VALUES ('d9', 'grid', 'grid')")
        assert dependency_digest(system) != before
        system.close()


def test_the_value_of_a_variable_that_settings_name_counts(tmp_path, monkeypatch):
    written = {"preset": "postgres", "with": {"dsn_env": "DOCS_DSN", "table": "docs", "vector_column": "v"}}
    found = []
    for value in ("postgresql://one/docs", "postgresql://two/docs", "postgresql://two/docs"):
        monkeypatch.setenv("DOCS_DSN", value)
        found.append(dependency_digest(PythonSystem("docs", system_config("sut", written), tmp_path)))
    assert found[0] != found[1] == found[2]


def test_of_an_address_the_password_alone_is_a_secret_too():
    redactor = Redactor({"DSN": "postgresql://bob:hunter%232@host/docs"})
    assert redactor.redact("no password hunter#2 for bob") == "no password ${DSN} for bob"
    assert redactor.redact("hunter%232") == "${DSN}"


def test_however_often_it_is_interrupted_no_call_is_left_behind(calling, testset_of):
    let_go, all_sent = threading.Event(), threading.Event()

    def interrupt(_, frame):
        while frame is not None:
            if frame.f_code is Dispatcher.ask.__code__:  # one that comes later is not for this test
                raise KeyboardInterrupt
            frame = frame.f_back

    def find(query, k):
        for _ in range(3):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.002)
        all_sent.set()
        let_go.wait(60)
        return []

    system = calling(find, timeout_s=60)
    dispatcher = Dispatcher([system], 10)
    calls = interleave(testset_of("a", "b").queries, [system], seed=0, repetition=1)
    before = signal.signal(signal.SIGINT, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            dispatcher.ask(calls, lambda *_: None)
        deadline = time.monotonic() + 20
        while dispatcher._running and time.monotonic() < deadline:
            time.sleep(0.01)
        assert dispatcher._running == []
        assert all_sent.wait(20)
    finally:
        signal.signal(signal.SIGINT, before)
        let_go.set()


def test_a_folder_that_cannot_be_written_keeps_nothing_and_stops_no_run(tmp_path, testset_of, make_system):
    (tmp_path / ".cranfield").touch()  # in the place of the folder
    (tmp_path / "cranfield.yaml").write_text(
        "testset: queries.yaml\nsystems: {sut: {command: [echo, 'docs://{query}'], extract: {regex: 'docs://'}}}\n",
        encoding="utf-8",
    )
    options = collect_options(load_config(tmp_path / "cranfield.yaml"))
    system = make_system("import sys; print('docs://' + sys.argv[1])")
    runs = collect_all(testset_of("grid"), [system], out_dir=tmp_path / "out", options=options)
    assert [hit.id for hit in runs["sut"].answers["q1"].hits] == ["docs://grid"]


@pytest.mark.parametrize("name", ["token", "Auth_Token", "client_secret"])
def test_a_token_in_a_parameter_does_not_stand_in_the_file(http_system, name):
    with pytest.raises(ConfigError, match="a secret in the config file"):
        http_system("http://127.0.0.1:1/", http={"parameters": {"q": "{query}", name: "abcdef"}})
