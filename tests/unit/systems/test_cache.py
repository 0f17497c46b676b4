"""The cache of answers: used where nothing has changed, replaced where anything has."""

import json
import os
import re
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cranfield.base.errors import UsageError
from cranfield.evaluation.options.blocks import CollectOptions
from cranfield.formats.runs.jsonl import read_run
from cranfield.model import Answer, CallLog, Hit, Outcome, Query, TestSet
from cranfield.systems import collect_all
from cranfield.systems.collect import dependencies
from cranfield.systems.collect.collection import collect
from cranfield.systems.collect.progress import Silent

ANSWER = Answer(
    Outcome.ANSWERED, (Hit("d\u00e91", 0.1 + 0.2, "T", "3-4", 7.0), Hit("d2")), fields={"c": 1e-7, "n": [None]}
)
TIMEOUT = Answer(Outcome.TIMEOUT, reason="no answer in 30 s")
EMPTY = Answer(Outcome.EMPTY)


class Told(Silent):
    def __init__(self):
        self.notes = []
        self.starts = []

    def start(self, system, total, done):
        self.starts.append((system, total, done))

    def note(self, text):
        self.notes.append(text)


class Asked:
    """A system in this process that counts its calls; it fails on a query whose text is `fail`."""

    order = "given"
    concurrency = 1

    def __init__(self, name="old", *, digest="sha256:1", depends=(Path(__file__),), answers=None):
        self.name = name
        self.config_digest = digest
        self.asked = []
        self._depends = depends
        self._answers = {"fail": TIMEOUT, "nothing": EMPTY, **(answers or {})}

    def public_config(self):
        return {}

    def depends_on(self):
        return iter(self._depends)

    def search(self, query, k):
        self.asked.append(query.id)
        return self._answers.get(query.text, ANSWER), CallLog(12.5, "out", attempts=2)


TEXTS = ("a", "b", "c")


@pytest.fixture
def again(tmp_path, testset_of):
    """Collect with a cache; gives what was asked, the run and the notes. Each call has an output folder of its own."""
    count = iter(range(1000))

    def _again(system=None, *, texts=TEXTS, cache="cache", k=10, pilot=False, **options):
        system, told = system or Asked(), Told()
        if cache is not None:
            options = {"cache_dir": tmp_path / cache, "cache_h": 24.0} | options
        runs = collect_all(
            testset_of(*texts),
            [system],
            out_dir=tmp_path / f"out-{next(count)}",
            k=k,
            pilot=pilot,
            options=CollectOptions(**options),
            progress=told,
        )
        return system.asked, runs[system.name], told

    return _again


@pytest.fixture
def entries(tmp_path):
    """The files of the cache."""
    return lambda: sorted((tmp_path / "cache").iterdir()) if (tmp_path / "cache").exists() else []


def test_the_same_question_to_the_same_system_is_asked_once(again, entries):
    asked, first, _ = again()
    assert asked == ["q1", "q2", "q3"]
    asked, second, told = again()
    assert asked == []
    assert second.digest == first.digest
    assert second.answers == first.answers
    assert told.starts == [("old", 3, 3)]
    assert re.fullmatch(
        r"old: 3 of 3 answers from the cache, the oldest from \d{4}-\d\d-\d\d \d\d:\d\d UTC", told.notes[0]
    )
    assert len(entries()) == 1
    assert re.fullmatch(r"old-[0-9a-f]{64}\.jsonl", entries()[0].name)


def test_an_answer_that_was_kept_says_so_in_its_log_and_its_latency_is_that_of_then(again):
    _, first, _ = again()
    _, second, _ = again()
    assert not any(log.cached for log in first.logs.values())
    assert set(second.logs.values()) == {CallLog(12.5, "out", attempts=2, cached=True)}


def test_what_was_kept_is_said_in_the_log_of_the_run_on_disk_too(again, tmp_path):
    again()
    again()
    assert all(log.cached for log in read_run(tmp_path / "out-1" / "runs" / "old.jsonl").logs.values())


def test_the_time_that_is_said_is_when_the_oldest_answer_was_given(again, entries):
    again()
    lines = [json.loads(line) for line in entries()[0].read_text(encoding="utf-8").splitlines()]
    lines[2]["at"] -= 3600
    entries()[0].write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    _, _, told = again()
    assert f"{datetime.fromtimestamp(lines[2]['at'], UTC):%Y-%m-%d %H:%M} UTC" in told.notes[0]


