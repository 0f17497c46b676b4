"""The prompt of a model rater: filled with a guideline, a query and untrusted documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path

from cranfield.agents.prompt import Prompt, clean, nonce
from cranfield.base.errors import ConfigError
from cranfield.books.settings import GradeScale
from cranfield.formats.io.validation import load_model

DEFAULT = "relevance-1"


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

    from cranfield.books.settings import SCALES

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
        "nonce": nonce(prompt, [question.query, question.need, *texts]),
        "is_batch": is_batch,
    }
    return prompt.fill(values)
