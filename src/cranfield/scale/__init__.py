"""Runs larger than memory: one kernel over whole queries, for this machine and for a cluster.

Rows of runs and judgments come in as Arrow columns; a row a query and system goes out. Axes: Q queries, J judgments,
S systems.
"""

from cranfield.plugins import Product

PRODUCT = Product(
    name="scale",
    cards={"ScaleSummary": "cranfield.scale.report:scale_document"},
    provides={"large_runs": "cranfield.scale.commands", "large_test_sets": "cranfield.scale.validation"},
)
