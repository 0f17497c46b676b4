"""The scenes of the corpus: a folder with its inputs, and the calls that are made in it, in order."""

from __future__ import annotations

from scenes import configured, core, inputs, interface, judging
from scenes.scene import Scene

SCENES = [*interface.SCENES, *core.SCENES, *configured.SCENES, *judging.SCENES, *inputs.SCENES]

__all__ = ["SCENES", "Scene"]
