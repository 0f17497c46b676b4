#!/usr/bin/env bash
# Build Cranfield for machines without Python, try it, and say how large and how fast it is. Called by `make standalone`.
# dist/cranfield/ is a folder with the program `cranfield`, and dist/cranfield-VERSION-SYSTEM.tar.gz is that folder. It runs on the
# system it is built on, and on later ones: a Linux with the C library of this one, or a newer. FORM=onefile makes one file,
# dist/cranfield, that unpacks itself at each start. EXTRAS are those of requirements/image.txt: web, mcp, postgres.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

form=${FORM:-onedir}
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

say "installing what is built in"
uv=(.venv/bin/uv --quiet)
"${uv[@]}" venv --python .venv/bin/python "$place/venv"
python=$place/venv/bin/python
"${uv[@]}" pip install --python "$python" --require-hashes -r requirements/image.txt
"${uv[@]}" pip install --python "$python" --require-hashes -r requirements/standalone.txt
"${uv[@]}" pip install --python "$python" --no-deps --no-build-isolation .
package=$("$python" -c 'import cranfield, os; print(os.path.dirname(cranfield.__file__))')
version=$("$python" -c 'from cranfield.base.version import __version__; print(__version__)')

# Modules are imported by name, so each is named; their files too, because some are run by their path. Of Python's library all is
# taken that a script of a config may import, but what needs a screen.
library=$("$python" -c 'import sys
from importlib.util import find_spec
left_out = {"antigravity", "idlelib", "lib2to3", "test", "this", "tkinter", "_tkinter", "turtle", "turtledemo"}
named = sorted(name for name in sys.stdlib_module_names - left_out if not name.startswith("_"))
print(*(f"--hidden-import={name}" for name in named if find_spec(name) is not None))')

say "building"
rm -rf dist/cranfield
# shellcheck disable=SC2086 # one option a word
"$python" -m PyInstaller --noconfirm --log-level ERROR "--$form" --name cranfield \
    --distpath dist --workpath "$place/work" --specpath "$place" \
    --collect-submodules cranfield --collect-data cranfield --add-data "$package:cranfield" --copy-metadata cranfield \
    --collect-submodules mcp --collect-submodules uvicorn --collect-submodules alembic --collect-submodules psycopg \
    --exclude-module tkinter --exclude-module PyInstaller --exclude-module setuptools $library scripts/standalone.py

program=$PWD/dist/cranfield
[ "$form" = onefile ] || program=$program/cranfield

say "trying it"
mkdir "$place/try"
cp -r examples/handbook/. "$place/try"
cd "$place/try"
export PATH=/usr/bin:/bin PYTHONDONTWRITEBYTECODE=1
"$program" --version
"$program" measures >/dev/null
"$program" run --format brief >report.md 2>log || { cat log report.md >&2; die "cranfield run failed"; }
grep -q nDCG report.md || die "cranfield run wrote no report"
[ ! -s cranfield-out/report.html ] || grep -q '<svg' cranfield-out/report.html || die "the report has no pictures"
run=$(find cranfield-out/runs -name '*.jsonl' ! -name '*.log.jsonl' | head -n 1)
[ -n "$run" ] || die "cranfield run kept no runs"
"$program" evaluate queries.yaml "$run" >/dev/null
printf 'q1 0 d1 1\n' >qrels.txt
printf 'q1 Q0 d1 1 2.0 t\nq1 Q0 d2 2 1.0 t\n' >run.txt
"$program" evaluate qrels.txt run.txt -m nDCG@10 | grep -q 1.0000 || die "cranfield evaluate is wrong"
printf 'def search(query, k):\n    return ["d1"]\n' >engine.py
printf 'testset: queries.yaml\nsystems: {a: {python: "engine:search"}}\n' >function.yaml
"$program" system probe a word --config function.yaml >/dev/null 2>log || { cat log >&2; die "a function cannot be called"; }
"$program" -c 'from cranfield.ranking import c_reader; import sys; sys.exit(c_reader.why_not() or 0)' || die "the C kernel is not there"
"$program" -c 'import sqlite3, http.server, csv, unittest' || die "Python's library is not there"

# What a killed call has started is ended by a guard, which is this program too. One file is two processes, of which one is killed.
if [ "$form" = onedir ]; then
    printf 'testset: queries.yaml\nsystems: {a: {command: [sh, -c, "echo $$ >pid; sleep 60", "{query}"], extract: {regex: x}}}\n' >slow.yaml
    "$program" run slow.yaml --out slow >/dev/null 2>&1 &
    disown
    for _ in $(seq 100); do [ -s pid ] && break || sleep 0.1; done
    kill -9 $!
    for _ in $(seq 50); do kill -0 "$(cat pid)" 2>/dev/null && sleep 0.1 || break; done
    ! kill -0 "$(cat pid)" 2>/dev/null || die "a program is left of a call that was killed"
fi

seconds() {
    "$python" - "$@" <<'END'
import statistics, subprocess, sys, time
taken = []
for _ in range(5):
    began = time.perf_counter()
    subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
    taken.append(time.perf_counter() - began)
print(f"{statistics.median(taken):.2f} s")
END
}
say "$form: --help $(seconds "$program" --help), evaluate $(seconds "$program" evaluate qrels.txt run.txt)"
cd "$OLDPWD"
if [ "$form" = onedir ]; then
    archive=dist/cranfield-$version-$(uname -s | tr '[:upper:]' '[:lower:]')-$(uname -m).tar.gz
    tar -C dist -czf "$archive" cranfield
    say "dist/cranfield/ $(du -sm dist/cranfield | cut -f1) MB; $archive $(du -m "$archive" | cut -f1) MB"
else
    say "dist/cranfield $(du -m dist/cranfield | cut -f1) MB"
fi
