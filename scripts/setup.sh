#!/usr/bin/env bash
# Make .venv with everything the project needs, from pinned and hashed requirements. Called by `make setup`.
# A run that was interrupted leaves no stamp, and the next run starts over: packages come from uv's cache by then.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

python=${PYTHON:-python3}
stamp=.venv/.ready

command -v "$python" >/dev/null || die "$python is not there: install Python 3.11 or newer, or name one: PYTHON=python3.12 make setup"
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    die "Cranfield needs Python 3.11 or newer, and $python is $version. Name another: PYTHON=python3.12 make setup"

if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    # Debian splits venv off Python.
    package="python$version-venv"
    if ! can_apt || ! apt_install "$package"; then
        die "$python cannot make virtual environments here. On Debian and Ubuntu: sudo apt-get install $package"
    fi
fi

if [ ! -e "$stamp" ]; then
    say "setting up .venv (Python $version)"
    "$python" -m venv --clear .venv
else
    say "bringing .venv up to date"
    rm "$stamp"
fi
.venv/bin/python -m pip install -qq --disable-pip-version-check --no-input --require-hashes -r requirements/uv.txt
.venv/bin/uv pip sync --quiet --python .venv/bin/python --require-hashes requirements/dev.txt
# Compiled once here, and not by each test process; tests of other packages, and clients' models that nobody imports, are not.
.venv/bin/python -m compileall -q -j 0 -x '/tests?/|/openai/' .venv/lib src
.venv/bin/uv pip install --quiet --python .venv/bin/python --no-deps --no-build-isolation -e .
reason=$(.venv/bin/python -c 'from cranfield.ranking import c_reader; print(c_reader.why_not())')
[ -z "$reason" ] || say "run files will be read in Python, which takes several times as long: $reason"
touch "$stamp"
