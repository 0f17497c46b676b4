#!/usr/bin/env bash
# Run the tests of Spark, which `make setup` leaves out.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup-spark.sh
PATH="$PWD/.venv/bin:$PATH" PYTHONPATH="$PWD/.venv/spark" .venv/bin/python -m pytest -p no:randomly -n 2 --dist loadfile tests/spark "$@"
