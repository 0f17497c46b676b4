"""The job of a gate: what is refused before anything is asked, baselines that a person accepts, and refs that count."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from cranfield.app.run import run_job
from cranfield.base.errors import CranfieldError, InputError, SystemUnderTestError, UsageError
from cranfield.gate.use_cases.baseline import accept, show
from cranfield.gate.use_cases.gate import AnswerSource, GateJob, run_gate
from cranfield.reporting import render

QUERIES = "abcdefghij"
RULES = """\
    - floor: {measure: P@1, at_least: 0.80}
    - drop: {measure: RR, at_most: 5 %}
    - failures: {at_most: 1}
"""
WORDS = ("P@1 is at least 0.80", "RR drops by at most 5 %", "at most 1 query fails or has no answer")
CONFIG = """\
testset: queries.yaml
measures: [RR, P@1]
gate:
  rules:
{rules}systems:
  new: {{command: [sh, answer.sh, "{{query}}"], extract: {{regex: 'doc-\\S+'}}, empty: '^$'}}
"""
ANSWER = 'echo "$1" >> asked.txt; cat "answers-$1"\n'


def project(folder: Path, rules: str = RULES) -> Path:
    """Ten queries, each with one relevant document, `doc-a` for the query `a`; every answer has it first."""
    folder.mkdir(exist_ok=True)
    write_testset(folder, QUERIES)
    (folder / "answer.sh").write_text(ANSWER)
    for query in QUERIES:
        (folder / f"answers-{query}").write_text(f"doc-{query}\ndoc-x\n")
    (folder / "cranfield.yaml").write_text(CONFIG.format(rules=rules))
    return folder / "cranfield.yaml"


def write_testset(folder: Path, queries: str) -> None:
    lines = ["cranfield_testset: 1", "name: letters", "queries:"]
    for query in queries:
        strata = "{kind: vowel}" if query in "aeiou" else "{kind: consonant}"
        lines.append(f"  - {{id: {query}, text: {query}, strata: {strata}, judgments: {{doc-{query}: 1}}}}")
    (folder / "queries.yaml").write_text("\n".join(lines) + "\n")


def worsen(folder: Path, queries: str) -> None:
    """The relevant document comes second."""
    for query in queries:
        (folder / f"answers-{query}").write_text(f"doc-x\ndoc-{query}\n")


def accepted(config: Path) -> Path:
    accept(config, out=config.parent / "accepted", accepted="2026-01-31", reason="a start")
    return config.parent / "cranfield-baseline.json"


def gated(config: Path, ref: str | None = None, source: AnswerSource | None = None) -> GateJob:
    return run_gate(config, out=config.parent / "out", source=source, baseline_ref=ref)


def problems(config: Path, ref: str | None = None, source: AnswerSource | None = None) -> list[str]:
    with pytest.raises(CranfieldError) as caught:
        gated(config, ref, source)
    assert caught.value.exit_code == 2
    return [problem.message for problem in caught.value.problems]


def outcomes(job: GateJob) -> list[str]:
    return [rule.status for result in job.results.values() for rule in result.rules]


def test_an_accepted_run_passes_and_a_worse_one_fails(tmp_path: Path) -> None:
    config = project(tmp_path)
    baseline = accepted(config)
    before = baseline.read_bytes()
    assert gated(config).status == "passed"
    worsen(tmp_path, "a")  # RR (9 + 1/2) / 10 is 0.95: exactly 5 % less
    assert outcomes(gated(config)) == ["passed", "passed", "passed"]
    worsen(tmp_path, "bc")  # RR 0.85, P@1 0.7
    job = gated(config)
    assert outcomes(job) == ["failed", "failed", "passed"]
    assert job.status == "failed"
    assert {change.query_id for change in job.results[""].worse} == set("abc")
    assert sorted(path.name for path in job.written) == ["gate.html", "gate.json", "gate.md"]
    assert baseline.read_bytes() == before  # no run takes its own results for the bar


def test_failures_beyond_the_rule_fail_and_beyond_the_limit_void(tmp_path: Path) -> None:
    config = project(tmp_path)
    accepted(config)
    (tmp_path / "answers-a").unlink()  # cat fails, and so does the call
    assert outcomes(gated(config)) == ["passed", "failed", "passed"]
    (tmp_path / "answers-b").unlink()
    assert outcomes(gated(config)) == ["passed", "failed", "failed"]
    config.write_text(CONFIG.format(rules="    - floor: {measure: RR, at_least: 0}\n"))
    assert gated(config).status == "invalid"  # 2 of 10 with no rule of their own: limits.max_failed_share is 0.1


@pytest.mark.parametrize(
    ("rules", "message", "line"),
    [
        ("    - floor: {measure: RR, at_least: 0, where: {kind: vowl}}\n", "gate.rules[0].floor.where.kind: unknown value of kind 'vowl'", 5),
        ("    - floor: {measure: RR, at_least: 0, by: kin}\n", "gate.rules[0].floor.by: unknown stratum 'kin'", 5),
        ("    - ratchet: {measure: RR, queries: [a, z]}\n", "gate.rules[0].ratchet.queries[1]: unknown query 'z'", 5),
        ("    - floor: {measure: alpha_nDCG@10, at_least: 0}\n", "gate.rules[0].floor.measure: alpha_nDCG@10 cannot be computed for any query", 5),
        ("    - drop: {measure: RR, at_most: 0}\n", "no baseline found", None),
    ],
)  # fmt: skip
def test_what_cannot_be_is_found_before_anything_is_asked(
    tmp_path: Path, rules: str, message: str, line: int | None
) -> None:
    config = project(tmp_path, rules)
    with pytest.raises(InputError) as caught:
        gated(config)
    (problem,) = caught.value.problems
    assert problem.message.partition(": no judgments")[0].startswith(message)
    assert problem.line == line
    assert not (tmp_path / "asked.txt").exists()


def test_a_config_without_a_gate_says_how_to_write_one(tmp_path: Path) -> None:
    config = project(tmp_path)
    config.write_text(
        "\n".join(line for line in CONFIG.format(rules="").splitlines() if "gate" not in line and "rules" not in line)
    )
    assert problems(config) == ["the config has no gate"]


def test_a_baseline_of_another_test_set_is_refused_and_not_compared(tmp_path: Path) -> None:
    config = project(tmp_path)
    accepted(config)
    (tmp_path / "asked.txt").unlink()
    write_testset(tmp_path, QUERIES[:-1])  # the hard query is left out
    assert problems(config) == ["the baseline has a different test set"]
    assert not (tmp_path / "asked.txt").exists()
    write_testset(tmp_path, QUERIES)
    config.write_text(config.read_text().replace("measures:", "k: 5\nconvention: ranx\nmeasures:"))
    assert problems(config) == ["the baseline has a different convention", "the baseline has a different k"]


def test_a_baseline_of_another_experiment_is_left_out_where_no_rule_needs_one(tmp_path: Path) -> None:
    config = project(tmp_path)
    kept = accepted(config).read_bytes()
    config.write_text("k: 30\n" + CONFIG.format(rules="    - floor: {measure: P@1, at_least: 0.80}\n"))
    job = gated(config)
    result = job.results[""]
    assert (job.status, result.baseline) == ("passed", None)
    assert result.notes == (
        "cranfield-baseline.json is not used (no rule needs it): the baseline has a different k (10, not 30)",
    )
    assert (tmp_path / "cranfield-baseline.json").read_bytes() == kept


def test_a_hostile_baseline_is_refused(tmp_path: Path) -> None:
    config = project(tmp_path)
    baseline = accepted(config)
    lax = baseline.read_text().replace('"RR": 1.0}', '"RR": 0.1}')
    baseline.write_text(lax)
    assert problems(config) == ["the content has changed since it was accepted: its digest differs"]
    baseline.write_text(baseline.read_text().replace('"digest"', '"pilot": true, "digest"', 1))
    assert problems(config) == ["unknown key 'pilot'"]


def test_a_pilot_passes_no_gate_and_becomes_no_baseline(tmp_path: Path) -> None:
    config = project(tmp_path)
    accepted(config)
    run_job(config, out=tmp_path / "pilot", pilot=True)
    assert problems(config, source=AnswerSource(tmp_path / "pilot")) == ["the run is a pilot, which cannot pass a gate"]
    with pytest.raises(UsageError, match="pilot"):
        accept(config, out=tmp_path / "x", accepted="2026-01-31", source=AnswerSource(tmp_path / "pilot"))


@pytest.mark.parametrize("fused", [False, True])
def test_a_pilot_does_not_lose_its_stamp_as_a_run_file_of_the_config(tmp_path: Path, *, fused: bool) -> None:
    """Nor as a part of a fusion, nor by being collected anew from the file."""
    config = project(tmp_path)
    run_job(config, out=tmp_path / "pilot", pilot=True)
    head = CONFIG.format(rules="    - floor: {measure: RR, at_least: 0}\n").partition("  new:")[0]
    old = "{run: pilot/runs/new.jsonl}"
    systems = f"  old: {old}\n  other: {old}\n  new: {{fusion: {{of: [old, other]}}}}\n" if fused else f"  new: {old}\n"
    named = head.replace("gate:\n", "baseline: old\ncandidate: new\ngate:\n  system: new\n") if fused else head
    config.write_text(named + systems)
    assert problems(config)[0] == "the run is a pilot, which cannot pass a gate"
    with pytest.raises(UsageError, match="pilot"):
        accept(config, out=tmp_path / "x", accepted="2026-01-31")
    run_job(config, out=tmp_path / "laundered")
    assert (
        problems(config, source=AnswerSource(tmp_path / "laundered"))[0]
        == "the run is a pilot, which cannot pass a gate"
    )


def test_a_finished_run_is_judged_without_asking_and_a_stale_one_is_refused(tmp_path: Path) -> None:
    config = project(tmp_path)
    accepted(config)
    run_job(config, out=tmp_path / "done")
    (tmp_path / "asked.txt").unlink()
    assert gated(config, source=AnswerSource(tmp_path / "done")).status == "passed"
    assert gated(config, source=AnswerSource(run=tmp_path / "done" / "runs" / "new.jsonl")).status == "passed"
    assert not (tmp_path / "asked.txt").exists()
    config.write_text(config.read_text().replace("{command", "{timeout_s: 7, command"))
    assert problems(config, source=AnswerSource(tmp_path / "done")) == ["the run has a different config of the system"]
    assert problems(config, source=AnswerSource(tmp_path / "nowhere")) == ["run not found"]
    assert problems(config, source=AnswerSource(tmp_path / "done", tmp_path / "x")) == [
        "{folder} and {run} exclude each other"
    ]


@pytest.mark.parametrize("convention", ["trec", "octocode"])
def test_a_query_that_a_run_file_leaves_out_counts_as_0_in_every_convention(tmp_path: Path, convention: str) -> None:
    """Without a word of the hard queries a mean would rise."""
    config = project(tmp_path, "    - floor: {measure: RR, at_least: 0.91}\n    - failures: {at_most: 0}\n")
    config.write_text(f"convention: {convention}\n" + config.read_text())
    lines = [f"{query} Q0 doc-{query} 1 9 s" for query in QUERIES[:-1]]
    (tmp_path / "some.run").write_text("\n".join(lines) + "\n")
    job = gated(config, source=AnswerSource(run=tmp_path / "some.run"))
    assert [rule.got for rule in job.results[""].rules] == ["0.9000", "1 of 10"]
    assert outcomes(job) == ["failed", "failed"]


def test_what_accepting_changes_is_told_first_and_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    config = project(tmp_path)
    baseline = accepted(config)
    before = baseline.read_bytes()
    worsen(tmp_path, "ab")
    done = accept(config, out=tmp_path / "out", accepted="2026-02-28", reason="search by title", dry_run=True)
    assert (done.written, baseline.read_bytes()) == ((), before)
    (change,) = json.loads(render(done.document, "json"))["baselines"]
    assert {"name": "reason", "before": "a start", "after": "search by title"} in change["facts"]
    assert [(one["measure"], one["baseline"], one["current"]) for one in change["measures"]] == [
        ("P@1", 1.0, 0.8),
        ("RR", 1.0, 0.9),
    ]
    assert [one["query_id"] for one in change["worse"]] == ["a", "b"]
    assert change["better"] == []
    accept(config, out=tmp_path / "out", accepted="2026-02-28", reason="search by title")
    assert '"a": {"outcome": "answered", "values": {"P@1": 0.0, "RR": 0.5}}' in baseline.read_text()
    assert "search by title" in render(show(config))


def test_a_run_that_fails_too_often_becomes_no_baseline(tmp_path: Path) -> None:
    config = project(tmp_path)
    baseline = accepted(config)
    before = baseline.read_bytes()
    for query in "ab":
        (tmp_path / f"answers-{query}").unlink()
    with pytest.raises(
        SystemUnderTestError, match="cannot be accepted as a baseline: 2 of 10 queries failed or have no answer"
    ):
        accepted(config)
    assert baseline.read_bytes() == before


def test_what_is_no_baseline_is_not_written_over(tmp_path: Path) -> None:
    config = project(tmp_path)
    (tmp_path / "cranfield-baseline.json").write_text('{"my": "notes"}')
    with pytest.raises(InputError):
        accepted(config)
    assert (tmp_path / "cranfield-baseline.json").read_text() == '{"my": "notes"}'


def test_a_new_test_set_is_accepted_without_comparing_its_means(tmp_path: Path) -> None:
    config = project(tmp_path)
    accepted(config)
    write_testset(tmp_path, QUERIES[:5])
    done = accept(config, out=tmp_path / "out", accepted="2026-02-28", dry_run=True)
    (change,) = json.loads(render(done.document, "json"))["baselines"]
    assert change["notes"] == ["the existing baseline is of a different experiment: means are not compared"]
    assert [one["delta"] for one in change["measures"]] == [None, None]


def test_several_test_sets_have_a_gate_each_and_the_worst_decides(tmp_path: Path) -> None:
    config = project(tmp_path)
    write_testset(tmp_path, "abcde")
    (tmp_path / "queries.yaml").rename(tmp_path / "first.yaml")
    write_testset(tmp_path, "fghij")
    text = config.read_text().replace(
        "testset: queries.yaml", "testsets:\n  first: {path: first.yaml}\n  second: {path: queries.yaml}"
    )
    config.write_text(text)
    accepted(config)
    assert sorted(path.name for path in tmp_path.glob("*.json")) == [
        "cranfield-baseline-first.json",
        "cranfield-baseline-second.json",
    ]
    assert gated(config).status == "passed"
    worsen(tmp_path, "fg")
    job = gated(config)
    assert [(name, result.status) for name, result in job.results.items()] == [
        ("first", "passed"),
        ("second", "failed"),
    ]
    assert job.status == "failed"
    assert "second: failed: 2 of 3 rules broken" in render(job.document, "markdown")


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(
        ["git", "-C", str(folder), "-c", "user.name=t", "-c", "user.email=t@t", *arguments],
        check=True,
        capture_output=True,
    )


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A gate and its baseline on main, and a branch on which search is worse."""
    folder = tmp_path / "repository"
    config = project(folder)
    accepted(config)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "a gate")
    git(folder, "checkout", "-qb", "change")
    worsen(folder, "abc")
    return config


