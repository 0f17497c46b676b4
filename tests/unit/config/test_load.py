import pytest

from cranfield.base.errors import ConfigError
from cranfield.config import load_config
from cranfield.config.reading import ProbeCheck

SOUND = {"testset": "q.yaml", "command": '[x, "{query}"]', "extract": "{regex: 'd+'}"}


def one_system(
    top: str = "", inside: str = "", command: str = SOUND["command"], extract: str = SOUND["extract"]
) -> str:
    """A config of one system; its `inside` lines start at line 5 + lines of `top`."""
    lines = ["testset: q.yaml", *top.splitlines(), "systems:", "  old:", f"    command: {command}"]
    lines += [f"    extract: {extract}"] if extract else []
    return "\n".join([*lines, *(f"    {line}" for line in inside.splitlines())]) + "\n"


def test_the_whole_shape_is_read(load, example, tmp_path):
    config = load(example)
    old, new = config.systems["old"], config.systems["new"]
    assert (config.k, config.primary, config.margin, config.pair) == (10, "nDCG@10", 0.02, ("old", "new"))
    assert config.limits.max_failed_share == 0.1
    assert config.limits.min_judged_share is None
    assert old.command == ["bin/search", "{query}", "--limit", "{k}", "--min-ios", "{params.min_ios}"]
    assert old.env["LANG"].get_secret_value() == "C"
    assert old.preflight[-1] == ProbeCheck(probe="Hashable")
    assert new.command[3] == "1.10", "a number in a command is text as it was written"
    assert new.extract.json_ == "results[]"
    assert new.extract.fields == {"confidence": "meta.confidence"}
    assert (new.timeout_s, new.concurrency, new.order) == (30, 1, "descending")
    assert (config.folder, config.sets[""].path) == (tmp_path, "queries.yaml")


def test_what_is_left_out_has_the_defaults_of_the_design(load):
    config = load(one_system())
    assert (config.k, config.primary, config.convention, config.test, config.alpha, config.margin) == (
        None,  # as many as the deepest measure looks at, 10 or more
        None,  # the first of the measures, and by default that is nDCG@10
        "trec",
        "permutation",
        0.05,
        None,
    )
    assert config.measures is None
    assert config.systems["old"].timeout_s == 30
    assert config.pair is None


def test_paths_are_relative_to_the_file_wherever_it_is_loaded_from(load, tmp_path, monkeypatch):
    load(one_system())
    monkeypatch.chdir(tmp_path)
    assert load_config("cranfield.yaml").folder == tmp_path


def systems(*names: str, top: str = "") -> str:
    """A config of several systems, a line each; the first on line 3 + lines of `top`."""
    lines = "".join("  " + name + ": {command: [x, '{query}'], extract: {regex: d}}\n" for name in names)
    return "testset: q.yaml\n" + top + "systems:\n" + lines


@pytest.mark.parametrize(
    ("top", "pair"),
    [
        ("", ("b", "a")),
        ("baseline: a\n", ("a", "b")),
        ("baseline: b\n", ("b", "a")),
        ("candidate: b\n", ("a", "b")),
        ("baseline: a\ncandidate: b\n", ("a", "b")),
    ],
)
def test_of_two_systems_the_first_in_the_file_is_the_baseline_unless_said_otherwise(load, top, pair):
    assert load(systems("b", "a", top=top)).pair == pair


def sets(*lines: str) -> str:
    """A config of two systems and several test sets, a line each after `testsets:`, which is line 1; one is on its line."""
    return systems("old", "new").replace("testset: q.yaml", "testsets: {\n" + ",\n".join(lines) + "\n}")


