"""Output folders that the call does not name: a link in their place is not followed."""

from __future__ import annotations

from pathlib import Path

import pytest

from cranfield.cli.main import run_command_line

COMMANDS = {
    ("run",): "cranfield-out",
    ("gate",): "cranfield-gate",
    ("baseline", "accept"): "cranfield-gate",
    ("grid",): "cranfield-grid",
    ("components", "x"): "cranfield-components",
    ("demo",): "cranfield-demo",
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_link_is_followed_only_where_the_call_names_it(
    command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "home").mkdir()
    folder = COMMANDS[command]
    (tmp_path / folder).symlink_to("home")
    assert run_command_line([*command]) == 2
    refusal = f"{folder}: this is a symbolic link"
    assert refusal in capsys.readouterr().err
    assert list((tmp_path / "home").iterdir()) == []
    if command != ("demo",):  # it would work
        assert run_command_line([*command, "--out", folder]) == 2
        assert refusal not in capsys.readouterr().err
