"""What works on which operating system: the one table that the documentation page and the errors are read from.

A feature names the parts of Python that it needs. What is missing is found by looking, so that a system which the table does
not name gets a true answer too; the sentences of the columns are for readers.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib import import_module

from cranfield.base.errors import PlatformError

NAMES = {"linux": "Linux", "darwin": "macOS", "win32": "Windows"}
"""`sys.platform` to the name that people use."""
WSL = "use Linux or macOS; on Windows, use the Windows Subsystem for Linux (WSL)"


@dataclass(frozen=True, slots=True)
class Feature:
    """Something that not every operating system can do, or does not do in the same way."""

    title: str
    """The subject of a sentence, in the singular."""
    needs: tuple[str, ...] = ()
    """Modules, or names in them, that are missing where it does not work; empty: it works everywhere, with differences."""
    linux: str = "yes"
    macos: str = "yes"
    windows: str = "yes"
    refused: str = ""
    """What ends with the error of `require`, for readers; empty: nothing does."""


PROGRAM_NEEDS = ("os.killpg", "os.register_at_fork", "signal.SIGKILL")

EVALUATE = Feature(
    "Reading test sets and runs, evaluating, comparing, power, reports, the library",
    windows="yes; the C kernel is not built there, and large runs are read several times slower",
)
RUN = Feature(
    "Running systems over HTTP, Python functions, SQLite, MCP over HTTP and run files",
    windows="yes; a Python function runs in the process of Cranfield and can end it",
)
PROGRAMS = Feature(
    "Starting other programs",
    PROGRAM_NEEDS,
    windows="no: Windows has no process groups, which end a program together with its child processes",
    refused="systems that are commands, line programs or MCP servers over stdio; predicates; Python functions under a gate; "
    "`cranfield demo`; agents; checks of generated code",
)
SERVER = Feature(
    "The server and its schedule",
    (*PROGRAM_NEEDS, "fcntl.flock"),
    windows="no: its jobs and uploads run as separate programs",
    refused="`cranfield serve`, `cranfield watch`",
)
JUDGE = Feature("Judging in the browser for one user, the MCP server", windows="not tried")
SPARK = Feature("Evaluating on Spark", macos="not tried", windows="not tried")
SANDBOX = Feature(
    "Tests of generated code in a sandbox, agents without a network",
    macos="no: both need Linux namespaces",
    windows="no",
)
ORPHANS = Feature(
    "Ending programs when Cranfield is killed",
    linux="all programs, including those that left their process group",
    macos="programs in the process group",
    windows="no program is started",
)
LOCKS = Feature(
    "Locks that keep two processes from writing to one folder",
    ("fcntl.flock",),
    windows="none: do not start two collections in one folder, or two commands that add to one history",
)
LINKS = Feature(
    "Refusing links and other users' files in output folders",
    windows="links are checked before each use; a link created after the check is followed",
)
MEMORY = Feature(
    "Memory limits for expressions, predicates, uploads and checks",
    macos="none: macOS does not enforce a limit on the address space; the time limits apply",
    windows="none",
)
PATTERNS = Feature("Time limit for regular expressions in configs and test sets", windows="none")
PIPES = Feature("Named pipes as input", windows="no: give a file or standard input")

FEATURES = (EVALUATE, RUN, PROGRAMS, SERVER, JUDGE, SPARK, SANDBOX, ORPHANS, LOCKS, LINKS, MEMORY, PATTERNS, PIPES)


def missing(feature: Feature) -> tuple[str, ...]:
    """The parts of Python that a feature needs and that are not here."""
    return tuple(name for name in feature.needs if not _is_here(name))


def require(feature: Feature, purpose: str = "") -> None:
    """Refuse what this operating system cannot do.

    Args:
        feature: of the table.
        purpose: what needs it, the subject of the sentence; empty: the feature itself.

    Raises:
        PlatformError: it cannot.
    """
    if names := missing(feature):
        raise PlatformError(
            f"{purpose or feature.title} does not work on {platform_name()}",
            expected=f"an operating system with {', '.join(names)}",
            hint=WSL,
        )


def platform_name() -> str:
    """The name of this operating system."""
    return NAMES.get(sys.platform, sys.platform)


def _is_here(name: str) -> bool:
    module, _, attribute = name.partition(".")
    try:
        found = import_module(module)
    except ImportError:
        return False
    return not attribute or hasattr(found, attribute)
