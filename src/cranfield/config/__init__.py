"""cranfield.yaml: what is compared, how the systems are called, what decides."""

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
