"""Systems under test: preflight checks, calls, and collection of runs."""

from cranfield.systems.collect.collection import Interrupted, collect_all
from cranfield.systems.collect.options import CollectOptions
from cranfield.systems.collect.preflight import PassedCheck, preflight
from cranfield.systems.collect.progress import Progress, progress_on
from cranfield.systems.configured import ConfiguredSystem
from cranfield.systems.kinds.build import build_systems
from cranfield.systems.kinds.command import CommandSystem
from cranfield.systems.system import CallInterruptedError, Interruptible, System

__all__ = [
    "CallInterruptedError",
    "CollectOptions",
    "CommandSystem",
    "ConfiguredSystem",
    "Interrupted",
    "Interruptible",
    "PassedCheck",
    "Progress",
    "System",
    "build_systems",
    "collect_all",
    "preflight",
    "progress_on",
]
