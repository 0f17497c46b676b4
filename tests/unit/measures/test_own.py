"""Measures of one's own: as good as any other once they are defined, and their mistakes are named."""

import math
import sys

import numpy as np
import pytest

from cranfield.base.errors import MeasureError, UsageError
from cranfield.measures import ALIASES, CATALOGUE, compute, own, parse
from cranfield.measures.measure import JUDGED_ONLY, ParameterSpec
from cranfield.measures.own import QueryView, define, forget, load_plugins
from cranfield.model import Answer, Hit, Outcome, Pattern, Query, Run, TestSet, convention_named
from cranfield.ranking import rank_run

GRADES = {"q1": {"a": 2, "b": 1, "c": 0}, "q2": {"d": 1, "e": -1}}
LISTS = {"q1": ["x", "b", "c", "a"], "q2": []}
ABOUT = {"title": "a title", "sentence": "A sentence."}


@pytest.fixture(autouse=True)
def _catalogue_as_it_was():
    saved = [(table, dict(table)) for table in (CATALOGUE, ALIASES, own._OWN, own._TRIED)]
    yield
    for table, content in saved:
        table.clear()
        table.update(content)


def ranking(grades=GRADES, lists=LISTS, patterns=None):
    testset = TestSet("set", tuple(Query(q) for q in [*grades, *(patterns or {})]), grades, patterns or {})
    run = Run("run", {q: Answer(Outcome.ANSWERED, tuple(Hit(d) for d in docs)) for q, docs in lists.items()})
    return rank_run(testset, run, convention_named("trec"))


def scores(measure, **data):
    values, scored, reasons = compute(parse(measure), ranking(**data))
    return dict(zip(sorted(GRADES), np.where(scored, values, np.nan).tolist(), strict=True)), reasons


def messages(raised):
    return [problem.message for problem in raised.value.problems]


def test_a_function_of_one_query_is_a_measure():
    def share_of_top_grades(view: QueryView) -> float | None:
        if not len(view.expected_grades):
            return None
        return float((view.grades == view.expected_grades.max()).sum() / view.n_returned) if view.n_returned else 0.0

    define("TopGrades", share_of_top_grades, cutoff="optional", aliases=("tops",), **ABOUT)
    # of x, b, c, a only a has the highest grade
    assert scores("TopGrades")[0] == {"q1": 1 / 4, "q2": 0.0}
    assert scores("tops@3")[0] == {"q1": 0.0, "q2": 0.0}
    assert str(parse("tops@3")) == "TopGrades@3"


def test_what_a_view_holds():
    views = {}
    define("See", lambda view: views.update({(view.query_id, view.cutoff): view}), cutoff="optional", **ABOUT)
    scores("See")
    scores("See@2")
    whole, cut, empty = views["q1", None], views["q1", 2], views["q2", None]
    assert (whole.ranks.tolist(), whole.grades.tolist(), whole.gains.tolist()) == (
        [2, 3, 4],
        [1, 0, 2],
        [1.0, 0.0, 2.0],
    )
    assert (whole.n_returned, cut.n_returned, empty.n_returned) == (4, 2, 0)
    assert (cut.ranks.tolist(), cut.grades.tolist()) == ([2], [1])
    assert whole.expected_grades.tolist() == cut.expected_grades.tolist() == [2, 1, 0]
    assert (empty.ranks.tolist(), empty.expected_grades.tolist()) == ([], [1, -1])
    assert empty.expected_gains.tolist() == [1.0, 0.0]
    assert whole.expected_counts.tolist() == [1, 1, 1]


def test_a_view_says_how_many_documents_a_pattern_stands_for():
    seen = []
    define("See", lambda view: seen.append(view.expected_counts.tolist()), **ABOUT)
    patterns = {"q": (Pattern("^a", credit="every"), Pattern("^b", credit="every", expected_count=3), Pattern("^c"))}
    compute(parse("See"), ranking({}, {"q": ["a1"]}, patterns))
    assert seen == [[-1, 3, 1]]


def test_a_view_cannot_be_written_to():
    def careless(view):
        view.gains[0] = 9.0

    define("Careless", careless, **ABOUT)
    with pytest.raises(MeasureError, match="read-only"):
        scores("Careless")


def test_none_is_no_value_and_has_a_reason():
    define("Never", lambda view: None if view.query_id == "q2" else True, why_unscored="it has no q1", **ABOUT)
    values, reasons = scores("Never")
    assert (values["q1"], math.isnan(values["q2"])) == (1.0, True)
    assert reasons == {"q2": "it has no q1"}


