"""Where the tests write: to memory where there is room, and nothing of it is left."""

from pathlib import Path

import pytest


@pytest.fixture
def conftest(checkout, pytestconfig, tmp_path, monkeypatch):
    place = str(checkout / "tests" / "conftest.py")
    found = next(one for one in pytestconfig.pluginmanager.get_plugins() if getattr(one, "__file__", None) == place)
    monkeypatch.setattr(found, "MEMORY", tmp_path)
    monkeypatch.setattr(found, "MEMORY_BYTES", 1)
    monkeypatch.setattr(Path, "is_mount", lambda _: True)
    return found


def test_folders_of_test_runs_that_were_killed_are_removed(conftest, tmp_path):
    mine = conftest._folder_in_memory()
    (tmp_path / "cranfield-tests-4194305-x").mkdir()  # no process has so large a number
    assert mine.parent == tmp_path
    assert {mine, conftest._folder_in_memory()} == set(tmp_path.iterdir())


@pytest.mark.parametrize("lacks", ["room", "memory"])
def test_without_room_in_memory_the_tests_write_to_the_disk(conftest, tmp_path, monkeypatch, lacks):
    if lacks == "room":
        monkeypatch.setattr(conftest, "MEMORY_BYTES", 1 << 60)
    else:
        monkeypatch.setattr(Path, "is_mount", lambda _: False)
    assert conftest._folder_in_memory() is None
    assert list(tmp_path.iterdir()) == []
