"""Texts of documents: which source has one, limits, what is kept, and that no document raises."""

import json
import threading
import time
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield.base.errors import ConfigError
from cranfield.judging.documents.texts import DocumentTexts, open_texts
from cranfield.judging.documents.values import DocumentError, DocumentFailureKind
from cranfield.judging.documents.web import Slots, TimedCache
from cranfield.judging.reports.texts import texts_document
from cranfield.reporting.renderers.text import render_text
from cranfield.workbench.config import Workbench, load_workbench


@pytest.fixture
def texts_of(tmp_path):
    made = []

    def texts(yaml, **options):
        (tmp_path / "workbench.yaml").write_text(yaml)
        made.append(DocumentTexts(load_workbench(tmp_path / "workbench.yaml"), **options))
        return made[-1]

    yield texts
    for one in made:
        one.close()


@pytest.fixture
def short_wait(monkeypatch):
    monkeypatch.setattr("cranfield.judging.documents.web.WAIT_S", 0.1)
    monkeypatch.setattr("cranfield.judging.documents.web.GRACE_S", 0.1)


def kind_of(document):
    return None if document.problem is None else document.problem.kind.value


def test_the_fields_of_the_runs_are_the_default():
    document = DocumentTexts().get("d1", {"title": " A  lock ", "snippet": "How to lock", "url": "https://x.org/1"})
    assert (document.title, document.text, document.url) == ("A lock", "How to lock", "https://x.org/1")
    assert document.problem is None
    assert document.source == "the runs"


def test_fields_without_a_text_are_a_list():
    document = DocumentTexts().get("d1", {"price": 3, "tags": ["a"], "url": "https://x.org"})
    assert document.text == 'price: 3\ntags: ["a"]'
    assert document.title == "d1"


def test_no_field_tells_a_rater_the_rank_or_the_system():
    fields = {"name": "Lock", "rank": 1, "_score": 7.5, "Score": 7, "system": "new", "run": "b"}
    assert DocumentTexts().get("d1", fields).text == "name: Lock"
    assert dict(DocumentTexts().get("d1", fields).values) == {"name": "Lock"}


def test_an_address_that_no_browser_should_open_is_left_out():
    for url in ("javascript:alert(1)", "https://", "http://[", "//x", 7, None, "data:text/html,x"):
        assert DocumentTexts().get("d1", {"text": "x", "url": url}).url == ""


def test_the_first_source_that_matches_and_has_it_is_used(texts_of, tmp_path):
    (tmp_path / "a.jsonl").write_text('{"id": "a1", "text": "in a"}\n')
    (tmp_path / "b.jsonl").write_text('{"id": "a1", "text": "not read"}\n{"id": "b1", "text": "in b"}\n')
    texts = texts_of(
        "documents:\n- {match: 'a.', corpus: {path: a.jsonl}}\n- {match: '[ab].', corpus: {path: b.jsonl}}\n"
    )
    assert [texts.get(name).text for name in ("a1", "b1")] == ["in a", "in b"]
    assert kind_of(texts.get("a2")) == "not_found"
    assert texts.get("a2", {"text": "of the run"}).text == "of the run"
    assert kind_of(texts.get("xa1")) == "no_source"


def test_a_match_is_of_the_whole_id_and_may_have_flags(texts_of):
    texts = texts_of("documents: [{match: '(?i)a|ab', command: [echo, 'got {id}']}]")
    assert texts.get("AB").text == "got AB\n"
    assert kind_of(texts.get("abc")) == "no_source"


def test_a_match_without_end_is_a_problem_of_its_document_alone(texts_of, monkeypatch):
    texts = texts_of("documents: [{match: '(a+)+', command: [echo, '{id}']}]")
    with monkeypatch.context() as short:
        short.setattr("cranfield.judging.documents.texts._MATCH_S", 0.2)
        assert kind_of(texts.get("a" * 60 + "b")) == "failed"
    assert texts.get("aa").text == "aa\n"


NAMES = st.sampled_from(["title", "text", "snippet", "url", "image", "price"])
HOSTILE = ["", "\0", "a\0b", "a\nb", "\x1b[31m", "\x7f", "\x85", "x" * 2_001, "\ud800"]


def test_no_source_is_read_for_an_id_that_none_can_have(texts_of):
    texts = texts_of("documents: [{command: [echo, '{id}']}]")
    for doc_id in HOSTILE:
        assert kind_of(texts.get(doc_id)) == "refused"
        assert texts.get(doc_id, {"text": "of the run"}).text == "of the run"


def test_what_no_page_can_hold_is_replaced():
    document = DocumentTexts().get("d\ud800", {"text": "a\udfffb", "tags": ["\ud800"]})
    assert (document.title, document.text) == ("d?", "a?b")
    document = DocumentTexts().get("d", {"title": "\ud800", "tags": ["\ud800"]})
    assert (document.title, document.text) == ("?", 'tags: ["?"]')


@given(
    st.text(max_size=9), st.dictionaries(NAMES, st.none() | st.floats() | st.text() | st.lists(st.text()), max_size=4)
)
def test_no_document_raises(doc_id, fields):
    document = DocumentTexts().get(doc_id, fields)
    assert (document.problem is None) == bool(document.digest)
    assert DocumentTexts().image(doc_id, fields).problem is not None or "image" in fields


def test_a_failing_reader_is_a_problem(texts_of, monkeypatch):
    texts = texts_of("documents: [{command: [echo, '{id}']}]")
    monkeypatch.setattr("cranfield.judging.documents.files.filled_arguments", lambda *_: 1 / 0)
    document = texts.get("d1", {"title": "The title"})
    assert (kind_of(document), document.title, document.text, document.digest) == ("failed", "The title", "", "")


