"""Fixtures for all tests, and the report of the tests that did not run."""

from __future__ import annotations

import atexit
import fcntl
import gc
import importlib.util
import json
import os
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import HealthCheck, settings

import cranfield

# A background job ignores SIGINT, and so would every process that tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The processes of a test run share the processors: threads for one product of matrices would only wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# jsonschema would take a second to build a grammar of international addresses, a format that no schema of ours has.
sys.modules["rfc3987_syntax"] = None

# What tests write need not survive a power cut, and a flush takes milliseconds. Programs that tests start do flush.
os.fsync = lambda _: None

CHECKOUT = Path(__file__).resolve().parents[1]
NO_SKIPS = "CRANFIELD_NO_SKIPS"
"""Set to anything but 0 where everything is installed: a skipped test fails the session."""

# No wall-clock limits on single examples: on a busy machine they fail without a bug.
settings.register_profile("quick", deadline=None, print_blob=True, max_examples=16)
settings.register_profile("local", deadline=None, print_blob=True)
settings.register_profile("ci", deadline=None, print_blob=True, derandomize=True)
settings.register_profile("thorough", deadline=None, max_examples=2000, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "local"))


@pytest.fixture(scope="session", autouse=True)
def pictures_drawn_once() -> Iterator[None]:
    """Draw each picture once in a process: tests write six hundred, of which two in three are the same."""
    try:
        import vl_convert
    except ImportError:  # an extra that is not installed
        yield
        return
    draw = vl_convert.vegalite_to_svg

    @cache
    def drawn(call: str) -> str:
        arguments, settings = json.loads(call)
        return draw(*arguments, **settings)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vl_convert, "vegalite_to_svg", lambda *words, **named: drawn(json.dumps((words, named))))
        yield


@pytest.fixture(scope="session", autouse=True)
def command_lines_built_once() -> Iterator[None]:
    """Build the options of each command once in a process: tests call a thousand, and building takes a fifth of a call."""
    from typer import main, testing

    with pytest.MonkeyPatch.context() as patch:
        built = cache(main.get_command)
        patch.setattr(main, "get_command", built)
        patch.setattr(testing, "_get_command", built)
        yield


@pytest.fixture(scope="session")
def checkout() -> Path:
    """The folder that holds tests/, docs/ and examples/ (a copy of them, when the wheel is under test)."""
    return CHECKOUT


@pytest.fixture
def file_limit() -> Callable[[int], AbstractContextManager[None]]:
    """In the block no file of this process grows beyond a size: what a full disk does to the one who writes."""

    @contextmanager
    def limited(size: int) -> Iterator[None]:
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)

    return limited


