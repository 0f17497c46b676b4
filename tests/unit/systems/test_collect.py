import json
import signal
import threading
import time
from pathlib import Path

import pytest

from cranfield.base.errors import UsageError
from cranfield.formats.runs.jsonl import read_run
from cranfield.model import Answer, CallLog, Hit, Outcome, Query
from cranfield.systems import collect_all
from cranfield.systems.collect.collection import Interrupted, collect
from cranfield.systems.system import CallInterruptedError, System

COUNTING = """
import os, sys
with open("calls.txt", "a") as calls:
    calls.write(sys.argv[1] + "\\n")
print("docs://" + sys.argv[1])
"""


class Told:
    """A progress that remembers what it was told."""

    def __init__(self):
        self.notes = []
        self.starts = []
        self.advanced = []
        self.finished = 0

    def start(self, system, total, done):
        self.starts.append((system, total, done))

    def advance(self, system, query, answer, log):
        self.advanced.append((query.id, answer.outcome))

    def note(self, text):
        self.notes.append(text)

    def finish(self):
        self.finished += 1


class InCode:
    """A system that is a function: the protocol is all it needs."""

    name = "in-code"
    order = "given"
    concurrency = 1
    config_digest = "sha256:code"

    def __init__(self, search):
        self._search = search

    def public_config(self):
        return {"kind": "function"}

    def search(self, query, k):
        return self._search(query, k)


def hit_of(query: Query, k: int):
    return Answer(Outcome.ANSWERED, (Hit(query.text),)), CallLog(1.0)


@pytest.fixture
def told():
    return Told()


@pytest.fixture
def calls(tmp_path):
    """What the counting system was asked, so far."""

    def _calls() -> list[str]:
        path = tmp_path / "calls.txt"
        return path.read_text(encoding="utf-8").split() if path.exists() else []

    return _calls


