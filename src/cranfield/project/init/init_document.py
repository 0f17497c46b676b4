"""What `cranfield init` found and wrote, as a document; and the commands that come next."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from cranfield.project.init.start import InitResult
from cranfield.reporting.document import Block, Bullets, Code, Column, Document, Paragraph, Section, Table
from cranfield.words import and_list, printable

OUT = "cranfield-out"
BOOK = "starter"


def init_document(result: InitResult) -> Document:
    """What each argument is, what stays open, and what to do next."""
    columns = (Column("found"), Column("what it is"), Column("used as"))
    rows = [
        *(
            (printable(file.target.given), file.what, _use(file.role))
            for file in result.files
            if file.role not in _AS_SYSTEM
        ),
        *((printable(system.given), system.what, f"system {name}") for name, system in result.systems.items()),
    ]
    table = Table(columns, rows, "What was found", shown=None, wrap=True)
    notes = list(_notes(result))
    blocks: list[Block] = [table, *([Bullets(tuple(notes))] if notes else [])]
    if not result.is_judged:
        blocks += [Paragraph(_JUDGE), Code("\n".join(_judging_commands(result)) + "\n", "", in_text=True)]
    return Document(
        title=f"{result.config.name}: {result.testset.about}",
        subtitle=(),
        sections=(Section("found", "Found", tuple(blocks)),),
        tidy=lambda: table,
        payload=lambda: {
            "config": str(result.config),
            "testset": None if result.starter is None else str(result.starter),
            "judged": result.is_judged,
            "systems": {name: dict(system.settings) for name, system in result.systems.items()},
            "notes": notes,
            "next": next_commands(result),
        },
    )


_JUDGE = (
    "Nothing is judged yet, so the first run has no verdict. Add queries to testset.yaml and grade its results there; or, "
    "after a run, judge in the browser:"
)
_AS_SYSTEM = frozenset({"run", "database"})
_USES = {
    "testset": "test set",
    "queries": "texts of queries",
    "questions": "queries",
    "documents": "not used: a system has its own documents",
}


def _use(role: str) -> str:
    return _USES.get(role, role)


def _notes(result: InitResult) -> Iterator[str]:
    yield from result.testset.notes
    for name, system in result.systems.items():
        yield from (f"{name}: {note}" for note in system.notes)


def offered_checks(result: InitResult) -> Iterator[str]:
    """A line for each system whose config file can be checked before the first query."""
    for name, system in result.systems.items():
        if files := list(dict.fromkeys(check["file"] for check in system.checks)):
            where = f"{result.config.name} has checks of its settings as comments"
            yield printable(f"system {name}: found {and_list(files)}; {where}, under `preflight`")


def _judging_commands(result: InitResult) -> list[str]:
    runs = [f"{OUT}/runs/{name}.jsonl" for name in result.systems]
    testset = "testset.yaml" if result.starter is None else result.starter.name
    pool = shlex.join(["cranfield", "pool", "build", *runs, "--testset", testset, "--book", BOOK])
    freeze = f"cranfield book freeze {BOOK} --out {testset} --force"
    return [pool, f"cranfield judge {BOOK}", freeze]


def next_commands(result: InitResult) -> list[str]:
    """The commands that come next, the first at once."""
    default = result.config.name == "cranfield.yaml" and result.config.parent.as_posix() == "."
    run = "cranfield run" if default else shlex.join(["cranfield", "run", str(result.config)])
    return [run] if result.is_judged else [run, *_judging_commands(result)]
