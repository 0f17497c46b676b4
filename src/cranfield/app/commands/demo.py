"""`cranfield demo`: the main job on two real systems over the installed standard library."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cranfield.app.command import Report, note
from cranfield.options.declaration import Option


def demo_command(
    *,
    out: Annotated[Path, Option("Output folder of the demo.", metavar="DIR", refuses_link=True)] = Path(
        "cranfield-demo"
    ),
) -> Report:
    """Compare two search systems over the Python standard library.

    The report says which one is better.
    """
    from cranfield.app.run import run_job
    from cranfield.demo.build import build_demo
    from cranfield.installation import this_installation
    from cranfield.platforms import PROGRAMS, require

    require(PROGRAMS, "the demo, which starts its search systems as programs,")
    note(f"indexing the Python standard library twice, in {out} …")
    demo = build_demo(out)
    for line in demo.drift.sentences():
        note(line)
    job = run_job(demo.config, out=out)
    serve = this_installation().next_command("serve cranfield.yaml --workbench workbench.yaml", "web")
    return Report(document=job.document, written=job.written, notes=[f"Next, in {out}: {serve}"])