def test_a_change_that_loosens_its_own_baseline_does_not_pass(repository: Path) -> None:
    accepted(repository)
    assert outcomes(gated(repository)) == ["failed", "passed", "passed"]  # against its own
    job = gated(repository, "main")
    assert outcomes(job) == ["failed", "failed", "passed"]
    facts = job.results[""].baseline
    assert facts is not None
    assert (facts.ref, facts.path, facts.accepted) == ("main", "cranfield-baseline.json", "2026-01-31")


def test_a_change_that_loosens_its_own_rules_is_held_to_those_of_the_ref(repository: Path) -> None:
    lax = "    - floor: {measure: P@1, at_least: 0.10}\n"
    repository.write_text("alpha: 0.5\n" + CONFIG.format(rules=lax))
    assert gated(repository).status == "passed"
    job = gated(repository, "main")
    assert job.status == "failed"
    assert job.results[""].overruled == (
        "rules differ from main; the rules of main are used",
        f"rules of main missing in this config: {'; '.join(WORDS)}",
        "rules only in this config, not checked: P@1 is at least 0.10",
        "different from main, whose values are used: alpha",
    )


@pytest.mark.parametrize(
    "change",
    ["no gate", "another system", "another baseline", "a larger limit", "another k"],
)
def test_no_key_of_the_config_opens_the_gate(repository: Path, change: str) -> None:
    text = repository.read_text()
    folder = repository.parent
    if change == "no gate":
        text = text.replace("gate:\n  rules:\n" + RULES, "")
    elif change == "another system":
        (folder / "perfect.run").write_text("".join(f"{query} Q0 doc-{query} 1 9 s\n" for query in QUERIES))
        text = text.replace("gate:\n", "gate:\n  system: perfect\n") + "  perfect: {run: perfect.run}\n"
        text = text.replace("systems:", "baseline: perfect\ncandidate: new\nsystems:")
    elif change == "another baseline":
        (folder / "lax.json").write_bytes((folder / "cranfield-baseline.json").read_bytes())
        text = text.replace("gate:\n", "gate:\n  baseline: lax.json\n")
    elif change == "a larger limit":
        text = "limits: {max_failed_share: null}\n" + text
    else:
        text = "k: 3\n" + text
    repository.write_text(text)
    job = gated(repository, "main")
    assert job.status == "failed"
    assert job.results[""].evaluation.name == "new"
    assert any("main" in note for note in job.results[""].overruled)


