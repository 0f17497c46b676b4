"""Kinds of test sets and of runs, conversions, scored answers, calibration, large runs."""

from __future__ import annotations

import json
import random
from pathlib import Path

from scenes.scene import PAIR, SMALL, TEXT_AND_JSON, Scene, forms, native

KINDS = """\
cranfield_testset: 1
name: kinds
meta: {review: "agent curated, pending human review"}
sources:
  - {name: reference, pattern: ^reference/}
  - {name: guide, pattern: ^guide/}
queries:
  - {id: c1, class: canonical, text: json.loads, judgments: {reference/json.loads: 1}}
  - {id: e1, class: deprecation, text: run a program, judgments: {reference/subprocess.run: 1}, legacy: [reference/os.popen]}
  - {id: e2, class: E, text: parse arguments, judgments: {reference/argparse: 1}, legacy: {patterns: [optparse$, getopt$]}}
  - {id: f1, class: cross-source, text: logging, judgments: {reference/logging: 2, guide/logging: 1}}
  - {id: h1, class: attribute, text: functions that take a timeout, patterns: [{regex: timeout, credit: every, expected_count: 12}]}
  - {id: n1, text: quantum teleportation, negative: true}
  - {id: n2, text: asdfgh, negative: {below: 5}}
"""
KINDS_RUNS = {
    "old.run": (
        "c1 Q0 guide/json 1 9 old\nc1 Q0 reference/json.loads 2 8 old\ne1 Q0 reference/os.popen 1 9 old\n"
        "e1 Q0 reference/subprocess.run 2 8 old\ne2 Q0 reference/optparse 1 9 old\nf1 Q0 guide/logging 1 9 old\n"
        "f1 Q0 reference/logging 2 8 old\nh1 Q0 wait_timeout 1 9 old\nn1 Q0 reference/random 1 9 old\nn2 Q0 guide/ascii 1 3 old\n"
    ),
    "new.run": (
        "c1 Q0 reference/json.loads 1 9 new\ne1 Q0 reference/subprocess.run 1 9 new\ne1 Q0 reference/os.popen 2 8 new\n"
        "e2 Q0 reference/argparse 1 9 new\nf1 Q0 reference/logging 1 9 new\nf1 Q0 guide/logging 2 8 new\n"
        "h1 Q0 wait_timeout 1 9 new\nh1 Q0 set_timeout 2 8 new\nn2 Q0 guide/ascii 1 7 new\n"
    ),
}
PLACES = """\
cranfield_testset: 1
name: places
databases: {corpus: 'sqlite:corpus.db'}
queries:
  - {id: s1, text: cut a text into chunks, spans: ["text.rs:28-94:2", "lib.rs:1-9"]}
  - {id: s2, text: what the cart costs, entities: ["cart.py::Cart.total", "cart.py::with_tax"]}
  - {id: s3, text: the guide, files: [guide.md]}
  - {id: s4, text: pages of the server, patterns: [{regex: "^docs://server($|/)", grade: 2}, {regex: "^docs://http/"}]}
  - {id: s5, text: deprecated functions of net, class: attribute, predicates: [{sql: "SELECT id FROM entity WHERE deprecated"}]}
  - {id: s6, text: nothing of this, negative: true}
"""
PLACES_RUN = (
    "s1 Q0 text.rs:30-60 1 5 x\ns1 Q0 text.rs:61-90 2 4 x\ns1 Q0 lib.rs:20-30 3 3 x\ns2 Q0 cart.py::with_tax 1 3 x\n"
    "s2 Q0 cart.py::Cart 2 2 x\ns3 Q0 guide.md 1 3 x\ns3 Q0 other.md 2 2 x\ns4 Q0 docs://http/get 1 3 x\ns4 Q0 docs://server/run 2 2 x\n"
    "s5 Q0 net.old_open 1 4 x\ns5 Q0 net.open 2 3 x\ns5 Q0 net.old_close 3 2 x\ns6 Q0 guide.md 1 1 x\n"
)
BAD_PLACES = """\
cranfield_testset: 1
name: attributes
databases: {corpus: 'sqlite:corpus.db', other: 'sqlite:gone.db'}
queries:
  - {id: h1, text: one, predicates: [{sql: DELETE FROM entity RETURNING id}]}
  - {id: h2, text: two, predicates: [{sql: SELECT name FROM entity}]}
  - {id: h3, text: three, predicates: [{sql: SELECT id FROM entity, database: other}]}
  - {id: h4, text: four, predicates: [{sql: SELECT NULL FROM entity}]}
"""
TOPICS = (
    "<top>\n<num> Number: q01\n<title> rotate the log files\n<desc> Description: How log files are rotated.\n</top>\n"
    "<top>\n<num> Number: q02\n<title> limit of open files\n</top>\n"
)


