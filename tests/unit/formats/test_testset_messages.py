"""Every problem of a test set in YAML or JSON, in the very words people see."""

from __future__ import annotations

from pathlib import Path

import pytest

from cranfield.base.errors import TestSetError
from cranfield.formats.testsets.native import read_testset_yaml

HEAD = "cranfield_testset: 1\nname: n\nqueries:\n"
GOOD = HEAD + "  - {id: q1, text: t, judgments: {d: 1}}\n"
KEYS = (
    "classes, consensus, cranfield_testset, databases, description, grouping, matching, meta, name, queries, sources, "
    "version"
)
QUERY_KEYS = "one of 27 keys"
NO_JUDGMENTS = (
    ":4:5: queries[0] has no judgments.\nHint: add `judgments: {document id: grade}`, `patterns` on the id, spans, "
    "entities or files; or `negative: true` where nothing should be found."
)


def query(text: str) -> str:
    return f"{HEAD}  - {{id: q1, {text}}}\n"


def pattern(text: str) -> str:
    return query(f"text: t, patterns: [{{{text}}}]")


# (what is in the file, the message after the path). Places are counted by hand: line 4 of a test set is its query.
TESTSET_MESSAGES: dict[str, tuple[str | bytes, str]] = {
    # the file as YAML
    "empty": ("", ": the file is empty."),
    "blank": (" \n\n", ": the file is empty."),
    "comments only": ("# nothing\n", ": the file contains only comments."),
    "not UTF-8": (b"name: a\nx: \xff\n", ":2: not UTF-8: byte 0xff at offset 11.\nHint: save the file as UTF-8."),
    "not UTF-8 after a byte order mark": (
        b"\xef\xbb\xbfa: \xe9",
        ":1: not UTF-8: byte 0xe9 at offset 6.\nHint: save the file as UTF-8.",
    ),
    "UTF-16": (
        "a: 1".encode("utf-16"),
        ": this is UTF-16 text; expected UTF-8.\nHint: save it as UTF-8; `iconv -f UTF-16 -t UTF-8 FILE > NEW` does it.",
    ),
    "control character": ("a: 1\nb: x\0\n", ":2:5: control character U+0000."),
    "top-level list": ("- a\n", ":1:1: a list at the top of the file; expected keys with values, as `name: …`."),
    "top-level text": ("a\n", ":1:1: 'a' at the top of the file; expected keys with values, as `name: …`."),
    "top-level nothing": ("~\n", ":1:1: nothing at the top of the file; expected keys with values, as `name: …`."),
    "duplicate keys": (
        "a: 1\nb: {c: 1,\n    c: 2}\na: 3\n",
        ":3:5: duplicate key 'c'; it also occurs on line 2.\n{path}:4:1: duplicate key 'a'; it also occurs on line 1.",
    ),
    "unclosed bracket": (
        "a: [1,\nb\n",
        ":3:1: not valid YAML: did not find expected ',' or ']' while parsing a flow sequence.",
    ),
    "tab": (
        "a:\n\t- b\n",
        (
            ":2:1: not valid YAML: found character that cannot start any token while scanning for the next token.\n"
            "Hint: indent with spaces, not tabs."
        ),
    ),
    "colon in text": (
        "a: b: c\n",
        (
            ":1:5: not valid YAML: mapping values are not allowed in this context.\n"
            "Hint: quote a text that contains a colon and a space."
        ),
    ),
    "two documents": ("a: 1\n---\nb: 1\n", ":2: a second document starts here; expected one document a file."),
    "a program as a tag": (
        "a: !!python/object/apply:os.getcwd []\n",
        ":1:4: the tag !!python/object/apply:os.getcwd is not supported.\nHint: leave it out.",
    ),
    "a tag of one's own": ("a: !x 1\n", ":1:4: the tag !x is not supported.\nHint: leave it out."),
    "a tag that does not fit": ("a: !!int x\n", ":1:4: the tag !!int does not fit 'x'."),
    "a list as a key": ("? [a]\n: 1\n", ":1:3: a list or mapping as a key; expected plain text."),
    "an alias as a key": ("a: &x 1\n*x : 2\n", ":2:1: an alias as a key; expected plain text."),
    "an anchor on a key": ("&x a: 1\n", ":1:1: an anchor as a key; expected plain text."),
    "an alias to itself": ("a: &x [*x]\n", ":1:8: the alias *x refers to a value that is not defined yet."),
    "nested too deep": ("a: " + "[" * 100_000, ":1:67: nested more than 64 levels deep."),
    "nested too deep through aliases": (
        # 40 levels named x, then x under 40 more
        "a: &x " + "[" * 40 + "]" * 40 + "\nb: " + "[" * 40 + "*x" + "]" * 40 + "\n",
        ":2:44: nested more than 64 levels deep.",
    ),
    "alias bomb": (
        # Each line repeats the one before ten times: 11 values, 111, 1 111, 11 111. Lines 2 to 4 repeat
        # 110 + 1 110 + 11 110 = 12 330; the eighth alias of line 5 makes it 12 330 + 8 * 11 111 = 101 218.
        "a0: &a0 [0,0,0,0,0,0,0,0,0,0]\n"
        + "".join(f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 9)),
        ":5:38: aliases repeat more than 100000 values.\nHint: write the values out.",
    ),
    # the file as a test set
    "no schema version": (
        "name: n\nqueries: [{id: q, text: t, judgments: {d: 1}}]\n",
        ":1:1: missing key 'cranfield_testset'.",
    ),
    "another schema version": (
        GOOD.replace("testset: 1", "testset: 2"),
        ":1:20: wrong value for cranfield_testset; expected 1, got 2.",
    ),
    "unknown key": (
        "verson: 1\n" + GOOD,
        f":1:1: unknown key 'verson'; expected {KEYS}.\nHint: did you mean version?",
    ),
    "merge key": (
        "<<: {}\n" + GOOD,
        f":1:1: unknown key '<<'; expected {KEYS}.\nHint: merge keys (<<) are not supported: write the keys out.",
    ),
    "no queries": ("cranfield_testset: 1\nname: n\nqueries: []\n", ":3:10: queries is empty."),
    "queries by name": (
        "cranfield_testset: 1\nname: n\nqueries: {q1: t}\n",
        ":3:10: wrong value for queries; expected a list, got keys with values (1).",
    ),
    "empty name": (GOOD.replace("name: n", 'name: ""'), ":2:7: name is empty."),
    "a query that is text": (
        HEAD + "  - q1\n",
        ":4:5: wrong value for queries[0]; expected keys with values, got 'q1'.",
    ),
    "no id": (HEAD + "  - {text: t, judgments: {d: 1}}\n", ":4:5: missing key 'id' in queries[0]."),
    "id of nothing": (
        HEAD + "  - {id: , text: t, judgments: {d: 1}}\n",
        ":4:10: wrong value for queries[0].id; expected text, got nothing.",
    ),
    "duplicate query id": (
        GOOD + "  - {id: q1, text: u, judgments: {d: 1}}\n",
        ":5:10: query id 'q1' is used twice; it also occurs on line 4.",
    ),
    "duplicate query id, spelled as a number and as text": (
        HEAD + "  - {id: 7, text: t, judgments: {d: 1}}\n" + '  - {id: "7", text: t, judgments: {d: 1}}\n',
        ":5:10: query id '7' is used twice; it also occurs on line 4.",
    ),
    "no text": (query("judgments: {d: 1}"), ":4:5: missing key 'text' in queries[0]."),
    "empty text": (query("text: ' ', judgments: {d: 1}"), ":4:20: queries[0].text is empty."),
    "NUL in text": (
        query('text: "a\\0", judgments: {d: 1}'),
        ":4:20: queries[0].text contains a NUL character.\nHint: a command line cannot contain one.",
    ),
    "NUL in a parameter": (
        query('text: t, params: {a: "\\0"}, judgments: {d: 1}'),
        ":4:35: queries[0].params.a contains a NUL character.\nHint: a command line cannot contain one.",
    ),
    "text that is a list": (
        query("text: [a, b], judgments: {d: 1}"),
        ":4:20: wrong value for queries[0].text; expected text, got a list of 2.",
    ),
    "unknown key of a query": (
        query("text: t, judgements: {d: 1}, judgments: {d: 1}"),
        f":4:23: unknown key 'judgements'; expected {QUERY_KEYS}.\nHint: did you mean judgments?",
    ),
    "both kinds of judgments": (
        query("text: t, judgments: {d: 1}, patterns: [{regex: a}]"),
        (
            ":4:42: queries[0] has both judgments and patterns; expected one of them.\n"
            "Hint: a pattern with ^ and $ matches one id."
        ),
    ),
    "no judgments": (
        query("text: t"),
        NO_JUDGMENTS,
    ),
    "empty judgments": (
        query("text: t, judgments: {}, patterns: []"),
        NO_JUDGMENTS,
    ),
    "a grade that is a word": (
        query("text: t, judgments: {a b: high}"),
        ":4:40: wrong value for queries[0].judgments['a b']; expected a number, got 'high'.",
    ),
    "a grade that is true": (
        query("text: t, judgments: {d: true}"),
        ":4:38: wrong value for queries[0].judgments.d; expected a number, got true.",
    ),
    "a grade that is not finite": (
        query("text: t, judgments: {d: .inf}"),
        ":4:38: wrong value for queries[0].judgments.d; expected a finite number, got .inf.",
    ),
    "a grade beyond floats": (
        query("text: t, judgments: {d: 1e999}"),
        ":4:38: wrong value for queries[0].judgments.d; expected a finite number, got 1e999.",
    ),
    "an empty document id": (query("text: t, judgments: {'': 1}"), ":4:35: queries[0].judgments[''] is empty."),
    "a document twice": (
        query("text: t, judgments: {d: 1, d: 2}"),
        ":4:41: duplicate key 'd'; it also occurs on line 4.",
    ),
    "a stratum that is a list": (
        query("text: t, strata: {class: [A]}, judgments: {d: 1}"),
        ":4:39: wrong value for queries[0].strata.class; expected text, got a list of 1.",
    ),
    "a parameter that is a list": (
        query("text: t, params: {a: []}, judgments: {d: 1}"),
        ":4:35: wrong value for queries[0].params.a; expected text or a number or true or false, got an empty list.",
    ),
    "a parameter name that is none": (
        query("text: t, params: {min-version: 1}, judgments: {d: 1}"),
        (
            ":4:32: queries[0].params.min-version is not a parameter name; "
            "expected letters, digits and underscores, no digit first.\nHint: commands ask for it as {params.NAME}."
        ),
    ),
    "a regex that does not compile": (
        pattern("regex: 'ab(c'"),
        (
            ":4:42: queries[0].patterns[0].regex does not compile: "
            "missing ), unterminated subpattern at position 2; got 'ab(c'."
        ),
    ),
    "a regex that repeats too often": (
        pattern("regex: 'a{99999999999}'"),
        (
            ":4:42: queries[0].patterns[0].regex does not compile: "
            "the repetition number is too large; got 'a{99999999999}'."
        ),
    ),
    "an empty regex": (pattern("regex: ''"), ":4:42: queries[0].patterns[0].regex is empty."),
    "no regex": (pattern("grade: 1"), ":4:34: missing key 'regex' in queries[0].patterns[0]."),
    "unknown key of a pattern": (
        pattern("regex: a, garde: 1"),
        ":4:45: unknown key 'garde'; expected credit, expected_count, grade, regex.\nHint: did you mean grade?",
    ),
    "a pattern's grade that is text": (
        pattern("regex: a, grade: '1'"),
        ":4:52: wrong value for queries[0].patterns[0].grade; expected a number, got '1'.",
    ),
    "credit that is neither": (
        pattern("regex: a, credit: twice"),
        ":4:53: wrong value for queries[0].patterns[0].credit; expected 'once' or 'every', got 'twice'.",
    ),
    "credit once with a count": (
        pattern("regex: a, expected_count: 3"),
        (
            ":4:61: queries[0].patterns[0] is credited once but expects 3; expected an expected_count of 1, or none.\n"
            "Hint: `credit: every` credits each match."
        ),
    ),
    "a count under 1": (
        pattern("regex: a, credit: every, expected_count: 0"),
        ":4:76: wrong value for queries[0].patterns[0].expected_count; expected 1 or more, got 0.",
    ),
    "a count that is no whole number": (
        pattern("regex: a, credit: every, expected_count: 1.5"),
        ":4:76: wrong value for queries[0].patterns[0].expected_count; expected a whole number, got 1.5.",
    ),
}

