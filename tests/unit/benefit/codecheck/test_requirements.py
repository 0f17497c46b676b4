"""Files of requirements and lock files."""

from __future__ import annotations

from pathlib import Path

import pytest

from cranfield.base.errors import ConfigError
from cranfield.benefit.codecheck.python.packages import read_requirements, required_packages, requirement_fault

LINES = """\
# made by a tool
--index-url https://index.example/simple
numpy==2.3.5 \\
    --hash=sha256:aa \\
    --hash=sha256:bb   # two files
    # via pandas
pandas>=2 ; python_version > "3.10"

Jinja2 [i18n]
"""
LOCK = """\
lock-version = "1.0"
[[packages]]
name = "numpy"
version = "2.3.5"
marker = "python_version > '3.10'"
wheels = [{name = "a.whl", url = "https://x", hashes = {sha256 = "aa"}}, {name = "b.whl", hashes = {sha256 = "bb"}}]
[[packages]]
name = "tiny"
version = "1.0"
"""


def test_lines_keep_their_pins_hashes_and_markers(tmp_path: Path):
    path = tmp_path / "requirements.txt"
    path.write_text(LINES, encoding="utf-8")
    read = read_requirements(path)
    assert read == (
        "--index-url https://index.example/simple",
        "numpy==2.3.5 --hash=sha256:aa --hash=sha256:bb",
        'pandas>=2 ; python_version > "3.10"',
        "Jinja2 [i18n]",
    )
    assert required_packages(read) == ["numpy 2.3.5", "pandas>=2", "Jinja2 [i18n]"]


def test_a_lock_file_gives_pins_with_hashes(tmp_path: Path):
    path = tmp_path / "pylock.toml"
    path.write_text(LOCK, encoding="utf-8")
    assert read_requirements(path) == (
        "numpy==2.3.5; python_version > '3.10' --hash=sha256:aa --hash=sha256:bb",
        "tiny==1.0",
    )


def test_everything_that_cannot_be_used_is_named_with_its_line(tmp_path: Path):
    path = tmp_path / "requirements.txt"
    lines = ["numpy", "-e .", "-r other.txt", "./local", "tiny @ git+https://x/y", "--no-binary :all:", "==2"]
    path.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        read_requirements(path)
    assert [(each.line, each.got) for each in caught.value.problems] == list(enumerate(lines, 1))[1:]


@pytest.mark.parametrize(
    "line",
    [
        "--only-binary :none:",
        "--pre --no-binary :all:",
        "--no-index --no-bin :all:",
        "--pre -r other.txt",
        "--no-index=1",
        "--config-settings a=b",
        "--find-links",
        "--find-links --no-binary :all:",
        "--find-links 'a",
        "-e .",
        "evil --no-binary :all:",
        "evil\t--no-binary :all:",
        "evil --config-settings=a=b",
        "evil --global-option=x",
        "evil --hash=sha256:aa --no-binary=:all:",
        "evil ; python_version > '3' --no-binary :all:",
        "evil\n--no-binary :all:",
        "evil\u2028--no-binary :all:",
        "evil \\",
        "# coding: utf-7",
        "evil @ file:///a/evil-1.0.tar.gz",
        "evil@file:///a/evil-1.0-py3-none-any.whl",
        "evil @ git+https://host/evil",
        "evil @ https://host/evil-1.0.tar.gz",
        "evil @ https://host/evil-1.0.tar.gz#.whl",
        "evil @ https://host/evil-1.0.tar.gz?a=b-1-py3-none-any.whl",
        "https://host/evil-1.0.tar.gz",
        "http://host/evil.zip",
        "git+https://host/evil",
        "file:evil",
        "evil-1.0.tar.gz",
        "evil-1.0-py3-none-any.whl",
        "dl/evil-1.0.tar.gz",
        "evil-1.0/",
        "evil[extra]/",
        "evil${SHELL}",
        "C:\\evil",
    ],
)
def test_what_could_run_code_of_a_package_is_refused(line: str):
    assert requirement_fault(line)


@pytest.mark.parametrize(
    "line",
    [
        "--only-binary :all:",
        "--index-url=https://${NAME}:${TOKEN}@index.example/simple --pre",
        "--no-index --find-links '/a b/wheels'",
        "numpy",
        "numpy ~= 2.3, !=2.3.1",
        "numpy (>=2)",
        "Jinja2 [i18n,x]>=3 ; python_version > '3.10' and extra == 'a-b' --hash=sha256:aa --hash sha256:bb",
        "tiny===1.0+local.1",
        "tiny @ https://host/a/tiny-1.0-py3-none-any.whl#sha256=aa ; sys_platform == 'linux'",
        "https://host/tiny-1.0-1-py3-none-any.whl?x=1",
        "numpy==2.*  # a comment",
    ],
)
def test_packages_of_an_index_and_wheels_are_accepted(line: str):
    assert requirement_fault(line) == ""


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("uv.lock", "", "uv export"),
        ("poetry.lock", "", "poetry export"),
        ("pyproject.toml", "", "uv pip compile"),
        ("pylock.toml", "a = ", "not TOML"),
        ("pylock.toml", "a = 1", "pylock.toml"),
        ("pylock.toml", "packages = [1]", "pylock.toml"),
        ("empty.txt", "# none\n", "no requirement"),
        ("none.txt", None, "cannot be read"),
    ],
)
def test_a_file_that_is_no_list_of_requirements_says_what_to_do(
    tmp_path: Path, name: str, text: str | None, message: str
):
    if text is not None:
        (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        read_requirements(tmp_path / name)
    assert message in str(caught.value)


def test_passwords_are_refused_and_never_shown_and_variables_take_their_place(tmp_path: Path):
    path = tmp_path / "requirements.txt"
    wheel = "host/foo-1.0-py3-none-any.whl"
    lines = [
        "--index-url https://user:s3cret@host/simple",
        f"foo @ https://s3cret@{wheel}",
        f"https://a:s3cr@et@{wheel}",
    ]
    path.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        read_requirements(path)
    assert [each.got for each in caught.value.problems] == [
        "--index-url https://***@host/simple",
        f"foo @ https://***@{wheel}",
        f"https://***@{wheel}",
    ]
    assert "s3cr" not in str(caught.value)
    assert not requirement_fault(f"foo @ https://${{NAME}}:${{TOKEN}}@{wheel}")


def test_a_package_of_an_address_is_named_without_it():
    wheel = "https://${TOKEN}@host/foo-1.0-py3-none-any.whl"
    lines = (f"foo[x] @ {wheel} ; python_version > '3'", wheel, "numpy==2.*  # a comment")
    assert required_packages(lines) == ["foo[x]", "foo", "numpy 2.*"]
