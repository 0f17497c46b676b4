"""Files of a module: which imports are followed."""

from pathlib import Path

from cranfield.systems.kinds.modules import module_files


def put(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder.joinpath(*name.split("__")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def test_imports_are_followed_through_folders_without_init(tmp_path: Path) -> None:
    put(tmp_path, engine="import parts.index\nfrom parts import words\nimport tail\n")
    put(
        tmp_path,
        parts__index="import json\nfrom parts.deep import leaf\n",
        parts__words="",
        parts__deep__leaf="",
        tail="",
    )
    names = ["engine.py", "parts/deep/leaf.py", "parts/index.py", "parts/words.py", "tail.py"]
    assert list(module_files("engine", [tmp_path])) == [tmp_path / name for name in names]


def test_an_import_of_nothing_hides_no_other_file(tmp_path: Path) -> None:
    put(tmp_path, engine="import nothing_of_that_name\nimport tail\n", tail="")
    assert list(module_files("engine", [tmp_path])) == [tmp_path / "engine.py", tmp_path / "tail.py"]
