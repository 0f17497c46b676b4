"""Who installed this copy, by the folders that pip, pipx and uv leave, and the commands that follow from it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cranfield.base.errors import MissingExtraError
from cranfield.base.installation import Installation, Installer, has_extra, installer_of, source_of

WHEEL = "file:///dist/cranfield-0.1.0-py3-none-any.whl"


@pytest.mark.parametrize(
    ("folder", "file", "installer"),
    [
        ("project/.venv", "pyvenv.cfg", Installer.PIP),
        ("cache/uv/archive-v0/7XOyJM", "CACHEDIR.TAG", Installer.UVX),
        ("cache/uv/environments-v2/7XOyJM", "CACHEDIR.TAG", Installer.UVX),
        ("share/uv/tools/cranfield", "uv-receipt.toml", Installer.UV_TOOL),
        ("share/pipx/venvs/cranfield", "pipx_metadata.json", Installer.PIPX),
        ("cache/pipx/2f213229c7233b9", "pipx_metadata.json", Installer.PIPX_RUN),
    ],
)
def test_each_installer_is_known_by_its_folder(tmp_path: Path, folder: str, file: str, installer: Installer) -> None:
    prefix = tmp_path / folder
    prefix.mkdir(parents=True)
    (prefix / file).touch()
    assert installer_of(prefix) is installer


@pytest.mark.parametrize(
    ("record", "source"),
    [
        (None, ""),
        ("{", ""),
        ("{}", ""),
        (json.dumps({"url": WHEEL, "archive_info": {}}), WHEEL),
        (json.dumps({"url": "file:///src", "dir_info": {}}), "file:///src"),
        (json.dumps({"url": "file:///src", "dir_info": {"editable": True}}), ""),
        (
            json.dumps({"url": "https://host/r.git", "vcs_info": {"vcs": "git", "commit_id": "abc"}}),
            "git+https://host/r.git@abc",
        ),
    ],
)
def test_the_source_is_what_would_be_installed_again(record: str | None, source: str) -> None:
    assert source_of(record) == source


@pytest.mark.parametrize(
    ("installation", "add", "command"),
    [
        (Installation(), "pip install 'cranfield[web]'", "cranfield serve"),
        (Installation(Installer.PIP, WHEEL), "pip install 'cranfield[web]'", "cranfield serve"),
        (Installation(Installer.PIPX), "pipx install --force 'cranfield[web]'", "cranfield serve"),
        (Installation(Installer.UV_TOOL), "uv tool install --force 'cranfield[web]'", "cranfield serve"),
        (
            Installation(Installer.UVX, WHEEL),
            f"uvx --from 'cranfield[web] @ {WHEEL}' cranfield …",
            f"uvx --from 'cranfield[web] @ {WHEEL}' cranfield serve",
        ),
        (
            Installation(Installer.PIPX_RUN),
            "pipx run --spec 'cranfield[web]' cranfield …",
            "pipx run --spec 'cranfield[web]' cranfield serve",
        ),
    ],
)
def test_each_installer_has_its_commands(installation: Installation, add: str, command: str) -> None:
    assert installation.add("web") == add
    assert installation.command("serve", "web") == command


def test_a_missing_extra_is_installed_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cranfield.base.installation.has_extra", lambda extra: False)
    assert Installation().next_command("serve", "web") == "pip install 'cranfield[web]' && cranfield serve"
    assert Installation(Installer.UVX).next_command("serve", "web") == "uvx --from 'cranfield[web]' cranfield serve"


def test_an_installed_extra_is_not_installed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cranfield.base.installation.has_extra", lambda extra: True)
    assert Installation().next_command("serve", "web") == "cranfield serve"


def test_extras_are_those_of_the_metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ["numpy>=1", 'uvicorn>=0.34; extra == "web"', 'no-such-thing; extra == "spark"']
    monkeypatch.setattr("importlib.metadata.requires", lambda name: lines)
    monkeypatch.setattr("importlib.metadata.distribution", known)
    assert has_extra("web")
    assert not has_extra("spark")
    assert not has_extra("unknown")


def known(name: str) -> None:
    from importlib.metadata import PackageNotFoundError

    if name != "uvicorn":
        raise PackageNotFoundError(name)


def test_the_error_of_a_missing_extra_says_the_command_of_its_installer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cranfield.base.installation.this_installation", lambda: Installation(Installer.UV_TOOL))
    error = MissingExtraError.for_extra("serving pages", "web")
    assert str(error).endswith("Hint: run `uv tool install --force 'cranfield[web]'`.")
