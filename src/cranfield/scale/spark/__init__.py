"""The kernel on Apache Spark: a table of a cluster in, results as Parquet out, whatever becomes of an executor.

`evaluate` takes a DataFrame, `evaluate_files` paths and a master. Rows and judgments travel in one shuffle, so that all
rows of a query and its judgments are in one partition, and `partition` gives each to the kernel.
"""

from cranfield.scale.spark.job import evaluate, evaluate_files
from cranfield.scale.spark.session import spark_session
from cranfield.scale.spark.table import check_order, score_frame

__all__ = ["check_order", "evaluate", "evaluate_files", "score_frame", "spark_session"]