@pytest.mark.parametrize("fused", [False, True])
def test_a_run_file_in_place_of_a_system_is_refused(repository: Path, *, fused: bool) -> None:
    """A change may replace its system by another, and not by answers that it brings along."""
    (repository.parent / "perfect.run").write_text("".join(f"{query} Q0 doc-{query} 1 9 s\n" for query in QUERIES))
    head, _, new = repository.read_text().partition("  new:")
    systems = "  new: {run: perfect.run}\n"
    if fused:
        systems = f"  old:{new}  stored: {{run: perfect.run}}\n  new: {{fusion: {{of: [old, stored]}}}}\n"
    repository.write_text(head + systems)
    (message,) = problems(repository, "main")
    is_there = "is not there" if fused else "is of the kind command"
    name = "stored" if fused else "new"
    assert (
        message == f"the system {name} is a run file here, and {is_there} in main: the gate would judge stored answers"
    )


def test_a_run_file_that_the_ref_only_compares_with_is_no_part_of_its_system(repository: Path) -> None:
    """The run of an earlier system stands beside the gated one on main: a fusion with it would be judged by what it holds."""
    folder = repository.parent
    (folder / "old.run").write_text("".join(f"{query} Q0 doc-x 1 9 s\n" for query in QUERIES))
    head, _, new = repository.read_text().partition("  new:")
    head = head.replace("gate:\n", "gate:\n  system: new\n")
    repository.write_text(f"{head}  old: {{run: old.run}}\n  new:{new}")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "an earlier system")
    repository.write_text(f"{head}  old: {{run: old.run}}\n  own:{new}  new: {{fusion: {{of: [old, own]}}}}\n")
    (message,) = problems(repository, "change")
    assert (
        message
        == "the system old is a run file here, and is not a part of new in change: the gate would judge stored answers"
    )


