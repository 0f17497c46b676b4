#!/usr/bin/env bash
# Install from source where nothing compiles, and run there what reads run files: the Python reader has to stand in, and
# to say so.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

root=$PWD
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

say "installing from source with CC=/bin/false"
git -C "$root" ls-files -z --cached --others --exclude-standard | tar -C "$root" --null --files-from=- -cf - | (mkdir "$place/source" && tar -xf - -C "$place/source")
uv=("$root/.venv/bin/uv" --quiet)
"${uv[@]}" venv --python .venv/bin/python "$place/venv"
"${uv[@]}" pip sync --python "$place/venv/bin/python" --require-hashes requirements/dev.txt
CC=/bin/false CXX=/bin/false "${uv[@]}" pip install --python "$place/venv/bin/python" --no-deps --no-build-isolation "$place/source"

cd "$place/source"
rm -rf src
export PATH="$place/venv/bin:$PATH" CRANFIELD_DATA="${CRANFIELD_DATA:-$root/../shared/data}" CRANFIELD_INSTALLED=1
export CRANFIELD_KERNEL=absent
python - <<'PYTHON'
from cranfield.ranking import native

if native.available():
    raise SystemExit("the kernel is there, without a compiler")
print("no kernel, as meant:", native.why_not())
PYTHON
# What is about the kernel itself is not asked for; everything else that reads a run has to pass.
kernel_only=(ranking/test_native.py ranking/test_kernel_fuzz.py)
python -m pytest "$@" "${kernel_only[@]/#/--ignore=tests/unit/}" -k "not native" \
    tests/unit/ranking tests/unit/cli tests/parity tests/e2e
