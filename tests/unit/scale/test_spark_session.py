"""Sessions of Spark without Spark: masters, settings, what is sent to workers, and what is missing."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

import pytest

from cranfield.base.errors import MissingExtraError, RunFormatError, UsageError
from cranfield.model import CONVENTIONS
from cranfield.scale.spark.job import is_remote, local_path, places_of_runs, uri_of, uri_to_read
from cranfield.scale.spark.session import (
    _check_java,
    _package_archive,
    is_local,
    session_settings,
    spark_session,
    with_tries,
)
from cranfield.scale.spark.table import check_order


@pytest.mark.parametrize(
    ("master", "expected"),
    [
        ("local", "local[1,4]"),
        ("local[2]", "local[2,4]"),
        ("local[*]", "local[*,4]"),
        ("local[2,1]", "local[2,1]"),
        ("spark://host:7077", "spark://host:7077"),
        ("local-cluster[2,1,1024]", "local-cluster[2,1,1024]"),
        ("yarn", "yarn"),
    ],
)
def test_a_local_master_tries_again(master: str, expected: str) -> None:
    assert with_tries(master) == expected
    assert is_local(master) == expected.startswith("local[")


def test_local_mode_shows_no_page_and_listens_to_this_machine() -> None:
    for master in (None, "local[2]", "spark://127.0.0.1:7077"):
        settings = session_settings(master)
        assert (settings["spark.ui.enabled"], settings["spark.driver.bindAddress"]) == ("false", "127.0.0.1")
    assert session_settings("spark://127.0.0.1:7077")["spark.driver.host"] == "127.0.0.1"
    cluster = session_settings("spark://host:7077")
    assert "spark.ui.enabled" not in cluster
    assert "spark.driver.host" not in cluster
    assert "spark.master" not in session_settings(None, is_submitted=True)
    assert "spark.master" not in session_settings(None, has_conf=True)


def test_workers_are_sent_the_package_and_no_page_of_the_workbench(tmp_path: Path) -> None:
    with zipfile.ZipFile(_package_archive(tmp_path)) as archive:
        names = archive.namelist()
    assert {"__init__.py", "scale/kernel.py", "measures/catalogue.py"} <= set(names)
    assert {name.rpartition(".")[2] for name in names} <= {"py", "so", "json", "yaml"}


def test_spark_that_is_not_installed_names_its_extra(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(MissingExtraError, match=r"cranfield\[spark\]"), spark_session("local"):
        pass


def java(folder: Path, printed: str) -> None:
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho '{printed}' >&2\n")
    program.chmod(0o755)


@pytest.mark.parametrize("printed", ['openjdk version "17.0.15" 2025-04-15', 'openjdk version "21" 2023-09-19'])
def test_a_java_that_spark_runs_on(tmp_path: Path, monkeypatch, printed: str) -> None:
    java(tmp_path, printed)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    _check_java()


def test_a_java_that_is_too_old_or_missing(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(UsageError, match="none was found in JAVA_HOME"):
        _check_java()
    java(tmp_path, 'openjdk version "1.8.0_392"')
    with pytest.raises(UsageError, match=r"expected Java 17 or newer, got openjdk version .1\.8\.0_392"):
        _check_java()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="none was found on the PATH"):
        _check_java()


@pytest.mark.parametrize(
    ("place", "uri"),
    [
        ("s3a://bucket/run", "s3a://bucket/run"),
        (Path("s3a://bucket/run"), "s3a://bucket/run"),
        (Path("hdfs://name:8020/run"), "hdfs://name:8020/run"),
        (Path("hdfs:/run"), "hdfs:/run"),
        ("/a b/100%", "file:///a b/100%"),
        ("file:///a/b", "file:///a/b"),
    ],
)
def test_places_as_spark_names_them(place: str | Path, uri: str) -> None:
    assert uri_of(place) == uri
    assert is_remote(place) == (not uri.startswith("file:"))


def test_a_file_is_no_pattern(tmp_path: Path) -> None:
    path = tmp_path / "run {1}.parquet"
    path.touch()
    assert uri_to_read(path) == f"file://{tmp_path}/run \\{{1\\}}.parquet"
    assert uri_to_read(tmp_path / "*.parquet") == f"file://{tmp_path}/*.parquet"
    assert local_path(f"file://{path}") == path


def test_runs_of_this_machine_and_of_others(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "part-0.parquet").touch()
    found = places_of_runs([str(tmp_path / "old"), "s3a://bucket/runs/new/*.parquet", "gs://b/third.parquet"])
    assert found == {
        "old": [f"file://{tmp_path}/old/part-0.parquet"],
        "new": ["s3a://bucket/runs/new/*.parquet"],
        "third": ["gs://b/third.parquet"],
    }
    assert list(places_of_runs(["s3a://a/run", "s3a://b/run"])) == ["run-1", "run-2"]
    with pytest.raises(RunFormatError, match="no Parquet file here"):
        places_of_runs([str(tmp_path / "nothing")])


@pytest.mark.parametrize("name", ["cupertino", "octocode", "searchtweak"])
def test_a_convention_that_goes_by_the_order_of_rows_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="a distributed table has no order"):
        check_order(CONVENTIONS[name])
    check_order(CONVENTIONS["trec"])