def test_a_run_file_of_the_ref_is_judged_as_the_change_has_it(repository: Path) -> None:
    folder = repository.parent
    head = repository.read_text().partition("  new:")[0]
    (folder / "stored.run").write_text("".join(f"{query} Q0 doc-x 1 9 s\n" for query in QUERIES))
    repository.write_text(head + "  new: {run: stored.run}\n")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "stored answers")
    (folder / "stored.run").write_text("".join(f"{query} Q0 doc-{query} 1 9 s\n" for query in QUERIES))
    job = gated(repository, "change")
    assert (job.status, job.results[""].n_earlier) == ("passed", 10)
    assert "10 of 10 answers and their latencies are from the run file" in job.results[""].notes


def test_a_run_file_without_times_keeps_no_rule_on_latency(tmp_path: Path) -> None:
    config = project(tmp_path)
    (tmp_path / "stored.run").write_text("".join(f"{query} Q0 doc-{query} 1 9 s\n" for query in QUERIES))
    head = config.read_text().partition("gate:")[0]
    config.write_text(head + "gate: {rules: [latency: {p95_ms: 100}]}\nsystems:\n  new: {run: stored.run}\n")
    (rule,) = gated(config).results[""].rules
    assert (rule.status, rule.got) == ("failed", "no time")


