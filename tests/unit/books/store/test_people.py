"""Accounts, members, sessions, tokens, join links, failed sign-ins."""

from __future__ import annotations

from functools import partial

import pytest
from sqlalchemy import text

from cranfield.base.errors import UnknownNameError, UsageError
from cranfield.books.store.schema import RaterKind, Role
from cranfield.books.store.values import NotAllowedError

HOUR = 3_600_000


def test_an_account_has_a_name_of_its_own(store, clock) -> None:
    ann = store.people.add(" ann ", Role.LEAD, password_hash="h", settings={"keys": {"u": "z"}})
    assert (ann.name, ann.role, ann.kind, ann.active, ann.created_at) == (
        "ann",
        Role.LEAD,
        RaterKind.PERSON,
        True,
        clock.now,
    )
    assert "h'" not in repr(ann)
    assert store.people.get("ann") == store.people.get(ann.id) == store.people.find("ann") == ann
    with pytest.raises(UsageError, match="is taken"):
        store.people.add("ann")
    for name in ("", " ", "n" * 201):
        with pytest.raises(UsageError, match="1 to 200 characters"):
            store.people.add(name)
    assert store.people.find("eve") is None
    with pytest.raises(UnknownNameError):
        store.people.get("eve")
    store.people.set_settings(ann.id, {"dark": True})
    assert store.people.all()[0].settings == {"dark": True}


NO_NAMES = [
    "gold", "Gold", " GOLD ", "g\u043eld", "\uff47old", "\u0261old", "adjudicator", "person", "model", "rule",
    "carried", "\u0430nn", "ANN", "a\u200bnn", "ann\u2800", "ann\u3164", "a\ufe0fnn", "\u3164", "\u0301", "...",
    "a\x07", "a\nb", "a\u202eb", "lee  ann", "lee\u00a0ann", "\u0441\u0430\u0455", "\u03bfs\u03bfn",
]  # fmt: skip


def test_nobody_takes_a_name_with_a_meaning_or_one_that_looks_like_another(desk_of) -> None:
    desk = desk_of()
    people, raw = desk.store.people, desk.store.people.add_link(desk.book.id, HOUR)
    for known in ("ann", "Lee Ann", "cas", "oson"):
        people.add(known)
    for name in NO_NAMES:
        for take in (people.add, partial(people.use_link, raw), partial(people.add, kind=RaterKind.MODEL)):
            if name == "model" and take is not people.add:
                continue
            with pytest.raises(UsageError) as caught:
                take(name)
            assert caught.value.problems[0].path == "name", name
    assert people.add("model", kind=RaterKind.MODEL).name == "model"
    assert people.link(raw).uses_left == 1


def test_names_of_every_alphabet_are_names(store) -> None:
    for name in (
        "J\u00fcrgen",
        "\u0410\u043d\u043d\u0430",
        "\u674e Ann",
        "\u03a3\u03bf\u03c6\u03af\u03b1",
        "ann@x.org",
        "O'Neil",
        "rater 1",
        "gold fish",
    ):
        assert store.people.add(name).name == name
    assert [store.people.of_file(kind, RaterKind(kind)).name for kind in ("carried", "rule")] == ["carried", "rule"]


def test_the_user_of_a_machine_whose_name_is_none_is_called_local(store, monkeypatch) -> None:
    for user in ("gold", "\u3164"):
        monkeypatch.setattr("cranfield.books.store.people.getuser", lambda user=user: user)
        assert store.people.local().name == "local"
    assert store.people.local().role is Role.ADMIN


def test_members_have_quotas(desk_of) -> None:
    desk = desk_of()
    people, ann = desk.store.people, desk.rater("ann", quota=3)
    assert [(member.account.name, member.quota) for member in people.members(desk.book.id)] == [("ann", 3)]
    people.join(desk.book.id, ann)
    assert [member.quota for member in people.members(desk.book.id)] == [None]
    assert people.is_member(desk.book.id, ann)
    assert people.books_of(ann) == (desk.book.id,)
    people.leave(desk.book.id, ann)
    assert not people.is_member(desk.book.id, ann)
    with pytest.raises(UnknownNameError):
        people.join(999, ann)


def test_a_viewer_is_no_rater(desk_of) -> None:
    desk = desk_of()
    people, ann = desk.store.people, desk.rater("ann")
    vic = people.add("vic", Role.VIEWER).id
    assert [each.id for each in people.raters()] == [ann]
    with pytest.raises(NotAllowedError, match="a viewer cannot judge"):
        people.join(desk.book.id, vic)


def test_a_session_ends_by_time_sign_out_password_role_and_deactivation(store, clock) -> None:
    ann = store.people.add("ann", Role.LEAD).id
    start = partial(store.people.start_session, ann, HOUR)
    raw = start()
    found = store.people.session(raw)
    assert (found.account.name, found.expires_at) == ("ann", clock.now + HOUR)
    assert found.csrf not in repr(found)
    assert len({found.csrf, store.people.session(start()).csrf, raw}) == 3
    clock.pass_seconds(3600)
    assert store.people.session(raw) is None
    for end in (
        store.people.end_session,
        lambda _: store.people.set_password(ann, "new"),
        lambda _: store.people.set_role(ann, Role.RATER),
        lambda _: store.people.end_sessions(ann),
        lambda _: store.people.set_active(ann, active=False),
    ):
        raw = start()
        assert store.people.session(raw) is not None
        end(raw)
        assert store.people.session(raw) is None
    raw = start()
    assert store.people.session(raw) is None  # not active
    assert store.people.session("") is None


