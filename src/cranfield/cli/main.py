"""The command: one file a noun, features imported inside their command so that `--help` is instant."""

from __future__ import annotations

from typing import Annotated

import typer

from cranfield import __version__
from cranfield.cli.compare import compare_command
from cranfield.cli.demo import demo_command
from cranfield.cli.evaluate import evaluate_command
from cranfield.cli.explain import explain_command
from cranfield.cli.measures import measures_command
from cranfield.cli.run import run_command
from cranfield.cli.shared import State, handled
from cranfield.cli.trec_eval import SETTINGS, trec_eval_command

app = typer.Typer(
    name="cranfield",
    help="Did your search get better, worse or stay the same? Measures, paired tests and a verdict, with the evidence.",
    epilog=(
        "Exit codes: 0 done; 1 a verdict you asked to fail on; 2 usage or bad input; 3 a system under test failed "
        "beyond the limit set; 4 not distinguished, where you asked for a decision; 130 interrupted."
    ),
    rich_markup_mode=None,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _print_version(*, value: bool) -> None:
    if value:
        typer.echo(f"cranfield {__version__}")
        raise typer.Exit


@app.callback()
def root(
    *,
    version: Annotated[  # noqa: ARG001 - its callback prints and leaves
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and leave.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Hold the options that belong to no command."""
    State.debug = debug


app.command("demo")(handled(demo_command))
app.command("run")(handled(run_command))
app.command("evaluate")(handled(evaluate_command))
app.command("compare")(handled(compare_command))
app.command("explain")(handled(explain_command))
app.command("measures")(handled(measures_command))
app.command("trec_eval", **SETTINGS)(handled(trec_eval_command))


def main() -> None:
    """Entry point of the console script."""
    app(prog_name="cranfield")
