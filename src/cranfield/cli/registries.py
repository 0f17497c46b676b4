"""Names that options take, for help and for completion in a shell: their registries are imported when they are asked for."""


def measures() -> list[str]:
    """The default measures with their cutoffs, then the names of the catalogue."""
    from cranfield.measures import CATALOGUE, DEFAULT_MEASURES

    return list(dict.fromkeys((*DEFAULT_MEASURES, *CATALOGUE)))


def run_formats() -> list[str]:
    """Formats of runs."""
    from cranfield.formats.sniff import format_names

    return list(format_names("run"))


def testset_formats() -> list[str]:
    """Formats of test sets."""
    from cranfield.formats.sniff import format_names

    return list(format_names("testset"))


def verdicts() -> list[str]:
    """Verdicts that `--fail-on` takes."""
    from cranfield.app.commands.shared import FAIL_ON, spell_fail_on

    return [spell_fail_on(code) for code in FAIL_ON]
