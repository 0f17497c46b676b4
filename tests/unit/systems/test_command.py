import os
import threading
from pathlib import Path

import pytest

from cranfield.base.errors import ConfigError, UnknownNameError, UsageError
from cranfield.config import system_config
from cranfield.model import Outcome, Query
from cranfield.systems.configured import HEAD_CHARS
from cranfield.systems.kinds.build import build_systems
from cranfield.systems.kinds.command import CommandSystem
from cranfield.systems.system import CallInterruptedError, Interruptible, System

ECHO_ARGV = "import sys, json; print(json.dumps({'r': sys.argv[1:]}))"
ARGV = {"json": "r"}


def test_hits_come_in_the_order_printed(ask):
    answer, log = ask("print('1. docs://b'); print('2. docs://a')")
    assert (answer.outcome, [hit.id for hit in answer.hits]) == (Outcome.ANSWERED, ["docs://b", "docs://a"])
    assert answer.reason is None
    assert log.stdout_head == "1. docs://b\n2. docs://a\n"
    assert log.latency_ms > 1


@pytest.mark.parametrize(
    ("source", "outcome", "reason"),
    [
        ("", Outcome.EMPTY, None),
        ("print('No results')", Outcome.EMPTY, None),
        ("print('<results/>')", Outcome.UNPARSABLE, "no result matched extract.regex, and empty did not match"),
        ("import sys; sys.exit(3)", Outcome.NONZERO_EXIT, "exit status 3"),
        ("print('No results'); raise SystemExit(1)", Outcome.NONZERO_EXIT, "exit status 1"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", Outcome.NONZERO_EXIT, "killed by SIGSEGV"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", Outcome.NONZERO_EXIT, "killed by SIGTERM"),
        ("import time; time.sleep(60)", Outcome.TIMEOUT, "no answer in 0.5 s"),
        ("print('docs://a', flush=True); import time; time.sleep(60)", Outcome.TIMEOUT, "no answer in 0.5 s"),
        ("import os, time; os.close(1); os.close(2); time.sleep(60)", Outcome.TIMEOUT, "no answer in 0.5 s"),
        ("print('x' * 17 * 1024**2)", Outcome.UNPARSABLE, "over 16 MB of output"),
    ],
)
def test_four_ways_of_not_answering_are_told_apart(ask, source, outcome, reason):
    answer, _ = ask(source, empty="No results", timeout_s=0.5 if outcome is Outcome.TIMEOUT else 20)
    assert (answer.outcome, answer.reason, answer.hits) == (outcome, reason, ())


def test_results_of_a_program_that_ends_in_error_do_not_count_and_are_in_the_log(ask):
    answer, log = ask("import sys; print('docs://a'); print('index is stale', file=sys.stderr); sys.exit(2)")
    assert (answer.outcome, answer.hits) == (Outcome.NONZERO_EXIT, ())
    assert (log.stdout_head, log.stderr_head) == ("docs://a\n", "index is stale\n")


def test_what_a_program_wrote_before_it_was_stopped_is_in_the_log(ask):
    answer, log = ask("print('docs://a', flush=True); import time; time.sleep(60)", timeout_s=1)
    assert (answer.outcome, log.stdout_head) == (Outcome.TIMEOUT, "docs://a\n")


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (["bin/none", "{query}"], "could not be started: the program does not exist"),
        (["no-such-program-anywhere", "{query}"], "could not be started: the program does not exist"),
        (["./plain.txt", "{query}"], "could not be started: permission to execute it was denied"),
        (["./broken", "{query}"], "could not be started: ENOEXEC"),
    ],
)
def test_a_program_that_cannot_be_started_is_a_failure_with_a_portable_reason(tmp_path, command, reason):
    (tmp_path / "plain.txt").write_text("x", encoding="utf-8")
    (tmp_path / "broken").write_bytes(b"\x01\x02")
    (tmp_path / "broken").chmod(0o755)
    config = system_config("sut", {"command": command, "extract": {"regex": "x"}})
    answer, _ = CommandSystem("s", config, tmp_path).search(Query("q", "a"), 10)
    assert (answer.outcome, answer.reason) == (Outcome.NONZERO_EXIT, reason)


def test_a_missing_working_directory_is_told_from_a_missing_program(ask):
    answer, _ = ask("", cwd="nowhere")
    assert answer.reason == "could not be started: its working directory does not exist"


