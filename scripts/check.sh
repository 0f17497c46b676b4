#!/usr/bin/env bash
# Run every check, one line each; the output of those that fail is shown in full.
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
# What is missing on another system is not reached there. One cache for each: they would replace each other's.
for platform in darwin win32; do
    step "types $platform" .venv/bin/mypy --platform "$platform" --no-warn-unreachable --cache-dir ".mypy_cache/$platform" src
done
step architecture .venv/bin/python -m pytest -q tests/architecture
step workflows .venv/bin/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml examples/ci/github-actions.yml
step action .venv/bin/check-jsonschema --builtin-schema vendor.github-actions action.yml
step security .venv/bin/zizmor --offline --no-progress --min-severity medium .github action.yml examples/ci/github-actions.yml
step documentation scripts/docs.sh --check

[ ${#failed[@]} = 0 ] || die "failed: ${failed[*]} (make format and make docs fix some of it)"
echo "all checks passed"
