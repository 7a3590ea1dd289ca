# Every target works on a fresh machine with Python 3.10 or newer.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: install test check demo format

# One stamp per pyproject.toml: a second `make` installs nothing.
$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --editable '.[test]'
	touch $@

install: $(VENV)/.installed

test: install
	$(BIN)/python -m pytest $(PYTEST_ARGS)

check: install
	$(BIN)/ruff format --check src tests
	$(BIN)/ruff check src tests
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/test_layers.py

format: install
	$(BIN)/ruff format src tests
	$(BIN)/ruff check --fix src tests

# The base install only (no torch): two sentences, their signatures, how far apart they are.
demo:
	$(PYTHON) -m venv $(VENV)-demo
	$(VENV)-demo/bin/pip install --quiet .
	$(VENV)-demo/bin/cod3s sign --encoder static \
	  "The tenant lost his keys." "The renter could not find his keys." "It snowed all night in the valley."
