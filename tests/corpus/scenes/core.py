"""Evaluating and comparing runs; test sets; pools."""

from __future__ import annotations

from scenes.scene import (
    CLASSED,
    PAIR,
    SMALL,
    TEXT_AND_JSON,
    Scene,
    collected,
    forms,
    judged_queries,
    native,
    qrels,
    run,
)

SCENES = [
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
                "evaluate set.yaml a.run -m '0.6 * BestRR[level=hard] + 0.4 * nDCG@10' -m 'R(only_grade=2)@5' -m 'RBP(page=True)'",
                "explain qrels.txt a.run trec cupertino -m nDCG@10",
                only=TEXT_AND_JSON,
            ),
            "explain qrels.txt a.run trec cupertino -m nDCG@10 --html explain.html",
            "trec_eval qrels.txt a.run",
            "trec_eval -q -c -m map -m ndcg_cut.10 qrels.txt gaps.run",
            "trec_eval -m all_trec qrels.txt b.run",
            *forms("measures", "measures nDCG", "measures RBP ERR IPrec RankOfFirst", only=TEXT_AND_JSON),
            "measures --format csv",
            "evaluate set.yaml a.run -m 'RR[level=hrad] + P@1[kinds=title]'",
            "evaluate set.yaml a.run -m 'RR[level] + x * P' -m 'R(rel=2, only_grade=1)@5'",
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
                "diff a.run b.run --queries set.yaml --max-first-changed 10%",
                "snapshot set.yaml a.run -k 3",
                "snapshot set.yaml b.run --check",
                "compare qrels.txt a.run gaps.run",
                "compare qrels.txt a.run few.run",
                "compare qrels.txt a.run c.run -m AP --test t --alpha 0.1",
                "compare qrels.txt a.run c.run -m RR --test bootstrap --draws 500",
                "compare qrels.txt a.run a.run",
                "compare binary.qrels tiny-a.run tiny-b.run -m RR",
                only=TEXT_AND_JSON,
            ),
            "compare qrels.txt a.run c.run --format latex",
            "power set.yaml a.run b.run -m nDCG@10 --format latex",
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
            "compare set.yaml a.run b.run c.run gaps.run -m nDCG@10 -m RR --format latex",
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
            "testset show set.yaml q05 --format csv",
            "testset show code.yaml q2 q3",
            "testset show code.yaml --format csv",
            "testset stats set.yaml --by kind --format csv",
            "testset stats rated.yaml",
            "testset show rated.yaml q1",
            "testset stats rated.yaml --format csv",
            *forms("testset validate set.yaml --today 2026-11-21", "testset diff set.yaml set-2.yaml"),
            *forms("testset diff set.yaml set-2.yaml --run a.run -m nDCG@10", only=TEXT_AND_JSON),
            "testset diff set.yaml set-2.yaml --run a.run -m nDCG@10 --format csv",
            "testset add set.yaml --id q99 --text 'who may write' --stratum kind=title --relevant d01=1 --today 2026-11-21 --out added.yaml",
            "testset split set.yaml --share 0.4 --seed 1 --by level --out parts.yaml",
            *forms("testset overfit parts.yaml a.run -m Success@5", only=TEXT_AND_JSON),
            "testset overfit parts.yaml a.run -m Success@5 --format csv",
            "testset convert set.yaml set.qrels",
            "testset convert set.yaml body.json --to rank-eval",
            "testset convert qrels.txt plain.csv",
            *forms("testset stats code.yaml", "evaluate code.yaml chunks.run -m P@2 -m R@2", only=TEXT_AND_JSON),
            *forms("testset verify code.yaml --repo repo", only=TEXT_AND_JSON),
            "testset verify code.yaml --repo repo --format csv",
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
            "rated.yaml": (
                "cranfield_testset: 1\nname: rated\nversion: '2'\ndescription: by two raters\nqueries:\n"
                "  - id: q1\n    text: one\n    class: prose\n"
                "    ratings: {a: {ann: 2, bob: 1}, b: {ann: 0}}\n"
                "  - {id: q2, text: two, class: canonical, judgments: {a: 1}}\n"
            ),
            "repo/sums.py": "def add(a, b):\n    # the sum\n    return a + b\n\n\ndef times(a, b):\n    # the product\n    return a * b\n",
            "repo/more.py": "def three():\n    return 3\n",
            "chunks.run": "q1 Q0 sums.py:1-4 1 3 x\nq2 Q0 more.py:1-2 1 3 x\nq2 Q0 sums.py:5-8 2 2 x\nq3 Q0 sums.py:1-3 1 1 x\n",
        },
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
