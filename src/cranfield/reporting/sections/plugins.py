"""Sections that installed packages add, by the entry-point group `cranfield.report_sections`."""

from __future__ import annotations

from collections.abc import Iterator

from cranfield.errors import Problem
from cranfield.plugins import Plugin, plugins
from cranfield.reporting.document import Bullets, Section
from cranfield.reporting.sections.subject import Subject

EXPECTED = "a function of a Subject that returns a Section or None"


def plugin_sections(subject: Subject) -> Iterator[Section]:
    """The sections that apply to a subject; last, a section that names the packages that failed.

    A report is the end of a long collection: a package that fails is reported and does not end it.
    """
    problems: list[Problem] = []
    for plugin in plugins("cranfield.report_sections"):
        try:
            section = _section(plugin, subject)
        except Exception as error:  # noqa: BLE001 - a plugin may raise anything
            problems.append(plugin.problem(error))
            continue
        if isinstance(section, Section):
            yield section
        elif section is not None:
            problems.append(plugin.wrong_type(section, EXPECTED))
    if problems:
        yield Section("plugins", "Sections left out", (Bullets(tuple(map(str, problems)), "warning"),))


def _section(plugin: Plugin, subject: Subject) -> object:
    build = plugin.load()
    return build(subject) if callable(build) else build