def test_a_misspelt_test_set_is_one_problem_with_the_near_key(load):
    with pytest.raises(ConfigError) as caught:
        load(systems("a").replace("testset:", "testsett:"))
    (problem,) = caught.value.problems
    assert problem.message == "unknown key 'testsett'"
    assert problem.hint == "did you mean testset?"


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        # the top
        (one_system("kk: 3"), 2, "unknown key 'kk'"),
        (one_system("measure: [AP]"), 2, "did you mean measures?"),
        (one_system("k: 0"), 2, "expected 1 or more, got 0"),
        (one_system("k: true"), 2, "expected a whole number, got true"),
        (one_system("alpha: 1"), 2, "expected less than 1"),
        (one_system("alpha: .nan"), 2, "alpha"),
        (one_system("margin: 0"), 2, "expected more than 0"),
        (one_system("limits: {max_failed_share: 1.5}"), 2, "or less, got 1.5"),
        (one_system("measures: []"), 2, "measures is empty"),
        (one_system("convention: trek"), 2, "did you mean trec?"),
        (one_system("baseline: odl"), 2, "did you mean old?"),
        (systems("b", "a", top="baseline: a\ncandidate: a\n"), 3, "baseline and candidate are the same system"),
        ("testset: q\nsystems: {}\n", 2, "systems is empty"),
        (systems("a").removeprefix("testset: q.yaml\n"), 1, "exactly one of testset and testsets, got none"),
        # two kinds in one system: `got` is quoted although no `env` has a place of its own
        (one_system(inside="http: {url: 'http://x/{query}'}"), 4, "got command and http"),
        # several test sets
        (one_system("testsets: {a: {path: a.yaml}}"), 2, "exactly one of testset and testsets, got both"),
        (sets("a: {}"), 2, "missing key 'path' in testsets.a"),
        (sets("a: {path: a.yaml, kk: 1}"), 2, "unknown key 'kk'"),
        (sets("a: {path: a.yaml, k: 0}"), 2, "expected 1 or more, got 0"),
        (sets("a: {path: a.yaml, params: {1x: y}}"), 2, "is not a parameter name"),
        (sets("a: {path: a.yaml, params: {x: [1]}}"), 2, "params"),
        (sets("a: {path: a.yaml, systems: [odl]}"), 2, "did you mean old?"),
        (sets("a: {path: a.yaml, systems: [old, old]}"), 2, "a system against itself"),
        (sets("a: {path: a.yaml, systems: [old, new, old]}"), 2, "systems"),
        (sets("a/b: {path: a.yaml}"), 2, "wrong value for testsets"),
        (sets("report.md: {path: a.yaml}"), 2, "the name of the summary's file"),
        (sets(""), 1, "testsets is empty"),
        # the command
        (one_system(command='[x, "{qeury}"]'), 4, "did you mean query?"),
        (one_system(command='[x, "{Query}"]'), 4, "unknown placeholder 'Query'"),
        (one_system(command='[x, "{query}", "{param.ios}"]'), 4, "did you mean params.ios?"),
        (one_system(command='[x, "{params}", "{query}"]'), 4, "expected query, k, python, port, params.NAME"),
        (one_system(command="[x, y]"), 4, "no {query}"),
        (one_system(command='["{query}", "{query}"]'), 4, "the program itself cannot depend on the query"),
        (one_system(command='[" ", "{query}"]'), 4, "the program's name is blank"),
        (one_system(command="[]"), 4, "systems.old.command is empty"),
        (one_system(command="bin/search {query}"), 4, "expected a list"),
        # the system
        (one_system(inside="timeout_s: 0"), 6, "expected more than 0"),
        (one_system(inside="timeout_s: .inf"), 6, "timeout_s"),
        (one_system(inside="concurrency: 65"), 6, "expected 64 or less"),
        (one_system(inside="order: up"), 6, "'given', 'descending' or 'ascending'"),
        (one_system(inside="order: descending"), 6, "no score is extracted"),
        (one_system(inside="env: {'A=B': x}"), 6, "not the name of an environment variable"),
        (one_system(inside="empty: '('"), 6, "is not a regular expression"),
        (one_system(inside="empty: '.*'"), 6, "matches any output"),
        # extract
        (one_system(extract=""), 4, "missing key 'extract'"),
        (one_system(extract="{}"), 5, "exactly one of regex, json, jsonl, got none"),
        (one_system(extract="{regex: a, json: b}"), 5, "got regex and json"),
        (one_system(extract="{regex: '(?P<uri>x)'}"), 5, "none is `id`"),
        (one_system(extract="{regex: 'x*'}"), 5, "matches the empty text"),
        (one_system(extract="{regex: '['}"), 5, "is not a regular expression"),
        (one_system(extract="{regex: x, id: uri}"), 5, "(?P<id>...)"),
        (one_system(extract="{regex: x, fields: {a: '('}}"), 5, "extract.fields.a: is not a regular expression"),
        (one_system(extract="{json: 'a['}"), 5, "is not a JMESPath expression (character 3)"),
        (one_system(extract="{json: 'a[].uri'}"), 5, "silently drops results"),
        (one_system(extract="{json: 'a', id: 'x.'}"), 5, "extract.id: is not a JMESPath"),
        (one_system(extract="{json: 'a', fields: {n: 'lenth(@)'}}"), 5, "did you mean length?"),
        (one_system(extract="{jsonl: false}"), 5, "jsonl"),
        # preflight
        (one_system(inside="preflight:\n  - {}"), 7, "exactly one of binary, file, probe, every_answer, got none"),
        (one_system(inside="preflight:\n  - {every_answer: mode}"), 7, "'mode' is not a rule on a field of an answer"),
        (one_system(inside="preflight:\n  - {binary: x, probe: y}"), 7, "got binary and probe"),
        (one_system(inside="preflight:\n  - {binary: x, contains: y}"), 7, "contains can only be used with file"),
        (one_system(inside="preflight:\n  - {file: x, equals_json: {path: '[', value: 1}}"), 7, "equals_json.path"),
        # names
        (systems("old.log"), 3, "another run's log"),
        (systems("a b"), 3, "wrong value for systems"),
    ],
)
def test_a_problem_is_said_with_its_line(problems_of, text, line, said):
    problems = problems_of(text)
    assert [found for found, _ in problems] == [line]
    assert said in problems[0][1]


