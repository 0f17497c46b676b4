"""The scenes of the corpus: a folder with its inputs, and the calls that are made in it, in order."""

from __future__ import annotations

import importlib
import inspect
import json
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FORMS = ("", "--format json", "--format csv", "--format markdown", "--format brief", "--html report.html")
"""The forms of a report; the first is text."""


@dataclass(frozen=True)
class Scene:
    """A folder and the calls made in it.

    Attributes:
        name: of the folder with what is expected.
        calls: command lines of cranfield, or functions whose output counts.
        files: the inputs, by their paths.
        copies: folders of the checkout that are copied in.
        timed: whether durations differ from call to call, because search systems are called.
    """

    name: str
    calls: Sequence[str | Callable[[], None]]
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    copies: Sequence[str] = ()
    timed: bool = False


def forms(*commands: str, only: Sequence[str] = FORMS) -> list[str]:
    """Each command in each form of a report."""
    return [f"{command} {form}".strip() for command in commands for form in only]


TEXT_AND_JSON = FORMS[:2]
GRADES = {0: 0.62, 1: 0.2, 2: 0.12, 3: 0.06}


def judged_queries(n: int, seed: int, n_docs: int = 14) -> dict[str, dict[str, int]]:
    """Queries with the grades of their documents."""
    draw = random.Random(seed)
    return {
        f"q{i:02}": {f"d{j:02}": draw.choices(list(GRADES), list(GRADES.values()))[0] for j in range(n_docs)}
        for i in range(1, n + 1)
    }


def qrels(judged: dict[str, dict[str, int]]) -> str:
    return "".join(f"{q} 0 {d} {grade}\n" for q, docs in judged.items() for d, grade in docs.items())


def run(
    judged: dict[str, dict[str, int]], noise: float, seed: int, skipped: Sequence[str] = (), depth: int = 12
) -> str:
    """A run in TREC's form whose scores are the grades with noise; a third of what it finds is judged by nobody."""
    draw = random.Random(seed)
    lines = []
    for q, docs in judged.items():
        if q in skipped:
            continue
        scores = {d: grade + draw.gauss(0, noise) for d, grade in docs.items()}
        scores |= {f"u{j:02}": draw.gauss(0, noise) for j in range(5)}
        ranked = sorted(scores, key=lambda d: -scores[d])[:depth]
        lines += [f"{q} Q0 {d} {rank} {scores[d]:.4f} run{seed}\n" for rank, d in enumerate(ranked, 1)]
    return "".join(lines)


def native(judged: dict[str, dict[str, int]], strata: dict[str, list[str]], **head: object) -> str:
    """A test set in its own form; YAML holds JSON."""
    queries = [
        {
            "id": q,
            "text": f"words of {q}",
            "strata": {name: values[i % len(values)] for name, values in strata.items()},
            "judgments": docs,
        }
        for i, (q, docs) in enumerate(judged.items())
    ]
    return json.dumps({"cranfield_testset": 1, "name": "corpus", "version": "1", **head, "queries": queries}, indent=1)


def collected(name: str, noise: float, ms: float) -> dict[str, str]:
    """A run as it is collected from a system, and its log with the latency of each call."""
    lines: dict[str, list[dict[str, object]]] = {}
    for line in run(SMALL, noise, 9).splitlines():
        query, _, doc, _, score, _ = line.split()
        lines.setdefault(query, []).append({"id": doc, "score": float(score)})
    head = {"cranfield_run": 1, "name": name, "depth": 10, "order": "given"}
    answers = [{"query_id": query, "outcome": "answered", "hits": hits} for query, hits in lines.items()]
    log: list[dict[str, object]] = [{"cranfield_run_log": 1, "machine": "here", "name": name}]
    log += [
        {"at": f"2026-01-02T03:04:{i:02}Z", "calls_before": i, "latency_ms": ms + i * 7 % 5, "query_id": query}
        for i, query in enumerate(lines)
    ]
    return {
        f"{name}.jsonl": "".join(json.dumps(one) + "\n" for one in [head, *answers]),
        f"{name}.log.jsonl": "".join(json.dumps(one) + "\n" for one in log),
    }


