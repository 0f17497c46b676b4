"""Summaries of results: what `evaluation` and `stats` give of the same values in memory, and statsmodels of clusters."""

import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests
from tests.result_folders import noisy, results_of

from cranfield.base.errors import InputError, UsageError
from cranfield.evaluation.evaluate import summarise
from cranfield.evaluation.options.blocks import CompareOptions, Limits
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.measures import parse
from cranfield.scale.summary import summarise_results
from cranfield.scale.values import UnitKind
from cranfield.stats.describe import geometric_mean, weighted_mean
from cranfield.stats.stratified import stratified_t
from cranfield.stats.table import run_tests

AP, NDCG = parse("AP"), parse("nDCG@10")
QUICK = CompareOptions(draws=2000)


def table_of(path, columns, n):
    pq.write_table(pa.table({"query_id": [f"q{number}" for number in range(n)], **columns}), path)
    return path


def with_holes(n, seed=0):
    values = noisy(n, seed=seed)
    values[np.random.default_rng(seed).random((n, 2)) < 0.1] = np.nan
    return values


def close(value):
    return pytest.approx(value, rel=1e-12, abs=1e-12)


@settings(deadline=None, max_examples=min(20, settings().max_examples))
@given(n=st.integers(1, 300), seed=st.integers(0, 99), n_units=st.integers(2, 400))
def test_means_are_those_of_the_values_in_memory(tmp_path_factory, n, seed, n_units):
    values = with_holes(n, seed)
    results = results_of(tmp_path_factory.mktemp("results"), {"AP": values}, step=37)
    summary = summarise_results(results, QUICK, n_units=n_units)
    for place, system in enumerate(summary.systems):
        known = values[~np.isnan(values[:, place]), place]
        expected, found = summarise(known, measure=AP), system.measures[AP]
        for name in ("mean", "std", "ci_low", "ci_high", "total", "geometric_mean"):
            assert getattr(found, name) == (None if getattr(expected, name) is None else close(getattr(expected, name)))
        assert (found.n, system.n_without_value[AP]) == (len(known), n - len(known))


@pytest.mark.parametrize("n", [1, 2, 7, 15, 400])
def test_where_each_query_is_a_unit_the_tests_are_those_of_stats(tmp_path, n):
    values = with_holes(n, 3)
    pair = summarise_results(results_of(tmp_path, {"AP": values}), QUICK).pairs[0]
    known = values[~np.isnan(values).any(axis=1)]
    expected, found = run_tests(*known.T, n_draws=2000), pair.measures[AP]
    for name in ("permutation", "bootstrap"):
        assert replace(found.tests[name], p_adjusted=None) == expected[name]
    about, by_t = found.tests["t"], expected["t"]
    for name in ("statistic", "p_two_sided", "p_one_sided", "ci_low", "ci_high"):
        value = getattr(by_t, name)
        assert getattr(about, name) == (None if value is None else pytest.approx(value, rel=1e-9))
    delta = known[:, 1] - known[:, 0]
    assert pair.counts[AP] == ((delta > 0).sum(), (delta == 0).sum(), (delta < 0).sum())
    assert (found.n, found.n_nonzero) == (len(known), np.count_nonzero(delta))


def test_random_groups_give_the_same_means_and_the_same_t_and_much_the_same_intervals(tmp_path):
    results = results_of(tmp_path, {"AP": noisy(5000, gain=0.004)})
    every, grouped = (summarise_results(results, QUICK, n_units=n) for n in (5000, 400))
    assert (every.units.kind, grouped.units.kind) == (UnitKind.QUERY, UnitKind.GROUP)
    assert grouped.units.n == 400
    a, b = (summary.pairs[0].measures[AP] for summary in (every, grouped))
    assert (a.delta, a.n) == (b.delta, b.n)
    assert a.tests["t"] == replace(b.tests["t"], p_adjusted=a.tests["t"].p_adjusted)
    for name in ("permutation", "bootstrap"):
        width = a.tests[name].ci_high - a.tests[name].ci_low
        assert b.tests[name].ci_high - b.tests[name].ci_low == pytest.approx(width, rel=0.1)
        assert b.tests[name].ci_low == pytest.approx(a.tests[name].ci_low, abs=0.1 * width)
    assert any("400 random groups of queries" in caveat for caveat in grouped.caveats)


