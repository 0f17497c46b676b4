"""Prompts: versioned files of templates, filled with untrusted text between delimiters that it cannot contain."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from cranfield.base.errors import InternalError
from cranfield.base.words import UNPRINTABLE

if TYPE_CHECKING:
    from jinja2 import Template

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

    def fill(self, values: Mapping[str, Any]) -> tuple[str, str]:
        """System prompt and user's message. What is filled in is no template.

        Raises:
            jinja2.TemplateError: a template has an error, or names a value that is not there.
        """
        system, user = (_template(text).render(values).strip() for text in (self.system, self.user))
        return system, user


def clean(text: str) -> str:
    """The text without characters that a program along the way would interpret."""
    return UNPRINTABLE.sub(" ", text)


def nonce(prompt: Prompt, parts: Sequence[str]) -> str:
    """The name of the delimiters: a hash of everything that stands between them.

    It is as hard to guess as a random one, because a document that contains it would have to contain its own hash. It is not
    random, so that the same request is the same bytes: for the cache, and for a recording.

    Args:
        prompt: that is filled.
        parts: the texts between the delimiters.
    """
    parts = [prompt.digest, *parts]
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
