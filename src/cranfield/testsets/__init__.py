"""Looking after test sets: validation, figures, differences, splits. Files are read and written elsewhere."""

from cranfield.plugins import Product

PRODUCT = Product(
    name="testsets",
    commands={"Test sets": {"testset": "cranfield.testsets.commands.testset"}},
    groups=frozenset({"testset"}),
    cards={"TestSet": "cranfield.testsets.reports.testset:CARD"},
)
