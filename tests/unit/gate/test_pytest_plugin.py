"""The pytest plugin, each time in a pytest of its own."""

from __future__ import annotations

import os
from importlib.metadata import entry_points
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

IS_INSTALLED = any(point.value == "cranfield.pytest_plugin" for point in entry_points(group="pytest11"))
"""Where it is, pytest loads it by itself."""
ALONE = "PYTEST_DISABLE_PLUGIN_AUTOLOAD"
"""Set: pytest loads what it is told to and no more, which takes a third of the time."""

GOLDEN = """
cranfield_testset: 1
name: tiny
queries:
  - {id: q1, text: apple, strata: {kind: fruit, level: easy}, judgments: {apple: 1}}
  - {id: q2, text: pear, strata: {kind: fruit, level: hard}, judgments: {pear: 1}}
  - {id: q3, text: oak, strata: {kind: tree, level: easy}, judgments: {oak: 1, acorn: 1}}
  - {id: q4, text: fir, strata: {kind: tree, level: hard}, judgments: {fir: 1}}
"""
# Ranks of the first right result: 1, 2, 1, none. RR: (1 + 1/2 + 1 + 0) / 4 = 0.625.
SEARCH = """
from pathlib import Path

ANSWERS = {"apple": ["apple"], "pear": ["apple", "pear"], "oak": ["oak", "acorn"], "fir": ["oak"]}

def find(query, k):
    with (Path(__file__).parent / "asked.txt").open("a") as file:
        file.write(query + "\\n")
    return ANSWERS[query][:k]

def unprepared(query, k):
    raise FileNotFoundError("index.db is not there: build it first")

def mostly(query, k):
    if query == "fir":
        raise ValueError("no such tree")
    return ANSWERS[query][:k]
"""


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A folder with a test set and a search."""
    monkeypatch.setenv(ALONE, "1")
    pytester.makeini("[pytest]\n")
    Path("golden.yaml").write_text(GOLDEN)
    Path("search.py").write_text(SEARCH)
    return pytester


def run(suite: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    quiet = ("-p", "no:randomly", "-p", "no:cacheprovider", "--strict-markers", "-W", "error")
    if ALONE in os.environ:
        return suite.run("quick-pytest", "-p", "cranfield.pytest_plugin", *quiet, *arguments)
    loaded = () if IS_INSTALLED else ("-p", "cranfield.pytest_plugin")
    return suite.runpytest_subprocess(*loaded, *quiet, *arguments)


def test_a_suite_without_our_fixtures_imports_nothing_of_ours(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside every plugin that is installed; pytest loads ours by itself where it is."""
    monkeypatch.delenv(ALONE)
    suite.makepyfile(
        """
        import sys

        def test_plain(request):
            assert request.config.pluginmanager.hasplugin("cranfield") or "cranfield.pytest_plugin" in sys.modules
            ours = {name for name in sys.modules if name.startswith("cranfield")}
            assert ours == {"cranfield", "cranfield.pytest_plugin", "cranfield.base", "cranfield.base.version"}
            assert not {"numpy", "scipy", "pydantic", "yaml", "typer", "httpx2"} & set(sys.modules)
        """
    )
    run(suite).assert_outcomes(passed=1)


def test_kinds_whose_queries_are_all_negative_are_left_to_where(suite: pytest.Pytester) -> None:
    Path("golden.yaml").write_text(
        GOLDEN + "  - {id: q5, text: apple, strata: {kind: none, level: easy}, negative: true}\n"
    )
    suite.makepyfile(
        """
        import pytest

        @pytest.mark.cranfield(testset="golden.yaml", system="search:find")
        def test_kinds(evaluation):
            assert {kind: one.mean("RR") for kind, one in evaluation.by("kind").items()} == {"fruit": 0.75, "tree": 0.5}
            assert evaluation.where(kind="none").mean("Silence") == 0
            assert len(evaluation.by("level")["easy"]) == 3
        """
    )
    run(suite).assert_outcomes(passed=1)


