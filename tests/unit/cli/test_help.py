"""What help shows: headings, short sentences, examples that parse, names from their tables."""

from __future__ import annotations

import importlib
import shlex

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from cranfield.cli.examples import EXAMPLES
from cranfield.cli.main import COMMANDS, GROUPS, command_line, requested_command
from cranfield.model import CONVENTIONS


def paths():
    for command in COMMANDS:
        inner = importlib.import_module(f"cranfield.cli.{command}").SUBCOMMANDS if command in GROUPS else ()
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


@pytest.mark.parametrize("command", COMMANDS)
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
    from cranfield.cli.help import LISTS

    shown = helped(*path, width=200)
    assert [place for place in (*LISTS, "{schemas}") if place in shown] == []


RUN_HERE = (
    *("measures", "evaluate", "system list", "system show", "testset show", "testset validate", "testset stats"),
    *("testset split", "testset add", "trec_eval"),
)
"""Commands whose examples need nothing but files, and take no time: they are run, one after another, in one folder."""
NEEDS_MORE = ("experiments/", "evaluate new")
"""In examples that need another folder or an earlier step."""


def test_examples_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [f"q{n} 0 d{n} 1\n" for n in range(1, 13)] + ["q57 0 d57 1\n"]
    (tmp_path / "qrels.txt").write_text("".join(rows))
    for name in ("old", "new", "a", "b", "c", "bm25"):
        lines = (
            f"{row.split()[0]} Q0 {row.split()[2] if name != 'old' or n % 2 else 'x'} 1 1 {name}\n"
            for n, row in enumerate(rows)
        )
        (tmp_path / f"{name}.run").write_text("".join(lines))
    queries = "".join(
        f"  - {{id: {q}, text: word {d}, strata: {{difficulty: {'easy' if n % 2 else 'hard'}}}, judgments: {{{d}: 1}}}}\n"
        for n, (q, _, d, _) in enumerate(row.split() for row in rows)
    )
    (tmp_path / "set.yaml").write_text("cranfield_testset: 1\nname: set\nqueries:\n" + queries)
    (tmp_path / "cranfield.yaml").write_text(
        "testset: qrels.txt\nsystems:\n  old: {run: old.run}\n  new: {run: new.run}\n"
    )
    failed = {}
    for name in RUN_HERE:
        for line in EXAMPLES[name]:
            if any(each in line for each in NEEDS_MORE):
                continue
            words = shlex.split(line)
            done = CliRunner().invoke(command_line(*requested_command(words)), words, prog_name="cranfield")
            if done.exit_code not in {0, 1}:  # 1 is a broken floor
                failed[line] = done.stderr[-300:]
    assert failed == {}
