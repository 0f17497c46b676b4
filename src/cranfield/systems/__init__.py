"""Systems under test: how they are asked, checked beforehand, and collected from."""

from cranfield.systems.adapter import Adapter
from cranfield.systems.collect.collection import CollectOptions, Interrupted, collect_all
from cranfield.systems.collect.preflight import Held, preflight
from cranfield.systems.collect.progress import Progress, progress_on
from cranfield.systems.kinds.build import systems_of
from cranfield.systems.kinds.command import CommandSystem
from cranfield.systems.system import CallInterruptedError, Interruptible, System

__all__ = [
    "Adapter",
    "CallInterruptedError",
    "CollectOptions",
    "CommandSystem",
    "Held",
    "Interrupted",
    "Interruptible",
    "Progress",
    "System",
    "collect_all",
    "preflight",
    "progress_on",
    "systems_of",
]
