"""Located data: what scalars mean, where things stand, and what pydantic's complaints become."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, field_validator

from cranfield.base.errors import ConfigError, ProblemList
from cranfield.formats.io.json_text import parse_json
from cranfield.formats.io.located import Located, load_located
from cranfield.formats.io.tree import Node, plain_number, sourced
from cranfield.formats.io.validation import validate
from cranfield.formats.io.yaml_text import parse_yaml, yaml_text
from cranfield.model.kinds import PlainScalar, Text, UnfitError


def located(tmp_path: Path, text: str, name: str = "c.yaml") -> Located:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8", newline="")
    return load_located(path, ConfigError)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("false", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("1", 1),
        ("-3", -3),
        ("+3", 3),
        ("007", 7),  # no octal
        ("1.5", 1.5),
        ("-.5", -0.5),
        ("1.", 1.0),
        ("1e3", 1000.0),
        (".inf", float("inf")),
        ("-.inf", float("-inf")),
        # all else is text
        ("no", "no"),
        ("yes", "yes"),
        ("on", "on"),
        ("True", "True"),
        ("NULL", "NULL"),
        ("0o17", "0o17"),
        ("0x1F", "0x1F"),
        ("0b11", "0b11"),
        ("1_000", "1_000"),
        ("12:30:45", "12:30:45"),
        ("2026-11-21", "2026-11-21"),
        ("=", "="),
        ("inf", "inf"),
        ("1e", "1e"),
        ("9" * 301, "9" * 301),
        # quoted, it is always text
        ('"1"', "1"),
        ("'true'", "true"),
        ("''", ""),
        # tags say what YAML 1.2 lets them say
        ("!!str 1", "1"),
        ("!!float 1", 1.0),
        ("!!int 007", 7),
        ("!!seq [a]", ["a"]),
        ("!!map {a: b}", {"a": "b"}),
    ],
)
def test_only_true_false_null_and_numbers_are_special(tmp_path: Path, text: str, value: object) -> None:
    data = sourced(located(tmp_path, f"a: {text}\n").root)
    assert data == {"a": value}
    assert type(plain_number(data["a"])) is type(value)


def test_keys_are_text_as_they_are_written(tmp_path: Path) -> None:
    assert sourced(located(tmp_path, "007: a\n1.10: b\ntrue: c\n~: d\n").root) == {
        "007": "a",
        "1.10": "b",
        "true": "c",
        "~": "d",
    }


def test_aliases_repeat_a_value(tmp_path: Path) -> None:
    data = sourced(located(tmp_path, "a: &x {k: [1, &y 2]}\nb: *x\nc: *y\n").root)
    assert data == {"a": {"k": [1, 2]}, "b": {"k": [1, 2]}, "c": 2}


def test_an_anchor_may_be_named_anew(tmp_path: Path) -> None:
    assert sourced(located(tmp_path, "a: &x 1\nb: *x\nc: &x 2\nd: *x\n").root) == {"a": 1, "b": 1, "c": 2, "d": 2}


PLACES = """\
name: n
systems:
  old:
    command: [bin, "{query}"]
    empty:
  new:
    - x
    - {y: 1,
       "z": 2}
