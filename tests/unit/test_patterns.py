import re
import signal
import threading

import pytest

from cranfield import patterns
from cranfield.errors import InputError
from cranfield.patterns import PatternError, any_match, compile_pattern, search_limit, time_limit

ENDLESS = r"(a+)+$"
TEXT = "a" * 60 + "b"
"""`ENDLESS` takes 2^60 steps on it."""


@pytest.fixture(autouse=True)
def short_limits(monkeypatch):
    monkeypatch.setattr(patterns, "SEARCH_S", 0.05)
    monkeypatch.setattr(patterns, "_COMPILE_S", 0.05)


@pytest.mark.parametrize("pattern", [r"((a*){65000}){65000}", r"(a{0,4294967294}){4294967294}"])
def test_a_pattern_that_takes_too_long_on_the_empty_text_does_not_compile(pattern):
    with pytest.raises(PatternError, match=r"over 0\.05 s"):
        compile_pattern(pattern)


def test_huge_counts_alone_are_no_problem():
    assert compile_pattern(r"(a{65000}){65000}").pattern == r"(a{65000}){65000}"


def test_a_pattern_that_does_not_compile_is_explained():
    with pytest.raises(PatternError, match="missing \\), unterminated subpattern at position 0"):
        compile_pattern("(")


def test_a_search_without_end_is_an_error_that_names_what_was_searched():
    with (
        pytest.raises(InputError, match="expressions of query q7: no end after"),
        search_limit("expressions of query q7"),
    ):
        re.search(ENDLESS, TEXT)
    with pytest.raises(InputError, match=re.escape(f"regular expression {ENDLESS}")):
        any_match(ENDLESS, [TEXT])


def test_the_handler_and_the_timer_of_the_caller_are_kept():
    before = signal.getsignal(signal.SIGALRM)
    with time_limit(30, RuntimeError):
        assert signal.getsignal(signal.SIGALRM) is not before
        with time_limit(0.001, RuntimeError):  # a timer is running: it is left alone
            assert signal.getitimer(signal.ITIMER_REAL)[0] > 1
    assert (signal.getsignal(signal.SIGALRM), signal.getitimer(signal.ITIMER_REAL)[0]) == (before, 0)


def test_another_thread_has_no_limit():
    done = []

    def search():
        with search_limit("here"):
            done.append(re.search("b$", TEXT) is not None)

    thread = threading.Thread(target=search)
    thread.start()
    thread.join()
    assert done == [True]
