# Strata: everything a contributor types. Two commands are enough on a fresh machine: `make run` and `make test`.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

VENV := .venv
BIN := $(VENV)/bin
MODULES := dashboard/node_modules/.package-lock.json
ARGS ?=
NAME ?=
TORCH := torch==2.13.0 torchdata==0.11.0
FRAMEWORKS := lightning==2.6.6 transformers==5.22.2 accelerate==1.15.0 jax==0.10.2 flax==0.12.8 keras==3.15.1
BROWSER_PACKAGES := chromium fonts-dejavu-core
HOST_PACKAGES := iproute2 tcpdump postgresql
LAUNCHER_PACKAGES := openssh-server openssh-client slurm-wlm munge

.PHONY: help setup run test test-all test-setup check proto tree bench fresh test-launchers test-torch test-frameworks screenshots dashboard browser h2load promtool constraints clean test-image

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: setup ## set everything up, then the demo with its dashboard (ARGS="--kill")
	@exec $(BIN)/strata demo $(ARGS)

# Tests run beside each other, as tests/conftest.py says; ARGS="-n 0" for one after another.
PYTEST := $(BIN)/pytest -n auto

test: test-setup ## set everything up, then what a change must pass: dashboard, Python, browser (ARGS="-k name")
	@cd dashboard && npm test
	@$(PYTEST) -m "not slow and not torch and not launchers and not frameworks and not hosts" $(ARGS)

test-all: test-setup ## make test, and the long proofs: many kills, every page, odd values, the documentation's walks
	@cd dashboard && npm test
	@$(PYTEST) -m "not torch and not launchers and not frameworks and not hosts" $(ARGS)

test-setup: setup $(MODULES) browser h2load promtool

check: $(VENV)/.installed $(MODULES) ## lint, format, types, layers, generated stubs; changes nothing
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/python scripts/proto.py --check
	@$(BIN)/python scripts/reference.py --check
	@$(BIN)/python scripts/wire.py --check
	@$(BIN)/python -m benchmarks table --check
	@cd dashboard && npm run lint
	@$(BIN)/pytest -q tests/test_architecture.py tests/test_dashboard_layers.py

proto: $(VENV)/.installed ## regenerate the gRPC stubs from proto/
	@$(BIN)/python scripts/proto.py

tree: $(VENV)/.installed ## write docs/tree.md, the list of every file
	@$(BIN)/python scripts/tree.py --write

.PHONY: docs
docs: $(VENV)/.installed ## build the documentation's site into build/site; a dead link or a page without a place fails
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "docs: build/site/index.html"

.PHONY: rights
rights: $(VENV)/.installed ## bring the table of rights in SECURITY.md up to date
	@$(BIN)/python scripts/rights.py --write

.PHONY: reference
reference: $(VENV)/.installed ## write docs/reference, the contract as the code has it
	@$(BIN)/python scripts/reference.py

.PHONY: wire
wire: $(VENV)/.installed ## write dashboard/src/api/wire.gen.ts, the page's types of the REST API and the stream
	@$(BIN)/python scripts/wire.py

bench: setup ## benchmarks beside their peers, into benchmarks/results (NAME=sharding for one)
	@$(BIN)/python -m benchmarks $(NAME) $(ARGS)

fresh: ## rehearse the README's two commands: new clone, empty HOME, nothing installed
	@python3 scripts/fresh.py $(ARGS)

test-image: $(VENV)/.installed ## rehearse the Dockerfile's steps in a clean Debian, without Docker (root, debootstrap)
	@$(BIN)/python scripts/image.py $(ARGS)

# Only what integrates with torch needs this. pytest's exit code 5 means that no such test exists yet.
test-torch: setup ## install torch, then the tests that need it
	@$(BIN)/pip install -q --disable-pip-version-check -c constraints.txt $(TORCH)
	@$(BIN)/pytest -m torch $(ARGS) || { code=$$?; [ $$code -eq 5 ] || exit $$code; }

# torch first and pinned: what depends on it would bring another build.
test-frameworks: setup ## install torch and the frameworks that Strata integrates with, then train with each of them
	@$(BIN)/pip install -q --disable-pip-version-check -c constraints.txt $(TORCH)
	@$(BIN)/pip install -q --disable-pip-version-check -c constraints.txt $(TORCH) $(FRAMEWORKS)
	@$(BIN)/pytest -m frameworks $(ARGS)

.PHONY: test-imports
test-imports: setup ## install wandb and mlflow beside the environment, then import what they themselves have written
	@test -x .venv-trackers/bin/python || $(BIN)/python -m venv .venv-trackers
	@.venv-trackers/bin/pip install -q --disable-pip-version-check wandb mlflow-skinny sqlalchemy alembic
	@TRACKERS_PYTHON=$(CURDIR)/.venv-trackers/bin/python $(BIN)/pytest -n 0 -m "" tests/integration/cli/test_trackers.py $(ARGS)

