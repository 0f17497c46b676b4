"""The operator's file of document texts: what it accepts, and what it reports."""

import pytest

from cranfield.base.errors import ConfigError
from cranfield.config.documents import fill_placeholders, parameter_names
from cranfield.workbench.config import load_workbench


@pytest.fixture
def load(tmp_path):
    def loaded(text):
        path = tmp_path / "workbench.yaml"
        path.write_text(text)
        return load_workbench(path)

    return loaded


def test_every_kind_of_source(load, tmp_path):
    for name in ("shop.db", "docs.jsonl.gz"):
        (tmp_path / name).touch()
    config = load("""
        documents:
        - {match: 'apple://(?P<page>.+)', command: [cupertino, read, '{page}'], format: markdown}
        - {match: '.+:\\d+-\\d+', file: {root: .., at: HEAD}}
        - {sql: {database: 'sqlite:shop.db', query: 'SELECT body AS text FROM docs WHERE id = :id'}}
        - {url: 'https://docs.example.org/{+id}', allow: [10.0.0.0/8, wiki.intern]}
        - {corpus: {path: docs.jsonl.gz, id: _id}}
        - fields: {text: body}
          template: '<h2>{{ title }}</h2>{{ body }}'
        images: {hosts: ['*.example.org']}
        cache_s: 60
    """)
    assert [source.kind for source in config.documents] == ["command", "file", "sql", "url", "corpus", "fields"]
    assert config.folder.is_absolute()


def test_what_is_wrong_is_reported_with_its_line(load):
    for source, message in [
        ("{command: ['{id}']}", "documents[0].command[0]: the program cannot depend on the document"),
        ("{command: [cat, x]}", "{id} is missing: every document would have the same text"),
        ("{command: [cat, '{pge}'], match: '(?P<page>.)'}", "unknown placeholder 'pge'"),
        ("{command: [cat, '{id}'], match: '('}", "is not a regular expression"),
        ("{command: []}", "command is empty"),
        ("{command: [cat, '{id}'], env: ['A=B']}", "env[0]"),
        ("{url: 'https://{id}.example.org/'}", "the host cannot depend on the document"),
        ("{url: 'https://{+id}/'}", "the host cannot depend on the document"),
        ("{url: 'file:///{id}'}", "not an address"),
        ("{url: 'https://me:s3cret@x.org/{id}'}", "user and password in an address"),
        ("{url: 'https://x.org/{id}?API_KEY=s3cret'}", "a secret in an address (api_key)"),
        ("{url: 'https://x.org/{id}', allow: ['10.0.0.0/99']}", "not a host or a network"),
        ("{url: 'https://x.org/{id}', allow: ['https://x.org']}", "not a host or a network"),
        ("{sql: {database: 'sqlite:x', query: \"SELECT '{id}' AS text\"}}", "{id} in a statement"),
        ("{sql: {database: 'sqlite:x', query: \"SELECT ':id' AS text\"}}", "{id} is missing: every document"),
        ("{sql: {database: 'postgresql://u:pw@h/d', query: 'SELECT :id'}}", "not a database"),
        ("{fields: {}, template: '{% if %}'}", "not a template: line 1"),
        ("{fields: {}, timeout_s: 0}", "timeout_s"),
        ("{fields: {}, url: 'https://x.org/{id}'}", "keys that exclude each other"),
        ("{fields: {titel: x}}", "unknown key 'titel'"),
        ("{files: {root: .}}", "file"),
    ]:
        with pytest.raises(ConfigError) as caught:
            load(f"documents:\n- {source}\n")
        assert message in str(caught.value)
        assert caught.value.problems[0].line == 2
        assert "s3cret" not in str(caught.value)
        assert "pw@" not in str(caught.value)


def test_all_problems_are_reported_at_once(load):
    with pytest.raises(ConfigError) as caught:
        load("documents:\n- {command: [cat]}\n- {url: 'x{id}'}\nimages: {hosts: ['a b']}\ncash: 1\n")
    assert [problem.line for problem in caught.value.problems] == [2, 3, 4, 5]


def test_files_and_folders_that_are_not_there(load):
    with pytest.raises(ConfigError) as caught:
        load("""documents:
- {command: [cat, '{id}'], cwd: none}
- {file: {root: none}}
- {sql: {database: 'sqlite:none.db', query: 'SELECT :id'}}
- {corpus: {path: none.jsonl}}
- {sql: {database: 'env:NONE', query: 'SELECT :id'}}
""")
    assert [problem.line for problem in caught.value.problems] == [2, 3, 4, 5]
    assert "documents[1].file.root: no such folder; got 'none'" in str(caught.value)


def test_a_missing_file_and_a_null_character(load, tmp_path):
    with pytest.raises(ConfigError, match="no such file"):
        load_workbench(tmp_path / "none.yaml")
    with pytest.raises(ConfigError, match=r"U\+0000"):
        load('documents: [{command: ["cat", "\\0{id}"]}]')


def test_placeholders_are_filled_in_a_single_pass():
    assert fill_placeholders("{id}/{page}/{other}", {"id": "{page}", "page": "p"}) == "{page}/p/{other}"


def test_bound_parameters_are_not_those_in_quotes_or_casts():
    assert parameter_names("SELECT ':no', \":no\", x::text, :id FROM t WHERE a = :page AND b = :id") == ["id", "page"]
