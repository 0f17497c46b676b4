"""Golden sets over a code base: authors, an oracle, an adversary and people, with checks against the source between them."""

from cranfield.plugins import Product

PRODUCT = Product(
    name="golden",
    commands={"Golden sets and benefit": {"golden": "cranfield.golden.commands"}},
    groups=frozenset({"golden"}),
    schemas={"golden-run": ("the records of a golden run", "golden/golden_run.schema.json")},
)
