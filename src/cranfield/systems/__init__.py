"""Systems under test: how they are asked, checked beforehand, and collected from."""

from cranfield.systems.adapter import Adapter
from cranfield.systems.build import systems_of
from cranfield.systems.collect import CollectOptions, Interrupted, collect, collect_all
from cranfield.systems.command import CommandSystem
from cranfield.systems.preflight import Held, preflight
from cranfield.systems.progress import Progress, progress_on
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
    "collect",
    "collect_all",
    "preflight",
    "progress_on",
    "systems_of",
]
