"""The command line as people and scripts use it: exit codes, streams, messages."""

import json
import os
import re
import subprocess
import sys

import pytest
from tests.command import call

QRELS = "q1 0 a 1\nq1 0 b 2\nq2 0 c 1\n" + "".join(f"q{i} 0 d 1\n" for i in range(3, 15))
OLD = "q1 Q0 x 1 3 old\nq1 Q0 a 2 2 old\nq2 Q0 c 1 1 old\n" + "".join(
    f"q{i} Q0 x 1 2 old\nq{i} Q0 d 2 1 old\n" for i in range(3, 15)
)
NEW = "q1 Q0 b 1 3 new\nq1 Q0 a 2 2 new\nq2 Q0 c 1 1 new\n" + "".join(f"q{i} Q0 d 1 1 new\n" for i in range(3, 15))


@pytest.fixture
def files(tmp_path):
    for name, text in (("qrels", QRELS), ("old.run", OLD), ("new.run", NEW)):
        (tmp_path / name).write_text(text)
    return tmp_path


def cranfield(folder, *args, code=0):
    done = call(*args, folder=folder, COLUMNS="100")
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    return done


def test_compare_prints_the_verdict_first_and_nothing_on_stderr(files):
    done = cranfield(files, "compare", "qrels", "old.run", "new.run")
    assert "better" in "".join(done.stdout.splitlines()[:9]).lower()
    assert done.stderr == ""
    assert "\x1b" not in done.stdout


def test_compare_as_json_has_the_fixed_shape(files):
    result = json.loads(cranfield(files, "compare", "qrels", "old.run", "new.run", "--format", "json").stdout)
    assert {"schema_version", "testset", "convention", "systems", "verdict", "primary", "test", "alpha"} <= set(result)
    assert {"margin", "seed", "comparisons", "buckets"} <= set(result)
    assert set(result["testset"]) >= {"name", "digest", "n_queries"}
    row = result["comparisons"]["nDCG@10"]
    assert set(row) >= {
        "baseline", "candidate", "delta", "ci_low", "ci_high", "interval_method", "effect_size", "n", "n_nonzero", "mde",
        "tests",
    }  # fmt: skip
    assert set(row["tests"]["permutation"]) >= {"statistic", "p_two_sided", "p_one_sided", "p_adjusted"}
    assert sum(map(len, result["buckets"].values())) == 14


def test_evaluate_as_json_has_the_fixed_shape(files):
    result = json.loads(cranfield(files, "evaluate", "qrels", "old.run", "new.run", "--format", "json").stdout)
    old, new = result["systems"]
    assert (old["name"], new["name"]) == ("old", "new")
    assert set(old["measures"]["nDCG@10"]) >= {"mean", "median", "std", "ci_low", "ci_high", "n"}
    assert old["n_failed"] == 0
    assert old["failures"] == []
    assert old["queries"]["q1"]["RR@10"] == 0.5
    assert list(old["measures"]) == ["nDCG@10", "RR@10", "AP", "P@5", "R@10", "Success@5", "Judged@10"]


def test_an_unscored_value_is_null_with_its_reason(files):
    (files / "set.yaml").write_text(
        "cranfield_testset: 1\nname: s\nversion: '1'\nqueries:\n"
        "- {id: q1, text: one, patterns: [{regex: ^a, credit: every}]}\n- {id: q2, text: two, patterns: [{regex: ^c}]}\n"
    )
    done = cranfield(files, "evaluate", "set.yaml", "old.run", "-m", "AP", "--format", "json")
    (system,) = json.loads(done.stdout)["systems"]
    assert system["queries"] == {"q1": {"AP": None}, "q2": {"AP": 1.0}}
    assert "expected_count" in system["unscored"]["q1"]["AP"]


@pytest.mark.parametrize(
    ("fail_on", "pair", "code"),
    [
        ("better", ("old.run", "new.run"), 1),
        ("worse", ("new.run", "old.run"), 1),
        ("worse", ("old.run", "new.run"), 0),
        ("not-significant", ("old.run", "old.run"), 4),
        ("worse", ("old.run", "old.run"), 0),
    ],
)
def test_exit_codes_of_verdicts(files, fail_on, pair, code):
    cranfield(files, "compare", "qrels", *pair, "--fail-on", fail_on, code=code)


