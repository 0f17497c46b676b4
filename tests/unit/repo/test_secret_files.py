"""Files that look like secrets: by name, by git's rules, by content, by patterns of the user."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path

import pytest
from tests.unit.repo.conftest import Repository

from cranfield.agents.protocol import ToolCall
from cranfield.agents.tools.source import SourceTools
from cranfield.base.errors import ConfigError
from cranfield.repo import git as git_program
from cranfield.repo.secret_files import TOKENS, WithheldReason, find_withheld, token_kind
from cranfield.repo.snapshot import take

NAME, IGNORED, CONTENT, PATTERN = WithheldReason
HEX, MIXED = "0123456789abcdef" * 8, "aB3" * 40
# Written in parts, so that no scanner takes this file for one that holds secrets.
SECRETS = [
    ("private key", "-----BEGIN RSA " + f"PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\n{MIXED[:64]}\n"),
    ("private key", '"key": "-----BEGIN ' + f'PRIVATE KEY-----\\n{MIXED[:64]}"'),
    ("private key", "-----BEGIN PGP " + f"PRIVATE KEY BLOCK-----\n\n{MIXED[:64]}\n"),
    ("PuTTY key", "PuTTY-User-Key-File-" + "3: ssh-ed25519"),
    ("age key", "AGE-SECRET-" + f"KEY-1{'QX7' * 19}"),
    ("AWS access key", "AKIA" + "IOSFODNN7EXAMPLE"),
    ("AWS access key", "id: ASIA" + "IOSFODNN7EXAMPLE;"),
    *(("GitHub token", f"gh{letter}_" + MIXED[:36]) for letter in "pousr"),
    ("GitHub token", "github_" + f"pat_{MIXED[:22]}_{MIXED[:59]}"),
    ("GitLab token", "glpat" + f"-{MIXED[:20]}"),
    ("Slack token", "xoxb" + f"-1234567890-{MIXED[:24]}"),
    ("Slack webhook", "https://hooks.slack" + f".com/services/T12345678/B12345678/{MIXED[:24]}"),
    ("Stripe key", "sk_" + f"live_{MIXED[:24]}"),
    ("OpenAI key", "sk-proj-" + f"{MIXED[:40]}T3Blbk" + f"FJ{MIXED[:40]}"),
    ("Anthropic key", "sk-ant" + f"-api03-{MIXED[:90]}"),
    ("Google key", "AIza" + MIXED[:35]),
    ("npm token", "npm" + f"_{MIXED[:36]}"),
    ("PyPI token", "pypi-" + f"AgEIcHlwaS5vcmc{MIXED[:60]}"),
    ("Hugging Face token", "hf" + f"_{MIXED[:34]}"),
    ("SendGrid key", "SG" + f".{MIXED[:22]}.{MIXED[:43]}"),
    ("Azure storage key", "Account" + f"Key={MIXED[:86]}=="),
    ("DigitalOcean token", "dop_" + f"v1_{HEX[:64]}"),
]


@pytest.mark.parametrize(("kind", "secret"), SECRETS, ids=[f"{kind}-{n}" for n, (kind, _) in enumerate(SECRETS)])
def test_a_secret_is_recognised_in_any_text_and_its_beginning_is_none(kind: str, secret: str) -> None:
    assert token_kind(f"# settings\nvalue = '{secret}'\n") == kind
    assert token_kind(f"value = '{secret[: len(secret) // 3]}'") == ""


def test_every_kind_of_secret_has_an_example() -> None:
    assert {token.kind for token in TOKENS} == {kind for kind, _ in SECRETS}
    for token in TOKENS:
        assert any(mark in secret for _, secret in SECRETS for mark in token.marks), token


@pytest.mark.parametrize(
    "text",
    [
        "the header -----BEGIN PRIVATE KEY----- begins a key",
        "-----BEGIN PUBLIC KEY-----\n" + MIXED,
        "tokens begin with ghp_, glpat- or xoxb-",
        "class AKIAnimals: pass",
        "npm_config_cache_of_some_user_and_a_longer_name",
        "sk-learn is scikit-learn; SG.a.b; hf_hub_download",
    ],
)
def test_text_about_secrets_is_none(text: str) -> None:
    assert token_kind(text) == ""


def test_a_file_full_of_beginnings_of_secrets_is_read_in_time() -> None:
    started = time.process_time()
    assert token_kind("sk-" * 30_000) == ""  # minutes, where each beginning is followed up to the end of the file
    assert time.process_time() - started < 1


def write(root: Path, *paths: str, text: str = "plain\n") -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


def test_names_that_usually_hold_secrets_are_withheld_at_any_depth(tmp_path: Path) -> None:
    secret = [
        ".env",
        "app/.env.production",
        "prod.env",
        "certs/server.PEM",
        "id_rsa",
        "deploy/id_ed25519.bak",
        ".netrc",
        "credentials.json",
        "x/secrets.yaml",
        ".npmrc",
        ".pypirc",
        "home/.aws/config",
        "home/.ssh/known",
        "a/b.kdbx",
    ]
    plain = [".env.example", "id_rsa.pub", "environment.py", "src/key.py", "docs/secretary.md", "monkey", "aws/config"]
    write(tmp_path, *secret, *plain)
    assert find_withheld(take(tmp_path)).names == dict.fromkeys(sorted(secret), NAME)


def test_patterns_of_the_user_withhold_and_exempt(tmp_path: Path) -> None:
    write(tmp_path, "secrets.py", "internal/a.py", "internal/b.py", "c.py")
    write(tmp_path, "token.txt", text=SECRETS[7][1])
    found = find_withheld(take(tmp_path), patterns=["internal/", "c.py"], exempt=["secrets.py", "internal/b.py"])
    assert found.names == {"c.py": PATTERN, "internal/a.py": PATTERN, "token.txt": CONTENT}
    with pytest.raises(ConfigError) as raised:
        find_withheld(take(tmp_path), patterns=["{a"], exempt=["b" * 300])
    assert len(raised.value.problems) == 2


def test_what_git_ignores_is_withheld_in_a_folder_without_git(tmp_path: Path) -> None:
    write(tmp_path, "keep.log", "a.log", "src/b.log", "src/local.py", "src/main.py", "x y/ü.log")
    write(tmp_path, ".gitignore", text="*.log\n!keep.log\n")
    write(tmp_path, "src/.gitignore", text="/local.py\n")
    found = find_withheld(take(tmp_path))
    assert found.names == dict.fromkeys(["a.log", "src/b.log", "src/local.py", "x y/ü.log"], IGNORED)
    assert found.not_honoured == ()


def test_without_git_the_rules_are_reported_as_not_honoured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "a.log", ".env")
    write(tmp_path, ".gitignore", text="*.log\n")
    snapshot = take(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    found = find_withheld(snapshot)
    assert found.names == {".env": NAME}
    assert found.not_honoured == (f".gitignore: git is needed to read it ({git_program.NO_GIT})",)


def test_a_tracked_file_is_withheld_by_rules_of_its_commit_or_of_today(repository: Repository) -> None:
    repository.write("old.txt", "committed before the rule\n")
    repository.write("docs/.gitignore", "draft.md\n")
    repository.write("docs/draft.md", "# Draft\n")
    repository.git("add", "--force", "docs/draft.md")
    commit = repository.commit()
    repository.write(".gitignore", "old.txt\n")
    for snapshot in (take(repository.root, commit), take(repository.root)):
        found = find_withheld(snapshot)
        assert found.names == {"docs/draft.md": IGNORED, "old.txt": IGNORED}
    bare = repository.root.parent / "bare"
    repository.git("clone", "--quiet", "--bare", str(repository.root), str(bare))
    assert find_withheld(take(bare)).names == {"docs/draft.md": IGNORED}
    below = take(repository.root / "docs")
    assert find_withheld(below).names == {"draft.md": IGNORED}


def test_no_tool_knows_a_withheld_file(tmp_path: Path) -> None:
    write(tmp_path, ".env", "main.py", text="password = 'needle'\n")
    snapshot = take(tmp_path)
    tools = SourceTools(snapshot, withheld=set(find_withheld(snapshot).names))

    async def use() -> list[str]:
        calls = [("list_files", {}), ("search", {"pattern": "needle"}), ("read_file", {"path": ".env"})]
        found = [(await tools.call(ToolCall("1", name, json.dumps(given)))).text for name, given in calls]
        await tools.aclose()
        return found

    listed, searched, read = asyncio.run(use())
    assert listed.splitlines() == ["1 file", "main.py (1 line)"]
    assert searched.splitlines() == ["1 hit in 1 file", "main.py:1:password = 'needle'"]
    assert read.startswith("error: there is no file .env;")
