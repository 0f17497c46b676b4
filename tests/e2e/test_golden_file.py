"""Golden files as projects write them, each with its search: a config that `init` proposes, the figures worked by hand, and the gate."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.command import call

SEARCH = """\
import json, sys
found = json.load(open("answers.json")).get(sys.argv[1], [])
print("\\n".join(found) if all(isinstance(each, str) for each in found) else json.dumps({"results": found}))
"""
MOST_LINES = 15
"""Lines of a config, without comments."""


@dataclass(frozen=True)
class Golden:
    """A golden file, what its search answers, and what comes of it."""

    name: str
    content: str
    answers: dict[str, list[Any]]
    values: dict[str, dict[str, float]]
    """Measure to the text of a query to its value."""
    gate: str
    measures: tuple[str, ...] = ()
    """In place of those that `init` chooses."""
    command: str = "search.py {query}"
    unmet: tuple[str, ...] = ()
    """Texts of queries that do not meet what the file requires of them."""
    about: dict[str, Any] = field(default_factory=dict)


LOG2_3 = math.log2(3)
TIERS = Golden(
    "queries.json",
    json.dumps(
        [
            {"id": "t1", "q": "editor", "category": "cluster", "relevant": [["edit"], ["edit-gtk", "edit-qt"]]},
            {"id": "t2", "q": "lister", "category": "exact", "exhaustive": True, "relevant": [["ls"]]},
        ]
    ),
    {"editor": ["edit-gtk", "edit", "other"], "lister": ["noise", "ls"]},
    {
        "nDCG@10": {"editor": (1 + 2 / LOG2_3) / (2 + 1 / LOG2_3 + 1 / 2), "lister": 1 / LOG2_3},
        "RR": {"editor": 1, "lister": 1 / 2},
        "BestRR": {"editor": 1 / 2, "lister": 1 / 2},
        "RBP(p=0.8, page=True)": {"lister": 0.8 / 1.8},
        "Judged@10": {"editor": 2 / 3, "lister": 1},
    },
    "passed",
    ("nDCG@10", "RR", "BestRR", "RBP(p=0.8, page=True)", "Judged@10"),
)
SOURCES = Golden(
    "golden.jsonl",
    '{"question": "how to return", "expected_sources": ["returns.md", "policy/faq.pdf"]}\n'
    '{"question": "opening hours", "expected_sources": ["contact.md"], "tags": ["hard"]}\n',
    {
        "how to return": [
            {"id": "c1", "metadata": {"source": "kb/returns.md"}},
            {"id": "c2", "metadata": {"source": "kb/returns.md"}},  # another chunk of the same file
        ],
        "opening hours": [
            {"id": "c9", "metadata": {"source": "kb/home.md"}},
            {"id": "c4", "metadata": {"source": "kb/contact.md"}},
        ],
    },
    {
        "R@5": {"how to return": 1 / 2, "opening hours": 1},
        "RR": {"how to return": 1, "opening hours": 1 / 2},
        "Success@1": {"how to return": 1, "opening hours": 0},
    },
    "passed",
)
COMPOUND = Golden(
    "golden.json",
    json.dumps(
        {
            "version": 4,
            "cases": [
                {
                    "query": "patience",
                    "passages": [
                        {"book": "one", "chapter": 12, "passage_substring": "a long road", "relevance": "high"},
                        {"book": "two", "chapter": 3, "passage_substring": "wait and see", "relevance": "partial"},
                    ],
                },
                {"query": "lottery", "passages": []},
            ],
        }
    ),
    {
        "patience": [
            {"chunk_id": "a", "book": "two", "chapter": 3, "content": "Wait  and see."},
            {"chunk_id": "b", "book": "one", "chapter": 11, "content": "a long road"},  # the words, and another chapter
            {"chunk_id": "c", "book": "one", "chapter": 12, "content": "It is a long road."},
        ],
        "lottery": [{"chunk_id": "d", "book": "one", "chapter": 1, "content": "x"}],
    },
    {
        "nDCG@10": {"patience": (1 + 2 / 2) / (2 + 1 / LOG2_3)},
        "BestRR": {"patience": 1 / 3},
        "Silence": {"lottery": 0},
    },
    "passed",
)
FORBIDDEN = Golden(
    "eval.yaml",
    "queries:\n  - {q: mesh setup, want: [m1, m2], never: [p]}\n  - {q: grand piano, want: []}\n",
    {"mesh setup": ["m1", "p", "m2"], "grand piano": ["m1"]},
    {"R@5": {"mesh setup": 1}, "Forbidden@5": {"mesh setup": 1}, "Silence": {"grand piano": 0}},
    "failed",
    unmet=("mesh setup",),
)
FLOORS = Golden(
    "golden.yaml",
    "- {query: what model, expected_ids: [42, 187], mode: hybrid, min_precision: 0.4}\n"
    "- {query: juice recipe, expected_ids: [91], mode: bm25, min_precision: 0.4}\n",
    {"what model hybrid": ["42", "3", "187", "5", "6"], "juice recipe bm25": ["1", "2", "3", "4", "91"]},
    {"P@5": {"what model": 2 / 5, "juice recipe": 1 / 5}, "RR": {"what model": 1, "juice recipe": 1 / 5}},
    "failed",
    command="search.py '{query} {params.mode}'",
    unmet=("juice recipe",),
)
URLS = Golden(
    "dataset.yaml",
    """\