def point(number: int, mean: float) -> str:
    """A line of the history of a system."""
    return (
        json.dumps(
            {
                "cranfield_history": 1,
                "time": f"2026-01-{number + 2:02}T03:04:05+00:00",
                "commit": None,
                "dirty": False,
                "testset": {"name": "handbook", "version": "1", "digest": "sha256:" + "a" * 64},
                "system": "titles",
                "convention": "trec",
                "primary": "nDCG@10",
                "measures": {"nDCG@10": {"mean": mean, "n": 12, "ci_low": mean - 0.05, "ci_high": mean + 0.05}},
                "queries": 12,
                "failures": number % 2,
                "judged": 0.4,
                "latency_ms": {"p50": 12.0 + number, "p95": 20.0},
                "pilot": False,
            }
        )
        + "\n"
    )


SMALL = judged_queries(24, 1)
CLASSED = judged_queries(60, 2)
PAIR: dict[str, str] = {
    "qrels.txt": qrels(SMALL),
    "set.yaml": native(SMALL, {"kind": ["title", "question", "mixed"], "level": ["easy", "hard"]}),
    "a.run": run(SMALL, 1.3, 1),
    "b.run": run(SMALL, 0.6, 2),
    "c.run": run(SMALL, 1.25, 3),
    "gaps.run": run(SMALL, 0.6, 4, skipped=("q03", "q17")),
    "few.run": run(SMALL, 0.6, 5, skipped=[f"q{i:02}" for i in range(1, 15)]),
    "binary.qrels": "q1 0 a 1\nq1 0 b 0\nq2 0 c 1\nq3 0 d 1\n",
    "tiny-a.run": "q1 Q0 a 1 3 x\nq1 Q0 b 2 2 x\nq2 Q0 z 1 1 x\nq3 Q0 d 1 1 x\n",
    "tiny-b.run": "q1 Q0 b 1 3 y\nq1 Q0 a 2 2 y\nq2 Q0 c 1 1 y\nq3 Q0 z 1 2 y\nq3 Q0 d 2 1 y\n",
}


def help_of_every_command() -> None:
    from cranfield.cli.main import COMMANDS, GROUPS, run_command_line

    run_command_line(["--help"])
    for name in COMMANDS:
        print(f"\n$ cranfield {name} --help")
        run_command_line([name, "--help"])
        if name in GROUPS:
            for command in importlib.import_module(f"cranfield.cli.{name}").SUBCOMMANDS:
                print(f"\n$ cranfield {name} {command} --help")
                run_command_line([name, command, "--help"])


def openapi() -> None:
    from cranfield.judging.store.database import open_store
    from cranfield.server.app import create_app
    from cranfield.server.options import ServerOptions

    store = open_store("books.db")
    app = create_app(store, ServerOptions(port=8000, accounts=True, secret=b"k" * 32))
    print(json.dumps(app.openapi(), indent=1))
    store.close()


def json_schemas() -> None:
    from cranfield.cli.main import run_command_line
    from cranfield.project.schemas import SCHEMAS

    for name in sorted(SCHEMAS):
        print(f"$ cranfield schema {name}")
        run_command_line(["schema", name])


def public_names() -> None:
    """Each public name with its signature; of a class, those of its public methods and the names of its fields."""
    import cranfield

    for name in cranfield.__all__:
        thing = getattr(cranfield, name)
        print(name + signature_of(thing))
        if isinstance(thing, type):
            for member, value in sorted(vars(thing).items()):
                if not member.startswith("_"):
                    print(f"    {member}{signature_of(getattr(value, '__func__', value))}")


def signature_of(thing: object) -> str:
    try:
        return re.sub(r" at 0x[0-9a-f]+", "", str(inspect.signature(thing))) if callable(thing) else ""
    except ValueError:
        return ""


