"""Packages of a target that are installed: from a folder of wheels, as no package index is asked here."""

from __future__ import annotations

import asyncio
import io
import shutil
import tarfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.unit.benefit.codecheck.environments import THIS, wheel

from cranfield.base.concurrency.loop import event_loop
from cranfield.benefit.codecheck.python import install
from cranfield.benefit.codecheck.python.checker import PythonChecker
from cranfield.benefit.codecheck.python.install import PACKAGES_VARIABLE, requirement_lines
from cranfield.benefit.codecheck.report import CheckReport, CheckState, CodeCheck, Target

CODE = "import tiny\ntiny.there()\ntiny.nowhere()\n"
TINY = {"tiny/__init__.py": "def there(): ...\n", "tiny/py.typed": ""}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL", "PIP_CONSTRAINT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv(PACKAGES_VARIABLE, str(tmp_path / "kept"))
    return tmp_path


def check(*requirements: str, code: str = CODE, folder: Path, version: str = THIS, **packages: str) -> CheckReport:
    lines = ("--no-index", f"--find-links {folder / 'wheels'}", *requirements)
    target = Target("python", "linux", version, packages, lines)
    return event_loop().run(PythonChecker().check({"main.py": code}, target))


def test_requirements_are_installed_once_and_symbols_are_those_of_the_installed_version(folder: Path):
    wheel(folder / "wheels", "tiny", "1.4", TINY, "other>=2")
    wheel(folder / "wheels", "other", "2.0", {"other.py": "x = 1\n"})
    for _ in range(2):
        report = check("tiny==1.4", folder=folder)
        assert [(row.check, row.line) for row in report.findings] == [(CodeCheck.SYMBOLS, 3)]
        assert report.versions.items() >= {"tiny": "1.4", "other": "2.0"}.items()
        shutil.rmtree(folder / "wheels", ignore_errors=True)  # the second time nothing is installed
    (kept,) = (folder / "kept").iterdir()
    assert (kept / "tiny" / "__init__.py").is_file()


def test_everything_that_cannot_be_installed_is_named_with_the_reason_and_nothing_passes(folder: Path):
    wheel(folder / "wheels", "tiny", "1.4", TINY)
    report = check("tiny==9", "absent-one>=3", folder=folder)
    assert report.states[CodeCheck.COMPILES] is CheckState.PASSED
    left = {check: state for check, state in report.states.items() if check is not CodeCheck.COMPILES}
    assert set(left.values()) == {CheckState.MISSING}
    (note,) = report.notes
    assert note.startswith("packages cannot be installed: tiny==9: ")
    for part in ("satisfies the requirement tiny==9 (from versions: 1.4)", "absent-one>=3: "):
        assert part in note
    assert list((folder / "kept").iterdir()) == []


def test_a_wheel_with_another_hash_is_refused(folder: Path):
    digest = wheel(folder / "wheels", "tiny", "1.4", TINY)
    assert check(f"tiny==1.4 --hash=sha256:{digest}", folder=folder).states[CodeCheck.SYMBOLS] is CheckState.FAILED
    report = check(f"tiny==1.4 --hash=sha256:{'0' * 64}", folder=folder)
    assert report.states[CodeCheck.SYMBOLS] is CheckState.MISSING
    assert "HASHES" in report.notes[0]


def test_a_package_that_would_have_to_be_built_is_refused(folder: Path):
    (folder / "wheels").mkdir()
    (folder / "wheels" / "tiny-1.4.tar.gz").write_bytes(b"")
    report = check("tiny", folder=folder)
    assert "satisfies the requirement tiny (from versions: none)" in report.notes[0]


def source(folder: Path) -> tuple[Path, Path]:
    """An archive of a source whose build writes a file, and that file."""
    built = folder / "built"
    files = {
        "pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n',
        "backend.py": f"open({str(built)!r}, 'w').close()\n",
        "PKG-INFO": "Metadata-Version: 2.1\nName: evil\nVersion: 1.0\n",
    }
    path = folder / "evil-1.0.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(f"evil-1.0/{name}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    return path, built


def test_a_source_that_a_wheel_or_a_setting_names_is_not_built(folder: Path, monkeypatch: pytest.MonkeyPatch):
    path, built = source(folder)
    wheel(folder / "wheels", "tiny", "1.4", TINY, f"evil @ {path.as_uri()}")
    report = check("tiny", folder=folder)
    assert report.states[CodeCheck.SYMBOLS] is CheckState.MISSING
    assert "only wheels are installed" in report.notes[0]
    assert "Traceback" not in report.notes[0]
    wheel(folder / "wheels", "plain", "1.0", TINY)
    (folder / "more.txt").write_text(f"--no-binary :all:\nevil @ {path.as_uri()}\n", encoding="utf-8")
    for name, value in (("PIP_REQUIREMENT", str(folder / "more.txt")), ("PIP_NO_BINARY", ":all:")):
        monkeypatch.setenv(name, value)
        check("plain", folder=folder)
    assert not built.exists()


def test_requirements_that_bring_in_a_source_are_refused_before_the_installer_starts(folder: Path):
    report = check("evil @ file:///evil-1.0.tar.gz", "--pre --no-binary :all:", folder=folder)
    assert report.states[CodeCheck.SYMBOLS] is CheckState.MISSING
    assert "evil @ file:///evil-1.0.tar.gz: only packages from an index" in report.notes[0]
    assert "--pre --no-binary :all:: this option" in report.notes[0]
    assert not (folder / "kept").exists()


def test_packages_must_be_in_the_version_that_the_target_names(folder: Path):
    wheel(folder / "wheels", "tiny", "1.4", TINY)
    report = check("tiny", folder=folder, tiny="1.3")
    assert report.notes == ("the packages do not match the target: tiny is 1.4; expected 1.3",)
    assert check("tiny", folder=folder, tiny="1").states[CodeCheck.SYMBOLS] is CheckState.FAILED


def test_without_an_installer_a_note_says_what_to_do(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(install, "_pip", lambda: "")
    monkeypatch.setenv("PATH", str(folder))
    assert "neither pip nor uv is available; declare an `environment`" in check("tiny", folder=folder).notes[0]


def test_an_installation_that_was_cancelled_is_begun_again_at_once(monkeypatch: pytest.MonkeyPatch):
    begun = []

    async def installs(requirements: Sequence[str], version: str, folder: Path) -> Path:
        begun.append(folder)
        if len(begun) == 1:
            raise asyncio.CancelledError
        return folder

    async def twice() -> None:
        with pytest.raises(asyncio.CancelledError):
            await install.installed_environment(["tiny"], THIS)
        await install.installed_environment(["tiny"], THIS)

    monkeypatch.setattr(install, "_install", installs)
    monkeypatch.setattr(install, "_installing", {})
    for n_begun in (2, 3):
        asyncio.run(twice() if n_begun == 2 else install.installed_environment(["tiny"], THIS))
        assert len(begun) == n_begun
        assert len(install._installing) == 1  # those of the loop before are forgotten


def test_packages_of_a_target_are_requirements():
    packages = {"numpy": "2.3", "pandas": "", "a": "1.0rc1"}
    assert requirement_lines(packages) == ("numpy==2.3.*", "pandas", "a==1.0rc1")
