"""The generated reference lists every entry of the tables in the code."""

from __future__ import annotations

import enum
import importlib
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

import cranfield
from cranfield.base import errors
from cranfield.cli import ending
from cranfield.config.presets import PRESETS
from cranfield.evaluation.evidence.inspection import CHECKS
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.formats.sniff import FORMATS
from cranfield.gate.config import RULE_MODELS
from cranfield.gate.rules import RULES
from cranfield.gate.use_cases.ci import MarkerSettings
from cranfield.measures import ALIASES, CATALOGUE
from cranfield.measures.catalogue import FAMILIES
from cranfield.model import CONVENTIONS, QUERY_CLASSES, Convention
from cranfield.model.convention import CHOICES
from cranfield.stats.coefficients import COEFFICIENTS
from cranfield.stats.consensus import CONSENSUS
from cranfield.stats.table import TESTS

CHECKOUT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def generate() -> Iterator[ModuleType]:
    sys.path.insert(0, str(CHECKOUT / "docs"))
    module = importlib.import_module("generate")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "help_of", cache(module.help_of))  # two tests ask for the help of every command
        yield module
    sys.path.remove(str(CHECKOUT / "docs"))


@pytest.fixture(scope="module")
def markdown(generate: ModuleType) -> ModuleType:
    return importlib.import_module(generate.docstring.__module__)


def test_every_page_is_written_once_and_old_pages_are_removed(generate: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "gone.md").write_text("a page of last year")
    generate.write_pages(tmp_path)
    assert {path.stem for path in tmp_path.iterdir()} == set(generate.PAGES)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    generate.write_pages(tmp_path)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before


def test_the_glossary_holds_the_table_of_verdicts_and_terms_in_order() -> None:
    text = (CHECKOUT / "docs/glossary.md").read_text()
    verdicts, terms = (
        re.findall(r"^\| (.+?) \| (.+?) \| (.+?) \|$", part, re.MULTILINE)[1:] for part in text.split("## Terms")
    )
    assert verdicts == [(code.text, f"`{code.value}`", code.meaning) for code in VerdictCode]
    names = [term for term, _, _ in terms]
    assert len(names) > 30
    assert names == sorted(set(names), key=str.lower)
    assert all(re.search(r"\]\(.+\.md(#[\w-]+)?\)$", where) for _, _, where in terms)


def test_every_page_is_in_the_table_of_contents(generate: ModuleType) -> None:
    listed = re.findall(r"^reference/generated/(\w+)$", (CHECKOUT / "docs/index.md").read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(generate.PAGES.keys() - generate.INCLUDED)


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("measures", [*FAMILIES, *CATALOGUE, *ALIASES]),
        ("conventions", [*CONVENTIONS, *CHOICES]),
        ("formats", FORMATS),
        ("tests", TESTS),
        ("evidence", CHECKS),
        ("classes", [*QUERY_CLASSES, *(measure for one in QUERY_CLASSES.values() for measure in one.measures)]),
        ("raters", [*CONSENSUS, *COEFFICIENTS]),
        ("library", cranfield.__all__),
        ("errors", [name for name in vars(errors) if name.endswith("Error")]),
        ("testset", ["cranfield_testset", "queries", "judgments", "patterns", "expected_count"]),
        ("presets", [name for preset in PRESETS.values() for name in (preset.name, *preset.settings.model_fields)]),
        (
            "gate",
            [
                *RULES,
                *(
                    name
                    for rule, model in RULE_MODELS.items()
                    for name in model.model_fields[rule].annotation.model_fields
                ),
            ],
        ),
        (
            "pytest",
            ["evaluation", "cranfield_evaluate", "cranfield_config", *(one.name for one in fields(MarkerSettings))],
        ),
        ("config", ["testset", "systems", "command", "preflight", "max_failed_share"]),
    ],
)
def test_a_page_names_everything_of_its_table(generate: ModuleType, page: str, names: list[str]) -> None:
    text = generate.PAGES[page]()
    assert [name for name in names if not re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text)] == []


def test_every_command_has_its_help(generate: ModuleType) -> None:
    text = generate.cli_page()
    commands = re.findall(r"^  ([\w-]+)  ", text.partition("\nStart:")[2].partition("\n\n")[0], re.MULTILINE)
    assert sorted(commands) == sorted(generate.command_table().modules)
    assert [command for command in commands if f"Usage: cranfield {command} " not in text] == []
    for group in generate.command_table().groups:
        about = generate.help_of(group).partition("\nCommands:")[2].partition("\n\n")[0]
        commands = re.findall(r"^  ([\w-]+)  ", about, re.MULTILINE)
        assert sorted(commands) == sorted(generate.subcommands(group))
        assert [command for command in commands if f"Usage: cranfield {group} {command} " not in text] == []


