"""Warm-up, queries that are asked again, and what is told apart."""

import json
from collections import defaultdict

import pytest

from cranfield.base.errors import UsageError
from cranfield.evaluation.options.blocks import CollectOptions
from cranfield.formats.runs.jsonl import read_run
from cranfield.model import Answer, CallLog, Hit, Outcome
from cranfield.systems import collect_all
from cranfield.systems.collect.collection import collect
from cranfield.systems.collect.journal import difference
from cranfield.systems.collect.progress import Silent


class Told(Silent):
    """A progress that remembers its notes, and how far it was told to go."""

    def __init__(self):
        self.notes = []
        self.starts = []
        self.advanced = 0

    def start(self, system, total, done):
        self.starts.append((system, total, done))

    def advance(self, system, query, answer, log):
        self.advanced += 1

    def note(self, text):
        self.notes.append(text)


class Scripted:
    """A system that has an answer for each time a query is asked; the last one stays."""

    order = "given"
    concurrency = 1

    def __init__(self, answers, name="sut", seen=None):
        self.name = name
        self.config_digest = f"sha256:{name}"
        self._answers = answers
        self._request_server = defaultdict(int)
        self.seen = [] if seen is None else seen

    def public_config(self):
        return {}

    def search(self, query, k):
        self.seen.append((self.name, query.id))
        times = self._answers[query.id] if isinstance(self._answers, dict) else self._answers
        answer = times[min(self._request_server[query.id], len(times) - 1)]
        self._request_server[query.id] += 1
        return answer, CallLog(10.0 * self._request_server[query.id])


def hits(*ids):
    return Answer(Outcome.ANSWERED, tuple(map(Hit, ids)))


TIMEOUT = Answer(Outcome.TIMEOUT, reason="no answer in 30 s")
SAME = [hits("d1", "d7")]


@pytest.mark.parametrize(
    ("first", "later", "order", "said"),
    [
        (hits("d1", "d7"), hits("d1", "d7"), "given", None),
        (hits("d1", "d7"), hits("d1", "d9"), "given", "rank 2: d7, then d9"),
        (hits("d1", "d7"), hits("d7", "d1"), "given", "rank 1: d1, then d7"),
        (hits(*"abcdefghijkl"), hits(*"abcdefghij"), "given", "12 results, then 10"),
        (hits("d1"), TIMEOUT, "given", "answered, then timeout"),
        (TIMEOUT, hits("d1"), "given", "timeout, then answered"),
        (hits("d1"), Answer(Outcome.EMPTY), "given", "answered, then empty"),
        (TIMEOUT, Answer(Outcome.TIMEOUT, reason="another"), "given", None),
        (Answer(Outcome.ANSWERED, (Hit("f", span="1-2"),)), Answer(Outcome.ANSWERED, (Hit("f", span="3-4"),)), "given", "rank 1: f at 1-2, then at 3-4"),
        (Answer(Outcome.ANSWERED, (Hit("d", 0.5),)), Answer(Outcome.ANSWERED, (Hit("d", 0.25),)), "given", None),
        (Answer(Outcome.ANSWERED, (Hit("d", 0.5),)), Answer(Outcome.ANSWERED, (Hit("d", 0.25),)), "descending", "rank 1: d with 0.5, then with 0.25"),
        (Answer(Outcome.ANSWERED, (Hit("d"),), fields={"ms": 1}), Answer(Outcome.ANSWERED, (Hit("d"),), fields={"ms": 2}), "given", None),
    ],
)  # fmt: skip
def test_two_answers_differ_in_the_first_thing_that_could_be_measured(first, later, order, said):
    assert difference(first, later, order) == said


def test_the_first_answer_is_the_one_that_counts_and_the_others_are_in_the_log(testset_of, tmp_path):
    system = Scripted({"q1": [hits("d1"), hits("d2"), hits("d1"), TIMEOUT], "q2": SAME})
    told = Told()
    runs = collect_all(
        testset_of("a", "b"), [system], out_dir=tmp_path / "out", options=CollectOptions(repeats=4), progress=told
    )
    assert runs["sut"].answers == {"q1": hits("d1"), "q2": hits("d1", "d7")}
    assert runs["sut"].logs == {
        "q1": CallLog(10.0, repeat_ms=(20.0, 30.0, 40.0), unstable=("rank 1: d1, then d2", "answered, then timeout")),
        "q2": CallLog(10.0, repeat_ms=(20.0, 30.0, 40.0)),
    }
    assert read_run(tmp_path / "out" / "runs" / "sut.jsonl") == runs["sut"]
    assert told.starts == [("sut", 8, 0)]
    assert told.advanced == 8
    assert told.notes == ["sut: 1 of 2 queries had different answers in repeated calls (q1: rank 1: d1, then d2)"]


