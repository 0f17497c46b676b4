"""Lists in help, `{conventions}` and others: read from their tables when help is shown, and imported no sooner."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from typer.core import TyperCommand

from cranfield.words import or_list


def _conventions() -> str:
    from cranfield.model import CONVENTIONS

    return or_list(list(CONVENTIONS))


def _parts() -> str:
    from cranfield.testsets.split import PARTS

    return or_list(PARTS)


def _run_formats() -> str:
    from cranfield.formats.sniff import format_names

    return or_list(format_names("run"))


def _testset_formats() -> str:
    from cranfield.formats.sniff import format_names

    return or_list(format_names("testset"))


def _tests() -> str:
    from cranfield.stats.table import TESTS

    return or_list([name for name, spec in TESTS.items() if spec.can_declare])


LISTS: dict[str, Callable[[], str]] = {
    "{conventions}": _conventions,
    "{parts}": _parts,
    "{run_formats}": _run_formats,
    "{tests}": _tests,
}


class Command(TyperCommand):
    """A command whose help has the lists filled in."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options, each list read from its table."""
        for parameter in self.params:
            text = getattr(parameter, "help", None) or ""
            for place, listed in LISTS.items():
                if place in text:
                    text = text.replace(place, listed())
                    parameter.help = text  # type: ignore[attr-defined]  # of a parameter of typer
        super().format_options(ctx, formatter)