def test_groups_are_those_of_the_seed_and_the_ids_not_of_the_order(tmp_path):
    values, order = noisy(900), np.random.default_rng(0).permutation(900)
    straight = results_of(tmp_path / "a", {"AP": values})
    shuffled = results_of(tmp_path / "b", {"AP": values[order]}, query_ids=[f"q{number}" for number in order])
    first, second = (summarise_results(each, QUICK, n_units=100).pairs[0].measures[AP] for each in (straight, shuffled))
    assert first.tests["permutation"].ci_low == close(second.tests["permutation"].ci_low)
    other = summarise_results(straight, replace(QUICK, seed=1), n_units=100).pairs[0].measures[AP]
    assert other.tests["permutation"].ci_low != first.tests["permutation"].ci_low


@pytest.mark.parametrize("n_units", [3000, 64])
def test_clusters_are_the_units_and_the_error_is_that_of_statsmodels(tmp_path, n_units):
    n, rng = 1200, np.random.default_rng(5)
    user = rng.integers(0, 150, n)
    values = np.clip(noisy(n) + rng.normal(0, 0.1, (150, 2))[user], 0, 1)
    table = table_of(tmp_path / "t.parquet", {"user": [f"u{each}" for each in user]}, n)
    summary = summarise_results(
        results_of(tmp_path / "r", {"AP": values}), QUICK, table=table, cluster="user", n_units=n_units
    )
    about = summary.pairs[0].measures[AP]
    assert summary.units.n_clusters == len(np.unique(user))
    assert summary.units.largest == np.bincount(user).max()
    assert about.delta == close((values[:, 1] - values[:, 0]).mean())
    if n_units < 150:
        assert summary.units.kind is UnitKind.CLUSTER_GROUP
        assert 50 < summary.units.n <= 64  # 150 clusters in 64 groups leave some empty
        return
    assert (summary.units.kind, summary.units.n) == (UnitKind.CLUSTER, len(np.unique(user)))
    for column, found in (
        (values[:, 1] - values[:, 0], about.tests["t"]),
        (values[:, 0], summary.systems[0].measures[AP]),
    ):
        fitted = sm.OLS(column, np.ones(n)).fit(cov_type="cluster", cov_kwds={"groups": user}, use_t=True)
        assert (found.ci_low, found.ci_high) == pytest.approx(tuple(fitted.conf_int()[0]), rel=1e-8)
    assert about.tests["t"].p_two_sided == pytest.approx(fitted_p(values, user), rel=1e-6)


def fitted_p(values, user):
    delta = values[:, 1] - values[:, 0]
    return sm.OLS(delta, np.ones(len(delta))).fit(cov_type="cluster", cov_kwds={"groups": user}, use_t=True).pvalues[0]


def test_a_query_without_a_cluster_is_its_own_and_is_named(tmp_path):
    users = ["u1"] * 40 + ["u2"] * 40 + [None, "", "u3"]
    table = table_of(tmp_path / "t.parquet", {"user": users}, 83)
    results = results_of(tmp_path / "r", {"AP": noisy(85)})
    summary = summarise_results(results, QUICK, table=table, cluster="user")
    assert (summary.units.n, summary.units.n_clusters, summary.units.n_without) == (7, 3, 4)
    assert summary.units.without == ("q80", "q81", "q83", "q84")
    assert (summary.n_without_row, summary.without_row) == (2, ("q83", "q84"))
    assert summary.caveats[0].startswith("there are only 7 clusters")
    assert any("without a cluster, each its own: 4 of 85 (q80, q81, q83, q84)" in caveat for caveat in summary.caveats)


def test_p_values_are_adjusted_over_systems_and_measures(tmp_path):
    systems = ("old", "a", "b", "c")
    values = {name: noisy(120, 4, seed=seed, gain=0.008) for seed, name in enumerate(("AP", "RR", "nDCG@10"))}
    summary = summarise_results(results_of(tmp_path, values, systems=systems), replace(QUICK, primary="AP"))
    families = ([AP], [parse("RR"), NDCG])
    for family in families:
        results = [pair.measures[measure].tests["permutation"] for pair in summary.pairs for measure in family]
        expected = multipletests([result.p_two_sided for result in results], method="holm")[1]
        assert [result.p_adjusted for result in results] == close(expected.tolist())