@pytest.mark.parametrize(
    "query",
    [
        "; touch injected",
        "$(touch injected)",
        "`touch injected`",
        "| touch injected",
        "> injected",
        "{k}",
        "{params.x}",
        "{{query}}",
        "--limit=3",
        "-",
        "*",
        "~",
        "a\nb\tc",
        "\u00e9\u4e2d\U0001f600 \u202e",
        "'\"\\",
        " lead and trail ",
        "",
    ],
)
def test_a_query_reaches_the_program_as_typed_and_nothing_else_happens(ask, tmp_path, query):
    answer, log = ask(ECHO_ARGV, "[{query}]", query=query, extract=ARGV)
    assert [hit.id for hit in answer.hits] == [f"[{query}]"], log
    assert not (tmp_path / "injected").exists()


def test_bytes_that_are_no_unicode_reach_the_program_as_they_were(ask):
    source = "import os, sys; print('docs://' + os.fsencode(sys.argv[1]).hex())"
    answer, _ = ask(source, query=os.fsdecode(b"a\xff"))
    assert [hit.id for hit in answer.hits] == ["docs://61ff"]


@pytest.mark.parametrize("query", ["nul\0nul", "\ud800"])
def test_a_query_that_no_command_line_can_carry_fails_with_the_reason(ask, query):
    answer, _ = ask(ECHO_ARGV, query=query, extract=ARGV)
    assert (
        answer.reason == "could not be started: an argument contains a character that is not allowed on a command line"
    )


def test_parameters_k_and_python_are_filled_in(ask):
    arguments = ("--limit", "{k}", "--min-ios", "{params.min_ios}", "--lang={params.lang}", "--", "{query}")
    given, _ = ask(ECHO_ARGV, *arguments, k=7, params={"min_ios": 17}, extract=ARGV)
    assert [hit.id for hit in given.hits] == ["--limit", "7", "--min-ios", "17", "--", "grid"]
    absent, _ = ask(ECHO_ARGV, *arguments, k=7, params={"lang": "swift"}, extract=ARGV)
    assert [hit.id for hit in absent.hits] == ["--limit", "7", "--lang=swift", "--", "grid"]


def test_a_program_sees_no_input(ask):
    answer, _ = ask("import sys; print('docs://' + repr(sys.stdin.read()))")
    assert [hit.id for hit in answer.hits] == ["docs://''"]


def test_output_that_is_no_utf8_is_unparsable_and_is_in_the_log_as_it_was(ask):
    answer, log = ask(r"import sys; sys.stdout.buffer.write(b'docs://caf\xe9\ndocs://caf\xe8\n')")
    reason = "the output is not UTF-8 (byte 0xe9 at 10)"
    assert (answer.outcome, answer.reason, answer.hits) == (Outcome.UNPARSABLE, reason, ())
    assert log.stdout_head == "docs://caf\\xe9\ndocs://caf\\xe8\n"


def test_the_log_keeps_the_head_of_each_stream(ask):
    answer, log = ask("import sys; print('docs://a ' * 1000); print('e' * 10**6, file=sys.stderr)")
    assert len(answer.hits) == 1000
    assert (len(log.stdout_head), log.stderr_head) == (HEAD_CHARS, "e" * HEAD_CHARS)


def test_a_relative_program_and_cwd_are_taken_from_the_config_folder(tmp_path, monkeypatch):
    program = tmp_path / "sub" / "bin" / "search"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\necho docs://$(basename $PWD)\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.chdir("/")
    config = system_config(
        "sut", {"command": ["bin/search", "{query}"], "cwd": "sub", "extract": {"regex": r"docs\S+"}}
    )
    answer, _ = CommandSystem("s", config, tmp_path).search(Query("q", "a"), 10)
    assert [hit.id for hit in answer.hits] == ["docs://sub"]


def test_the_environment_is_ours_with_the_config_on_top(ask, monkeypatch):
    monkeypatch.setenv("CRANFIELD_TEST_A", "inherited")
    monkeypatch.setenv("CRANFIELD_TEST_B", "inherited")
    source = "import os; print('docs://' + os.environ['CRANFIELD_TEST_A'] + os.environ['CRANFIELD_TEST_B'])"
    answer, _ = ask(source, env={"CRANFIELD_TEST_B": "set"})
    assert [hit.id for hit in answer.hits] == ["docs://inheritedset"]