def test_parameters_follow_by_name_and_those_that_choose_results_are_applied_before():
    def at_least(view, *, grade=1):
        return float((view.grades >= grade).sum())

    parameters = (ParameterSpec("grade", 1, "lowest grade that counts", minimum=0), JUDGED_ONLY)
    define("AtLeast", at_least, range=(0, float("inf")), parameters=parameters, cutoff="optional", **ABOUT)
    assert scores("AtLeast(grade=0)")[0] == {"q1": 3.0, "q2": 0.0}
    # without x, the first two results are b and c
    assert scores("AtLeast(grade=0)@2")[0]["q1"] == 1.0
    assert scores("AtLeast(grade=0, judged_only=True)@2")[0]["q1"] == 2.0


def test_a_function_of_the_whole_ranking_is_a_measure():
    def found(ranking, cutoff):
        share = np.where(ranking.n_returned > 0, 0.5, np.nan)
        return share if cutoff is None else share / cutoff

    define("Found", found, per="ranking", cutoff="optional", **ABOUT)
    values, reasons = scores("Found")
    assert (values["q1"], math.isnan(values["q2"])) == (0.5, True)
    assert reasons == {"q2": own.NO_VALUE}
    assert scores("Found@5")[0]["q1"] == 0.1


def test_whole_numbers_and_truths_are_values():
    define("Returned", lambda ranking, _: ranking.n_returned, per="ranking", range=(0, 99), **ABOUT)
    define("Any", lambda ranking, _: ranking.n_returned > 0, per="ranking", **ABOUT)
    assert scores("Returned")[0] == {"q1": 4.0, "q2": 0.0}
    assert scores("Any")[0] == {"q1": 1.0, "q2": 0.0}


def test_a_row_says_where_it_comes_from():
    def mine(view):
        return 0.0

    row = define("Mine", mine, higher_is_better=False, **ABOUT)
    assert row.source.endswith("mine")
    assert row.formula.endswith("mine(…)")
    assert not row.higher_is_better
    assert CATALOGUE["Mine"] is row
    told = define("Told", mine, formula="0", source="a paper", **ABOUT)
    assert (told.formula, told.source) == ("0", "a paper")


def test_an_error_in_the_function_names_measure_query_and_line():
    def broken(view):
        return 1 / view.n_returned  # q2 has no result

    define("Broken", broken, **ABOUT)
    with pytest.raises(MeasureError) as raised:
        scores("Broken")
    (problem,) = raised.value.problems
    assert problem.message == "measure Broken, query 'q2': ZeroDivisionError: division by zero"
    assert problem.path == broken.__code__.co_filename
    assert problem.line == broken.__code__.co_firstlineno + 1
    assert isinstance(raised.value.__cause__, ZeroDivisionError)


def test_a_function_that_cannot_be_called_with_a_view_is_named_for_every_query():
    define("Short", lambda: 1.0, **ABOUT)
    with pytest.raises(MeasureError) as raised:
        scores("Short")
    assert [message[:27] for message in messages(raised)] == [
        "measure Short, query 'q1': ",
        "measure Short, query 'q2': ",
    ]
    assert raised.value.problems[0].path is None


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (1.5, "a finite number from 0 to 1, its declared range"),
        (-0.1, "a finite number from 0 to 1, its declared range"),
        (float("nan"), "a finite number from 0 to 1, its declared range"),
        (float("inf"), "a finite number from 0 to 1, its declared range"),
        ("0.5", "a number, or None where the query has no value"),
        (np.array([0.5, 0.5]), "a number, or None where the query has no value"),
        (1 + 2j, "a number, or None where the query has no value"),
    ],
)
def test_what_is_no_value_is_an_error(result, expected):
    define("Odd", lambda view: result, **ABOUT)
    with pytest.raises(MeasureError) as raised:
        scores("Odd")
    assert len(raised.value.problems) == 2
    assert raised.value.problems[0].expected == expected
    assert raised.value.problems[0].got is not None


@pytest.mark.parametrize(
    ("result", "got"),
    [
        (np.zeros(3), "the shape (3,)"),
        (np.zeros((2, 1)), "the shape (2, 1)"),
        ([0.5, 0.5], "[0.5, 0.5]"),
        (0.5, "0.5"),
        (None, "None"),
        (np.array(["a", "b"]), "array(['a', 'b'], dtype='<U1')"),
    ],
)
def test_a_function_of_the_ranking_gives_one_value_per_query(result, got):
    define("Odd", lambda ranking, _: result, per="ranking", **ABOUT)
    with pytest.raises(MeasureError) as raised:
        scores("Odd")
    (problem,) = raised.value.problems
    assert (problem.expected, problem.got) == ("float64[2], one value per query", got)


def test_a_value_of_the_ranking_beyond_the_range_names_its_query():
    define("Far", lambda ranking, _: np.array([0.5, math.inf]), per="ranking", **ABOUT)
    with pytest.raises(MeasureError, match="measure Far, query 'q2'"):
        scores("Far")


