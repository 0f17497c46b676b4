#!/usr/bin/env bash
# Install Spark beside the packages of .venv (480 MB, from uv's cache after the first time), for the tests and the benchmark that need it.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

packages=.venv/spark
! cmp -s requirements/spark.txt "$packages/requirements.txt" || exit 0
say "installing Spark in $packages"
rm -rf "$packages"
# It is built from its sdist by the pinned setuptools of .venv.
.venv/bin/uv pip install --quiet --python .venv/bin/python --target "$packages" --no-build-isolation --require-hashes -r requirements/spark.txt
cp requirements/spark.txt "$packages/requirements.txt"
