#!/usr/bin/env bash
# Run the tests of frameworks, which `make setup` leaves out. One process: each would import torch anew.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup-frameworks.sh
PATH="$PWD/.venv/bin:$PATH" PYTHONPATH="$PWD/.venv/frameworks" .venv/bin/python -m pytest -p no:randomly tests/frameworks "$@"