def mcp_tools() -> None:
    import anyio
    from mcp.client import Client

    from cranfield.mcp_server.evidence import open_evidence
    from cranfield.mcp_server.server import make_server

    async def list_tools(server: Any) -> None:
        async with Client(server) as client:
            print(client.instructions)
            for tool in (await client.list_tools()).tools:
                print(json.dumps(tool.model_dump(exclude_none=True), indent=1))

    Path("testset.yaml").write_text(PAIR["set.yaml"])
    Path("cranfield.yaml").write_text("testset: testset.yaml\nsystems: {a: {run: a.run}}\n")
    Path("a.run").write_text(PAIR["a.run"])
    with open_evidence(None, Path("cranfield.yaml"), frozenset()) as evidence:
        anyio.run(list_tools, make_server(evidence))


HANDBOOK_CONFIG = """\
testset: handbook/queries.yaml
primary: nDCG@10
latency: {skip_first: 12, smallest_ms: 100000}
systems:
  plain:
    command: ["{python}", search.py, "{query}", "{k}", "1"]
    cwd: handbook
    extract: {jsonl: true, id: id, score: score, title: title}
  titles:
    command: ["{python}", search.py, "{query}", "{k}", "5"]
    cwd: handbook
    extract: {jsonl: true, id: id, score: score, title: title}
gate:
  system: titles
  rules:
    - floor: {measure: nDCG@10, at_least: 0.85}
    - floor: {measure: Success@1, at_least: 0.9}
    - drop: {measure: nDCG@10, at_most: 5 %}
    - failures: {at_most: 0}
"""

