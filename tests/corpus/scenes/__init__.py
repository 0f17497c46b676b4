"""The scenes of the corpus: a folder with its inputs, and the calls that are made in it, in order."""

from __future__ import annotations

from scenes import agent_results, agents, configured, core, inputs, interface, judging, library, workbench
from scenes.scene import UNWATCHED, Scene

SCENES = [
    *interface.SCENES,
    *core.SCENES,
    *configured.SCENES,
    *judging.SCENES,
    *inputs.SCENES,
    *library.SCENES,
    *workbench.SCENES,
    *agents.SCENES,
    *agent_results.SCENES,
]

__all__ = ["SCENES", "UNWATCHED", "Scene"]
