"""A document as the front matter of a model card: the `model-index` of README.md on the Hugging Face hub, in the form and the names of MTEB.

Values are in percent, as MTEB's are. The interval and the number of queries are `args` of a metric.
"""

from __future__ import annotations

from cranfield.base.errors import UsageError
from cranfield.base.words import printable
from cranfield.reporting.document import Document


def render_model_card(document: Document) -> str:
    """The YAML between its two lines of dashes; the verdict and what voids it are comments.

    Raises:
        UsageError: the report is not of systems with means.
    """
    if document.model_card is None:
        raise UsageError(
            "this report has no means of systems for a model card", expected="an evaluation or a comparison of systems"
        )
    import yaml

    about = [f"# {printable(stamp)}" for stamp in document.stamps]
    if document.verdict is not None:
        about.append(f"# Verdict: {printable(document.verdict.name)}. {printable(document.verdict.sentence)}")
    text = yaml.safe_dump(document.model_card(), sort_keys=False, allow_unicode=True, width=1_000)
    return "\n".join(["---", *about, text.rstrip("\n"), "---"]) + "\n"
