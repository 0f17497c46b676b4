"""Which call begins when: turns, rooms, rates."""

import threading
import time
from collections import Counter

import pytest

from cranfield.model import Answer, CallLog, Hit, Outcome, Query, TestSet
from cranfield.systems import collect_all
from cranfield.systems.collect.collector import AHEAD, Dispatcher, interleave
from cranfield.systems.system import CallInterruptedError

FOUND = Answer(Outcome.ANSWERED, (Hit("d"),))


class Watched:
    """A system in this process that notes what it is asked, and how many of its calls are under way."""

    order = "given"

    def __init__(self, name="sut", *, concurrency=1, rate_per_s=None, takes_s=0.0, seen=None, total=None):
        self.name = name
        self.concurrency = concurrency
        self.rate_per_s = rate_per_s
        self.config_digest = f"sha256:{name}"
        self.seen = [] if seen is None else seen
        self.most = 0
        self._takes_s = takes_s
        self._under_way = 0
        self._lock = threading.Lock()
        self._total = total

    def public_config(self):
        return {}

    def search(self, query, k):
        with self._lock:
            self.seen.append((self.name, query.id))
            self._under_way += 1
            self.most = max(self.most, self._under_way)
        if self._total is not None:
            self._total.begin()
        time.sleep(self._takes_s)
        if self._total is not None:
            self._total.end()
        with self._lock:
            self._under_way -= 1
        return FOUND, CallLog(1.0)


class Total:
    """Calls under way over all systems."""

    def __init__(self):
        self.most = 0
        self._now = 0
        self._lock = threading.Lock()

    def begin(self):
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)

    def end(self):
        with self._lock:
            self._now -= 1


def queries(n):
    return [Query(f"q{number}", f"text {number}") for number in range(1, n + 1)]


def ask(systems, n, *, seed=0):
    taken = []
    calls = interleave(queries(n), systems, seed=seed, repetition=1)
    Dispatcher(systems, 10).ask(calls, lambda call, answer, log: taken.append((call.system.name, call.query.id)))
    return taken


def test_queries_are_asked_one_by_one_and_each_of_every_system():
    seen = []
    ask([Watched("a", seen=seen), Watched("b", seen=seen), Watched("c", seen=seen)], 20)
    assert [query_id for _, query_id in seen] == [f"q{n}" for n in range(1, 21) for _ in "abc"]
    assert all({name for name, _ in seen[place : place + 3]} == set("abc") for place in range(0, 60, 3))


def test_no_system_is_always_the_first():
    calls = interleave(queries(300), [Watched("a"), Watched("b")], seed=0, repetition=1)
    firsts = Counter(call.system.name for call in calls[::2])
    # 300 fair coins: 150, and five standard deviations of sqrt(300) / 2 = 8.7
    assert abs(firsts["a"] - 150) < 44


def test_the_order_is_drawn_anew_for_each_seed_and_each_time_and_is_the_same_in_every_process():
    systems = [Watched("a"), Watched("b")]

    def firsts(**drawn):
        return "".join(call.system.name for call in interleave(queries(12), systems, **drawn)[::2])

    assert firsts(seed=0, repetition=1) == "abbbabaabaab"
    assert len({firsts(seed=seed, repetition=time) for seed in (0, 1) for time in (1, 2)}) == 4


def test_the_order_of_two_systems_does_not_depend_on_a_third():
    two, three = ([Watched(name) for name in names] for names in ("ab", "abc"))
    names = [
        [call.system.name for call in interleave(queries(9), those, seed=3, repetition=1)] for those in (two, three)
    ]
    assert names[0] == [name for name in names[1] if name != "c"]


def test_every_call_is_taken_once():
    systems = [Watched("a", concurrency=5), Watched("b", concurrency=3)]
    taken = ask(systems, 40)
    assert Counter(taken) == Counter((name, f"q{n}") for n in range(1, 41) for name in "ab")


def test_a_system_has_as_many_calls_under_way_as_it_allows_and_all_together_as_many_as_the_largest():
    total = Total()
    few, many = (Watched(str(n), concurrency=n, takes_s=0.02, total=total) for n in (2, 5))
    ask([few, many], 30)
    assert (few.most, total.most) == (2, 5)
    assert many.most <= 5


