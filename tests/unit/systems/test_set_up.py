"""What is done around the queries of a system: `before`, `serve` and `after`, with real programs and real ports."""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cranfield.base.errors import ConfigError, PreflightError, SystemUnderTestError
from cranfield.config import load_config
from cranfield.model import Outcome, Query
from cranfield.systems import build_systems
from cranfield.systems.collect.dependencies import dependency_digest
from cranfield.systems.collect.preflight import preflight

SERVER = """
import json, os, sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs, urlsplit

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        query = parse_qs(urlsplit(self.path).query).get("q", [""])[0]
        if query == "die":
            print("out of memory", file=sys.stderr, flush=True)
            os._exit(7)
        body = json.dumps({"hits": [query], "fields": {"pid": os.getpid()}}).encode()
        self.send_response(503 if self.path == "/never" else 200)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass

server = HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
print("token is", os.environ.get("TOKEN"), flush=True)
server.serve_forever()
"""
SYSTEM = """
    serve: {command: ["{python}", -I, -S, server.py, "{port}"]}
    http: {url: "http://127.0.0.1:{port}/", parameters: {q: "{query}"}}
    extract: {json: hits, fields: {pid: fields.pid}}
    retries: 0
"""
QUERIES = "cranfield_testset: 1\nname: t\nqueries:\n- {id: q1, text: a, judgments: {a: 1}}\n"


@pytest.fixture
def systems(tmp_path):
    """Systems of a config, by their settings; closed with the test."""
    made = []
    (tmp_path / "server.py").write_text(SERVER)
    (tmp_path / "queries.yaml").write_text(QUERIES)

    def make(*settings: str):
        names = [f"  s{number}:\n{text}" for number, text in enumerate(settings)]
        (tmp_path / "cranfield.yaml").write_text("testset: queries.yaml\nsystems:\n" + "\n".join(names))
        built = build_systems(load_config(tmp_path / "cranfield.yaml"))
        made.extend(built)
        return built

    yield make
    for system in made:
        system.close()


def lines_of(path: Path) -> list[str]:
    return path.read_text().split() if path.exists() else []


def around(first: str = "echo before >> log", last: str = "echo after >> log") -> str:
    return f"\n    before: [sh, -c, '{first}']\n    after: [sh, -c, '{last}']"


def test_a_program_is_served_on_a_free_port_while_queries_are_sent(systems, tmp_path, gone):
    (system,) = systems(SYSTEM.rstrip() + around())
    assert [check.found for check in preflight([system])][1:3] == [
        "exit status 0",
        "a program that listens on its port",
    ]
    answers = [system.search(Query("q", text), 10)[0] for text in ("a", "b")]
    assert [answer.hits[0].id for answer in answers] == ["a", "b"]
    (pid,) = {answer.fields["pid"] for answer in answers}
    assert lines_of(tmp_path / "log") == ["before"]
    system.close()
    system.close()
    assert gone(pid)
    assert lines_of(tmp_path / "log") == ["before", "after"]


def test_the_next_call_after_the_end_sets_everything_up_again(systems, tmp_path):
    (system,) = systems(SYSTEM.rstrip() + around())
    first = system.search(Query("q", "a"), 10)[0].fields["pid"]
    system.close()
    assert system.search(Query("q", "a"), 10)[0].fields["pid"] != first
    system.close()
    assert lines_of(tmp_path / "log") == ["before", "after"] * 2


def test_systems_of_the_same_set_up_share_it_and_others_do_not(systems, tmp_path):
    same = SYSTEM.rstrip() + around()
    a, b, other = systems(same, same + "\n    params: {boost: 2}", same + "\n    env: {TOKEN: other}")
    preflight([a, b, other])
    pids = [system.search(Query("q", "a"), 10)[0].fields["pid"] for system in (a, b, other)]
    assert pids[0] == pids[1] != pids[2]
    a.close()
    assert b.search(Query("q", "a"), 10)[0].outcome is Outcome.ANSWERED
    assert lines_of(tmp_path / "log") == ["before", "before"]
    b.close()
    other.close()
    assert lines_of(tmp_path / "log") == ["before", "before", "after", "after"]


