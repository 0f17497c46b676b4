"""Rules that a system must keep, the baseline they compare with, calibration of confidence, and reports to code hosts."""

from cranfield.plugins import Product

PRODUCT = Product(
    name="gate",
    commands={
        "Evaluate": {"calibrate": "cranfield.gate.commands.calibrate"},
        "Gate": {
            "gate": "cranfield.gate.commands.gate",
            "baseline": "cranfield.gate.commands.baseline",
            "ci": "cranfield.gate.commands.ci",
        },
    },
    groups=frozenset({"baseline", "ci"}),
    config={"gate": "cranfield.gate.config:GateConfig"},
    cards={"GateResult": "cranfield.gate.reports.gate:result_document"},
    provides={
        "floors": "cranfield.gate.use_cases.floors",
        "rules_on_a_history": "cranfield.gate.use_cases.plan",
        "baseline": "cranfield.gate.baseline",
    },
)
