"""What makes kept answers those of another system: every key of the config, and everything that it depends on."""

import os
from pathlib import Path

import pytest

from cranfield.config import load_config, system_config
from cranfield.config.systems import CommandConfig
from cranfield.model import Answer, CallLog, Outcome
from cranfield.systems import CommandSystem, build_systems
from cranfield.systems.collect import dependencies as cache_module
from cranfield.systems.collect.cache import cache_key
from cranfield.systems.collect.dependencies import UndigestedError, dependency_digest

SAME = {"testset": "sha256:t", "k": 10, "repeats": 1, "pilot": False}

CONFIG = """
testset: queries.yaml
baseline: lexical
candidate: dense
systems:
  lexical:
    command: [./search, --index, index.db, "{query}"]
    extract: {regex: 'd\\d+'}
  dense:
    http:
      url: http://127.0.0.1:1/search
      headers: {Authorization: "Bearer {env.TOKEN}"}
      json: {q: "{query}"}
    extract: {json: hits, id: id}
  both:
    fusion: {of: [lexical, dense]}
"""


@pytest.fixture
def folder(tmp_path):
    """A folder with a config, and what its systems need."""
    (tmp_path / "cranfield.yaml").write_text(CONFIG, encoding="utf-8")
    (tmp_path / "search").write_text("#!/bin/sh\necho d1\n", encoding="utf-8")
    (tmp_path / "index.db").write_text("one", encoding="utf-8")
    return tmp_path


@pytest.fixture
def keys(folder, monkeypatch):
    """The key of each system of the config as it is now."""
    monkeypatch.setenv("TOKEN", "hunter2")

    def _keys(params=None, **changed):
        systems = build_systems(load_config(folder / "cranfield.yaml"), params=params or {})
        return {system.name: cache_key(system, dependency_digest(system), {**SAME, **changed}) for system in systems}

    return _keys


def changed_by(before, after):
    assert before.keys() == after.keys()
    return {name for name in before if before[name] != after[name]}


ALL = {"lexical", "dense", "both"}


def test_a_key_is_the_same_as_long_as_nothing_changes_and_says_nothing(keys):
    assert keys() == keys()
    assert all(len(key) == 64 and set(key) <= set("0123456789abcdef") for key in keys().values())
    assert len(set(keys().values())) == 3


@pytest.mark.parametrize(
    "rewritten",
    [
        lambda text: f"# a comment\n{text}",
        lambda text: text.replace("    command:", "\n    # what is run\n    command:   "),
        lambda text: text.replace("[./search, --index, index.db", '["./search", "--index", "index.db"'),
        lambda text: text.replace("\n", "\r\n"),
    ],
)
def test_comments_blanks_and_quotes_in_the_config_change_nothing(keys, folder, rewritten):
    before = keys()
    (folder / "cranfield.yaml").write_bytes(rewritten(CONFIG).encode())
    assert changed_by(before, keys()) == set()


@pytest.mark.parametrize(
    ("old", "new", "whose"),
    [
        ("--index, index.db,", "--index, index.db, --fast,", {"lexical", "both"}),
        (r"'d\d+'", r"'d\d'", {"lexical", "both"}),
        ("q: ", "text: ", {"dense", "both"}),
        ("{of: [lexical, dense]}", "{of: [lexical, dense], rrf_k: 20}", {"both"}),
        ("{of: [lexical, dense]}", "{of: [dense, lexical]}", {"both"}),
    ],
)
def test_a_changed_config_changes_the_key_of_the_system_and_of_the_fusions_it_is_part_of(keys, folder, old, new, whose):
    before = keys()
    assert CONFIG.count(old) == 1
    (folder / "cranfield.yaml").write_text(CONFIG.replace(old, new), encoding="utf-8")
    assert changed_by(before, keys()) == whose


@pytest.mark.parametrize(
    "changed", [{"testset": "sha256:u"}, {"k": 11}, {"repeats": 2}, {"pilot": True}, {"params": {"platform": "ios"}}]
)
def test_another_test_set_k_number_of_repeats_pilot_or_param_of_the_set_is_another_key(keys, changed):
    assert changed_by(keys(), keys(**changed)) == ALL


def test_the_content_of_a_file_that_a_command_names_counts_and_not_its_times(keys, folder):
    before = keys()
    os.utime(folder / "index.db", (1, 1))
    assert changed_by(before, keys()) == set()
    (folder / "index.db").write_text("two", encoding="utf-8")
    assert changed_by(before, keys()) == {"lexical", "both"}


def test_a_program_that_was_built_again_is_another_system(keys, folder):
    before = keys()
    (folder / "search").write_text("#!/bin/sh\necho d2\n", encoding="utf-8")
    assert changed_by(before, keys()) == {"lexical", "both"}


def test_the_value_of_a_variable_that_a_request_holds_counts_and_no_other(keys, monkeypatch):
    before = keys()
    monkeypatch.setenv("UNRELATED", "x")
    assert changed_by(before, keys()) == set()
    for change in (lambda: monkeypatch.setenv("TOKEN", "hunter3"), lambda: monkeypatch.delenv("TOKEN")):
        now = keys()
        change()
        assert changed_by(now, keys()) == {"dense", "both"}


