"""Metrics of a file of results, for jobs that end before they are scraped."""

from __future__ import annotations

import base64
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.receiver import Receiver, receiving
from tests.unit.workbench.service.metrics.observations import HOUSE, results_file
from typer.testing import CliRunner

from cranfield.base.errors import InputError, UsageError
from cranfield.cli.main import command_line
from cranfield.gate.rules import words
from cranfield.gate.use_cases.plan import planned
from cranfield.workbench.service.metrics.alerts import gated_systems
from cranfield.workbench.service.metrics.families import Naming
from cranfield.workbench.service.metrics.one_shot import (
    AUTH_VARIABLE,
    exposition,
    push,
    read_observations,
    write_textfile,
)


def lines_of(path: Path, naming: Naming | None = None) -> list[str]:
    text = exposition(read_observations(path), naming or Naming()).text().decode()
    return [line for line in text.splitlines() if not line.startswith("#")]


def test_the_figures_of_results_json(tmp_path: Path) -> None:
    path = results_file(tmp_path)
    os.utime(path, (1_000, 1_000))
    lines = lines_of(path)
    who = 'system="fusion",testset="clinical"'
    assert f'cranfield_measure{{k="10",measure="R",stratum="all",{who}}} 0.82' in lines
    assert f'cranfield_failed_queries{{kind="missing",{who}}} 1.0' in lines
    assert f"cranfield_evaluation_timestamp_seconds{{{who}}} 1000.0" in lines
    assert not [line for line in lines if "age" in line]  # it would stand still in a file


def test_void_results_have_no_measures(tmp_path: Path) -> None:
    lines = lines_of(results_file(tmp_path, void="half of the queries failed"))
    assert not [line for line in lines if line.startswith("cranfield_measure")]
    assert 'cranfield_evaluation_void{system="fusion",testset="clinical"} 1.0' in lines


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{}", "not a file of results"),
        ("[1]", "not a file of results"),
        ('{"testset": 1}', "not a file of results"),
        ("x", "not JSON|expected"),
    ],
)
def test_another_file_is_refused(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "x.json").write_text(content)
    with pytest.raises(InputError, match=message):
        read_observations(tmp_path / "x.json")


GATED = """\
testsets: {hard: {path: hard.yaml}, easy: {path: easy.yaml}}
measures: [R@10, P@1]
gate:
  rules:
    - floor: {measure: R@10, at_least: 0.75}
    - floor: {measure: R@10, every_query: 1}
      testsets: [hard]
    - drop: {measure: R@10, at_most: 5 %}
systems: {fusion: {run: fusion.run}}
"""


def fill_gated(folder: Path) -> None:
    rows = [f"{{id: q{n}, text: word {n}, judgments: {{d{n}: 1}}}}" for n in range(8)]
    for name in ("hard", "easy"):
        (folder / f"{name}.yaml").write_text("cranfield_testset: 1\nname: own\nqueries: [" + ", ".join(rows) + "]\n")
    lines = [f"q{n} Q0 {'d' if n else 'x'}{n} 1 1.0 fusion\n" for n in range(8)]
    (folder / "fusion.run").write_text("".join(lines))
    (folder / "cranfield.yaml").write_text(GATED)
    for command, code in ((("baseline", "accept"), 0), (("gate",), 1)):
        argv = ["cranfield", *command, "cranfield.yaml"]
        done = subprocess.run(argv, cwd=folder, capture_output=True, text=True)
        assert done.returncode == code, done.stderr


@pytest.fixture
def gated(make_once: Callable[[str, Callable[[Path], object]], Path]) -> Path:
    """The `gate.json` of a gate on two test sets of eight queries, of which one is not answered right."""
    return make_once("gated", fill_gated) / "cranfield-gate" / "gate.json"


def test_the_state_of_a_gate_is_written_with_its_figures(gated: Path) -> None:
    lines = lines_of(gated)
    who = 'system="fusion",testset="hard"'
    assert [line for line in lines if "gate_rule_passed" in line and who in line] == [
        f'cranfield_gate_rule_passed{{rule="R@10 is at least 0.75",{who}}} 1.0',
        f'cranfield_gate_rule_passed{{rule="R@10 is 1 or better on every query (test sets hard)",{who}}} 0.0',
        f'cranfield_gate_rule_passed{{rule="R@10 drops by at most 5 %",{who}}} 1.0',
    ]
    assert len([line for line in lines if "gate_rule_passed" in line and 'testset="easy"' in line]) == 2
    assert f'cranfield_measure{{k="10",measure="R",stratum="all",{who}}} 0.875' in lines  # 7 of 8
    assert f"cranfield_queries{{{who}}} 8.0" in lines
    assert [line for line in lines if "evaluation_info" in line and 'convention="trec"' in line and who in line]
    with pytest.raises(UsageError, match="--testset names one test set, and the file has 2"):
        read_observations(gated, testset="other")