SCENES = [
    Scene("interface", [help_of_every_command, openapi, json_schemas, public_names, mcp_tools]),
    Scene(
        "evaluate",
        [
            *forms(
                "evaluate qrels.txt a.run",
                "evaluate set.yaml a.run -m nDCG@10 -m RR@10 -m P@5 --by-query --full",
                "evaluate set.yaml a.run gaps.run -m nDCG@10 -m R@10",
            ),
            *forms(
                "evaluate qrels.txt few.run",
                "evaluate qrels.txt gaps.run --missing skip",
                "evaluate qrels.txt a.run -m AP --convention cupertino",
                "evaluate qrels.txt a.run -m 'P(rel=2)@3' -m 'RBP(p=0.5)' -m Judged@10 -m ERR -m bpref",
                "evaluate set.yaml b.run --full",
                "explain qrels.txt a.run trec cupertino -m nDCG@10",
                only=TEXT_AND_JSON,
            ),
            "explain qrels.txt a.run trec cupertino -m nDCG@10 --html explain.html",
            "trec_eval qrels.txt a.run",
            "trec_eval -q -c -m map -m ndcg_cut.10 qrels.txt gaps.run",
            "trec_eval -m all_trec qrels.txt b.run",
            *forms("measures", "measures nDCG", only=TEXT_AND_JSON),
            "convert a.run a.jsonl",
            "convert a.jsonl again.run",
        ],
        PAIR,
    ),
    Scene(
        "compare",
        [
            *forms(
                "compare qrels.txt a.run b.run",
                "compare set.yaml a.run c.run -m nDCG@10 -m RR@10 --full --seed 7",
                "compare set.yaml a.run b.run -m nDCG@10 --margin 0.05 --sensitivity",
            ),
            *forms(
                "compare qrels.txt a.run gaps.run",
                "compare qrels.txt a.run few.run",
                "compare qrels.txt a.run c.run -m AP --test t --alpha 0.1",
                "compare qrels.txt a.run c.run -m RR --test bootstrap --draws 500",
                "compare qrels.txt a.run a.run",
                "compare binary.qrels tiny-a.run tiny-b.run -m RR",
                only=TEXT_AND_JSON,
            ),
            "compare qrels.txt a.run b.run --fail-on better",
            "compare qrels.txt a.run c.run --fail-on not-significant",
            *forms(
                "power set.yaml a.run b.run -m nDCG@10",
                "power set.yaml a.run c.run -m RR --difference 0.05 --n-queries 200",
            ),
        ],
        PAIR,
    ),
    Scene(
        "compare-many",
        [
            *forms("compare set.yaml a.run b.run c.run gaps.run -m nDCG@10 -m RR --full"),
            *forms("compare qrels.txt a.run b.run c.run", only=TEXT_AND_JSON),
        ],
        PAIR,
    ),
    Scene(
        "compare-classes",
        [
            *forms("compare classed.yaml old.run new.run -m nDCG@10 --full"),
            *forms("compare classed.yaml old.run worse.run", "evaluate classed.yaml new.run", only=TEXT_AND_JSON),
        ],
        {
            "classed.yaml": native(
                CLASSED,
                {"kind": ["words", "name", "none"]},
                classes={"stratum": "kind", "names": {"words": "prose", "name": "canonical"}},
            ),
            "old.run": run(CLASSED, 1.3, 11),
            "new.run": run(CLASSED, 0.5, 12),
            "worse.run": run(CLASSED, 2.5, 13),
        },
    ),
    Scene(
        "wrong-input",
        [
            "evaluate a.run qrels.txt",
            "evaluate qrels.txt nothing.run",
            "evaluate qrels.txt broken.run",
            "evaluate broken.qrels a.run",
            "evaluate broken.yaml a.run",
            "evaluate qrels.txt a.run -m nDGC@10 -m P@0 -m 'nDCG(rel=2)@10'",
            "evaluate qrels.txt a.run --format xml",
            "evaluate qrels.txt a.run --missing never",
            "evaluate qrels.txt other.run",
            "compare qrels.txt a.run",
            "compare qrels.txt a.run zeros.run -m RR",
            "compare qrels.txt a.run b.run --alpha 2",
            "compare qrels.txt a.run b.run --margin -1",
            "compare qrels.txt a.run b.run --test wilcoxon2",
            "comapre qrels.txt a.run b.run",
            "evaluate --by-qurey qrels.txt a.run",
            "run broken-config.yaml",
            "run nothing.yaml",
            "gate set.yaml",
            "power qrels.txt a.run b.run --difference 7",
            "testset show nothing.yaml",
            "testset validate broken.yaml",
            "history nothing.yaml",
            "schema nothing",
            "view nothing",
        ],
        PAIR
        | {
            "broken.run": "q1 Q0 a 1 3 x\nq1 Q0 b two 2 x\nq1 Q0 c\nq2 Q0 d 1 high x\n",
            "broken.qrels": "q1 0 a 1\nq1 0 b\nq2 0 c x\n",
            "broken.yaml": "cranfield_testset: 1\nqueries:\n  - {id: q1, txt: words}\n  - {id: q1, judgments: {a: high}}\n",
            "other.run": "x1 Q0 a 1 3 x\nx2 Q0 b 1 2 x\n",
            "zeros.run": "".join(line.replace("q0", "q", 1) + "\n" for line in run(SMALL, 0.6, 2).splitlines()),
            "broken-config.yaml": (
                "testset: set.yaml\nprimry: nDCG@10\nsystems:\n  a: {command: [x], cwd: 3}\n  b: {url: 7}\ngate: {rules: [{flor: 1}]}\n"
            ),
        },
    ),
    Scene(
        "testsets",
        [
            *forms(
                "testset show set.yaml",
                "testset show set.yaml q05",
                "testset stats set.yaml --by kind",
                only=TEXT_AND_JSON,
            ),
            *forms("testset validate set.yaml --today 2026-11-21", "testset diff set.yaml set-2.yaml"),
            *forms("testset diff set.yaml set-2.yaml --run a.run -m nDCG@10", only=TEXT_AND_JSON),
            "testset add set.yaml --id q99 --text 'who may write' --stratum kind=title --relevant d01=1 --today 2026-11-21 --out added.yaml",
            "testset split set.yaml --share 0.4 --seed 1 --by level --out parts.yaml",
            *forms("testset overfit parts.yaml a.run -m Success@5", only=TEXT_AND_JSON),
            "testset convert set.yaml set.qrels",
            "testset convert set.yaml body.json --to rank-eval",
            "testset convert qrels.txt plain.csv",
            *forms("testset stats code.yaml", "evaluate code.yaml chunks.run -m P@2 -m R@2", only=TEXT_AND_JSON),
            *forms("testset verify code.yaml --repo repo", only=TEXT_AND_JSON),
            "testset rehash code.yaml --repo repo --today 2026-11-21 --out anchored.yaml",
        ],
        PAIR
        | {
            "set-2.yaml": native(
                {q: docs for q, docs in SMALL.items() if q != "q04"} | {"q30": {"d01": 3, "d02": 0}},
                {"kind": ["title", "question", "mixed"], "level": ["easy", "hard"]},
                version="2",
            ),
            "code.yaml": (
                "cranfield_testset: 1\nname: code\nqueries:\n"
                "  - {id: q1, text: add two numbers, spans: ['sums.py:1-3']}\n"
                "  - {id: q2, text: product, spans: ['sums.py:6-8:2', 'more.py:1-2']}\n"
                "  - {id: q3, text: nothing of this, negative: true}\n"
            ),
            "repo/sums.py": "def add(a, b):\n    # the sum\n    return a + b\n\n\ndef times(a, b):\n    # the product\n    return a * b\n",
            "repo/more.py": "def three():\n    return 3\n",
            "chunks.run": "q1 Q0 sums.py:1-4 1 3 x\nq2 Q0 more.py:1-2 1 3 x\nq2 Q0 sums.py:5-8 2 2 x\nq3 Q0 sums.py:1-3 1 1 x\n",
        },
    ),
    Scene(
        "run",
        [
            *forms("run cranfield.yaml"),
            "run cranfield.yaml --out kept",
            *forms(
                "evaluate handbook/queries.yaml kept/runs/plain.jsonl",
                "compare handbook/queries.yaml kept/runs/plain.jsonl kept/runs/titles.jsonl -m nDCG@10",
            ),
            "history cranfield.yaml --format json",
            "baseline accept cranfield.yaml --reason first",
            *forms("baseline show cranfield.yaml", only=TEXT_AND_JSON),
            *forms("gate cranfield.yaml"),
            "gate cranfield.yaml --junit gate.xml --markdown gate.md",
            "metrics kept/results.json --testset queries",
            "system list --config cranfield.yaml",
            "system show titles --config cranfield.yaml",
            "alerts cranfield.yaml",
            "dashboard",
        ],
        {"cranfield.yaml": HANDBOOK_CONFIG},
        ["examples/handbook"],
        timed=True,
    ),
    Scene(
        "history",
        [*forms("history cranfield.yaml", "history cranfield.yaml --drop 0.04")],
        {
            "cranfield.yaml": HANDBOOK_CONFIG,
            ".cranfield/history.jsonl": "".join(
                point(n, mean) for n, mean in enumerate([0.80, 0.81, 0.80, 0.74, 0.75])
            ),
        },
        ["examples/handbook"],
    ),
    Scene(
        "latency",
        [
            *forms(
                "compare set.yaml slow.jsonl fast.jsonl -m nDCG@10 --latency skip_first=2",
                "evaluate set.yaml slow.jsonl -m nDCG@10",
            ),
            *forms("compare set.yaml fast.jsonl slow.jsonl -m nDCG@10 --latency smallest_ms=5", only=TEXT_AND_JSON),
        ],
        {"set.yaml": PAIR["set.yaml"], **collected("slow", 0.6, 30), **collected("fast", 0.9, 12)},
    ),
    Scene(
        "pools",
        [
            *forms("pool a.run b.run --testset set.yaml --depth 3"),
            "pool a.run b.run --testset set.yaml --depth 12 --out pool.json",
            *forms("pool check a.run b.run --testset set.yaml --depth 5 --measure nDCG@5", only=TEXT_AND_JSON),
            "pool export pool.json --testset set.yaml --out pool.qrels",
            *forms("holes a.run b.run --testset set.yaml -m nDCG@5"),
            *forms("agreement ann.qrels bob.qrels", "agreement ann.qrels bob.qrels --binary-at 2 --full"),
        ],
        PAIR
        | {
            "ann.qrels": qrels(judged_queries(6, 5, 8)),
            "bob.qrels": qrels(
                {
                    q: {d: min(3, max(0, g + (i + j) % 5 // 4)) for j, (d, g) in enumerate(docs.items())}
                    for i, (q, docs) in enumerate(judged_queries(6, 5, 8).items())
                }
            ),
        },
    ),
]
