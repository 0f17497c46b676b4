"""Examples of every command, as its help shows them and as a test parses them: the words after `cranfield`."""

from __future__ import annotations

from collections.abc import Mapping

EXAMPLES: Mapping[str, tuple[str, ...]] = {
    "demo": ("demo", "demo --out trial"),
    "init": (
        "init",
        "init qrels.txt topics.tsv old.run new.run --yes",
        "init 'http://localhost:9200/docs/_search?q=test'",
    ),
    "report": ("report cranfield-out/results.json --html report.html", "report cranfield-out/results.json --full"),
    "view": ("view", "view cranfield-demo", "view --list"),
    "schema": ("schema", "schema workbench"),
    "run": (
        "run",
        "run --system old --system new --fail-on worse",
        "run qrels.txt old.run -m Hit@5 --floor Hit@5=0.70",
    ),
    "evaluate": (
        "evaluate qrels.txt bm25.run -m nDCG@10 -m R@100",
        "evaluate qrels.txt a.run b.run --sort nDCG@10 --format csv",
        "evaluate new --by-query",
        "evaluate qrels.txt a.run --floor nDCG@10=0.45",
    ),
    "compare": (
        "compare qrels.txt old.run new.run",
        "compare old new --margin 0.01 --fail-on worse",
        "compare qrels.txt a.run b.run c.run --primary AP --html report.html",
    ),
    "diff": (
        "diff old.run new.run",
        "diff old new --queries qrels.txt --html diff.html",
        "diff old new --max-first-changed 10%",
        "diff --system old --system new",
    ),
    "snapshot": (
        "snapshot",
        "snapshot --check",
        "snapshot set.yaml old.run -k 3 --out old.txt",
    ),
    "gate": ("gate", "gate --from cranfield-out --junit gate.xml", "gate --baseline-ref origin/main --step-summary"),
    "baseline accept": (
        "baseline accept --from cranfield-out --reason 'new tokenizer'",
        "baseline accept --dry-run",
    ),
    "baseline show": ("baseline show", "baseline show --baseline-ref origin/main"),
    "components": ("components hybrid", "components hybrid --config experiments/hybrid.yaml --out results"),
    "grid": ("grid", "grid experiments/grid.yaml --out results --fail-on worse"),
    "power": (
        "power qrels.txt old.run new.run --difference 0.02",
        "power old new --n-queries 200",
    ),
    "calibrate": ("calibrate scores.csv --threshold 0.7", "calibrate qrels.txt new.jsonl --correct Success@1"),
    "history": (
        "history",
        "history -m nDCG@10 --since 2026-11-01 --html history.html",
        "history --first-bad --drop 0.02",
    ),
    "ci comment": ("ci comment cranfield-gate/gate.md", "ci comment report.md --forge gitlab --marker nightly"),
    "system probe": (
        "system probe new 'wing flutter'",
        "system probe new 'wing flutter' -k 20 --param lang=en",
        "system probe new q57 --config experiments/reranker.yaml",
    ),
    "system list": ("system list", "system list --config experiments/reranker.yaml"),
    "system show": ("system show new",),
    "system presets": ("system presets", "system presets elasticsearch"),
    "testset convert": ("testset convert qrels.txt set.yaml --queries topics.tsv", "testset convert set.yaml set.csv"),
    "testset show": ("testset show set.yaml", "testset show set.yaml q57"),
    "testset validate": ("testset validate set.yaml --strict", "testset validate qrels.txt --run old.run"),
    "testset stats": ("testset stats set.yaml --by difficulty",),
    "testset verify": ("testset verify set.yaml --repo .", "testset verify set.yaml --repo . --at v2.0"),
    "testset rehash": ("testset rehash set.yaml --repo . --out set.yaml --force",),
    "testset add": ("testset add set.yaml --id q58 --text 'wing flutter' --relevant d57=2",),
    "testset diff": ("testset diff set-v1.yaml set-v2.yaml", "testset diff v1.yaml v2.yaml --run old.run -m nDCG@10"),
    "testset split": ("testset split set.yaml --share 0.3 --by difficulty",),
    "testset overfit": ("testset overfit set.yaml new.run -m nDCG@10",),
    "testset refresh": ("testset refresh set.yaml --log queries.jsonl --n 5 --plan plan.json",),
    "pool build": (
        "pool old.run new.run --depth 10",
        "pool old new --depth 20 --out pool.json",
        "pool old.run new.run --testset set.yaml --book stemming",
    ),
    "pool check": ("pool check old.run new.run --testset qrels.txt",),
    "pool export": ("pool export pool.json --testset set.yaml --out pool.qrels",),
    "pool estimate": ("pool estimate pool.json old.run new.run --testset set.yaml",),
    "pool accept": ("pool accept set.yaml pool.json --book first --out set-v2.yaml",),
    "pool alternatives": ("pool alternatives set.yaml old.run new.run",),
    "holes": (
        "holes old.run new.run --testset qrels.txt",
        "holes old new --top 50 --out holes.json",
    ),
    "book create": ("book create first --pool pool.json --raters 2",),
    "book list": ("book list", "book list --format json"),
    "book show": ("book show first",),
    "book log": ("book log first",),
    "book preference": ("book preference first",),
    "book add-item": ("book add-item first q57 d12",),
    "book guideline": ("book guideline first", "book guideline first guideline.md"),
    "book calibrate": ("book calibrate first known.csv",),
    "book reopen": ("book reopen first --query q57 --dry-run",),
    "book text": ("book text d12", "book text d12 --workbench workbench.yaml"),
    "book rate": ("book rate first --model gpt-5 --dry-run",),
    "book models": ("book models first old.run new.run",),
    "book close": ("book close first",),
    "book open": ("book open first",),
    "book agreement": ("book agreement first --html agreement.html",),
    "book sensitivity": ("book sensitivity first old.run new.run",),
    "book freeze": ("book freeze first --out set.yaml", "book freeze first --out set-v2.yaml --onto set.yaml"),
    "book import": ("book import first ratings.csv",),
    "book export": ("book export first first.book.jsonl", "book export first first.qrels"),
    "db upgrade": ("db upgrade", "db upgrade --db postgresql://host/cranfield"),
    "db revision": ("db revision",),
    "db backup": ("db backup books-backup.db",),
    "agreement": ("agreement ratings.csv", "agreement ann=ann.qrels ben=ben.qrels --html agreement.html"),
    "answers score": (
        "answers score labels.yaml answers.jsonl",
        "answers score labels.yaml answers.jsonl --out rows.jsonl",
    ),
    "judge": ("judge new.run --testset set.yaml", "judge old.run new.run --queries topics.tsv", "judge first"),
    "golden plan": ("golden plan plan.yaml --repo .",),
    "golden run": ("golden run plan.yaml --repo . --dry-run", "golden run --resume golden-runs/20261124"),
    "golden status": ("golden status golden-runs/20261124",),
    "golden transcripts": ("golden transcripts golden-runs/20261124 --html transcripts.html",),
    "golden gate": ("golden gate set.json --repo .",),
    "golden enter": ("golden enter set.json --repo .",),
    "golden check": ("golden check set.json --model gpt-5",),
    "golden assemble": ("golden assemble golden-runs/20261124 --run old.run",),
    "golden batch": ("golden batch golden batch.json --run old.run",),
    "golden models": ("golden models golden-runs/one golden-runs/two",),
    "golden review": ("golden review golden-runs/20261124 --book review",),
    "golden reviewed": ("golden reviewed golden-runs/20261124",),
    "benefit check": ("benefit check plan.yaml",),
    "benefit run": ("benefit run plan.yaml", "benefit run --resume benefit-runs/20261124"),
    "benefit status": ("benefit status benefit-runs/20261124",),
    "benefit score": ("benefit score benefit-runs/20261124",),
    "benefit result": ("benefit result benefit-runs/20261124",),
    "benefit report": ("benefit report benefit-runs/20261124 --html report.html",),
    "benefit transcripts": ("benefit transcripts benefit-runs/20261124 --html transcripts.html",),
    "benefit gate": ("benefit gate benefit-results/benefit_v1.0.json --max-age-days 90",),
    "benefit history": ("benefit history benefit-results",),
    "explain": ("explain qrels.txt bm25.run trec trec9", "explain old trec searchtweak --ties"),
    "convert": ("convert cranfield-out/runs/old.jsonl old.run", "convert old old.run"),
    "measures": ("measures", "measures nDCG RBP", "measures --format json"),
    "serve": ("serve", "serve cranfield.yaml --workbench workbench.yaml --port 8080"),
    "watch": ("watch --workbench workbench.yaml", "watch --workbench workbench.yaml --once nightly"),
    "mcp": ("mcp cranfield.yaml", "mcp cranfield.yaml --ask-none --http --port 9000"),
    "intake add": ("intake queries.log --source shop", "intake add access.log.gz --log-format combined"),
    "intake list": ("intake list",),
    "intake export": ("intake export queries.jsonl --since 2026-11-01 --min-count 5",),
    "intake purge": ("intake purge --source shop",),
    "metrics": ("metrics cranfield-out/results.json", "metrics cranfield-gate/gate.json --textfile cranfield.prom"),
    "alerts": ("alerts --out alerts.yaml", "alerts experiments/gate.yaml --stale-after 36h"),
    "dashboard": ("dashboard --out dashboard.json",),
    "people add": ("people add ann --role admin",),
    "people list": ("people list",),
    "people role": ("people role ann lead",),
    "people password": ("people password ann",),
    "people token": ("people token ci --scope evaluate --days 90",),
    "people deactivate": ("people deactivate ann",),
    "people activate": ("people activate ann",),
    "trec_eval": ("trec_eval qrels.txt bm25.run", "trec_eval -q -m ndcg_cut.10 qrels.txt bm25.run"),
}
"""Command, or group and its command, to its examples."""
SHOWN_OF_GROUP = 4
"""Examples in the help of a group: one of each of its first commands."""


def examples_of(path: tuple[str, ...]) -> tuple[str, ...]:
    """The examples of a command; of a group, the first of each of its commands; none of what the table has not.

    Args:
        path: `("compare",)`, or `("pool", "build")`.
    """
    if found := EXAMPLES.get(" ".join(path)):
        return found
    inner = [lines[0] for name, lines in EXAMPLES.items() if tuple(name.split()[:-1]) == path and path]
    return tuple(inner[:SHOWN_OF_GROUP])
