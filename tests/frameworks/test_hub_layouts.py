"""Test sets in the layout of BEIR and MTEB, in folders that `datasets` wrote."""

import json
import os
import subprocess
import sys
from hashlib import sha1
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import unquote, urlsplit

import pytest
from datasets import Dataset, DatasetDict

from cranfield import evaluate, load
from cranfield.base.errors import TestSetError, UnknownNameError
from cranfield.formats.sniff import detect_format

CORPUS = {"_id": ["d1", "d2", "d3"], "title": ["A", "B", "C"], "text": ["apple", "banana", "cherry"]}
QUERIES = {"_id": ["q1", "q2", "q9"], "text": ["sweet apple", "long banana", "nobody judged this"]}
TEST = {"query-id": ["q1", "q1", "q2"], "corpus-id": ["d1", "d2", "d9"], "score": [2.0, 0.0, 1.0]}
DEV = {"query-id": ["q9"], "corpus-id": ["d3"], "score": [1.0]}
GRADES = {"q1": {"d1": 2.0, "d2": 0.0}, "q2": {"d9": 1.0}}
CARD = """---
configs:
- config_name: default
  data_files:
  - {split: dev, path: qrels/dev.jsonl}
  - {split: test, path: qrels/test.jsonl}
- config_name: corpus
  data_files: [{split: corpus, path: corpus.jsonl}]
- config_name: queries
  data_files: [{split: queries, path: queries.jsonl}]
---
"""


def saved(folder, judgments="default"):
    DatasetDict({"corpus": Dataset.from_dict(CORPUS)}).save_to_disk(folder / "corpus")
    DatasetDict({"queries": Dataset.from_dict(QUERIES)}).save_to_disk(folder / "queries")
    DatasetDict({"dev": Dataset.from_dict(DEV), "test": Dataset.from_dict(TEST)}).save_to_disk(folder / judgments)


def saved_without_splits(folder):
    for name, columns in (("corpus", CORPUS), ("queries", QUERIES), ("qrels", TEST)):
        Dataset.from_dict(columns).save_to_disk(folder / name)


def cloned(folder):
    """A clone of mteb/scifact: lines of JSON, named in the card."""
    (folder / "qrels").mkdir(parents=True)
    (folder / "README.md").write_text(CARD)
    for name, columns in (("corpus", CORPUS), ("queries", QUERIES), ("qrels/dev", DEV), ("qrels/test", TEST)):
        Dataset.from_dict(columns).to_json(folder / f"{name}.jsonl")


def parquet(folder):
    """A clone of Parquet files without a card."""
    files = {"corpus/corpus": CORPUS, "queries/queries": QUERIES, "qrels/dev": DEV, "qrels/test": TEST}
    for name, columns in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Dataset.from_dict(columns).to_parquet(folder / f"{name}-00000-of-00001.parquet")


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", str(tmp_path_factory.getbasetemp() / "hf"))


LAYOUTS = {"saved": saved, "saved-without-splits": saved_without_splits, "cloned": cloned, "parquet": parquet}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("prefix", ["hf:", ""])
def test_a_folder_is_a_test_set(tmp_path, layout, prefix, capsys):
    folder = tmp_path / "fruit"
    LAYOUTS[layout](folder)
    capsys.readouterr()
    testset = load(f"{prefix}{folder}")
    assert testset.grades == GRADES
    assert [(query.id, query.text) for query in testset.queries] == [("q1", "sweet apple"), ("q2", "long banana")]
    assert testset.name == "fruit"
    notes = [str(note) for note in testset.notes]
    assert "1 unjudged query, left out" in " ".join(notes).replace("queries", "query")
    assert any(note.startswith("not in the corpus: 1 judged document") for note in notes)
    if layout != "saved-without-splits":
        other = "validation" if layout == "parquet" else "dev"  # a name that the library makes of the file's
        assert any(f"others are {other}" in note for note in notes)
    assert evaluate(testset, {"q1": ["d2", "d1"], "q2": ["d9"]}, measures=["RR"]).mean("RR") == 0.75
    assert capsys.readouterr() == ("", "")
    assert detect_format(folder, "testset", None, TestSetError).name == "huggingface"


