import json
import os

import pytest

from cranfield.base.errors import PreflightError
from cranfield.model import Query
from cranfield.systems import PassedCheck
from cranfield.systems.collect.preflight import preflight
from cranfield.systems.kinds.command import CommandSystem

ANSWERS = "import sys; print('docs://' + sys.argv[1]) if sys.argv[1] != 'nothing' else None"


@pytest.fixture
def problems():
    """Check systems that must not pass: (label, expected, got, hint) of each problem."""

    def _problems(*systems):
        with pytest.raises(PreflightError) as caught:
            preflight(systems)
        assert caught.value.exit_code == 3
        return [(p.path, p.message, p.expected, p.got, p.hint) for p in caught.value.problems]

    return _problems


def test_what_held_is_reported_in_the_words_of_the_config(make_system, tmp_path):
    (tmp_path / "conf.json").write_text('{"db": {"path": "/data/search.db", "n": 3}}', encoding="utf-8")
    (tmp_path / "VERSION").write_text("1.2.0\n", encoding="utf-8")
    checks = [
        {"binary": "sh"},
        {"file": "conf.json"},
        {"file": "conf.json", "contains": "/data/search.db"},
        {"file": "VERSION", "equals": "1.2.0"},
        {"file": "conf.json", "equals_json": {"path": "db.path", "value": "/data/search.db"}},
        {"file": "conf.json", "equals_json": {"path": "db", "value": {"n": 3, "path": "/data/search.db"}}},
        {"probe": "Hashable"},
    ]
    held = preflight([make_system(ANSWERS, preflight=checks)])
    assert held == (
        PassedCheck("sut", "cwd .", "a folder"),
        PassedCheck("sut", "command {python}", "an executable file"),
        PassedCheck("sut", "binary sh", "on PATH"),
        PassedCheck("sut", "file conf.json", "a file"),
        PassedCheck("sut", "file conf.json: contains '/data/search.db'", "found"),
        PassedCheck("sut", "file VERSION: equals '1.2.0'", "'1.2.0'"),
        PassedCheck("sut", "file conf.json: db.path", '"/data/search.db"'),
        PassedCheck("sut", "file conf.json: db", '{"n": 3, "path": "/data/search.db"}'),
        PassedCheck("sut", "probe 'Hashable'", "1 result"),
    )
    assert str(tmp_path) not in str(held)


def test_the_program_is_checked_without_being_asked_to(make_system, problems):
    missing = make_system("").config.model_copy(update={"command": ["bin/search", "{query}"]})
    assert problems(CommandSystem("old", missing)) == [
        (
            "system old",
            "command bin/search",
            "an executable file",
            "nothing there",
            "the path is relative to the system's cwd.",
        )
    ]


@pytest.mark.parametrize(
    ("command", "missing"),
    [
        (["{python}", "search.py", "{query}"], "search.py"),
        (["{python}", "-I", "-S", "bin/search.py", "{query}"], "bin/search.py"),
        (["sh", "search.sh", "{query}"], "search.sh"),
        (["{python}", "there.py", "{query}"], None),
        (["{python}", "-m", "search.py", "{query}"], None),  # a module's name
        (["{python}", "-c", "x.py", "{query}"], None),
        (["{python}", "{params.script}.py", "{query}"], None),
        (["ls", "search.py", "{query}"], None),  # what its arguments mean is not known
    ],
)
def test_the_script_of_an_interpreter_is_checked_too(make_system, problems, tmp_path, command, missing):
    (tmp_path / "there.py").touch()
    system = make_system("")
    system.config = system.config.model_copy(update={"command": command})
    if missing is None:
        assert preflight([system])
    else:
        (found,) = problems(system)
        assert found[1:] == (
            f"command {command[0]}",
            f"the file {missing}",
            "nothing there",
            "the path is relative to the system's cwd.",
        )


def test_a_missing_working_directory_is_said_once(make_system, problems):
    system = make_system("", cwd="nowhere", preflight=[{"file": "a"}, {"file": "b"}, {"probe": "c"}])
    assert [(message, got) for _, message, _, got, _ in problems(system)] == [("cwd nowhere", "nothing there")]