def test_a_system_that_always_answers_the_same_is_not_talked_about(testset_of):
    told = Told()
    run = collect(testset_of("a", "b"), Scripted(SAME), options=CollectOptions(repeats=3), progress=told)
    assert told.notes == []
    assert not any(log.unstable for log in run.logs.values())


def test_the_digest_of_a_run_does_not_know_that_it_was_repeated(testset_of):
    system = Scripted([hits("d1"), hits("d2")])
    once = collect(testset_of("a"), Scripted([hits("d1")]))
    assert collect(testset_of("a"), system, options=CollectOptions(repeats=2)).digest == once.digest


def test_queries_are_asked_again_when_all_have_been_asked_and_not_back_to_back(testset_of, tmp_path):
    seen = []
    systems = [Scripted(SAME, name, seen) for name in ("old", "new")]
    collect_all(testset_of("a", "b", "c"), systems, out_dir=tmp_path / "out", options=CollectOptions(repeats=2))
    assert [query_id for _, query_id in seen] == ["q1", "q1", "q2", "q2", "q3", "q3"] * 2


def test_warm_up_asks_the_first_queries_beforehand_and_throws_their_answers_away(testset_of, tmp_path):
    # What the first call brings would be told from what the second brings.
    systems = [Scripted([hits("cold"), hits("warm")], name) for name in ("old", "new")]
    told = Told()
    runs = collect_all(
        testset_of("a", "b", "c"), systems, out_dir=tmp_path / "out", options=CollectOptions(warm_up=2), progress=told
    )
    for run in runs.values():
        assert [answer.hits[0].id for answer in run.answers.values()] == ["warm", "warm", "cold"]
        assert run.logs["q1"] == CallLog(20.0), "nothing of the warm-up is in the log"
    assert [query_id for _, query_id in systems[0].seen] == ["q1", "q2", "q1", "q2", "q3"]
    assert told.advanced == 6
    assert told.notes == ["warm-up: 2 queries, answers discarded"]


def test_a_warm_up_that_fails_is_no_failure(testset_of):
    run = collect(testset_of("a"), Scripted([TIMEOUT, hits("d1")]), options=CollectOptions(warm_up=5))
    assert run.answers == {"q1": hits("d1")}


def test_nothing_of_a_warm_up_is_in_a_journal(testset_of, tmp_path):
    class Breaking(Scripted):
        def search(self, query, k):
            if len(self.seen) == 3:
                raise ZeroDivisionError
            return super().search(query, k)

    with pytest.raises(ZeroDivisionError):
        collect_all(testset_of("a", "b"), [Breaking(SAME)], out_dir=tmp_path / "out", options=CollectOptions(warm_up=2))
    lines = (tmp_path / "out" / ".partial" / "sut.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line).get("query_id") for line in lines] == [None, "q1"]


def test_cut_short_while_asking_again_it_goes_on_there(testset_of, tmp_path):
    class Breaking(Scripted):
        def search(self, query, k):
            if len(self.seen) == 5:
                raise ZeroDivisionError
            return super().search(query, k)

    options = CollectOptions(repeats=3)
    answers = {"q1": [hits("d1"), hits("d2")], "q2": SAME}
    first = Breaking(answers)
    with pytest.raises(ZeroDivisionError):
        collect_all(testset_of("a", "b"), [first], out_dir=tmp_path / "out", options=options)
    told, second = Told(), Scripted(SAME)
    runs = collect_all(testset_of("a", "b"), [second], out_dir=tmp_path / "out", options=options, progress=told)
    assert [query_id for _, query_id in first.seen] == ["q1", "q2", "q1", "q2", "q1"]
    assert [query_id for _, query_id in second.seen] == ["q2"]
    assert told.starts == [("sut", 6, 5)]
    assert runs["sut"].logs["q1"].repeat_ms == (20.0, 30.0)
    assert runs["sut"].logs["q1"].unstable == ("rank 1: d1, then d2",) * 2


def test_another_number_of_repeats_is_another_collection(testset_of, tmp_path):
    class Broken(Scripted):
        def search(self, query, k):
            if query.id == "q2":
                raise ZeroDivisionError
            return super().search(query, k)

    with pytest.raises(ZeroDivisionError):
        collect_all(testset_of("a", "b"), [Broken(SAME)], out_dir=tmp_path / "out")
    told, system = Told(), Scripted(SAME)
    collect_all(
        testset_of("a", "b"), [system], out_dir=tmp_path / "out", options=CollectOptions(repeats=2), progress=told
    )
    assert len(system.seen) == 4
    assert "because the number of repeats changed" in told.notes[0]


@pytest.mark.parametrize("options", [{"repeats": 0}, {"warm_up": -1}, {"cache_h": -1.0}, {"cache_h": float("nan")}])
def test_numbers_that_mean_nothing_are_refused(options):
    with pytest.raises(UsageError, match=r"expected a (whole )?number"):
        CollectOptions(**options)
