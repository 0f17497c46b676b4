"""One evaluation, taken apart: `spans.py QRELS RUN TINY_QRELS TINY_RUN` prints seconds per part as JSON. See parts.py.

The parts are functions on the way of `cranfield evaluate --format json`, each wrapped with a clock; time spent in a
wrapped function that another one called counts for the inner one alone. What is no longer there under its name is not
an error: its time falls to the part that holds it.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import json
import sys
import time
from collections import defaultdict
from pathlib import Path

MEASURES = ["nDCG@10", "AP", "RR@10", "P@10", "R@100", "R@1000", "Success@5"]
BLOCK_BYTES = 8 * 1024 * 1024
PARTS = {
    "read the judgments": [("cranfield.app.loading", "load")],
    "index the judged documents": [
        ("cranfield.ranking.file", "PreparedJudgments"),
    ],
    "scan the run (read, digest, rank)": [
        ("cranfield.app.evaluate", "rank_file"),
        ("cranfield.ranking.file", "scan_file"),
    ],
    "join": [("cranfield.ranking.join", "join_ranks")],
    "measures": [("cranfield.evaluation.evaluate", "compute")],
    "summaries and intervals": [("cranfield.evaluation.evaluate", "_summary")],
    "rest of evaluate": [("cranfield.app.evaluate", "evaluate")],
    "document": [("cranfield.reporting", "evaluation_document")],
    "JSON": [("cranfield.reporting", "render")],
}


class Clock:
    """Own time of each part: that of the parts inside it is taken off."""

    def __init__(self):
        self.own = defaultdict(float)
        self.inner = [0.0]
        self.engine = "python"

    def wrap(self, part, function):
        """Count the function's time for the part."""

        @functools.wraps(function)
        def timed(*arguments, **keywords):
            self.inner.append(0.0)
            began = time.perf_counter()
            try:
                result = function(*arguments, **keywords)
            finally:
                took = time.perf_counter() - began
                self.own[part] += took - self.inner.pop()
                self.inner[-1] += took
            self.engine = getattr(result, "engine", self.engine)
            return result

        return timed

    def install(self):
        """Put the clock round every function."""
        for part, places in PARTS.items():
            for module_name, name in places:
                module = importlib.import_module(module_name)
                setattr(module, name, self.wrap(part, getattr(module, name)))


def evaluate(qrels, run):
    """What the command does between its arguments and its output."""
    recipe = importlib.import_module("cranfield.app.evaluate")
    loading = importlib.import_module("cranfield.app.loading")
    reporting = importlib.import_module("cranfield.reporting")
    evaluation = recipe.evaluate(loading.load(Path(qrels)), Path(run), measures=MEASURES)
    return reporting.render(reporting.evaluation_document([evaluation], by_query=False), "json")


def digest_seconds(path):
    """The run's digest and nothing else, on one thread."""
    began = time.perf_counter()
    whole = hashlib.sha256()
    with Path(path).open("rb") as stream:
        while block := stream.read(BLOCK_BYTES):
            whole.update(hashlib.sha256(block).digest())
    return time.perf_counter() - began


def main(qrels, run, tiny_qrels, tiny_run):
    began = time.perf_counter()
    importlib.import_module("cranfield.cli.main")
    evaluate(tiny_qrels, tiny_run)  # everything imported on use is here now
    imports = time.perf_counter() - began
    clock = Clock()
    clock.install()
    began = time.perf_counter()
    text = evaluate(qrels, run)
    sys.stdout.flush()
    whole = time.perf_counter() - began
    parts = {part: clock.own[part] for part in PARTS}
    found = {"engine": clock.engine, "imports": imports, "parts": parts, "whole": whole}
    print(json.dumps(found | {"json_bytes": len(text.encode()), "digest": digest_seconds(run)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