def make_a_database() -> None:
    import sqlite3

    connection = sqlite3.connect("corpus.db")
    with connection:
        connection.execute("CREATE TABLE entity (id TEXT, module TEXT, deprecated INTEGER)")
        rows = [("net.open", "net", 0), ("net.old_open", "net", 1), ("net.old_close", "net", 1)]
        connection.executemany("INSERT INTO entity VALUES (?, ?, ?)", rows)
    connection.close()


def written_by_every_format() -> None:
    """Each format of test sets and of runs that is written, of one test set and one run."""
    from cranfield.cli.main import run_command_line
    from cranfield.formats.convert import written_formats

    Path("written").mkdir()
    for kind, source, command in (("testset", "set.yaml", ["testset", "convert"]), ("run", "a.run", ["convert"])):
        for name, entry in sorted(written_formats(kind).items()):
            print(f"$ {kind} {name}", flush=True)
            out = f"written/{kind}-{name}" if entry.is_folder else f"written/{kind}-{name}{entry.suffix or '.txt'}"
            print(f"exit {run_command_line([*command, source, out, '--to', name])}", flush=True)


def make_parquet() -> None:
    """A table of two systems in three files, judgments, and who asked each query."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    draw = random.Random(7)
    queries = [f"q{number:03}" for number in range(80)]
    rows = [
        (system, query, f"d{rank:02}", round(draw.gauss(3 - rank / 8, spread), 2))
        for query in queries
        for system, spread in (("bm25", 2.0), ("dense", 0.8))
        for rank in range(20)
    ]
    draw.shuffle(rows)
    Path("logs").mkdir()
    for number in range(3):
        columns = zip(*rows[number::3], strict=True)
        table = pa.table(dict(zip(("system", "query_id", "doc_id", "score"), columns, strict=True)))
        pq.write_table(table, f"logs/part-{number}.parquet")
    for system in ("bm25", "dense"):
        columns = zip(*((query, doc, score) for owner, query, doc, score in rows if owner == system), strict=True)
        pq.write_table(pa.table(dict(zip(("query_id", "doc_id", "score"), columns, strict=True))), f"{system}.parquet")
    judged = [
        (query, f"d{rank:02}", draw.choice([0, 1, 2]) if rank < 8 else 0)
        for query in queries
        for rank in draw.sample(range(20), 12)
    ]
    pq.write_table(
        pa.table(dict(zip(("query_id", "doc_id", "grade"), zip(*judged, strict=True), strict=True))),
        "judgments.parquet",
    )
    users = [f"user{draw.randrange(15)}" for _ in queries]
    languages = ["de" if n % 3 else "en" for n, _ in enumerate(queries)]
    pq.write_table(pa.table({"query_id": queries, "user": users, "language": languages}), "queries.parquet")


LABELS = [
    {
        "query_id": "q1",
        "query_text": "Where is the index opened?",
        "task_type": "locate",
        "difficulty": "easy",
        "expected_entities": ["src/index.py::Index.open"],
        "expected_files": ["src/index.py"],
        "must_mention_facts": ["`Index.open` takes a lock.", "A missing file is an error."],
        "must_not_mention_facts": ["The index is opened twice."],
        "canonical_narrative": "`Index.open` opens the index under a lock, and fails where the file is missing.",
    },
    {
        "query_id": "q2",
        "query_text": "What happens when a document is added?",
        "task_type": "explain",
        "difficulty": "medium",
        "expected_entities": ["src/index.py::Index.add", "src/store.py::write"],
        "expected_files": ["src/index.py", "src/store.py"],
    },
    {
        "query_id": "q3",
        "query_text": "Where is the lock let go?",
        "task_type": "locate",
        "difficulty": "easy",
        "expected_files": ["src/index.py"],
        "expected_line_ranges": [{"file": "src/index.py", "start": 30, "end": 34}],
        "must_mention_facts": ["`Index.close` lets go of the lock."],
    },
]
ANSWERS = [
    {
        "query_id": "q1",
        "text": "Index.open in src/index.py opens it.\n- `Index.open` takes a lock.",
        "total_tokens": 90,
    },
    {"query_id": "q2", "text": "", "entities": ["src/index.py::Index.add"], "files": ["src/index.py"], "tool_calls": 3},
]
CONFIDENT = "query_id,confidence,correct,task_type\n" + "".join(
    f"q{n:02},{confidence},{str(right).lower()},{'locate' if n % 3 else 'explain'}\n"
    for n, (confidence, right) in enumerate(
        (round(draw.choice([0.3, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95]), 2), draw.random() < 0.5)
        for draw in [random.Random(11)]
        for _ in range(80)
    )
)

SCENES = [
    Scene(
        "kinds",
        [
            make_a_database,
            *forms("evaluate kinds.yaml new.run", "compare kinds.yaml old.run new.run -m nDCG@10 --full"),
            *forms("evaluate places.yaml places.run -m P@2 -m R@5 -m nDCG@5 --full"),
            *forms(
                "evaluate places.yaml places.run -m P@2 -m nDCG@5 --convention octocode --by-query",
                "evaluate places.yaml places.run -m R@5 --line-base 0 --min-overlap 20",
                "evaluate places.yaml places.run --database corpus=sqlite:gone.db",
                "testset show places.yaml",
                "testset stats places.yaml",
                "testset show kinds.yaml",
                "testset show kinds.yaml h1",
                "testset validate places.yaml --today 2026-11-21",
                only=TEXT_AND_JSON,
            ),
            "evaluate bad.yaml places.run",
            "explain places.yaml places.run trec octocode -m nDCG@5 --unjudged",
        ],
        {"kinds.yaml": KINDS, "places.yaml": PLACES, "places.run": PLACES_RUN, "bad.yaml": BAD_PLACES, **KINDS_RUNS},
    ),
    Scene(
        "conventions",
        [
            *[
                f"evaluate set.yaml a.run -m nDCG@10 -m AP -m RR -m P@5 -m R@10 --convention {name} --format json"
                for name in (
                    "trec9",
                    "ir_measures",
                    "ranx",
                    "msmarco",
                    "sklearn",
                    "searchtweak",
                    "octocode",
                    "opensearch",
                )
            ],
            *forms(
                "evaluate set.yaml tied.run -m nDCG@10 -m P@5 --ties expected",
                "compare set.yaml tied.run a.run -m P@5 --convention quepid",
                "explain set.yaml tied.run trec sklearn -m nDCG@10 --ties --unjudged --top 3",
                "evaluate set.yaml a.run --qrels other.qrels --qrels-fallback -m RR",
                "evaluate qrels.txt a.run --strata kind=first:1-12,second:13-24 --part all -m RR",
                "evaluate set.yaml a.run b.run -m P@3 --depth 3 --failed skip",
                only=TEXT_AND_JSON,
            ),
        ],
        {
            "set.yaml": PAIR["set.yaml"],
            "qrels.txt": PAIR["qrels.txt"],
            "a.run": PAIR["a.run"],
            "b.run": PAIR["b.run"],
            "tied.run": "".join(
                f"{q} Q0 {doc} {rank} {5 - (rank - 1) // 3} tied\n"
                for q in SMALL
                for rank, doc in enumerate(sorted(SMALL[q], key=lambda d: (-SMALL[q][d] + int(d[2]), d))[:12], 1)
            ),
            "other.qrels": "qid 0 docid relevance\nq01 0 d01 1\nq02 0 d02 2\n",
        },
    ),
    Scene(
        "converted",
        [
            written_by_every_format,
            "testset convert qrels.txt texts.yaml",
            "testset convert qrels.txt texts.yaml --queries topics.txt",
            "testset convert golden.json labelled.yaml",
            "testset convert labelled.yaml again.json --to golden-json",
            "testset convert places.yaml places.csv --to spans-csv",
            "testset convert places.yaml places.qrels",
            "testset convert places.yaml places.patterns --to patterns",
            "testset show table.csv",
            *forms("evaluate samples.jsonl samples.jsonl -m R@5 -m RR --by-query", only=TEXT_AND_JSON),
        ],
        {
            "set.yaml": native({q: SMALL[q] for q in list(SMALL)[:3]}, {"kind": ["title", "question"]}),
            "qrels.txt": "q01 0 d01 2\nq01 0 d02 0\nq02 0 d03 1\n",
            "a.run": "".join(f"{line}\n" for line in PAIR["a.run"].splitlines()[:30]),
            "topics.txt": TOPICS,
            "golden.json": json.dumps(LABELS, indent=1),
            "places.yaml": PLACES.replace("databases: {corpus: 'sqlite:corpus.db'}\n", "").replace(
                PLACES.splitlines()[8] + "\n", ""
            ),
            "table.csv": (
                "query_id,question,doc_id,grade,query_class,kind,negative\nq1,what is x,d1,2,canonical,howto,\n"
                "q1,what is x,d2,1,canonical,howto,\nq2,a thing that is nowhere,,,,howto,yes\n"
            ),
            "samples.jsonl": (
                '{"user_input": "what is x", "retrieved_contexts": ["text one", "text two"], "reference_contexts": ["text one"]}\n'
                '{"user_input": "how to y", "retrieved_contexts": ["text three"], "reference_contexts": ["text two"]}\n'
            ),
        },
    ),
    Scene(
        "answers",
        [
            *forms("answers score labels.json answers.jsonl"),
            "answers score labels.json answers.jsonl --out scores.jsonl --format json",
            *forms("calibrate answers.csv --full"),
            *forms(
                "calibrate answers.csv",
                "calibrate answers.csv --by task_type --threshold 0.6 --target 0.5",
                "calibrate few.csv",
                only=TEXT_AND_JSON,
            ),
        ],
        {
            "labels.json": json.dumps(LABELS, indent=1),
            "answers.jsonl": "".join(json.dumps(one) + "\n" for one in ANSWERS),
            "answers.csv": CONFIDENT + "q80,,true,locate\n",
            "few.csv": "query_id,score,correct\nq1,0.9,true\nq2,0.4,false\nq3,1.0,false\n",
        },
    ),
    Scene(
        "large",
        [
            make_parquet,
            *forms("evaluate judgments.parquet logs -m nDCG@10 -m AP --query-table queries.parquet --cluster user"),
            *forms(
                "evaluate judgments.parquet logs -m nDCG@10 --full --query-table queries.parquet --stratum language"
            ),
            *forms(
                "compare judgments.parquet logs --primary AP --margin 0.05 --baseline-system dense", only=TEXT_AND_JSON
            ),
            *forms("compare judgments.parquet bm25.parquet dense.parquet -m nDCG@10 --memory 1GB", only=TEXT_AND_JSON),
            "evaluate judgments.parquet bm25.parquet -m nDCG@10 --format json",
            "evaluate judgments.parquet logs -m nDCG@10 --out values --format csv",
            "evaluate judgments.parquet logs -m 'alpha_nDCG@10'",
            "evaluate judgments.parquet logs/part-0.parquet logs/part-1.parquet",
        ],
    ),
]
