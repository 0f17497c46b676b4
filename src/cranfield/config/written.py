"""A system's configuration as its author wrote it: for its digest, and for people to read.

"As written" means what the file says, before any path is expanded and without defaults: the same file gives the same
digest in any folder, and spelling a default out is a change.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel, SecretStr

from cranfield.config.models import SystemConfig
from cranfield.model import Scalar


def config_digest(system: SystemConfig, params: Mapping[str, Scalar] = MappingProxyType({})) -> str:
    """SHA-256 over the canonical JSON of the system's config; values of secrets are covered.

    Args:
        system: as written.
        params: that a test set gives with every query of its own; without any the digest is of the system alone.
    """
    written = _written(system)
    text = json.dumps(
        [written, dict(params)] if params else written,
        sort_keys=True,
        ensure_ascii=False,
        separators=(",", ":"),
        default=str,
    )
    return "sha256:" + sha256(b"cranfield system 1\n" + text.encode("utf-8", "surrogatepass")).hexdigest()


def public_config(system: SystemConfig) -> dict[str, Any]:
    """The system's config as written, in plain JSON values; of the environment only the sorted names."""
    written: dict[str, Any] = json.loads(json.dumps(_written(system), default=str))
    if "env" in written:
        written["env"] = sorted(written["env"])
    return written


def _written(value: object) -> object:
    if isinstance(value, BaseModel):
        fields = type(value).model_fields
        names = [name for name in fields if name in value.model_fields_set]  # the models' order, whatever the file's
        return {fields[name].alias or name: _written(getattr(value, name)) for name in names}
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    if isinstance(value, dict):
        return {key: _written(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_written(item) for item in value]
    return value