@pytest.mark.parametrize(
    "change",
    [
        {"system": {"digest": "sha256:2"}},
        {"system": {"name": "new"}},
        {"texts": ("a", "b", "d")},
        {"texts": ("a", "b", "c", "d")},
        {"k": 11},
        {"repeats": 2},
        {"pilot": True},
        {"cache": "other"},
    ],
)
def test_whatever_changes_makes_it_another_question(again, change):
    again()
    change = dict(change)
    system = Asked(**change.pop("system", {}))
    asked, _, told = again(system, **change)
    assert len(asked) == len(change.get("texts", TEXTS)) * change.get("repeats", 1)
    assert told.notes == []


def test_an_answer_is_kept_for_each_of_two_questions(again, entries):
    again(k=5)
    again(k=7)
    assert len(entries()) == 2
    assert again(k=5)[0] == again(k=7)[0] == []


@pytest.mark.parametrize("change", [{"warm_up": 2}, {"seed": 4}, {"cache_h": 1.0}])
def test_how_it_is_asked_does_not_change_the_question(again, change):
    again()
    assert again(**change)[0] == []


def test_what_a_system_depends_on_is_part_of_the_question(again, tmp_path):
    (tmp_path / "index.db").write_text("one", encoding="utf-8")
    again(Asked(depends=[tmp_path / "index.db"]))
    assert again(Asked(depends=[tmp_path / "index.db"]))[0] == []
    (tmp_path / "index.db").write_text("two", encoding="utf-8")
    assert again(Asked(depends=[tmp_path / "index.db"]))[0] == ["q1", "q2", "q3"]


def test_refresh_asks_all_again_and_keeps_the_new_answers(again):
    again()
    other = Answer(Outcome.ANSWERED, (Hit("new"),))
    asked, run, told = again(Asked(answers=dict.fromkeys(TEXTS, other)), refresh=True)
    assert asked == ["q1", "q2", "q3"]
    assert told.notes == []
    assert not any(log.cached for log in run.logs.values())
    asked, run, _ = again()
    assert asked == []
    assert set(run.answers) == {"q1", "q2", "q3"}
    assert all(answer == other for answer in run.answers.values())


def test_without_a_folder_or_for_no_time_nothing_is_read_or_written(again, entries):
    again(cache=None)
    assert entries() == []
    again(cache_h=0.0)
    assert entries() == []
    again()
    assert again(cache=None)[0] == again(cache_h=0.0)[0] == ["q1", "q2", "q3"]


def test_a_failure_is_not_kept_and_an_empty_list_is(again, entries):
    texts = ("a", "fail", "nothing")
    _, run, _ = again(texts=texts)
    assert [answer.outcome.value for answer in run.answers.values()] == ["answered", "timeout", "empty"]
    asked, run, told = again(texts=texts)
    assert asked == ["q2"]
    assert "2 of 3 answers from the cache" in told.notes[0]
    assert "timeout" not in entries()[0].read_text(encoding="utf-8")
    assert [run.logs[query_id].cached for query_id in ("q1", "q2", "q3")] == [True, False, True]
    # mended: from now on all three are kept
    assert again(Asked(answers={"fail": ANSWER}), texts=texts)[0] == ["q2"]
    assert again(texts=texts)[0] == []


def test_an_answer_that_is_too_old_is_asked_anew_and_the_others_are_not(again, entries):
    again()
    lines = [json.loads(line) for line in entries()[0].read_text(encoding="utf-8").splitlines()]
    lines[2]["at"] -= 2 * 3600
    entries()[0].write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    assert again(cache_h=1.0)[0] == ["q2"]
    assert again(cache_h=1.0)[0] == [], "the new answer was kept beside the others"