def test_of_several_systems_the_adjusted_p_has_to_agree_with_the_interval(tmp_path):
    # a seed was looked for with a p-value under .05, and over .05 / 4; the other systems do not differ
    pair = noisy(100, 2, seed=2, gain=0.022)
    values = np.concatenate([pair, pair[:, :1], pair[:, :1], pair[:, :1]], axis=1)
    systems = ("old", "new", "c", "d", "e")
    alone = summarise_results(results_of(tmp_path / "a", {"AP": values[:, :2]}), QUICK).pairs[0]
    pair = summarise_results(results_of(tmp_path / "b", {"AP": values}, systems=systems), QUICK).pairs[0]
    p = alone.measures[AP].tests["permutation"].p_two_sided
    assert p <= 0.05 < 4 * p
    assert alone.verdict.code is VerdictCode.BETTER
    assert pair.verdict.code is VerdictCode.NOT_SIGNIFICANT
    assert "Holm's adjustment over 4 systems" in pair.verdict.reasons[0]


@pytest.mark.parametrize(("gain", "code"), [(0.1, "better"), (-0.1, "worse"), (0.0, "not_significant")])
def test_the_verdict_is_that_of_the_interval(tmp_path, gain, code):
    assert summarise_results(results_of(tmp_path, {"AP": noisy(200, gain=gain)}), QUICK).pairs[0].verdict.code == code


def test_a_margin_and_limits_are_those_of_a_comparison(tmp_path):
    results = results_of(tmp_path / "a", {"AP": noisy(900, gain=0.001)})
    assert summarise_results(results, replace(QUICK, margin=0.05)).pairs[0].verdict.code is VerdictCode.EQUIVALENT
    strict = replace(QUICK, limits=Limits(min_judged_share=0.5))
    verdict = summarise_results(results, strict).pairs[0].verdict
    assert (verdict.code, verdict.reasons[0][:24]) == (VerdictCode.INVALID, "old: Judged@10 is 40.0 %")
    values = noisy(100)
    values[:30, 1] = np.nan
    lost = summarise_results(results_of(tmp_path / "b", {"AP": values}), QUICK).pairs[0].verdict
    assert (lost.code, "30 of 100 queries" in lost.reasons[0]) == (VerdictCode.INVALID, True)
    values = noisy(100)
    values[:6, 0], values[6:12, 1] = np.nan, np.nan
    both = summarise_results(results_of(tmp_path / "c", {"AP": values}), QUICK).pairs[0].verdict
    assert (both.code, "12 of 100 queries" in both.reasons[0]) == (VerdictCode.INVALID, True)


def test_nan_is_no_cluster_and_no_stratum(tmp_path):
    n = 120
    user = np.where(np.arange(n) % 4, np.arange(n) % 30, np.nan)
    table = table_of(tmp_path / "t.parquet", {"user": user}, n)
    results = results_of(tmp_path / "r", {"AP": noisy(n)})
    summary = summarise_results(results, QUICK, table=table, cluster="user", strata=["user"])
    assert (summary.units.n_without, summary.units.largest) == (30, 4)
    assert {row.value: row.n for row in summary.strata}["(no value)"] == 30


def test_strata_have_means_and_differences_and_the_stratified_mean_is_that_of_stats(tmp_path):
    n = 300
    language = np.array(["de", "en", "fr"])[np.random.default_rng(0).integers(0, 3, n)]
    language[7] = "is"  # a stratum of one query
    values = noisy(n)
    table = table_of(tmp_path / "t.parquet", {"language": language}, n)
    summary = summarise_results(results_of(tmp_path / "r", {"AP": values}), QUICK, table=table, strata=["language"])
    assert [row.value for row in summary.strata] == ["de", "en", "fr", "is"]
    delta = values[:, 1] - values[:, 0]
    for row in summary.strata:
        members = language == row.value
        expected, found = summarise(delta[members]), row.differences[0]
        assert (row.n, found.n) == (members.sum(), members.sum())
        assert (found.delta, found.baseline_mean) == close((expected.mean, values[members, 0].mean()))
        assert found.ci_low == (None if expected.ci_low is None else close(expected.ci_low))
        mean = summarise(values[members, 1], measure=AP)
        assert (row.means[1].mean, row.means[1].ci_high) == (close(mean.mean), mean.ci_high and close(mean.ci_high))
    stratified = next(row for row in summary.stratified if row.of == "difference")
    assert stratified.mean == close(delta.mean())
    expected = stratified_t(delta, language.tolist())
    assert (stratified.ci_low, stratified.ci_high) == pytest.approx((expected.ci_low, expected.ci_high), rel=1e-9)


