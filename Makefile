# make demo   see a wrong port fail, and archc at work on a small real model
# make check  while developing: format, lint, types and the quick tests
# make sweep  every family's tiny checkpoints through import, generation and the gate
# make docs   the documentation site, in build/site
# make test   everything, as continuous integration runs it
# make format let ruff rewrite what it can
# make venv   only set up .venv: PYTHON=python3.12 chooses the interpreter
# make clean  remove caches and build output (.venv stays)

PYTHON ?= python3
MODEL  ?= smollm2-135m

VENV  := .venv
BIN   := $(VENV)/bin
STAMP := $(VENV)/.installed

export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help demo docs test check sweep lint format venv clean
.DELETE_ON_ERROR:

help:
	@sed -n 's/^# make/make/p' Makefile

# The first port is wrong, so the gate must end with 1, which says that it found something.
demo: venv
	@$(BIN)/archc validate tiny --port examples/wrong_activation.py:load; test $$? -eq 1
	@$(BIN)/archc fetch $(MODEL)
	@$(BIN)/archc report $(MODEL)
	@$(BIN)/archc validate $(MODEL)

test: lint
	@$(BIN)/archc fetch $(MODEL) >/dev/null
	@$(BIN)/python -m pytest -q -n 2 --dist loadgroup
	@$(BIN)/python -m benchmarks.coverage

# Warnings are errors: a link that leads nowhere, a page that no menu holds.
docs: venv
	@$(BIN)/python -m sphinx -b html -j auto -W -n --keep-going -q docs build/site
	@echo "build/site/index.html"

sweep: venv
	@$(BIN)/python -m benchmarks.coverage

check: lint
	@$(BIN)/python -m pytest -q -n 2 -m "not slow"

lint: venv
	@$(BIN)/ruff format --check
	@$(BIN)/ruff check --quiet
	@$(BIN)/mypy

format: venv
	@$(BIN)/ruff check --quiet --fix-only
	@$(BIN)/ruff format

venv: $(STAMP)

# torch first and alone, by its plain version: then the second step finds it installed and takes it as it is,
# whichever build (CPU or CUDA) your package index offered.
$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "archc needs Python 3.11 or newer, and PYTHON=$(PYTHON) is" \
	    "$$($(PYTHON) --version 2>&1 | head -n 1). Try: make $(or $(MAKECMDGOALS),venv) PYTHON=python3.12" >&2; exit 1; }
	@echo "Setting up $(VENV): a minute or two, once"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet "$$(grep '^torch==' constraints.txt)"
	@$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[torch,dev]"
	@touch $@

clean:
	@rm -rf build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache
	@find . -path ./$(VENV) -prune -o -type d -name __pycache__ -exec rm -rf {} +