def test_a_config_in_another_folder_is_another_system(keys, folder, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    for name in ("cranfield.yaml", "search", "index.db"):
        (other / name).write_bytes((folder / name).read_bytes())
    there = {
        system.name: cache_key(system, dependency_digest(system), SAME)
        for system in build_systems(load_config(other / "cranfield.yaml"))
    }
    assert changed_by(keys(), there) == ALL


CHANGED = {
    "command": ["other", "{query}"],
    "cwd": "sub",
    "env": {"A": "b"},
    "before": ["true"],
    "serve": {"command": ["server"]},
    "after": ["true"],
    "params": {"platform": "ios"},
    "components": ["bm25", "dense"],
    "timeout_s": 29.0,
    "concurrency": 2,
    "rate_per_s": 5.0,
    "retries": 1,
    "backoff_s": 0.25,
    "explain": True,
    "order": "descending",
    "extract": {"regex": "b"},
    "empty": "^none",
    "depends": ["there.txt"],
    "preflight": [{"file": "there.txt"}],
}


def test_every_key_of_a_system_is_tried_here():
    assert set(CHANGED) == set(CommandConfig.model_fields)


@pytest.mark.parametrize("field", CHANGED)
def test_every_key_of_a_system_is_part_of_what_it_is(tmp_path, field):
    (tmp_path / "sub").mkdir()
    (tmp_path / "there.txt").write_text("x", encoding="utf-8")
    written = {"command": ["program", "{query}"], "extract": {"regex": r"(?P<id>a)(?P<score>\d)"}}
    one, other = (
        CommandSystem("sut", system_config("sut", config), tmp_path)
        for config in (written, {**written, field: CHANGED[field]})
    )
    assert cache_key(one, dependency_digest(one), SAME) != cache_key(other, dependency_digest(other), SAME)


def test_two_systems_of_one_config_are_two_systems(tmp_path):
    config = system_config("sut", {"command": ["program", "{query}"], "extract": {"regex": "a"}})
    one, other = (CommandSystem(name, config, tmp_path) for name in ("a", "b"))
    assert cache_key(one, dependency_digest(one), SAME) != cache_key(other, dependency_digest(other), SAME)


class Depending:
    """A system in code that says what it depends on."""

    name = "sut"
    order = "given"
    concurrency = 1
    config_digest = "sha256:code"

    def __init__(self, *paths):
        self._paths = paths

    def public_config(self):
        return {}

    def depends_on(self):
        return iter(self._paths)

    def search(self, query, k):
        return Answer(Outcome.EMPTY), CallLog(1.0)


@pytest.fixture
def tree(tmp_path):
    """A folder with files in it and in a folder below."""
    root = tmp_path / "index"
    (root / "deep").mkdir(parents=True)
    (root / "a.txt").write_text("a", encoding="utf-8")
    (root / "deep" / "b.txt").write_text("b", encoding="utf-8")
    return root


def write(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    "change",
    [
        lambda root: write(root / "deep" / "b.txt", "c"),
        lambda root: write(root / "new.txt", ""),
        lambda root: (root / "a.txt").rename(root / "c.txt"),
        lambda root: (root / "a.txt").unlink(),
        lambda root: (root / "empty").mkdir(),
        lambda root: (root / "link").symlink_to("a.txt"),
        lambda root: root.rename(root.with_name("gone")),
    ],
)
def test_whatever_changes_in_a_folder_is_seen(tree, change):
    before = dependency_digest(Depending(tree))
    assert dependency_digest(Depending(tree)) == before
    change(tree)
    assert dependency_digest(Depending(tree)) != before


def test_what_python_and_cranfield_write_themselves_is_passed_over(tree):
    before = dependency_digest(Depending(tree))
    write(tree / "__pycache__" / "a.pyc", "compiled")
    write(tree / ".cranfield" / "x.jsonl", "answers")
    assert dependency_digest(Depending(tree)) == before


def test_a_link_is_followed_to_what_the_system_would_read_but_never_in_a_circle(tree, tmp_path):
    write(tmp_path / "outside.txt", "one")
    (tree / "link").symlink_to("../outside.txt")
    (tree / "circle").symlink_to(tree)
    before = dependency_digest(Depending(tree))
    write(tmp_path / "outside.txt", "two")
    assert dependency_digest(Depending(tree)) != before


def test_a_pipe_is_not_opened(tree):
    os.mkfifo(tree / "pipe")
    assert dependency_digest(Depending(tree)) != dependency_digest(Depending(tree / "pipe"))


@pytest.mark.parametrize(
    ("limit", "value", "said"), [("MAX_FILES", 1, "are over 1 files"), ("MAX_BYTES", 1, "are over 0 GB")]
)
def test_too_much_to_be_read_is_said_and_not_guessed(tree, monkeypatch, limit, value, said):
    monkeypatch.setattr(cache_module, limit, value)
    with pytest.raises(UndigestedError, match=said):
        dependency_digest(Depending(tree))


def test_a_file_is_read_once_for_several_systems(tree, monkeypatch):
    known = {}
    alone = dependency_digest(Depending(tree))
    assert dependency_digest(Depending(tree), known) == alone
    assert sorted(path.name for path in known) == ["a.txt", "b.txt"]
    write(tree / "a.txt", "changed")
    assert dependency_digest(Depending(tree), known) == alone, "what was just read is not read again"


def test_a_circle_of_links_that_leads_nowhere_cannot_be_told(tree):
    (tree / "one").symlink_to("two")
    (tree / "two").symlink_to("one")
    with pytest.raises(UndigestedError, match="too many levels of symbolic links"):
        dependency_digest(Depending(tree))