def test_a_system_that_is_renamed_is_named_with_the_ref(repository: Path) -> None:
    repository.write_text(repository.read_text().replace("  new:", "  newer:"))
    assert problems(repository, "main") == ["the gate of main checks the system new, which is not in this config"]


def test_another_kind_of_system_is_reported_first(repository: Path) -> None:
    lines = 'lines: [sh, -c, "while read -r q; do echo {}; done"]'
    repository.write_text(repository.read_text().partition("  new:")[0] + f"  new: {{{lines}}}\n")
    overruled = gated(repository, "main").results[""].overruled
    assert "the system new is of the kind lines here, and of the kind command in main" in overruled


def test_a_change_does_not_warm_its_system_up_to_seem_fast(repository: Path) -> None:
    """A first call that the ref does not make would fill whatever the system keeps, before the times are taken."""
    (repository.parent / "asked.txt").unlink()
    repository.write_text("collect: {warm_up: 10}\n" + repository.read_text())
    overruled = gated(repository, "main").results[""].overruled
    assert "different from main, whose values are used: collect" in overruled
    assert sorted((repository.parent / "asked.txt").read_text().split()) == list(QUERIES)


def test_a_change_that_leaves_out_hard_queries_is_refused(repository: Path) -> None:
    write_testset(repository.parent, "defghij")
    assert problems(repository, "main") == ["the baseline has a different test set"]


