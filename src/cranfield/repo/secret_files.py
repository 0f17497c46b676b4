"""Files of a repository that are not sent to a model, because they look like secrets: by name, by git, by content.

A file that is withheld by mistake costs a little; one that is sent by mistake cannot be taken back. So patterns are wide, and
the user exempts by name what is harmless. What is found is named in reports; the secret itself never is.
"""

from __future__ import annotations

import posixpath
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from cranfield.base.errors import ConfigError, ProblemList
from cranfield.repo.git import GitError, git
from cranfield.repo.hashes import glob_regex
from cranfield.repo.snapshot import Snapshot, as_text

IGNORE_FILE = ".gitignore"


class WithheldReason(StrEnum):
    """Why a file is withheld."""

    NAME = "name"
    """Files of such a name usually hold secrets."""
    IGNORED = "ignored"
    """Rules of git ignore it, although it is tracked, or lies in a folder that is read without git."""
    CONTENT = "content"
    """It holds a private key, or a token of a known kind."""
    PATTERN = "pattern"
    """A pattern of the user names it."""


NAMES: Sequence[str] = (
    ".env", ".env.*", "*.env", ".envrc", ".netrc", "_netrc", ".npmrc", ".pypirc", ".yarnrc.yml", ".pgpass",
    ".my.cnf", ".htpasswd", ".git-credentials", ".dockercfg", ".docker/config.json", ".kube/config", ".aws/**",
    ".ssh/**", ".gnupg/**", "credentials*", "secrets*", "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "*.pem",
    "*.key", "*.p12", "*.pfx", "*.p8", "*.jks", "*.keystore", "*.kdbx", "*.kdb", "*.ppk", "*.ovpn", "*.tfstate",
    "*.tfstate.backup", "*.tfvars", "service-account*.json", "*.agekey", "*.gpg",
)  # fmt: skip
"""Patterns of paths, as `glob_regex` reads them; case does not matter. Those with a folder are found at any depth."""
HARMLESS: Sequence[str] = (".env.example", ".env.sample", ".env.template", ".env.dist", "*.pub")
"""Names that look like one of these, and hold none."""


@dataclass(frozen=True, slots=True)
class SecretKind:
    """A kind of secret that can be recognised."""

    kind: str
    marks: tuple[str, ...]
    """Texts of which every such secret has one: the expression is tried only where a file has one."""
    pattern: str


