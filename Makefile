# Every target works on a fresh machine with Python 3.10 or newer.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: install packages test test-release check demo docs format release campaign lowest audit

# One stamp per pyproject.toml: a second `make` installs nothing. Until the packages are on PyPI, ./bundle is named.
$(VENV)/.installed: pyproject.toml bundle/pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --editable ./bundle --editable '.[test]'
	touch $@

install: $(VENV)/.installed

# A browser and a database, which pip cannot bring; tests that need one say so where it cannot be had.
packages:
	@tests/system-packages

# Unit tests take about a minute; integration tests use the real engine, servers, a browser and databases.
test: install packages
	$(BIN)/python -m pytest tests/unit tests/integration $(PYTEST_ARGS)

# Wheels in fresh environments, docs and notebooks that run, the campaigns in short form.
test-release: install packages
	$(BIN)/python -m pytest tests/release $(PYTEST_ARGS)

check: install
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/mypy --python-version 3.13
	$(BIN)/python -m pytest -q tests/unit/test_layers.py

format: install
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Engine and default bundle, no torch: ten answers to one sentence.
demo:
	$(PYTHON) -m venv $(VENV)-demo
	$(VENV)-demo/bin/pip install --quiet ./bundle '.[write]'
	$(VENV)-demo/bin/cod3s generate effect "the power went out during dinner"

# Machine-made faults, as the rows of a table (docs/measured/reliability.md). For an hour or so: CAMPAIGN_ARGS="--cases 10000".
CAMPAIGN_ARGS ?= --cases 100 --seconds 60
campaign: install packages
	PYTHONPATH=benchmarks:tests TOKENIZERS_PARALLELISM=false $(BIN)/python -m campaign $(CAMPAIGN_ARGS)

# The lowest versions that pyproject.toml allows, in a fresh environment: the base commands and some tests.
lowest:
	$(PYTHON) -m venv --clear $(VENV)-lowest
	$(PYTHON) benchmarks/lowest_versions.py > $(VENV)-lowest/lowest.txt
	$(VENV)-lowest/bin/pip install --quiet ./bundle '.[write]' --requirement $(VENV)-lowest/lowest.txt pytest hypothesis
	$(VENV)-lowest/bin/python -m pytest -q tests/unit/test_text.py tests/unit/test_apart.py tests/unit/test_select.py \
	  tests/integration/test_select_cli.py
	$(VENV)-lowest/bin/python -m pytest -q tests/integration/test_cli.py -k "ctrl_c or help or dash"
	$(VENV)-lowest/bin/cod3s generate --help > $(VENV)-lowest/help.txt
	$(VENV)-lowest/bin/cod3s generate effect "the power went out during dinner" -k 3
	$(VENV)-lowest/bin/cod3s sign "The lamp fell." "The rug caught fire." --encoder static

# Known vulnerabilities of everything that is installed for the tests; asks the index, which must know them (PyPI does).
audit: install
	$(PYTHON) -m venv $(VENV)-audit
	$(VENV)-audit/bin/pip install --quiet pip-audit
	$(BIN)/pip freeze --exclude-editable | sed 's/+.*//' > $(VENV)-audit/installed.txt
	$(VENV)-audit/bin/pip-audit --strict --no-deps --disable-pip --requirement $(VENV)-audit/installed.txt

# The docs as a site in build/site, from the same files.
docs:
	$(PYTHON) -m venv $(VENV)-docs
	$(VENV)-docs/bin/pip install --quiet '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(VENV)-docs/bin/mkdocs build --strict --quiet
	@echo build/site/index.html

# Wheel, sdist, and an SBOM (CycloneDX) of the base install, in dist.
release:
	$(PYTHON) -m venv --clear $(VENV)-release
	$(VENV)-release/bin/pip install --quiet '.[release]'
	rm -rf dist
	$(VENV)-release/bin/python -m build --outdir dist .
	$(VENV)-release/bin/python -m build --outdir dist bundle
	$(VENV)-release/bin/twine check --strict dist/*.whl dist/*.tar.gz
	$(PYTHON) -m venv --clear $(VENV)-release/base
	$(VENV)-release/base/bin/pip install --quiet dist/cod3s-*.whl
	$(VENV)-release/bin/cyclonedx-py environment --pyproject pyproject.toml --mc-type library --output-format JSON \
	  --output-file dist/cod3s.sbom.json $(VENV)-release/base/bin/python
