"""Runs `cranfield ARGUMENTS` as on Windows, as far as modules, functions and constants that are missing there go.

A program of its own: `python windows.py ARGUMENT...`, or `python windows.py --answer`, which reads what to run and runs each
in a fork. The libraries are imported first, because they ask for the platform when they are imported; the tests start it with
`quick-python`, which has most of them. Paths stay those of this machine.
"""

import asyncio
import importlib
import json
import os
import select
import shutil
import signal
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed.importlib import MetaPathFinderProtocol

MODULES = {"fcntl", "grp", "pty", "pwd", "resource", "syslog", "termios", "tty"}
NAMES = {
    os: (
        "killpg",
        "fork",
        "register_at_fork",
        "geteuid",
        "getuid",
        "getgid",
        "getpgid",
        "setsid",
        "mkfifo",
        "sysconf",
        "pread",
        "preadv",
        "pidfd_open",
        "sched_getaffinity",
        "chown",
        "openpty",
        "statvfs",
        "O_NOFOLLOW",
        "O_NONBLOCK",
        "O_CLOEXEC",
        "O_DIRECTORY",
        "O_PATH",
        "set_blocking",
    ),
    signal: (
        "SIGALRM",
        "SIGCHLD",
        "SIGCONT",
        "SIGHUP",
        "SIGPIPE",
        "SIGUSR1",
        "ITIMER_REAL",
        "setitimer",
        "getitimer",
        "pthread_kill",
        "pidfd_send_signal",
    ),
    select: ("poll", "epoll", "POLLIN", "POLLHUP"),
    asyncio: ("start_unix_server", "open_unix_connection"),
}
"""What Python for Windows does not have, without what `asyncio` and `subprocess` of this machine need themselves."""
LIBRARIES = (
    "numpy", "scipy.special", "pydantic", "yaml", "typer.testing", "rich.console", "rich.progress", "rich.table",
    "jinja2", "jmespath", "httpx2", "tenacity", "click", "sqlite3", "tempfile", "subprocess", "multiprocessing",
    "concurrent.futures", "zoneinfo", "platform", "ctypes", "ssl", "http.server", "importlib.metadata", "inspect",
    "logging.handlers", "unittest.mock", "getpass",
)  # fmt: skip
OTHER_LIBRARIES = (
    "scipy.stats", "scipy.optimize", "pandas", "pyarrow.parquet", "narwhals", "vl_convert", "uvicorn", "duckdb",
    "fastapi.testclient", "sqlalchemy.dialects.sqlite", "alembic.command", "mcp.server", "mcp.client.stdio",
    "anyio", "argon2", "markdown_it", "nh3", "prometheus_client", "pydantic_ai", "psycopg",
)  # fmt: skip
"""Of commands that are not called here, and slow to import."""


OURS = (
    "app.commands.evaluate", "gate.commands.gate", "app.commands.history", "app.commands.run",
    "testsets.commands.testset", "gate.use_cases.gate", "app.run", "workbench.commands.serve",
    "workbench.commands.watch", "config.load", "evaluation.compare", "reporting.renderers.html",
    "systems.collect.collection",
)  # fmt: skip
"""Modules of commands that are called here."""


class Hiding:
    """A finder of modules that finds none of POSIX, nor the kernel."""

    def __init__(self, finder: "MetaPathFinderProtocol") -> None:
        self.finder = finder

    def __getattr__(self, name: str) -> object:
        return getattr(self.finder, name)

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None, /
    ) -> ModuleSpec | None:
        hidden = name in {*MODULES, "cranfield.ranking._kernel"}
        return None if hidden else self.finder.find_spec(name, path, target)


def without_modules() -> None:
    """Hide modules, be they files or built into the interpreter, and forget those that are imported, ours as well."""
    sys.meta_path[:] = map(Hiding, sys.meta_path)
    for module in [name for name in sys.modules if name in MODULES or name.partition(".")[0] == "cranfield"]:
        del sys.modules[module]


def without_descriptors(name: str) -> None:
    """Let a function of `os` refuse the descriptor of a folder, as on Windows."""
    function = getattr(os, name)

    def refusing(*args: object, **kwargs: object) -> object:
        if any(kwargs.get(key) is not None for key in ("dir_fd", "src_dir_fd", "dst_dir_fd")):
            raise NotImplementedError(f"{name}: dir_fd unavailable on this platform")
        if name in {"scandir", "listdir"} and args and isinstance(args[0], int):
            raise NotImplementedError(f"{name}: a descriptor")
        if name == "open" and Path(str(args[0])).is_dir():
            raise PermissionError(13, "Permission denied", args[0])
        return function(*args, **kwargs)

    setattr(os, name, refusing)


def become_windows(libraries: tuple[str, ...]) -> None:
    """Take away what is not there."""
    for library in libraries:
        importlib.import_module(library)
    shutil._use_fd_functions = False
    without_modules()
    for owner, names in NAMES.items():
        for name in names:
            if hasattr(owner, name):
                delattr(owner, name)
    for name in ("open", "stat", "mkdir", "unlink", "rmdir", "rename", "replace", "scandir", "listdir"):
        without_descriptors(name)
    sys.platform = "win32"


def import_everything() -> None:
    """Import every module of the package, but the programs that are started on Linux alone."""
    import pkgutil

    import cranfield

    for module in pkgutil.walk_packages(cranfield.__path__, "cranfield."):
        if (
            not module.name.endswith(("__main__", "_kernel", "external.namespace", "sentence_transformers"))
            and ".spark" not in module.name
        ):
            importlib.import_module(module.name)
    print("imported", cranfield.__version__)


def answer(fork: Callable[[], int]) -> None:
    """Run a command line for each line of stdin, `{"arguments": [...], "folder": PATH, "environment": {...}, "streams":
    [PATH, PATH, PATH]}`, and print its exit code.
    """
    from cranfield.cli.main import main

    for name in OURS:
        importlib.import_module(f"cranfield.{name}")
    for line in sys.stdin:
        if child := fork():
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
            continue
        request = json.loads(line)
        for number, path in enumerate(request["streams"]):
            os.dup2(os.open(path, os.O_RDWR), number)
        for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))
        os.chdir(request["folder"])
        os.environ.clear()
        os.environ.update(request["environment"])
        sys.argv = ["cranfield", *request["arguments"]]
        main()
        return


if __name__ == "__main__":
    if sys.argv[1:] == ["--import-everything"]:
        become_windows((*LIBRARIES, *OTHER_LIBRARIES))
        import_everything()
    elif sys.argv[1:] == ["--answer"]:
        fork = os.fork
        become_windows(LIBRARIES)
        answer(fork)
    else:
        become_windows(LIBRARIES)
        from cranfield.cli.main import main

        main()