def test_every_choice_of_a_convention_is_described(markdown: ModuleType) -> None:
    sentences = markdown.field_sentences(Convention)
    assert [name for name in CHOICES if not sentences[name]] == []


def test_every_variable_of_the_environment_is_on_the_page(generate: ModuleType) -> None:
    package = Path(cranfield.__file__).parent
    read = {name for path in package.rglob("*.py") for name in re.findall(r'"(CRANFIELD_\w+)"', path.read_text())}
    names = {name.strip("`") for name in generate.variables()}
    assert read - {"CRANFIELD_SERVE_"} == {name for name in names if not name.startswith("CRANFIELD_SERVE_")}
    guide = (CHECKOUT / "docs/how-to/run-the-server.md").read_text()
    assert {name for name in names if name.startswith("CRANFIELD_SERVE_")} == set(
        re.findall(r"`(CRANFIELD_SERVE_\w+)`", guide)
    )


def test_formats_not_detected_from_content_are_documented_as_chosen_by_name(generate: ModuleType) -> None:
    never = FORMATS["judges"].fits
    assert {name for name, entry in FORMATS.items() if entry.fits is never} == set(generate.NAMED_ONLY)


def test_the_exit_codes_are_those_of_the_program(generate: ModuleType) -> None:
    documented = {int(code) for code in re.findall(r"^\| (\d+) \|", generate.errors_page(), re.MULTILINE)}
    raised = {cls.exit_code for cls in generate.subclasses(errors.CranfieldError)}
    chosen = {value for name, value in vars(ending).items() if name.startswith("EXIT_")}
    assert documented == raised | chosen | {0}


def test_long_signatures_are_split_at_their_own_commas(markdown: ModuleType) -> None:
    parts = markdown.split_arguments("a: dict[str, int], b: str = 'x, y', *, c: Callable[[int, str], None] = f(1, 2)")
    assert parts == ["a: dict[str, int]", "b: str = 'x, y'", "*", "c: Callable[[int, str], None] = f(1, 2)"]


@dataclass(frozen=True)
class Sample:
    """A sample."""

    name: str
    """What it is called."""
    parts: dict[str, int] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """How many parts."""
        return len(self.parts)

    def part(self, name: str) -> int:
        """One of them."""
        return self.parts[name]


class Colour(enum.Enum):
    """A colour."""

    RED = "red"
    """As a tomato."""


def sample_function(
    name: str, *, turn: Callable[[int, str], None] | None = None, colour: str = "x, y", n: int = 1
) -> Sample:
    """Do it.

        1 + 1 = 2

    Args:
        name: what to call it,
            in a word.

    Example:
        >>> 1 + 1
        2
    """
    return Sample(name)


def test_signatures_show_types_without_quotes(markdown: ModuleType) -> None:
    assert markdown.signature("Sample", Sample) == "class Sample(name: str, parts: dict[str, int] = ...)"
    assert markdown.signature("Colour", Colour) == "class Colour(Enum)"
    assert markdown.signature("f", sample_function).splitlines() == [
        "f(",
        "    name: str,",
        "    *,",
        "    turn: Callable[[int, str], None] | None = None,",
        "    colour: str = 'x, y',",
        "    n: int = 1,",
        ") -> Sample",
    ]


def test_attributes_carry_the_sentence_under_them(markdown: ModuleType) -> None:
    (rows,) = markdown.attributes(Sample)
    assert rows.splitlines()[2:] == [
        "| `name` | `str` | What it is called. |",
        "| `parts` | `dict[str, int]` |  |",
        "| `size` | `int` | How many parts. |",
        "| `part(name)` | `int` | One of them. |",
    ]
    (rows,) = markdown.attributes(Colour)
    assert rows.splitlines()[2:] == ["| `RED` | `'red'` | As a tomato. |"]


def test_sections_of_a_docstring_become_markdown(markdown: ModuleType) -> None:
    assert list(markdown.docstring(sample_function)) == [
        "Do it.\n\n```text\n1 + 1 = 2\n```\n",
        "**Args**",
        "- `name`: what to call it, in a word.",
        "**Example**",
        "```python\n>>> 1 + 1\n2\n```",
    ]