@pytest.mark.parametrize("spelling", ["beter", "one-best"])
def test_a_verdict_that_cannot_be_failed_on_is_a_usage_error(files, spelling):
    done = cranfield(files, "compare", "qrels", "old.run", "old.run", "--fail-on", spelling, code=2)
    assert f"'{spelling}' is not one of better, worse, mixed, equivalent, not-significant, invalid." in done.stderr


def test_a_margin_makes_equivalence_possible(files):
    done = cranfield(files, "compare", "qrels", "old.run", "old.run", "--margin", "0.01", "--format", "json")
    assert json.loads(done.stdout)["verdict"] == "equivalent"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (
            ["evaluate", "qrels", "old.run", "-m", "nDGC@10"],
            r"error: unknown measure 'nDGC'.*\nHint: did you mean nDCG@10\?",
        ),
        (["evaluate", "qrels", "nothere.run"], r"error: nothere\.run: "),
        (["evaluate", "nothere", "old.run"], r"error: no test set 'nothere'; expected "),
        (["evaluate", "old.run", "old.run"], r"error: old\.run: "),
        (["compare", "qrels", "old.run", "new.run", "--test", "permutatoin"], r"(?s)unknown test.*permutation"),
        (["evaluate", "qrels", "old.run", "--convention", "trek"], r"(?s)unknown convention.*did you mean trec"),
        (["run", "nothere.yaml"], r"error: nothere\.yaml: "),
        (["compare", "qrels", "old.run", "new.run", "--fail-on", "wrose"], r"(?i)wrose"),
        (["evaluat"], r"(?i)evaluat"),
    ],
)
def test_a_users_mistake_is_two_lines_and_exit_2(files, args, message):
    done = cranfield(files, *args, code=2)
    assert re.search(message, done.stderr), done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_two_bad_measures_are_two_errors(files):
    done = cranfield(files, "evaluate", "qrels", "old.run", "-m", "P@0", "-m", "X@1", code=2)
    assert done.stderr.count("error:") == 2


@pytest.mark.parametrize("command", ["evaluate", "compare"])
def test_all_that_a_call_names_wrongly_is_one_answer(files, command):
    done = cranfield(
        *(files, command, "none.yaml", "none.run", "old.run", "no.run", "-m", "ndgc@10", "-m", "AP"), code=2
    )
    errors = [line.split(";")[0] for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert errors == [
        *(f"error: {name}: no such file." for name in ("none.yaml", "none.run", "no.run")),
        "error: unknown measure 'ndgc'",
    ]
    done = cranfield(files, command, "qrels", "none.run", "old.run", "-m", "AP", code=2)
    assert done.stderr == "error: none.run: no such file.\n"


def test_missing_queries_are_skipped_on_request(files):
    (files / "part.run").write_text("q1 Q0 b 1 3 part\nq2 Q0 c 1 1 part\n")
    all_queries = json.loads(cranfield(files, "evaluate", "qrels", "part.run", "--format", "json").stdout)
    some = cranfield(files, "evaluate", "qrels", "part.run", "--missing", "skip", "--format", "json").stdout
    assert all_queries["systems"][0]["measures"]["RR@10"]["n"] == 14
    assert json.loads(some)["systems"][0]["measures"]["RR@10"]["n"] == 2


def test_every_format_prints_something(files):
    for chosen in ("text", "json", "csv", "markdown"):
        for args in (["compare", "qrels", "old.run", "new.run"], ["evaluate", "qrels", "old.run"], ["measures"]):
            assert cranfield(files, *args, "--format", chosen).stdout.strip()


def test_by_query_lists_every_query(files):
    text = cranfield(files, "evaluate", "qrels", "old.run", "--by-query").stdout
    assert re.search(r"^\s*q14\b", text, re.MULTILINE)


def test_html_is_written_and_said_on_stderr(files):
    done = cranfield(files, "compare", "qrels", "old.run", "new.run", "--html", "report.html")
    assert "wrote report.html" in done.stderr
    assert (files / "report.html").read_text().startswith("<!doctype html>")


def test_html_goes_to_a_file_of_that_name_only(files):
    done = cranfield(files, "evaluate", "qrels", "old.run", "--html", "report.md", code=2)
    assert done.stderr == "error: report.md: --html writes HTML; expected a file whose name ends in .html.\n"
    assert not (files / "report.md").exists()


def test_a_primary_measure_of_its_own_leaves_the_default_list_as_it_is(files):
    # Judged@10 of the default list has no meaning where truth is a pattern: it is left out, not refused.
    (files / "patterns.yaml").write_text(
        "cranfield_testset: 1\nname: p\nqueries:\n"
        + "".join(f"  - {{id: q{i}, text: t, patterns: [{{regex: ^d$}}]}}\n" for i in range(1, 15))
    )
    done = cranfield(files, "compare", "patterns.yaml", "old.run", "new.run", "--primary", "P@1", "--format", "json")
    result = json.loads(done.stdout)
    assert result["primary"] == "P@1"
    assert list(result["comparisons"]) == ["nDCG@10", "RR@10", "AP", "P@5", "R@10", "Success@5", "P@1"]


def test_the_reader_of_a_pipe_may_leave(files):
    command = f"{sys.executable} -m cranfield measures --format json | head -c 1"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=files, capture_output=True, text=True)
    assert "Traceback" not in done.stderr


