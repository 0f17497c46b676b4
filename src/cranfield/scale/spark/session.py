"""A session of Spark: what its master, its settings and its programs are, and the package sent to its workers."""

from __future__ import annotations

import logging
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from cranfield.base.concurrency.interrupts import interrupts_prevail
from cranfield.base.errors import MissingExtraError, Problem, UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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


JAVA = 17
"""The oldest Java that Spark 4 runs on."""
LOCAL = re.compile(r"local(?:\[(\d+|\*)(?:\s*,\s*(\d+))?\])?")
TRIES = 4
"""Tries of a task, the default of a cluster; without them a local master gives up at the first lost worker."""
LOOPBACK = "127.0.0.1"
PACKAGE = Path(str(files("cranfield")))
SENT = {".py", ".so", ".json", ".yaml"}
"""Kinds of files of the package that workers are sent."""
SETTINGS = {
    "spark.app.name": "cranfield",
    "spark.log.level": "ERROR",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.adaptive.enabled": "false",  # how many partitions there are is known
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
}


@contextmanager
def quiet() -> Iterator[None]:
    """Without pyspark's warnings of its use of pandas, which is not used here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        warnings.simplefilter("ignore", DeprecationWarning)
        yield


@contextmanager
def spark_session(master: str | None = None, conf: Path | None = None) -> Iterator[SparkSession]:
    """A session that ends with the block; one that is running already is used as it is, and goes on.

    Args:
        master: `local[2]`, `spark://host:7077`, `yarn`, `k8s://…`; None: that of spark-submit or of `conf`, or this machine.
        conf: a file of settings, as spark-defaults.conf: the place for secrets, which never come among the arguments
            of a process.

    Raises:
        MissingExtraError: pyspark is not installed.
        UsageError: Java is missing or too old, the cluster does not answer, or there is a session with other settings.
    """
    try:
        with quiet():
            from pyspark.sql import SparkSession
    except ImportError:
        raise MissingExtraError.for_extra("evaluating on Spark", "spark") from None
    running = SparkSession.getActiveSession()
    if running is not None:
        _check_running(running, master, conf)
        yield running
        return
    is_submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if is_submitted and conf is not None:
        raise UsageError("spark-submit has started Spark with its own settings", hint="give the file to spark-submit")
    if not is_submitted:
        _check_java()
    with quiet():
        spark = _started(session_settings(master, is_submitted=is_submitted, has_conf=conf is not None), conf)
    root = logging.getLogger()
    root.addFilter(_is_no_interrupt)
    with interrupts_prevail():
        try:
            yield spark
        finally:
            spark.stop()
            root.removeFilter(_is_no_interrupt)


def _is_no_interrupt(record: logging.LogRecord) -> bool:
    """Whether a record is not what py4j logs, with its traceback, of a call that Ctrl-C interrupts."""
    return not str(record.msg).endswith("while sending command.")


def session_settings(master: str | None, *, is_submitted: bool = False, has_conf: bool = False) -> dict[str, str]:
    """The settings of a session for a master; what is not among them is as the cluster has it."""
    settings = dict(SETTINGS)
    if master is None and not is_submitted and not has_conf:
        master = "local[*]"
    if master is None:
        return settings
    settings["spark.master"] = with_tries(master)
    if is_local(master):
        settings["spark.sql.catalogImplementation"] = "in-memory"
    if is_local(master) or re.match(r"spark://(localhost|127\.)", master):
        # The page would be at all addresses of this machine.
        settings |= {
            "spark.ui.enabled": "false",
            "spark.driver.host": LOOPBACK,
            "spark.driver.bindAddress": LOOPBACK,
        }
    return settings


def is_local(master: str) -> bool:
    """Whether a master is this machine."""
    return LOCAL.fullmatch(master) is not None


def with_tries(master: str) -> str:
    """`local[n]` as `local[n,4]`: a lost worker of Python is replaced, and its task tried again."""
    found = LOCAL.fullmatch(master)
    if found is None or found[2] is not None:
        return master
    return f"local[{found[1] or '1'},{TRIES}]"


def send_package(spark: SparkSession) -> None:
    """Send this package to the workers of a cluster, so that they need Python, numpy and pyarrow alone.

    It is unpacked into a folder of the executor that Python looks for modules in. So its compiled parts can be loaded, which
    they cannot from a file of `--py-files`. A worker with another system or processor computes in Python instead.
    """
    context = getattr(spark, "sparkContext", None)  # None: a remote session, whose cluster has the package installed
    if context is None or is_local(context.master) or getattr(context, "_cranfield_sent", False):
        return
    archive = _package_archive(Path(context._temp_dir))  # noqa: SLF001 - served as long as the context lives, removed with it
    context.addArchive(f"{archive}#{PACKAGE.name}")
    context._cranfield_sent = True  # noqa: SLF001 - an archive can be added but once


def _package_archive(folder: Path) -> Path:
    """This package as an archive whose root is the folder of the package."""
    path = folder / "cranfield.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for file in sorted(PACKAGE.rglob("*")):
            if file.suffix in SENT and "__pycache__" not in file.parts:
                archive.write(file, file.relative_to(PACKAGE))
    return path


def _started(settings: Mapping[str, str], conf: Path | None) -> SparkSession:
    """A new session. Settings of the file reach Java as the name of the file alone."""
    words = ["pyspark-shell"]
    if conf is not None:
        if not conf.is_file():
            raise UsageError("no such file of settings of Spark", path=str(conf))
        words = ["--properties-file", str(conf.resolve()), "--load-spark-defaults", *words]
    variables = {} if conf is None else {"PYSPARK_SUBMIT_ARGS": shlex.join(words)}
    if is_local(settings.get("spark.master", "")) and "PYSPARK_PYTHON" not in os.environ:
        variables["PYSPARK_PYTHON"] = sys.executable
    with _environment(variables), tempfile.TemporaryFile() as log:
        try:
            return _connected(settings, log)
        except Exception as error:
            log.seek(0)
            raise UsageError(_not_started(settings, error, log.read().decode(errors="replace"))) from error


def _connected(settings: Mapping[str, str], log: IO[bytes]) -> SparkSession:
    """A session whose Java writes its log to a file: what fails is raised here, and the rest is for those who run a cluster."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    conf = SparkConf().setAll(list(settings.items()))
    if SparkContext._gateway is None:  # noqa: SLF001 - pyspark has no other way to redirect it
        SparkContext(conf=conf, gateway=launch_gateway(conf, {"stderr": log}))
    return SparkSession.builder.config(conf=conf).getOrCreate()


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Variables of the environment that are set in the block."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _not_started(settings: Mapping[str, str], error: Exception, log: str) -> Problem:
    lines = [line for line in log.splitlines() if re.search("exception|error", line, re.IGNORECASE)]
    lines = [line for line in lines if not line.startswith(("Setting Spark log level", "WARNING:"))]
    return Problem(
        f"Spark does not start with master {settings.get('spark.master', 'of its settings')}",
        got=lines[0] if lines else cause_of(error),
        hint="check the address of the master, and that it runs the same version of Spark",
    )


