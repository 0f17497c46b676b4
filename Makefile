# Two commands set everything up on a fresh machine: `make demo` and `make test`. `make help` lists the rest.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.ready
# Test processes: `make test JOBS=1` for one. A file's tests stay together, so that it makes its fixtures once.
JOBS ?= auto
PYTEST_PARALLEL := -n $(JOBS) --dist loadfile
# What the tests of today use beside Python, with the Debian package that brings each. Playwright's driver needs libatomic.
SYSTEM_PACKAGES := chromium=chromium libatomic.so.1=libatomic1

.PHONY: help setup lock demo test test-wheel check format docs bench clean

help:  ## say what each target does
	@grep -hE '^[a-z-]+:.*  ## ' $(MAKEFILE_LIST) | sed -E 's/:.*  ## /\t/' | expand -t 14

setup: $(STAMP)  ## make .venv with every extra, from pinned and hashed requirements

$(STAMP): pyproject.toml requirements/dev.txt requirements/uv.txt
	@PYTHON="$(PYTHON)" scripts/setup.sh

lock: setup  ## write requirements/*.txt anew from pyproject.toml (UPGRADE=1 moves the pins)
	@UPGRADE="$(UPGRADE)" scripts/lock.sh

demo: setup  ## compare two real search systems over the standard library; the report is in cranfield-demo/
	@$(BIN)/cranfield demo --out cranfield-demo

test: setup  ## run every test; says how many were skipped, and which (ARGS="-k name" narrows)
	@scripts/system-packages.sh $(SYSTEM_PACKAGES)
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pytest $(PYTEST_PARALLEL) $(ARGS)

test-wheel: setup  ## run every test against the built wheel
	@scripts/system-packages.sh $(SYSTEM_PACKAGES)
	@scripts/test-wheel.sh $(PYTEST_PARALLEL) $(ARGS)

check: setup  ## format, lint, types, the import table and the tree, documentation: all without changing a file
	@scripts/check.sh

format: setup  ## put every file in the one format, and mend what the linter can
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

docs: setup  ## build the documentation into docs/_build/html; every warning is an error
	@scripts/docs.sh
	@echo "docs/_build/html/index.html"

bench: setup  ## measure what the README promises of speed
	@$(BIN)/python bench/startup.py

clean:  ## remove the environment and everything made from the sources
	@rm -rf .venv build dist src/*.egg-info cranfield-demo docs/_build docs/reference/generated
	@rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis
	@find src tests docs bench -name __pycache__ -type d -prune -exec rm -rf {} +