def written(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


class TestInMemory:
    def test_a_run_holds_every_answer_in_the_order_of_the_test_set(self, make_system, testset_of, told):
        system = make_system("import sys; print('docs://' + sys.argv[1])", env={"TOKEN": "hunter2"}, concurrency=2)
        testset = testset_of("c", "a", "b")
        run = collect(testset, system, k=5, progress=told)
        assert [(key, answer.hits[0].id) for key, answer in run.answers.items()] == [
            ("q1", "docs://c"),
            ("q2", "docs://a"),
            ("q3", "docs://b"),
        ]
        assert list(run.logs) == ["q1", "q2", "q3"]
        assert (run.name, run.depth, run.order, run.pilot) == ("sut", 5, "given", False)
        assert (run.testset_digest, run.config_digest) == (testset.digest, system.config_digest)
        assert run.config == system.public_config()
        assert run.config["env"] == ["TOKEN"]
        assert told.starts == [("sut", 3, 0)]
        assert sorted(told.advanced) == [(f"q{n}", Outcome.ANSWERED) for n in (1, 2, 3)]
        assert told.finished == 1

    def test_answers_keep_the_order_of_the_test_set_whatever_comes_first(self, make_system, testset_of):
        system = make_system(
            "import sys, time; time.sleep(float(sys.argv[1])); print('docs://' + sys.argv[1])", concurrency=3
        )
        run = collect(testset_of("0.4", "0.2", "0"), system)
        assert [answer.hits[0].id for answer in run.answers.values()] == ["docs://0.4", "docs://0.2", "docs://0"]

    def test_as_many_calls_are_under_way_as_the_config_allows_and_no_more(self, make_system, testset_of, tmp_path):
        # The first three wait for each other; then each looks whether there is a fourth.
        source = (
            "import sys, time; from pathlib import Path; here, three = Path(sys.argv[1]), Path('three'); here.touch()\n"
            "def under_way(): return len(list(Path().glob('under-way-*')))\n"
            "while not three.exists():\n"
            "    if under_way() >= 3: three.touch()\n"
            "    time.sleep(0.01)\n"
            "time.sleep(0.1); print(f'docs://{under_way()}'); here.unlink()"
        )
        texts = [f"under-way-{n}" for n in range(9)]
        run = collect(testset_of(*texts), make_system(source, concurrency=3))
        at_once = [int(answer.hits[0].id.removeprefix("docs://")) for answer in run.answers.values()]
        assert max(at_once) == 3

    def test_any_object_with_the_protocol_is_a_system(self, testset_of):
        system: System = InCode(hit_of)
        run = collect(testset_of("a"), system)
        assert run.answers["q1"].hits == (Hit("a"),)
        assert run.config == {"kind": "function"}

    def test_an_error_of_a_system_ends_the_collection_and_is_not_swallowed(self, testset_of):
        asked = []

        def search(query, k):
            asked.append(query.id)
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            collect(testset_of("a", "b", "c", "d"), InCode(search))
        assert asked == ["q1"]

    def test_k_is_at_least_one(self, testset_of):
        with pytest.raises(UsageError, match="expected 1 or more, got 0"):
            collect(testset_of("a"), InCode(hit_of), k=0)

    def test_a_test_set_without_queries_gives_an_empty_run(self, testset_of):
        assert collect(testset_of(), InCode(hit_of)).answers == {}


class TestOnDisk:
    def test_runs_and_their_logs_are_written_and_nothing_else_is_left(self, make_system, testset_of, tmp_path):
        systems = [make_system(COUNTING, name="old"), make_system(COUNTING, name="new")]
        out = tmp_path / "deep" / "out"
        runs = collect_all(testset_of("a", "b"), systems, out_dir=out, k=3)
        assert list(runs) == ["old", "new"]
        assert list(written(out)) == ["runs/new.jsonl", "runs/new.log.jsonl", "runs/old.jsonl", "runs/old.log.jsonl"]
        assert not (out / ".partial").exists()
        back = read_run(out / "runs" / "old.jsonl")
        assert back == runs["old"]
        assert back.digest == runs["old"].digest

    def test_collected_again_the_runs_are_byte_identical(self, make_system, testset_of, tmp_path, calls):
        source = (
            "import json, sys; open('calls.txt', 'a').write('x\\n');"
            "print(json.dumps({'r': [{'i': 'b', 's': 0.1 + 0.2}, {'i': 'a', 's': -0.0}], 'm': {'c': 1e-7, 'd': [1, None]}}))"
        )
        extract = {"json": "r", "id": "i", "score": "s", "fields": {"m": "m", "none": "x"}}
        for folder in ("one", "two"):
            system = make_system(source, extract=extract, concurrency=2)
            collect_all(testset_of("a", "b", "c"), [system], out_dir=tmp_path / folder)
        assert len(calls()) == 6
        first, second = (written(tmp_path / folder)["runs/sut.jsonl"] for folder in ("one", "two"))
        assert first == second

    def test_secrets_are_in_no_file(self, make_system, testset_of, tmp_path):
        source = (
            "import os, sys; t = os.environ['TOKEN']; print('docs://a', t); print(t, file=sys.stderr);"
            "sys.exit(sys.argv[1] == 'fail')"
        )
        system = make_system(source, env={"TOKEN": "hunter2-token"})
        out = tmp_path / "out"
        seen = []

        class Watching(Told):
            def advance(self, system, query, answer, log):
                seen.append(b"".join(written(out).values()))

        collect_all(testset_of("a", "fail"), [system], out_dir=out, progress=Watching())
        everything = b"".join([*seen, *written(out).values()])
        assert b"${TOKEN}" in everything, "the program's words are kept"
        assert b"hunter2" not in everything

    def test_a_run_of_a_pilot_says_so(self, make_system, testset_of, tmp_path):
        collect_all(testset_of("a"), [make_system(COUNTING)], out_dir=tmp_path / "out", pilot=True)
        assert read_run(tmp_path / "out" / "runs" / "sut.jsonl").pilot is True

    @pytest.mark.parametrize("name", ["../x", "", "a/b", ".hidden", "a b", "old.log", "x" * 65])
    def test_a_name_that_is_no_file_name_is_refused_before_anything_is_asked(self, testset_of, tmp_path, name):
        system = InCode(None)
        system.name = name
        with pytest.raises(UsageError, match="a system's name is the name of its run's file"):
            collect_all(testset_of("a"), [system], out_dir=tmp_path / "out")

    def test_two_systems_of_one_name_are_refused(self, testset_of, tmp_path):
        one, two = InCode(None), InCode(None)
        one.name, two.name = "Old", "old"
        with pytest.raises(UsageError, match="two systems have the same name"):
            collect_all(testset_of("a"), [one, two], out_dir=tmp_path / "out")

    def test_two_collections_in_one_folder_do_not_mix(self, testset_of, tmp_path):
        inside, go_on = threading.Event(), threading.Event()

        def search(query, k):
            inside.set()
            go_on.wait(10)
            return hit_of(query, k)

        thread = threading.Thread(
            target=collect_all, args=(testset_of("a"), [InCode(search)]), kwargs={"out_dir": tmp_path / "out"}
        )
        thread.start()
        inside.wait(10)
        with pytest.raises(UsageError, match="another collection is writing here"):
            collect_all(testset_of("a"), [InCode(hit_of)], out_dir=tmp_path / "out")
        go_on.set()
        thread.join(10)
        assert list(written(tmp_path / "out")) == ["runs/in-code.jsonl", "runs/in-code.log.jsonl"]

    def test_a_folder_that_cannot_be_made_is_an_error_with_its_name(self, testset_of, tmp_path):
        (tmp_path / "out").write_text("a file", encoding="utf-8")
        with pytest.raises(UsageError) as caught:
            collect_all(testset_of("a"), [InCode(hit_of)], out_dir=tmp_path / "out")
        assert "out" in str(caught.value)

    def test_systems_are_left_open_for_whoever_made_them(self, testset_of, tmp_path):
        class Closing(InCode):
            is_open = True

            def close(self):
                self.is_open = False

        system = Closing(hit_of)
        collect_all(testset_of("a"), [system], out_dir=tmp_path / "out")
        collect(testset_of("a"), system)
        assert system.is_open


class TestGoingOn:
    @pytest.fixture
    def breaking(self, tmp_path, wait_for):
        """A system that fails us in some of its queries, when the other system has answered all of its own."""

        def _breaking(*query_ids, after):
            journal = tmp_path / "out" / ".partial" / "sut.jsonl"

            def search(query, k):
                if query.id in query_ids:
                    wait_for(lambda: journal.read_bytes().count(b"\n") == 1 + after)
                    raise ZeroDivisionError
                return hit_of(query, k)

            system = InCode(search)
            system.concurrency = 4  # all of its calls wait, and there is room for one of the other
            return system

        return _breaking

    @pytest.fixture
    def cut_short(self, make_system, testset_of, tmp_path, calls, breaking):
        """Two systems of three queries; the second system fails us in its second query."""

        def _cut(**options):
            second = breaking("q2", "q3", after=3)
            with pytest.raises(ZeroDivisionError):
                collect_all(
                    testset_of("a", "b", "c"), [make_system(COUNTING), second], out_dir=tmp_path / "out", **options
                )
            assert calls() == ["a", "b", "c"]

        return _cut

    def again(self, make_system, testset, tmp_path, told, *, config=None, **options):
        systems = [make_system(COUNTING, **(config or {})), InCode(hit_of)]
        return collect_all(testset, systems, out_dir=tmp_path / "out", progress=told, **options)

    def test_what_was_collected_is_kept_and_not_asked_again(
        self, cut_short, make_system, testset_of, tmp_path, told, calls
    ):
        cut_short()
        assert not (tmp_path / "out" / "runs").exists(), "no run before all systems are done"
        runs = self.again(make_system, testset_of("a", "b", "c"), tmp_path, told)
        assert calls() == ["a", "b", "c"]
        assert told.starts == [("sut", 3, 3), ("in-code", 3, 1)]
        assert [key for key, _ in told.advanced] == ["q2", "q3"]
        assert "resuming after 3 of 3 answers" in told.notes[0]
        assert list(runs["in-code"].answers) == ["q1", "q2", "q3"]
        fresh = collect(testset_of("a", "b", "c"), make_system(COUNTING))
        assert runs["sut"].digest == fresh.digest
        assert not (tmp_path / "out" / ".partial").exists()

    @pytest.mark.parametrize(
        ("change", "said"),
        [
            ({"config": {"timeout_s": 29}}, "the system's config changed"),
            ({"config": {"env": {"A": "b"}}}, "the system's config changed"),
            ({"k": 11}, "k changed"),
            ({"pilot": True}, "the pilot setting changed"),
            ({"texts": ("a", "b", "d")}, "the test set changed"),
            ({"k": 11, "pilot": True}, "k changed and the pilot setting changed"),
        ],
    )
    def test_answers_of_another_collection_are_set_aside_and_that_is_said(
        self, cut_short, make_system, testset_of, tmp_path, told, calls, change, said
    ):
        cut_short()
        options = dict(change)
        testset = testset_of(*options.pop("texts", ("a", "b", "c")))
        self.again(make_system, testset, tmp_path, told, **options)
        assert len(calls()) == 6
        assert told.notes[0] == (
            f"sut: starting over, because {said}; the earlier answers are in .partial/set-aside/sut-1.jsonl"
        )
        kept = (tmp_path / "out" / ".partial" / "set-aside" / "sut-1.jsonl").read_text(encoding="utf-8")
        assert kept.count("\n") == 4  # the header and three answers

    def test_a_program_that_changed_meanwhile_is_asked_afresh(
        self, cut_short, make_system, testset_of, tmp_path, told, calls
    ):
        cut_short()
        systems = [make_system(COUNTING + "# built again"), InCode(hit_of)]
        collect_all(testset_of("a", "b", "c"), systems, out_dir=tmp_path / "out", progress=told)
        assert len(calls()) == 6
        assert "sut: starting over, because the dependencies of the system changed" in told.notes[0]

    def test_a_journal_of_another_version_is_set_aside(self, cut_short, make_system, testset_of, tmp_path, told, calls):
        cut_short()
        journal = tmp_path / "out" / ".partial" / "sut.jsonl"
        journal.write_bytes(journal.read_bytes().replace(b'"journal":1', b'"journal":2', 1))
        self.again(make_system, testset_of("a", "b", "c"), tmp_path, told)
        assert len(calls()) == 6
        assert "because it was written by another version of Cranfield" in told.notes[0]

    def test_a_pilot_never_becomes_the_record(self, cut_short, make_system, testset_of, tmp_path, told, calls):
        cut_short(pilot=True)
        runs = self.again(make_system, testset_of("a", "b", "c"), tmp_path, told)
        assert len(calls()) == 6
        assert not runs["sut"].pilot

    def test_what_is_set_aside_twice_is_kept_twice(self, cut_short, make_system, testset_of, tmp_path, told):
        cut_short()
        journal = tmp_path / "out" / ".partial" / "sut.jsonl"
        before = journal.read_bytes()
        self.again(make_system, testset_of("a", "b", "c"), tmp_path, told, k=11)
        journal.write_bytes(before)
        self.again(make_system, testset_of("a", "b", "c"), tmp_path, told, k=12)
        assert sorted(path.name for path in (journal.parent / "set-aside").glob("sut-*")) == [
            "sut-1.jsonl",
            "sut-2.jsonl",
        ]

    @pytest.mark.parametrize("kept_bytes", [-1, -2, -40])
    def test_a_last_line_that_was_cut_off_is_dropped_and_asked_again(
        self, cut_short, make_system, testset_of, tmp_path, told, calls, breaking, kept_bytes
    ):
        cut_short()
        journal = tmp_path / "out" / ".partial" / "sut.jsonl"
        journal.write_bytes(journal.read_bytes()[:kept_bytes])
        broken = breaking("q1", "q2", "q3", after=3)
        with pytest.raises(ZeroDivisionError):
            collect_all(testset_of("a", "b", "c"), [make_system(COUNTING), broken], out_dir=tmp_path / "out")
        mended = [json.loads(line) for line in journal.read_bytes().splitlines()]
        assert [record.get("query_id") for record in mended] == [None, "q1", "q2", "q3"]
        runs = self.again(make_system, testset_of("a", "b", "c"), tmp_path, told)
        assert calls() == ["a", "b", "c", "c"]
        assert [answer.hits[0].id for answer in runs["sut"].answers.values()] == ["docs://a", "docs://b", "docs://c"]

    @pytest.mark.parametrize("left", [0, 5])
    def test_a_journal_cut_off_in_its_header_holds_nothing(
        self, cut_short, make_system, testset_of, tmp_path, told, calls, left
    ):
        cut_short()
        journal = tmp_path / "out" / ".partial" / "sut.jsonl"
        journal.write_bytes(journal.read_bytes()[:left])
        self.again(make_system, testset_of("a", "b", "c"), tmp_path, told)
        assert len(calls()) == 6
        assert not any("sut" in note for note in told.notes)

    def test_a_journal_of_another_version_without_answers_is_not_set_aside(
        self, cut_short, make_system, testset_of, tmp_path, told, calls
    ):
        cut_short()
        journal = tmp_path / "out" / ".partial" / "sut.jsonl"
        header, *_ = journal.read_bytes().splitlines(keepends=True)
        journal.write_bytes(header.replace(b'"journal":1', b'"journal":2', 1))
        self.again(make_system, testset_of("a", "b", "c"), tmp_path, told)
        assert len(calls()) == 6
        assert not any("sut" in note for note in told.notes)

    @pytest.mark.parametrize("damage", ["not json", '{"query_id": 3}', "[]", '{"query_id": "q9", "outcome": "odd"}'])
    def test_a_damaged_journal_is_set_aside(self, cut_short, make_system, testset_of, tmp_path, told, calls, damage):
        cut_short()
        journal = tmp_path / "out" / ".partial" / "sut.jsonl"
        lines = journal.read_text(encoding="utf-8").splitlines()
        lines[2] = damage
        journal.write_text("\n".join(lines) + "\n", encoding="utf-8")
        self.again(make_system, testset_of("a", "b", "c"), tmp_path, told)
        assert "because it is damaged" in told.notes[0]
        assert len(calls()) == 6

    def test_failures_are_answers_too_and_are_not_asked_again(self, make_system, testset_of, tmp_path, calls, breaking):
        source = COUNTING + "\nsys.exit(4)"
        with pytest.raises(ZeroDivisionError):
            collect_all(testset_of("a"), [make_system(source), breaking("q1", after=1)], out_dir=tmp_path / "out")
        runs = collect_all(testset_of("a"), [make_system(source), InCode(hit_of)], out_dir=tmp_path / "out")
        assert calls() == ["a"]
        assert runs["sut"].answers["q1"] == Answer(Outcome.NONZERO_EXIT, reason="exit status 4")
        assert runs["sut"].logs["q1"].stdout_head == "docs://a\n"

    def test_an_id_that_is_no_unicode_survives_journal_and_run(
        self, make_system, testset_of, tmp_path, calls, breaking
    ):
        ids = ["a\ud800", "\udc00b", "c\u2028d\u00e9"]
        source = f"{COUNTING.replace('print', '#')}\nprint({json.dumps({'r': ids})!r})"
        system = make_system(source, extract={"json": "r"})
        with pytest.raises(ZeroDivisionError):
            collect_all(testset_of("x"), [system, breaking("q1", after=1)], out_dir=tmp_path / "out")
        runs = collect_all(testset_of("x"), [system, InCode(hit_of)], out_dir=tmp_path / "out")
        assert calls() == ["x"]
        assert [hit.id for hit in runs["sut"].answers["q1"].hits] == ids
        assert read_run(tmp_path / "out" / "runs" / "sut.jsonl").digest == runs["sut"].digest


def test_each_answer_is_on_disk_before_the_next_is_asked(testset_of, tmp_path):
    seen = []

    def search(query, k):
        journal = tmp_path / "out" / ".partial" / "in-code.jsonl"
        seen.append([json.loads(line).get("query_id") for line in journal.read_bytes().splitlines()[1:]])
        return hit_of(query, k)

    collect_all(testset_of("a", "b", "c"), [InCode(search)], out_dir=tmp_path / "out")
    assert seen == [[], ["q1"], ["q1", "q2"]]


def test_calls_that_wait_for_each_other_all_get_their_answer(make_system, testset_of):
    source = (
        "import sys, time; from pathlib import Path; Path(sys.argv[1] + '.here').touch();"
        "any(len(list(Path().glob('*.here'))) == 6 or time.sleep(0.01) for _ in range(6000)); print('docs://a')"
    )
    run = collect(testset_of(*"abcdef"), make_system(source, concurrency=6, timeout_s=50))
    assert [answer.outcome for answer in run.answers.values()] == [Outcome.ANSWERED] * 6


class Deaf(InCode):
    """Its call sends us SIGTERM in its own thread, so that the waiting main thread is not woken, and then hangs."""

    def __init__(self):
        super().__init__(self._hang)
        self._ended = threading.Event()

    def _hang(self, query, k):
        time.sleep(0.5)  # until the main thread waits
        signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
        if self._ended.wait(40):
            raise CallInterruptedError
        return hit_of(query, k)

    def interrupt(self):
        self._ended.set()


def test_a_signal_that_does_not_wake_us_is_heard_before_the_call_under_way_ends(tmp_path, testset_of):
    began = time.monotonic()
    with pytest.raises(Interrupted):
        collect_all(testset_of("a", "b"), [Deaf()], out_dir=tmp_path / "out")
    assert time.monotonic() - began < 20