def test_a_time_to_come_is_not_trusted(again, entries):
    again()
    text = entries()[0].read_text(encoding="utf-8")
    entries()[0].write_text(re.sub(r'"at":[\d.]+', f'"at":{time.time() + 10**6}', text), encoding="utf-8")
    assert again()[0] == ["q1", "q2", "q3"]


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: b"\x00\xff" * 40,
        lambda data: data[: len(data) // 2],
        lambda data: data[: data[:-1].rfind(b"\n") + 1],
        lambda data: data.replace(b'"at"', b'"or"'),
        lambda data: data.replace(b'"outcome"', b'"come"', 1),
        lambda data: data.replace(b"answered", b"missed", 1),
        lambda data: data.replace(b'"key":"', b'"key":"0'),
        lambda data: b"[]\n" + data,
        lambda data: data + data.splitlines(keepends=True)[1],
        lambda data: data.replace(b'"n":3', b'"n":' + b"[" * 100_000),
    ],
    ids=["nothing", "bytes", "half", "a line less", "no time", "no outcome", "odd outcome", "another key", "header", "a line more", "deep"],
)  # fmt: skip
def test_a_damaged_file_is_said_not_used_and_written_anew(again, entries, damage):
    again()
    entries()[0].write_bytes(damage(entries()[0].read_bytes()))
    asked, _, told = again()
    assert asked == ["q1", "q2", "q3"]
    assert told.notes == ["old: the cached answers are damaged and not used"]
    assert again()[0] == []


def test_a_folder_in_the_place_of_a_file_is_said_and_loses_no_collection(again, entries):
    again()
    path = entries()[0]
    path.unlink()
    path.mkdir()
    asked, run, told = again()
    assert asked == ["q1", "q2", "q3"]
    assert len(run.answers) == 3
    assert told.notes == [
        "old: the cached answers cannot be read: Is a directory",
        "old: answers could not be cached: Is a directory",
    ]


def test_a_cache_that_cannot_be_made_loses_no_collection(again, tmp_path):
    (tmp_path / "cache").write_text("a file", encoding="utf-8")
    asked, run, told = again()
    assert len(run.answers) == len(asked) == 3
    assert len(told.notes) == 2
    assert "old: answers could not be cached" in told.notes[1]


def test_what_is_too_large_to_be_told_apart_is_said_and_nothing_is_kept(again, entries, tmp_path, monkeypatch):
    monkeypatch.setattr(dependencies, "MAX_BYTES", 2)
    (tmp_path / "index.db").write_text("one", encoding="utf-8")
    _, _, told = again(Asked(depends=[tmp_path / "index.db"]))
    assert "old: every query is sent, and no answer is kept: the files it depends on are over" in told.notes[0]
    assert entries() == []
    assert again(Asked(depends=[tmp_path / "index.db"]))[0] == ["q1", "q2", "q3"]


def test_without_a_cache_nothing_is_said_of_what_is_too_large(again, tmp_path, monkeypatch):
    monkeypatch.setattr(dependencies, "MAX_BYTES", 2)
    (tmp_path / "index.db").write_text("one", encoding="utf-8")
    assert again(Asked(depends=[tmp_path / "index.db"]), cache=None)[2].notes == []


def test_answers_of_a_system_that_changed_while_it_was_asked_are_not_kept(again, entries, tmp_path):
    index = tmp_path / "index.db"
    index.write_text("one", encoding="utf-8")

    class Changing(Asked):
        def search(self, query, k):
            index.write_text(query.text, encoding="utf-8")
            return super().search(query, k)

    _, _, told = again(Changing(depends=[index]))
    assert told.notes == ["old: its dependencies (`depends`) changed while the queries were sent"]
    assert entries() == []


def test_old_files_are_removed_when_a_collection_ends_and_nothing_else(again, entries, tmp_path):
    again(k=5)
    name = entries()[0].name
    (tmp_path / "cache" / f".{name}.abc123.part").write_text("of a killed writer", encoding="utf-8")
    for other in ("notes.jsonl", "README"):
        (tmp_path / "cache" / other).write_text("not ours", encoding="utf-8")
    for path in entries():
        os.utime(path, (1, 1))
    again(k=7)
    left = [path.name for path in entries()]
    assert len(left) == 3
    assert {"README", "notes.jsonl"} < set(left)
    assert name not in left


def test_repeats_are_kept_with_the_answer(again):
    _, first, _ = again(repeats=3)
    asked, second, _ = again(repeats=3)
    assert asked == []
    assert (
        {log.repeat_ms for log in second.logs.values()}
        == {(12.5, 12.5)}
        == {log.repeat_ms for log in first.logs.values()}
    )


def test_a_system_whose_answers_are_all_kept_is_not_warmed_up(again):
    again()
    asked, _, told = again(warm_up=2)
    assert asked == []
    assert len(told.notes) == 1


