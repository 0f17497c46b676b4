"""One author, from a plan to a golden set, by what the commands say next: no step is taken that was not printed."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from cranfield.books.store.schema import Action
from cranfield.books.store.store import open_store
from cranfield.books.store.values import SaveRequest
from cranfield.formats.sniff import read_testset

SMALL = {
    "total": 2,
    "profile": "bootstrap-one-person",
    "cells": [
        {"task_type": "review", "difficulty": "easy", "n": 1},
        {"task_type": "explain", "difficulty": "medium", "n": 1},
    ],
}
HOUR_MS = 3_600_000
LACKING = {"disposition": "keep", "failure_mode": "narrative", "edits": []}


@pytest.fixture(scope="module")
def models(load_script: Any, checkout: Path) -> ModuleType:
    return load_script(checkout / "examples" / "golden" / "models.py")


class Author:
    """Types what is printed after `next:`, and decides on the page of a book what it is given."""

    def __init__(self, place: Path, call: Any) -> None:
        self.place, self.call = place, call
        self.now_ms = 1_780_000_000_000
        self.shown: list[str] = []
        """Records in the order in which the page gave them, in each visit."""

    def open_books(self, db: str = "", *, create: bool = False) -> Any:
        return open_store(self.place / "books.db", create=create, clock=lambda: self.now_ms)

    def types(self, command: str, *more: str, expected: int = 0) -> str:
        words = [word.replace("DIR", str(self.place / "repo")) for word in shlex.split(command)]
        assert words[0] == "cranfield"
        done = self.call(*words[1:], *more)
        assert done.returncode == expected, done.stderr + done.stdout
        return str(done.stdout + done.stderr)

    def judges(self, command: str, grade: int = 1, reason: str = "", **data: Any) -> list[str]:
        """As the page of the book does."""
        name, (word, book_name) = "dee", shlex.split(command)[1:]
        assert word == "judge"
        store, given = self.open_books(), []
        book, account = store.books.get(book_name), store.people.local(name).id
        store.people.join(book.id, account)
        while found := store.queue.next_items(book.id, account, 1):
            given.append(found[0].query)
            assert (found[0].grade, found[0].data) == (None, None)  # blind: nothing of an earlier look
            key = f"{book_name} {found[0].item_id} {self.now_ms}"
            save = SaveRequest(
                *(book.id, found[0].item_id, account, Action.GRADE, key, grade), reason=reason, data=data or None
            )
            store.log.save(save)
            self.now_ms += 60_000
        store.close()
        return given


def steps_of(text: str) -> list[str]:
    """The commands that are printed as next ones, in their order."""
    _, _, listed = text.partition("Next steps")
    printed = " ".join(re.findall(r"next: (.*)", text)) + " " + " ".join(listed.split())
    return re.findall(r"`(cranfield [^`]*)`", printed)


@pytest.fixture
def author(tmp_path: Path, call: Any, monkeypatch: pytest.MonkeyPatch, models: Any) -> Author:
    models.make_repository(tmp_path / "repo")
    monkeypatch.chdir(tmp_path)
    found = Author(tmp_path, call)
    monkeypatch.setattr("cranfield.golden.commands.open_books", found.open_books)
    return found


def commit(folder: Path) -> None:
    who = ("-c", "user.name=T", "-c", "user.email=t@example.org")
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "measured"]):
        subprocess.run(["git", *who, *command], cwd=folder, check=True, capture_output=True)


@pytest.mark.slow  # a run of the pipeline, and a calibration
def test_one_author_comes_from_a_plan_to_a_golden_set(author: Author, models: Any, model_server: Any) -> None:
    with model_server.ModelServer(models.Models().script(model_server.Reply)) as server:
        plan = author.place / "plan.json"
        plan.write_text(json.dumps(models.plan_of(server.url, **SMALL)))
        (run,) = steps_of(author.types(f"cranfield golden plan {plan} --repo DIR"))
        (review,) = steps_of(author.types(run))
    first = author.types(review)
    assert "book" in first
    assert "2 new records for one reviewer, the first look" in first
    (judge,) = steps_of(first)
    folder = Path(shlex.split(review)[3])
    (status,) = steps_of(author.types(f"cranfield golden status {folder}"))
    assert status.startswith("cranfield golden reviewed")
    waiting = author.types(status, expected=4)
    assert steps_of(waiting)[0] == judge
    assert "2 of 2 not reviewed twice" in " ".join(waiting.split())
    order = author.judges(judge)
    assert len(order) == 2

    early = author.types(status, expected=4)
    (again,) = steps_of(early)
    assert re.search(r"from 20\S+Z on", early)
    author.now_ms += 12 * HOUR_MS
    refused = author.types(again)
    assert "second-look: 0 new records" in refused
    assert "second-look" not in steps_of(refused)[0]
    author.now_ms += 12 * HOUR_MS
    second = author.types(again)
    assert "second-look: 2 new records" in second
    (judge_again,) = steps_of(second)
    assert sorted(author.judges(judge_again)) == sorted(order)

    passed = " ".join(author.types(status).split())
    assert (
        "reviewed by one person (dee), who saw each record twice, at least 24 h apart and the second time "
        "without seeing the first decision"
    ) in passed.lower()
    assert "the same verdict both times on 2 of 2 records: intra-rater agreement of one person" in passed
    assert "by two independent reviewers" not in passed
    (assemble,) = steps_of(passed)
    missing = author.types(assemble, expected=1)
    assert "Not golden: harness, baseline, calibration." in missing
    draft = next(each for each in steps_of(missing) if each.endswith("--draft"))
    author.types(draft, expected=1)

    path = author.place / "golden" / "draft_v1.0.json"
    testset = read_testset(path)
    assert testset.name == "golden-one-person"
    measured = author.place / "measured"
    measured.mkdir()
    answers = [
        {"query": query_id, "confidence": 0.4 + 0.2 * place, "results": [testset.targets[query_id][0].id]}
        for place, query_id in enumerate(testset.query_ids)
    ]
    lines = [f"{each['query']} Q0 {each['results'][0]} 1 1.0 grep" for each in answers]
    (measured / "grep.run").write_text("\n".join(lines) + "\n")
    (measured / "cranfield.yaml").write_text(
        f"testset: {path}\nsystems: {{grep: {{run: grep.run}}}}\ngate: {{rules: [floor: {{measure: R@10, at_least: 0.1}}]}}\n"
    )
    for step in steps_of(missing):
        assert step.split()[1] in {"golden", "baseline", "calibrate"}
    accept = next(each for each in steps_of(missing) if "baseline accept" in each)
    accept = accept.replace("CONFIG", str(measured / "cranfield.yaml"))
    author.types(accept, "--run", str(measured / "grep.run"))
    table = author.place / "scores.csv"
    table.write_text(
        "query_id,score,correct\n" + "".join(f"{each['query']},{each['confidence']},1\n" for each in answers)
    )
    calibrate = next(each for each in steps_of(missing) if "calibrate" in each)
    printed = author.types(calibrate.replace("DRAFT RUN", str(table)))
    (measured / "calibration.json").write_text(printed[: printed.rindex("}") + 1])
    commit(measured)
    path.unlink()
    options = ["--run", str(measured / "grep.run"), "--baseline", str(measured / "cranfield-baseline.json")]
    golden = " ".join(author.types(assemble, *options, "--calibration", str(measured / "calibration.json")).split())
    assert "The set is golden: 7 of 7 criteria are met." in golden
    assert "golden-one-person 1.0" in golden
    assert "reviewed by one person (dee; not verified), intra-rater agreement on a later day" in golden


@pytest.mark.slow  # two runs of the pipeline
def test_a_review_that_failed_names_the_run_that_follows(author: Author, models: Any, model_server: Any) -> None:
    wrong = {"disposition": "drop", "failure_mode": "wrong_target"}
    with model_server.ModelServer(models.Models().script(model_server.Reply)) as server:
        plan = author.place / "plan.json"
        plan.write_text(json.dumps(models.plan_of(server.url, **SMALL)))
        (review,) = steps_of(author.types(f"cranfield golden run {plan} --repo DIR"))
        (judge,) = steps_of(author.types(review))
        author.judges(judge, 4, "It is another file.", **wrong)
        author.now_ms += 25 * HOUR_MS
        (judge,) = steps_of(author.types(review))
        author.judges(judge, 4, "It is another file.", **wrong)
        failed = author.types(f"cranfield golden reviewed {shlex.split(review)[3]}", expected=1)
        assert "Review failed: a ceiling is reached" in " ".join(failed.split())
        (again,) = steps_of(failed)
        assert "--feedback" in again
        (review_again,) = steps_of(author.types(again))
    assert review_again.startswith("cranfield golden review ")
    assert review_again != review