def test_three_systems_are_all_compared_unless_two_are_named(problems_of, load):
    assert load(systems("a", "b", "c")).pair is None
    assert load(systems("a", "b", "c", top="baseline: c\n")).pair is None
    assert load(systems("a", "b", "c", top="baseline: c\ncandidate: a\n")).pair == ("c", "a")
    said = problems_of(systems("a", "b", "c", top="candidate: a\n"))
    assert [(line, "a candidate without a baseline, and the config has 3 systems" in text) for line, text in said] == [
        (2, True)
    ]


def test_names_that_one_file_system_takes_for_the_same_are_refused(problems_of):
    said = problems_of(systems("a", "b", "A", top="baseline: a\ncandidate: b\n"))
    assert [(line, "differ only in upper and lower case" in text) for line, text in said] == [(7, True)]


def test_all_problems_of_all_kinds_come_at_once_in_the_order_of_the_lines(problems_of):
    text = r"""testset: q.yaml
k: 0
convention: trek
systems:
  old:
    command: [x, "{qeury}"]
    timeout_s: soon
    extract: {regex: '('}
  new:
    command: [x, "{query}"]
    extract: {json: 'r[', idd: a}
    preflight: [{probe: x, file: y}]
"""
    assert [line for line, _ in problems_of(text)] == [2, 3, 6, 7, 8, 11, 11, 12]


def test_names_in_one_block_are_looked_up_although_another_is_wrong(problems_of):
    """Measures, tests and names of systems and test sets stand in tables that do not depend on the broken system."""
    text = """testsets: {a: {path: a, systems: [odl], measures: [nDGC@10]}}
primary: P@0
test: permutaton
baseline: olf
gate:
  system: odl
  rules:
    - floor: {measure: RRR, at_least: 1}
    - {failures: {at_most: 0}, testsets: [b]}
systems:
  old: {command: [x, "{query}"], extract: {regex: "("}, timeout_s: soon}
  mix: {fusion: {of: [old, nwe]}}
  two: {fusion: {of: [old, old]}}
"""
    problems = problems_of(text)
    assert [line for line, _ in problems] == [1, 1, 2, 3, 4, 6, 8, 9, 11, 11, 12, 13], problems
    assert "did you mean permutation?" in problems[3][1]


@pytest.mark.parametrize(
    "inside",
    [
        "env: hunter2-token",
        "env: [TOKEN=hunter2-token]",
        "env: [hunter2-token]",
        "env: {TOKEN: [hunter2-token]}",
        "env: {TOKEN: {a: hunter2-token}}",
        "env: {'A=': hunter2-token}",
        "enviro: {TOKEN: hunter2-token}",
        "environment: hunter2-token",
        "env: {TOKEN: hunter2-token}\ntimeout_s: 0",
        "env: {TOKEN: hunter2-token}\norder: descending",
        "env: {TOKEN: hunter2-token}\nenv: {TOKEN: hunter2-token}",
        'env: {TOKEN: "hunter2-token}',
        'env: {TOKEN: "hunter2-token\\0"}',
    ],
)
def test_no_value_of_the_environment_is_ever_in_a_message(load, inside):
    with pytest.raises(ConfigError) as caught:
        load(one_system(inside=inside))
    assert "hunter2" not in str(caught.value)
    assert "hunter2" not in repr(caught.value)


def test_a_config_prints_without_its_secrets(load):
    config = load(one_system(inside="env: {TOKEN: hunter2-token}"))
    assert "hunter2" not in repr(config) + str(config) + config.model_dump_json()


def test_a_missing_file_is_an_error_with_its_name(tmp_path):
    with pytest.raises(ConfigError, match="no such file"):
        load_config(tmp_path / "none.yaml")