status: draft
entries:
- vars:
    query: effect usage
    qrels: [{url: "https://d.example/effect", grade: 3}, {url: "https://d.example/learn/", grade: 2}]
""",
    {"effect usage": ["https://d.example/learn#top", "https://d.example/x", "https://d.example/effect/"]},
    {"nDCG@10": {"effect usage": (2 + 3 / 2) / (3 + 2 / LOG2_3)}},
    "passed",
)
TABLE = Golden(
    "golden.csv",
    "question,expected_doc_ids,category\nhow to pay,d1;d2,billing\nrefund,d3,billing\n",
    {"how to pay": ["d2", "x", "d1"], "refund": ["y"]},
    {"R@5": {"how to pay": 1, "refund": 0}, "RR": {"how to pay": 1, "refund": 0}},
    "passed",
)
GOLDENS = {
    "tiers": TIERS, "sources": SOURCES, "compound": COMPOUND, "forbidden": FORBIDDEN, "floors": FLOORS, "urls": URLS, "table": TABLE,
}  # fmt: skip


@pytest.mark.parametrize("name", GOLDENS)
def test_a_golden_file_becomes_a_config_of_fifteen_lines_its_figures_and_a_gate(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    golden = GOLDENS[name]
    monkeypatch.chdir(tmp_path)
    Path(golden.name).write_text(golden.content)
    Path("search.py").write_text(SEARCH)
    Path("answers.json").write_text(json.dumps(golden.answers))
    made = call("init", golden.name, f"{sys.executable} {golden.command}", "--yes")
    assert made.returncode == 0, made.stderr
    config = Path("cranfield.yaml")
    lines = [line for line in config.read_text().splitlines() if line.strip() and not line.lstrip().startswith("#")]
    assert len(lines) <= MOST_LINES, lines
    if golden.measures or golden.gate == "passed":
        settings = yaml.safe_load(config.read_text())
        settings |= {"measures": list(golden.measures)} if golden.measures else {}
        settings.setdefault("gate", {"rules": [{"failures": {"at_most": 0}}]})
        config.write_text(yaml.safe_dump(settings))
    done = call("run")
    assert done.returncode == 0, done.stderr
    results = json.loads(Path("cranfield-out/results.json").read_text())
    (side,) = results["systems"]
    texts = {query_id: query["text"] for query_id, query in results["queries"].items()}
    for measure, wanted in golden.values.items():
        spelled = {"BestRR": "RR(only_best=True)", "RBP(p=0.8, page=True)": "RBP(page=True)"}.get(measure, measure)
        found = {texts[query_id]: query.get(spelled) for query_id, query in side["queries"].items()}
        assert {text: found[text] for text in wanted} == pytest.approx(wanted), measure
    gated = call("gate", "--format", "json")
    result = json.loads(gated.stdout)
    assert (result["status"], gated.returncode) == (golden.gate, int(golden.gate != "passed"))
    own = [rule for rule in result["gates"][0]["rules"] if rule["kind"] == "requirements"]
    assert [texts[query_id] for rule in own for query_id in rule["queries"]] == list(golden.unmet)


def test_a_mapping_on_the_command_line_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("g.json").write_text('[{"a": "red shoes", "b": ["x"]}]')
    Path("run.json").write_text('{"red shoes": ["y", "x"]}')
    mapped = ("--map", "text=a", "--map", "expected=b")
    assert "red shoes" in call("testset", "show", "g.json", *mapped).stdout
    found = json.loads(call("evaluate", "g.json", "run.json", "-m", "RR", *mapped, "--format", "json").stdout)
    assert found["systems"][0]["measures"]["RR"]["mean"] == 0.5
    assert "--map is 'text'" in call("testset", "show", "g.json", "--map", "text").stderr
