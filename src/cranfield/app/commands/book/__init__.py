"""Manage books: pools with their raters and judgments."""

SUBCOMMANDS = {
    "create": f"{__name__}.create",
    "list": f"{__name__}.show",
    "show": f"{__name__}.show",
    "log": f"{__name__}.show",
    "preference": f"{__name__}.show",
    "add-item": f"{__name__}.change",
    "guideline": f"{__name__}.change",
    "calibrate": f"{__name__}.change",
    "reopen": f"{__name__}.change",
    "text": f"{__name__}.text",
    "rate": f"{__name__}.rate",
    "models": f"{__name__}.models",
    "close": f"{__name__}.change",
    "open": f"{__name__}.change",
    "agreement": f"{__name__}.results",
    "sensitivity": f"{__name__}.results",
    "freeze": f"{__name__}.results",
    "import": f"{__name__}.transfer",
    "export": f"{__name__}.transfer",
}
"""Command to its module, in the order help lists them."""
