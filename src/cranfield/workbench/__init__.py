"""The workbench of a team: pages, REST, jobs, schedules, MCP, a client, metrics for Prometheus."""

from cranfield.plugins import Product

PRODUCT = Product(
    name="workbench",
    commands={
        "Judge": {"judge": "cranfield.workbench.commands.judge", "db": "cranfield.workbench.commands.db"},
        "Serve": {
            "serve": "cranfield.workbench.commands.serve",
            "watch": "cranfield.workbench.commands.watch",
            "mcp": "cranfield.workbench.commands.mcp",
            "intake": "cranfield.workbench.commands.intake",
            "metrics": "cranfield.workbench.commands.metrics",
            "alerts": "cranfield.workbench.commands.metrics",
            "dashboard": "cranfield.workbench.commands.metrics",
            "people": "cranfield.workbench.commands.people",
        },
    },
    groups=frozenset({"db", "intake", "people"}),
    needs=("testsets", "gate", "judging", "benefit"),
    provides={"operators_file": "cranfield.workbench.config"},
    schemas={"workbench": ("the operator's file, workbench.yaml", "workbench/workbench.schema.json")},
)
