"""Benefit: whether a retrieval tool helps an agent, net of what it costs. Two arms, the same tasks, paired by task."""

from cranfield.plugins import Product

PRODUCT = Product(
    name="benefit",
    commands={
        "Evaluate": {"answers": "cranfield.benefit.commands.answers"},
        "Golden sets and benefit": {"benefit": "cranfield.benefit.commands.benefit"},
    },
    groups=frozenset({"answers", "benefit"}),
    schemas={"benefit-result": ("the result of a benefit experiment", "benefit/benefit_result.schema.json")},
)