TOKENS: Sequence[SecretKind] = (
    SecretKind(
        "private key",
        ("PRIVATE KEY",),
        r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----[\s\S]{0,400}?[A-Za-z0-9+/]{40}",
    ),
    SecretKind("PuTTY key", ("PuTTY-User-Key-File-",), r"PuTTY-User-Key-File-\d: \S+"),
    SecretKind("age key", ("AGE-SECRET-KEY-1",), r"AGE-SECRET-KEY-1[A-Z0-9]{50,}"),
    SecretKind("AWS access key", ("AKIA", "ASIA"), r"\b(?:AKIA|ASIA)[A-Z2-7]{16}\b"),
    SecretKind("GitHub token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"\bgh[pousr]_[A-Za-z0-9]{36,251}\b"),
    SecretKind("GitHub token", ("github_pat_",), r"\bgithub_pat_[A-Za-z0-9_]{60,}"),
    SecretKind("GitLab token", ("glpat-",), r"\bglpat-[A-Za-z0-9_-]{20,}"),
    SecretKind("Slack token", ("xox",), r"\bxox[abeoprs]-(?:\d+-){0,3}[A-Za-z0-9-]{20,}"),
    SecretKind("Slack webhook", ("hooks.slack.com/",), r"hooks\.slack\.com/services/T\w{6,}/B\w{6,}/\w{20,}"),
    SecretKind("Stripe key", ("_live_",), r"\b[sr]k_live_[A-Za-z0-9]{20,}"),
    SecretKind(
        "OpenAI key", ("sk-",), r"\bsk-(?:proj-|svcacct-|admin-)?[A-Za-z0-9_-]{20,200}T3BlbkFJ[A-Za-z0-9_-]{20}"
    ),
    SecretKind("Anthropic key", ("sk-ant-",), r"\bsk-ant-[a-z0-9]+-[A-Za-z0-9_-]{60,}"),
    SecretKind("Google key", ("AIza",), r"\bAIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])"),
    SecretKind("npm token", ("npm_",), r"\bnpm_[A-Za-z0-9]{36}\b"),
    SecretKind("PyPI token", ("pypi-AgE",), r"\bpypi-AgE[A-Za-z0-9_-]{50,}"),
    SecretKind("Hugging Face token", ("hf_",), r"\bhf_[A-Za-z0-9]{34,}\b"),
    SecretKind("SendGrid key", ("SG.",), r"\bSG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}\b"),
    SecretKind("Azure storage key", ("AccountKey=",), r"AccountKey=[A-Za-z0-9+/]{80,}={0,2}"),
    SecretKind("DigitalOcean token", ("dop_v1_", "doo_v1_"), r"\bdo[op]_v1_[a-f0-9]{64}\b"),
)
_COMPILED = tuple((token, re.compile(token.pattern)) for token in TOKENS)


@dataclass(frozen=True, slots=True)
class Withheld:
    """Files that are not sent."""

    names: Mapping[str, WithheldReason]
    """Path to the reason; the first that holds, in the order of `WithheldReason` after the user's patterns."""
    not_honoured: tuple[str, ...] = ()
    """What could not be looked at, in words."""


def find_withheld(snapshot: Snapshot, *, patterns: Sequence[str] = (), exempt: Sequence[str] = ()) -> Withheld:
    """Which files of a snapshot are not sent.

    Args:
        snapshot: whose files are looked at.
        patterns: of paths that are withheld too.
        exempt: patterns of paths that are sent, whatever else holds of them.

    Raises:
        ConfigError: with every pattern that is invalid.
    """
    by_user, sent = _compiled(patterns, exempt)
    paths = [path for path in snapshot.files if not any(each.fullmatch(path) for each in sent)]
    ignored, not_honoured = _ignored(snapshot, paths)
    found: dict[str, WithheldReason] = {}
    for path in paths:
        if any(each.fullmatch(path) for each in by_user):
            found[path] = WithheldReason.PATTERN
        elif _has_secret_name(path):
            found[path] = WithheldReason.NAME
        elif path in ignored:
            found[path] = WithheldReason.IGNORED
    looked_at = set(paths) - found.keys()
    for path, data in snapshot.each():
        if path in looked_at and (text := as_text(data)) and token_kind(text):
            found[path] = WithheldReason.CONTENT
    return Withheld(dict(sorted(found.items())), not_honoured)


def token_kind(text: str) -> str:
    """What kind of secret a text holds; empty where none is recognised."""
    for token, pattern in _COMPILED:
        if any(mark in text for mark in token.marks) and pattern.search(text):
            return token.kind
    return ""


def _compiled(*lists: Sequence[str]) -> list[list[re.Pattern[str]]]:
    problems = ProblemList(ConfigError)
    compiled: list[list[re.Pattern[str]]] = []
    for globs in lists:
        compiled.append([])
        for glob in globs:
            try:
                compiled[-1].append(re.compile(glob_regex(glob)))
            except ValueError as error:
                problems.add(str(error), got=glob[:200])
    problems.raise_if_any()
    return compiled


def _names(globs: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(glob_regex(f"**/{glob}") for glob in globs), re.IGNORECASE)


_SECRET_NAMES, _HARMLESS_NAMES = _names(NAMES), _names(HARMLESS)


def _has_secret_name(path: str) -> bool:
    return bool(_SECRET_NAMES.fullmatch(path)) and not _HARMLESS_NAMES.fullmatch(path)


def _ignored(snapshot: Snapshot, paths: Sequence[str]) -> tuple[set[str], tuple[str, ...]]:
    """Paths that rules of git ignore: those of the folder as it stands, and those of the snapshot.

    A secret that was committed is often ignored only later, so the rules of today hold for an old commit too.
    """
    rules = {
        path: text
        for path in snapshot.files
        if posixpath.basename(path) == IGNORE_FILE and (text := snapshot.text(path))
    }
    ignored = _checked(snapshot.root, paths) if snapshot.commit else None
    if not rules:
        return ignored or set(), ()
    with tempfile.TemporaryDirectory(prefix="cranfield-ignore-") as folder:
        home = Path(folder)
        for path, text in rules.items():
            (home / path).parent.mkdir(parents=True, exist_ok=True)
            (home / path).write_text(text, encoding="utf-8", errors="surrogateescape")
        try:
            git(home, "init", "--quiet")
        except GitError as error:
            return ignored or set(), (f"{IGNORE_FILE}: git is needed to read it ({error})",)
        own = _checked(home, paths)
    if own is None:
        return ignored or set(), (f"{IGNORE_FILE}: git cannot read the rules",)
    return (ignored or set()) | own, ()


def _checked(root: Path, paths: Sequence[str]) -> set[str] | None:
    """Those that the rules of a working folder ignore; None where git has none to check."""
    given = "".join(f"{path}\0" for path in paths).encode("utf-8", "surrogateescape")
    try:
        out = git(root, "check-ignore", "--no-index", "-z", "--stdin", stdin=given)
    except GitError as error:
        return set() if str(error) == "exit 1" else None  # 1: none is ignored
    return set(out.decode("utf-8", "surrogateescape").split("\0")) - {""}
