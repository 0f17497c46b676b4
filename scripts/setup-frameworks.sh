#!/usr/bin/env bash
# Install the frameworks that Cranfield has adapters for beside the packages of .venv (1.1 GB, from caches after the first
# time), for the tests that need them.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

packages=.venv/frameworks
torch=torch==2.13.0
made_from() { echo "$torch"; cat requirements/frameworks.txt; }
! made_from | cmp -s - "$packages/requirements.txt" || exit 0
say "installing frameworks in $packages"
rm -rf "$packages"
# The one package without a hash: builds for the processor alone and for graphics cards are different files of one version. pip
# takes a local build where its settings name one.
pip=(.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-input --no-compile --target "$packages")
"${pip[@]}" --no-deps "$torch"
.venv/bin/uv pip install --quiet --python .venv/bin/python --target "$packages" --no-deps --require-hashes -r requirements/frameworks.txt
if ! PYTHONPATH=$packages .venv/bin/python -c 'import torch' 2>/dev/null; then
    # A build for graphics cards loads libraries that are packages of their own.
    sed -n 's/^\([a-z0-9-]*==[^ ]*\) \\$/\1/p' requirements/{dev,frameworks}.txt >"$packages/pins.txt"
    "${pip[@]}" --upgrade --constraint "$packages/pins.txt" "$torch"
fi
made_from >"$packages/requirements.txt"
