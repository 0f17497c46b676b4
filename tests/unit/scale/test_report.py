"""The report of large results in every form: one system, two and several, with clusters, strata and weights."""

import csv
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.result_folders import noisy, results_of
from tests.unit.reporting.forms import rendered

from cranfield.evaluation.options.blocks import CompareOptions, Limits
from cranfield.reporting import RENDERERS, render
from cranfield.scale.report import scale_document
from cranfield.scale.summary import summarise_results

N = 240
QUICK = CompareOptions(draws=2000)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A user, a language and a weight of nearly every query."""
    path = tmp_path_factory.mktemp("table") / "queries.parquet"
    n = N - 2
    columns = {
        "query_id": [f"q{number}" for number in range(n)],
        "user": [f"u{number % 30}" for number in range(n)],
        "language": np.array(["de", "en", "<b>"])[np.arange(n) % 3],
        "visits": np.arange(n) % 4.0,
    }
    pq.write_table(pa.table(columns), path)
    return path


@pytest.fixture(scope="module")
def summary(tmp_path_factory, table):
    """`n_systems, table?` -> summary."""

    def made(n_systems, *, with_table=False, options=QUICK):
        systems = ("old", "new", "third", "fourth")[:n_systems]
        values = {"nDCG@10": noisy(N, n_systems, gain=0.03), "AP": noisy(N, n_systems, seed=1, gain=0)}
        results = results_of(tmp_path_factory.mktemp("results"), values, systems=systems, n_rows=99, n_rows_unjudged=9)
        columns = {"table": table, "cluster": "user", "strata": ["language"], "weight": "visits"} if with_table else {}
        return summarise_results(results, options, **columns)

    return made


@pytest.mark.parametrize("n_systems", [1, 2, 4])
@pytest.mark.parametrize("with_table", [False, True])
def test_every_form_shows_the_verdict_the_means_and_what_was_read(summary, n_systems, with_table):
    document = scale_document(summary(n_systems, with_table=with_table))
    for name in sorted({*RENDERERS} - {"model-card"}):
        shown = rendered(document, name)
        text = shown if isinstance(shown, str) else shown.decode()
        assert "nDCG@10" in text, name
        assert "<b>" not in text or name != "html"
    text = rendered(document, "text")
    assert "rows of queries that are not in the test set: 9" in text
    assert ("VERDICT: better" in text) == (n_systems > 1)
    assert ("Strata" in text) == with_table
    assert ("Stratified by language" in text) == with_table
    assert ("30 clusters by user" in text) == with_table


def test_two_systems_are_told_first_and_with_numbers(summary):
    lines = render(scale_document(summary(2)), "text").splitlines()
    assert lines[0] == "Is new better than old?"
    verdict = lines.index("VERDICT: better")
    assert verdict < next(place for place, line in enumerate(lines) if line.startswith("Against old"))
    assert lines[verdict + 1].startswith("new is better than old: nDCG@10 0.")


def test_several_systems_have_a_verdict_each(summary):
    found = summary(4)
    text = render(scale_document(found), "text")
    assert "Of 3 systems against old, on nDCG@10: better: new, third, fourth." in text
    payload = json.loads(render(scale_document(found), "json"))
    assert [(each["name"], each["verdict"]["code"]) for each in payload["pairs"]] == [
        (pair.name, pair.verdict.code.value) for pair in found.pairs
    ]


def test_json_and_csv_hold_the_numbers_of_the_summary(summary):
    found = summary(2, with_table=True)
    document = scale_document(found)
    payload = json.loads(render(document, "json"))
    about = found.pairs[0].measures[found.primary]
    told = payload["pairs"][0]["measures"]["nDCG@10"]
    assert (told["delta"], told["ci_low"], told["n"]) == (about.delta, about.ci_low, N)
    assert payload["pairs"][0]["counts"]["nDCG@10"] == list(found.pairs[0].counts[found.primary])
    assert payload["units"] == {
        "kind": "clusters",
        "n": 32,
        "column": "user",
        "n_clusters": 30,
        "largest": 8,
        "n_without": 2,
        "without": ["q238", "q239"],
    }
    assert (payload["about"]["n_queries"], payload["about"]["n_rows_unjudged"]) == (N, 9)
    rows = list(csv.DictReader(render(document, "csv").splitlines()))
    new = next(row for row in rows if (row["system"], row["measure"], row["stratum"]) == ("new", "nDCG@10", ""))
    assert float(new["difference"]) == about.delta
    assert new["verdict"] == found.pairs[0].verdict.code
    assert {row["stratum"] for row in rows} == {"", "de", "en", "<b>", "(no value)"}


def test_a_verdict_that_does_not_count_is_stamped_and_has_no_colours(summary):
    strict = CompareOptions(draws=2000, limits=Limits(min_judged_share=0.9))
    document = scale_document(summary(2, options=strict))
    assert document.verdict.tone == "void"
    assert "do not count" in document.stamp
    assert "VERDICT: invalid" in render(document, "text")


def test_the_same_results_give_the_same_json(summary):
    first, second = (render(scale_document(summary(2, with_table=True)), "json") for _ in range(2))
    assert first == second
