"""Books, pools, refreshed test sets and models as raters."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from scenes.scene import TEXT_AND_JSON, Scene, forms, judged_queries, native, run

GRADED = judged_queries(12, 6, 8)
KINDS = {"kind": ["title", "question", "mixed"]}
RUNS = {f"{name}.run": run(GRADED, noise, seed) for name, noise, seed in (("a", 1.3, 21), ("b", 0.6, 22))}


def pooled(runs: Mapping[str, str], depth: int) -> dict[str, list[str]]:
    """The documents down to a rank, by query."""
    found: dict[str, set[str]] = {}
    for text in runs.values():
        for line in text.splitlines():
            query, _, doc, rank, *_ = line.split()
            if int(rank) <= depth:
                found.setdefault(query, set()).add(doc)
    return {query: sorted(docs) for query, docs in found.items()}


def ratings(left_out: int = 0) -> str:
    """What three raters gave: ann what is true, bob about that, cas now and then something else; the last documents by nobody."""
    draw = random.Random(8)
    rows = []
    documents = [(query, doc) for query, docs in pooled(RUNS, 4).items() for doc in docs]
    for place, (query, doc) in enumerate(documents[: len(documents) - left_out]):
        true = GRADED[query].get(doc, 0)
        given = {"ann": true, "bob": min(3, max(0, true + draw.choice([0, 0, 0, 0, 1, -1])))}
        if place % 3 == 0:
            given["cas"] = draw.randrange(4)
        for number, (name, grade) in enumerate(given.items()):
            time = f"2026-11-23T{9 + number:02}:{place % 60:02}:00Z"
            rows.append(f"{query},{doc},{grade},{name},{'so I think' if place % 10 == 0 else ''},{time},")
            if name == "bob" and abs(grade - true) == 1 and place % 2:
                rows.append(f"{query},{doc},{true},lead,as the guideline says,2026-11-23T12:{place % 60:02}:00Z,yes")
    return "\n".join(["query_id,doc_id,grade,rater,reason,time,final", *rows]) + "\n"


SHOP = {
    "shop.run": (
        "q1 Q0 wool-sock 1 9.1 bm25\nq1 Q0 wool-hat 2 7.5 bm25\nq1 Q0 dog 3 3.2 bm25\n"
        "q2 Q0 blue-shirt 1 5.5 bm25\nq2 Q0 blueberry 2 5.1 bm25\nq2 Q0 navy-coat 3 1.0 bm25\n"
    ),
    "shop.yaml": (
        "cranfield_testset: 1\nname: shop\nmeta: {scale: [0, 1, 2, 3]}\nqueries:\n"
        "  - {id: q1, text: wool socks, need: Socks of wool to buy., judgments: {dog: 0}}\n"
        "  - {id: q2, text: blue, need: Clothes that are blue., judgments: {blueberry: 0}}\n"
    ),
    "shop.jsonl": (
        '{"id": "wool-sock", "title": "Wool socks", "body": "Warm socks, 90 % wool."}\n'
        '{"id": "wool-hat", "title": "Hat", "body": "A hat of wool."}\n'
        '{"id": "dog", "title": "Dog lead", "body": "Leather, 2 m."}\n'
        '{"id": "blue-shirt", "title": "Shirt", "body": "Cotton, blue."}\n'
        '{"id": "blueberry", "title": "Blueberries", "body": "Fruit, 250 g."}\n'
        '{"id": "navy-coat", "title": "Coat", "body": "A coat in navy."}\n'
    ),
    "workbench.yaml": "documents:\n  - corpus: {path: shop.jsonl, text: body}\n",
    "prices.yaml": "currency: USD\nmodels:\n  openai:small: {input: 0.15, cache_read: 0.075, output: 0.60}\n",
    "people.csv": (
        "query_id,doc_id,grade,rater\nq1,wool-sock,3,ann\nq1,wool-hat,0,ann\nq1,dog,0,ann\n"
        "q2,blue-shirt,3,ann\nq2,blueberry,0,ann\nq2,navy-coat,2,ann\n"
    ),
}


SHEET = [
    (query, text, f"{letter}{number}")
    for number, (query, text) in enumerate(
        [("log-bd39b733", "storage of insulin"), ("log-79f2ed66", "vaccines for travel")], 1
    )
    for letter in "xyz"
]
"""What raters fill in: queries of the log, and what a system found."""
SHEET_HEAD = "query_id,query,doc_id,rater1,rater2\n"
CLINIC = {
    "clinic.yaml": (
        "cranfield_testset: 1\nname: clinic\nversion: v1\nmeta: {scale: [0, 1, 2, 3], made: 2026-06-01, refresh_days: 90}\nqueries:\n"
        "  - {id: q1, text: dose of aspirin, judgments: {a1: 3}}\n"
        "  - {id: q2, text: side effects of statins, judgments: {s1: 2}}\n"
        "  - {id: q3, text: interactions of warfarin, judgments: {w1: 3}}\n"
        "  - {id: q4, text: metformin in pregnancy, judgments: {m1: 1}}\n"
    ),
    "log.tsv": (
        "query\tcount\nDose of  ASPIRIN\t50\nstorage of insulin\t30\nside effects of the statins\t12\nvaccines for travel\t9\n"
    ),
    "new.run": "".join(f"{query} Q0 {doc} 1 {10 - n} bm25\n" for n, (query, _, doc) in enumerate(SHEET)),
    "filled.csv": SHEET_HEAD + "".join(f"{q},{text},{doc},{n % 3},{n % 3}\n" for n, (q, text, doc) in enumerate(SHEET)),
    "unlike.csv": SHEET_HEAD + "".join(f"{q},{text},{doc},{n % 3},{n % 2}\n" for n, (q, text, doc) in enumerate(SHEET)),
    "grades.csv": "query_id,doc_id,rater,grade\n"
    + "".join(f"{q},{doc},{who},{n % 3}\n" for n, (q, _, doc) in enumerate(SHEET) for who in ("ann", "bob")),
}


def record_a_model() -> None:
    """A recording that stands for a model: 3 where the document has every word of the query, 9, which is no grade, for the fruit."""
    from cranfield.agents.protocol import Sampling
    from cranfield.agents.recording import Scripted
    from cranfield.agents.settings import Connection
    from cranfield.books.pool_file import Pool
    from cranfield.books.settings import BookSettings
    from cranfield.books.store.store import open_store
    from cranfield.judging.documents.texts import DocumentTexts
    from cranfield.judging.models.prompt import load_prompt
    from cranfield.judging.models.run import RateOptions, rate_book
    from cranfield.workbench.config import load_workbench

    def small_model(request: Any) -> str:
        text = request.messages[0].text.lower()
        query, document = text.split("query: ")[1].split("\n")[0], text.split('number="1">')[1].split("</document")[0]
        grade = 9 if "fruit" in document else 3 if all(word in document for word in query.split()) else 0
        return json.dumps({"grade": grade, "reason": "words of the query"})

    connection = Connection("openai:small", record=Path("calls.jsonl"))
    sampling = Sampling(temperature=0.0, seed=0, max_tokens=1_000)
    options = RateOptions(connection, load_prompt(), sampling, name="rehearsal", concurrency=1)
    with (
        closing(open_store("rehearsal.db")) as store,
        closing(DocumentTexts(load_workbench(Path("workbench.yaml")))) as texts,
    ):
        book = store.books.create("shop", Pool.model_validate_json(Path("pool.json").read_text()), BookSettings())
        source = Scripted(small_model)
        outcome = rate_book(store, book, options, lambda item: texts.get(item.doc, item.fields), source=source)
        print(outcome.n_graded, outcome.n_bad)


def judge_two_lists() -> None:
    """What `cranfield judge a.run b.run` makes, and what two raters prefer."""
    from cranfield.app.loading import load
    from cranfield.books.settings import BookSettings, Mode
    from cranfield.books.store.schema import Action
    from cranfield.books.store.store import open_store
    from cranfield.books.store.values import SaveRequest
    from cranfield.judging.preference import preference_pool
    from cranfield.judging.use_cases import read_systems

    draw = random.Random(4)
    judged = load("set.yaml")
    with closing(open_store("cranfield-books.db")) as store:
        pool = preference_pool("a or b", judged.queries, *read_systems(["a.run", "b.run"], judged))
        book = store.books.create("a or b", pool, BookSettings(mode=Mode.PREFERENCE))
        for name in ("ann", "bob"):
            rater = store.people.add(name)
            store.people.join(book.id, rater.id)
            for item in store.reading.items(book.id)[:-1]:
                grade = draw.choice([0, 1, 2, 2])
                key = f"{name} {item.id}"
                store.log.save(SaveRequest(book.id, item.id, rater.id, Action.GRADE, key, grade))


SCENES = [
    Scene(
        "books",
        [
            "pool a.run b.run --testset set.yaml --depth 4 --include-judged --out pool.json",
            "pool a.run b.run --testset bare.yaml --depth 4 --out pool.json --force",
            "book create first --pool pool.json --raters 2 --guideline guideline.md",
            "book show first",
            "book import first ratings.csv",
            "book import first ratings.csv",
            "book calibrate first known.csv",
            "book add-item first q01 d99 --field 'title=One more'",
            "book guideline first",
            "book guideline first guideline-2.md",
            *forms("book list", "book show first", "book agreement first"),
            *forms("book agreement first --binary-at 2 --by kind --rule majority", only=TEXT_AND_JSON),
            *forms("book sensitivity first a.run b.run -m nDCG@5"),
            *forms("book sensitivity first b.run a.run -m P@3 --to-scale 0=0,1=0,2=1,3=1", only=TEXT_AND_JSON),
            "book log first --after 190",
            "book reopen first --query q02 --dry-run",
            "book reopen first --rater cas --reason 'too fast'",
            "book close first",
            "book freeze first --out frozen.yaml --today 2026-11-23",
            "book freeze first --out frozen.yaml --today 2026-11-23 --allow-partial",
            "book freeze first --out anonymous.qrels --today 2026-11-23 --allow-partial --pseudonyms --rule majority",
            "book open first",
            "book export first first.qrels",
            "book export first first.csv --pseudonyms",
            "book export first first.json --format quepid-book",
            "book export first pooled.run --run a",
            "book export first first.book.jsonl",
            "book import copy first.book.jsonl --db other.db",
            "book show copy --db other.db --format json",
            "evaluate frozen.yaml a.run b.run -m nDCG@5 -m Judged@5 --full",
            *forms("agreement frozen.yaml --by kind", only=TEXT_AND_JSON),
            "evaluate frozen.yaml a.run --consensus mean --to-scale binary -m P@5 --format json",
            "db backup kept.db",
            "db upgrade",
            "db revision",
        ],
        {
            **RUNS,
            "set.yaml": native(GRADED, KINDS, meta={"scale": [0, 1, 2, 3]}),
            "bare.yaml": native({q: {"x9": 0} for q in GRADED}, KINDS, meta={"scale": [0, 1, 2, 3]}),
            "ratings.csv": ratings(left_out=4),
            "known.csv": "query,doc,grade,reason\nq01,d00,2,as in the guideline\n",
            "guideline.md": "# How to judge\n\nWhat the query asks for, not what is near it.\n",
            "guideline-2.md": "# How to judge\n\nRead the whole document first.\n",
        },
    ),
    Scene(
        "preferences",
        [judge_two_lists, *forms("book preference 'a or b'"), "book show 'a or b'", "book agreement 'a or b'"],
        {**RUNS, "set.yaml": native(GRADED, KINDS)},
    ),
    Scene(
        "model-raters",
        [
            "pool shop.run --testset shop.yaml --depth 3 --include-judged --out pool.json",
            "book create shop --pool pool.json",
            *forms("book text wool-sock nothing --workbench workbench.yaml"),
            "book rate shop --model openai:small --base-url http://127.0.0.1:1/v1 --workbench workbench.yaml --dry-run",
            record_a_model,
            "book rate shop --model openai:small --replay calls.jsonl --workbench workbench.yaml --prices prices.yaml",
            "book import shop people.csv",
            *forms("book models shop"),
            *forms("book models shop shop.run -m P@2 --people-sample items", only=TEXT_AND_JSON),
            "book export shop shop.qrels --models",
            "book show shop",
        ],
        SHOP,
    ),
    Scene(
        "pools-of-samples",
        [
            *forms("pool a.run b.run --testset set.yaml --depth 2 --sample 3-8:30% --seed 1", only=TEXT_AND_JSON),
            *forms("pool a.run b.run --testset set.yaml --depth 5 --budget 20 --raters 2", only=TEXT_AND_JSON),
            "pool a.run b.run --testset bare.yaml --depth 2 --sample 3-8:30% --seed 1 --out sample.json",
            *forms("pool estimate sample.json a.run b.run --testset set.yaml --cutoff 8"),
            "pool chunks.run --testset code.yaml --preset alternatives --depth 3 --out misses.json --book misses",
            "book import misses found.csv",
            "pool accept code.yaml misses.json --book misses --out code-2.yaml --today 2026-11-23",
            *forms("pool alternatives code-2.yaml chunks.run words.run"),
        ],
        {
            **RUNS,
            "set.yaml": native(GRADED, KINDS, meta={"scale": [0, 1, 2, 3]}),
            "bare.yaml": native({q: {"x9": 0} for q in GRADED}, KINDS, meta={"scale": [0, 1, 2, 3]}),
            "code.yaml": (
                "cranfield_testset: 1\nname: code\nqueries:\n"
                "  - {id: q1, text: add two numbers, judgments: {sums.py: 1}}\n"
                "  - {id: q2, text: product, judgments: {sums.py: 1}}\n"
            ),
            "chunks.run": "q1 Q0 sums.py 1 3 x\nq2 Q0 more.py 1 3 x\nq2 Q0 other.py 2 2 x\n",
            "words.run": "q1 Q0 more.py 1 3 y\nq2 Q0 sums.py 1 3 y\n",
            "found.csv": "query_id,doc_id,grade,rater\nq2,more.py,1,ann\nq2,other.py,0,ann\n",
        },
    ),
    Scene(
        "refresh",
        [
            "testset refresh clinic.yaml --log log.tsv --n 2 --sample top --plan sheet.csv --queries-out new.tsv",
            "testset refresh clinic.yaml --log log.tsv --n 2 --sample frequency --seed 3 --plan other.csv --drop q1 --drop q2",
            "testset refresh clinic.yaml --log log.tsv --n 2 --sample top --plan sheet.csv --run new.run --force",
            "testset refresh clinic.yaml --log log.tsv --n 2 --sample top --labels sheet.csv --out clinic-2.yaml --today 2026-11-21",
            "testset refresh clinic.yaml --log log.tsv --n 2 --sample top --labels filled.csv --out clinic-2.yaml --today 2026-11-21",
            "testset refresh clinic.yaml --log log.tsv --n 2 --sample top --labels unlike.csv --out clinic-3.yaml --today 2026-11-21",
            *forms("testset diff clinic.yaml clinic-2.yaml", only=TEXT_AND_JSON),
            "testset refresh clinic.yaml --log log.tsv --n 2 --sample top --run new.run --book clinic-2",
            "book import clinic-2 grades.csv",
            "testset refresh clinic.yaml --log log.tsv --n 2 --sample top --book clinic-2 --out clinic-3.yaml --today 2026-11-21",
            *forms("testset validate clinic.yaml --today 2026-11-21", only=TEXT_AND_JSON),
        ],
        CLINIC,
    ),
]
