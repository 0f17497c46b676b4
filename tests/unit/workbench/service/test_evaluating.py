"""What a job makes: evaluations that are scored again to the same numbers, comparisons, problems as values."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.workbench.service.shop import work_here

from cranfield.app.loading import load
from cranfield.base.errors import UnknownNameError, UsageError
from cranfield.books.database.migrate import back_up
from cranfield.books.settings import BookSettings
from cranfield.books.store.store import open_store
from cranfield.evaluation.result import result_of, without_queries
from cranfield.measures import DEFAULT_MEASURES, parse
from cranfield.model import Predicate, Query, TestSet
from cranfield.model.results import to_json
from cranfield.workbench.server.summary import summary_sections
from cranfield.workbench.service.requests import CompareRequest, CompareResultsRequest, EvaluateRequest, JobRequest
from cranfield.workbench.service.responses import JobState, Trigger
from cranfield.workbench.service.results import compare_evaluations
from cranfield.workbench.service.runs import pack_testset, unpack_testset
from cranfield.workbench.service.scoring import USUAL_MEASURES, facts_of, record_of
from cranfield.workbench.service.service import open_service
from cranfield.workbench.service.snapshot import empty_pool
from cranfield.workbench.service.store.jobs import ProblemCode
from cranfield.workbench.service.values import EvaluationInfo, JobInfo


def work(project, request: JobRequest, **given: object) -> JobInfo:
    job = project.service.jobs.submit(request, **given)
    return work_here(project.service, job.id, project.folder / "job")


def evaluate(project, **given: object) -> tuple[EvaluationInfo, ...]:
    job = work(project, EvaluateRequest(**{"testset": "help", **given}))
    assert job.problems == ()
    return project.service.evaluations.for_job(job.id)


def means(info: EvaluationInfo) -> dict[str, float]:
    return {str(measure): summary.mean for measure, summary in info.scores.measures.items()}


def test_systems_are_collected_scored_and_stored(project) -> None:
    old, search = evaluate(project, systems=["old", "search"], tags=["first"], note="why")
    assert project.calls == ["open file", "sort list", "parse json"]
    # old: rank 1, none, rank 2; search answers p1, p2 always: rank 1, rank 2, none
    assert means(old)["RR"] == means(search)["RR"] == 0.5
    assert (old.system, old.tags, old.note, old.testset_name, old.scores.n_queries) == (
        "old",
        ("first",),
        "why",
        "help",
        3,
    )
    hard = search.strata["kind"]["hard"][parse("RR")]
    assert (hard.mean, hard.n, hard.ci_low) == (0.0, 1, None)
    assert search.facts.gate == {"RR is at least 0.6": False, "at most 0 queries fail or have no answer": True}
    sections = summary_sections(search, project.service.evaluations.payload(search.id))
    [worst] = [each for each in sections if each.name == "worst"]
    assert [row[0].text for row in worst.blocks[0].rows] == ["q3", "q2", "q1"]
    assert search.facts.latency_ms is not None
    assert search.facts.latency_ms["buckets"][-1] == [None, 3]
    assert old.facts.latency_ms is None  # nothing was called
    assert (str(search.primary), search.facts.k, search.void) == ("RR", 3, ())


def test_an_evaluation_is_scored_again_to_the_same_numbers_whatever_became_of_the_files(project) -> None:
    service = project.service
    infos = evaluate(project, systems=["old", "search"], measures=["RR", "P@1"], primary="P@1", convention="quepid")
    for path in project.folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    for info in infos:
        again = service.evaluations.rescore(info.id)
        assert facts_of(again, info.facts.gate) == info.facts
        assert without_queries(record_of(again)) == info.record
        assert json.loads(to_json(result_of([again], with_answers=True))) == service.evaluations.payload(info.id)
        assert str(info.primary) == "P@1"


def test_another_server_on_the_database_has_everything(project, tmp_path: Path) -> None:
    (info,) = evaluate(project, systems=["search"])
    back_up(project.service.store.database, tmp_path / "copy.db")
    store = open_store(tmp_path / "copy.db")
    other = open_service(store)  # it has no config
    assert other.evaluations.rescore(info.id).mean("RR") == means(info)["RR"]
    assert [each.ref for each in other.testsets.names()] == [f"help@{info.testset_id}"]
    store.close()


@pytest.mark.parametrize(("components", "rr"), [((), 0.5), (("body",), 1 / 3)])
def test_without_systems_it_is_the_candidate_and_components_are_evaluated_alone(
    project, components: tuple[str, ...], rr: float
) -> None:
    (info,) = evaluate(project, components=components)
    assert (info.components, info.system) == (",".join(components), "search")
    assert info.label == "search" + (f" [{info.components}]" if components else "")
    assert means(info)["RR"] == pytest.approx(rr)


def test_an_uploaded_run_and_test_set_need_no_config(bare, tmp_path: Path) -> None:
    (tmp_path / "qrels.txt").write_text("q1 0 p1 1\nq2 0 p2 1\n")
    (tmp_path / "old.run").write_text("q1 Q0 p1 1 2.0 old\n")
    bare.testsets.keep("mine", load(tmp_path / "qrels.txt"))
    run = bare.runs.add("mine.run", tmp_path / "old.run")
    job = bare.jobs.submit(EvaluateRequest(testset="mine", runs=[run.id], measures=["RR"]))
    done = work_here(bare, job.id, tmp_path / "job")
    (info,) = bare.evaluations.for_job(done.id)
    assert (means(info), info.system, info.run_id) == ({"RR": 0.5}, "mine.run", run.id)
    assert info.facts.failures == {"missing": 1}
    assert bare.evaluations.rescore(info.id).mean("RR") == 0.5
    assert bare.runs.load(run.id).answers["q1"].hits[0].id == "p1"


@pytest.mark.parametrize(("given", "k"), [({}, 20), ({"k": 10}, 10), ({"primary": "RR@25"}, 25)])
def test_without_a_config_the_depth_is_that_of_the_deepest_measure(bare, tmp_path: Path, given, k: int) -> None:
    (tmp_path / "qrels.txt").write_text("q1 0 d1 1\nq1 0 d15 1\nq1 0 d40 1\n")
    (tmp_path / "deep.run").write_text("".join(f"q1 Q0 d{rank} {rank} {100 - rank} deep\n" for rank in range(1, 31)))
    bare.testsets.keep("mine", load(tmp_path / "qrels.txt"))
    run = bare.runs.add("deep.run", tmp_path / "deep.run")
    bare.store.books.create("grades", empty_pool(bare.testsets.load("mine"), 10, "grades"), BookSettings())
    request = EvaluateRequest(testset="mine", runs=[run.id], measures=["R@20"], **given)
    for book in ("", "grades"):
        job = bare.jobs.submit(request.model_copy(update={"book": book}))
        done = work_here(bare, job.id, tmp_path / "job")
        (info,) = bare.evaluations.for_job(done.id)
        assert bare.evaluations.settings(info.id).k == k
    # The book opens the first k results; d40 is judged and was not found.
    assert bare.store.books.get("grades").n_items == k


def test_a_stored_run_is_evaluated_on_a_changed_test_set_without_a_call(project) -> None:
    (first,) = evaluate(project, systems=["search"])
    path = project.folder / "help.yaml"
    path.write_text(path.read_text().replace("{p3: 1}", "{p2: 1}"))
    (second,) = evaluate(project, runs=[first.run_id])
    assert len(project.calls) == 3
    assert (second.testset_id, second.run_id, second.system) == (first.testset_id + 1, first.run_id, "search")
    assert means(second)["RR"] == pytest.approx(2 / 3)
    refs = [info.ref for info in project.service.testsets.versions("help")]
    assert refs == [f"help@{second.testset_id}", f"help@{first.testset_id}"]
    job = work(project, EvaluateRequest(testset=f"help@{first.testset_id}", runs=[first.run_id]))
    assert means(project.service.evaluations.for_job(job.id)[0]) == means(first)


@pytest.mark.slow
def test_a_test_set_that_did_not_change_is_stored_once(project) -> None:
    assert len({evaluate(project, systems=["old"])[0].testset_id for _ in range(2)}) == 1


def test_two_evaluations_are_compared_and_the_comparison_is_made_again(project) -> None:
    old, search = evaluate(project, systems=["old", "search"])
    service = project.service
    job = work(project, CompareRequest(baseline=old.id, candidate=search.id, measure="nDCG@10", seed=3))
    (info,) = service.comparisons.all(evaluation=search.id)
    assert (job.results, info.baseline, info.record.primary) == ((info.id,), old, parse("nDCG@10"))
    assert info.difference.delta == pytest.approx(means(search)["nDCG@10"] - means(old)["nDCG@10"])
    again = service.comparisons.compare(info.request)
    assert again.verdict.sentence == info.record.verdict_sentence
    assert json.loads(to_json(result_of(again, with_answers=True))) == service.comparisons.payload(info.id)
    assert service.comparisons.for_job(job.id) == info
    assert info.record == without_queries(result_of(again))  # in lists


@pytest.mark.slow
def test_two_evaluations_of_one_system_are_named_apart(project) -> None:
    infos = [evaluate(project, systems=["old"])[0] for _ in range(2)]
    job = work(project, CompareRequest(baseline=infos[0].id, candidate=infos[1].id))
    comparison = project.service.comparisons.for_job(job.id)
    assert comparison is not None
    assert f"old #{infos[0].id}" in comparison.record.verdict_sentence


@pytest.mark.slow
def test_evaluations_of_different_queries_are_not_compared(project) -> None:
    first = evaluate(project, systems=["old"])[0]
    path = project.folder / "help.yaml"
    path.write_text(path.read_text().replace("{p3: 1}", "{p2: 1}"))
    second = evaluate(project, systems=["old"])[0]
    request = CompareRequest(baseline=first.id, candidate=second.id)
    with pytest.raises(UsageError, match=f"#1 on help@{first.testset_id} and #2 on help@{second.testset_id}"):
        project.service.jobs.submit(request)
    with pytest.raises(UsageError, match="different test sets"):
        project.service.comparisons.compare(request)


def test_what_made_no_two_evaluations_is_not_compared(project) -> None:
    def run_job_inline(number: int) -> JobInfo:
        return work_here(project.service, number, project.folder / "job")

    jobs, one = project.service.jobs, EvaluateRequest(testset="help", systems=["old"])
    first, second = jobs.submit(one), jobs.submit(one.model_copy(update={"systems": ("search",)}))
    both = jobs.submit(CompareResultsRequest(jobs=(first.id, second.id)))
    jobs.cancel(second.id)
    run_job_inline(first.id)
    (problem,) = run_job_inline(both.id).problems
    assert problem.message == f"job {second.id}, whose result is to be compared, is cancelled."
    assert problem.hint == "retry it, then retry this job."
    (problem,) = work(project, CompareResultsRequest(jobs=(first.id,))).problems
    assert problem.message == "the jobs did not make two evaluations; got 1."
    jobs.retry(second.id)
    jobs.retry(both.id)
    run_job_inline(second.id)
    (number,) = run_job_inline(both.id).results
    found = project.service.comparisons.get(number)
    assert (found.baseline.system, found.candidate.system) == ("old", "search")
    with pytest.raises(UsageError, match="job 99"):
        jobs.submit(CompareResultsRequest(jobs=(99,)))


def test_a_result_is_not_compared_with_itself() -> None:
    with pytest.raises(UsageError, match="baseline and candidate are the same evaluation"):
        compare_evaluations(CompareRequest(baseline=1, candidate=1), {}, (), ("a", "a"))


def test_unknown_names_are_refused_at_once_all_of_them(project) -> None:
    request = EvaluateRequest(testset="hlep", systems=["x"], runs=[9], measures=["nDGC@10"], convention="trek", k=5000)
    with pytest.raises(UsageError) as raised:
        project.service.jobs.submit(request)
    assert [problem.path for problem in raised.value.problems] == [
        "k",
        "testset",
        "systems",
        "measures",
        "convention",
        "runs[0]",
    ]
    assert raised.value.problems[1].hint == "did you mean help?"
    with pytest.raises(UsageError, match="component of search") as raised:
        project.service.jobs.submit(EvaluateRequest(testset="help", components=["bm25"]))
    assert [problem.path for problem in raised.value.problems] == ["components"]
    with pytest.raises(UsageError, match="evaluation 1 not found"):
        project.service.jobs.submit(CompareRequest(baseline=1, candidate=2, test="t-tset"))


@pytest.mark.parametrize(
    ("name", "old", "new", "code", "where"),
    [
        ("help.yaml", "text: open", "txt: open", ProblemCode.INPUT, "help.yaml:4"),
        ("cranfield.yaml", "[sh,", "[no-such-program,", ProblemCode.SYSTEM, ""),
    ],
)
def test_a_users_mistake_is_a_problem_with_its_place(
    project, name: str, old: str, new: str, code: str, where: str
) -> None:
    path = project.folder / name
    path.write_text(path.read_text().replace(old, new, 1))
    job = work(project, EvaluateRequest(testset="help"))
    assert job.state == JobState.FAILED
    assert {problem.code for problem in job.problems} == {code}
    assert where in job.problems[0].where
    assert job.problems[0].message


def test_a_broken_edit_of_the_config_keeps_the_one_before(project) -> None:
    service, path = project.service, project.folder / "cranfield.yaml"
    text = path.read_text()
    path.write_text("systems: 3\n")
    assert service.config() is not None
    assert service.config_problems
    path.write_text(text + "alpha: 0.01\n")
    assert service.config().alpha == 0.01
    assert service.config_problems == ()


@pytest.mark.slow
def test_pilots_are_no_last_evaluation(project) -> None:
    (first,) = evaluate(project, systems=["old"])
    (pilot,) = evaluate(project, systems=["old"], pilot=True)
    assert pilot.pilot
    assert project.service.evaluations.rescore(pilot.id).pilot
    assert {name: info.id for name, info in project.service.evaluations.last_of_systems().items()} == {
        first.system: first.id
    }


def test_rules_on_a_baseline_go_by_the_pinned_evaluation(project) -> None:
    path = project.folder / "cranfield.yaml"
    rules = "[drop: {measure: RR, at_most: 0.1}, ratchet: {measure: P@1, queries: [q1]}, floor: {measure: RR, at_least: 0.1}]"
    path.write_text(re.sub("rules: .*}$", f"rules: {rules}}}", path.read_text(), flags=re.MULTILINE))
    drop, ratchet, floor = "RR drops by at most 0.1", "P@1 does not get worse on q1", "RR is at least 0.1"
    (old,) = evaluate(project, systems=["old"])
    assert old.facts.gate == {drop: None, ratchet: None, floor: True}
    assert "no evaluation is pinned as the baseline of help" in old.warnings[-1]
    project.service.evaluations.pin(old.id)
    (part,) = evaluate(project, systems=["search"], components=["body"])
    assert part.facts.gate is None  # the rules are for the whole system
    (again,) = evaluate(project, runs=[part.run_id])
    assert (again.components, again.facts.gate) == ("body", None)
    uploaded = project.folder / "part.jsonl"
    with project.service.runs.file(part.run_id) as (_, stored):
        uploaded.write_bytes(stored.read_bytes())
    run = project.service.runs.add("part.jsonl", uploaded)
    (worse,) = evaluate(project, runs=[run.id])  # RR 1/3 instead of 1/2, and not p1 first
    assert worse.facts.gate == {drop: False, ratchet: False, floor: True}
    (same,) = evaluate(project, runs=[old.run_id])
    assert same.facts.gate == {drop: True, ratchet: True, floor: True}
    assert not [text for text in same.warnings if "gate" in text]
    (deeper,) = evaluate(project, systems=["old"], k=2)
    assert deeper.facts.gate[drop] is None
    assert deeper.warnings[-1].endswith("the baseline has a different k")


def test_rules_on_a_baseline_have_the_alpha_of_the_config(project) -> None:
    path = project.folder / "cranfield.yaml"
    text = re.sub("rules: .*}$", "rules: [no_worse: {measure: RR}]}", path.read_text(), flags=re.MULTILINE)
    runs = []
    for name, ahead in (("first", ""), ("second", "q{n} Q0 x 1 2 s\n")):
        file = project.folder / f"{name}.run"
        file.write_text("".join(f"{ahead}q{{n}} Q0 p{{n}} 2 1 s\n".format(n=n) for n in (1, 2, 3)))
        runs.append(project.service.runs.add(file.name, file).id)
    (first,) = evaluate(project, runs=runs[:1])
    project.service.evaluations.pin(first.id)
    for alpha, state in ((0.05, None), (0.3, False)):  # 3 of 3 fall: p = 2 / 2^3 = .25
        path.write_text(f"{text}alpha: {alpha}\n")
        (second,) = evaluate(project, runs=runs[1:])
        assert second.facts.gate == {"RR is not significantly worse": state}


@pytest.mark.slow
def test_metrics_follow_live_answers_that_are_scored_as_configured(project) -> None:
    assert [info.configured for info in evaluate(project, systems=["old"])] == [True]
    (usual,) = evaluate(project, systems=["old"], k=3, convention="trec", components=())
    assert usual.configured  # the same as the config says
    (spelled,) = evaluate(project, systems=["old"], measures=["ndcg_cut_10", "MRR"], primary="MRR")
    assert spelled.configured
    for given in ({"k": 2}, {"measures": ["P@1"]}, {"convention": "quepid"}, {"pilot": True}):
        assert [info.configured for info in evaluate(project, systems=["old"], **given)] == [False]
    assert [info.configured for info in evaluate(project, runs=[usual.run_id])] == [False]
    followed = project.service.evaluations.followed(0, ["api"])
    assert [info.id for info in followed] == [spelled.id, usual.id, usual.id - 1]
    assert project.service.evaluations.followed(0, ["watch"]) == ()


@pytest.mark.slow
def test_the_usual_measures_are_those_that_the_test_set_allows_also_where_they_are_named(project) -> None:
    config = project.folder / "cranfield.yaml"
    config.write_text(config.read_text().replace("measures: [RR, nDCG@10]\n", ""))
    (usual,) = evaluate(project, systems=["old"])
    assert set(map(str, usual.scores.measures)) == set(USUAL_MEASURES)
    (named,) = evaluate(project, systems=["old"], measures=list(USUAL_MEASURES))
    (fewer,) = evaluate(project, systems=["old"], measures=list(DEFAULT_MEASURES))
    assert [info.configured for info in (usual, named, fewer)] == [True, True, False]
    patterns = project.folder / "patterns.yaml"
    patterns.write_text(
        "cranfield_testset: 1\nname: patterns\nqueries:\n  - {id: q1, text: open, patterns: [{regex: ^p, credit: every}]}\n"
    )
    project.service.testsets.keep("patterns", load(patterns))
    (some,) = evaluate(project, testset="patterns", runs=[usual.run_id])
    assert {"RR", "RR@10"} <= set(map(str, some.scores.measures)) < set(USUAL_MEASURES)
    assert any("no query of the test set allows nDCG@10" in text for text in some.warnings)


@pytest.mark.slow
def test_a_schedule_takes_no_answers_of_the_answer_cache(project) -> None:
    config = project.folder / "cranfield.yaml"
    config.write_text(
        config.read_text().replace("    extract", "    depends: [search.sh]\n    extract") + "collect: {cache_h: 1}\n"
    )
    for trigger, n in ((Trigger.API, 3), (Trigger.API, 3), (Trigger.WATCH, 6)):
        job = work(project, EvaluateRequest(testset="help"), trigger=trigger)
        assert (job.state, len(project.calls)) == (JobState.DONE, n)


@pytest.mark.slow
def test_the_service_writes_no_history_next_to_the_config(project) -> None:
    evaluate(project, systems=["old"])
    assert not (project.folder / ".cranfield").exists()


def test_names_of_test_sets(project) -> None:
    testsets = project.service.testsets
    assert [(info.name, info.id) for info in testsets.names()] == [("help", None)]
    assert testsets.get("help").n_judgments == 3
    with pytest.raises(UsageError, match="config of the server has a test set help"):
        testsets.keep("help", load(project.folder / "help.yaml"))
    with pytest.raises(UsageError, match="not a name"):
        testsets.keep("a@1", load(project.folder / "help.yaml"))
    mine = testsets.keep("mine", load(project.folder / "help.yaml"))
    assert testsets.get(mine.ref) == testsets.get("mine") == mine
    for ref in ("mien", f"help@{mine.id}", "help@99", "mine@x"):
        with pytest.raises(UnknownNameError):
            testsets.get(ref)
    assert testsets.load("mine").name == "help"


def test_a_stored_test_set_has_what_files_leave_out() -> None:
    predicate = Predicate("SELECT id FROM docs", ids=("d1", "d2"))
    testset = TestSet("t", (Query("q1", ""), Query("q2", "text", weight=2.5)), targets={"q1": (predicate,)})
    again = unpack_testset(pack_testset(testset))
    assert again == replace(testset)
    assert again.targets["q1"][0] == predicate
