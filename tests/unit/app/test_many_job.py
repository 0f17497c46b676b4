"""`cranfield run` with three systems or more: order and pairs on request."""

from __future__ import annotations

import csv
import subprocess
from pathlib import Path

import pytest
from tests.command import call

NAMES = "bcadefg"


def run(folder: Path, *options: str, systems: int = 3) -> subprocess.CompletedProcess[str]:
    """The first has the answer at rank 1, the next at 2, and so on."""
    (folder / "qrels.txt").write_text("".join(f"q{n} 0 d 1\n" for n in range(8)))
    for rank, name in enumerate(NAMES):
        rows = [("d" if place == rank else f"x{place}", place) for place in range(7)]
        lines = [f"q{n} Q0 {doc} {place} {9 - place} s\n" for n in range(8) for doc, place in rows]
        (folder / f"{name}.run").write_text("".join(lines))
    lines = [f"  {name}: {{run: {name}.run}}\n" for name in NAMES[:systems]]
    (folder / "cranfield.yaml").write_text("testset: qrels.txt\nmeasures: [RR, P@1]\nsystems:\n" + "".join(lines))
    return call("run", *options, folder=folder)


@pytest.mark.parametrize(("sort", "order"), [("mean", "bca"), ("name", "abc"), ("p@1", "bca"), ("given", "bca")])
def test_the_list_and_the_means_are_in_the_order_that_was_asked_for(tmp_path: Path, sort: str, order: str) -> None:
    done = run(tmp_path, "--sort", sort)
    assert done.returncode == 0, done.stderr
    rows = csv.DictReader((tmp_path / "cranfield-out" / "means.csv").read_text().splitlines())
    assert "".join(row["system"] for row in rows) == order


def test_more_than_fifteen_pairs_are_listed_on_request(tmp_path: Path) -> None:
    assert "All pairs on RR" not in run(tmp_path, systems=7).stdout
    assert "All pairs on RR" in run(tmp_path, "--pairs", systems=7).stdout


@pytest.mark.parametrize(
    ("options", "systems", "message"),
    [
        (("--sort", "size"), 3, "unknown order 'size'; expected P@1, RR, given, mean, name, rank"),
        (("--sort", "name"), 2, "--sort needs three or more systems"),
        (("--pairs",), 2, "--pairs needs three or more systems"),
    ],
)
def test_what_no_report_can_have_is_refused_before_a_query_is_sent(
    tmp_path: Path, options: tuple[str, ...], systems: int, message: str
) -> None:
    done = run(tmp_path, *options, systems=systems)
    assert (done.returncode, message in done.stderr) == (2, True), done.stderr
    assert not (tmp_path / "cranfield-out" / "runs").exists()
