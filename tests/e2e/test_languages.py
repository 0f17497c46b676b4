"""The programs of examples/jsonl in Node, Go, Java and Rust answer lines of JSON as the page of the protocol says."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cranfield.config import load_config
from cranfield.model import Outcome, Query
from cranfield.systems import build_systems
from cranfield.systems.collect.preflight import preflight

pytestmark = pytest.mark.slow

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "jsonl"
PROGRAMS = {"node": "node", "go": "go", "java": "javac", "rust": "rustc"}
QUERIES = (
    "update the index",
    "NAÏVE “slow” query",
    "the",
    "",
    'a "quoted" \\ word\t\n\u2028 index',
    "\N{GRINNING FACE} \x00\x1f index",
    "{query} index",
    "ß index",
)


def expected(query: str, k: int) -> list[tuple[str, float]]:
    """The documents that contain the words of a query, those with most of them first; of equals the first of the corpus."""
    words = query.lower().split()
    rows = [line.split("\t") for line in (EXAMPLE / "corpus.tsv").read_text(encoding="utf-8").splitlines()]
    scored = [(name, float(sum(word in text.lower() for word in words))) for name, text in rows]
    return sorted((each for each in scored if each[1]), key=lambda each: -each[1])[:k]


@pytest.fixture(params=PROGRAMS)
def system(request, tmp_path):
    """A program of the example, compiled where it has to be, and closed with the test."""
    if shutil.which(PROGRAMS[request.param]) is None:
        pytest.skip(f"{PROGRAMS[request.param]} is not installed")
    shutil.copytree(EXAMPLE, tmp_path, dirs_exist_ok=True)
    (made,) = build_systems(load_config(tmp_path / "cranfield.yaml"), [request.param])
    yield made
    made.close()


def test_a_program_answers_every_query_as_the_reference_does(system):
    preflight([system])
    for k in (10, 1):
        answers = {text: system.search(Query("q", text, params={"k": 9}), k)[0] for text in QUERIES}
        found = {text: [(hit.id, hit.score) for hit in answer.hits] for text, answer in answers.items()}
        assert found == {text: expected(text, k) for text in QUERIES}


SERVER = """
import { createServer } from "node:http";
const server = createServer((request, response) => {
  const query = new URL(request.url, "http://localhost").searchParams.get("q");
  response.setHeader("Content-Type", "application/json");
  response.end(JSON.stringify({ hits: [`d-${query}`] }));
});
server.listen(process.env.PORT, () => console.log("listening"));
"""
SERVED = """
testset: queries.yaml
systems:
  node:
    serve: {command: [node, server.mjs], READY}
    http: {url: "http://localhost:{port}/search", parameters: {q: "{query}"}}
    extract: {json: hits}
"""


@pytest.mark.parametrize("ready", ["ready: /search", "line: listening", "start_s: 30"])
def test_a_server_of_node_is_started_on_a_free_port_and_queried(tmp_path, ready):
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    (tmp_path / "server.mjs").write_text(SERVER)
    (tmp_path / "queries.yaml").write_text((EXAMPLE / "queries.yaml").read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "cranfield.yaml").write_text(SERVED.replace("READY", ready))
    (system,) = build_systems(load_config(tmp_path / "cranfield.yaml"))
    preflight([system])
    assert [hit.id for hit in system.search(Query("q", "naïve é"), 10)[0].hits] == ["d-naïve é"]
    system.close()


def test_a_program_without_its_corpus_ends_or_fails_the_query(system, tmp_path):
    preflight([system])
    (tmp_path / "corpus.tsv").unlink()
    system.close()
    answer, log = system.search(Query("q", "index"), 10)
    assert answer.outcome is Outcome.ERROR
    assert "corpus.tsv" in log.stderr_head or "o such file" in (answer.reason or "")