def test_a_session_stays_where_the_role_grows(store) -> None:
    ann = store.people.add("ann").id
    raw = store.people.start_session(ann, HOUR)
    store.people.set_role(ann, Role.ADMIN)
    assert store.people.session(raw).account.role is Role.ADMIN


def test_a_token_has_a_scope_and_an_end(store, clock) -> None:
    ann = store.people.add("ann").id
    raw = store.people.add_token(ann, "script", "judge", HOUR)
    clock.pass_seconds(1)
    assert store.people.token(raw).scope == "judge"
    (info,) = store.people.tokens(ann)
    assert (info.label, info.used_at) == ("script", clock.now)
    with pytest.raises(NotAllowedError, match="a rater cannot have a token with the scope manage"):
        store.people.add_token(ann, "script", "manage", HOUR)
    with pytest.raises(UnknownNameError):
        store.people.add_token(ann, "script", "all", HOUR)
    clock.pass_seconds(3600)
    assert store.people.token(raw) is None
    other = store.people.add_token(ann, "two", "read", HOUR)
    number = store.people.tokens(ann)[1].id
    assert store.people.revoke(number, account_id=ann + 1) is False
    assert store.people.revoke(number, account_id=ann) is True
    assert store.people.token(other) is None


def test_a_token_ends_with_the_role_it_needs(store) -> None:
    ann = store.people.add("ann", Role.LEAD).id
    raw = store.people.add_token(ann, "script", "manage", HOUR)
    store.people.set_role(ann, Role.VIEWER)
    assert store.people.token(raw) is None


def test_a_join_link_makes_raters_of_one_book(desk_of, clock) -> None:
    desk = desk_of()
    people, book = desk.store.people, desk.book.id
    raw = people.add_link(book, HOUR, uses=2)
    link = people.link(raw)
    assert (link.book, link.uses_left) == (desk.book.name, 2)
    ann = people.use_link(raw, "ann", "h")
    assert (ann.role, ann.password_hash, people.books_of(ann.id)) == (Role.RATER, "h", (book,))
    with pytest.raises(UsageError, match="is taken"):
        people.use_link(raw, "ann")
    assert people.link(raw).uses_left == 1  # a refused use is not spent
    assert people.use_link_as(raw, ann.id) == book
    assert people.link(raw).uses_left == 1  # a member already
    lead = people.add("lead", Role.LEAD).id
    assert people.use_link_as(raw, lead) == book
    assert people.get(lead).role is Role.LEAD
    assert people.link(raw) is None
    with pytest.raises(NotAllowedError, match="this link is not valid"):
        people.use_link(raw, "bob")
    late = people.add_link(book, HOUR)
    clock.pass_seconds(3600)
    with pytest.raises(NotAllowedError):
        people.use_link(late, "bob")
    people.add_link(book, HOUR)
    for row in people.links(book):
        assert people.revoke_link(row.id)
    assert people.links(book) == ()


def test_secrets_are_not_in_the_database(desk_of) -> None:
    desk = desk_of()
    people, ann = desk.store.people, desk.rater("ann")
    raws = [
        people.start_session(ann, HOUR),
        people.add_token(ann, "t", "read", HOUR),
        people.add_link(desk.book.id, HOUR),
    ]
    with desk.store.database.read() as session:
        rows = [
            str(tuple(row))
            for table in ("web_session", "token", "join_link", "account")
            for row in session.execute(text(f"SELECT * FROM {table}"))
        ]
    assert len(rows) == 4
    assert not [raw for raw in raws if any(raw in row for row in rows)]


def test_failed_sign_ins_are_counted_and_forgotten_after_a_day(store, clock) -> None:
    sign_ins = store.sign_ins

    def begin(*keys: str, most: int = 9) -> tuple[int, ...] | None:
        return sign_ins.begin(dict.fromkeys(keys, most), since=0)

    for _ in range(3):
        begin("name:ann")
        clock.pass_seconds(60)
    begin("address:10.0.0.7")
    assert sign_ins.failures("name:ann", since=0) == 3
    assert sign_ins.failures("name:ann", since=clock.now - 120_000) == 2
    assert begin("name:ann", "name:eve", most=3) is None
    assert sign_ins.failures("name:eve", since=0) == 0
    right = begin("name:ann", "name:eve", most=4)
    sign_ins.withdraw(right)
    assert (len(right), sign_ins.failures("name:ann", since=0)) == (2, 3)
    sign_ins.clear(["name:ann"])
    assert (sign_ins.failures("name:ann", since=0), sign_ins.failures("address:10.0.0.7", since=0)) == (0, 1)
    clock.pass_seconds(86_401)
    begin("name:bob")
    assert sign_ins.failures("address:10.0.0.7", since=0) == 0
    begin("x" * 1000)
    assert sign_ins.failures("x" * 1000, since=0) == 1
