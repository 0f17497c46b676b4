"""Makes the demo's folder: two indexes, the command that searches them, a test set, the config that ties them, and the
file that shows raters the texts of documents.

A third database holds what is known of each entity; queries for everything that has an attribute are judged by it.
What comes out is an ordinary Cranfield project, to be run, edited and run again; no path in it leads outside.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from cranfield.app.demo.corpus import build_corpus
from cranfield.app.demo.drift import Drift, fit_to_corpus
from cranfield.app.demo.entity import Corpus
from cranfield.app.demo.index import DESIGNS, FIELDS, PLAIN, write_attributes, write_database
from cranfield.app.demo.search import open_read_only
from cranfield.base.errors import UsageError
from cranfield.formats.io.files import check_inside, refusal, write_text
from cranfield.formats.testsets.native import read_testset_yaml, write_testset_yaml
from cranfield.model import TestSet

HERE = Path(__file__).parent
QUESTIONS = HERE / "stdlib.yaml"
SEARCH_SCRIPT = HERE / "search.py"
ATTRIBUTES = "corpus.db"

CONFIG_TEXT = """\
# Two ways to search the documentation of the Python standard library: is `fields` better than `plain`?
# `cranfield run` in this folder collects, scores and compares them. Edit what you like and run it again.
testset: testset.yaml
k: 10
baseline: {baseline}
candidate: {candidate}
systems:
{systems}"""

WORKBENCH_TEXT = """\
# The texts of documents, for raters and models. After `cranfield run`, in this folder:
#   cranfield judge runs/{candidate}.jsonl --testset testset.yaml --workbench workbench.yaml
documents:
  - sql:
      database: sqlite:{baseline}.db
      query: >-
        SELECT title, trim(signature || char(10, 10) || doc, char(10)) AS text, kind, trim(path || ' ' || coalesce(span, '')) AS place
        FROM entity WHERE id = :id
    template: '<p>{{{{ fields.kind }}}} <code>{{{{ fields.place }}}}</code></p>{{{{ body }}}}'
"""

SYSTEM_TEXT = """\
  # {comment}
  {name}:
    command: ["{{python}}", -I, -S, search.py, --db, {name}.db, --limit, "{{k}}", --, "{{query}}"]
    cwd: .
    concurrency: 2
    order: given
    extract: {{json: results, id: id, score: score, title: title, span: span, fields: {{confidence: confidence}}}}
    preflight:
      - {{file: {name}.db}}
      - {{probe: dict}}
"""

COMMENTS: Mapping[str, str] = {
    PLAIN.name: "All text in one full-text table; all columns have the same weight.",
    FIELDS.name: "Names before text, identifiers split, text stemmed, modules and classes first, deprecated ones last.",
}


@dataclass(frozen=True)
class DemoFiles:
    """What `build_demo` made."""

    folder: Path
    config: Path
    testset: Path
    databases: tuple[Path, ...]
    """Databases of the systems, in the order of their designs."""
    attributes: Path
    """The database for predicates."""
    n_entities: int
    n_queries: int
    drift: Drift
    """What the test set expects and this Python does not have."""


def build_demo(out: Path, progress: Callable[[str], None] = lambda _: None) -> DemoFiles:
    """Build the demo in a folder, which is made if it is not there; its files are replaced one by one.

    Args:
        out: the folder.
        progress: called with a short description of each step.

    Raises:
        InputError: the standard library has no source files here.
        UsageError: the folder cannot be written, or SQLite cannot search text.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name in (SEARCH_SCRIPT.name, "testset.yaml", "cranfield.yaml", "workbench.yaml"):
            check_inside(out, out / name)
        corpus = build_corpus(progress=progress)
        databases = _write_databases(corpus, out, progress)
        progress("writing the judged attributes, the test set and the config")
        write_attributes(corpus, out / ATTRIBUTES)
        testset, drift = _fitted(corpus, out / ATTRIBUTES)
        write_text(out / SEARCH_SCRIPT.name, [SEARCH_SCRIPT.read_text(encoding="utf-8")])
        write_testset_yaml(testset, out / "testset.yaml")
        write_text(out / "cranfield.yaml", [config_text()])
        workbench = WORKBENCH_TEXT.format(baseline=PLAIN.name, candidate=FIELDS.name)
        write_text(out / "workbench.yaml", [workbench])
    except OSError as error:
        where = Path(str(error.filename)) if error.filename else out
        raise UsageError(refusal(where, error)) from error
    return DemoFiles(
        folder=out,
        config=out / "cranfield.yaml",
        testset=out / "testset.yaml",
        databases=databases,
        attributes=out / ATTRIBUTES,
        n_entities=len(corpus),
        n_queries=len(testset.queries),
        drift=drift,
    )


def _fitted(corpus: Corpus, attributes: Path) -> tuple[TestSet, Drift]:
    """The test set, fitted to this Python."""
    with closing(open_read_only(str(attributes))) as connection:
        return fit_to_corpus(
            read_testset_yaml(QUESTIONS),
            corpus,
            python=platform.python_version(),
            gives=lambda predicate: connection.execute(predicate.sql).fetchone() is not None,
        )


def config_text() -> str:
    """Write the demo's cranfield.yaml."""
    systems = "".join(SYSTEM_TEXT.format(name=design.name, comment=COMMENTS[design.name]) for design in DESIGNS)
    return CONFIG_TEXT.format(baseline=PLAIN.name, candidate=FIELDS.name, systems=systems)


def _write_databases(corpus: Corpus, out: Path, progress: Callable[[str], None]) -> tuple[Path, ...]:
    paths = []
    for design in DESIGNS:
        path = out / f"{design.name}.db"
        progress(f"indexing {len(corpus)} entities for {design.name}")
        write_database(corpus, design, path)
        paths.append(path)
    return tuple(paths)
