"""How often slices of queries are found where there are none, and where there is one. `slices.py [PAIRS [SEARCHES]]` prints two tables.

Null pairs have the queries, results and judgments of real test sets, and differences in which no kind of query matters: those of two
real systems with the sides of each query swapped at random; or dealt to other queries at random, which keeps their mean and their
skew. A false discovery is a search that finds anything.

For the power, n queries of the Cranfield collection (with repeats above 225) have normal differences with a standard deviation of .25,
and a random tenth of them lies lower by an effect. The planted slice is one own column beside all that a search tries
anyway. `docs/explanation/slices.md` has the tables.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from holes import Lists, bm25s_lists, fts5, read_judgments, read_lines

from cranfield import compare, evaluate
from cranfield.evaluation.query_attributes import conditions_of
from cranfield.evaluation.slices import MIN_QUERIES, MIN_SHARE, SHARES, slices_of, slices_tried
from cranfield.evaluation.values import Comparison
from cranfield.model import Answer, Hit, Outcome, Query, Run, TestSet
from cranfield.stats.slices import slice_tests

SEED = 43
MEASURE = "nDCG@10"
SPREAD, SHARE_PLANTED = 0.25, 0.1
N_DRAWS = 1_000
"""Permutations of the search of a null pair, to save time: the error does not depend on their number."""
SIZES, EFFECTS = (50, 100, 200, 500), (0.1, 0.2)
Dealt = Callable[[np.ndarray, np.random.Generator], np.ndarray]


def swapped(differences: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Differences with the sides of each query swapped at random."""
    return differences * rng.choice((-1.0, 1.0), len(differences))


