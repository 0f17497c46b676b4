#!/usr/bin/env bash
# Build the documentation into docs/_build/html. Every warning is an error, and so is a reference that leads nowhere.
# The reference pages are written from the code first; they are no part of the repository.
set -euo pipefail
cd "$(dirname "$0")/.."
.venv/bin/python docs/generate.py
.venv/bin/python -m sphinx --fail-on-warning --keep-going --nitpicky --quiet docs docs/_build/html
