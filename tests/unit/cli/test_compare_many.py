"""`cranfield compare` with many runs: a line each, pairs on request, means as CSV."""

from __future__ import annotations

import csv
import json
import re
from functools import cache

import numpy as np
import pytest
from scipy.stats import rankdata
from typer.testing import CliRunner

from cranfield.app.command import Status
from cranfield.app.commands.evaluate import _status
from cranfield.cli.main import command_line
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.stats import simultaneous

N, SYSTEMS = 24, 30


def ranks_of(system):
    """Rank of the relevant document, query by query."""
    return np.random.default_rng(system).integers(1, 10 - system // 4, N)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Qrels and thirty runs of rising skill; twelve of them do not answer one query each."""
    path = tmp_path_factory.mktemp("many")
    (path / "qrels.txt").write_text("".join(f"q{n} 0 a 1\n" for n in range(N)))
    for system in range(SYSTEMS):
        (path / f"s{system:02}.run").write_text(
            "".join(
                f"q{n} Q0 {'a' if rank == found else f'x{rank}'} {rank} {10 - rank} s\n"
                for n, found in enumerate(ranks_of(system))
                for rank in range(1, 10)
                if not (system < 12 and n == system)
            )
        )
    return path


def compare(*args, systems=SYSTEMS):
    """Exit code and output in the current folder; with fewer systems where their number is not the point: that takes longest."""
    runs = [f"s{system:02}.run" for system in range(systems)]
    command = ["compare", "qrels.txt", *runs, "-m", "RR", "-m", "P@5", "--draws", "2000", "--full", *args]
    done = CliRunner().invoke(command_line("compare", "measures"), command, prog_name="cranfield")
    return done.exit_code, done.stdout, done.stderr


@pytest.fixture(scope="module", autouse=True)
def tails_computed_once():
    """Several tests compare the same systems, and the integrals of Tukey's test take longest."""
    tails = simultaneous._studentized_range_tail

    @cache
    def known(q, systems, df):
        return tails(np.frombuffer(q), systems, df)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simultaneous, "_studentized_range_tail", lambda q, *rest: known(q.tobytes(), *rest))
        yield


@pytest.fixture
def cranfield(folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "110")
    return compare