def test_the_rules_of_a_gate_have_the_names_that_the_alerts_have(gated: Path) -> None:
    config = gated.parents[1] / "cranfield.yaml"
    of_alerts = {words(rule) for each in gated_systems(planned(config)) for rule in each.rules}
    assert {rule for each in read_observations(gated) for rule in each.last.facts.gate or {}} == of_alerts


def test_a_gate_whose_figures_do_not_count_is_void(gated: Path, tmp_path: Path) -> None:
    payload = json.loads(gated.read_text())
    payload["gates"][0] |= {"status": "invalid", "explanation": "5 of 8 queries failed"}
    path = tmp_path / "gate.json"
    path.write_text(json.dumps(payload))
    lines = [line for line in lines_of(path) if 'testset="hard"' in line]
    assert 'cranfield_evaluation_void{system="fusion",testset="hard"} 1.0' in lines
    assert not [line for line in lines if "cranfield_measure" in line or "gate_rule" in line]


def test_a_pilot_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="from a pilot"):
        read_observations(results_file(tmp_path, pilot=True))


def test_the_command_writes_a_file_for_node_exporter(tmp_path: Path) -> None:
    results_file(tmp_path)
    target = tmp_path / "cranfield.prom"
    target.write_text("before")
    done = CliRunner().invoke(
        command_line("metrics"),
        ["metrics", str(tmp_path / "results.json"), "--textfile", str(target), "--testset", "other"],
    )
    assert (done.exit_code, done.stdout) == (0, "")
    assert 'testset="other"' in target.read_text()
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".part"] == []


def test_a_file_that_node_exporter_does_not_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"names end in \.prom"):
        write_textfile(tmp_path / "metrics.txt", b"")


def test_results_that_the_operator_leaves_out_are_an_error(tmp_path: Path) -> None:
    results_file(tmp_path)
    (tmp_path / "w.yaml").write_text("metrics: {systems: [bm25]}\n")
    done = CliRunner().invoke(
        command_line("metrics"), ["metrics", str(tmp_path / "results.json"), "--workbench", str(tmp_path / "w.yaml")]
    )
    assert done.exit_code == 2
    assert "excludes all of these results; got fusion on clinical" in done.stderr


@pytest.fixture
def gateway() -> Iterator[Receiver]:
    with receiving() as server:
        yield server


def test_each_system_is_pushed_to_its_own_group_and_nothing_is_deleted(tmp_path: Path, gateway: Receiver) -> None:
    observations = read_observations(results_file(tmp_path))
    environment = {AUTH_VARIABLE: "ci:pass:word"}
    n = push(gateway.url, "nightly", observations, Naming(), instance="ci", environment=environment)
    [(path, headers, body)] = gateway.got  # by POST: PUT would replace what other jobs pushed to the group
    assert n == 1
    assert path == "/metrics/job/nightly/instance/ci/system/fusion/testset/clinical"
    assert headers["Authorization"] == f"Basic {base64.b64encode(b'ci:pass:word').decode()}"
    assert 'cranfield_measure{k="10",measure="R"' in body.decode()


def test_a_group_has_the_labels_that_are_written(tmp_path: Path, gateway: Receiver) -> None:
    push(gateway.url, "nightly", read_observations(results_file(tmp_path)), Naming(HOUSE), environment={})
    assert gateway.got[0][0] == "/metrics/job/nightly"


def test_a_refusal_of_the_gateway_is_an_error(tmp_path: Path, gateway: Receiver) -> None:
    gateway.statuses = [400]
    with pytest.raises(UsageError, match="the Pushgateway rejected the metrics: 400"):
        push(gateway.url, "nightly", read_observations(results_file(tmp_path)), Naming(), environment={})


@pytest.mark.parametrize("url", ["localhost:9091", "ftp://x", "http://user:secret@host:9091"])
def test_an_address_that_is_none_is_refused_without_its_password(tmp_path: Path, url: str) -> None:
    with pytest.raises(UsageError, match="not an address of a Pushgateway") as raised:
        push(url, "nightly", read_observations(results_file(tmp_path)), Naming(), environment={})
    assert "secret" not in str(raised.value)
