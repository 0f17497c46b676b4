"""`cranfield system show`: one system of a config in full."""

from __future__ import annotations

from cranfield.cli.shared import show
from cranfield.cli.system.common import CONFIG, ConfigOption, NameArgument


def show_command(name: NameArgument, *, config: ConfigOption = CONFIG) -> None:
    """Print a system as YAML, its preset filled in: what to copy where a preset does not do. Holds no secret."""
    from cranfield.project.probing import filled_yaml

    show([filled_yaml(config, name)])