@pytest.mark.parametrize(
    ("check", "expected", "got"),
    [
        ({"binary": "bin/search"}, "an executable file", "nothing there"),
        ({"binary": "./conf.json"}, "an executable file", "a file without execute permission"),
        ({"binary": "./folder"}, "an executable file", "a folder"),
        ({"binary": "no-such-program"}, "a program on PATH", "no program of that name"),
        ({"binary": "conf.json"}, "a program on PATH", "no program of that name"),
        ({"file": "none.json"}, "a file", "nothing there"),
        ({"file": "folder"}, "a file", "a folder"),
        ({"file": "none.json", "contains": "x"}, "a file", "nothing there"),
        ({"file": "conf.json", "contains": "/data/search.db"}, "the text '/data/search.db'", "31 bytes without it"),
        ({"file": "VERSION", "equals": "1.2.0"}, "'1.2.0'", "'1.1.0'"),
        ({"file": "conf.json", "equals_json": {"path": "base", "value": "/dev"}}, '"/dev"', '"/brew"'),
        ({"file": "conf.json", "equals_json": {"path": "bse", "value": "/brew"}}, '"/brew"', "null"),
        ({"file": "conf.json", "equals_json": {"path": "n", "value": "1"}}, '"1"', "1"),
        ({"file": "conf.json", "equals_json": {"path": "n", "value": True}}, "true", "1"),
        ({"file": "VERSION", "equals_json": {"path": "n", "value": 1}}, "n = 1", "a file that is not JSON"),
        (
            {"file": "conf.json", "equals_json": {"path": "length(n)", "value": 1}},
            "length(n) = 1",
            "JSON in which the path cannot be evaluated",
        ),
        ({"probe": "nothing"}, "at least one result", "empty"),
    ],
)
def test_a_check_that_does_not_hold_says_what_was_expected_and_what_was_found(
    make_system, problems, tmp_path, check, expected, got
):
    (tmp_path / "folder").mkdir()
    (tmp_path / "conf.json").write_text(json.dumps({"base": "/brew", "n": 1, "x": 22}), encoding="utf-8")
    (tmp_path / "VERSION").write_text("1.1.0\n", encoding="utf-8")
    found = problems(make_system(ANSWERS, preflight=[check]))
    size = (tmp_path / "conf.json").stat().st_size
    assert [row[2:4] for row in found] == [(expected, got.replace("31", str(size)))]


def test_a_program_in_the_working_directory_is_pointed_out(make_system, problems, tmp_path):
    (tmp_path / "search").write_text("#!/bin/sh\n", encoding="utf-8")
    found = problems(make_system(ANSWERS, preflight=[{"binary": "search"}]))
    assert found[0][4] == "a program in the working directory is written ./search."


@pytest.mark.parametrize(
    ("source", "got", "wrote"),
    [
        ("import sys; sys.exit('cannot open index')", "nonzero exit (exit status 1)", "it wrote 'cannot open index'"),
        ("import time; time.sleep(30)", "timeout (no answer in 0.5 s)", None),
        (
            "print('<html>')",
            "unparsable (no result matched extract.regex, and empty is not set; for an answer without results: empty: '^No results')",
            "it wrote '<html>'",
        ),
    ],
)
def test_a_probe_that_fails_tells_how_and_shows_the_programs_own_words(make_system, problems, source, got, wrote):
    system = make_system(source, preflight=[{"probe": "Hashable"}], timeout_s=0.5 if "sleep" in source else 20)
    assert problems(system) == [("system sut", "probe 'Hashable'", "at least one result", got, wrote)]


def test_all_failures_of_all_systems_come_at_once_and_no_probe_repeats_them(make_system, problems, tmp_path):
    checks = [{"probe": "Hashable"}, {"file": "a"}, {"binary": "no-such-program"}]
    old = make_system("open('asked', 'w')", name="old", preflight=checks)
    new = make_system("", name="new", preflight=[{"probe": "nothing"}])
    found = problems(old, new)
    assert [row[:2] for row in found] == [
        ("system old", "file a"),
        ("system old", "binary no-such-program"),
        ("system new", "probe 'nothing'"),
    ]
    assert not (tmp_path / "asked").exists()


def test_a_probe_asks_for_k_results(make_system):
    system = make_system(
        "import sys; print('docs://' * (sys.argv[1] == '7') + 'a')", "{k}", "{query}", preflight=[{"probe": "x"}]
    )
    assert preflight([system], k=7)[-1].found == "1 result"


