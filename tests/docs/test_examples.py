r"""Every example in README.md and docs/ runs, and prints what the page says it prints.

What is run, page by page, in a folder of its own, from top to bottom:

- A fence under a line that ends in "`NAME`:" is a file: it is written under that name.
- A `python` block is executed; names carry over to the next block. With `>>>` it is a doctest; otherwise what it prints
  must be exactly its comments that start with `# >`.
- In a `console` block each line that starts with `$ ` is run by bash (`> ` goes on), and the lines under it must be what it
  writes to stdout and stderr. A line `...` stands for any lines, `...` inside a line for anything in it.
- `sh` blocks are not run: they are for setting up. They may not call cranfield.

The folder of a page that names examples/ has a copy of it under that name.

CRANFIELD_UPDATE_EXAMPLES=1 writes what console blocks print into the pages, except where they contain `...`. Read the diff
before you commit it.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from sybil import Document, Example, Region
from sybil.evaluators.doctest import DocTestEvaluator
from sybil.parsers.abstract.doctest import DocTestStringParser
from sybil.parsers.markdown.lexers import FencedCodeBlockLexer

CHECKOUT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    path.relative_to(CHECKOUT).as_posix()
    for path in (*CHECKOUT.glob("*.md"), *(CHECKOUT / "docs").rglob("*.md"))
    if not {"_build", "generated"} & set(path.relative_to(CHECKOUT).parts)
)
FRAMEWORK_PAGES = {"docs/how-to/frameworks.md"}
"""Those that need frameworks: tests/frameworks runs them."""
SLOW_PAGES = {
    f"docs/how-to/{name}.md"
    for name in (
        "answer-in-any-language",
        "books",
        "check-confidence",
        "does-a-tool-help",
        "gate",
        "golden-sets",
        "language-models",
        "monitor-search-quality",
        "power-and-sensitivity",
        "production-queries",
        "rest-and-agents",
        "test-with-pytest",
    )
} | {"docs/studies/trec.md"}
"""Those that take seconds; what they show is tested elsewhere too."""
DATA_PAGES = {"docs/studies/trec.md": "cranfield"}
"""Those that need data which we may not publish: the folder that lies in theirs."""
FILE_NAME = re.compile(r"`(?P<name>[\w./-]+)`:\s*\Z")
EXPECTED_OUTPUT = re.compile(r"^[ \t]*# > ?(.*)$", re.MULTILINE)
COMMAND_S = 120
UPDATES = "__updates__"
LANGUAGES = "console|python|yaml|json|text|sh"


def parse_page(document: Document) -> Iterator[Region]:
    """Every fence that has something to do, as a region with its evaluator."""
    lexer = FencedCodeBlockLexer(LANGUAGES, mapping={"language": "language", "source": "source"})
    doctests = DocTestStringParser(DocTestEvaluator(0))
    for region in lexer(document):
        language, source = region.lexemes["language"], region.lexemes["source"]
        named = FILE_NAME.search(document.text[: region.start])
        region.parsed = source
        if named:
            region.parsed = (named["name"], str(source))
            region.evaluator = write_file
        elif language == "console":
            region.evaluator = run_console
        elif language == "python" and source.lstrip().startswith(">>>"):
            for inner in doctests(source, document.path):
                inner.adjust(region, source)
                yield inner
            continue
        elif language == "python":
            region.evaluator = run_python
        elif language == "sh":
            region.evaluator = refuse_commands
        else:
            continue
        yield region


def write_file(example: Example) -> None:
    name, text = example.parsed
    path = Path(name)
    assert not path.is_absolute(), f"{name} would be written outside the folder"
    assert ".." not in path.parts, f"{name} would be written outside the folder"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def run_python(example: Example) -> str | None:
    code = compile("\n" * example.line + str(example.parsed), example.path, "exec")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, example.namespace)
    return difference("\n".join(EXPECTED_OUTPUT.findall(str(example.parsed))), printed.getvalue())


def run_console(example: Example) -> str | None:
    steps = list(console_steps(str(example.parsed)))
    assert steps, "a console block without a line that starts with '$ '"
    wrong = None
    printed: list[str] = []
    for command, expected in steps:
        output = run_command(command)
        differs = difference(expected, output)
        if differs and wrong is None:
            wrong = f"$ {command}\n{differs}"
        # Where the page leaves something out, a person has to say what.
        shown = (output if differs and "..." not in expected else expected).strip("\n")
        printed.append("$ " + command.replace("\n", "\n> ") + (f"\n{shown}" if shown else ""))
    if wrong and os.environ.get("CRANFIELD_UPDATE_EXAMPLES"):
        # What the pages should say, kept until the whole page has run: see `update_page`.
        example.document.namespace.setdefault(UPDATES, []).append((example.parsed, "\n".join(printed) + "\n"))
    return wrong


def run_command(command: str) -> str:
    # One pipe for both streams, as on a terminal. `cranfield` is the one of conftest.py, which starts in milliseconds.
    return subprocess.run(
        ["bash", "-c", command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=COMMAND_S,
    ).stdout


def update_page(path: Path, document: Document) -> None:
    text = path.read_text(encoding="utf-8")
    for old, new in document.namespace.get(UPDATES, []):
        text = text.replace(f"```console\n{old}", f"```console\n{new}", 1)
    path.write_text(text, encoding="utf-8")


def refuse_commands(example: Example) -> str | None:
    calls = [line for line in str(example.parsed).splitlines() if re.match(r"\s*\$?\s*cranfield\s", line)]
    return f"a command of ours belongs in a console block, where it runs: {calls[0]}" if calls else None


def console_steps(text: str) -> Iterator[tuple[str, str]]:
    command: list[str] = []
    expected: list[str] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            if command:
                yield "\n".join(command), "\n".join(expected)
            command, expected = [line[2:]], []
        elif line.startswith("> ") and command and not expected:
            command.append(line[2:])
        else:
            expected.append(line)
    if command:
        yield "\n".join(command), "\n".join(expected)


def difference(expected: str, actual: str) -> str | None:
    """What is wrong with `actual`, or None; blanks at line ends and blank lines around do not count."""
    wanted, got = ("\n".join(line.rstrip() for line in text.strip("\n").splitlines()) for text in (expected, actual))
    return (
        None if matches(wanted, got) else f"the page says:\n{wanted or '(nothing)'}\nit prints:\n{got or '(nothing)'}"
    )


def matches(expected: str, actual: str) -> bool:
    pattern = "".join(
        # A line of dots takes its line break with it, so that it may stand for no line at all.
        r"(?:.*\n)*" if line == "...\n" else re.escape(line).replace(re.escape("..."), r"[^\n]*")
        for line in (expected + "\n").splitlines(keepends=True)
    )
    return re.fullmatch(pattern, actual + "\n") is not None


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def failures(document: Document) -> list[str]:
    found = []
    if "examples" in document.text and (CHECKOUT / "examples").is_dir():
        shutil.copytree(CHECKOUT / "examples", "examples", ignore=shutil.ignore_patterns(".cranfield"))
    for example in document.examples():
        place = f"{Path(document.path).name}:{example.line}"
        try:
            wrong = example.region.evaluator(example)
        except Exception as error:  # noqa: BLE001 - an example may raise anything; all of them are reported together
            wrong = f"{type(error).__name__}: {error}"
        if wrong:
            found.append(f"{place}: {wrong}")
    return found


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=pytest.mark.slow) if page in SLOW_PAGES else page
        for page in PAGES
        if page not in FRAMEWORK_PAGES
    ],
)
def test_the_examples_of_a_page_have_the_output_it_shows(page: str, request: pytest.FixtureRequest) -> None:
    if data := DATA_PAGES.get(page):
        shutil.copytree(request.getfixturevalue("shared_data") / data, data)
    document = Document.parse(str(CHECKOUT / page), parse_page)
    with measures_forgotten():
        found = failures(document)
    if UPDATES in document.namespace:
        update_page(CHECKOUT / page, document)
    assert not found, "\n\n".join(found)


@contextlib.contextmanager
def measures_forgotten() -> Iterator[None]:
    """Leave no measure behind that a page defines: other tests of this process compare the catalogue."""
    from cranfield.measures import CATALOGUE
    from cranfield.measures.own import forget

    before = set(CATALOGUE)
    try:
        yield
    finally:
        for name in set(CATALOGUE) - before:
            forget(name)


@pytest.mark.parametrize(("page", "example"), [("docs/tutorial.md", "examples/handbook")])
def test_the_files_of_a_page_are_those_of_its_example(page: str, example: str) -> None:
    document = Document.parse(str(CHECKOUT / page), parse_page)
    shown = dict(found.parsed for found in document.examples() if found.region.evaluator is write_file)
    assert shown == {path.name: path.read_text() for path in (CHECKOUT / example).iterdir() if path.is_file()}


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("page", "wrong"),
    [
        ("```python\nprint(1)\n# > 1\n```\n", None),
        ("```python\nprint(1)\n# > 2\n```\n", "page.md:1: the page says:\n2\nit prints:\n1"),
        ("```python\nprint(1)\n```\n", "the page says:\n(nothing)\nit prints:\n1"),
        ("```python\n1 / 0\n```\n", "ZeroDivisionError"),
        ("```python\n>>> 1 + 1\n3\n```\n", "Got:\n    2"),
        ("```python\nx = 1\n```\n\n```python\nprint(x)\n# > 1\n```\n", None),
        ("```console\n$ echo one; echo two >&2\none\ntwo\n```\n", None),
        ("```console\n$ echo one\ntwo\n```\n", "$ echo one\nthe page says:\ntwo\nit prints:\none"),
        ("```console\n$ seq 9\n1\n...\n9\n```\n", None),
        ("```console\n$ seq 2\n1\n...\n2\n```\n", None),
        ("```console\n$ echo took 12 s here\ntook ... s here\n```\n", None),
        ("```console\n$ echo one; exit 3\none\n$ echo two\ntwo\n```\n", None),
        ("```console\n$ echo one \\\n> two\none two\n```\n", None),
        ("```console\ncranfield --help\n```\n", "without a line that starts with"),
        ("Save `a/b.txt`:\n\n```text\nhello\n```\n\n```console\n$ cat a/b.txt\nhello\n```\n", None),
        ("Save `../b.txt`:\n\n```text\nhello\n```\n", "outside the folder"),
        ("```sh\npip install cranfield\n```\n", None),
        ("```sh\ncranfield demo\n```\n", "belongs in a console block"),
    ],
)
def test_a_wrong_page_is_found(tmp_path: Path, page: str, wrong: str | None) -> None:
    path = tmp_path / "page.md"
    path.write_text(page)
    found = "\n".join(failures(Document.parse(str(path), parse_page)))
    assert (wrong in found) if wrong else not found


def test_no_command_of_the_readme_fails_for_want_of_a_file() -> None:
    lines = (CHECKOUT / "README.md").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if line.startswith("error:")] == []


def test_the_first_screen_of_the_readme_says_what_both_set_up_commands_do() -> None:
    first_screen = (CHECKOUT / "README.md").read_text(encoding="utf-8").splitlines()[:25]
    targets = re.findall(r"^([\w-]+):.*## ", (CHECKOUT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    for target in ("demo", "test"):
        assert target in targets
        assert [line for line in first_screen if re.match(rf"make {target} +# \w+", line)]
