#!/usr/bin/env bash
# Run every check, one line each as it ends, as many at a time as there are processors; the output of those that fail is
# shown in full.
set -uo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

outputs=$(mktemp -d)
trap 'rm -rf "$outputs"' EXIT
trap 'trap - TERM; kill 0' INT TERM # what runs in the background does not hear Ctrl-C
processors=$(getconf _NPROCESSORS_ONLN)

step() {
    while [ "$(jobs -pr | wc -l)" -ge "$processors" ]; do
        sleep 0.2
    done
    run_step "$@" &
}

run_step() {
    local name=$1 began=$SECONDS output="$outputs/$1"
    shift
    if "$@" >"$output" 2>&1 </dev/null; then
        printf '%-14s ok (%s s)\n' "$name" $((SECONDS - began))
    else
        touch "$output.failed"
        printf '%-14s FAILED: %s\n%s\n' "$name" "$*" "$(cat "$output")"
    fi
}

step format .venv/bin/ruff format --check .
step lint .venv/bin/ruff check .
step types .venv/bin/mypy
# What is missing on another system is not reached there. One cache for each: they would replace each other's.
for platform in darwin win32; do
    step "types $platform" .venv/bin/mypy --platform "$platform" --no-warn-unreachable --cache-dir ".mypy_cache/$platform" src
done
step corpus .venv/bin/python tests/corpus/corpus.py
step architecture .venv/bin/python -m pytest -q tests/architecture
step workflows .venv/bin/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml examples/ci/github-actions.yml examples/harness/*/.github/workflows/*.yml
step action .venv/bin/check-jsonschema --builtin-schema vendor.github-actions action.yml
step security .venv/bin/zizmor --offline --no-progress --min-severity medium .github action.yml examples/ci/github-actions.yml
step documentation scripts/docs.sh
wait

failed=
for mark in "$outputs"/*.failed; do
    [ -e "$mark" ] && failed+=" $(basename "$mark" .failed)"
done
[ -z "$failed" ] || die "failed:$failed (make format and make docs fix some of it)"
echo "all checks passed"