def test_the_digest_is_that_of_what_is_shown():
    def digest(**fields):
        return DocumentTexts().get("d", fields).digest

    assert digest(text="a", score=1) == digest(text="a", score=2)
    assert len({digest(text="a"), digest(text="b"), digest(text="a", title="b"), digest(text="a", image="c")}) == 4


def test_with_a_template_the_digest_covers_every_column(texts_of, tmp_path):
    texts = texts_of("documents: [{fields: {}, template: '{{ fields.price }}'}]")
    assert texts.get("d", {"text": "a", "price": 1}).digest != texts.get("d", {"text": "a", "price": 2}).digest


def test_a_text_is_kept_and_read_again_later(texts_of, tmp_path):
    now = [0.0]
    texts = texts_of("documents: [{file: {root: .}}]\ncache_s: 60", clock=lambda: now[0])
    (tmp_path / "a.txt").write_text("before")
    before = texts.get("a.txt")
    (tmp_path / "a.txt").write_text("after")
    assert texts.get("a.txt").text == "before"
    now[0] = 61
    after = texts.get("a.txt")
    assert after.text == "after"
    assert after.digest != before.digest


def test_what_is_kept_has_a_limit():
    cache = TimedCache(10, 5, lambda: 0.0)
    for name, size in (("a", 2), ("b", 2), ("a", 3), ("c", 2)):
        cache.keep(("", name), name, size)
    assert [cache.get(("", name)) for name in "abc"] == ["a", None, "c"]
    cache.keep(("", "d"), "d", 100)
    assert cache.get(("", "d")) is None


def test_a_slow_source_delays_no_other(texts_of, short_wait, tmp_path):
    """Its documents are read one at a time; those that would wait for longer are busy."""
    going_on = tmp_path / "going on"
    going_on.touch()
    texts = texts_of(f"""
        documents:
        - match: slow.*
          command: [sh, -c, 'while [ -e "$0" ]; do sleep .01; done; echo "$1"', '{going_on}', '{{id}}']
          timeout_s: 60
          concurrency: 1
        - {{match: quick, command: [echo, '{{id}}']}}
    """)
    found = []

    def get(name):
        found.append(kind_of(texts.get(name)))

    threads = [threading.Thread(target=get, args=(f"slow{number}",)) for number in range(5)]
    for thread in threads:
        thread.start()
    assert texts.get("quick").text == "quick\n"
    until = time.monotonic() + 30
    while len(found) < 4 and time.monotonic() < until:
        time.sleep(0.01)
    assert found == ["busy"] * 4  # the first is still being read
    going_on.unlink()
    for thread in threads:
        thread.join()
    assert found == [*["busy"] * 4, None]


def test_a_late_function_is_abandoned_and_keeps_its_slot(short_wait):
    slots = Slots(1, 0.0)
    going_on, ended = threading.Event(), threading.Event()

    def work():
        going_on.wait(60)
        ended.set()

    with pytest.raises(DocumentError) as late:
        slots.run(work)
    assert late.value.problem.kind is DocumentFailureKind.TIMED_OUT
    with pytest.raises(DocumentError) as busy:
        slots.run(lambda: 1)
    assert busy.value.problem.kind is DocumentFailureKind.BUSY
    going_on.set()
    ended.wait(60)


def test_few_documents_wait(monkeypatch):
    monkeypatch.setattr("cranfield.judging.documents.web.MAX_WAITING", 0)
    with pytest.raises(DocumentError, match="Try again in a moment"):
        Slots(1, 1.0).run(lambda: 1)


def test_the_default_config_reads_nothing():
    assert Workbench().documents == []


def test_texts_as_a_report():
    texts = DocumentTexts()
    found = [texts.get("d1", {"text": "a" * 3_000, "url": "https://x.test/"}), texts.get("d2")]
    made = texts_document(found)
    rows = made.payload()["documents"]
    assert [row["problem"] for row in rows] == ["", "no_source"]
    assert len(rows[0]["text"]) == 3_000
    assert len(list(made.tidy().rows)) == 2
    assert "a" * 2_000 + "…" in render_text(made)


def test_the_sources_of_the_config_count_where_the_operators_file_has_none(tmp_path):
    corpora = {"config": {"d1": "Of the config"}, "operator": {"d1": "Of the operator"}}
    (tmp_path / "sub").mkdir()
    for name, texts in corpora.items():
        lines = [json.dumps({"id": doc_id, "text": text}) for doc_id, text in texts.items()]
        (tmp_path / "sub" / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    config, workbench = tmp_path / "sub" / "cranfield.yaml", tmp_path / "workbench.yaml"
    systems = "testset: set.yaml\nsystems: {a: {run: a.run}}\n"
    config.write_text(systems + "documents: [{corpus: {path: config.jsonl}}]\n")  # relative to the config
    workbench.write_text("images: {timeout_s: 3}\n")
    for operator in (None, workbench):
        with closing(open_texts(operator, config)) as texts:
            assert texts.get("d1").text == "Of the config"
    workbench.write_text("documents: [{corpus: {path: sub/operator.jsonl}}]\n")
    with closing(open_texts(workbench, config)) as texts:
        assert texts.get("d1").text == "Of the operator"
    config.write_text(systems + "documents: [{corpus: {path: none.jsonl}}]\n")
    with pytest.raises(ConfigError, match=r"cranfield\.yaml:3:29: documents\[0\]\.corpus\.path: no such file"):
        open_texts(None, config)
