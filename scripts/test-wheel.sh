#!/usr/bin/env bash
# Build the sdist and, from it, the wheel; repair it for other Linux systems; install it in a fresh environment; test there,
# from a copy without src/, what only the wheel can get wrong: its contents, entry points, data files, kernel and commands.
# DIST is a folder that sdist and wheel are copied to when they have passed.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

root=$PWD
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

say "building the sdist and the wheel"
if ! .venv/bin/python -m build --no-isolation --outdir "$place/dist" . >"$place/build.log" 2>&1; then
    cat "$place/build.log" >&2
    die "the wheel does not build"
fi

if [ "$(uname -s)" = Linux ]; then
    say "repairing the wheel"
    if ! PATH="$root/.venv/bin:$PATH" auditwheel repair --wheel-dir "$place/repaired" "$place"/dist/*.whl >"$place/repair.log" 2>&1; then
        cat "$place/repair.log" >&2
        die "the wheel needs libraries that other systems lack"
    fi
    rm "$place"/dist/*.whl
    mv "$place"/repaired/*.whl "$place/dist/"
fi

say "installing $(basename "$place"/dist/*.whl) in a fresh environment"
uv=(.venv/bin/uv --quiet)
"${uv[@]}" venv --python .venv/bin/python "$place/venv"
"${uv[@]}" pip sync --python "$place/venv/bin/python" --require-hashes requirements/test.txt
"${uv[@]}" pip install --python "$place/venv/bin/python" --no-deps "$place"/dist/*.whl
"${uv[@]}" pip check --python "$place/venv/bin/python"

git ls-files -z src | tr '\0' '\n' >"$place/sources"
mkdir "$place/copy"
for part in tests docs examples README.md CHANGELOG.md pyproject.toml; do
    [ ! -e "$part" ] || cp -r "$part" "$place/copy/"
done
rm -rf "$place/copy/docs/_build"
cd "$place/copy"
export PATH="$place/venv/bin:$PATH" CRANFIELD_DATA="${CRANFIELD_DATA:-$root/../shared/data}" CRANFIELD_INSTALLED=1 CRANFIELD_SOURCES="$place/sources"
# What `uvx` starts is the wheel with the pinned versions.
CRANFIELD_WHEEL=$(echo "$place"/dist/*.whl)
export CRANFIELD_WHEEL CRANFIELD_UVX="$root/.venv/bin/uvx" UV_CONSTRAINT="$root/requirements/test.txt"
where=$(python -c 'import cranfield; print(cranfield.__file__)')
case $where in
    "$place"/venv/lib/*/site-packages/cranfield/__init__.py) say "testing the installed wheel" ;;
    *) die "cranfield comes from $where, not from the wheel" ;;
esac
tests=(
    packaging unit/gate/test_pytest_plugin.py unit/cli/test_cli.py unit/ranking/test_c_reader.py unit/ranking/test_readers.py
    e2e/test_demo.py e2e/test_trec_eval_command.py
)
python -m pytest "$@" "${tests[@]/#/tests/}"
[ -z "${DIST:-}" ] || cp "$place"/dist/* "$DIST"
