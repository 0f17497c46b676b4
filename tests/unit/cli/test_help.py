"""What help shows: headings, short sentences, examples that parse, names from their tables."""

from __future__ import annotations

import gzip
import json
import shlex
from contextlib import closing

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from cranfield.books.store.schema import Role
from cranfield.books.store.store import open_store
from cranfield.cli.examples import EXAMPLES
from cranfield.cli.main import command_line, command_table, requested_command
from cranfield.model import CONVENTIONS


def paths():
    for command in command_table().modules:
        inner = command_table().commands_of(command) if command in command_table().groups else ()
        yield from [(command, name) for name in inner] or [(command,)]


PATHS = list(paths())
PROJECT = "testset: qrels.txt\nsystems:\n  old: {run: old.run}\n  new: {run: new.run}\n"


def helped(*path, width=80):
    runner = CliRunner()
    done = runner.invoke(command_line(*path), [*path, "--help"], prog_name="cranfield", terminal_width=width)
    assert done.exit_code == 0
    return done.stdout


def leaf(*path):
    found = get_command(command_line(*path))
    for name in path:
        found = found.commands[name]
    return found


def test_every_command_has_examples_and_every_example_a_command():
    assert {" ".join(path) for path in PATHS} == set(EXAMPLES)


@pytest.mark.parametrize("path", PATHS, ids=" ".join)
def test_examples_parse_and_stand_in_help(path, tmp_path, monkeypatch):
    (tmp_path / "cranfield.yaml").write_text(PROJECT)
    monkeypatch.chdir(tmp_path)
    command, shown = leaf(*path), helped(*path, width=200)
    for line in EXAMPLES[" ".join(path)]:
        words = shlex.split(line)
        skipped = len(requested_command(words))
        assert words[:skipped] == list(path[:skipped])  # the default command of a group may be left out
        command.make_context("cranfield", words[skipped:])
        assert f"\n  cranfield {line}\n" in shown
    assert "\nExamples:\n" in shown


@pytest.mark.parametrize("command", command_table().modules)
def test_a_first_sentence_fits_on_a_line(command):
    assert len(leaf(command).get_short_help_str(limit=300)) <= 80 - len("  components  ")


@pytest.mark.parametrize("path", [("compare",), ("evaluate",), ("gate",), ("pool", "build")])
def test_long_lists_of_options_have_headings_and_every_option_once(path):
    shown = helped(*path)
    assert "\nTest set:\n" in shown
    assert "\nOutput:\n" in shown
    options = [each for each in leaf(*path).params if each.param_type_name == "option"]
    rows = shown.partition("\nOptions:\n")[2].partition("\nExamples:\n")[0].splitlines()
    for option in options:
        spelled = ", ".join(sorted(option.opts, key=len))
        assert len([row for row in rows if row.startswith(f"  {spelled}") and row[2 + len(spelled)] in " /"]) == 1


def test_options_of_runs_of_any_size_have_a_heading_of_their_own():
    shown = helped("compare").partition("\nRun files of any size:\n")[2].partition("\n\n")[0]
    assert "--memory" in shown
    assert "--weight" in shown


def test_short_lists_have_none():
    assert "\nOutput:\n" not in helped("measures")


def test_each_convention_has_a_phrase():
    shown = " ".join(helped("evaluate", width=400).split())
    for convention in CONVENTIONS.values():
        assert convention.phrase
        assert f"{convention.name} ({convention.phrase})" in shown
        assert len(convention.phrase) <= 40


@pytest.mark.parametrize("path", PATHS, ids=" ".join)
def test_no_list_is_left_to_fill_in(path):
    from cranfield.cli.main import LISTS

    shown = helped(*path, width=200)
    assert [place for place in (*LISTS, "{schemas}") if place in shown] == []


NOT_RUN = {
    "demo": "makes a folder of a search system: tests/e2e/test_demo.py",
    "init": "asks questions, and calls an address",
    "serve": "serves until it is interrupted",
    "judge": "serves until it is interrupted",
    "mcp": "serves until it is interrupted",
    "watch": "serves until it is interrupted, or needs a schedule",
    "ci comment": "writes to a forge",
    "view": "opens a browser",
    "grid": "needs a grid: docs/how-to/tune-settings.md",
    "pool alternatives": "needs alternatives, which a book of judged unjudged results brings",
    "people add": "asks for a password",
    "components": "needs a system of components: tests/e2e/test_components.py",
    "book rate": "asks a model",
    "book models": "needs grades of a model",
    "book preference": "needs a book of pairs of lists",
    "people password": "asks for a password",
    "golden": "needs a run of a golden plan: docs/how-to/golden-sets.md",
    "benefit": "needs a run of an experiment: docs/how-to/does-a-tool-help.md",
    "answers score": "needs labels: docs/how-to/score-answers.md",
}
"""Command, or group, to why its examples are not run here."""
EARLIER = ("run", "gate", "pool build", "book create", "book import", "book freeze", "intake add", "intake export")
"""Whose files others read."""
ELSEWHERE = ("experiments/", "origin/main", "postgresql://", "--forge", "--db-", "v2.0")
"""In examples that need another folder, a repository or a server."""


