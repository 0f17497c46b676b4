"""Names that options take, for help and for completion in a shell: their registries are imported when they are asked for."""


def measures() -> list[str]:
    """The default measures with their cutoffs, then the names of the catalogue."""
    from cranfield.measures import CATALOGUE, DEFAULT_MEASURES

    return list(dict.fromkeys((*DEFAULT_MEASURES, *CATALOGUE)))


def conventions() -> list[str]:
    """Scoring conventions."""
    from cranfield.model import CONVENTIONS

    return list(CONVENTIONS)


def tests() -> list[str]:
    """Tests that a verdict can rest on."""
    from cranfield.stats.table import TESTS

    return [name for name, spec in TESTS.items() if spec.can_declare]


def adjustments() -> list[str]:
    """Adjustments of p-values."""
    from cranfield.stats.table import ADJUSTMENTS

    return list(ADJUSTMENTS)


def run_formats() -> list[str]:
    """Formats of runs."""
    from cranfield.formats.sniff import format_names

    return list(format_names("run"))


def testset_formats() -> list[str]:
    """Formats of test sets."""
    from cranfield.formats.sniff import format_names

    return list(format_names("testset"))
