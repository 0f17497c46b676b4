"""What is done with the systems of a config."""

from __future__ import annotations

import json

from scenes.scene import HANDBOOK_CONFIG, TEXT_AND_JSON, Scene, forms, point

RECIPES = """\
RECIPES = (
    "apple pie with cinnamon;apple cake;pear tart;lemon tart;lemon cake;pumpkin soup;onion soup;potato soup;potato salad;"
    "tomato salad with basil;pasta with tomato;pasta with mushrooms;mushroom risotto;pumpkin risotto;lentil curry;chicken curry;"
    "chicken salad;cherry cake;cherry crumble;apple crumble;spinach lasagne;spinach soup;carrot cake"
).split(";")


def words(query, k, components="title,end", **_):
    return best(query.split(), lambda recipe: recipe.split(), k, components)


def letters(query, k, components="title,end", **_):
    return best(threes(query), threes, k, components)


def threes(text):
    return [text[at : at + 3] for at in range(len(text) - 2)]


def best(asked, parts, k, components):
    found = {}
    for recipe in RECIPES:
        there = set(parts(recipe if "title" in components else recipe.partition(" ")[0]))
        found[recipe.replace(" ", "-")] = len(set(asked) & there) / len(there | set(asked))
        if "end" in components and asked and asked[-1] in there:
            found[recipe.replace(" ", "-")] += 0.05
    return sorted(((doc, score) for doc, score in found.items() if score), key=lambda hit: (-hit[1], hit[0]))[:k]
"""
ASKED = {
    "aple pie": "apple-pie-with-cinnamon",
    "cake with carrots": "carrot-cake",
    "lemmon tart": "lemon-tart",
    "pumkin soup": "pumpkin-soup",
    "soup of onions": "onion-soup",
    "potatos in a salad": "potato-salad",
    "tomatoes and basil": "tomato-salad-with-basil",
    "mushroom pasta": "pasta-with-mushrooms",
    "risotto with pumpkins": "pumpkin-risotto",
    "lentils curried": "lentil-curry",
    "chiken curry": "chicken-curry",
    "cherrys in a crumble": "cherry-crumble",
    "spinnach lasagna": "spinach-lasagne",
    "cake of cherries": "cherry-cake",
    "soup with potato": "potato-soup",
    "pears tart": "pear-tart",
}
RECIPE_SET = json.dumps(
    {
        "cranfield_testset": 1,
        "name": "recipes",
        "queries": [
            {"id": f"q{n}", "text": text, "strata": {"kind": "sweet" if n % 2 else "other"}, "judgments": {doc: 1}}
            for n, (text, doc) in enumerate(ASKED.items(), 1)
        ],
    },
    indent=1,
)
KITCHEN = """\
testset: recipes.yaml
latency: {skip_first: 16, smallest_ms: 100000}
measures: [RR, P@1]
baseline: words
candidate: hybrid
systems:
  words: {python: "search:words", components: [title, end]}
  letters: {python: "search:letters"}
  hybrid: {fusion: {of: [words, letters]}}
  summed: {fusion: {of: [words, letters], method: sum, weights: {letters: 0.5}}}
grid:
  system: hybrid
  over:
    fusion.rrf_k: [1, 60]
    fusion.weights.letters: [0.25, 1, 4]
  held_out: 0.5
gate:
  system: hybrid
  rules:
    - floor: {measure: RR, at_least: 0.4}
    - floor: {measure: RR, by: kind, above: 0.97}
    - floor: {measure: P@1, where: {kind: sweet}, every_query: 1}
    - drop: {measure: RR, at_most: 5 %}
    - drop: {measure: RR, at_most: 0.02, significant: true}
    - no_worse: {measure: RR}
    - no_worse: {measure: RR, by: kind}
    - ratchet: {measure: RR, queries: [q1, q7]}
    - judged: {k: 1, at_least: 80 %}
    - failures: {at_most: 0}
    - latency: {p95_ms: 60000}
"""
SEVERAL = """\
testsets:
  all: {path: recipes.yaml}
  few: {path: few.yaml, k: 3, measures: [P@1, RR]}
measures: [RR, P@1]
systems:
  words: {python: "search:words"}
  letters: {python: "search:letters"}
latency: {skip_first: 16, smallest_ms: 100000}
gate:
  system: letters
  rules:
    - floor: {measure: P@1, at_least: 0.5}
    - drop: {measure: P@1, at_most: 5 %}
"""
FEW = (
    "cranfield_testset: 1\nname: few\nqueries:\n"
    "  - {id: f1, text: apple cake, judgments: {apple-cake: 1}}\n"
    "  - {id: f2, text: lemmon cake, judgments: {lemon-cake: 1}}\n"
    "  - {id: f3, text: nothing like it, judgments: {pear-tart: 1}}\n"
)
FIELDS = """\
import json, sys
words = {"shoes": ["a", "b"], "red boots": ["f"], "return an order": ["p"], "hats": ["h"]}
query = sys.argv[1]
print(json.dumps({
    "results": words[query], "mode": "semantic" if " " in query else "lexical", "confidence": 0.9 if " " in query else 0.3,
    "task_type": "help" if "order" in query or query == "hats" else "product",
}))
"""
FIELDS_CONFIG = """\
testset: shop.yaml
measures: [RR@10]
systems:
  shop:
    command: ["{python}", -I, -S, fields.py, "{query}"]
    extract: {json: results, fields: {mode: mode, task_type: task_type, confidence: confidence}}
  quiet:
    command: ["{python}", -I, -S, fields.py, "{query}"]
    extract: {json: results}
gate:
  system: shop
  rules:
    - every_answer: mode = semantic
    - accuracy: {field: task_type, at_least: 0.7, each_at_least: 0.5}
    - ece: {field: confidence, correct: Success@1, at_most: 0.5}
    - correct_at: {field: confidence, correct: Success@1, threshold: 0.8, at_least: 0.5}
"""
SHOP_SET = (
    "cranfield_testset: 1\nname: shop\nqueries:\n"
    "  - {id: q1, text: red boots, strata: {task_type: product}, judgments: {f: 1}}\n"
    "  - {id: q2, text: shoes, strata: {task_type: product}, judgments: {a: 1}}\n"
    "  - {id: q3, text: return an order, strata: {task_type: help}, judgments: {p: 1}}\n"
    "  - {id: q4, text: hats, strata: {task_type: product}, judgments: {h: 1}}\n"
)
PROBED = """\
testset: shop.yaml
k: 3
systems:
  echo:
    command: [sh, -c, 'echo "$TOKEN" >&2; echo "doc:$1 of $2"', sh, "{query}", "{params.shelf}"]
    params: {shelf: top}
    extract: {regex: 'doc:\\S+'}
    env: {TOKEN: sesame-open}
  broken: {command: [sh, -c, 'exit 3', sh, "{query}"], extract: {regex: x}}
  gone: {command: [./not-there, "{query}"], extract: {regex: x}}
  elastic: {preset: elasticsearch, with: {url: 'http://127.0.0.1:9200', index: docs}}
"""