@pytest.mark.parametrize(
    ("settings", "expected", "got", "hint"),
    [
        ("before: [[sh, -c, 'echo built'], [sh, -c, 'echo no index >&2; exit 3']]", "exit status 0", "exit status 3", "no index"),
        ("before: [./nothing-there]", "a program that starts", "the program does not exist", ""),
        ("serve: {command: [sh, -c, 'echo no port >&2; exit 4']}", "listens on its port", "exit status 4", "no port"),
        ("serve: {command: [sh, -c, 'exit 0']}", "listens on its port", "exit status 0", "in the foreground"),
        ("serve: {command: [sleep, '60'], start_s: 0.2}", "in 0.2 s", "nothing listens on port", "{port}"),
        ("serve: {command: [sleep, '60'], start_s: 0.2, line: listening}", "'listening' in 0.2 s", "no such line", ""),
        ("serve: {command: ['{python}', server.py, '{port}'], ready: /never, start_s: 1}", "200 from /never", "status 503", ""),
        ("serve: {command: [sleep, '60'], start_s: 0.2, ready: 'http://127.0.0.1:{port}/x'}", "in 0.2 s", "no connection", ""),
    ],
)  # fmt: skip
def test_what_cannot_be_set_up_is_a_failed_check_and_cleaned_up(systems, tmp_path, settings, expected, got, hint):
    (system,) = systems(
        f"    command: [echo, '{{query}}']\n    extract: {{regex: x}}\n    {settings}\n    after: [touch, cleaned]\n"
    )
    with pytest.raises(PreflightError) as raised:
        preflight([system])
    (problem,) = raised.value.problems
    assert problem.path == "system s0"
    assert expected in problem.expected
    assert got in problem.got
    assert hint in (problem.hint or "")
    system.close()
    assert (tmp_path / "cleaned").exists()


def test_a_program_that_ends_between_queries_ends_the_collection_with_its_last_words(systems):
    (system,) = systems(SYSTEM)
    assert system.search(Query("q1", "a"), 10)[0].outcome is Outcome.ANSWERED
    with pytest.raises(SystemUnderTestError, match="exit status 7") as raised:
        system.search(Query("q2", "die"), 10)
    (problem,) = raised.value.problems
    assert problem.path == "system s0"
    assert problem.hint == "it wrote 'out of memory'"
    with pytest.raises(SystemUnderTestError, match="exit status 7"):
        system.search(Query("q3", "a"), 10)


def test_a_line_of_the_program_says_that_it_is_ready_and_secrets_are_hidden(systems):
    settings = SYSTEM.replace('"{port}"]}', '"{port}"], line: token is}') + "    env: {TOKEN: s3cret-value}\n"
    (system,) = systems(settings)
    assert [check.found for check in preflight([system])][1] == "a line with 'token is'"
    with pytest.raises(SystemUnderTestError) as raised:
        system.search(Query("q", "die"), 10)
    assert "s3cret" not in str(raised.value)
    system.close()
    (failing,) = systems(settings.replace("token is}", "no such line, start_s: 0.3}"))
    with pytest.raises(PreflightError) as refused:
        preflight([failing])
    assert "it wrote 'token is ${TOKEN}'" in str(refused.value)


def test_another_program_on_the_port_is_not_taken_for_the_served_one(systems):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        (system,) = systems(SYSTEM.replace('"{port}"]', f'"{{port}}"], port: {port}'))
        with pytest.raises(PreflightError, match=f"a free port {port}.*another program"):
            preflight([system])


def test_a_command_at_the_end_that_fails_is_noted_and_the_others_run(systems, tmp_path, caplog):
    (system,) = systems(SYSTEM + "    after: [['false'], [touch, cleaned]]\n")
    preflight([system])
    with caplog.at_level(logging.WARNING):
        system.close()
    assert "after false: expected exit status 0, got exit status 1" in caplog.text
    assert (tmp_path / "cleaned").exists()


