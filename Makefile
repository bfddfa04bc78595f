# Every target sets up what it needs, once: an environment in .venv, then the packages of pyproject.toml.
# Choose the interpreter with `make PYTHON=python3.12 ...`; pass options on to pytest with `make test PYTEST_ARGS="-k dassl"`.

PYTHON ?= python3
WORKERS ?= 2
PYTEST_ARGS ?=
DEMO_ARGS ?=
BENCH_ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
BENCH_VENV := .venv-bench
BENCH_BIN := $(BENCH_VENV)/bin
PIP_FLAGS := --quiet --disable-pip-version-check
PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile

export MPLBACKEND ?= Agg

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help install demo test quick lint bench docs clean

help: ## show the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(VENV)/.installed ## create .venv and install Daedal into it
	@echo "Daedal is installed in $(VENV); to use it: . $(BIN)/activate"

demo: $(VENV)/.installed ## solve a tour of problems; plots go to out/
	$(BIN)/daedal demo $(DEMO_ARGS)

test: lint ## all checks and all tests
	$(PYTEST) $(PYTEST_ARGS)

quick: $(VENV)/.installed-dev ## the tests without the slow ones
	$(PYTEST) -m "not slow" $(PYTEST_ARGS)

lint: $(VENV)/.installed-dev ## ruff (rules and format) and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(BENCH_VENV)/.installed ## compare with other solvers, in an environment of its own
	$(BENCH_BIN)/python -m benchmarks $(BENCH_ARGS)

docs: $(VENV)/.installed-docs ## the manual, readable offline, in docs/_build/html
	$(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build/html
	@echo "open docs/_build/html/index.html"

clean: ## remove environments, caches and build products
	rm -rf $(VENV) $(BENCH_VENV) build dist out docs/_build docs/_generated
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis src/*.egg-info
	find src tests benchmarks docs examples -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

$(VENV)/.created $(BENCH_VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' 2>/dev/null || { \
	  echo "Daedal needs Python 3.11, 3.12 or 3.13, but '$(PYTHON)' is: $$($(PYTHON) --version 2>&1)" >&2; \
	  echo "Name a suitable interpreter, for example: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -m venv $(@D) || { \
	  echo "'$(PYTHON) -m venv' failed; on Debian and Ubuntu the package python3-venv provides it." >&2; exit 1; }
	@touch $@

$(VENV)/.installed: pyproject.toml $(VENV)/.created
	@echo "installing Daedal and its dependencies into $(VENV)"
	@$(BIN)/python -m pip install $(PIP_FLAGS) -e .
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	@echo "installing the development tools into $(VENV)"
	@$(BIN)/python -m pip install $(PIP_FLAGS) -e ".[dev]"
	@touch $@

$(VENV)/.installed-docs: $(VENV)/.installed
	@echo "installing the documentation tools into $(VENV)"
	@$(BIN)/python -m pip install $(PIP_FLAGS) -e ".[docs]"
	@touch $@

# A peer that cannot be installed on this machine is left out of the comparison; it does not stop it. The constraints keep
# a peer from changing the NumPy, SciPy and Numba under Daedal.
$(BENCH_VENV)/.installed: pyproject.toml benchmarks/requirements.txt $(BENCH_VENV)/.created
	@echo "installing Daedal and its peers into $(BENCH_VENV)"
	@$(BENCH_BIN)/python -m pip install $(PIP_FLAGS) -e .
	@$(BENCH_BIN)/python -m pip freeze --exclude-editable | grep -iE '^(numpy|scipy|numba|llvmlite)==' > $(BENCH_VENV)/constraints.txt
	@sed -e 's/[[:space:]]*#.*//' -e '/^$$/d' benchmarks/requirements.txt | while IFS= read -r peer; do \
	  $(BENCH_BIN)/python -m pip install $(PIP_FLAGS) -c $(BENCH_VENV)/constraints.txt "$$peer" > $(BENCH_VENV)/pip.log 2>&1 < /dev/null \
	    && echo "  $$peer" || echo "  $$peer: cannot be installed here, left out ($$(grep -m1 ERROR $(BENCH_VENV)/pip.log))"; \
	done
	@touch $@