def test_of_two_systems_each_has_its_own(testset_of, tmp_path):
    options = CollectOptions(cache_dir=tmp_path / "cache", cache_h=24)
    collect_all(testset_of(*TEXTS), [Asked("old")], out_dir=tmp_path / "a", options=options)
    old, new = Asked("old"), Asked("new")
    runs = collect_all(testset_of(*TEXTS), [old, new], out_dir=tmp_path / "b", options=options)
    assert (old.asked, new.asked) == ([], ["q1", "q2", "q3"])
    assert list(runs) == ["old", "new"]


def test_a_run_in_memory_uses_kept_answers_too(testset_of, tmp_path):
    options = CollectOptions(cache_dir=tmp_path / "cache", cache_h=24)
    first, second = Asked(), Asked()
    runs = [collect(testset_of(*TEXTS), system, options=options) for system in (first, second)]
    assert (len(first.asked), len(second.asked)) == (3, 0)
    assert runs[0].digest == runs[1].digest
    with pytest.raises(UsageError, match="a system's name is the name of its run's file"):
        collect(testset_of(*TEXTS), Asked("../old"), options=options)


def test_a_collection_that_was_cut_short_goes_on_with_both_its_journal_and_what_was_kept(testset_of, tmp_path):
    options = CollectOptions(cache_dir=tmp_path / "cache", cache_h=24)
    collect_all(testset_of("a", "fail", "fail"), [Asked()], out_dir=tmp_path / "first", options=options)

    class Broken(Asked):
        def search(self, query, k):
            if query.id == "q3":
                raise ZeroDivisionError
            return super().search(query, k)

    with pytest.raises(ZeroDivisionError):
        collect_all(testset_of("a", "fail", "fail"), [Broken()], out_dir=tmp_path / "out", options=options)
    system, told = Asked(), Told()
    runs = collect_all(
        testset_of("a", "fail", "fail"), [system], out_dir=tmp_path / "out", options=options, progress=told
    )
    # q1 was kept, q2 is in the journal (a failure that is not asked twice by one collection)
    assert system.asked == ["q3"]
    assert "resuming after 1 of 3 answers" in told.notes[0]
    assert "1 of 3 answers from the cache" in told.notes[1]
    assert [log.cached for log in runs["old"].logs.values()] == [True, False, False]


def test_a_secret_of_the_environment_is_in_no_file_of_the_cache(make_system, testset_of, tmp_path):
    source = "import os, sys; t = os.environ['TOKEN']; print('docs://a', t); print(t, file=sys.stderr)"
    system = make_system(source, env={"TOKEN": "hunter2-token"}, depends=[{"command": ["{python}", "--version"]}])
    collect_all(
        testset_of("a"),
        [system],
        out_dir=tmp_path / "out",
        options=CollectOptions(cache_dir=tmp_path / "cache", cache_h=24),
    )
    written = b"".join(path.read_bytes() for path in (tmp_path / "cache").iterdir())
    assert b"${TOKEN}" in written
    assert b"hunter2" not in written


PROCESS = """
import sys
from pathlib import Path
from cranfield.model import Answer, CallLog, Hit, Outcome, Query, TestSet
from cranfield.evaluation.options.blocks import CollectOptions
from cranfield.systems import collect_all

class Fast:
    name, order, concurrency, config_digest = "old", "given", 1, "sha256:1"
    def public_config(self):
        return {}
    def depends_on(self):
        return iter([Path(sys.executable)])
    def search(self, query, k):
        return Answer(Outcome.ANSWERED, (Hit("d" * 2000),)), CallLog(1.0)

here, me = Path(sys.argv[1]), sys.argv[2]
testset = TestSet("t", tuple(Query(f"q{n}", "text") for n in range(50)))
for n in range(10):
    options = CollectOptions(cache_dir=here / "cache", cache_h=24, refresh=n % 2 == 0)
    run = collect_all(testset, [Fast()], out_dir=here / f"{me}-{n}", options=options)["old"]
    assert len(run.answers) == 50
    assert all(log.cached == bool(n % 2) for log in run.logs.values()), "what was read was not whole"
"""


def test_two_processes_at_once_read_and_write_whole_files(tmp_path, script, forks):
    script(PROCESS, "process.py")
    started = [forks.start(tmp_path / "process.py", str(tmp_path), me) for me in ("one", "two")]
    errors = [process.communicate()[1] for process in started]
    assert errors == ["", ""]
    assert len(list((tmp_path / "cache").iterdir())) == 1


