# What you need: git, make, and Python 3.11, 3.12 or 3.13.

VENV := .venv
BIN := $(VENV)/bin
UV ?= uv

# The first of these that runs at all (a shim may be there and fail), has a supported version and can make environments.
ifndef PYTHON
PYTHON := $(shell for python in python3.13 python3.12 python3.11 python3; do \
	$$python -c 'import ensurepip, sys, venv; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' \
	>/dev/null 2>&1 && { echo $$python; break; }; done)
endif

WEAVIATE := .cache/weaviate/weaviate-server
WEAVIATE_VERSION := v1.39.0
WEAVIATE_ENVIRONMENT := PERSISTENCE_DATA_PATH=$(CURDIR)/.cache/weaviate/data CLUSTER_HOSTNAME=node1 \
	CLUSTER_IN_LOCALHOST=true CLUSTER_ADVERTISE_ADDR=127.0.0.1 CLUSTER_BIND_ADDR=127.0.0.1 RAFT_BOOTSTRAP_EXPECT=1 \
	RAFT_PORT=8484 RAFT_INTERNAL_RPC_PORT=8485 RAFT_JOIN=node1:8484 AUTHENTICATION_ANONYMOUS_ACCESS_ENABLED=true \
	CLUSTER_GOSSIP_BIND_PORT=8482 CLUSTER_DATA_BIND_PORT=8483 GRPC_PORT=8481 GO_PROFILING_DISABLE=true \
	DISABLE_TELEMETRY=true ENABLE_MODULES= API_BASED_MODULES_DISABLED=true AUTOSCHEMA_ENABLED=false \
	QUERY_DEFAULTS_LIMIT=20 LOG_LEVEL=warning

PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.DEFAULT_GOAL := help
.PHONY: help install run test check lock bench weaviate weaviate-run bench-discovery clean

help: ## show what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: $(VENV)/.runtime ## start store, demonstration server and proxy on 127.0.0.1:8470; Ctrl-C ends all
	@exec $(BIN)/sluicegate up --demo

install: $(VENV)/.development ## make .venv with all that running, checking and testing need

test: check ## run every check and every test
	$(BIN)/python -m pytest $(PYTEST_ARGS)

check: $(VENV)/.development ## run ruff, mypy and the import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

weaviate: $(WEAVIATE) ## build a Weaviate server into .cache (needs Go 1.26; some minutes), for tests and development

weaviate-run: $(WEAVIATE) ## run it on ports 8480 to 8485, without a key, for development; Ctrl-C ends it
	@echo "Start Sluicegate with SLUICEGATE_WEAVIATE_URL=http://127.0.0.1:8480 SLUICEGATE_WEAVIATE_GRPC=127.0.0.1:8481" >&2
	@exec env $(WEAVIATE_ENVIRONMENT) $(WEAVIATE) --host 127.0.0.1 --port 8480 --scheme http

bench: $(VENV)/.development ## measure what the proxy costs, beside nginx where that is installed (Linux, two cores)
	@$(BIN)/python -m bench.proxying $(BENCH_ARGS)

bench-discovery: $(VENV)/.development ## measure the quality and speed of search
	@$(BIN)/python -m bench.discovery $(BENCH_ARGS)

lock: ## make the lock files again from pyproject.toml (needs uv)
	$(call compile,requirements.lock)
	$(call compile,requirements-dev.lock,--group dev --constraint requirements.lock)

$(WEAVIATE):
	@command -v go >/dev/null || { echo "Building Weaviate needs Go; or name a server with SLUICEGATE_WEAVIATE_URL." >&2; exit 1; }
	CGO_ENABLED=0 GOBIN=$(CURDIR)/$(dir $(WEAVIATE)) go install github.com/weaviate/weaviate/cmd/weaviate-server@$(WEAVIATE_VERSION)

clean: ## remove the environment and all caches; your data in .sluicegate stays
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# Universal: one file for every platform and Python version; hashes, and no index named.
define compile
$(UV) pip compile pyproject.toml --extra embedded --extra demo --extra semantic --extra weaviate --group build $(2) \
	--universal --python-version 3.11 --generate-hashes --quiet \
	--no-header --no-annotate --no-emit-index-url --no-emit-find-links --output-file $(1)
endef

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "Sluicegate needs Python 3.11, 3.12 or 3.13 with venv; set PYTHON=/path/to/python." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.runtime: $(BIN)/python requirements.lock pyproject.toml
	$(PIP) install --no-deps --require-hashes --requirement requirements.lock
	$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.development: $(VENV)/.runtime requirements-dev.lock
	$(PIP) install --no-deps --require-hashes --requirement requirements-dev.lock
	@touch $@
