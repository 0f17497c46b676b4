"""The last line of `cranfield run` is a command: pasted as it is, it gives the same figures and asks nobody."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

SEARCH = """\
echo asked >> asked.txt
case $1 in old) shift=0 ;; new) shift=$((${#2} % 3)) ;; other) shift=$((${#2} % 3 * 2)) ;; esac
found=
for place in 0 1 2 3 4 5; do found="$found, \\"d$(((place + shift) % 6))\\""; done
echo "[${found#, }]"
"""
SYSTEM = '{command: [sh, search.sh, NAME, "{query}"], extract: {json: "@"}}'


def project(folder: Path, text: str, systems: tuple[str, ...], config: str = "cranfield.yaml") -> None:
    (folder / "search.sh").write_text(SEARCH)
    queries = "".join(
        f"  - {{id: q{number}, text: {'x' * number}, judgments: {{d{number % 5 + 1}: {number % 2 + 1}, d0: 1}}}}\n"
        for number in range(1, 13)
    )
    for name in ("queries.yaml", "my queries.yaml"):
        (folder / name).write_text("cranfield_testset: 1\nname: t\nqueries:\n" + queries)
    listed = "".join(f"  {name}: {SYSTEM.replace('NAME', name)}\n" for name in systems)
    (folder / config).write_text(text + "systems:\n" + listed)


def run(folder: Path, *arguments: str) -> list[str]:
    """The commands that a run ends with."""
    done = subprocess.run(
        ["cranfield", "run", "--full", *arguments], cwd=folder, capture_output=True, text=True, timeout=120
    )
    assert done.returncode in {0, 3}, done.stderr
    lines = done.stderr.splitlines()
    place = next(number for number, line in enumerate(lines) if line.startswith("To score "))
    assert "without querying the systems again, change -m in:" in lines[place]
    return [line.removeprefix("  ") for line in lines[place + 1 :]]


def paste(folder: Path, command: str) -> dict:
    done = subprocess.run(
        f"{command} --format json", shell=True, cwd=folder, capture_output=True, text=True, timeout=120
    )
    assert done.returncode in {0, 3}, done.stderr
    return json.loads(done.stdout)


PLAIN = "testset: queries.yaml\n"
SETTINGS = """\
testset: my queries.yaml
measures: [R@2, "nDCG(dcg='exp-log2')@3", AP]
primary: AP
convention: ranx
test: t
alpha: 0.1
margin: 0.0123456789
limits: {max_failed_share: null, min_judged_share: 0.2}
evidence: {identical-runs: off, kept-answers: 3}
latency: {skip_first: 0, smallest_ms: 2.5}
"""


@pytest.mark.parametrize(
    ("text", "systems", "arguments"),
    [
        pytest.param(PLAIN, ("old", "new"), (), marks=pytest.mark.slow),
        pytest.param(PLAIN, ("old",), (), marks=pytest.mark.slow),
        pytest.param(PLAIN, ("old", "new", "other"), (), marks=pytest.mark.slow),
        (PLAIN + "baseline: other\n", ("old", "new", "other"), ()),
        (SETTINGS, ("old", "new"), ("--seed", "7", "--out", "my out")),
        pytest.param(SETTINGS, ("old", "new", "other"), (), marks=pytest.mark.slow),
        pytest.param(SETTINGS, ("old",), (), marks=pytest.mark.slow),
    ],
    ids=["two", "one", "three", "baseline", "settings", "settings of three", "settings of one"],
)
def test_the_command_gives_the_figures_of_the_run_and_asks_nobody(tmp_path, text, systems, arguments):
    project(tmp_path, text, systems)
    (command,) = run(tmp_path, *arguments)
    n_asked = (tmp_path / "asked.txt").read_text().count("\n")
    again = paste(tmp_path, command)
    out = tmp_path / ("my out" if arguments else "cranfield-out")
    first = json.loads((out / "results.json").read_text())
    assert again.get("verdict") == first.get("verdict")
    assert again["primary"] == first["primary"] if "primary" in first else True
    by_name = [{system["name"]: system["measures"] for system in result["systems"]} for result in (first, again)]
    for name, measures in by_name[1].items():
        for measure, values in measures.items():
            assert by_name[0][name][measure] == values, (name, measure)
    assert (tmp_path / "asked.txt").read_text().count("\n") == n_asked


def test_queries_that_a_run_file_lacks_count_again_where_the_convention_leaves_them_out(tmp_path):
    project(tmp_path, "testset: queries.yaml\nmeasures: [RR]\nconvention: trec9\n", ("old",))
    with (tmp_path / "cranfield.yaml").open("a") as config:
        config.write("  part: {run: part.run}\n")
    (tmp_path / "part.run").write_text("".join(f"q{number} Q0 d0 1 1 part\n" for number in range(1, 10)))
    (command,) = run(tmp_path)
    first = json.loads((tmp_path / "cranfield-out" / "results.json").read_text())
    for record in (first, paste(tmp_path, command)):
        (part,) = (system["measures"]["RR"] for system in record["systems"] if system["name"] == "part")
        assert (part["mean"], part["n"]) == (9 / 12, 12)


def test_other_measures_are_scored(tmp_path):
    project(tmp_path, PLAIN, ("old", "new"))
    (command,) = run(tmp_path)
    other = paste(tmp_path, f"{command} -m R@5")
    assert "R@5" in other["systems"][0]["measures"]


def test_each_of_several_test_sets_has_its_command(tmp_path):
    text = "testsets:\n  one: {path: queries.yaml}\n  two: {path: my queries.yaml, measures: [AP]}\n"
    project(tmp_path, text, ("old", "new"))
    commands = run(tmp_path)
    assert len(commands) == 2
    for name, command in zip(("one", "two"), commands, strict=True):
        first = json.loads((tmp_path / "cranfield-out" / name / "results.json").read_text())
        assert paste(tmp_path, command)["verdict"] == first["verdict"]


def test_a_config_in_another_folder_and_files_outside_the_working_directory(tmp_path):
    (tmp_path / "eval").mkdir()
    (tmp_path / "here").mkdir()
    project(tmp_path / "eval", PLAIN, ("old", "new"))
    (command,) = run(tmp_path / "here", "../eval/cranfield.yaml", "--out", "-out")
    first = json.loads((tmp_path / "here" / "-out" / "results.json").read_text())
    assert paste(tmp_path / "here", command)["verdict"] == first["verdict"]
