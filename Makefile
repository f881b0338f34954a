# Everything that a fresh machine with Python 3.11 or newer lacks is set up by the target that needs it.
#   make demo    the main job on a small workspace, without any server
#   make test    linters, types, imports, and all tests; Apache Kafka's jars come through Maven
#   make bench   the benchmarks (docs/benchmarks.md)
#   make bench-compiled    the same with the engine as C
#   make lock    the lock files anew, from pyproject.toml

PYTHON ?= python3
BIN := .venv/bin
BASE := .venv/.base
READY := .venv/.ready
PIP := $(BIN)/pip install --quiet --disable-pip-version-check
COMPILE := $(BIN)/uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-header --no-annotate --quiet

.PHONY: demo test lint bench bench-compiled lock clean

demo: $(BASE)
	@$(BIN)/turngate demo

# Two at a time, each with servers of its own: most tests wait for a broker. A file's tests stay together.
test: lint
	$(BIN)/pytest --numprocesses 2 --dist loadfile

bench: $(READY)
	$(BIN)/python -m benchmarks.engine
	$(BIN)/python -m benchmarks.worker

bench-compiled: $(READY)
	rm -rf build
	TURNGATE_COMPILE=1 $(BIN)/pip wheel --quiet --no-deps --no-build-isolation --wheel-dir build/wheel .
	$(BIN)/pip install --quiet --no-deps --target build/site build/wheel/*.whl
	PYTHONPATH=build/site $(BIN)/python -m benchmarks.engine
	PYTHONPATH=build/site $(BIN)/python -m benchmarks.worker

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

# What the demo needs comes in seconds; what the tests need is five times as much.
$(BASE): requirements.base.lock pyproject.toml | .venv/bin/pip
	@echo 'Setting up .venv (once) …'
	@$(PIP) --require-hashes --requirement requirements.base.lock
	@$(PIP) --no-deps --editable .
	@touch $(BASE)

$(READY): requirements.lock pyproject.toml | .venv/bin/pip
	@echo 'Setting up .venv for development (once; a minute or two) …'
	@$(PIP) --require-hashes --requirement requirements.lock
	@$(PIP) --no-deps --no-build-isolation --editable .
	@touch $(BASE) $(READY)

.venv/bin/pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo 'Turngate needs Python 3.11 or newer; name one with: make PYTHON=python3.12 …' >&2; exit 1; }
	@$(PYTHON) -m venv .venv

# All three agree: the smaller ones take their versions from the whole.
lock: $(READY)
	$(COMPILE) --all-extras --output-file requirements.lock
	$(COMPILE) --constraint requirements.lock --output-file requirements.base.lock
	$(COMPILE) --constraint requirements.lock --extra all --output-file requirements.worker.lock

clean:
	rm -rf .venv .cache build turngate.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