def test_values_of_the_environment_are_hidden_in_the_log(ask):
    source = (
        "import os, sys; t = os.environ['TOKEN'] + os.environ['LONG']; print('docs://a', 'x' * 1980, t);"
        "print('bad token', t, file=sys.stderr); sys.exit(1)"
    )
    answer, log = ask(source, env={"TOKEN": "hunter2-token", "LONG": "hunter2-token-and-more", "LANG": "C"})
    assert log.stderr_head == "bad token ${TOKEN}${LONG}\n"
    assert "hunter2" not in log.stdout_head, "not even where the head is cut"
    assert answer.reason == "exit status 1"


def test_a_system_built_in_code_is_checked_like_one_in_a_file():
    with pytest.raises(ConfigError) as caught:
        CommandSystem.of("old", command=["x", "{qeury}"], extract={"regex": "("})
    assert sorted(problem.message.split(":")[0] for problem in caught.value.problems) == ["command[1]", "extract.regex"]


def test_a_command_is_a_system_that_can_be_interrupted(make_system):
    system: System = make_system("")
    assert isinstance(system, Interruptible)
    assert (system.name, system.order, system.concurrency) == ("sut", "given", 1)
    assert system.config_digest.startswith("sha256:")


def test_interrupting_ends_the_calls_under_way_and_no_later_one(make_system, wait_for, tmp_path):
    source = (
        "import sys, time; from pathlib import Path; Path(sys.argv[1]).touch();"
        "print('docs://a'); time.sleep(300 if sys.argv[1] == 'slow' else 0)"
    )
    system = make_system(source, timeout_s=200)
    caught = []

    def call():
        try:
            system.search(Query("q", "slow"), 10)
        except CallInterruptedError as error:
            caught.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    wait_for((tmp_path / "slow").exists)
    system.interrupt()
    thread.join(60)
    assert len(caught) == 1
    assert system.search(Query("q", "fast"), 10)[0].outcome is Outcome.ANSWERED


def test_systems_come_in_the_order_of_the_file(tmp_path):
    from cranfield.config import load_config

    path = tmp_path / "c.yaml"
    path.write_text(
        "testset: q\nsystems:\n"
        "  b: {command: [x, '{query}'], extract: {regex: d}}\n"
        "  a: {command: [x, '{query}'], extract: {regex: d}}\n",
        encoding="utf-8",
    )
    config = load_config(path)
    assert [system.name for system in build_systems(config)] == ["b", "a"]
    assert [system.name for system in build_systems(config, ["a"])] == ["a"]
    assert build_systems(config)[0].cwd == tmp_path
    with pytest.raises(UnknownNameError, match="unknown system 'c'"):
        build_systems(config, ["c"])


def test_a_system_made_of_plain_values_is_checked_like_one_in_a_file():
    with pytest.raises(ConfigError) as caught:
        CommandSystem.of("old", comand=["x", "{query}"], extract={"regex": "x", "jsn": "y"}, timeout_s="soon")
    messages = str(caught.value)
    assert "system old: " in messages
    assert "did you mean command?" in messages
    assert "did you mean json?" in messages
    assert "timeout_s" in messages


def test_params_of_the_set_go_with_every_query_and_a_query_s_own_before_them(tmp_path: Path) -> None:
    config = system_config(
        "sut", {"command": ["echo", "{params.mode}-{params.depth}:{query}"], "extract": {"regex": r"\S+"}}
    )
    system = CommandSystem("s", config, tmp_path, {"mode": "docs", "depth": 3})
    asked = [Query("q1", "a"), Query("q2", "a", params={"mode": "own"})]
    assert [system.search(query, 10)[0].hits[0].id for query in asked] == ["docs-3:a", "own-3:a"]


def test_params_of_the_set_are_part_of_what_is_measured(tmp_path: Path) -> None:
    config = system_config("sut", {"command": ["echo", "{query}"], "extract": {"regex": r"\S+"}})
    plain, code, docs = (
        CommandSystem("s", config, tmp_path, params) for params in ({}, {"mode": "code"}, {"mode": "docs"})
    )
    assert len({plain.config_digest, code.config_digest, docs.config_digest}) == 3
    assert plain.config_digest == CommandSystem("s", config).config_digest
    assert [system.public_config().get("params") for system in (plain, code)] == [None, {"mode": "code"}]


def test_the_settings_of_another_kind_are_refused():
    with pytest.raises(UsageError) as caught:
        CommandSystem.of("x", run="a.run")
    (problem,) = caught.value.problems
    assert problem.message == "system x: these are the settings of another kind of system"
    assert (problem.expected, problem.got) == ("command=, and its settings", "run=")
