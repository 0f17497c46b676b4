"""The mechanical gate: what is missing is not failed, all failures are reported, and which names a narrative may use."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield.agents.loop import Read
from cranfield.golden.gate import CHECKS, CheckStatus, GateCheck, gate
from cranfield.golden.narrative import NamesAllowed, names_not_expected
from cranfield.golden.parsed import LineCoverage, ParsedSource
from cranfield.golden.records import CitedFact, CitedLines, Evidence, ExpectedEntity, OracleAnswer, QueryCandidate
from cranfield.model.results import to_jsonable
from cranfield.repo.snapshot import take

FILES = {
    "src/agent.py": """class Agent:
    limit = 3
    name: str

    def smart_answer(self, query, force_llm=False):
        found = self.service.retrieve_context(query)
        return self._format(found)

    def _format(self, found):
        return str(found)


def take(query):
    return query
""",
    "src/service.py": "class ContextService:\n    def retrieve_context(self, query):\n        return query\n\n\ndef run():\n    pass\n\n\nJSON = 1\n",
    "pyproject.toml": "[project]\n",
    "docs/page.md": "# Answers\n\nText.\n\n## How to ask\n\nMore.\n",
}
AGENT = "src/agent.py::Agent.smart_answer"


@pytest.fixture(scope="module")
def source(write_files):
    return ParsedSource(take(write_files(FILES)))


def record(**changes):
    about = {"query_id": "q1", "task_type": "locate", "difficulty": "easy", "authored_by": "x", "created_at": "now"}
    candidate = QueryCandidate(**about, query_text="Who decides?", target_entity_ids=[AGENT])
    lines = {"file": "src/agent.py", "start": 5, "end": 7}
    facts = [CitedFact(fact=f"Fact {n}.", citations=[CitedLines(**lines)]) for n in range(3)]
    answer = OracleAnswer(
        **about,
        expected_entities=[ExpectedEntity(entity_id=AGENT, role="primary")],
        expected_files=["src/agent.py"],
        expected_line_ranges=[CitedLines(**lines)],
        must_mention_facts=facts,
        must_not_mention_facts=[CitedFact(fact="It sleeps.")],
        canonical_narrative="`Agent.smart_answer` decides. " + "Words of prose follow here. " * 16,
        source_evidence=[Evidence(**lines, read_at_step=1)],
        confidence="high",
    )
    return candidate, answer.model_copy(update=changes)


READS = (Read("src/agent.py", 1, 5), Read("src/agent.py", 6, 9))


def test_a_good_record_passes_every_check(source):
    report = gate(*record(), READS, source)
    assert {check: outcome.problems for check, outcome in report.checks.items() if outcome.problems} == {}
    assert list(report.checks) == list(GateCheck) == list(CHECKS)


def test_what_an_existing_record_never_had_is_missing_and_what_an_oracle_left_out_is_failed(source):
    bare = record(
        must_mention_facts=[],
        must_not_mention_facts=[],
        canonical_narrative="",
        source_evidence=[],
        expected_line_ranges=[],
    )
    imported, oracle = gate(*bare, None, source), gate(*bare, (), source)
    assert imported.passed
    lacking = {
        GateCheck.LINE_RANGES,
        GateCheck.EVIDENCE,
        GateCheck.READ,
        GateCheck.NAME_DROPS,
        GateCheck.CITATIONS,
        GateCheck.FACTS,
    }
    assert set(imported.missing) == {*lacking, GateCheck.NARRATIVE}
    assert imported.checks[GateCheck.FACTS].problems == ("no facts",)
    assert not oracle.missing
    assert {GateCheck.EVIDENCE, GateCheck.FACTS, GateCheck.NARRATIVE, GateCheck.READ} <= set(oracle.failed)


def test_an_existing_record_with_facts_is_checked_like_any_other(source):
    report = gate(*record(must_not_mention_facts=[]), None, source)
    assert report.failed == (GateCheck.FACTS,)
    assert report.missing == (GateCheck.READ,)


def test_citations_of_an_existing_record_without_evidence_are_lines_that_exist(source):
    """That its evidence is missing is said once, and is no failure."""
    cited = gate(*record(source_evidence=[]), None, source)
    assert GateCheck.CITATIONS not in cited.failed
    assert GateCheck.EVIDENCE in cited.missing
    assert GateCheck.CITATIONS in gate(*record(source_evidence=[]), READS, source).failed


def test_an_existing_record_without_entities_lacks_them_and_an_oracle_s_is_checked(source):
    bare = record(expected_entities=[], canonical_narrative="")
    report = gate(*bare, None, source)
    assert {GateCheck.ENTITIES, GateCheck.ROLES} <= set(report.missing)
    assert report.passed
    assert not gate(*bare, READS, source).missing


def test_an_existing_record_that_expects_nothing_fails(source):
    report = gate(*record(expected_entities=[], expected_files=[], expected_line_ranges=[]), None, source)
    assert GateCheck.ENTITIES in report.failed


def test_all_failures_of_a_record_are_reported_each_with_its_check(source):
    entity = ExpectedEntity(entity_id="src/agent.py::Agent.gone", role="primary")
    candidate, answer = record(expected_entities=[entity], expected_files=["src/agent.py", "src/no.py"])
    candidate = candidate.model_copy(update={"query_text": "What does Agent.smart_answer() do in agent.py?"})
    report = gate(candidate, answer, READS, source)
    assert set(report.failed) == {
        GateCheck.ENTITIES,
        GateCheck.FILES,
        GateCheck.READ,
        GateCheck.LEAK,
        GateCheck.DIFFICULTY,
        GateCheck.NAME_DROPS,
    }
    lines = to_jsonable(report)["checks"]
    assert lines["entities"] == {
        "status": "failed",
        "problems": ["src/agent.py::Agent.gone: the file has no such symbol"],
    }
    assert lines["leak"]["problems"] == ["the query names its target: agent.py and Agent"]


def test_a_file_that_does_not_parse_says_so(tmp_path):
    (tmp_path / "a.py").write_text("def f(:\n")
    source = ParsedSource(take(tmp_path))
    assert source.entity_problem("a.py::f") == (
        "a.py::f: the file has no such symbol; the file is not parsed: line 1: invalid syntax"
    )
    assert source.entity_problem("a.py") == "a.py: not an entity id; expected path::Qual.name"


@pytest.mark.parametrize("reads", [READS, None])
@pytest.mark.parametrize(
    ("file", "lines", "problem"),
    [
        ("src/agent.py", (1, 2), "src/agent.py:1-2: outside every expected entity; src/agent.py::Agent holds it"),
        ("src/agent.py", (11, 12), "src/agent.py:11-12: outside every expected entity"),  # of no symbol
        ("src/service.py", (6, 7), "src/service.py:6-7: outside every expected entity; src/service.py::run holds it"),
        (
            "docs/page.md",
            (5, 7),
            "docs/page.md:5-7: outside every expected entity; docs/page.md::Answers > How to ask holds it",
        ),
        ("src/agent.py", (7, 12), None),  # shares a line
        ("pyproject.toml", (1, 1), None),  # a file without symbols
    ],
)
def test_a_line_range_outside_every_expected_entity_fails_in_a_set_and_in_a_run(source, reads, file, lines, problem):
    ranges = [CitedLines(file=file, start=lines[0], end=lines[1])]
    candidate, answer = record(expected_line_ranges=ranges, expected_files=["src/agent.py", file])
    outcome = gate(candidate, answer, reads, source).checks[GateCheck.LINE_RANGES]
    assert outcome.problems == ((problem,) if problem else ())


def test_a_line_range_of_a_record_without_entities_or_with_one_that_does_not_resolve_is_outside_of_none(source):
    ranges = [CitedLines(file="src/agent.py", start=1, end=2)]
    bare = record(expected_entities=[], expected_line_ranges=ranges)
    wrong = record(
        expected_entities=[ExpectedEntity(entity_id=f"{AGENT}_x", role="primary")], expected_line_ranges=ranges
    )
    for candidate, answer in (bare, wrong):
        assert gate(candidate, answer, None, source).checks[GateCheck.LINE_RANGES].status is CheckStatus.PASSED


def test_definitions_of_one_name_are_one_entity_of_a_query(tmp_path):
    (tmp_path / "a.py").write_text("def f(): pass\n\n\ndef f(x): pass\n\n\ndef f(x, y): return x\n")
    names = ["a.py::f", "a.py::f#3"]
    lines = CitedLines(file="a.py", start=4, end=4)  # of a definition that is not listed
    candidate, answer = record(
        expected_entities=[ExpectedEntity(entity_id=name, role="primary") for name in names],
        expected_files=["a.py"],
        expected_line_ranges=[lines],
        canonical_narrative="",
    )
    found = gate(candidate.model_copy(update={"target_entity_ids": names}), answer, None, ParsedSource(take(tmp_path)))
    for check in (GateCheck.ENTITIES, GateCheck.LINE_RANGES, GateCheck.ROLES, GateCheck.DIFFICULTY, GateCheck.SCORER):
        assert found.checks[check].problems == (), check  # an easy query has one entity


def test_an_id_with_the_number_of_a_definition_is_the_entity_with_all_of_them(tmp_path):
    (tmp_path / "a.py").write_text("def f():\n    pass\n\ndef f():\n    return 1\n")
    source = ParsedSource(take(tmp_path))
    assert [source.ranges(name) for name in ("a.py::f", "a.py::f#2", "a.py::f#3")] == [
        [(1, 2), (4, 5)],
        [(1, 2), (4, 5)],
        [],
    ]


@pytest.mark.parametrize(
    ("expected", "narrative", "found"),
    [
        ([AGENT], "`Agent.smart_answer` of src/agent.py, in short smart_answer, is where it is.", []),
        ([AGENT], "The class `Agent` holds it, in `agent.py`.", []),  # what holds an expected entity
        (["src/agent.py::Agent"], "`Agent.smart_answer` calls `self._format`.", []),  # what lies in it
        ([AGENT], "It reads `self.limit`, and `Agent.name` too.", []),  # fields of its class
        ([AGENT], "It sets `found` from `query` unless `force_llm` is true.", []),  # its own parameters and variables
        ([AGENT], "It will take a while to run, and asks a service.", []),  # prose
        ([AGENT], "It is JSON, read by `tool run --take query`.", []),  # an acronym, and words of a command
        ([AGENT], "It calls `run(query)` and `JSON`.", ["run", "JSON"]),
        ([AGENT], "It calls `str.join` and `print`, and `self.take`.", []),  # not this repository's
        ([AGENT], "It calls `self._format`.", ["self._format"]),
        ([AGENT], "It asks `self.service.retrieve_context`.", ["self.service.retrieve_context"]),
        ([AGENT], "It asks retrieve_context.", ["retrieve_context"]),
        ([AGENT], "A ContextService answers.", ["ContextService"]),
        ([AGENT], "Then `take` follows, and `agent.take`.", ["take", "agent.take"]),
        ([AGENT], "The rest is in src/service.py, or `service.py`.", ["service.py", "src/service.py"]),
        ([AGENT], "It is set up in src/nowhere.py; see docs.python.org/3/library.", ["src/nowhere.py"]),
        ([AGENT, "src/service.py::run"], "Then `run` and `service.run`.", []),
    ],
)
def test_names_that_a_narrative_may_use(source, expected, narrative, found):
    files = {entity.partition("::")[0] for entity in expected}
    assert names_not_expected(narrative, NamesAllowed(expected, files, source)) == found


def test_where_no_entity_is_expected_a_narrative_may_name_those_of_expected_files(source):
    allowed = NamesAllowed([], ["src/agent.py"], source)
    narrative = "`Agent.smart_answer` asks retrieve_context, then `take`."
    assert names_not_expected(narrative, allowed) == ["retrieve_context"]


def test_the_example_of_the_design_fails_by_its_own_rules(source):
    """49 words, evidence from line 0, and an entity that it does not list: q_00042."""
    narrative = (
        "The local-vs-LLM decision lives in Agent.smart_answer (src/agent.py:5-7). It retrieves context via "
        "`self.service.retrieve_context(query)` and compares it. Otherwise it calls `self.answer(query)`."
    )
    evidence = Evidence.model_construct(file="src/agent.py", start=0, end=7, read_at_step=1)
    report = gate(*record(canonical_narrative=narrative, source_evidence=[evidence]), READS, source)
    assert {GateCheck.NARRATIVE, GateCheck.EVIDENCE, GateCheck.NAME_DROPS} <= set(report.failed)
    assert report.checks[GateCheck.EVIDENCE].problems == ("src/agent.py:0-7: lines count from 1",)


def test_a_report_says_how_each_check_ended(source):
    report = gate(*record(source_evidence=[]), READS, source)
    assert report.checks[GateCheck.EVIDENCE].status is CheckStatus.FAILED
    assert not report.passed


RANGES = st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 12), st.integers(0, 5)), max_size=6)


@given(RANGES, st.integers(1, 12), st.integers(0, 6))
def test_a_coverage_is_the_set_of_its_lines(ranges, start, length):
    cover = LineCoverage((path, first, first + more) for path, first, more in ranges)
    lines = {(path, line) for path, first, more in ranges for line in range(first, first + more + 1)}
    wanted = {("a", line) for line in range(start, start + length + 1)}
    assert cover.holds("a", start, start + length) == (wanted <= lines)
    assert cover.shared("a", start, start + length) == len(wanted & lines)