def test_an_error_in_a_function_of_the_ranking_names_the_measure_and_the_line():
    define("Broken", lambda ranking, _: ranking.nothing, per="ranking", **ABOUT)
    with pytest.raises(MeasureError, match=r"test_own.py:[0-9]+: measure Broken: AttributeError"):
        scores("Broken")


def test_everything_wrong_with_a_definition_is_said_at_once():
    with pytest.raises(MeasureError) as raised:
        define("1st", None, title="", sentence=" ", per="rank", range=(1, 0), cutoff="maybe", aliases=("a b",))
    assert len(raised.value.problems) == 8


def test_a_name_of_trec_evals_is_not_free():
    with pytest.raises(MeasureError, match="trec_eval's name for R"):
        define("recall", lambda view: 0.0, **ABOUT)


def test_a_name_that_is_taken_is_not_free():
    with pytest.raises(UsageError, match="nDCG is taken"):
        define("nDCG", lambda view: 0.0, **ABOUT)
    define("Mine", lambda view: 0.0, **ABOUT)
    with pytest.raises(UsageError, match="Mine is taken"):
        define("Mine", lambda view: 0.0, **ABOUT)
    with pytest.raises(UsageError, match="Mine is taken"):
        define("Yours", lambda view: 0.0, aliases=("Mine",), **ABOUT)


def test_a_measure_that_is_forgotten_leaves_nothing_behind():
    define("Mine", lambda view: 0.0, aliases=("mein",), **ABOUT)
    forget("Mine")
    for name in ("Mine", "mein"):
        with pytest.raises(MeasureError, match="unknown measure"):
            parse(name)
    define("Mine", lambda view: 1.0, **ABOUT)
    assert scores("Mine")[0]["q1"] == 1.0


def test_only_measures_of_ones_own_can_be_forgotten():
    with pytest.raises(MeasureError, match="not one of your own"):
        forget("nDCG")


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Lay a package with measures on the path, as pip would."""
    monkeypatch.syspath_prepend(tmp_path)

    def lay(name, module, target):
        (tmp_path / f"{name}.py").write_text(module)
        info = tmp_path / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[cranfield.measures]\n{name} = {name}:{target}\n")
        names.append(name)

    names = []
    yield lay
    for name in names:
        sys.modules.pop(name, None)


GOOD = """
from cranfield.measures.own import define

def register():
    define("Plugged", lambda view: 0.25, title="plugged", sentence="A quarter.", aliases=("plug",))
"""


def test_a_package_brings_its_measures(install):
    install("cranfield_toy", GOOD, "register")
    assert load_plugins() == ()
    assert scores("plug")[0] == {"q1": 0.25, "q2": 0.25}
    assert load_plugins() == ()  # and not a second time


@pytest.mark.parametrize(
    ("module", "target", "message"),
    [
        (GOOD, "nothing", "AttributeError: module 'cranfield_toy' has no attribute 'nothing'"),
        ("import no_such_module", "register", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("def register():\n    raise ValueError", "register", "ValueError"),
        (GOOD.replace("Plugged", "nDCG"), "register", "measure 'nDCG' is not added: nDCG is taken"),
    ],
)
def test_a_broken_package_is_named_at_every_call(install, module, target, message):
    install("cranfield_toy", module, target)
    (problem,) = load_plugins()
    assert problem.message == f"measure plugin 'cranfield_toy' of cranfield_toy 1.0 failed: {message}"
    assert load_plugins() == (problem,)


def test_an_entry_point_that_is_no_function_is_named(install):
    install("cranfield_toy", "register = 3", "register")
    (problem,) = load_plugins()
    assert (
        problem.message
        == "measure plugin 'cranfield_toy' of cranfield_toy 1.0: cranfield_toy:register has the wrong type"
    )
    assert (problem.expected, problem.got) == ("a function without arguments", "int")


def test_a_broken_package_does_not_keep_another_from_its_measures(install):
    install("cranfield_bad", "raise RuntimeError('no')", "register")
    install("cranfield_toy", GOOD, "register")
    assert len(load_plugins()) == 1
    assert str(parse("plug")) == "Plugged"


def test_a_ranking_that_other_measures_see_cannot_be_written_to():
    def spoil(ranking, _):
        ranking.gain[:] = 0.0

    define("Spoil", spoil, per="ranking", **ABOUT)
    shared = ranking()
    with pytest.raises(MeasureError, match="read-only"):
        compute(parse("Spoil"), shared)
    assert compute(parse("CG"), shared)[0].tolist() == [3.0, 0.0]  # b is worth 1 and a 2, as before


def test_a_whole_number_beyond_any_float_is_no_value():
    define("Endless", lambda _: 10**400, range=(0, math.inf), **ABOUT)
    with pytest.raises(MeasureError, match="a finite number from 0"):
        scores("Endless")
