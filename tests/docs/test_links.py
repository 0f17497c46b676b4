"""Links between pages lead somewhere in the repository too, where nobody has built the documentation."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
GENERATED = "docs/reference/generated/"
sys.path.insert(0, str(CHECKOUT / "docs"))
import generate  # noqa: E402 - beside the pages, in no package

LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(<?(?P<target>[^()\s>]+)>?\)")
FENCE = re.compile(r"^(?P<fence>[`~:]{3,}).*?^(?P=fence)[`~:]*\s*$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"(`+)(?:(?!\1).)+?\1(?!`)")
HEADING = re.compile(r"^#{1,6} (.+?)\s*#*$", re.MULTILINE)


def tracked() -> set[str]:
    """Files of the repository, and those that are not yet in it but will be."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=CHECKOUT,
        capture_output=True,
        check=True,
        text=True,
    ).stdout
    return {name for name in listed.split("\0") if name and (CHECKOUT / name).exists()}


@pytest.fixture(scope="module")
def files() -> set[str]:
    if not (CHECKOUT / ".git").exists():
        pytest.skip("no checkout here")
    return tracked()


def links(text: str) -> Iterator[str]:
    """Targets of links and pictures, without those in code."""
    for found in LINK.finditer(CODE.sub("x", FENCE.sub("", text))):
        yield found["target"]


def slugs(text: str) -> set[str]:
    """Anchors of the headings of a page, as code hosts and MyST make them."""
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)|[`*]", r"\1", heading) for heading in HEADING.findall(FENCE.sub("", text)))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in plain}


def dead_links(page: Path, files: set[str], folder: Path = CHECKOUT) -> Iterator[str]:
    """What is wrong with the links of a page."""
    text = page.read_text(encoding="utf-8")
    folders = folders_of(frozenset(files))
    for target in links(text):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        aim = (page.parent / path).resolve() if path else page
        name = aim.relative_to(folder).as_posix() if aim.is_relative_to(folder) else str(aim)
        if name.startswith(GENERATED):
            page_name = name.removeprefix(GENERATED).removesuffix(".md")
            if page_name not in generate.PAGES:
                yield f"{page.relative_to(folder)}: {target}: no such page is generated"
            elif anchor and anchor not in slugs_of_generated(page_name):
                yield f"{page.relative_to(folder)}: {target}: the generated page has no such heading"
        elif name not in files and name not in folders:
            yield f"{page.relative_to(folder)}: {target} is not in the repository"
        elif anchor and aim.suffix == ".md" and anchor not in slugs_of(aim):
            yield f"{page.relative_to(folder)}: {target}: {name} has no such heading"


@cache
def slugs_of_generated(name: str) -> frozenset[str]:
    """Anchors of a page that is made of the code."""
    return frozenset(slugs(generate.PAGES[name]()))


@cache
def folders_of(files: frozenset[str]) -> set[str]:
    """Every folder that holds a file, of the repository or of one of its folders."""
    return {parent.as_posix() for name in files for parent in Path(name).parents}


@cache
def slugs_of(page: Path) -> frozenset[str]:
    """Anchors of the headings of a page, which many links lead to."""
    return frozenset(slugs(page.read_text(encoding="utf-8")))


def test_every_link_of_every_page_leads_somewhere_in_the_repository(files: set[str]) -> None:
    pages = sorted(CHECKOUT / name for name in files if name.endswith(".md") and not name.startswith("tests/"))
    assert len(pages) > 100
    assert [problem for page in pages for problem in dead_links(page, files)] == []


def test_every_page_stands_once_in_its_table_of_the_index_and_in_the_tree_under_the_same_caption(
    files: set[str],
) -> None:
    text = (CHECKOUT / "docs" / "index.md").read_text(encoding="utf-8")
    trees = re.findall(r"^```\{toctree\}\n:hidden:\n:caption: (.+)\n\n([^`]+)```$", text, re.MULTILINE)
    tables = [
        (section.partition("\n")[0], re.findall(r"^\| \[.+?\]\((\S+)\.md\) \|", section, re.MULTILINE))
        for section in FENCE.sub("", text).split("\n## ")[1:]
    ]
    assert tables == [(caption, pages.split()) for caption, pages in trees]
    listed = sorted(page for _, pages in tables for page in pages)
    by_hand = {name[len("docs/") : -len(".md")] for name in files if name.startswith("docs/") and name.endswith(".md")}
    generated = {f"reference/generated/{name}" for name in generate.PAGES.keys() - generate.INCLUDED}
    assert listed == sorted((by_hand - {"index"}) | generated)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("[a](b.md)", None),
        ("[a](b.md#two-words)", None),
        ("[a](#here-it-is)\n\n## Here it is\n", None),
        ("![a picture](gone.png)", "gone.png is not in the repository"),
        ("[a](b.md#three)", "b.md has no such heading"),
        ("[a [b] c](gone.md)", "gone.md is not in the repository"),
        ("[a](https://example.org/gone.md)", None),
        ("`[a](gone.md)`", None),
        ("```text\n[a](gone.md)\n```\n", None),
        ("[a](../outside.md)", "../outside.md is not in the repository"),
    ],
)
def test_a_dead_link_is_found(tmp_path: Path, text: str, wrong: str | None) -> None:
    (tmp_path / "a.md").write_text(text)
    (tmp_path / "b.md").write_text("# Two *words*\n")
    found = list(dead_links(tmp_path / "a.md", {"a.md", "b.md"}, tmp_path))
    assert (wrong in found[0]) if wrong else found == []
