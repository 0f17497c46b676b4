"""cranfield.yaml: what is compared, how the systems are called, what decides."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cranfield.config.load import load_config, system_config
    from cranfield.config.models import Config, SetConfig
    from cranfield.config.systems import SystemConfig, config_digest, expand_preset, public_config

__all__ = [
    "Config",
    "SetConfig",
    "SystemConfig",
    "config_digest",
    "expand_preset",
    "load_config",
    "public_config",
    "system_config",
]

_HOMES = {
    "load": ("load_config", "system_config"),
    "models": ("Config", "SetConfig"),
    "systems": ("SystemConfig", "config_digest", "expand_preset", "public_config"),
}
"""Modules to the names of them that are imported on use: the block of a product imports parts of this room."""
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _HOME_OF:
        message = f"module 'cranfield.config' has no attribute {name!r}"
        raise AttributeError(message)
    value = getattr(importlib.import_module(f"cranfield.config.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value
