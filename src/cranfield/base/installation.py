"""How this copy of Cranfield was installed, and what a user types to add an extra to it.

pip, pipx and uv each have their own command for that, and `pipx run` and `uvx` start a command with the extra, because what
they install is gone afterwards. Messages and the demo read this page; nothing here imports a library.
"""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

NAME = "cranfield"
_UV_CACHE = re.compile(r"(archive|environments|builds)-v\d+")
"""Folders of uv's cache in which `uvx` keeps its environments."""
_OF_EXTRA = re.compile(r"""(?P<name>[A-Za-z0-9._-]+).*;.*\bextra\s*==\s*["'](?P<extra>[^"']+)["']""")


class Installer(StrEnum):
    """The program that made the environment in which this process runs."""

    PIP = "pip"
    PIPX = "pipx install"
    PIPX_RUN = "pipx run"
    UV_TOOL = "uv tool install"
    UVX = "uvx"


@dataclass(frozen=True, slots=True)
class Installation:
    """Who installed this copy, and from where."""

    installer: Installer = Installer.PIP
    source: str = ""
    """URL of the wheel, folder or repository that was installed; empty: a package index, or an editable installation."""

    def requirement(self, extra: str = "") -> str:
        """The package with its extra, as a shell takes it: `'cranfield[web]'`."""
        name = f"{NAME}[{extra}]" if extra else NAME
        text = f"{name} @ {self.source}" if self.source else name
        quote = '"' if sys.platform == "win32" else "'"
        return text if text == NAME else f"{quote}{text}{quote}"

    def add(self, extra: str) -> str:
        """The command that adds an extra: `pip install 'cranfield[web]'`; where nothing stays installed, it starts Cranfield."""
        package = self.requirement(extra)
        match self.installer:
            case Installer.PIPX | Installer.UV_TOOL:
                return f"{self.installer} --force {package}"
            case Installer.UVX | Installer.PIPX_RUN:
                return self.command("…", extra)
            case _:
                return f"pip install {Installation().requirement(extra)}"  # what is installed is not fetched again

    def command(self, arguments: str, extra: str = "") -> str:
        """How `cranfield ARGUMENTS` is typed here, with an extra that the environment of one call is made with."""
        match self.installer:
            case Installer.UVX:
                return f"uvx --from {self.requirement(extra)} {NAME} {arguments}"
            case Installer.PIPX_RUN:
                return f"pipx run --spec {self.requirement(extra)} {NAME} {arguments}"
            case _:
                return f"{NAME} {arguments}"

    def next_command(self, arguments: str, extra: str) -> str:
        """How `cranfield ARGUMENTS`, which needs an extra, is typed next; with the installation before it where it is needed."""
        is_kept = self.installer not in {Installer.UVX, Installer.PIPX_RUN}
        command = self.command(arguments, extra)
        return f"{self.add(extra)} && {command}" if is_kept and not has_extra(extra) else command


def this_installation() -> Installation:
    """The installation of the copy that runs."""
    return Installation(installer_of(Path(sys.prefix)), _source())


def installer_of(prefix: Path) -> Installer:
    """Who made the environment in a folder, by the files which the programs leave there."""
    if (prefix / "uv-receipt.toml").is_file():
        return Installer.UV_TOOL
    if _UV_CACHE.fullmatch(prefix.parent.name):
        return Installer.UVX
    if (prefix / "pipx_metadata.json").is_file():
        return Installer.PIPX if prefix.parent.name == "venvs" else Installer.PIPX_RUN
    return Installer.PIP


def source_of(text: str | None) -> str:
    """The URL after `@` of the requirement that installs the same again, from the record of a direct URL (PEP 610)."""
    try:
        record = json.loads(text) if text else {}
    except ValueError:
        return ""
    url = str(record.get("url", ""))
    if record.get("dir_info", {}).get("editable") or not url:
        return ""
    version = record.get("vcs_info", {})
    return f"{version['vcs']}+{url}@{version['commit_id']}" if {"vcs", "commit_id"} <= set(version) else url


def has_extra(extra: str) -> bool:
    """True where every distribution of an extra is installed, in whatever version."""
    from importlib.metadata import PackageNotFoundError, distribution, requires

    try:
        needed = [
            found["name"]
            for line in requires(NAME) or ()
            if (found := _OF_EXTRA.match(line))
            if found["extra"] == extra
        ]
        for name in needed:
            distribution(name)
    except PackageNotFoundError:
        return False
    return bool(needed)


def _source() -> str:
    """The URL that this copy was installed from; empty where it came from a package index or is not installed."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        return source_of(distribution(NAME).read_text("direct_url.json"))
    except PackageNotFoundError:
        return ""