@pytest.mark.parametrize("layout", ["saved", "cloned", "parquet"])
def test_another_split_is_named(tmp_path, layout):
    LAYOUTS[layout](tmp_path / "fruit")
    split = "validation" if layout == "parquet" else "dev"
    dev = load(f"hf:{tmp_path / 'fruit'}:dev")
    assert (dev.name, dev.grades, dev.queries[0].text) == (f"fruit-{split}", {"q9": {"d3": 1.0}}, "nobody judged this")
    with pytest.raises(UnknownNameError, match=f"did you mean {split}"):
        load(f"hf:{tmp_path / 'fruit'}:{split[:-1]}")


@pytest.mark.parametrize("form", ["{}-{}", "{1}-{0}"])
def test_a_language_of_several_is_named(tmp_path, form):
    for language in ("de", "fr"):
        for role, columns in (("queries", QUERIES), ("corpus", CORPUS), ("qrels", TEST)):
            texts = (
                {**columns, "text": [f"{language} {text}" for text in columns["text"]]}
                if role == "queries"
                else columns
            )
            DatasetDict({"test": Dataset.from_dict(texts)}).save_to_disk(tmp_path / form.format(language, role))
    assert load(f"hf:{tmp_path}:fr").queries[0].text == "fr sweet apple"
    assert load(f"hf:{tmp_path}:de:test").name.endswith("-de")
    with pytest.raises(TestSetError, match="several sets in this data set") as caught:
        load(f"hf:{tmp_path}")
    assert caught.value.problems[0].expected == "de, fr"


def test_rows_that_were_chosen_are_the_rows(tmp_path):
    """A selection keeps all rows in its file, and an index of those that count."""
    Dataset.from_dict(QUERIES).save_to_disk(tmp_path / "queries")
    Dataset.from_dict(TEST).filter(lambda row: row["score"] > 0).save_to_disk(tmp_path / "qrels")
    assert load(f"hf:{tmp_path}").grades == {"q1": {"d1": 2.0}, "q2": {"d9": 1.0}}


def test_what_is_missing_is_said(tmp_path):
    Dataset.from_dict(QUERIES).save_to_disk(tmp_path / "queries")
    with pytest.raises(TestSetError, match="no qrels in this data set"):
        load(f"hf:{tmp_path}")
    Dataset.from_dict({"query-id": ["q1"], "score": [1]}).save_to_disk(tmp_path / "qrels")
    with pytest.raises(TestSetError, match="no column corpus-id"):
        load(f"hf:{tmp_path}")
    (tmp_path / "empty").mkdir()
    with pytest.raises(TestSetError, match="no data set in this folder"):
        load(f"hf:{tmp_path / 'empty'}")
    with pytest.raises(TestSetError, match="could not be fetched or read") as caught:
        load("hf:nobody/has-this")
    assert "hf:FOLDER" in caught.value.problems[0].hint


