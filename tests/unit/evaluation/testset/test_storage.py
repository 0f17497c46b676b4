"""A change spliced into the text of a test set, whatever that text looks like: the file reads back as what was meant."""

from __future__ import annotations

from dataclasses import fields
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from cranfield.app.loading import read_stored
from cranfield.evaluation.testset.edit import Addition, added
from cranfield.evaluation.testset.split import split, with_split
from cranfield.formats.testsets.storage import save
from cranfield.model import File, TestSet

TODAY = date(2026, 11, 21)
HEADS = (
    "cranfield_testset: 1\nname: s\n",
    "# top\ncranfield_testset: 1 # one\nname: 's'  # name\nversion: \"1\"\n",
    "---\ncranfield_testset: 1\nname: s\ndescription: |\n  two\n  # no comment\n\n",
    '\ufeffcranfield_testset: 1\nname: "s"\n',
    "%YAML 1.1\n---\ncranfield_testset: 1\nname: s\n",
    "name: s\ncranfield_testset: 1\nmeta: {history: [a, b]}\n",
    "cranfield_testset: 1\nname: s\ndescription: >-\n  folded\n  text\nmeta:\n  history:\n  - a # c\n  - b\n",
)
ENTRIES = (
    "- id: q{n}\n  text: t{n}\n  judgments: {{a: 1, b: 0}}\n",
    "- {{id: q{n}, text: t{n}, judgments: {{a: 1}}}}\n",
    "# before\n- id: q{n}   # c\n  text: |\n    block\n    # no comment\n  judgments:\n    a: 1\n    # in\n    b: 2\n\n",
    '- text: "é \\u2028 {n}"\n  judgments: &j{n} {{a: 1}}\n  id: q{n}\n',
    "-\n  id: q{n}\n  text: >\n    fold\n\n    more\n  judgments: {{a: 1}}\n",
    "- id: q{n}\n  judgments: {{a: 1}}\n  text: |+\n    keep\n\n\n",
    "- id: 'q{n}'\n  text: \"a\n    b\"\n  spans: ['a.py:1-2']\n",
    "- ? id\n  : q{n}\n  text: x\n  patterns: [{{regex: 'a#b'}}, {{regex: \"x: y\"}}]\n",
)
TAILS = (
    "",
    "# end\n",
    "...\n",
    'version: "2"\n',
    "\n\n   \n",
    "sources:\n  - {name: x, pattern: y}\n",
    "# no line feed",
)
TEXTS = ("x", "a: b # c", "é\n y", "- x", "'\"", "yes", "1e3", "null", "a\tb", "\u2028x\x85")


@st.composite
def sets(draw: st.DrawFn) -> str:
    head, tail = draw(st.sampled_from(HEADS)), draw(st.sampled_from(TAILS))
    if "version" in head and "version" in tail:
        tail = ""
    entries = [
        one.format(n=n) for n, one in enumerate(draw(st.lists(st.sampled_from(ENTRIES), min_size=2, max_size=4)))
    ]
    indent = " " * draw(st.sampled_from([0, 2, 4]))
    body = "".join(indent + line if line.strip() else line for line in "".join(entries).splitlines(keepends=True))
    text = f"{head}queries:{draw(st.sampled_from(['', ' # c', ' &all', ' !!seq']))}\n{body}{tail}"
    return text.replace("\n", draw(st.sampled_from(["\n", "\r\n"])))


def changed(testset: TestSet, how: str, text: str) -> TestSet:
    if how == "split":
        return with_split(testset, split(testset, share=0.5, by=()), TODAY)
    if how == "new":
        return added(testset, Addition("new", text, {"k": "v"}, grades={"z": 1}), TODAY)
    query_id = testset.query_ids[-1]
    if testset.targets.get(query_id):
        return added(testset, Addition(query_id, targets=[File("f: #x")]), TODAY)
    return added(testset, Addition(query_id, grades={"z z": 2}), TODAY)


@settings(max_examples=min(40, settings().max_examples), deadline=None)
@given(sets(), st.sampled_from(["split", "new", "old"]), st.sampled_from(TEXTS))
def test_what_is_written_reads_back_as_what_was_meant(written: str, how: str, text: str) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "set.yaml"
        path.write_bytes(written.encode())
        meant = changed(read_stored(path), how, text)
        save(meant, path)
        again = read_stored(path)
        names = [field.name for field in fields(TestSet) if field.compare and field.name != "notes"]
        assert {name: getattr(again, name) for name in names} == {name: getattr(meant, name) for name in names}