"""


@pytest.mark.parametrize("loader", ["C", "Python"])
@pytest.mark.parametrize(
    ("loc", "key", "place"),
    [
        ((), False, (1, 1)),
        (("name",), False, (1, 7)),
        (("name",), True, (1, 1)),
        (("systems",), True, (2, 1)),
        (("systems",), False, (3, 3)),
        (("systems", "old", "command"), False, (4, 14)),
        (("systems", "old", "command", 1), False, (4, 20)),
        (("systems", "new", 0), False, (7, 7)),
        (("systems", "new", 1, "y"), False, (8, 11)),
        (("systems", "new", 1, "z"), True, (9, 8)),
        # what is not there has the place of its nearest ancestor
        (("systems", "old", "cwd"), False, (4, 5)),
        (("systems", "old", "command", 7), False, (4, 14)),
        (("systems", "old", "command", 1, "x"), False, (4, 20)),
        (("nothing", "at", "all"), False, (1, 1)),
        (("systems", 0), True, (3, 3)),
    ],
)
def test_every_key_and_value_has_its_line_and_column(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    loader: str,
    loc: tuple[str | int, ...],
    key: bool,
    place: tuple[int, int],
) -> None:
    if loader == "Python":
        monkeypatch.delattr(yaml, "CSafeLoader")
    assert located(tmp_path, PLACES).mark(loc, key=key) == place


def test_the_parser_in_python_stands_in_where_there_is_no_libyaml(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = sourced(located(tmp_path, PLACES).root)
    monkeypatch.delattr(yaml, "CSafeLoader")
    assert sourced(located(tmp_path, PLACES).root) == data
    with pytest.raises(ConfigError, match=r"c\.yaml:1:5: not valid YAML: mapping values are not allowed"):
        located(tmp_path, "a: b: c\n")
    with pytest.raises(ConfigError, match="nested more than 64 levels deep"):
        located(tmp_path, "a: " + "[" * 1000)


def test_json_has_the_same_places_as_the_same_text_read_as_yaml() -> None:
    text = '{\n  "a": [1, 2.50, "x"],\n  "b": {"c": null, "d": true}\n}'
    as_json, as_yaml = parse_json(text), parse_yaml(text)
    assert sourced(as_json) == sourced(as_yaml) == {"a": [1, 2.5, "x"], "b": {"c": None, "d": True}}

    def places(node: Node) -> Any:
        if isinstance(node.value, dict):
            return node.line, node.column, node.keys, {key: places(child) for key, child in node.value.items()}
        if isinstance(node.value, list):
            return node.line, node.column, [places(child) for child in node.value]
        return node.line, node.column

    assert places(as_json) == places(as_yaml)


@pytest.mark.parametrize("name", ["c.json", "c.yaml"])
def test_json_that_yaml_refuses_is_read_as_json(tmp_path: Path, name: str) -> None:
    text = '{\t"pair": "\\ud83d\\ude00",\n\t"slash": "\\/", "lone": "\\ud800", "u": "\x7f"}'
    with pytest.raises(Exception, match=r"not valid|control"):
        parse_yaml(text)
    assert sourced(located(tmp_path, text, name).root) == {
        "pair": "\U0001f600",
        "slash": "/",
        "lone": "\ud800",
        "u": "\x7f",
    }


def test_yaml_in_braces_is_read_as_yaml_unless_the_name_says_json(tmp_path: Path) -> None:
    assert sourced(located(tmp_path, "{a: 1, b: [x, ],}").root) == {"a": 1, "b": ["x"]}
    with pytest.raises(ConfigError, match="not valid JSON"):
        located(tmp_path, "{a: 1}", "c.json")


def test_a_byte_order_mark_is_no_character(tmp_path: Path) -> None:
    file = located(tmp_path, "\ufeffa: 1\n")
    assert sourced(file.root) == {"a": 1}
    assert file.mark(("a",)) == (1, 4)


@given(st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=15,
))  # fmt: skip
def test_json_text_reads_as_the_standard_library_reads_it(value: object) -> None:
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False, indent=1)):
        assert sourced(parse_json(text)) == json.loads(text)


yaml_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=4)
    ),
    max_leaves=15,
)


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), yaml_values, max_size=4))
def test_what_is_written_as_yaml_is_read_as_it_was(data: dict[str, Any]) -> None:
    assert sourced(parse_yaml(yaml_text(data))) == data


@given(st.sampled_from(["a", "a b", "1.10", "no", "x\ny", "x\ny\n", " x", "x \ny", "\n\nx", "x\n\n", "é\x85", "- a", "# a", "{query}", "a: b", "\t", "x\u2028y", "x\ry"]))  # fmt: skip
def test_odd_texts_are_written_as_they_are_read(text: str) -> None:
    data = {"a": text, "b": [text, {text: text}]}
    assert sourced(parse_yaml(yaml_text(data))) == data


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    kind: Literal["part"]
    size: Annotated[int, Field(gt=0, le=9)] = 1


class Other(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    kind: Literal["other"]
    label: Annotated[str, Field(min_length=2, max_length=3)] = "xx"


class Model(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    id: Text = ""
    share: Annotated[float, Field(ge=0, lt=1)] = 0
    words: list[str] = []
    pair: Annotated[list[int], Field(max_length=2, min_length=2)] = [1, 2]
    part: Part | None = None
    either: Part | Other | None = None
    chosen: Annotated[Part | Other, Field(discriminator="kind")] | None = None
    mixed: list[Part | str] = []
    named: dict[str, Part] = {}
    json_: str | None = Field(default=None, alias="json")
    code: Annotated[str, Field(pattern="^[a-z]+$")] = "a"
    flag: bool = False
    even: int = 0
    spelled: str = ""
    values: dict[str, PlainScalar] = {}

    @field_validator("even")
    @classmethod
    def is_even(cls, value: int) -> int:
        if value % 2:
            raise ValueError("is odd")
        return value

    @field_validator("spelled")
    @classmethod
    def is_spelled(cls, value: str) -> str:
        if value:
            raise UnfitError("is misspelt", expected="b", got="a", hint="spell it")
        return value


def problems_of(tmp_path: Path, text: str) -> list[str]:
    problems = ProblemList(ConfigError)
    file = located(tmp_path, text)
    assert validate(file, Model, problems) is None
    return [str(problem).removeprefix(str(file.path)) for problem in problems.problems]


KEYS = "chosen, code, either, even, flag"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("share: a", ":1:8: wrong value for share; expected a number, got 'a'."),
        ("share: 1", ":1:8: wrong value for share; expected less than 1, got 1."),
        ("share: -0.50", ":1:8: wrong value for share; expected 0 or more, got -0.50."),
        ("share: '0.5'", ":1:8: wrong value for share; expected a number, got '0.5'."),
        ("words: a", ":1:8: wrong value for words; expected a list, got 'a'."),
        ("words: [a, 1, null]", ":1:12: wrong value for words[1]; expected text, got 1."),
        ("pair: [1]", ":1:7: wrong value for pair; expected 2 or more entries, got a list of 1."),
        ("pair: [1, 2, 3]", ":1:7: wrong value for pair; expected 2 or fewer entries, got a list of 3."),
        ("pair: [1, 1.0]", ":1:11: wrong value for pair[1]; expected a whole number, got 1.0."),
        ("flag: yes", ":1:7: wrong value for flag; expected true or false, got 'yes'."),
        ("code: A1", ":1:7: wrong value for code; expected text like ^[a-z]+$, got 'A1'."),
        ("even: 3", ":1:7: even: is odd."),
        ("spelled: x", ":1:10: spelled is misspelt; expected b, got a.\nHint: spell it."),
        ("part: {}", ":1:7: missing key 'kind' in part."),
        ("part: {kind: part, size: 0}", ":1:26: wrong value for part.size; expected more than 0, got 0."),
        ("part: {kind: part, size: 10}", ":1:26: wrong value for part.size; expected 9 or less, got 10."),
        ("part: {kind: part, sise: 1}", ":1:20: unknown key 'sise'; expected kind, size.\nHint: did you mean size?"),
        ("either: 3", ":1:9: wrong value for either; expected keys with values, got 3."),
        ("either: {kind: neither}", ":1:16: wrong value for either.kind; expected 'part' or 'other', got 'neither'."),
        (
            "chosen: {kind: other, label: x, size: 1}",
            ":1:30: wrong value for chosen.label; expected 2 characters or more, got 'x'.",
        ),
        (
            "chosen: {kind: other, labl: xx}",
            ":1:23: unknown key 'labl'; expected kind, label.\nHint: did you mean label?",
        ),
        (
            "chosen: {kind: neither}",
            ":1:9: wrong value for chosen; expected 'part', 'other', got keys with values (1).",
        ),
        ("chosen: {}", ":1:9: missing key 'kind' in chosen."),
        ("mixed: [1]", ":1:9: wrong value for mixed[0]; expected keys with values or text, got 1."),
        ("mixed: [{kind: part, size: x}]", ":1:28: wrong value for mixed[0].size; expected a whole number, got 'x'."),
        ("named: {a: {kind: part, size: x}}", ":1:31: wrong value for named.a.size; expected a whole number, got 'x'."),
        ("named: {a b: 1}", ":1:14: wrong value for named['a b']; expected keys with values, got 1."),
        ("json: 1", ":1:7: wrong value for json; expected text, got 1."),
        ("id: [1]", ":1:5: wrong value for id; expected text, got a list of 1."),
        (
            "values: {a: {}}",
            ":1:13: wrong value for values.a; expected text or a number or true or false, got an empty mapping.",
        ),
    ],
)
def test_pydantics_complaints_are_said_in_plain_words(tmp_path: Path, text: str, expected: str) -> None:
    assert problems_of(tmp_path, text)[0] == expected


def test_a_complaint_names_keys_by_their_alias(tmp_path: Path) -> None:
    (problem,) = problems_of(tmp_path, "jsom: x")
    assert "Hint: did you mean json?" in problem


def test_every_complaint_is_told_and_none_twice(tmp_path: Path) -> None:
    text = "share: a\nflag: 1\neither: {kind: part, size: 0}\nmixed: [{kind: x}, 3]\n"
    assert sorted(problem.split(";")[0] for problem in problems_of(tmp_path, text)) == [
        ":1:8: wrong value for share",
        ":2:7: wrong value for flag",
        ":3:16: wrong value for either.kind",  # it is no Other
        ":3:22: unknown key 'size'",  # which an Other has not
        ":3:28: wrong value for either.size",  # nor a good Part
        ":4:16: wrong value for mixed[0].kind",
        ":4:20: wrong value for mixed[1]",
    ]


def test_text_fields_keep_the_source_of_what_looks_like_a_number(tmp_path: Path) -> None:
    for source in ("007", "1.10", "1e5", "true", "+1", "0x1F", "-.5", ".inf", "1."):
        model = validate(located(tmp_path, f"id: {source}"), Model, ProblemList(ConfigError))
        assert model is not None
        assert model.id == source


def test_scalars_that_are_more_than_their_value_are_text(tmp_path: Path) -> None:
    text = "values: {a: 3.10, b: 3.1, c: 007, d: 7, e: true, f: 1e5, g: '3.1', h: x}"
    model = validate(located(tmp_path, text), Model, ProblemList(ConfigError))
    assert model is not None
    expected = {"a": "3.10", "b": 3.1, "c": "007", "d": 7, "e": True, "f": "1e5", "g": "3.1", "h": "x"}
    assert model.values == expected
    assert [type(value) for value in model.values.values()] == [type(value) for value in expected.values()]
