"""`cranfield trec_eval`: the command line of trec_eval, and what it prints."""

from __future__ import annotations

from typing import Any

import typer

SETTINGS: dict[str, Any] = {
    "options_metavar": "[OPTIONS] QRELS RUN",
    "add_help_option": False,  # its letters are trec_eval's: none is for the framework to read
    "context_settings": {"ignore_unknown_options": True, "allow_extra_args": True},
}


def trec_eval_command(context: typer.Context) -> None:
    """Drop-in replacement for trec_eval: same options and output.

    QRELS contains the judgments and RUN the results; - reads RUN from stdin. Options may be given in any order, and
    abbreviated or combined as in trec_eval.
    """
    from cranfield.base.version import __version__
    from cranfield.compat.trec_eval.options import help_lines, parse_arguments

    options = parse_arguments(context.args)
    if options.wants == "help":
        formatter = context.make_formatter()
        with formatter.section("Options"):
            formatter.write_dl(help_lines())
        typer.echo(f"{context.get_help()}\n\n{formatter.getvalue()}", nl=False)
        return
    if options.wants == "version":
        typer.echo(f"cranfield {__version__}, as trec_eval 10.0 and 9.0.8", err=True)
        return
    from cranfield.compat.trec_eval.names import plan
    from cranfield.compat.trec_eval.scores import output, read_inputs

    wanted = plan(options)
    for note in wanted.notes:
        typer.echo(f"warning: {note}", err=True)
    inputs = read_inputs(options)
    if inputs.absent and not options.complete:
        typer.echo(f"warning: {inputs.absence()}", err=True)
    for text in output(wanted, inputs, options):
        typer.echo(text.encode("utf-8", "surrogateescape"), nl=False)