@pytest.fixture(scope="session")
def load_script() -> Callable[[Path], ModuleType]:
    """Import a script of the checkout that is in no package."""

    def load(path: Path) -> ModuleType:
        spec = importlib.util.spec_from_file_location(f"script_{path.stem}", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module  # dataclasses look themselves up there
        spec.loader.exec_module(module)
        return module

    return load


@pytest.fixture(scope="session")
def model_server(load_script: Callable[[Path], ModuleType], checkout: Path) -> ModuleType:
    """The module with `ModelServer`, which stands in for models, and `Reply`."""
    return load_script(checkout / "examples" / "model_server.py")


@pytest.fixture(scope="session")
def call() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a command line of cranfield in this process, which starts in no time: `call("gate", "--from", "out")`."""
    from tests import command

    return command.call


@pytest.fixture(scope="session")
def quick_python() -> str:
    """A `python` for one script and its arguments, which has imported the libraries; it can be killed, its script ends later.

    Its server runs: who starts it may give it no environment and little time.
    """
    subprocess.run(["cranfield", "--version"], check=True, capture_output=True)
    return "quick-python"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real data that we may not publish; CRANFIELD_DATA names its folder."""
    folder = Path(os.environ.get("CRANFIELD_DATA") or CHECKOUT.parent / "shared" / "data")
    if not folder.is_dir():
        pytest.skip("no real data here: CRANFIELD_DATA names its folder")
    return folder.resolve()


@pytest.fixture(scope="session")
def make_once(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Callable[[Path], object]], Path]:
    """Give the folder `name`, which `fill(folder)` fills once in a test run; xdist's workers share it. Do not write into it."""
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent

    def make(name: str, fill: Callable[[Path], object]) -> Path:
        folder, done = base / name, base / f"{name}.done"
        with (base / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not done.exists():
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir()
                fill(folder)
                done.touch()
        return folder

    return make


BUILD_DEMO = """\
import pickle, sys
from pathlib import Path
from cranfield.app.demo import corpus
before = set(sys.modules)
made = corpus.build_corpus()
Path("imported.txt").write_text(" ".join(sorted(set(sys.modules) - before)))
from cranfield.app.demo import build
build.build_corpus = lambda **_: made
files = build.build_demo(Path.cwd() / "demo")
Path("corpus.pickle").write_bytes(pickle.dumps((made, files)))
"""


@pytest.fixture(scope="session")
def demo_before_its_run(make_once: Callable[[str, Callable[[Path], object]], Path]) -> Path:
    """A folder with what `cranfield demo` builds before it searches, `demo`, and the corpus of it, `corpus.pickle`.

    A process of another locale and hash seed makes it; `imported.txt` has the modules that reading the library imported.
    """

    def fill(folder: Path) -> None:
        settings = {**os.environ, "PYTHONHASHSEED": "1", "LC_ALL": "C", "PYTHONUTF8": "0"}
        command = [sys.executable, "-c", BUILD_DEMO]
        done = subprocess.run(command, cwd=folder, env=settings, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr

    return make_once("demo before its run", fill)


IN_ONE_PROCESS = """\
import search

def opened(database, folder):
    connection = search.open_read_only(f"{folder}/{database}")

    def ask(query, k):
        hits = search.search(connection, query, k)
        sure = search.confidence(connection, query, hits[0]["id"]) if hits else 0.0
        return {"hits": hits, "fields": {"confidence": sure}}

    return ask
"""


@pytest.fixture(scope="session")
def demo(demo_before_its_run: Path, make_once: Callable[[str, Callable[[Path], object]], Path]) -> Path:
    """What `cranfield demo` writes, and its output as stdout.txt: made once in a test run. Copy it before you change it.

    Its config alone differs: a function asks the search script, which as a program for each query takes ten times as long.
    """

    def fill(folder: Path) -> None:
        shutil.copytree(demo_before_its_run / "demo", folder, dirs_exist_ok=True)
        (folder / "one_process.py").write_text(IN_ONE_PROCESS)
        head, _, _ = (folder / "cranfield.yaml").read_text().partition("systems:\n")
        systems = "".join(
            f"  {name}:\n    python: one_process:opened\n    with: {{database: {name}.db}}\n    order: given\n"
            for name in ("plain", "fields")
        )
        (folder / "cranfield.yaml").write_text(f"{head}systems:\n{systems}")
        _print_to_file(folder, "run")

    return make_once("demo", fill)


@pytest.fixture(scope="session")
def demo_of_the_command(make_once: Callable[[str, Callable[[Path], object]], Path]) -> Path:
    """What `cranfield demo` writes, in 20 s; for slow tests."""
    return make_once("demo of the command", lambda folder: _print_to_file(folder, "demo"))


def _print_to_file(folder: Path, command: str) -> None:
    done = subprocess.run(
        ["cranfield", command, "--out", ".", "--full"], cwd=folder, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    (folder / "stdout.txt").write_text(done.stdout)


@pytest.fixture(scope="session")
def chromium() -> str:
    """Path of a Chromium to open pages in, on a machine where Playwright can drive it."""
    driver = subprocess.run([sys.executable, "-m", "playwright", "--version"], capture_output=True, text=True)
    if driver.returncode:
        pytest.skip("Playwright's driver does not start here (Debian: apt-get install libatomic1)")
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    pytest.skip("no Chromium here (Debian: apt-get install chromium)")


def postgres_programs() -> Path | None:
    """The folder of initdb and postgres; None where there is none."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    if not found and (on_path := shutil.which("postgres")):
        found = [Path(on_path).resolve()]
    return found[-1].parent if found else None


@contextmanager
def started_postgres(programs: Path) -> Iterator[str]:
    """Its address; it runs as another user where we are root."""
    import psycopg

    other: dict[str, str] = {"user": "nobody", "group": "nogroup"} if os.getuid() == 0 else {}
    with tempfile.TemporaryDirectory(prefix="cranfield-pg-") as name:
        folder = Path(name)
        if other:
            shutil.chown(folder, **other)
        make = [programs / "initdb", "-D", folder / "data", "-U", "owner", "--auth=trust", "-E", "UTF8", "--locale=C"]
        subprocess.run([*make, "-N"], check=True, capture_output=True, cwd=folder, **other)
        run = [programs / "postgres", "-D", folder / "data", "-k", folder, "-c", "listen_addresses=", "-c", "fsync=off"]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(run, stdout=log, stderr=log, cwd=folder, **other)
        address, until = f"postgresql://owner@/postgres?host={folder}", time.monotonic() + 60
        try:
            while True:
                try:
                    psycopg.connect(address).close()
                    break
                except psycopg.OperationalError:
                    if time.monotonic() > until or process.poll() is not None:
                        raise
                    time.sleep(0.05)
            yield address
        finally:
            process.send_signal(signal.SIGINT)  # closes open connections
            process.wait(60)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The address of a PostgreSQL server started here."""
    programs = postgres_programs()
    if programs is None:
        pytest.skip("no PostgreSQL server here (Debian: apt-get install postgresql)")
    with started_postgres(programs) as address:
        yield address


PROGRAM = pytest.StashKey[Path]()
IN_MEMORY = pytest.StashKey[Path]()
MEMORY, MEMORY_BYTES = Path("/dev/shm"), 4 << 30
"""A file system in memory, and the room there without which the tests write to a disk."""


def _folder_in_memory() -> Path | None:
    """A new folder in memory, where there is room; those of test runs that were killed are removed."""
    is_there = MEMORY.is_mount() and os.access(MEMORY, os.W_OK) and Path("/proc/self").exists()
    if not is_there or shutil.disk_usage(MEMORY).free < MEMORY_BYTES:
        return None
    for left in MEMORY.glob("cranfield-tests-*-*"):
        if not Path("/proc", left.name.split("-")[2]).exists():
            shutil.rmtree(left, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f"cranfield-tests-{os.getpid()}-", dir=MEMORY))


def pytest_configure(config: pytest.Config) -> None:
    """Refuse to test the sources in place of the wheel; a `cranfield` that starts fast on the PATH; files in memory."""
    if os.environ.get("CRANFIELD_INSTALLED") and "site-packages" not in Path(cranfield.__file__).parts:
        raise pytest.UsageError(f"CRANFIELD_INSTALLED is set, and cranfield was imported from {cranfield.__file__}")
    if not hasattr(config, "workerinput"):  # workers inherit the PATH
        config.stash[PROGRAM] = folder = Path(tempfile.mkdtemp(prefix="cranfield-"))
        sources = Path(__file__).parent / "program"
        words = [sys.executable, "-I", "-S", sources / "client.py", folder / "socket", sources / "server.py"]
        for name in ("cranfield", "quick-pytest", "quick-python"):
            (folder / name).write_text(f'#!/bin/sh\nexec {shlex.join(map(str, words))} {name} "$@"\n')
            (folder / name).chmod(0o755)
        os.environ["PATH"] = os.pathsep.join((str(folder), str(Path(sys.executable).parent), os.environ["PATH"]))
        is_placed = config.option.basetemp or os.environ.get("PYTEST_DEBUG_TEMPROOT")
        if not is_placed and (in_memory := _folder_in_memory()) is not None:
            config.stash[IN_MEMORY] = in_memory
            config.option.basetemp = str(in_memory)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the program's folder, whose server ends when its socket is gone, and what was written to memory."""
    for key in (PROGRAM, IN_MEMORY):
        if key in config.stash:
            shutil.rmtree(config.stash[key], ignore_errors=True)


def _begins_elsewhere(config: pytest.Config) -> None:
    """Each worker of a whole run collects the folders from another on: what one has compiled, the others only read."""
    worker: dict[str, object] | None = getattr(config, "workerinput", None)
    named = [config.invocation_params.dir / name for name in config.args]
    if worker is None or named != [CHECKOUT / name for name in config.getini("testpaths")]:
        return
    left_out = {Path(name).resolve() for name in config.option.ignore or ()}
    inner = (*named[0].glob("[a-z]*/"), *(named[0] / "unit").glob("[a-z]*/"), *named[0].glob("unit/test_*.py"))
    folders = [*sorted({*inner} - left_out - {named[0] / "unit"}), *named[1:]]
    number, count = int(str(worker["workerid"]).removeprefix("gw")), int(str(worker["workercount"]))
    start = len(folders) * number // count
    config.args = [str(folder) for folder in (*folders[start:], *folders[:start])]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None, object, object]:
    """One order for all workers, wherever each began; Hypothesis reads the sources in one of them, and the others what it kept."""
    items.sort(key=lambda item: item.path)
    folder, _, _ = os.environ["PATH"].partition(os.pathsep)
    with Path(folder, "collection.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Keep what collecting the tests makes out of every later search for garbage: millions of objects, and all stay."""
    _begins_elsewhere(session.config)
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(50_000, 20, 100)  # tests make many objects and keep few: each search finds next to nothing
        atexit.register(gc.unfreeze)  # extension modules report what is never freed
        gc.enable()


def _not_run(config: pytest.Config) -> list[tuple[str, str]]:
    """Name and reason of every test that was skipped or expected to fail."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None:  # a worker of a parallel run: the main process counts
        return []
    rows = []
    for report in reporter.stats.get("skipped", []):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        rows.append((report.nodeid, reason.removeprefix("Skipped: ")))
    xfailed = reporter.stats.get("xfailed", [])
    return sorted([*rows, *((report.nodeid, f"expected to fail: {report.wasxfail}") for report in xfailed)])


def _skips_are_failures() -> bool:
    return os.environ.get(NO_SKIPS, "0") not in {"", "0"}


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail the session when a test was skipped and none may be."""
    if _skips_are_failures() and _not_run(session.config) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print how many tests did not run, which, and why; and the seed of the order."""
    rows = _not_run(config)
    verdict = f" ({NO_SKIPS} is set: this fails the run)" if rows and _skips_are_failures() else ""
    terminalreporter.write_line(f"{len(rows)} skipped{':' if rows else ''}{verdict}")
    for name, reason in rows:
        terminalreporter.write_line(f"  {name}: {reason}")
    if (seed := config.getoption("randomly_seed", None)) is not None:
        terminalreporter.write_line(f"this order again: --randomly-seed={seed}")
