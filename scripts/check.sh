#!/usr/bin/env bash
# Every check, each said in a line; what fails is shown in full, and the others run all the same.
set -uo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

failed=()
output=$(mktemp)
trap 'rm -f "$output"' EXIT

step() {
    local name=$1 began=$SECONDS
    shift
    printf '%-14s' "$name"
    if "$@" >"$output" 2>&1 </dev/null; then
        printf 'ok (%s s)\n' $((SECONDS - began))
    else
        printf 'FAILED: %s\n' "$*"
        cat "$output"
        failed+=("$name")
    fi
}

step format .venv/bin/ruff format --check .
step lint .venv/bin/ruff check .
step types .venv/bin/mypy
step architecture .venv/bin/python -m pytest -q tests/architecture
step documentation scripts/docs.sh

[ ${#failed[@]} = 0 ] || die "failed: ${failed[*]} (make format mends what a machine can)"
echo "all checks passed"
