"""Systems under test: preflight checks, calls, and collection of runs."""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cranfield.systems.collect.collection import Interrupted, collect_all
    from cranfield.systems.collect.preflight import PassedCheck, preflight
    from cranfield.systems.collect.progress import Progress, progress_on
    from cranfield.systems.configured import ConfiguredSystem
    from cranfield.systems.kinds.build import build_systems
    from cranfield.systems.kinds.command import CommandSystem
    from cranfield.systems.system import CallInterruptedError, Interruptible, System

_HOME_OF = {
    "CallInterruptedError": "system",
    "Progress": "collect.progress",
    "CommandSystem": "kinds.command",
    "ConfiguredSystem": "configured",
    "Interrupted": "collect.collection",
    "Interruptible": "system",
    "PassedCheck": "collect.preflight",
    "System": "system",
    "build_systems": "kinds.build",
    "collect_all": "collect.collection",
    "preflight": "collect.preflight",
    "progress_on": "collect.progress",
}
"""Names to the modules that they are imported from on use: the process of a function imports few of them."""

__all__ = [
    "CallInterruptedError",
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


def __getattr__(name: str) -> object:
    if name not in _HOME_OF:
        message = f"module 'cranfield.systems' has no attribute {name!r}"
        raise AttributeError(message)
    value = getattr(importlib.import_module(f"cranfield.systems.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value
