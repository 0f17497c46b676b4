"""VALUES N_DRAWS TEST… : seconds that SciPy and ranx take on the same two rows of values, a line of JSON a test."""

from __future__ import annotations

import json
import sys
import time

import numpy as np
import scipy.stats

BATCH = 100
"""Resamples that SciPy makes at once: all at once would take gigabytes."""


def scipy_permutation(a, b, n):
    found = scipy.stats.permutation_test(
        (b - a,),
        lambda x, axis: np.mean(x, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=n,
        batch=BATCH,
        rng=np.random.default_rng(0),
    )
    return float(found.pvalue)


def scipy_bootstrap(a, b, n):
    found = scipy.stats.bootstrap(
        (b - a,), np.mean, vectorized=True, n_resamples=n, batch=BATCH, method="BCa", rng=np.random.default_rng(0)
    )
    low, high = found.confidence_interval
    return [float(low), float(high)]


def ranx_permutation(a, b, n):
    from ranx.statistical_tests import fisher_randomization_test

    return float(fisher_randomization_test(a, b, n_permutations=n)[0])


TESTS = {
    "scipy permutation": scipy_permutation,
    "scipy bootstrap": scipy_bootstrap,
    "ranx permutation": ranx_permutation,
}


def main(path, n_draws, *names):
    a, b = np.load(path)
    for name in names:
        TESTS[name](a[:50], b[:50], 10)  # imports, and what has to be compiled
        wall, cpu = time.perf_counter(), time.process_time()
        answer = TESTS[name](a, b, int(n_draws))
        seconds = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
        print(json.dumps({"name": name, **seconds, "answer": answer}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
