"""Settings of `cranfield serve`: the option precedes the environment, the environment the file, the file the default."""

from __future__ import annotations

from pathlib import Path

import pytest

from cranfield.base.errors import ConfigError
from cranfield.books.options import DEFAULT_DATABASE
from cranfield.cli.main import run_command_line
from cranfield.workbench.config import ServerConfig, SettingOrigin, load_workbench, resolve_settings

VARIABLES = {
    "CRANFIELD_DB": "postgresql://me:se:cr@et@db.example.org/books?password=hidden",
    "CRANFIELD_SERVE_ACCOUNTS": "true",
    "CRANFIELD_SERVE_HOST": "0.0.0.0",
    "CRANFIELD_SERVE_PORT": "9001",
    "CRANFIELD_SERVE_URL": "https://judge.example.org",
    "CRANFIELD_SERVE_TRUST_PROXY": "10.0.0.1 10.0.0.2",
    "CRANFIELD_SERVE_ALLOW_HOST": "10.0.0.5",
    "CRANFIELD_SERVE_CONNECTIONS": "50",
    "CRANFIELD_SERVE_LOG": "json",
    "CRANFIELD_SERVE_DRAIN_SECONDS": "1",
    "CRANFIELD_SERVE_STOP_SECONDS": "3",
}


@pytest.fixture
def printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Name to value and origin, as `--print-config` prints them."""
    monkeypatch.chdir(tmp_path)
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)

    def run(*arguments: str) -> dict[str, str]:
        assert run_command_line(["serve", "--print-config", *arguments]) == 0
        return dict(line.split(None, 1) for line in capsys.readouterr().out.splitlines())

    return run


def test_defaults(printed) -> None:
    found = printed()
    assert found["db"] == f"{DEFAULT_DATABASE}  (default)"
    assert found["host"] == "127.0.0.1  (default)"
    assert found["trust_proxy"] == "none  (default)"


def test_every_setting_has_an_environment_variable(printed, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    found = printed()
    assert all(found[name].endswith("  (environment)") for name in ServerConfig.model_fields)
    assert found["trust_proxy"] == "10.0.0.1 10.0.0.2  (environment)"


def test_passwords_are_masked(printed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRANFIELD_DB", VARIABLES["CRANFIELD_DB"])
    assert printed()["db"] == "postgresql://me:***@db.example.org/books  (environment)"


def test_the_option_precedes_the_environment_and_that_the_file(printed, tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "workbench.yaml").write_text("server: {host: 127.0.0.3, port: 7003, stop_s: 7}\n")
    monkeypatch.setenv("CRANFIELD_SERVE_HOST", "127.0.0.2")
    monkeypatch.setenv("CRANFIELD_SERVE_PORT", "7002")
    found = printed("--workbench", "workbench.yaml", "--port", "7001")
    assert found["port"] == "7001  (option)"
    assert found["host"] == "127.0.0.2  (environment)"
    assert found["stop_s"] == "7.0  (file)"
    assert found["workbench"] == "workbench.yaml"


def test_an_option_that_equals_the_default_precedes_the_file() -> None:
    settings = resolve_settings({"accounts": (False, SettingOrigin.OPTION)}, ServerConfig(accounts=True))
    assert {each.name: each.value for each in settings}["accounts"] is False


def test_a_wrong_block_is_reported_with_its_lines(tmp_path: Path) -> None:
    path = tmp_path / "workbench.yaml"
    path.write_text("server:\n  port: 0\n  hots: x\n")
    with pytest.raises(ConfigError) as caught:
        load_workbench(path)
    assert [problem.line for problem in caught.value.problems] == [2, 3]
