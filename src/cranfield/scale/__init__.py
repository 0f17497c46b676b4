"""Runs larger than memory: one kernel over whole queries, for this machine and for a cluster.

Rows of runs and judgments come in as Arrow columns; a row a query and system goes out. Axes: Q queries, J judgments,
S systems.
"""