def test_fifty_kept_answers_of_two_systems_are_said_system_by_system(tmp_path):
    testset = TestSet("t", tuple(Query(f"q{n}", "text") for n in range(50)))
    options = CollectOptions(cache_dir=tmp_path / "cache", cache_h=24)
    for folder in ("first", "second"):
        told = Told()
        systems = [Asked("old"), Asked("new")]
        collect_all(testset, systems, out_dir=tmp_path / folder, options=options, progress=told)
    assert [note.split(" from the cache")[0] for note in told.notes] == [
        "old: 50 of 50 answers",
        "new: 50 of 50 answers",
    ]
    assert all(not system.asked for system in systems)


@pytest.mark.parametrize("hours", [0.0, 24.0])
def test_nothing_is_kept_of_a_system_that_does_not_say_what_it_depends_on(again, entries, hours):
    _, _, first = again(Asked(depends=()), cache_h=hours)
    asked, _, told = again(Asked(depends=()), cache_h=hours)
    assert asked == ["q1", "q2", "q3"]
    assert entries() == []
    why = [
        "old: every query is sent, and no answer is kept: list in its `depends` the files, the command or the field that change with its index"
    ]
    assert first.notes == told.notes == (why if hours else [])


def test_the_time_and_the_age_of_a_kept_answer_are_in_the_log(again, entries):
    _, first, _ = again()
    assert all(log.at and log.age_s is None for log in first.logs.values())
    lines = [json.loads(line) for line in entries()[0].read_text(encoding="utf-8").splitlines()]
    for line in lines[1:]:
        line["at"] -= 7200
    entries()[0].write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    _, second, _ = again()
    for log in second.logs.values():
        assert log.at == f"{datetime.fromtimestamp(lines[1]['at'], UTC):%Y-%m-%dT%H:%M:%SZ}"
        assert 7200 <= log.age_s < 7260
    # kept again: its time is that of the answer still
    assert all(log.age_s >= 7200 for log in again()[1].logs.values())


@pytest.mark.parametrize(
    ("settings", "is_declared"),
    [
        ({"http": {"url": "http://localhost:1/?q={query}"}, "extract": {"json": "hits"}}, False),
        ({"http": {"url": "http://localhost:1/?q={query}"}, "extract": {"json": "hits"}, "depends": ["build"]}, True),
        ({"http": {"url": "http://localhost:1/?q={query}"}, "extract": {"json": "hits", "fields": {"v": "v"}}, "depends": [{"field": "v"}]}, True),
        ({"mcp": {"command": ["serve"], "tool": "t"}, "extract": {"json": "hits"}}, False),
        ({"preset": "postgres", "with": {"dsn_env": "D", "table": "t", "columns": {"a": "A"}}}, False),
        ({"preset": "sqlite", "with": {"database": "d", "table": "t"}}, True),
        ({"command": ["find", "index.db", "{query}"], "extract": {"regex": "x"}}, False),
        ({"command": ["find", "{query}"], "extract": {"regex": "x"}, "depends": [{"command": ["find", "-v"]}]}, True),
    ],
)  # fmt: skip
def test_a_system_says_what_it_depends_on_in_depends_alone(settings, is_declared):
    from cranfield.config import expand_preset
    from cranfield.config.load import system_config
    from cranfield.systems.kinds.build import system_class

    config = system_config("s", settings)
    assert dependencies.is_declared(system_class(expand_preset(config).kind)("s", config)) is is_declared


def test_a_fusion_says_what_it_depends_on_where_each_part_does(tmp_path):
    from cranfield.config import load_config
    from cranfield.systems import build_systems

    part = "{{command: [find, '{{query}}'], extract: {{regex: x}}{}}}"
    for second, expected in (("", False), (", depends: [b]", True)):
        (tmp_path / "cranfield.yaml").write_text(
            "testset: t.yaml\nsystems:\n"
            f"  a: {part.format(', depends: [a]')}\n  b: {part.format(second)}\n  c: {{fusion: {{of: [a, b]}}}}\n"
        )
        systems = {system.name: system for system in build_systems(load_config(tmp_path / "cranfield.yaml"))}
        assert dependencies.is_declared(systems["c"]) is expected