def dealt(differences: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Differences dealt to other queries at random."""
    return rng.permutation(differences)


def with_differences(comparison: Comparison, differences: np.ndarray, seed: int) -> Comparison:
    """A comparison with other differences of its queries, and another seed."""
    compared = comparison.measures[comparison.primary]
    changed = replace(compared, differences=dict(zip(compared.differences, differences.tolist(), strict=True)))
    return replace(
        comparison,
        measures={**comparison.measures, comparison.primary: changed},
        options=replace(comparison.options, seed=seed),
    )


def false_discoveries(comparison: Comparison, deal: Dealt, n_pairs: int) -> tuple[int, int, float]:
    """Slices tried, those of one condition, and the share of null pairs in which any is found, as `slices_of` does it."""
    measured = comparison.measures[comparison.primary].differences
    names = sorted(measured)
    differences = np.array([measured[name] for name in names])
    min_size = max(MIN_QUERIES, math.ceil(MIN_SHARE * len(names)))
    tried, _ = slices_tried(conditions_of(comparison, names, min_size, {}, None), min_size)
    members = np.array([each.members for each in tried])
    families = [len(each.conditions) - 1 for each in tried]
    rng, n_found = np.random.default_rng(SEED), 0
    for seed in range(n_pairs):
        tests = slice_tests(
            deal(differences, rng), members, families=families, shares=SHARES, seed=seed, n_draws=N_DRAWS
        )
        n_found += bool((tests.p_adjusted <= comparison.options.alpha).any())
    return len(tried), families.count(0), n_found / n_pairs


def searches(comparison: Comparison, effect: float, n_searches: int) -> Iterator[tuple[bool, bool, float, float]]:
    """Of each search for a planted slice: whether it is found, whether something else is the strongest, its two estimates."""
    rng = np.random.default_rng(SEED)
    names = list(comparison.measures[comparison.primary].differences)
    for seed in range(n_searches):
        differences = rng.normal(0, SPREAD, len(names))
        planted = rng.permutation(len(names)) < round(SHARE_PLANTED * len(names))
        differences[planted] -= effect
        column = {name: bool(one) for name, one in zip(names, planted.tolist(), strict=True)}
        search = slices_of(with_differences(comparison, differences, seed), columns={"planted": column})
        found = () if search is None else search.found
        wanted = [each for each in found if "with planted true" in (each.text, *each.also)]
        first = next(iter(wanted), None)
        is_other = bool(found) and "planted" not in found[0].attributes
        yield bool(wanted), is_other, *((first.difference, first.shrunken) if first else (np.nan, np.nan))


def run_of(name: str, lists: Lists, documents: dict[str, dict[str, str]]) -> Run:
    """Results with their titles and texts."""
    return Run(
        name,
        {
            query: Answer(
                Outcome.ANSWERED,
                tuple(Hit(doc, title=documents[doc]["title"], fields={"text": documents[doc]["text"]}) for doc in docs),
            )
            for query, docs in lists.items()
        },
    )


def pair(queries: dict[str, str], lists: tuple[Lists, Lists]) -> Comparison:
    """Two systems on queries of the Cranfield collection: id to the id in the collection."""
    texts = {one["_id"]: one["text"] for one in read_lines("queries.jsonl")}
    documents = {one["_id"]: one for one in read_lines("corpus.jsonl")}
    judged = read_judgments()
    testset = TestSet(
        "cranfield",
        tuple(Query(name, texts[source]) for name, source in queries.items()),
        {name: judged[source] for name, source in queries.items()},
    )
    runs = (
        run_of(name, {query: of_side[source] for query, source in queries.items()}, documents)
        for name, of_side in zip("AB", lists, strict=True)
    )
    return compare(*(evaluate(testset, run, measures=[MEASURE]) for run in runs))


def print_errors(systems: dict[str, Lists], every: dict[str, str], n_pairs: int) -> None:
    """The table of false discoveries."""
    print(f"{'systems':<28} {'null':<8} {'queries':>7} {'slices':>6} {'of one':>6} {'false discoveries':>17}")
    for names in (("FTS5", "FTS5 with stemming"), ("FTS5 with stemming", "bm25s")):
        comparison = pair(every, (systems[names[0]], systems[names[1]]))
        for name, deal in {"swapped": swapped, "dealt": dealt}.items():
            n_tried, n_single, share = false_discoveries(comparison, deal, n_pairs)
            print(
                f"{', '.join(names):<28} {name:<8} {len(every):>7} {n_tried:>6} {n_single:>6} {share:>17.3f}",
                flush=True,
            )


def print_power(systems: dict[str, Lists], every: dict[str, str], n_searches: int) -> None:
    """The table of planted slices."""
    print(
        f"\n{'queries':>7} {'of the slice':>12} {'effect':>6} {'found':>6} {'other first':>11} {'estimate':>9} {'shrunken':>9}"
    )
    rng = np.random.default_rng(SEED)
    for n in SIZES:
        drawn = rng.permutation(list(every))[:n] if n <= len(every) else rng.choice(list(every), n)
        comparison = pair(
            {f"{place}": str(one) for place, one in enumerate(drawn)}, (systems["FTS5"], systems["bm25s"])
        )
        for effect in EFFECTS:
            if round(SHARE_PLANTED * n) < MIN_QUERIES:
                print(f"{n:>7} {round(SHARE_PLANTED * n):>12} {-effect:>6.2f}   too few queries: not tried")
                continue
            rows = np.array(list(searches(comparison, effect, n_searches)), dtype=float)
            found, other = rows[:, 0].mean(), rows[:, 1].mean()
            means = np.nanmean(rows[:, 2:], axis=0) if found else (np.nan, np.nan)
            print(
                f"{n:>7} {round(SHARE_PLANTED * n):>12} {-effect:>6.2f} {found:>6.2f} {other:>11.3f} {means[0]:>9.3f} {means[1]:>9.3f}",
                flush=True,
            )


def main(n_pairs: int, n_searches: int) -> None:
    """Print the tables; none of no pairs, or of no searches."""
    systems = {"FTS5": fts5("unicode61", 1), "FTS5 with stemming": fts5("porter", 1), "bm25s": bm25s_lists()}
    judged = read_judgments()
    every = {name: name for name in systems["FTS5"] if name in judged}
    if n_pairs:
        print_errors(systems, every, n_pairs)
    if n_searches:
        print_power(systems, every, n_searches)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000, int(sys.argv[2]) if len(sys.argv) > 2 else 100)
