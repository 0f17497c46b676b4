"""Tests that need Spark and Java: scripts/test-spark.sh runs them."""

import importlib.util

collect_ignore_glob = [] if importlib.util.find_spec("pyspark") else ["test_*.py"]
