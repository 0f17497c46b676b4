#!/usr/bin/env bash
# Make bench/.venv with the other tools, from pinned and hashed requirements and with the Python of .venv.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

stamp=bench/.venv/.ready
[ ! "$stamp" -nt bench/requirements.txt ] || exit 0
say "setting up bench/.venv"
rm -f "$stamp"
.venv/bin/uv venv --quiet --clear --python .venv/bin/python bench/.venv
.venv/bin/uv pip sync --quiet --compile-bytecode --python bench/.venv/bin/python --require-hashes bench/requirements.txt
touch "$stamp"
