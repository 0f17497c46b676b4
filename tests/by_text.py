"""Test sets of tools that know a query by its text, under these texts."""

from cranfield.model import TestSet
from cranfield.model.query_ids import renamed, text_ids


def under_texts(testset: TestSet) -> TestSet:
    """The set with its texts in the place of its ids."""
    names = text_ids([query.text for query in testset.queries])
    return renamed(testset, dict(zip(testset.query_ids, names, strict=True)))
