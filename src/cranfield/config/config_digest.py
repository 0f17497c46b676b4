"""The digest of a system's configuration, and the configuration without secrets.

Both are of the keys in the file, before any path is expanded and without defaults: the same file gives the same digest in
any folder, and spelling a default out is a change.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel, SecretStr

from cranfield.config.systems import SystemConfig
from cranfield.model import Scalar

SHARED = (
    *("cwd", "env", "params", "components", "timeout_s", "concurrency", "rate_per_s", "retries", "backoff_s"),
    *("order", "extract", "empty", "depends", "preflight"),
)
"""Keys that several kinds of system have, in the order in which they are shown."""


def config_digest(system: SystemConfig, params: Mapping[str, Scalar] = MappingProxyType({})) -> str:
    """SHA-256 over the canonical JSON of the system's config; values of secrets are covered.

    Args:
        system: the system.
        params: of its test set, given with every query; without any the digest is of the system alone.
    """
    keys = _keys(system)
    text = json.dumps(
        [keys, dict(params)] if params else keys,
        sort_keys=True,
        ensure_ascii=False,
        separators=(",", ":"),
        default=str,
    )
    return "sha256:" + sha256(b"cranfield system 1\n" + text.encode("utf-8", "surrogatepass")).hexdigest()


def public_config(system: SystemConfig) -> dict[str, Any]:
    """The keys of a system in plain JSON values; of `env` only the sorted names."""
    keys: dict[str, Any] = json.loads(json.dumps(_keys(system), default=str))
    if "env" in keys:
        keys["env"] = sorted(keys["env"])
    return {key: keys[key] for key in sorted(keys, key=lambda key: SHARED.index(key) if key in SHARED else -1)}


def _keys(value: object) -> object:
    if isinstance(value, BaseModel):
        fields = type(value).model_fields
        names = [name for name in fields if name in value.model_fields_set]  # the models' order, whatever the file's
        names.sort(key=lambda name: name not in type(value).__annotations__)  # its own fields, then those it inherits
        return {fields[name].alias or name: _keys(getattr(value, name)) for name in names}
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    if isinstance(value, dict):
        return {key: _keys(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_keys(item) for item in value]
    return value
