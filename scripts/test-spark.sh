#!/usr/bin/env bash
# Install Spark beside the packages of .venv (480 MB, from uv's cache after the first time) and run the tests that need it.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

packages=.venv/spark
if ! cmp -s requirements/spark.txt "$packages/requirements.txt"; then
    say "installing Spark in $packages"
    rm -rf "$packages"
    # It is built from its sdist by the pinned setuptools of .venv.
    .venv/bin/uv pip install --quiet --python .venv/bin/python --target "$packages" --no-build-isolation --require-hashes -r requirements/spark.txt
    cp requirements/spark.txt "$packages/requirements.txt"
fi
PATH="$PWD/.venv/bin:$PATH" PYTHONPATH="$PWD/$packages" .venv/bin/python -m pytest -p no:randomly -n 2 --dist loadfile tests/spark "$@"