def test_floors_alone_are_held_to_the_test_set_of_the_ref_too(repository: Path) -> None:
    """Without a rule that compares, the baseline of the ref still says which test set it is about."""
    folder = repository.parent
    git(folder, "stash", "-q")
    git(folder, "checkout", "-q", "main")
    repository.write_text(CONFIG.format(rules="    - floor: {measure: P@1, at_least: 0.80}\n"))
    git(folder, "commit", "-qam", "floors alone")
    worsen(folder, "abc")
    assert gated(repository, "main").status == "failed"
    write_testset(folder, "defghij")
    assert problems(repository, "main") == ["the baseline has a different test set"]


def test_a_ref_without_a_gate_or_a_baseline_says_what_to_do(repository: Path) -> None:
    folder = repository.parent
    git(folder, "checkout", "-q", "--orphan", "empty")
    git(folder, "rm", "-q", "-f", "--cached", "-r", ".")
    (folder / "README").write_text("nothing")
    git(folder, "add", "README")
    git(folder, "commit", "-qm", "empty")
    assert problems(repository, "empty") == ["file not found in empty"]
    git(folder, "add", "cranfield.yaml")
    git(folder, "commit", "-qm", "a gate, no baseline")
    assert problems(repository, "empty") == ["file not found in empty"]
    assert problems(repository, "origin/main") == ["git ref 'origin/main' not found"]


def test_a_config_of_the_ref_that_is_wrong_is_told_with_the_ref(repository: Path) -> None:
    folder = repository.parent
    repository.write_text(repository.read_text().replace("RR, at_most", "RRR, at_most"))
    git(folder, "commit", "-qam", "broken")
    repository.write_text(CONFIG.format(rules=RULES))
    with pytest.raises(InputError) as caught:
        gated(repository, "change")
    (problem,) = caught.value.problems
    assert (problem.path, problem.line) == ("change:cranfield.yaml", 6)
