#!/usr/bin/env bash
# Fetch the published source of the peers whose tests come with it, and run those tests against our drop-in modules.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
say "fetching ir_measures with its tests"
sed -n '/^ir-measures==/,/^    #/p' requirements/dev.txt >"$place/peers.txt"
.venv/bin/python -m pip --quiet --disable-pip-version-check download --no-deps --no-binary :all: --require-hashes \
    -r "$place/peers.txt" -d "$place"
tar -xzf "$place"/ir_measures-*.tar.gz -C "$place" --wildcards --strip-components=1 '*/tests'
CRANFIELD_PEERS="$place" .venv/bin/python -m pytest -p no:randomly -s tests/peers "$@"
