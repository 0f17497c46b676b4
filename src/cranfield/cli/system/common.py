"""What the commands of this group share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ConfigOption = Annotated[
    Path, typer.Option("--config", metavar="FILE", help="Configuration file that defines the system.")
]
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="A system of the configuration.")]
CONFIG = Path("cranfield.yaml")