# Whole clusters of others: their servers come from apt, Ray from PyPI.
.PHONY: test-hosts
test-hosts: setup ## several hosts as network namespaces: joined, listened to, cut off, killed (root, iproute2, tcpdump, PostgreSQL)
	@if ! command -v ip >/dev/null || ! command -v tcpdump >/dev/null || ! ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1; then \
	  apt-get update -qq && apt-get install -y -qq $(HOST_PACKAGES) >/dev/null; fi
	@$(BIN)/pip install -q --disable-pip-version-check -c constraints.txt $(TORCH)
	@$(BIN)/pytest -m hosts -n 0 tests/hosts $(ARGS)

test-launchers: setup ## install sshd, Slurm and Ray, then train through each of them, and by kubectl where that is
	@command -v sshd >/dev/null && command -v slurmctld >/dev/null && command -v munged >/dev/null || { \
	  [ "$$(id -u)" -eq 0 ] || { echo "test: run: sudo apt-get install -y --no-install-recommends $(LAUNCHER_PACKAGES)" >&2; exit 1; }; \
	  export DEBIAN_FRONTEND=noninteractive; apt-get -qq -o DPkg::Lock::Timeout=300 update; \
	  apt-get -qq -o DPkg::Lock::Timeout=300 install -y --no-install-recommends $(LAUNCHER_PACKAGES) >/dev/null; }
	@$(BIN)/pip show -q ray 2>/dev/null || $(BIN)/pip install -q --disable-pip-version-check -c constraints.txt "ray[default]"
	@$(BIN)/pip show -q kubernetes-validate 2>/dev/null || $(BIN)/pip install -q --disable-pip-version-check -c constraints.txt kubernetes-validate
	@$(BIN)/pip check --disable-pip-version-check >/dev/null
	@$(BIN)/pytest -m launchers $(ARGS)

# Microsoft's own server of Azure's blobs, from npm; the suite runs over it wherever it is found.
.PHONY: test-azure
test-azure: setup ## install Azurite, then the suite of every store over it
	@npm install --no-audit --no-fund --silent --prefix build/azurite azurite@3
	@$(BIN)/pytest tests/contract/test_storage.py -k azure $(ARGS)

screenshots: setup browser ## pictures of every page into docs/img, from a real training job
	@$(BIN)/python scripts/screenshots.py $(ARGS)

# What is installed and built. pip runs again when its inputs change, the dashboard when its sources' hash does, the engine's
# build when another version is installed.
setup: $(VENV)/.installed dashboard

$(VENV)/.installed: pyproject.toml constraints.txt engine/pyproject.toml engine/repack.py
	@if [ ! -x $(BIN)/python ]; then \
	  for python in $(PYTHON) python3 python3.11 python3.12 python3.13; do \
	    if $$python -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	      echo "setup: virtualenv of $$($$python --version)"; $$python -m venv $(VENV); break; fi; \
	  done; \
	fi
	@[ -x $(BIN)/python ] || { echo "setup: Python 3.11 or newer with its venv module was not found (PYTHON=... names one)" >&2; exit 1; }
	@echo "setup: installing Python packages"
	@$(BIN)/python scripts/engine.py
	@$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[server,dev]'
	@touch $@

dashboard: $(VENV)/.installed ## build the dashboard, when its sources changed
	@$(BIN)/python dashboard/build.py

# npm's own record of what it installed. Never `npm ci`: npm 11 rejects its own lock (CONTRIBUTING.md).
$(MODULES): dashboard/package-lock.json
	@cd dashboard && npm install --no-audit --no-fund
	@touch $@

# The browser tests drive Debian's chromium; STRATA_CHROMIUM names another one.
# $(call from_apt,PROGRAM,PACKAGES): a program that tests drive, from Debian when it is missing.
define from_apt
	@if command -v $(1) >/dev/null; then exit 0; fi; \
	if [ "$$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then \
	  echo "test: $(1) is missing; run: sudo apt-get install -y --no-install-recommends $(2)" >&2; exit 1; \
	fi; \
	echo "setup: installing $(1)"; export DEBIAN_FRONTEND=noninteractive; \
	apt-get -qq -o DPkg::Lock::Timeout=300 update; \
	apt-get -qq -o DPkg::Lock::Timeout=300 install -y --no-install-recommends $(2) >/dev/null
endef

browser:
ifndef STRATA_CHROMIUM
	$(call from_apt,chromium,$(BROWSER_PACKAGES))
endif

# HTTP/2 clients that are not gRPC's own, as peers of our gRPC server.
h2load:
	$(call from_apt,h2load,nghttp2-client)

# Checks the names on /metrics.
promtool:
	$(call from_apt,promtool,prometheus)

constraints: $(VENV)/.installed ## resolve the newest versions of every dependency into constraints.txt
	@$(BIN)/python scripts/constraints.py

clean: ## remove what was installed and built; .strata (your data) stays
	@rm -rf $(VENV) dashboard/node_modules dashboard/dist strata/observatory/web build dist
	@rm -rf .mypy_cache .pytest_cache .ruff_cache .hypothesis test-results
