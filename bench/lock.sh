#!/usr/bin/env bash
# Resolve bench/requirements.in into pinned and hashed requirements; what the project uses too keeps the project's pins.
set -euo pipefail
cd "$(dirname "$0")/.."

options=(--quiet --universal --generate-hashes --no-emit-index-url --no-emit-find-links --custom-compile-command bench/lock.sh)
[ -z "${UPGRADE:-}" ] || options+=(--upgrade)

.venv/bin/uv pip compile "${options[@]}" --python-version 3.11 --constraints requirements/dev.txt --no-annotate \
    bench/requirements.in -o bench/requirements.txt >/dev/null
