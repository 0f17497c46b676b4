"""cranfield.yaml: what is compared, how the systems are called, what decides."""

from cranfield.config.load import load_config
from cranfield.config.models import Check, Config, Extract, JsonValue, Limits, SetConfig, SystemConfig
from cranfield.config.written import config_digest, public_config

__all__ = [
    "Check",
    "Config",
    "Extract",
    "JsonValue",
    "Limits",
    "SetConfig",
    "SystemConfig",
    "config_digest",
    "load_config",
    "public_config",
]