def prepared(folder):
    """The files that examples name."""
    ids = [*(f"q{n}" for n in range(1, 31)), "q57"]
    rows = [(query, f"d{query[1:]}", n) for n, query in enumerate(ids)]
    (folder / "qrels.txt").write_text("".join(f"{query} 0 {doc} 1\n" for query, doc, _ in rows))
    for name in ("old", "new", "a", "b", "c", "bm25"):
        lines = [
            f"{query} Q0 {found} {rank} {9 - rank} {name}\n"
            for query, doc, n in rows
            for rank, found in enumerate(((f"x{n}", doc) if name == "old" and n % 2 else (doc, f"y{n}")), start=1)
        ]
        (folder / f"{name}.run").write_text("".join(lines))
    queries = "".join(
        f"  - {{id: {query}, text: word {doc}, strata: {{difficulty: {'easy' if n % 2 else 'hard'}}}, judgments: {{{doc}: 1}}}}\n"
        for query, doc, n in rows
    )
    for name in ("set", "set-v1", "set-v2", "v1", "v2"):
        (folder / f"{name}.yaml").write_text(f"cranfield_testset: 1\nname: {name}\nqueries:\n{queries}")
    (folder / "topics.tsv").write_text("".join(f"{query}\tword {doc}\n" for query, doc, _ in rows))
    (folder / "set.csv").write_text("query,doc_id,grade\n" + "".join(f"word {doc},{doc},1\n" for _, doc, _ in rows))
    unjudged = [(query, f"{word}{n}", grade) for word, grade in (("x", 0), ("y", 1)) for query, _, n in rows]
    grades = [
        (*each, rater) for each in unjudged if each[1][0] == "y" or int(each[1][1:]) % 2 for rater in ("ann", "ben")
    ]
    (folder / "ratings.csv").write_text(
        "query_id,doc_id,grade,rater\n"
        + "".join(f"{query},{doc},{grade},{rater}\n" for query, doc, grade, rater in grades)
    )
    for name in ("ann.qrels", "ben.qrels", "c.qrels"):
        (folder / name).write_text((folder / "qrels.txt").read_text())
    (folder / "known.csv").write_text("query,doc,grade\n" + "".join(f"{query},{doc},1\n" for query, doc, _ in rows[:3]))
    (folder / "guideline.md").write_text("# Grades\n\nRelevant is what answers the question.\n")
    (folder / "workbench.yaml").write_text("images: {timeout_s: 3}\n")
    (folder / "scores.csv").write_text(
        "query_id,score,correct\n" + "".join(f"q{n},0.{n % 9 + 1},{n % 2}\n" for n in range(60))
    )
    answers = (
        {"query_id": query, "outcome": "answered", "hits": [{"id": doc}], "fields": {"confidence": 0.7}}
        for query, doc, _ in rows
    )
    (folder / "new.jsonl").write_text(
        "\n".join([json.dumps({"cranfield_run": 1, "name": "new"}), *map(json.dumps, answers)]) + "\n"
    )
    asked = "".join(f"2026-11-0{n % 9 + 1} how many wings {n // 6}\n" for n in range(90))
    (folder / "queries.log").write_text("".join(f"{line[11:]}\n" for line in asked.splitlines()))
    (folder / "access.log.gz").write_bytes(
        gzip.compress(
            b"".join(b'1.2.3.4 - - [02/Nov/2026:10:00:00 +0000] "GET /?q=wing HTTP/1.1" 200 5\n' for _ in range(9))
        )
    )
    systems = "".join(f"  {name}: {{run: {name}.run}}\n" for name in ("old", "new"))
    (folder / "cranfield.yaml").write_text(
        f"testset: set.yaml\nsystems:\n{systems}gate: {{system: new, rules: [{{floor: {{measure: RR, at_least: 0.1}}}}]}}\n"
    )


@pytest.mark.slow
def test_examples_run(tmp_path, monkeypatch):
    """One after another in one folder, in the order of the table: what one writes, a later one reads."""
    monkeypatch.chdir(tmp_path)
    with closing(open_store(tmp_path / "cranfield-books.db")) as store:
        for name in ("ann", "ci"):
            store.people.add(name, Role.ADMIN)
    failed, n_run = {}, 0
    for name, lines in sorted(EXAMPLES.items(), key=lambda each: (*EARLIER, each[0]).index(each[0])):
        if name in NOT_RUN or name.split()[0] in NOT_RUN:
            continue
        for line in lines:
            if any(each in line for each in ELSEWHERE):
                continue
            prepared(tmp_path)
            if name == "testset overfit":
                CliRunner().invoke(command_line("testset", "split"), shlex.split(EXAMPLES["testset split"][0]))
            words = shlex.split(line)
            done = CliRunner().invoke(command_line(*requested_command(words)), words, prog_name="cranfield")
            if "--force replaces it" in done.stderr:  # the next example of another command
                done = CliRunner().invoke(
                    command_line(*requested_command(words)), [*words, "--force"], prog_name="cranfield"
                )
            n_run += 1
            if done.exit_code not in {0, 1}:  # 1 is a verdict
                failed[line] = (done.exit_code, done.stderr[-300:])
    assert not failed, "\n".join(f"{line}: {why}" for line, why in failed.items())
    assert n_run > 80
