"""Means over queries that come in clusters: the queries of a user, of a session, or of a random group.

Queries of one cluster are alike, so the cluster is what varies, and what resampling and sign flips move. A cluster comes in
as the sum of its values and the number of its queries; clusters may be of any size.
"""

from __future__ import annotations

import math

import numpy as np

from cranfield.errors import UsageError
from cranfield.stats.describe import TOLERANCE, Description, FloatN, Values, as_vector, describe

FEW_CLUSTERS = 10
"""Under so many, the standard error is too uncertain to rely on, whatever the number of queries."""


def describe_clusters(sums: Values, sizes: Values) -> Description:
    """The mean over all queries, with the spread between clusters.

        mean = sum(D_g) / N,  N = sum(n_g);  std = sqrt(G) * SE,  SE^2 = G / (G - 1) * sum((D_g - mean n_g)^2) / N^2

    So std / sqrt(G) is the cluster-robust standard error of the mean, as it is for G values: what takes a description of
    values (`t_interval`, `t_test`) takes this one.

    Args:
        sums: of the values of each of G clusters.
        sizes: queries of each, above 0.

    Returns:
        A description whose n is G, and which has no median.

    Conventions:
        no cluster: all None · one: no std · all clusters have one mean: std 0.

    Source:
        Cochran 1977, Sampling Techniques, 6.3 (ratio estimator); Cameron & Miller 2015, J. Human Resources 50(2). Equal to
        `statsmodels` OLS on a constant with `cov_type="cluster"`, t distribution of G - 1 degrees of freedom.

    Raises:
        UsageError: not one size for each sum, or a size that is not above 0.

    Example:
        >>> describe_clusters([2.0, 1.0], [2.0, 2.0])  # mean 3 / 4; residuals +-.5: SE^2 = 2 * .5 / 16
        Description(mean=0.75, median=None, std=0.3535533905932738, n=2)
    """
    totals = as_vector(sums, "sums")
    counts = check_sizes(sizes, len(totals))
    n_clusters = len(totals)
    if not n_clusters:
        return Description(None, None, None, 0)
    n = math.fsum(counts.tolist())
    mean = math.fsum(totals.tolist()) / n
    if n_clusters == 1:
        return Description(mean, None, None, 1)
    means = totals / counts
    if float(np.ptp(means)) <= TOLERANCE * float(np.abs(means).max()):
        return Description(mean, None, 0.0, n_clusters)
    squares = math.fsum((influences(totals, counts) ** 2).tolist())
    return Description(mean, None, n_clusters * math.sqrt(squares / (n_clusters - 1)) / n, n_clusters)


def describe_mean(sums: FloatN, sizes: FloatN | None) -> float | None:
    """The mean over all queries; without sizes each sum is one of a query."""
    return describe(sums).mean if sizes is None else describe_clusters(sums, sizes).mean


def influences(sums: FloatN, sizes: FloatN) -> FloatN:
    """What each cluster adds to the error of the mean: its sum less what the mean gives for its size; they add up to 0."""
    residuals: FloatN = sums - math.fsum(sums.tolist()) / math.fsum(sizes.tolist()) * sizes
    return residuals


def check_sizes(sizes: Values, n: int) -> FloatN:
    """The sizes of n sums of queries, as a vector.

    Raises:
        UsageError: not one for each, or one that is not above 0.
    """
    counts = as_vector(sizes, "sizes")
    if len(counts) != n:
        raise UsageError(f"{n} sums of differences and {len(counts)} sizes", expected="one size for each")
    if n and counts.min() <= 0:
        raise UsageError(f"a size is {counts.min():g}", expected="a number above 0")
    return counts