JSON_MESSAGES: dict[str, tuple[str, str]] = {
    "comma at the end": (
        '{"a": 1,\n}',
        ":2:1: not valid JSON: no key here; expected a key in double quotes, got '}'.",
    ),
    "no comma": (
        '{"a": [1 2]}',
        ":1:10: not valid JSON: a comma or bracket is missing; expected `,` or `]`, got '2]}'.",
    ),
    "no colon": ('{"a" 1}', ":1:6: not valid JSON: no colon after the key; expected `:`, got '1}'."),
    "no value": ('{"a": }', ":1:7: not valid JSON: no value here; expected a value, got '}'."),
    "cut short": ('{"a": [', ":1:8: not valid JSON: no value here; expected a value, got the end of the file."),
    "NaN": ('{"a": NaN}', ":1:7: not valid JSON: no value here; expected a value, got 'NaN}'."),
    "an open string": (
        '{"a": "b',
        ":1:7: not valid JSON: a string that does not end or contains an invalid character; expected a string, got '\"b'.",
    ),
    "a bad escape": (
        '{"a": "\\x"}',
        ":1:8: not valid JSON: a string that does not end or contains an invalid character; expected a string, got '\\\\x\"}'.",
    ),
    "more text": (
        "{} {}",
        ":1:4: not valid JSON: text after the end of the value; expected the end of the file, got '{}'.",
    ),
    "a long number": (
        '{"a": ' + "9" * 301 + "}",
        (
            ":1:7: not valid JSON: a number of more than 300 characters; "
            "expected a shorter one, got '99999999999999999999'."
        ),
    ),
    "duplicate key": ('{"a": 1,\n "a": 2}', ":2:2: duplicate key 'a'; it also occurs on line 1."),
    "nested too deep": ('{"a": ' + "[" * 100_000, ":1:70: nested more than 64 levels deep."),
}


def put(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    return path


def message_of(path: Path) -> str:
    with pytest.raises(TestSetError) as caught:
        read_testset_yaml(path)
    return str(caught.value)


@pytest.mark.parametrize("name", TESTSET_MESSAGES)
def test_problems_of_a_test_set(tmp_path: Path, name: str) -> None:
    content, expected = TESTSET_MESSAGES[name]
    path = put(tmp_path / "set.yaml", content)
    assert message_of(path) == f"{path}{expected}".replace("{path}", str(path))


@pytest.mark.parametrize("name", JSON_MESSAGES)
def test_problems_of_json(tmp_path: Path, name: str) -> None:
    content, expected = JSON_MESSAGES[name]
    path = put(tmp_path / "set.json", content)
    assert message_of(path) == f"{path}{expected}"