@pytest.mark.parametrize("kind", ["command", "lines", "python", "preset"])
def test_every_kind_is_given_the_port(systems, tmp_path, kind):
    (tmp_path / "lines.py").write_text(
        "import json, sys\nfor line in sys.stdin:\n    print(json.dumps({'id': json.loads(line)['id'], 'hits': sys.argv[1:]}), flush=True)\n"
    )
    (tmp_path / "engine.py").write_text("def made(port):\n    return lambda query, k: [port]\n")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    head = f'    serve: {{command: ["{{python}}", -I, -S, server.py, "{{port}}"], port: {port}}}\n'
    settings = {
        "command": "    command: [echo, 'x{port}', '{query}']\n    extract: {regex: '(?<=x)\\d+'}\n",
        "lines": '    lines: ["{python}", lines.py, "{port}"]\n',
        "python": '    python: engine:made\n    with: {port: "{port}"}\n',
        "preset": '    preset: elasticsearch\n    with: {url: "http://127.0.0.1:{port}", index: docs, fields: {text: 1}}\n',
    }[kind]
    (system,) = systems(head + settings)
    if kind == "preset":
        assert f"http://127.0.0.1:{port}/docs" in system.request("a", 10, {})
    else:
        assert system.search(Query("q", "a"), 10)[0].hits[0].id == port
    assert "{port}" in str(system.public_config())


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            "    http: {url: 'http://localhost:{port}/?q={query}'}\n    extract: {json: hits}",
            "{port} without a program",
        ),
        ("    lines: [x]\n    before: [sh, '{query}']", "it is started once"),
        ("    lines: [x]\n    before: [['{prot}']]", "unknown placeholder 'prot'"),
        ("    lines: [x]\n    before: npm ci", "list"),
        ("    lines: [x]\n    serve: {command: [x], ready: health}", "not a path or an address of http"),
        ("    lines: [x]\n    serve: {command: [x], port: 70000}", "65535"),
        ("    run: x.trec\n    before: [x]", "leave it out: the run file has its results"),
    ],
)
def test_what_is_wrong_in_the_config_is_found_before_anything_is_started(systems, settings, words):
    with pytest.raises(ConfigError) as raised:
        systems(settings)
    assert words in str(raised.value)


def test_the_script_of_a_set_up_is_what_answers_depend_on(systems, tmp_path):
    (system,) = systems(SYSTEM)
    before = dependency_digest(system)
    (tmp_path / "server.py").write_text(SERVER + "# changed\n")
    assert dependency_digest(system) != before


@pytest.mark.parametrize(
    ("place", "number"),
    [("before", signal.SIGINT), ("serve", signal.SIGINT), ("query", signal.SIGINT), ("query", signal.SIGKILL)],
)
def test_an_interruption_ends_what_was_started_and_runs_what_is_for_the_end(tmp_path, gone, wait_for, number, place):
    write_pid = "import os; open('pid.new', 'w').write(str(os.getpid())); os.rename('pid.new', 'pid')\n"
    (tmp_path / "slow.py").write_text(write_pid + "import time; time.sleep(60)\n")
    (tmp_path / "server.py").write_text(SERVER.replace("server.serve_forever()", write_pid + "server.serve_forever()"))
    (tmp_path / "queries.yaml").write_text(QUERIES)
    first = {
        "before": '    before: ["{python}", slow.py]\n',
        "serve": '    serve: {command: ["{python}", slow.py]}\n',
        "query": '    serve: {command: ["{python}", server.py, "{port}"]}\n',
    }[place]
    asked = "    command: [sh, -c, 'touch asked; sleep 60', '{query}']\n    extract: {regex: x}\n    after: [touch, cleaned]\n"
    (tmp_path / "cranfield.yaml").write_text(f"testset: queries.yaml\nsystems:\n  s:\n{first}{asked}")
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "cranfield", "run"]
    process = subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, start_new_session=True)
    wait_for((tmp_path / ("asked" if place == "query" else "pid")).exists)
    pid = int((tmp_path / "pid").read_text())
    time.sleep(0.1)
    process.send_signal(number)
    process.communicate(timeout=60)
    assert gone(pid)
    assert process.returncode == (130 if number == signal.SIGINT else -number)
    assert (tmp_path / "cleaned").exists() is (number == signal.SIGINT)
