#!/usr/bin/env bash
# Install the frameworks that Cranfield has adapters for beside the packages of .venv (1.3 GB, from caches after the first
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
.venv/bin/uv pip install --quiet --python .venv/bin/python --target "$packages" --no-deps --require-hashes -r requirements/frameworks.txt
# The one package without a hash: builds for the processor alone and for graphics cards are different files of one version.
# pip takes a local one where its settings name one. Where it took one for graphics cards, what that needs is installed too.
pip=(.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-input --no-compile --target "$packages")
"${pip[@]}" --no-deps "$torch"
PYTHONPATH=$packages .venv/bin/python -c 'import torch' 2>/dev/null || "${pip[@]}" --upgrade "$torch"
made_from >"$packages/requirements.txt"