def _check_running(spark: Any, master: str | None, conf: Path | None) -> None:
    context = getattr(spark, "sparkContext", None)
    of_session = getattr(context, "master", None)
    if conf is None and (master is None or of_session in {master, with_tries(master)}):
        return
    raise UsageError(
        "a session of Spark is running with its own settings",
        expected=f"master {master or of_session}, and settings in no file",
        got=f"master {of_session}",
        hint="stop it first: spark.stop()",
    )


def _check_java() -> None:
    """See that the Java which Spark would start is there and new enough.

    Raises:
        UsageError: it is not.
    """
    home = os.environ.get("JAVA_HOME")
    program = str(Path(home, "bin", "java")) if home else shutil.which("java")
    expected, hint = f"Java {JAVA} or newer", "Debian: apt-get install default-jre-headless; or set JAVA_HOME"
    if program is None or not os.access(program, os.X_OK):
        where = f"in JAVA_HOME ({home})" if home else "on the PATH"
        raise UsageError(f"Spark needs Java, but none was found {where}", expected=expected, hint=hint)
    done = subprocess.run([program, "-version"], capture_output=True, text=True, check=False)
    found = re.search(r'version "(\d+)', done.stderr)
    if found is None or int(found[1]) < JAVA:
        got = (done.stderr.strip().splitlines() or ["nothing"])[0]
        raise UsageError(f"Spark needs another version of Java than {program}", expected=expected, got=got, hint=hint)
