"""What Spark raises, as an error of Cranfield with the line that says why."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from cranfield.base.errors import Problem, UsageError

LONGEST = 300
"""Letters of the line that is shown."""
_RAISED = re.compile(r"(?m)^[\w.]+(?:Error|Exception|Exit|Interrupt)(?::.*)?$")
_CALLED = re.compile(r"An error occurred while (?:calling|trying to connect)")
_PYTHON = "the executors need the same Python as this machine with numpy and pyarrow; PYSPARK_PYTHON names it"
HINTS = {
    "No module named": _PYTHON,
    "PYTHON_VERSION_MISMATCH": _PYTHON,
    "COLUMN_DATA_TYPE_MISMATCH": "files of one run at a URI need columns of one type; give files of each type as a run",
    "ClassNotFoundException": "check that the connector of this file system is among the jars of Spark (spark.jars.packages)",
}
"""What to do where the line has some words."""
OTHER_HINT = "see the log of Spark for details; if an executor was lost, it may need more memory"


@contextmanager
def job_errors() -> Iterator[None]:
    """Word what a job of Spark raises in the block.

    Raises:
        UsageError: the job failed.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (Py4JError, PySparkException) as error:
        line = cause_of(error)
        hint = next((hint for words, hint in HINTS.items() if words in line), OTHER_HINT)
        raise UsageError(Problem("the job on Spark failed", got=line, hint=hint)) from error


def cause_of(error: Exception) -> str:
    """The line of an error of Spark that says why: of a worker of Python, what it raised."""
    text = str(error)
    python = text.partition("\n\tat ")[0]
    raised = _RAISED.findall(python) if "Traceback" in python else []
    if raised:
        return _shortened(raised[-1])
    lines = [line.strip(" :\t") for line in text.splitlines()]
    return _shortened(next((line for line in lines if line and not _CALLED.match(line)), type(error).__name__))


def _shortened(line: str) -> str:
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"
