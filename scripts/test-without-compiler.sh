#!/usr/bin/env bash
# Install from source where nothing compiles, and test there the Python reader that replaces the kernel: by itself, against
# the other tools, and on the command line, which says that the kernel is missing.
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
from cranfield.ranking import c_reader

if c_reader.available():
    raise SystemExit("the kernel is there, without a compiler")
print("no kernel, as meant:", c_reader.why_not())
PYTHON
kernel_only=(ranking/test_c_reader.py ranking/test_kernel_fuzz.py)
python -m pytest "$@" "${kernel_only[@]/#/--ignore=tests/unit/}" -m "not slow" -k "not native" \
    tests/unit/ranking tests/unit/cli/test_cli.py tests/parity tests/e2e/test_trec_eval_command.py
