"""`cranfield book rate` and `cranfield book models`, by their options."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cranfield.agents.recording import Scripted
from cranfield.books.settings import BookSettings
from cranfield.books.store.schema import RaterKind, Role
from cranfield.books.store.store import Store
from cranfield.cli.main import run_command_line
from cranfield.judging.models.run import RateOptions, Texts, rate_book

from .conftest import make_pool
from .test_run import N, by_words


def call(*arguments: str) -> int:
    return run_command_line(["book", *arguments])


@pytest.fixture
def recorded(store: Store, options: RateOptions, texts: Texts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A recording of the command's own requests, made with another book."""
    monkeypatch.setenv("CRANFIELD_DB", store.database.where)
    path = tmp_path / "calls.jsonl"
    recording = replace(
        options, connection=replace(options.connection, record=path), sampling=replace(options.sampling, seed=0)
    )
    other = store.books.create("other", make_pool(), BookSettings())
    rate_book(store, other, recording, texts, source=Scripted(by_words))
    return str(path)


def test_a_book_is_rated_and_compared_by_commands(recorded: str, capsys: pytest.CaptureFixture[str]) -> None:
    model = ["--model", "openai:small", "--replay", recorded]
    assert call("rate", "demo", *model, "--dry-run") == 0
    assert f"{N} items to rate, 0 rated before: {N} calls" in capsys.readouterr().out
    assert call("rate", "demo", *model, "--budget-tokens", "2500") == 4
    out = capsys.readouterr().out
    assert "stopped: the budget of tokens does not allow another request" in out
    assert "with a new budget to continue" in out
    assert call("rate", "demo", *model) == 0
    assert f"0 left of {N}" in capsys.readouterr().out
    assert call("models", "demo") == 0
    assert "insufficient data (0 pairs; at least 50 are needed)" in capsys.readouterr().out
    assert call("models", "demo", "nosuch.run") == 2  # also where nothing is scored
    assert call("agreement", "demo") == 2
    err = capsys.readouterr().err
    assert "nosuch.run: no such file" in err
    assert "no person has graded a document of book 'demo'" in err
    assert call("rate", "demo", *model, "--name", "warm", "--temperature", "1") == 3
    assert "a different value of: sampling" in capsys.readouterr().out


def test_a_document_without_a_text_is_named_and_the_exit_code_says_so(
    recorded: str, store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    by = store.people.add("lead", Role.LEAD, RaterKind.PERSON).id
    store.books.add_item(store.books.get("demo").id, "lock", "bare", {}, by)
    assert call("rate", "demo", "--model", "openai:small", "--replay", recorded) == 3
    out = capsys.readouterr().out
    assert "1 item without a text left out; --workbench FILE sets the sources of texts\n  lock, bare: " in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model", "small"], "the model has no provider"),
        (["--model", "openai:m"], "no OpenAI API key"),
        (["--model", "openai:m", "--base-url", "127.0.0.1:8000/v1"], "the base URL is not an address"),
        (["--model", "openai:m", "--budget-money", "1"], "--budget-money requires the price of openai:m"),
        (["--model", "openai:m", "--record", "a", "--replay", "b"], "exclude each other"),
        (["--model", "openai:m", "--prompt", "nosuch.yaml"], "nosuch.yaml"),
        (["--model", "openai:m", "--replay", "nosuch.jsonl"], "nosuch.jsonl"),
    ],
)
def test_mistakes_of_the_call_are_named(
    store: Store,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.setenv("CRANFIELD_DB", store.database.where)
    assert store.books.get("demo")
    assert call("rate", "demo", *arguments) == 2
    assert message in capsys.readouterr().err