@pytest.fixture(scope="module")
def all_systems(folder):
    """The comparison of all systems, with its means.csv and many.html in the folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("COLUMNS", "110")
        return compare("--means", "means.csv", "--html", "many.html")


def board(out):
    """Names in the first table, in its order."""
    lines = out.split("role\n")[1].partition("\n\n")[0].splitlines()[1:]
    return [re.search(r"\bs\d\d\b", line)[0] for line in lines]


def test_a_line_a_system_first_and_pairs_on_request(all_systems, cranfield):
    code, out, _ = all_systems
    assert code == 0
    assert sorted(board(out)) == [f"s{system:02}" for system in range(SYSTEMS)]
    assert "permutation, 435 pairs, max-T, 2000 draws" in " ".join(out.split())
    assert out.count(" minus s") <= 1  # the caption of the table against the baseline
    assert out.index("Systems\n") < out.index("Caveats\n") < out.index("Pairs\n")
    _, listed, _ = cranfield("--pairs", systems=6)
    assert listed.count(" minus ") >= 15


def test_warnings_of_one_kind_are_counted_once(all_systems):
    _, out, _ = all_systems
    caveats = " ".join(out[out.index("Caveats\n") : out.index("Pairs\n")].split())
    assert caveats.count("no answer in the run") == 1
    assert "12 systems (s00, s01, s02 and 9 more)" in caveats


def test_the_list_is_sorted_by_name_measure_or_mean_rank(cranfield):
    by_name = board(cranfield("--sort", "name", systems=5)[1])
    assert by_name == [f"s{system:02}" for system in range(5)]
    assert board(cranfield("--sort", "given", systems=5)[1]) == by_name
    assert board(cranfield("--sort", "P@5", systems=5)[1]) != by_name
    values = np.array(
        [[1 / found if system != n else 0 for n, found in enumerate(ranks_of(system))] for system in range(5)]
    )
    mean_ranks = rankdata(-values, axis=0).mean(axis=1)
    assert board(cranfield("--sort", "rank", systems=5)[1]) == [by_name[n] for n in np.argsort(mean_ranks)]
    code, _, err = cranfield("--sort", "size", systems=3)
    assert code == 2
    assert "unknown order 'size'" in err


def test_means_are_a_csv_with_a_line_a_system(all_systems, cranfield, folder):
    code, out, err = all_systems
    assert code == 0
    assert "means.csv" in err
    with (folder / "means.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["system"] for row in rows] == board(out)
    assert [int(row["rank"]) for row in rows] == list(range(1, SYSTEMS + 1))
    assert all(float(row["RR ci_low"]) <= float(row["RR"]) <= float(row["RR ci_high"]) for row in rows)
    code, _, err = cranfield("--means", "means.txt", systems=3)
    assert code == 2
    assert "--means writes CSV" in err


def test_evaluate_sorts_its_systems_and_their_means_too(folder, monkeypatch, tmp_path):
    monkeypatch.chdir(folder)

    def evaluated(sort, *measures):
        runs = [f"s{system:02}.run" for system in (29, 3, 16, 9)]
        options = [part for measure in measures for part in ("-m", measure)]
        command = ["evaluate", "qrels.txt", *runs, *options, "--sort", sort, "--means", str(tmp_path / "means.csv")]
        done = CliRunner().invoke(command_line("evaluate", "measures"), command, prog_name="cranfield")
        if done.exit_code:
            return done.stderr
        with (tmp_path / "means.csv").open() as file:
            return [(row["system"], float(row[measures[0]])) for row in csv.DictReader(file)]

    assert [name for name, _ in evaluated("given", "RR")] == ["s29", "s03", "s16", "s09"]
    assert [name for name, _ in evaluated("name", "RR")] == ["s03", "s09", "s16", "s29"]
    means = [mean for _, mean in evaluated("rr", "RR")]
    assert means == sorted(means, reverse=True)
    ranks = [mean for _, mean in evaluated("RankOfFirst", "RankOfFirst", "RR")]
    assert ranks == sorted(ranks)  # less is better
    assert "unknown order 'mean'; expected RR, given, name" in evaluated("mean", "RR")


def test_what_the_draws_cannot_decide_is_invalid_and_exits_with_3(cranfield):
    code, out, _ = cranfield("--adjust", "holm", systems=11)
    assert code == 3
    assert "VERDICT: invalid" in out
    assert "use 2200 draws" in " ".join(out.split())  # 2 * 55 / .05
    found = json.loads(cranfield("--adjust", "holm", "--format", "json", systems=11)[1])
    assert {pair["verdict"] for pair in found["pairs"]} == {"invalid"}


def test_json_has_every_pair_and_the_leaderboard(cranfield):
    _, out, _ = cranfield("--format", "json", systems=7)
    found = json.loads(out)
    assert len(found["pairs"]) == 21
    assert found["adjust"] == "max-t"
    assert found["smallest_p"] == 2 / 2000
    assert [row["rank"] for row in found["leaderboard"]] == list(range(1, 8))
    assert {"p_tukey", "estimate"} <= set(found["pairs"][0])


def test_options_of_many_are_refused_for_two(cranfield):
    code, _, err = cranfield("--pairs", "--adjust", "holm", systems=2)
    assert code == 2
    assert "--pairs needs three or more runs" in err
    assert "--adjust needs three or more runs" in err


def test_the_page_of_many_systems_stays_small(all_systems, folder):
    assert all_systems[0] == 0
    assert (folder / "many.html").stat().st_size < 400_000


def test_a_verdict_to_fail_on_decides_before_one_that_does_not_count() -> None:
    verdicts = [VerdictCode.INVALID, VerdictCode.WORSE]
    assert _status(verdicts, [VerdictCode.WORSE]) is Status.FAILED
    assert _status(verdicts, None) is Status.VOID
    assert _status([VerdictCode.BETTER], [VerdictCode.WORSE]) is Status.OK
