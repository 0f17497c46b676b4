"""A service with a system, whose jobs are worked on in this process."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from cranfield.books.store.schema import Action
from cranfield.books.store.store import Store
from cranfield.books.store.values import BookInfo, SaveRequest
from cranfield.workbench.config import Workbench
from cranfield.workbench.service.responses import JobState
from cranfield.workbench.service.service import Service, open_service
from cranfield.workbench.service.values import JobInfo
from cranfield.workbench.service.work import work_on

SEARCH = """\
test -e "$1/$2" || exit 0
if [ "$3" = 2 ]; then tac "$1/$2"; else cat "$1/$2"; fi
"""


@dataclass
class Shop:
    """A service with one system, `shop`, that answers from a file; `boost` 2 turns its lists round."""

    service: Service
    folder: Path
    lead: int

    def answers(self, **found: str) -> None:
        """What the system answers: query to the documents, a letter each."""
        for query, docs in found.items():
            lines = [json.dumps({"id": doc, "title": f"Title {doc}"}) for doc in docs]
            (self.folder / "answers" / query.replace("_", " ")).write_text("".join(f"{line}\n" for line in lines))

    def work(self) -> list[JobInfo]:
        """Do all jobs that are queued."""
        queued = sorted(job.id for job in self.service.jobs.all(JobState.QUEUED))
        return [work_here(self.service, job, self.folder / f"job{job}") for job in queued]

    def grade(self, book: str, query: str, **slots: tuple[float | None, ...]) -> None:
        """Grades of the raters ann, bob, cas of documents; None: not graded."""
        grade(self.service.store, self.service.store.books.get(book), query, **slots)


def work_here(service: Service, job_id: int, folder: Path) -> JobInfo:
    """Claim a job and do it in this process; the job as it is then."""
    claim = service.jobs.claim("here", job_id)
    if claim is not None and not service.jobs.get(job_id).has_ended:
        work_on(service, claim, folder)
    return service.jobs.get(job_id)


def grade(store: Store, book: BookInfo, query: str, **slots: tuple[float | None, ...]) -> None:
    """Grades of the raters ann, bob, cas of documents; None: not graded."""
    items = {item.doc: item.id for item in store.reading.items(book.id) if item.query == query}
    for doc, grades in slots.items():
        for name, value in zip(("ann", "bob", "cas"), grades, strict=False):
            rater = store.people.find(name) or store.people.add(name)
            store.people.join(book.id, rater.id)
            if value is not None:
                key = f"{query} {doc} {name} {value}"
                store.log.save(SaveRequest(book.id, items[doc], rater.id, Action.GRADE, key, value))


def make_shop(store: Store, tmp_path: Path, lead: int) -> Shop:
    (tmp_path / "answers").mkdir()
    (tmp_path / "search.sh").write_text(SEARCH)
    (tmp_path / "own.yaml").write_text(
        "cranfield_testset: 1\nname: own\nqueries:\n- {id: q1, text: red shoes, judgments: {a: 1}}\n"
    )
    argv = ["sh", str(tmp_path / "search.sh"), str(tmp_path / "answers")]
    command = json.dumps([*argv, "{query}", "{params.boost}"])
    system = f"{{command: {command}, extract: {{jsonl: true, id: id, title: title}}, params: {{boost: 1}}}}"
    config = tmp_path / "cranfield.yaml"
    config.write_text(f"testset: own.yaml\nsystems:\n  shop: {system}\ncollect: {{cache_h: 0}}\n")
    workbench = Workbench.model_validate({"tunable": {"shop": {"params.boost": [1, 2]}}})
    shop = Shop(open_service(store, config, workbench), tmp_path, lead)
    shop.answers(red_shoes="abcd", boots="xy", laces="")
    return shop