def test_a_message_reads_as_a_sentence_and_hides_values_of_the_environment(make_system, tmp_path):
    (tmp_path / "conf.json").write_text('{"key": "hunter2-token-2"}', encoding="utf-8")
    checks = [{"file": "conf.json", "equals_json": {"path": "key", "value": "hunter2-token"}}]
    system = make_system("", env={"TOKEN": "hunter2-token"}, preflight=checks)
    with pytest.raises(PreflightError) as caught:
        preflight([system])
    assert str(caught.value) == 'system sut: file conf.json: key; expected "${TOKEN}", got "${TOKEN}-2".'


def test_what_held_hides_values_of_the_environment(make_system, tmp_path):
    (tmp_path / "conf.json").write_text('{"key": "hunter2-token"}', encoding="utf-8")
    checks = [
        {"file": "conf.json", "equals_json": {"path": "key", "value": "hunter2-token"}},
        {"file": "conf.json", "contains": "hunter2-token"},
    ]
    held = preflight([make_system("", env={"TOKEN": "hunter2-token"}, preflight=checks)])
    assert "hunter2" not in str(held)
    assert held[-2].found == '"${TOKEN}"'


MODES = """
import json, sys
mode = "lexical" if "lexical" in sys.argv[1] else "semantic"
print(json.dumps({"results": ["d1"], "meta": {"mode": mode, "confidence": 0.5}}))
"""
EXTRACT = {"json": "results", "fields": {"mode": "meta.mode", "meta": "meta"}}


def ruled(make_system, *rules, probes=(), **more):
    checks = [{"probe": probe} for probe in probes] + [{"every_answer": rule} for rule in rules]
    return make_system(MODES, extract=EXTRACT, preflight=checks, **more)


def test_a_rule_on_every_answer_is_checked_on_each_probe(make_system, problems):
    rules = ("mode = semantic", "meta.confidence >= 0.5")
    held = preflight([ruled(make_system, *rules, probes=["shoes", "boots"])])
    assert [(check.check, check.found) for check in held[-2:]] == [
        ("every answer: mode = semantic", "kept in 2 answers"),
        ("every answer: meta.confidence >= 0.5", "kept in 2 answers"),
    ]
    broken = ruled(make_system, *rules, "cost exists", probes=["shoes", "lexical boots"])
    there = "fields of it: mode, meta"
    assert problems(broken) == [
        (
            "system sut",
            "every answer: mode = semantic",
            "mode = semantic",
            "mode is \"lexical\" in the answer to 'lexical boots'",
            there,
        ),
        ("system sut", "every answer: cost exists", "cost exists", "no field cost in the answer to 'shoes'", there),
    ]


def test_without_a_probe_a_rule_is_checked_on_the_first_query(make_system):
    system = ruled(make_system, "mode = semantic")
    assert preflight([system])[-1].check.startswith("command")  # no query is known: nothing is sent
    assert preflight([system], sample=Query("q1", "shoes"))[-1].found == "kept in 1 answer"
    with pytest.raises(PreflightError, match=r"got mode is \"lexical\" in the answer to 'lexical'"):
        preflight([system], sample=Query("q1", "lexical"))


def test_a_sample_query_that_fails_breaks_no_rule(make_system):
    system = make_system("raise SystemExit(3)", extract=EXTRACT, preflight=[{"every_answer": "mode = semantic"}])
    assert preflight([system], sample=Query("q1", "shoes"))[-1].check.startswith("command")


def test_a_probe_that_fails_is_reported_alone(make_system, problems):
    checks = [{"probe": "shoes"}, {"every_answer": "mode = semantic"}]
    system = make_system("raise SystemExit(3)", extract=EXTRACT, preflight=checks)
    assert [message for _, message, *_ in problems(system)] == ["probe 'shoes'"]


@pytest.mark.parametrize("endless", ["/dev/zero", "pipe"])
def test_a_file_without_an_end_is_not_read(tmp_path, endless):
    os.mkfifo(tmp_path / "pipe")
    system = CommandSystem.of(
        "a",
        command=["echo", "{query}"],
        extract={"regex": "x"},
        preflight=[{"file": endless, "contains": "x"}],
        folder=tmp_path,
    )
    with pytest.raises(PreflightError, match="expected a file, got a device or a pipe"):
        preflight([system])