def test_at_one_call_a_system_there_is_one_call_in_all_so_that_latency_is_clean():
    total = Total()
    ask([Watched(name, takes_s=0.005, total=total) for name in "abc"], 10)
    assert total.most == 1


def test_calls_of_a_system_begin_no_faster_than_its_rate():
    began = time.monotonic()
    limited, free = Watched("limited", concurrency=8, rate_per_s=40), Watched("free", concurrency=8)
    ask([limited, free], 13)
    # 12 distances of 1/40 s between 13 calls, the first of which begins at once
    assert time.monotonic() - began >= 12 / 40
    assert len(limited.seen) == len(free.seen) == 13


def test_a_rate_is_kept_from_one_row_of_calls_to_the_next():
    system = Watched(rate_per_s=20)
    dispatcher = Dispatcher([system], 10)
    began = time.monotonic()
    for n in range(4):
        dispatcher.ask(interleave(queries(1), [system], seed=0, repetition=n), lambda *_: None)
    assert time.monotonic() - began >= 3 / 20


def test_a_fast_system_waits_for_a_slow_one_so_that_a_slow_hour_is_slow_for_both():
    seen = []
    fast, slow = Watched("fast", concurrency=2, seen=seen), Watched("slow", takes_s=0.01, seen=seen)
    ask([fast, slow], 60)
    asked = Counter()
    for name, _ in seen:
        asked[name] += 1
        # AHEAD queries for each of two calls, the query that the slow one waits with, and one that it has just begun
        assert asked["fast"] <= asked["slow"] + AHEAD * 2 + 1 + 1
    assert asked == {"fast": 60, "slow": 60}


def test_a_call_that_is_cut_short_by_nobody_here_is_a_failure_and_the_rest_goes_on():
    class Cut(Watched):
        def search(self, query, k):
            if query.id == "q2":
                raise CallInterruptedError
            return super().search(query, k)

    answers = {}
    system = Cut()
    calls = interleave(queries(3), [system], seed=0, repetition=1)
    Dispatcher([system], 10).ask(calls, lambda call, answer, log: answers.setdefault(call.query.id, answer))
    assert answers["q2"] == Answer(Outcome.ERROR, reason="the call was cancelled, but not by Cranfield")
    assert [answers[query_id].outcome for query_id in ("q1", "q3")] == [Outcome.ANSWERED] * 2


def test_an_error_of_one_system_cuts_the_calls_of_all_others_short():
    class Hanging(Watched):
        def __init__(self):
            super().__init__("hanging", concurrency=2)
            self.ended = threading.Event()
            self.hangs = threading.Event()

        def search(self, query, k):
            self.hangs.set()
            if self.ended.wait(60):
                raise CallInterruptedError
            return FOUND, CallLog(1.0)

        def interrupt(self):
            self.ended.set()

    hanging = Hanging()

    class Broken(Watched):
        def search(self, query, k):
            hanging.hangs.wait(60)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        ask([hanging, Broken("broken")], 4)
    assert hanging.ended.is_set()


def test_an_error_while_an_answer_is_taken_is_not_swallowed():
    system = Watched()

    def take(call, answer, log):
        raise OSError("no space left on device")

    with pytest.raises(OSError, match="no space left"):
        Dispatcher([system], 10).ask(interleave(queries(3), [system], seed=0, repetition=1), take)
    assert len(system.seen) == 1


def test_fifty_queries_and_two_systems_take_little_longer_than_their_latency(tmp_path):
    testset = TestSet("t", tuple(queries(50)))
    bound_s = 2 * 50 * 0.1 / 8
    took = []
    for attempt in range(5):  # the machine may be busy with something else
        systems = [Watched(name, concurrency=8, takes_s=0.1) for name in ("old", "new")]
        began = time.monotonic()
        collect_all(testset, systems, out_dir=tmp_path / str(attempt))
        took.append(time.monotonic() - began)
        if took[-1] < 1.3 * bound_s:
            break
    assert min(took) < 1.3 * bound_s