def test_version_and_help(files):
    assert re.fullmatch(r"cranfield \d+\.\d+\.\d+\n", cranfield(files, "--version").stdout)
    helped = cranfield(files, "--help").stdout
    for word in ("demo", "run", "evaluate", "compare", "measures", "Exit codes"):
        assert word in helped


def test_help_lists_commands_in_the_order_of_the_table_under_its_headings(files):
    from cranfield.cli.main import command_table

    listed = cranfield(files, "--help").stdout
    commands = listed[listed.index("\nStart:") : listed.index("Exit codes")]
    assert tuple(re.findall(r"^  (\w+) +\w", commands, re.MULTILINE)) == tuple(command_table().modules)
    assert tuple(re.findall(r"^(\w.*):$", commands, re.MULTILINE)) == tuple(command_table().headings)
    assert "..." not in commands
    assert len(listed.splitlines()) <= 66


def test_an_answer_cannot_be_kept_and_not_kept(files):
    done = cranfield(files, "run", "--no-cache", "--refresh", code=2)
    assert done.stdout == ""
    assert done.stderr.startswith(
        "error: --no-cache and --refresh exclude each other.\nHint: --no-cache neither reads nor"
    )


def test_help_imports_nothing_heavy(files):
    program = (
        "import sys\nfrom cranfield.cli.main import main\n"
        "sys.argv = ['cranfield', 'compare', '--help']\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "heavy = {'numpy', 'scipy', 'yaml', 'rich', 'jinja2', 'vl_convert'} & set(sys.modules)\n"
        "sys.exit(bool(heavy) and str(heavy))"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True).returncode == 0


def test_a_terminal_without_a_minus_sign_gets_its_number(files):
    done = subprocess.run(
        [sys.executable, "-m", "cranfield", "compare", "qrels", "new.run", "old.run"],
        cwd=files,
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
    )
    assert done.returncode == 0, done.stderr.decode()
    assert b"\\u2212" in done.stdout
    assert done.stderr == b""


def test_help_names_every_convention_rule_and_test_that_can_decide(files):
    from cranfield.model import CONVENTIONS
    from cranfield.stats.consensus import CONSENSUS
    from cranfield.stats.scale import LEVELS
    from cranfield.stats.table import TESTS

    helped = " ".join(cranfield(files, "compare", "--help").stdout.split())
    procedures = re.search(r"Test for the verdict and its confidence interval: ([\w, ]+)\.", helped)
    assert set(re.split(r", | or ", procedures[1])) == {name for name, spec in TESTS.items() if spec.can_declare}
    conventions = re.search(r"Scoring convention: (.+?) --missing", helped)
    assert re.findall(r"(\w+) \(", conventions[1]) == list(CONVENTIONS)
    rules = re.search(r"grades of several raters: ([\w, ]+)\.", helped)
    assert re.split(r", | or ", rules[1]) == list(CONSENSUS)
    scales = re.search(r"Scale of the ratings: (.+?)\. --", helped)
    listed = [f"{name} ({levels[0]}-{levels[-1]})" for name, levels in LEVELS.items()]
    assert re.split(r", | or ", scales[1]) == listed