SCENES = [
    Scene(
        "kitchen",
        [
            "run kitchen.yaml --system words --system letters --out two --fail-on worse",
            *forms("run kitchen.yaml --out kept --quiet"),
            *forms("run kitchen.yaml --system words --system letters --system summed --out many", only=TEXT_AND_JSON),
            *forms("grid kitchen.yaml"),
            *forms("components hybrid --config kitchen.yaml"),
            *forms("components words --config kitchen.yaml", only=TEXT_AND_JSON),
            "baseline accept kitchen.yaml --from kept --reason first",
            "baseline accept kitchen.yaml --run few.run --dry-run",
            *forms("gate kitchen.yaml --from kept"),
            *forms("gate kitchen.yaml --run few.run", only=TEXT_AND_JSON),
            "gate kitchen.yaml --run few.run --full --junit gate.xml",
            "explain recipes.yaml kept/runs/hybrid.jsonl trec quepid -m RR -m P@5 --ties --unjudged",
        ],
        {
            "search.py": RECIPES,
            "recipes.yaml": RECIPE_SET,
            "kitchen.yaml": KITCHEN,
            "few.run": "".join(f"q{n} Q0 {doc} 1 1 few\n" for n, doc in enumerate(ASKED.values(), 1) if n != 7),
        },
        timed=True,
    ),
    Scene(
        "several-testsets",
        [
            *forms("run several.yaml --out kept"),
            "baseline accept several.yaml --from kept --reason first",
            *forms("baseline show several.yaml", only=TEXT_AND_JSON),
            *forms("gate several.yaml"),
            "metrics kept/few/results.json --testset few",
            "run recipes.yaml few.run -m Hit@1 --floor Hit@1=0.70 --floor Hit@1=0.95:kind --floor Hit@1=0.9:kind=sweet",
            "evaluate recipes.yaml few.run -m Hit@1 --floor Hit@1=0.99",
            "run recipes.yaml 'echo {query}' -m RR --full",
        ],
        {
            "search.py": RECIPES,
            "recipes.yaml": RECIPE_SET,
            "few.yaml": FEW,
            "several.yaml": SEVERAL,
            "few.run": "".join(f"q{n} Q0 {doc} 1 1 few\n" for n, doc in enumerate(ASKED.values(), 1) if n != 7),
        },
        timed=True,
    ),
    Scene(
        "answer-fields",
        [
            *forms("run cranfield.yaml --system shop", only=TEXT_AND_JSON),
            *forms("gate cranfield.yaml", only=TEXT_AND_JSON),
            "evaluate shop.yaml cranfield-out/runs/shop.jsonl --full",
            *forms("calibrate shop.yaml cranfield-out/runs/shop.jsonl --correct Success@1", only=TEXT_AND_JSON),
        ],
        {"fields.py": FIELDS, "cranfield.yaml": FIELDS_CONFIG, "shop.yaml": SHOP_SET},
        timed=True,
    ),
    Scene(
        "systems",
        [
            *forms("system list", "system presets", "system presets elasticsearch"),
            "system show elastic",
            "system show echo",
            *forms("system probe echo hats"),
            *forms("system probe echo q1 --raw --param shelf=low", only=TEXT_AND_JSON),
            "system probe broken hats",
            "system probe gone hats",
            "system probe ecko hats",
            "run --system gone",
            "run --system broken --keep-going",
        ],
        {"cranfield.yaml": PROBED, "shop.yaml": SHOP_SET},
        timed=True,
    ),
    Scene(
        "run",
        [
            *forms("run cranfield.yaml"),
            "run cranfield.yaml --out kept",
            *forms(
                "evaluate handbook/queries.yaml kept/runs/plain.jsonl",
                "compare handbook/queries.yaml kept/runs/plain.jsonl kept/runs/titles.jsonl -m nDCG@10 --latency skip_first=12",
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
]
