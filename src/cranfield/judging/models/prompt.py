"""The prompt of a model rater: a versioned file, filled with a guideline, a query and untrusted documents."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, ConfigDict, Field

from cranfield.errors import ConfigError, InternalError
from cranfield.formats.io.validation import load_model
from cranfield.judging.settings import GradeScale
from cranfield.words import UNPRINTABLE

if TYPE_CHECKING:
    from jinja2 import Template

DEFAULT = "relevance-1"
NONCE_CHARS = 24


class Prompt(BaseModel):
    """Templates of the system prompt and of the user's message."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,39}$")]
    version: Annotated[int, Field(ge=1)]
    system: str
    user: str

    @property
    def label(self) -> str:
        """`relevance-1`."""
        return f"{self.name}-{self.version}"

    @cached_property
    def digest(self) -> str:
        """SHA-256 of both templates."""
        return "sha256:" + hashlib.sha256(f"{self.system}\0{self.user}".encode()).hexdigest()


def load_prompt(path: Path | None = None) -> Prompt:
    """The prompt of a YAML file; without one, that of the package.

    Raises:
        ConfigError: the file is missing or invalid, or a template of it cannot be filled.
    """
    if path is None:
        with as_file(files(__package__) / "prompts" / f"{DEFAULT}.yaml") as own:
            return load_model(own, Prompt, ConfigError)
    prompt = load_model(path, Prompt, ConfigError)
    from jinja2 import TemplateError

    from cranfield.judging.settings import SCALES

    try:
        fill(prompt, Question("query", "need", "notes"), ["text"], scale=SCALES["graded"], guideline="guideline")
    except TemplateError as error:
        raise ConfigError(f"a template of the prompt cannot be filled: {error}", path=str(path)) from None
    return prompt


@dataclass(frozen=True, slots=True)
class Question:
    """A query as a rater sees it."""

    query: str
    need: str = ""
    notes: str = ""


def fill(
    prompt: Prompt,
    question: Question,
    documents: Sequence[str],
    *,
    scale: GradeScale,
    guideline: str,
    is_batch: bool = False,
) -> tuple[str, str]:
    """System prompt and user's message. Nothing in a document is a template, or can end the delimiters around it."""
    texts = [clean(document) for document in documents]
    values = {
        "guideline": guideline.strip(),
        "levels": scale.levels,
        "query": " ".join(clean(question.query).split()),
        "need": clean(question.need).strip(),
        "notes": clean(question.notes).strip(),
        "documents": texts,
        "nonce": nonce(prompt, question, texts),
        "is_batch": is_batch,
    }
    system, user = (_template(text).render(values).strip() for text in (prompt.system, prompt.user))
    return system, user


def clean(text: str) -> str:
    """The text without characters that a program along the way would interpret."""
    return UNPRINTABLE.sub(" ", text)


def nonce(prompt: Prompt, question: Question, documents: Sequence[str]) -> str:
    """The name of the delimiters: a hash of everything that stands between them.

    It is as hard to guess as a random one, because a document that contains it would have to contain its own hash. It is not
    random, so that the same request is the same bytes: for the cache, and for a recording.
    """
    parts = [prompt.digest, question.query, question.need, *documents]
    for salt in range(1_000):
        text = "\0".join([str(salt), *(str(len(part)) + part for part in parts)])
        found = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:NONCE_CHARS]
        if not any(found in part for part in parts):
            return found
    raise InternalError("a text that contains 1,000 hashes of itself")


@cache
def _template(text: str) -> Template:
    from jinja2 import StrictUndefined
    from jinja2.sandbox import SandboxedEnvironment

    return SandboxedEnvironment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True).from_string(text)
