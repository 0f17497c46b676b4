#!/usr/bin/env bash
# Build the sdist and, from it, the wheel; install the wheel in an environment of its own; run the tests there from a
# copy that holds no src/, so that what is tested is what would be published.
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

say "installing $(basename "$place"/dist/*.whl) in a fresh environment"
uv=(.venv/bin/uv --quiet)
"${uv[@]}" venv --python .venv/bin/python "$place/venv"
"${uv[@]}" pip sync --python "$place/venv/bin/python" --require-hashes requirements/test.txt
"${uv[@]}" pip install --python "$place/venv/bin/python" --no-deps "$place"/dist/*.whl
"${uv[@]}" pip check --python "$place/venv/bin/python"

mkdir "$place/copy"
for part in tests docs examples README.md CHANGELOG.md pyproject.toml; do
    [ ! -e "$part" ] || cp -r "$part" "$place/copy/"
done
rm -rf "$place/copy/docs/_build"
cd "$place/copy"
export PATH="$place/venv/bin:$PATH" CRANFIELD_DATA="${CRANFIELD_DATA:-$root/../shared/data}" CRANFIELD_INSTALLED=1
where=$(python -c 'import cranfield; print(cranfield.__file__)')
case $where in
    "$place"/venv/lib/*/site-packages/cranfield/__init__.py) say "testing the installed wheel" ;;
    *) die "cranfield comes from $where, not from the wheel" ;;
esac
# The tests of the tree, of the bench and of the kernel's sources are about the checkout, not about the wheel.
checkout_only=(architecture/test_tree.py unit/test_bench_generator.py unit/ranking/test_kernel_fuzz.py)
python -m pytest "$@" "${checkout_only[@]/#/--ignore=tests/}" tests --pyargs cranfield
