"""Accounts of the server: add, list, roles, passwords, tokens."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer
from annotated_types import Interval

from cranfield.app.command import say
from cranfield.base.errors import MissingExtraError, UsageError
from cranfield.books.options import DEFAULT_DATABASE, DbOption, open_books
from cranfield.evaluation.options.declaration import Argument, Option
from cranfield.judging.commands.book import named

if TYPE_CHECKING:
    from cranfield.books.store.schema import Role

SUBCOMMANDS = dict.fromkeys(("add", "list", "role", "password", "token", "deactivate", "activate"), __name__)

NameArgument = Annotated[str, Argument("Name of the account.", metavar="NAME")]
RoleOption = Annotated[str, Option("admin, lead, rater or viewer.", flag="--role", metavar="ROLE")]
StdinOption = Annotated[
    bool, Option("Read the password from the first line of standard input.", flag="--password-stdin")
]


def _role(name: str) -> Role:
    from cranfield.books.store.schema import Role

    return named(Role, "role", name)


def _hashed(*, from_stdin: bool) -> str:
    """A new password, from standard input or asked twice; never from the command line, which other users can read."""
    try:
        from cranfield.workbench.server.passwords import hash_password, hasher

        hasher()
    except ModuleNotFoundError:
        raise MissingExtraError.for_extra("passwords", "web") from None
    if from_stdin:
        return hash_password(sys.stdin.readline().rstrip("\n"))
    if not sys.stdin.isatty():
        raise UsageError(
            "no terminal to enter the password", hint="add --password-stdin, and pass the password on standard input"
        )
    return hash_password(typer.prompt("Password", hide_input=True, confirmation_prompt=True))


def add_command(
    name: NameArgument,
    role: RoleOption = "rater",
    *,
    password_stdin: StdinOption = False,
    db: DbOption = DEFAULT_DATABASE,
) -> None:
    """Add an account that can sign in. Creates the database if it does not exist."""
    wanted = _role(role)
    store = open_books(db, create=True)
    account = store.people.add(name, wanted, password_hash=_hashed(from_stdin=password_stdin))
    say(f"Added {account.name}, {account.role}.")


def list_command(db: DbOption = DEFAULT_DATABASE) -> None:
    """List the accounts with their roles."""
    accounts = open_books(db).people.all()
    width = max((len(account.name) for account in accounts), default=0)
    for account in accounts:
        role = account.role if account.kind == "person" else account.kind
        say(f"{account.name:<{width}}  {role:<7}{'' if account.active else '  may not sign in'}".rstrip())


def role_command(
    name: NameArgument,
    role: Annotated[str, Argument("admin, lead, rater or viewer.", metavar="ROLE")],
    db: DbOption = DEFAULT_DATABASE,
) -> None:
    """Change the role of an account."""
    wanted, store = _role(role), open_books(db)
    account = store.people.get(name)
    store.people.set_role(account.id, wanted)
    say(f"{account.name} is {wanted}.")


def password_command(
    name: NameArgument, *, password_stdin: StdinOption = False, db: DbOption = DEFAULT_DATABASE
) -> None:
    """Set the password of an account, and sign it out everywhere."""
    store = open_books(db)
    account = store.people.get(name)
    store.people.set_password(account.id, _hashed(from_stdin=password_stdin))
    say(f"The password of {account.name} has been changed.")


def token_command(
    name: NameArgument,
    scope: Annotated[str, Option("read, judge, evaluate or manage.", metavar="SCOPE")] = "read",
    days: Annotated[int, Option("How long the token is valid.", metavar="N"), Interval(ge=1, le=3_650)] = 90,
    label: Annotated[str, Option("Purpose of the token.", metavar="TEXT")] = "command line",
    db: DbOption = DEFAULT_DATABASE,
) -> None:
    """Create an API token and print it; it is not stored."""
    store = open_books(db)
    account = store.people.get(name)
    say(store.people.add_token(account.id, label, scope, days * 86_400_000))


def _set_active(name: str, db: str, *, active: bool) -> None:
    store = open_books(db)
    account = store.people.get(name)
    store.people.set_active(account.id, active=active)
    say(f"{account.name} may {'' if active else 'not '}sign in.")


def deactivate_command(name: NameArgument, db: DbOption = DEFAULT_DATABASE) -> None:
    """Prevent an account from signing in; its judgments are kept."""
    _set_active(name, db, active=False)


def activate_command(name: NameArgument, db: DbOption = DEFAULT_DATABASE) -> None:
    """Let an account sign in again."""
    _set_active(name, db, active=True)
