"""Requests at the same moment, on both databases: administrators, links that hold once, the limit on passwords."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from tests.unit.books.store.conftest import pool_of

from cranfield.base.errors import UsageError
from cranfield.books.settings import BookSettings
from cranfield.books.store.accounts import AccountInfo
from cranfield.books.store.schema import Role
from cranfield.books.store.store import Store
from cranfield.workbench.server import sign_in
from cranfield.workbench.server.http_errors import RefusedRequestError

AT_ONCE = 8


def all_at_once(calls: list[Callable[[], object]]) -> Counter[str]:
    """What calls of the same moment came to: the name of the error, or `done` where the answer is true."""
    start = Barrier(len(calls))

    def outcome(call: Callable[[], object]) -> str:
        start.wait(30)
        try:
            return "done" if call() else "nothing"
        except (UsageError, RefusedRequestError) as error:
            return type(error).__name__

    with ThreadPoolExecutor(len(calls)) as pool:
        return Counter(pool.map(outcome, calls))


def admins(store: Store, n: int) -> list[AccountInfo]:
    return [store.people.add(f"admin {number}", Role.ADMIN, password_hash="h") for number in range(n)]


@pytest.mark.parametrize("change", ["demote", "deactivate"])
def test_administrators_who_end_each_other_at_once_leave_one(store: Store, change: str) -> None:
    found = admins(store, AT_ONCE)

    def end(account: AccountInfo) -> bool:
        if change == "demote":
            store.people.set_role(account.id, Role.RATER)
        else:
            store.people.set_active(account.id, active=False)
        return True

    done = all_at_once([lambda account=account: end(account) for account in found])
    assert done == {"done": AT_ONCE - 1, "UsageError": 1}
    (left,) = [each for each in store.people.all() if each.role is Role.ADMIN and each.active]
    assert store.people.last_admin() == left.id


def test_a_reset_link_that_is_sent_many_times_at_once_sets_one_password(store: Store) -> None:
    account = store.people.add("ann")
    done = all_at_once([lambda n=n: store.people.replace_password(account, f"password {n}") for n in range(AT_ONCE)])
    assert done == {"done": 1, "nothing": AT_ONCE - 1}
    changed = store.people.get("ann")
    assert store.people.replace_password(account, "by a link of before") is False
    assert store.people.replace_password(changed, "by a new link") is True


def test_a_join_link_for_one_makes_one_rater_of_many_at_once(store: Store) -> None:
    book = store.books.create("shop", pool_of(1, 1), BookSettings())
    raw = store.people.add_link(book.id, 60_000)
    done = all_at_once([lambda n=n: store.people.use_link(raw, f"person {n}") for n in range(AT_ONCE)])
    assert done == {"done": 1, "NotAllowedError": AT_ONCE - 1}
    assert len(store.people.members(book.id)) == 1


def test_one_name_is_given_once_at_once(store: Store) -> None:
    done = all_at_once([lambda: store.people.add("ann") for _ in range(AT_ONCE)])
    assert done == {"done": 1, "UsageError": AT_ONCE - 1}


@pytest.fixture
def guesses(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The passwords that were compared with a hash; `right` is right."""
    found: list[str] = []

    def compare(password: str, stored: str | None) -> bool:
        found.append(password)
        return password == "right" and stored is not None

    monkeypatch.setattr(sign_in, "is_password", compare)
    return found


def test_a_burst_of_passwords_is_limited_as_a_row_of_them_is(store: Store, guesses: list[str]) -> None:
    store.people.add("ann", password_hash="h")
    calls = [lambda n=n: sign_in.check_password(store, "ann", f"wrong {n}", "10.0.0.1") for n in range(50)]
    assert all_at_once(calls) == {"nothing": 10, "RefusedRequestError": 40}
    assert len(guesses) == 10
    names = [lambda n=n: sign_in.check_password(store, f"name {n}", "wrong", "10.0.0.2") for n in range(50)]
    assert all_at_once(names) == {"nothing": 30, "RefusedRequestError": 20}


def test_a_right_password_in_a_burst_counts_as_no_failure(store: Store, guesses: list[str]) -> None:
    store.people.add("ann", password_hash="h")
    for _ in range(40):  # more than an address may fail
        assert sign_in.check_password(store, "ann", "right", "10.0.0.1") is not None
    keys = sign_in.failure_keys("ann", "10.0.0.1").values()
    assert [store.sign_ins.failures(key, since=0) for key in keys] == [0, 0, 0]
    assert len(guesses) == 40