SEVERAL = """\
testsets:
  code: {path: code.yaml, params: {mode: code, depth: 2, strict: true}}
  docs: {path: docs.yaml, params: {mode: docs}, k: 20, measures: [RR], systems: [new], repo: ../other}
k: 5
measures: [AP, P@1]
primary: P@1
repo: ..
systems:
  old: {command: [x, "{query}"], extract: {regex: d}}
  new: {command: [x, "{query}"], extract: {regex: d}}
"""


def test_a_set_of_several_has_what_the_top_says_where_it_says_nothing(load):
    config = load(SEVERAL)
    code, docs = config.sets["code"], config.sets["docs"]
    assert code.params == {"mode": "code", "depth": 2, "strict": True}
    assert (code.path, code.k, code.measures, code.primary, code.systems, code.repo) == (
        "code.yaml",
        5,
        ["AP", "P@1"],
        "P@1",
        None,
        "..",
    )
    # The primary measure of the top is not among the set's own: the first of these decides.
    assert (docs.path, docs.k, docs.measures, docs.primary, docs.systems, docs.repo) == (
        "docs.yaml",
        20,
        ["RR"],
        None,
        ["new"],
        "../other",
    )


def test_one_test_set_alone_has_no_name_and_all_that_the_top_says(load):
    config = load(one_system("k: 7\nprimary: AP\nrepo: code"))
    assert [(name, one.k, one.primary, one.repo) for name, one in config.sets.items()] == [("", 7, "AP", "code")]


def test_sets_whose_names_one_file_system_takes_for_the_same_are_refused(problems_of):
    said = problems_of(sets("docs: {path: a}", "Docs: {path: b}"))
    assert [(line, "testsets docs and Docs differ only" in text) for line, text in said] == [(3, True)]


def test_a_set_can_name_its_systems_out_of_many(load):
    text = systems("a", "b", "c").replace("testset: q.yaml", "testsets: {x: {path: x, systems: [a, c]}, y: {path: y}}")
    config = load(text)
    assert config.sets["x"].systems == ["a", "c"]
    assert config.sets["y"].systems is None


def test_problems_of_several_sets_are_said_at_once_beside_all_else(problems_of):
    """A wrong value in one set, an unknown name in another, and a system that cannot be."""
    text = sets("a: {path: a, k: 0}", "report.html: {path: b}").replace("command: [x, '{query}']", "command: [x]", 1)
    assert [(line, said.split(": ", 1)[1][:30]) for line, said in problems_of(text)] == [
        (2, "wrong value for testsets.a.k; "),
        (3, "testsets['report.html']: repor"),
        (6, "systems.old.command: no {query"),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"testset": "q.yaml", "systems": {"a": {"python": "\\ud800"}}}', r"got \ud800"),
        (
            "testset: q.yaml\nsystems: {a: {command: [x], depends: [{b: 1}]}}",
            "missing key in systems.a.depends",
        ),
        (
            "testset: q.yaml\nsystems: {a: {command: [x], depends: [{command: [y], depends: [z]}]}}",
            "unknown key 'depends'",
        ),
        ("testset: q.yaml\nbaseline: a\ncandidate: b\nsystems: 4", "wrong value for systems"),
    ],
)
def test_random_changes_that_once_ended_in_a_traceback(tmp_path, text, message):
    path = tmp_path / "cranfield.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    assert message in str(caught.value)
    assert all(problem.path == str(path) for problem in caught.value.problems)


@pytest.mark.parametrize(
    ("key", "place"),
    [
        ('testset: "q\\0.yaml"', "testset"),
        ('systems: {old: {run: "a\\0.run"}}', "systems.old.run"),
        ('systems: {old: {command: [a, "{query}\\0"], extract: {json: x}}}', "systems.old.command[1]"),
        ('gate: {baseline: "\\0.json", rules: [failures: {at_most: 0}]}', "gate.baseline"),
    ],
)
def test_a_text_with_a_null_character_is_a_problem_at_its_place(problems_of, key, place):
    base = {"testset": "testset: q.yaml", "systems": "systems: {old: {run: a.run}}"}
    text = "\n".join((base | {key.partition(":")[0]: key}).values())
    assert [said.partition(": ")[2].partition("; ")[0] for _, said in problems_of(text)] == [
        f"{place}: the text has the character U+0000"
    ]


def test_where_no_kind_is_named_the_unknown_keys_are(tmp_path):
    path = tmp_path / "cranfield.yaml"
    path.write_text('testset: s\nsystems: {a: {command: [echo, "{query}"], extract: {lines: true, id: x}}}\n')
    with pytest.raises(
        ConfigError, match=r"expected exactly one of regex, json, jsonl, got none, and the unknown key lines\."
    ):
        load_config(path)