def test_a_cutoff_deeper_than_the_lists_has_no_value(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        import pytest

        @pytest.mark.cranfield(testset="golden.yaml", system="search:find", k=1)
        def test_cut(evaluation):
            assert evaluation.mean("R@1") == (1 + 0 + 1 / 2 + 0) / 4
            evaluation.mean("R@2")

        @pytest.mark.cranfield(testset="golden.yaml", system="search:find")
        def test_whole(evaluation):
            assert evaluation.mean("R@2") == (1 + 1 + 1 + 0) / 4
        """
    )
    done = run(suite)
    done.assert_outcomes(passed=1, failed=1)
    done.stdout.fnmatch_lines(["*R@2 has no value*its cutoff is deeper than the lists, which were cut.*"])
    done.stdout.fnmatch_lines(["*Hint: request 2 results: k=2.*"])


def test_a_suite_of_a_dozen_lines(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        import pytest

        pytestmark = pytest.mark.cranfield(testset="golden.yaml", system="search:find")

        def test_mean(evaluation):
            assert evaluation.mean("RR") == 0.625  # (1 + 1/2 + 1 + 0) / 4
            assert evaluation.mean("R@10") == 0.75  # (1 + 1 + 1 + 0) / 4

        def test_strata(evaluation):
            easy = evaluation.where(level="easy")
            assert (len(easy), easy.query_ids) == (2, ("q1", "q3"))
            assert (easy.worst("P@1"), evaluation.worst("P@1")) == (1, 0)
            assert easy.where(kind="tree").mean("RR") == 1
            assert {kind: one.mean("RR") for kind, one in evaluation.by("kind").items()} == {"fruit": 0.75, "tree": 0.5}
            assert evaluation.where(level="hard").by("kind")["tree"].values("RR") == {"q4": 0}

        def test_values(evaluation):
            assert evaluation.values("RR") == {"q1": 1, "q2": 0.5, "q3": 1, "q4": 0}

        def test_less_is_better(evaluation):
            assert evaluation.worst("RankOfFirst") == 2  # q4 has none, and no value

        @pytest.mark.cranfield(k=1)
        def test_the_closest_marker_wins(evaluation):
            assert evaluation.mean("RR") == 0.5  # (1 + 0 + 1 + 0) / 4

        def test_what_is_behind_it(evaluation):
            assert evaluation.evaluation.run.answers["q2"].hits[1].id == "pear"
        """
    )
    run(suite).assert_outcomes(passed=6)
    asked = Path("asked.txt").read_text().split()
    assert sorted(asked) == sorted(["apple", "pear", "oak", "fir"] * 2)  # once for each k, for all six tests


@pytest.mark.slow
def test_a_suite_makes_scores_of_what_it_has_at_hand(suite: pytest.Pytester) -> None:
    Path("old.run").write_text("q1 Q0 apple 1 2 old\nq2 Q0 apple 1 2 old\nq3 Q0 oak 1 1 old\nq4 Q0 fir 1 1 old\n")
    suite.makepyfile(
        """
        import pytest
        from cranfield import load

        ANSWERS = {"apple": ["apple"], "oak": ["acorn"]}

        @pytest.fixture(scope="module")
        def mine(cranfield_evaluate):
            return cranfield_evaluate("golden.yaml", lambda query, k: ANSWERS.get(query, []))

        def test_function(mine):
            assert mine.mean("Success@1") == 0.5

        def test_another_function(cranfield_evaluate):
            assert cranfield_evaluate("golden.yaml", lambda query, k: [query]).mean("Success@1") == 1

        def test_async_function_and_a_loaded_set(cranfield_evaluate):
            async def find(query, k):
                return [("x", 0.5), (query, 0.4)]
            assert cranfield_evaluate(load("golden.yaml"), find).mean("RR") == 0.5

        def test_run(cranfield_evaluate):
            assert cranfield_evaluate("golden.yaml", run="old.run").mean("Success@1") == 0.75

        @pytest.mark.cranfield(testset="golden.yaml", run="old.run")
        def test_run_of_a_marker(evaluation):
            assert evaluation.mean("Success@1") == 0.75

        @pytest.mark.cranfield(testset="golden.yaml", system="search:mostly", max_failed_share=0.25)
        def test_failures_that_are_allowed_count_as_nothing_found(evaluation):
            assert evaluation.mean("RR") == 0.625
        """
    )
    run(suite).assert_outcomes(passed=6)


