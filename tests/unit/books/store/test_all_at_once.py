"""Twenty raters who do everything at once; afterwards judgments, states and slots follow from the log."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.unit.conftest import NAMES

from cranfield.base.errors import CranfieldError
from cranfield.books.settings import BookSettings
from cranfield.books.store.schema import RaterKind

from .conftest import Desk, pool_of
from .test_rebuild import check, take

STEPS = ["grade"] * 6 + ["skip", "expert", "later", "undo", "flag", "next", "next", "wait"]
STEPS += ["adjudicate", "reopen", "digest", "model", "import"]
RATERS = 20


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_everything_at_once_follows_from_the_log(store, clock, seed) -> None:
    settings = BookSettings(raters_per_item=2, most_raters=3, lease_seconds=60)
    book = store.books.create(f"book {next(NAMES)}", pool_of(3, 4), settings)
    desk = Desk(store, clock, book)
    desk.raters["model"] = store.people.add("model", kind=RaterKind.MODEL)
    lead = store.people.add("lead").id
    names = [f"rater {number}" for number in range(RATERS)]
    for name in names:
        desk.rater(name)
    items = [item.id for item in store.reading.items(book.id)]

    def judge(name: str) -> list[str]:
        chance, problems = random.Random(f"{seed} {name}"), []
        for _ in range(15):
            try:
                take(desk, lead, chance.choice(STEPS), name, chance.choice(items), chance.randrange(4))
            except CranfieldError:
                pass
            except Exception as error:  # noqa: BLE001 - a deadlock, a lock that is not given
                problems.append(f"{type(error).__name__}: {str(error)[:300]}")
        return problems

    with ThreadPoolExecutor(RATERS) as pool:
        problems = [problem for found in pool.map(judge, names) for problem in found]
    assert problems == []
    check(desk)
