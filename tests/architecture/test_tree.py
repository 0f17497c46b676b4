"""No file of the project names a machine, a package registry or the desk it was written at.

These read the checkout, so they do not run against the installed wheel.
"""

from __future__ import annotations

import re
import subprocess
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

import cranfield

# Written in halves, so that this file passes its own test.
MACHINE_FOLDERS = (("wo", "rk"), ("ro", "ot"), ("ho", r"me/\w+"), ("t", "mp"), ("Us", r"ers/\w+"), ("opt/", "wheels"))
FORBIDDEN = {
    "a package registry's host": "|".join(
        re.escape(start + end)
        for start, end in (
            ("pypi", ".org"),
            ("python", "hosted.org"),
            ("npmjs", ".org"),
            ("npmjs", ".com"),
            ("deb.", "debian.org"),
            ("security.", "debian.org"),
            ("crates", ".io"),
            ("golang", ".org"),
        )
    ),
    "a path of one machine": r"(?<![\w.~}])/(?:" + "|".join(a + b for a, b in MACHINE_FOLDERS) + ")/",
    "the number of an issue": r"\bissues?[ -]#?\d|\b(?:fixes|closes|resolves) #\d|\bseeds?[ -/]00\d",
    "notes that are not published": r"(?:\.\./)?shared/(?!data\b)\w|\bcontract\.md\b|\bbrief of the\b",
    "an unfinished thought": r"\b(?:" + "|".join(a + b for a, b in (("TO", "DO"), ("FIX", "ME"), ("XX", "X"))) + r")\b",
    "a skipped test": r"mark\.(?:skip|xfail)\b",
}
ALLOWED = {
    # (kind, file): why
    ("an unfinished thought", "CONTRIBUTING.md"): "names the words that are not committed",
    ("a skipped test", "tests/architecture/test_skips.py"): "skips on purpose, to see it counted",
}
BINARY = {".png", ".gz", ".ico", ".woff2", ".parquet", ".sqlite"}


def findings(text: str) -> Iterator[tuple[int, str, str]]:
    """Line, kind and the words of everything in `text` that should not be there."""
    for kind, pattern in FORBIDDEN.items():
        for match in re.finditer(pattern, text):
            yield text.count("\n", 0, match.start()) + 1, kind, match.group()


def tracked_files(checkout: Path) -> list[Path]:
    """What is committed, or would be."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=checkout, check=True, capture_output=True, text=True).stdout
    paths = [checkout / name for name in listed.split("\0") if name]
    return [path for path in paths if path.is_file() and path.suffix not in BINARY]


def test_no_file_names_a_machine_a_registry_or_a_desk(checkout: Path) -> None:
    found = []
    for path in tracked_files(checkout):
        name = path.relative_to(checkout).as_posix()
        found += [
            f"{name}:{line}: {kind}: {words}"
            for line, kind, words in findings(path.read_text(encoding="utf-8"))
            if (kind, name) not in ALLOWED
        ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("see https://pypi" + ".org/simple", "a package registry's host"),
        ("open('/t" + "mp/x.json')", "a path of one machine"),
        ("cd /wo" + "rk/main", "a path of one machine"),
        ("as issue" + " 12 asks", "the number of an issue"),
        ("from ../shared" + "/research/a.md", "notes that are not published"),
        ("# TO" + "DO later", "an unfinished thought"),
        ("@pytest.mark" + ".skip", "a skipped test"),
    ],
)
def test_each_forbidden_thing_is_found(text: str, kind: str) -> None:
    assert [found for _, found, _ in findings(f"fine\n{text}\n")] == [kind]


@pytest.mark.parametrize(
    "text", ["homework/main.py", "../work/x", "${TMPDIR}/x", "https://example.org/work/1", "../shared/data", "#0072B2"]
)
def test_what_only_looks_like_it_is_not(text: str) -> None:
    assert list(findings(text)) == []


def test_the_version_is_one(checkout: Path) -> None:
    pyproject = tomllib.loads((checkout / "pyproject.toml").read_text())
    assert "version" in pyproject["project"]["dynamic"]
    assert pyproject["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "cranfield.base.version.__version__"}
    assert metadata.version("cranfield") == cranfield.__version__
    assert f"## [{cranfield.__version__}]" in (checkout / "CHANGELOG.md").read_text()


def test_every_pin_carries_a_hash_and_no_address(checkout: Path) -> None:
    for path in sorted((checkout / "requirements").glob("*.txt")):
        text = path.read_text()
        pins = re.findall(r"^[\w.-]+==\S+", text, re.MULTILINE)
        assert pins
        assert len(re.findall(r"^[\w.-]+==.*\\\n +--hash=sha256:", text, re.MULTILINE)) == len(pins), path.name
        assert "://" not in text, path.name


def test_every_make_target_says_what_it_does(checkout: Path) -> None:
    makefile = (checkout / "Makefile").read_text()
    phony = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    assert phony
    described = set(re.findall(r"^([a-z-]+):.*  ## \S", makefile, re.MULTILINE))
    assert described == set(phony.group(1).split())
