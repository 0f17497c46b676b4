"""Why one run scores differently under two conventions: parts that add up, causes query by query, and how it is told."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from math import log2

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from cranfield import evaluate
from cranfield.base.errors import UsageError
from cranfield.cli.main import command_line
from cranfield.evaluation.explain import explain
from cranfield.evaluation.margins import tie_margin, unjudged_margin
from cranfield.evaluation.values import known_mean
from cranfield.measures import parse, parse_all
from cranfield.model import CONVENTIONS, Answer, Hit, Outcome, Query, Rating, Run, TestSet, convention_named
from cranfield.ranking import rank_run

TREC = convention_named("trec")


def ranker(testset, run):
    return lambda rules: rank_run(testset, run, rules, missing=rules.missing)


def explained(grades, lists, a, b, *spellings):
    """One run of plain lists; None stands for a time-out."""
    testset = TestSet("set", tuple(map(Query, grades)), grades)
    answers = {
        query_id: Answer(Outcome.TIMEOUT)
        if documents is None
        else Answer(Outcome.ANSWERED if documents else Outcome.EMPTY, tuple(map(Hit, documents)))
        for query_id, documents in lists.items()
    }
    conventions = convention_named(a), convention_named(b)
    return explain(testset, ranker(testset, Run("run", answers)), *conventions, parse_all(spellings))


def test_each_choice_is_switched_alone_and_after_those_before_it():
    # a is found at rank 2, twice as good as b, which is not found; P@4 of 2 results.
    about = explained({"q": {"a": 2, "b": 1}}, {"q": ["u", "a"]}, "trec", "searchtweak", "nDCG@4", "P@4")
    ndcg, precision = about.measures
    # 2/log2(3) over 2 + 1/log2(3); the results re-sorted have 2
    before, after = (2 / log2(3)) / (2 + 1 / log2(3)), 1 / log2(3)
    assert ndcg.values(0) == pytest.approx((before, after))
    assert [part.choice.name for part in ndcg.causes(0)] == ["ideal"]
    assert ndcg.causes(0)[0].step_of(0) == pytest.approx(after - before)
    # 1 of 4, 1 of 1 judged
    assert precision.values(0) == (1 / 4, 1.0)
    assert [(part.choice.name, part.step) for part in precision.causes(0)] == [("precision_over", 3 / 4)]
    assert [choice.name for choice in about.unused] == [
        "file_order", "missing", "unjudged", "average_precision_over", "failed", "empty",
    ]  # fmt: skip


def test_two_choices_that_matter_only_together_are_told_in_order():
    # gain 1 for a match, over an ideal of 1: with the gain alone nDCG is 1, with the ideal alone 3, with both 1
    about = explained({"q": {"a": 3}}, {"q": ["a"]}, "trec", "cupertino", "nDCG@10")
    (ndcg,) = about.measures
    assert ndcg.values(0) == (1.0, 1.0)
    alone = {part.choice.name: part.step_alone for part in ndcg.parts}
    assert alone["ideal"] == 2.0
    assert alone["gain"] == 0.0
    assert not ndcg.changed.any()
    assert "ideal" not in {choice.name for choice in about.unused}  # alone it does change something


def test_a_query_that_loses_its_value_says_which_choice_took_it_and_why():
    grades = {"fine": {"a": 1}, "failed": {"a": 1}, "empty": {"a": 1}, "unknown": {"a": 1}, "gone": {"a": 1}}
    lists = {"fine": ["a"], "failed": None, "empty": [], "unknown": ["u"]}
    about = explained(grades, lists, "trec", "searchtweak", "RR@10")
    (rr,) = about.measures
    assert rr.a.tolist() == [1.0, 0.0, 0.0, 0.0, 0.0]
    assert np.isnan(rr.b).tolist() == [False, True, True, True, True]
    causes = {about.query_ids[place]: [part.choice.name for part in rr.causes(place)] for place in range(5)}
    assert causes == {
        "fine": [], "failed": ["failed"], "empty": ["empty"], "unknown": ["unjudged"], "gone": ["missing"],
    }  # fmt: skip
    assert dict(rr.reasons_b) == {
        "failed": "the system failed on it",
        "empty": "nothing was returned",
        "unknown": "nothing within the cutoff is judged",
        "gone": "not returned",
    }
    assert (known_mean(rr.a), known_mean(rr.b), rr.difference) == (1 / 5, 1.0, 4 / 5)
    assert rr.most_changed() == [1, 2, 3, 4]


documents = [f"d{n}" for n in range(8)]
grade_maps = st.dictionaries(st.sampled_from(documents), st.integers(-1, 3), min_size=1, max_size=6)
answer_lists = st.one_of(st.none(), st.lists(st.sampled_from(documents), unique=True, max_size=6))


@settings(max_examples=min(60, settings().max_examples))
@given(
    grades=st.lists(grade_maps, min_size=3, max_size=3),
    lists=st.lists(answer_lists, min_size=3, max_size=3),
    a=st.sampled_from(sorted(CONVENTIONS)),
    b=st.sampled_from(sorted(CONVENTIONS)),
)
def test_the_steps_add_up_to_the_whole_difference(grades, lists, a, b):
    if a == b:
        b = "searchtweak" if a != "searchtweak" else "trec"
    names = ["q1", "q2", "q3"]
    about = explained(
        dict(zip(names, grades, strict=True)), dict(zip(names, lists, strict=True)), a, b, "nDCG@3", "P@3", "AP", "RR"
    )
    for measure in about.measures:
        if None not in [measure.difference, *(part.step for part in measure.parts)]:
            assert sum(part.step for part in measure.parts) == pytest.approx(measure.difference, abs=1e-12)
        for place in range(3):
            steps = [part.step_of(place) for part in measure.parts]
            one, other = measure.values(place)
            if None not in [one, other, *steps]:
                assert sum(steps) == pytest.approx(other - one, abs=1e-12)
            assert measure.changed[place] <= bool(measure.causes(place))


@pytest.mark.parametrize("name", sorted(set(CONVENTIONS) - {"trec"}))
def test_both_ends_are_what_evaluate_gives_under_each(name):
    grades = {"q1": {"a": 3, "b": 1, "n": 0}, "q2": {"a": 1}, "q3": {"n": 0}}
    lists = {"q1": ["u", "n", "b", "a"], "q2": ["x"], "q3": ["n"]}
    about = explained(grades, lists, "trec", name, "nDCG@3", "P@5", "AP", "RR")
    testset = TestSet("set", tuple(map(Query, grades)), grades)
    for measure in about.measures:
        for convention, values in (("trec", measure.a), (name, measure.b)):
            alone = evaluate(testset, lists, measures=[measure.measure], convention=convention)
            assert [alone.value(measure.measure, query_id) for query_id in grades] == [
                None if np.isnan(value) else value for value in values.tolist()
            ]


def test_a_run_is_ranked_once_for_all_choices_that_leave_the_ranking_as_it_is():
    testset = TestSet("set", (Query("q"),), {"q": {"a": 1}})
    asked = []

    def rank(rules):
        asked.append(rules)
        return rank_run(testset, Run("run", {"q": Answer(Outcome.ANSWERED, (Hit("a"),))}), rules)

    uncut = replace(TREC, name="uncut", ideal="judged uncut")
    explain(testset, rank, TREC, uncut, parse_all(["nDCG@10", "AP", "P@5"]))
    assert len(asked) == 1
    explain(testset, rank, TREC, convention_named("cupertino"), parse_all(["nDCG@10", "AP", "P@5"]))
    # as trec has it; with the order given, and credit, and gain after it; credit alone, gain alone
    assert len(asked) == 1 + 6


def test_a_convention_is_not_explained_by_itself():
    with pytest.raises(UsageError, match="both conventions are trec"):
        explained({"q": {"a": 1}}, {"q": ["a"]}, "trec", "trec", "RR")


# Margins ------------------------------------------------------------------------------------------------------------


def tied_ranking():
    # q1: a ties with x and y, ranks 1 to 3 (y, x, a by descending id); q2 has no tie
    testset = TestSet("set", (Query("q1"), Query("q2")), {"q1": {"a": 1}, "q2": {"a": 1}})
    scores = {"q1": {"a": 1.0, "x": 1.0, "y": 1.0}, "q2": {"x": 2.0, "a": 1.0}}
    answers = {q: Answer(Outcome.ANSWERED, tuple(Hit(d, s) for d, s in hits.items())) for q, hits in scores.items()}
    return testset, rank_run(testset, Run("run", answers, order="descending"), TREC), scores


def test_margins_of_a_mean():
    _, ranking, _ = tied_ranking()
    ties = tie_margin(parse("RR"), ranking)
    # RR of q1 is 1/3 to 1, of q2 1/2
    assert (ties.mean_low, ties.mean_high) == pytest.approx(((1 / 3 + 1 / 2) / 2, (1 + 1 / 2) / 2))
    assert (ties.n_results, ties.n_queries) == (1, 1)
    unjudged = unjudged_margin(parse("P@2"), ranking)
    # y and x of q1 and x of q2 are unjudged: 0 to 2 of 2, and 1 to 2 of 2
    assert (unjudged.mean_low, unjudged.mean_high) == pytest.approx(((0 + 1 / 2) / 2, 1.0))
    assert (unjudged.n_results, unjudged.n_queries) == (3, 2)


def test_a_mean_has_no_margin_where_one_of_its_queries_has_none():
    testset = TestSet("set", (Query("q"),), {"q": {"a": 1}})
    run = Run("run", {"q": Answer(Outcome.ANSWERED, (*(Hit(f"x{n}") for n in range(300)), Hit("a")))})
    ranking = rank_run(testset, run, TREC)
    margin = unjudged_margin(parse("AP"), ranking)
    assert (margin.mean_low, margin.mean_high) == (None, None)
    assert margin.why == "too many results are unjudged in 1 of 1 queries: give the measure a cutoff"
    # ten relevant results more, all of the first ten: 10 of 11
    assert unjudged_margin(parse("AP@10"), ranking).mean_high == 10 / 11


@pytest.mark.parametrize(
    ("measure", "sentence"),
    [
        # (1/3 + 1/2) / 2 and (1 + 1/2) / 2
        (
            "RR",
            "judged documents in ties: 1 in 1 of 2 queries; RR is between 0.4167 and 0.7500, depending on the order of the ties",
        ),
        ("P@3", "judged documents in ties: 1 in 1 of 2 queries; P@3 is the same for every order of the ties"),
        ("Judged@2", "judged documents in ties: 1 in 1 of 2 queries"),
    ],
)
def test_an_evaluation_says_what_ties_could_do_to_its_primary_measure(measure, sentence):
    testset, _, scores = tied_ranking()
    assert sentence in evaluate(testset, scores, measures=[measure, "AP"]).warnings
    given = {query_id: list(hits) for query_id, hits in scores.items()}
    assert not any("ties" in warning for warning in evaluate(testset, given, measures=[measure]).warnings)


def test_an_evaluation_says_what_becomes_of_queries_without_a_relevant_document(monkeypatch):
    monkeypatch.setitem(CONVENTIONS, "mine", replace(TREC, name="mine", no_relevant="skip"))
    testset = TestSet("set", (Query("q"), Query("none")), {"q": {"a": 1}, "none": {"a": 0}})
    evaluation = evaluate(testset, {"q": ["a"], "none": ["a"]}, measures=["RR"], convention="mine")
    assert "judged, none relevant: 1 of 2 queries (without a value): none" in evaluation.warnings
    assert "RR has no value for 1 of 2 queries (judged, none relevant): none" in evaluation.warnings
    assert evaluation.summaries[parse("RR")].mean == 1.0


# The command ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "qrels").write_text("q1 0 a 2\nq1 0 b 1\nq2 0 a 1\nq3 0 a 1\n")
    (tmp_path / "sys.run").write_text(
        "q1 Q0 a 1 1.0 t\nq1 Q0 x 2 1.0 t\nq1 Q0 b 3 0.5 t\nq2 Q0 x 1 2.0 t\nq2 Q0 y 2 1.0 t\n"
    )


def run(*arguments, code=0):
    done = CliRunner().invoke(command_line("explain"), ["explain", "qrels", "sys.run", *arguments])
    assert done.exit_code == code, done.output
    return done


@pytest.mark.usefixtures("files")
def test_text():
    text = run("trec", "searchtweak", "-m", "nDCG@2", "-m", "RR", "--top", "1").stdout
    assert text.startswith("Why sys scores differently under trec and searchtweak\n")
    assert "No effect here: precision_over, average_precision_over, failed, empty." in text
    assert "nDCG@2: the 1 that changed most of 3:" in text
    # q1 by score: x a b; by rank: a x b. RR 1/2 and 1
    assert "file_order +0.5000" in run("trec", "searchtweak", "-m", "RR").stdout


@pytest.mark.usefixtures("files")
def test_json_holds_every_query_and_its_causes():
    result = json.loads(run("trec", "searchtweak", "-m", "RR", "--format", "json", "--ties", "--unjudged").stdout)
    assert result["choices"][0] == {"name": "file_order", "a": "score", "b": "rank"}
    assert result["unused"] == ["ideal", "precision_over", "average_precision_over", "failed", "empty"]
    about = result["measures"]["RR"]
    assert (about["a"], about["n_a"], about["b"], about["n_b"]) == (pytest.approx(1 / 6), 3, 1.0, 1)
    assert about["changed"] == ["q2", "q3", "q1"]
    queries = about["queries"]
    found = {name: (each["a"], each["b"], each["difference"], each["causes"]) for name, each in queries.items()}
    assert found == {
        "q1": (0.5, 1.0, 0.5, ["file_order"]),
        "q2": (0.0, None, None, ["unjudged"]),
        "q3": (0.0, None, None, ["missing"]),
    }
    assert (queries["q1"]["steps"]["file_order"], queries["q2"]["steps"]["unjudged"]) == (0.5, None)
    assert [queries[name]["why_not_b"] for name in ("q1", "q2", "q3")] == [
        None,
        "nothing within the cutoff is judged",
        "not returned",
    ]
    assert sum(part["in_order"] for part in about["parts"]) == pytest.approx(about["difference"])
    ties, unjudged = result["ties"][0], result["unjudged"][0]
    # a of q1 ties with x: 1/2 or 1, over three queries
    assert (ties["n_results"], ties["low"], ties["high"]) == (1, pytest.approx(1 / 6), pytest.approx(1 / 3))
    # as it is, or x first in both: q3 has nothing
    assert (unjudged["n_results"], unjudged["low"], unjudged["high"]) == (3, pytest.approx(1 / 6), pytest.approx(2 / 3))


@pytest.mark.usefixtures("files")
def test_csv_has_a_row_a_query_and_a_column_a_choice():
    rows = list(csv.DictReader(io.StringIO(run("trec", "quepid", "-m", "nDCG@1", "--format", "csv").stdout)))
    assert list(rows[0]) == ["query", "measure", "trec", "quepid", "difference", "gain", "ideal", "precision_over"]
    assert [row["query"] for row in rows] == ["q1", "q2", "q3"]


@pytest.mark.usefixtures("files")
def test_markdown_and_html(tmp_path):
    done = run("trec", "trec9", "--format", "markdown", "--html", "why.html")
    assert done.stdout.startswith("# Why sys scores differently under trec and trec9\n")
    assert "Per-query differences" in (tmp_path / "why.html").read_text()


@pytest.mark.usefixtures("files")
def test_conventions_that_make_the_same_choices_say_so():
    text = run("trec", "trec10", "-m", "RR").stdout
    assert "trec and trec10 make the same choices." in text
    assert "No value differs." in text


@pytest.mark.usefixtures("files")
def test_an_option_settles_a_choice_for_both():
    about = json.loads(run("trec", "trec9", "-m", "RR", "--missing", "zero", "--format", "json").stdout)
    assert about["measures"]["RR"]["n_b"] == 3
    assert about["measures"]["RR"]["difference"] == 0


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["trec", "trec"], "both conventions are trec"),
        (["trec", "trek"], "unknown convention 'trek'"),
        (["trec", "trec9", "-m", "nDGC@10"], "unknown measure 'nDGC'"),
    ],
)
def test_a_mistake_is_a_line_and_exit_code_2(arguments, message):
    assert message in run(*arguments, code=2).stderr


def test_a_collected_run_is_explained_too(tmp_path, monkeypatch):
    from cranfield.formats.runs.jsonl import write_run

    monkeypatch.chdir(tmp_path)
    (tmp_path / "qrels").write_text("q1 0 a 1\nq2 0 a 1\n")
    answers = {"q1": Answer(Outcome.ANSWERED, (Hit("a"),)), "q2": Answer(Outcome.TIMEOUT, reason="no answer in 1 s")}
    write_run(Run("mine", answers), tmp_path / "sys.run")
    result = json.loads(run("trec", "octocode", "-m", "RR", "--format", "json").stdout)
    assert result["run"] == "mine"
    assert result["measures"]["RR"]["queries"]["q2"]["causes"] == ["failed"]


def test_grades_made_measure_by_measure_are_not_explained_as_if_they_were_the_same():
    rated = TestSet("rated", (Query("q"),), {"q": {"a": 1}}, ratings={"q": (Rating("a", "one", 1),)})
    rank = ranker(rated, Run("run", {"q": Answer(Outcome.ANSWERED, (Hit("a"),))}))
    with pytest.raises(UsageError, match="each measure has its own grades"):
        explain(rated, rank, TREC, convention_named("searchtweak"), parse_all(["P@1"]))
    bare = replace(rated, ratings={})
    assert explain(bare, rank, TREC, convention_named("searchtweak"), parse_all(["P@1"])).measures[0].b.tolist() == [
        1.0
    ]
