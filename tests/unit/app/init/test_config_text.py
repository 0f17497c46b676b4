"""What is written is what was found, whatever a server says: nothing of it becomes another key or another line."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from cranfield.app.init.config import SCHEMA_LINE, comment, config_text
from cranfield.app.init.shape import literal
from cranfield.app.init.start import unique_names
from cranfield.config import load_config
from cranfield.formats.io.files import write_text

TEXTS = st.text(max_size=30).filter(lambda text: "\0" not in text)
HOSTILE = [
    "a\nsystems: {}",
    "x: y # z",
    "'",
    '"',
    "\u2028evil: 1",
    "- a",
    "&a *b",
    "!!python/object",
    "{query}\r\nx",
    "\x85a: b",
]


def config_of(systems, about=""):
    text = config_text(
        {"testset": "t.yaml"},
        systems,
        about={"": about, **dict.fromkeys(systems, about)},
        notes=dict.fromkeys(systems, (about,)),
        k=10,
        measures=("nDCG@10",),
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "cranfield.yaml")
        write_text(path, [text])
        return text, load_config(path)


@given(TEXTS | st.sampled_from(HOSTILE), TEXTS | st.sampled_from(HOSTILE))
def test_values_and_comments_of_any_text_read_back_as_they_were(argument, said):
    argument = literal(argument.encode("utf-8", "replace").decode())
    system = {"command": ["search", "{query}", argument or "x"], "extract": {"regex": "x"}}
    text, config = config_of({"a": system}, said)
    assert list(config.systems) == ["a"]
    assert config.systems["a"].command == system["command"]
    assert text.startswith(SCHEMA_LINE + "\n")


@given(TEXTS | st.sampled_from(HOSTILE))
def test_a_comment_is_one_line(said):
    written = comment(said)
    assert written.startswith("# ")
    assert written.endswith("\n")
    assert len(written.splitlines()) == 1


@given(st.lists(st.text(max_size=60), min_size=1, max_size=5))
def test_names_are_valid_and_differ(proposals):
    names = unique_names(proposals)
    systems = {name: {"run": "a.run"} for name in names}
    assert list(config_of(systems)[1].systems) == names


def test_names_keep_what_they_can():
    assert unique_names(["bm25 (old).run", "bm25 (old).run", "Ümlaut", ""]) == [
        "bm25-old-.run",
        "bm25-old-.run-2",
        "mlaut",
        "system",
    ]