def test_strata_and_clusters_together_keep_clusters_whole(tmp_path):
    """With one stratum the stratified error is that of the clusters; in two it is that of weighted least squares on both."""
    n, rng = 600, np.random.default_rng(1)
    user, device = rng.integers(0, 60, n), rng.integers(0, 2, n)
    values = np.clip(noisy(n) + rng.normal(0, 0.1, (60, 2))[user], 0, 1)
    columns = {"user": user, "device": np.array(["phone", "desk"])[device]}
    table = table_of(tmp_path / "t.parquet", columns, n)
    summary = summarise_results(
        results_of(tmp_path / "r", {"AP": values}), QUICK, table=table, cluster="user", strata=["device"]
    )
    delta = values[:, 1] - values[:, 0]
    design = np.column_stack([device == 0, device == 1]).astype(float)
    fitted = sm.OLS(delta, design).fit(
        cov_type="cluster", cov_kwds={"groups": user, "use_correction": False}, use_t=True
    )
    shares = design.mean(axis=0)
    error = math.sqrt(shares @ fitted.cov_params() @ shares * 60 / 59)
    found = next(row for row in summary.stratified if row.of == "difference")
    half = (found.ci_high - found.ci_low) / 2
    assert half == pytest.approx(2.000995 * error, rel=1e-5)  # t of 59 degrees of freedom
    for place, value in enumerate(("phone", "desk")):
        row = next(row for row in summary.strata if row.value == value)
        members = device == place
        alone = sm.OLS(delta[members], np.ones(members.sum())).fit(
            cov_type="cluster", cov_kwds={"groups": user[members]}, use_t=True
        )
        ends = (row.differences[0].ci_low, row.differences[0].ci_high)
        assert ends == pytest.approx(tuple(alone.conf_int()[0]), rel=1e-8)


def test_weights_give_weighted_means_and_shares_of_strata(tmp_path):
    kind = np.where(np.arange(100) < 30, "a", "b")
    values, weight = noisy(100), np.arange(100) % 5.0 + (kind == "a")  # 30 of 100 queries have 90 of 230
    table = table_of(tmp_path / "t.parquet", {"w": weight, "kind": kind}, 100)
    summary = summarise_results(
        results_of(tmp_path / "r", {"AP": values}), QUICK, table=table, weight="w", strata=["kind"]
    )
    assert summary.systems[1].measures[AP].weighted_mean == close(weighted_mean(values[:, 1], weight))
    share = weight[:30].sum() / weight.sum()
    expected = share * values[:30, 0].mean() + (1 - share) * values[30:, 0].mean()
    assert next(row.mean for row in summary.stratified) == close(expected)


def test_a_measure_that_is_one_number_over_all_queries_is_summed_up_and_not_compared(tmp_path):
    values = {"GMAP": noisy(50), "AP": noisy(50)}
    summary = summarise_results(results_of(tmp_path, values), QUICK)
    found = summary.systems[0].measures[parse("GMAP")]
    assert (found.aggregate, found.mean) == ("geometric mean", close(geometric_mean(values["GMAP"][:, 0])))
    expected = summarise(np.log(np.maximum(values["GMAP"][:, 0], 1e-5)))
    assert (found.ci_low, found.ci_high) == close((math.exp(expected.ci_low), math.exp(expected.ci_high)))
    assert (summary.primary, list(summary.pairs[0].measures)) == (AP, [AP])