def test_whole_numbers_are_ids_and_beir_folders_stay_what_they_are(tmp_path):
    Dataset.from_dict({"_id": [1], "text": ["one"]}).save_to_disk(tmp_path / "n" / "queries")
    Dataset.from_dict({"query-id": [1], "corpus-id": [7], "score": [1]}).save_to_disk(tmp_path / "n" / "qrels")
    assert load(f"hf:{tmp_path / 'n'}").grades == {"1": {"7": 1.0}}
    beir = tmp_path / "beir"
    (beir / "qrels").mkdir(parents=True)
    (beir / "queries.jsonl").write_text(json.dumps({"_id": "q1", "text": "x"}) + "\n")
    (beir / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\n")
    assert detect_format(beir, "testset", None, TestSetError).name == "beir"


def test_a_config_names_a_folder_beside_it(tmp_path, call):
    saved(tmp_path / "project" / "fruit")
    config = (
        'testset: hf:fruit\nmeasures: [RR]\nsystems: {echo: {command: [echo, d1, "{query}"], extract: {regex: d1}}}\n'
    )
    (tmp_path / "project" / "cranfield.yaml").write_text(config)
    done = call("run", "--config", tmp_path / "project" / "cranfield.yaml", "--format", "csv", folder=tmp_path)
    assert "echo,q1,RR,1.0,answered" in done.stdout, done.stderr


class Hub(BaseHTTPRequestHandler):
    """What of the hub's interface the library asks for, over a folder `owner/name` for each data set."""

    root: Path

    def do_GET(self):
        path = unquote(urlsplit(self.path).path)
        kind, _, rest = path.removeprefix("/api").removeprefix("/datasets/").partition("/tree/")
        owner, name = kind.split("/")[:2]
        folder = self.root / owner / name
        if not folder.is_dir():
            return self.answer(404, b"{}", {"X-Error-Code": "RepoNotFound"})
        files = sorted(each.relative_to(folder).as_posix() for each in folder.rglob("*") if each.is_file())
        if "/resolve/" in path:
            wanted = folder / path.split("/resolve/")[1].partition("/")[2]
            if not wanted.is_file():
                return self.answer(404, b"", {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": SHA})
            data = wanted.read_bytes()
            return self.answer(200, data, {"X-Repo-Commit": SHA, "ETag": f'"{sha1(data).hexdigest()}"'})
        if rest:
            inside = rest.partition("/")[2]
            return self.json([self.entry(folder, each) for each in files if each.startswith(inside)])
        about = {"id": f"{owner}/{name}", "sha": SHA, "siblings": [{"rfilename": each} for each in files], "tags": []}
        return self.json({**about, "private": False, "gated": False, "disabled": False, "downloads": 0, "likes": 0})

    def do_POST(self):
        kind = unquote(urlsplit(self.path).path).removeprefix("/api/datasets/")
        owner, name = kind.split("/")[:2]
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["paths"]
        folder = self.root / owner / name
        self.json([self.entry(folder, each) for each in asked if (folder / each).exists()])

    do_HEAD = do_GET

    def entry(self, folder, name):
        path = folder / name
        if path.is_dir():
            return {"type": "directory", "path": name, "oid": SHA}
        return {"type": "file", "path": name, "oid": sha1(path.read_bytes()).hexdigest(), "size": path.stat().st_size}

    def json(self, value):
        self.answer(200, json.dumps(value).encode(), {"Content-Type": "application/json", "X-Repo-Commit": SHA})

    def answer(self, status, data, headers):
        self.send_response(status)
        for key, value in {**headers, "Content-Length": str(len(data))}.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def log_message(self, *words):
        pass


SHA = "0" * 40
ASK = """
import json, sys
from cranfield import load
for name in sys.argv[1:]:
    found = load(name)
    print(json.dumps([found.name, dict(found.grades), found.queries[0].text]))
"""


def test_a_name_is_asked_of_the_hub(tmp_path):
    cloned(tmp_path / "hub" / "mteb" / "fruit")
    Dataset.from_dict(QUERIES).to_parquet(tmp_path / "hub" / "BeIR" / "fruit" / "queries" / "queries.parquet")
    card = (
        "---\nconfigs:\n- config_name: queries\n  data_files: [{split: queries, path: queries/queries.parquet}]\n---\n"
    )
    (tmp_path / "hub" / "BeIR" / "fruit" / "README.md").write_text(card)
    (tmp_path / "hub" / "BeIR" / "fruit-qrels").mkdir()
    Dataset.from_dict(TEST).to_json(tmp_path / "hub" / "BeIR" / "fruit-qrels" / "test.jsonl")
    handler = type("OwnHub", (Hub,), {"root": tmp_path / "hub"})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        names = ["hf:mteb/fruit", "hf:mteb/fruit:dev", "hf:BeIR/fruit"]
        environment = {
            **os.environ, "HF_HUB_OFFLINE": "0", "HF_ENDPOINT": f"http://127.0.0.1:{server.server_port}",
            "HF_HOME": str(tmp_path / "home"), "HF_HUB_DISABLE_XET": "1", "NO_PROXY": "127.0.0.1",
        }  # fmt: skip
        asked = [sys.executable, "-c", ASK, *names]
        done = subprocess.run(asked, capture_output=True, text=True, env=environment, timeout=300)
        offline = subprocess.run(
            asked[:-2], capture_output=True, text=True, env={**environment, "HF_HUB_OFFLINE": "1"}, timeout=300
        )
        server.shutdown()
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        ["fruit", GRADES, "sweet apple"],
        ["fruit-dev", {"q9": {"d3": 1.0}}, "nobody judged this"],
        ["fruit", GRADES, "sweet apple"],
    ], done.stderr
    assert offline.stdout == done.stdout.splitlines(keepends=True)[0], offline.stderr
