"""Judging: pools of results, raters and models, agreement, frozen test sets. No HTML."""

from cranfield.plugins import Product

PRODUCT = Product(
    name="judging",
    commands={
        "Test sets": {"pool": "cranfield.judging.commands.pool", "holes": "cranfield.judging.commands.pool"},
        "Judge": {"book": "cranfield.judging.commands.book", "agreement": "cranfield.judging.commands.agreement"},
    },
    groups=frozenset({"book", "pool"}),
    subcommands={"testset": {"refresh": "cranfield.judging.commands.refresh"}},
    cards={
        "Agreement": "cranfield.judging.reports.agreement:CARD",
        "RaterReport": "cranfield.judging.reports.agreement:agreement_document",
    },
)