def test_a_test_that_fails_says_which_queries_did_worst(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        import pytest

        pytestmark = pytest.mark.cranfield(testset="golden.yaml", system="search:mostly", max_failed_share=1)

        def test_mean(evaluation):
            assert evaluation.where(level="hard").mean("RR") >= 0.6

        def test_that_asks_for_nothing(evaluation):
            assert False

        def test_unknown_stratum(evaluation):
            evaluation.where(levl="easy")

        def test_no_query(evaluation):
            evaluation.where(kind="fruit").where(kind="tree").mean("RR")

        def test_unknown_measure(evaluation):
            evaluation.mean("nDGC@10")

        def test_without_a_value(evaluation):
            evaluation.where(kind="tree", level="hard").mean("RankOfFirst")
        """
    )
    result = run(suite)
    result.assert_outcomes(failed=6)
    result.stdout.fnmatch_lines(
        [
            "*where 0.25 = mean('RR')",
            "*<search.mostly on tiny: 2 queries, level=hard>.mean",
            "* cranfield: worst queries *",
            "RR on <search.mostly on tiny: 2 queries, level=hard>, the worst first:",
            "  q4  0.0000  error: ValueError: no such tree  'fir'",
            "E *unknown stratum 'levl'*",
            "E *Hint: did you mean level?",
            "E *no query belongs to kind=fruit, kind=tree*",
            "E *Hint: did you mean nDCG?*",
            "E *RankOfFirst has no value on any of *",
        ]
    )
    assert result.stdout.str().count("cranfield: worst queries") == 2  # the last one had asked, too


def test_what_is_missing_is_an_error_and_never_a_skip(suite: pytest.Pytester) -> None:
    cases = {
        "test_set": 'testset="gone.yaml", system="search:find"',
        "module": 'testset="golden.yaml", system="gone:find"',
        "function": 'testset="golden.yaml", system="search:gone"',
        "index": 'testset="golden.yaml", system="search:unprepared"',
        "share": 'testset="golden.yaml", system="search:mostly"',
        "run": 'testset="golden.yaml", run="gone.run"',
        "config": 'system="mine"',
        "setting": 'testst="golden.yaml", system="search:find"',
        "set_of_it": 'system="search:find"',
        "both": 'testset="golden.yaml", system="search:find", run="gone.run"',
    }
    suite.makepyfile(
        "import pytest\n"
        + "".join(
            f"\n@pytest.mark.cranfield({said})\ndef test_{name}(evaluation):\n    raise AssertionError('it ran')\n"
            for name, said in cases.items()
        )
        + "\n@pytest.mark.cranfield('golden.yaml')\ndef test_position(evaluation):\n    pass\n"
    )
    result = run(suite)
    result.assert_outcomes(errors=11)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    said = result.stdout.str()
    for expected in (
        "gone.yaml: no such file",
        "no module named gone",
        "nothing of that name",
        "search.unprepared: 4 of 4 queries failed",
        "q1: error, FileNotFoundError: index.db is not there: build it first",
        "search.mostly: 1 of 4 queries failed",
        "gone.run: no such file",
        "cranfield.yaml: no such file",
        "Hint: did you mean testset?",
        "a system or a run needs a test set",
        "a run and a system",
        "accepts only keyword arguments",
    ):
        assert expected in said
    assert "Traceback" not in said
    assert "asserted.py" not in said  # the message alone


CONFIG = """
testset: golden.yaml
k: 1
systems:
  mine: {python: "search:find"}
  unready: {python: "search:find", preflight: [{file: index.db}]}
"""


def test_a_system_of_the_config_is_named(suite: pytest.Pytester) -> None:
    suite.makeini("[pytest]\ncranfield_config = quality/first.yaml\n")
    for name, k in (("first", 1), ("second", 10)):
        suite.mkdir("quality") if not Path("quality").exists() else None
        text = CONFIG.replace("k: 1", f"k: {k}").replace("golden.yaml", "../golden.yaml")
        Path(f"quality/{name}.yaml").write_text(text.replace('"search:find"', '"search:find", cwd: ..'))
    suite.makepyfile(
        """
        import pytest

        @pytest.mark.cranfield(system="mine")
        def test_mine(evaluation, cranfield_config):
            assert evaluation.mean("RR") == {"first": 0.5, "second": 0.625}[cranfield_config.stem]

        @pytest.mark.cranfield(system="unready")
        def test_unready(evaluation):
            pass

        def test_which(evaluation):
            pass
        """
    )
    result = run(suite)
    result.assert_outcomes(passed=1, errors=2)
    result.stdout.fnmatch_lines_random(
        ["*index.db*expected a file, got nothing there*", "*the config has several systems*"]
    )
    other = run(suite, "--cranfield-config", "quality/second.yaml", "-k", "mine")
    other.assert_outcomes(passed=1, deselected=2)
    gone = run(suite, "--cranfield-config", "quality/third.yaml")
    assert gone.ret == pytest.ExitCode.USAGE_ERROR
    gone.stderr.fnmatch_lines(["*--cranfield-config: file not found: quality/third.yaml"])


@pytest.mark.slow
def test_workers_of_xdist_measure_each_for_itself(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        import pytest

        pytestmark = pytest.mark.cranfield(testset="golden.yaml", system="search:find")

        @pytest.mark.parametrize("number", range(6))
        def test_mean(evaluation, number):
            assert evaluation.mean("RR") == 0.625
        """
    )
    run(suite, "-p", "xdist", "-n", "2").assert_outcomes(passed=6)
    assert len(Path("asked.txt").read_text().split()) in {4, 8}  # one worker may have done all
