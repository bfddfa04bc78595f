# Every target sets up what it needs, once: an environment in .venv, then the packages of pyproject.toml.
# Choose the interpreter with `make PYTHON=python3.12 ...`; pass options on to pytest with `make test PYTEST_ARGS="-k dassl"`.
# Three tiers of tests: `make quick` while one works, `make test` before a change lands, `make soak` for an hour or a night.

PYTHON ?= python3
WORKERS ?= 2
PYTEST_ARGS ?=
DEMO_ARGS ?=
BENCH_ARGS ?=
SOAK_ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
PIP_FLAGS := --quiet --disable-pip-version-check
# Where Python may not keep bytecode, collecting the tests takes 10 s longer, and every process that they start 0.5 s.
PYTEST := env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal
ORACLES := .venv-oracles
STAGE := .ci/stage

export MPLBACKEND ?= Agg

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help install demo test quick lint soak bench docs clean

help: ## show the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(VENV)/.installed kernels ## create .venv and install Daedal into it
	@echo "Daedal is installed in $(VENV); to use it: . $(BIN)/activate"

demo: install ## solve a tour of problems, build the gallery; plots and pages go to out/
	$(BIN)/daedal demo $(DEMO_ARGS)
	$(BIN)/daedal gallery

# The stages of `make test` write down what they take; the summary of the tests prints it.
test quick: export DAEDAL_STAGES := $(abspath $(VENV)/.stages)

test: $(VENV)/.installed-dev ## all checks and all tests that decide; prints the ten slowest and what each stage took
	@rm -f $(DAEDAL_STAGES)
	$(STAGE) build $(BIN)/python -m daedal.build --all
	$(STAGE) lint $(MAKE) --no-print-directory rules
	$(STAGE) types $(BIN)/mypy
	@.ci/oracles $(abspath $(BIN)/python) $(ORACLES)
	$(PYTEST) --durations=10 $(PYTEST_ARGS)

quick: $(VENV)/.installed-dev ## in two minutes: a short case of each test, every method and formulation
	@rm -f $(DAEDAL_STAGES)
	$(STAGE) build $(BIN)/python -m daedal.build --all
	$(PYTEST) --tier quick $(PYTEST_ARGS)

lint: rules ## ruff (rules and format) and mypy
	$(BIN)/mypy

.PHONY: rules
rules: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

soak: $(VENV)/.installed-dev ## an hour, of a random seed that is printed: SOAK_ARGS="--minutes 60 --seed 7 --only long"
	$(BIN)/python -m daedal.build --all
	@.ci/oracles $(abspath $(BIN)/python) $(ORACLES)
	cd tests && ../$(BIN)/python -m soak --workers $(WORKERS) $(SOAK_ARGS)

bench: ## compare with other solvers, in an environment of its own
	@bash benchmarks/setup.sh
	.venv-bench/bin/python -m benchmarks $(BENCH_ARGS)

docs: $(VENV)/.installed-docs ## the manual, readable offline, in docs/_build/html
	$(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build/html
	@echo "open docs/_build/html/index.html"

clean: ## remove environments, caches and build products
	rm -rf $(VENV) .venv-bench $(ORACLES) build dist out docs/_build docs/_generated
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis src/*.egg-info
	find src tests benchmarks docs examples -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2])' 2>/dev/null || { \
	  echo "Daedal needs Python 3.11 or later, but '$(PYTHON)' is: $$($(PYTHON) --version 2>&1)" >&2; \
	  echo "Name a suitable interpreter, for example: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -m venv $(@D) || { \
	  echo "'$(PYTHON) -m venv' failed; on Debian and Ubuntu the package python3-venv provides it." >&2; exit 1; }
	@touch $@

$(VENV)/.installed: pyproject.toml $(VENV)/.created
	@echo "installing Daedal and its dependencies into $(VENV)"
	@$(BIN)/python -m pip install $(PIP_FLAGS) "setuptools>=77"
	@DAEDAL_BUILD=none $(BIN)/python -m pip install $(PIP_FLAGS) --no-build-isolation -e ".[numba]"
	@touch $@

# The kernels are compiled when their sources have changed; what is in the user's cache is not compiled again.
.PHONY: kernels
kernels: $(VENV)/.installed
	@$(BIN)/python -m daedal.build

$(VENV)/.installed-dev: $(VENV)/.installed
	@echo "installing the development tools into $(VENV)"
	@DAEDAL_BUILD=none $(BIN)/python -m pip install $(PIP_FLAGS) --no-build-isolation -e ".[dev]"
	@touch $@

$(VENV)/.installed-docs: $(VENV)/.installed
	@echo "installing the documentation tools into $(VENV)"
	@DAEDAL_BUILD=none $(BIN)/python -m pip install $(PIP_FLAGS) --no-build-isolation -e ".[docs]"
	@touch $@
