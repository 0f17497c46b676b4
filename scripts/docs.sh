#!/usr/bin/env bash
# Build the documentation into docs/_build/html. Every warning is an error, and so is a reference that leads nowhere.
set -euo pipefail
cd "$(dirname "$0")/.."
.venv/bin/python -m sphinx --fail-on-warning --keep-going --nitpicky --quiet docs docs/_build/html
