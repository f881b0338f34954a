# Everything that a fresh machine with Python 3.11 or newer needs is set up by the target that needs it.
#   make demo    the main job on a small workspace, without any server
#   make test    linters, types, imports, and all tests; Apache Kafka's jars come through Maven
#   make lock    requirements.lock anew, from pyproject.toml

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: demo test lint lock clean

demo: $(READY)
	$(BIN)/turngate demo

test: lint
	$(BIN)/pytest

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

# pyproject.toml: the packages and the entry points of the editable install.
$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo 'Turngate needs Python 3.11 or newer; name one with: make PYTHON=python3.12 …' >&2; exit 1; }
	@test -x $(BIN)/pip || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

lock: $(READY)
	$(BIN)/uv pip compile pyproject.toml --all-extras --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-header --quiet --output-file requirements.lock

clean:
	rm -rf .venv .cache build turngate.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