def test_missing_queries_judged_share_and_rows_are_counted(tmp_path):
    answered = np.ones((20, 2), dtype=bool)
    answered[:3, 1] = False
    values = noisy(20)
    values[:3, 1] = 0.0
    results = results_of(tmp_path, {"AP": values}, answered=answered, n_rows=400, n_rows_unjudged=30)
    old, new = summarise_results(results, QUICK).systems
    assert (old.n_missing, new.n_missing, new.n_rows) == (0, 3, 170)
    assert (old.judged_share, new.judged_share) == close((0.4, 0.4))
    caveats = summarise_results(results, QUICK).caveats
    low = "Judged@10 is under 50.0 % (old 40.0 %, new 40.0 %): judgments of the other results can change the figures"
    assert caveats[0] == low
    assert any("rows of queries that are not in the test set: 30" in caveat for caveat in caveats)
    assert any("new does not answer 3 of 20 queries" in caveat for caveat in caveats)


@pytest.mark.parametrize("others", [(), tuple(f"other {number}" for number in range(100))])
def test_queries_under_ids_in_another_form_make_a_comparison_void(tmp_path, others):
    answered = np.ones((20, 2), dtype=bool)
    answered[:9, 1] = False
    ids = [f"{number:02d}" for number in range(1, 21)]
    sentence = (
        "new does not answer queries that the runs would answer if leading zeros of numbers were removed (in the runs '1', "
        "in the test set '01')"
    )
    values = {"AP": noisy(20)}
    results = results_of(
        *(tmp_path, values), query_ids=ids, answered=answered, n_rows_unjudged=90, extra_queries=(*others, *"123456789")
    )
    summary = summarise_results(results, QUICK)
    assert sentence in summary.pairs[0].verdict.reasons
    accepted = summarise_results(results, replace(QUICK, limits=Limits(evidence={"query-form": "caveat"})))
    assert sentence not in accepted.pairs[0].verdict.reasons
    assert sentence in accepted.caveats


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cluster": "user"}, "without a table"),
        ({"options": CompareOptions(test="wilcoxon")}, "wilcoxon needs the differences of all queries"),
        ({"options": CompareOptions(primary="nDCG@10")}, "nDCG@10 was not evaluated"),
        ({"options": CompareOptions(primary="GMAP")}, "one number over all queries"),
        ({"n_units": 1}, "1 units"),
    ],
)
def test_calls_that_cannot_be_are_refused(tmp_path, options, message):
    results = results_of(tmp_path, {"AP": noisy(10), "GMAP": noisy(10)})
    with pytest.raises(UsageError, match=message):
        summarise_results(results, **options)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,user\nq1,u\n", "no column of query ids"),
        ("query_id,usr\nq1,u\n", "unknown column 'user'"),
        ("query_id,user,language,w\nq1,u,de,1\nq1,v,en,1\n", "more than one row"),
        ("query_id,user,language,w\nq1,u,de,-1\n", "weight in row 0"),
        ("query_id,user,language,w\nq1,u,de,much\n", "not numeric"),
        ("query_id,user,language,w\n" + "".join(f"q{n},u,l{n},1\n" for n in range(300)), "more than 200 values"),
        ("query_id,user,language,w\nq1,u\n", "cannot be read"),
    ],
)
def test_a_table_that_cannot_be_used_is_refused(tmp_path, text, message):
    (tmp_path / "t.csv").write_text(text)
    results = results_of(tmp_path / "r", {"AP": noisy(10)})
    with pytest.raises(InputError, match=message):
        summarise_results(results, table=tmp_path / "t.csv", cluster="user", strata=["language"], weight="w")


def test_a_table_of_text_is_that_of_parquet(tmp_path):
    rows = [(f"q{n}", str(n % 7), ["de", "en"][n % 2], n % 3) for n in range(60)]
    for suffix, mark in ((".csv", ","), (".tsv", "\t")):
        lines = [mark.join(map(str, row)) for row in [("query", "user", "language", "w"), *rows]]
        (tmp_path / f"t{suffix}").write_text("\n".join(lines) + "\n")
    users, languages, weights = zip(*(row[1:] for row in rows), strict=True)
    columns = {"user": pa.array(map(int, users)), "language": pa.array(languages).dictionary_encode(), "w": weights}
    table_of(tmp_path / "t.parquet", columns, 60)
    results = results_of(tmp_path / "r", {"AP": noisy(60)})
    found = [
        summarise_results(results, QUICK, table=path, cluster="user", strata=["language"], weight="w")
        for path in sorted(tmp_path.glob("t.*"))
    ]
    assert len({repr(replace(summary, table="")) for summary in found}) == 1
