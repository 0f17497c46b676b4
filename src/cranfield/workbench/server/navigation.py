"""The navigation: one table of the pages that a menu leads to, and who sees them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cranfield.plugins import products

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cranfield.workbench.server.access import Caller


@dataclass(frozen=True, slots=True)
class MenuEntry:
    """A link of the menu."""

    title: str
    path: str
    access: str
    """Kind of route: the link is shown to roles that may use it."""


NAVIGATION = (
    MenuEntry("Home", "/", "account"),
    MenuEntry("New evaluation", "/evaluations/new", "evaluate"),
    MenuEntry("Test sets", "/testsets", "results"),
    MenuEntry("Evaluations", "/evaluations", "results"),
    MenuEntry("Compare", "/comparisons", "results"),
    MenuEntry("Books", "/books", "read"),
    MenuEntry("Systems", "/systems", "results"),
    MenuEntry("Jobs", "/jobs", "results"),
    MenuEntry("Settings", "/settings", "manage"),
    MenuEntry("Measures", "/measures", "account"),
)


def entries(caller: Caller, path: str) -> Iterator[tuple[MenuEntry, bool]]:
    """The links for an account, each with whether the page is in that part: the longest path counts."""
    of_products = (MenuEntry(*entry) for product in products() for entry in product.menu)
    shown = [entry for entry in (*NAVIGATION, *of_products) if caller.may(entry.access)]
    inside = [entry for entry in shown if path == entry.path or path.startswith(f"{entry.path.rstrip('/')}/")]
    here = max((entry for entry in inside if entry.path != "/" or path == "/"), key=lambda e: len(e.path), default=None)
    for entry in shown:
        yield entry, entry is here
