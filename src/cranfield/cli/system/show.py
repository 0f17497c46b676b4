"""`cranfield system show`: one system of a config in full."""

from __future__ import annotations

from cranfield.cli.shared import show
from cranfield.cli.system.common import CONFIG, ConfigOption, NameArgument


def show_command(name: NameArgument, *, config: ConfigOption = CONFIG) -> None:
    """Print a system as YAML with its preset expanded. Copy it to adapt a preset. Secrets are not printed."""
    from cranfield.project.probing import filled_yaml

    show([filled_yaml(config, name)])
