# Everything builds itself: the first target that you run creates .venv from requirements.lock
# (every package pinned with its hash) and installs Antiphon into it.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.built
NODE   := bench/anchors/node_modules/.built
# Three workers on two cores: tests wait for disks and for other programs.
PYTEST := $(BIN)/python -m pytest -n 3 --dist loadgroup
NOT_QUICK := docs examples mesh testing halo/finality test_doctests.py test_fuzz.py

.DEFAULT_GOAL := help
# Each soak explores other seeds.
FIRST_SEED := $(or $(ANTIPHON_FIRST_SEED),$(shell date +%s))

.PHONY: help demo test quick soak lint bench fuzz mutants proto lock clean

help: ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-7s %s\n", $$1, $$2}'

$(STAMP): requirements.lock pyproject.toml hatch_build.py src/antiphon/feed/_hashing.c
	@echo "antiphon: creating $(VENV) with $$($(PYTHON) --version), packages pinned in requirements.lock"
	@$(PYTHON) -c 'import sys; sys.exit("antiphon needs Python 3.11 or newer: make PYTHON=/path/to/python3.11" if sys.version_info < (3, 11) else 0)'
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

# The JavaScript anchors (hypercore, multiformats) are for comparison only; without Node the tests that use them skip.
$(NODE): bench/anchors/package-lock.json
	@if command -v npm >/dev/null; then \
	  echo "antiphon: installing the JavaScript anchors with npm ci"; \
	  cd bench/anchors && npm ci --loglevel=error --no-audit --no-fund && touch node_modules/.built; \
	else echo "antiphon: no npm here; tests that compare with JavaScript libraries will skip"; fi

demo: $(STAMP) ## three examples: devices that edit apart and agree, a planner, and feeds on Spark
	@$(BIN)/python examples/three_devices.py
	@$(BIN)/python examples/planner.py
	@$(BIN)/python examples/bulk.py

test: $(STAMP) $(NODE) lint ## lint, types and all tests with their usual budgets: what CI runs
	@echo "antiphon: running all tests"
	@$(PYTEST) -q

quick: $(STAMP) ## the quick tests only, under two minutes
	@ANTIPHON_QUICK=1 $(PYTEST) -q -m "not slow" $(addprefix --ignore=tests/,$(NOT_QUICK))

soak: $(STAMP) $(NODE) ## all tests with far larger budgets, and those that `make test` skips (hours)
	@echo "antiphon: soaking; ANTIPHON_FIRST_SEED=$(FIRST_SEED) plays the same seeds again"
	@ANTIPHON_SOAK=1 ANTIPHON_FIRST_SEED=$(FIRST_SEED) $(PYTEST) -q -o faulthandler_timeout=7200
	@$(MAKE) fuzz SECONDS_EACH=120
	@$(MAKE) mutants ANTIPHON_FIRST_SEED=$(FIRST_SEED)

fuzz: $(STAMP) ## coverage-guided fuzzing of every decoder: make fuzz SECONDS_EACH=60
	@$(BIN)/python tools/fuzz.py --seconds $(or $(SECONDS_EACH),60)

mutants: $(STAMP) ## which small changes of the code does no test notice: make mutants ROOM=party/epochs COUNT=50
	@$(BIN)/python tools/mutants.py --first-seed $(FIRST_SEED) --count $(or $(COUNT),20) $(addprefix --room ,$(ROOM))

lint: $(STAMP) ## ruff, strict mypy, layer order
	@echo "antiphon: ruff, mypy --strict, import-linter"
	@$(BIN)/ruff check --quiet . && $(BIN)/ruff format --quiet --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache > /dev/null || $(BIN)/lint-imports --no-cache

bench: $(STAMP) $(NODE) ## every benchmark; one of them: .venv/bin/python bench/feed.py --quick --json
	@for program in bench/*.py; do echo "== $$program"; $(BIN)/python $$program; done

proto: $(STAMP) ## regenerate the protobuf code from proto/
	@$(BIN)/python tools/proto.py

lock: ## resolve requirements.lock and requirements-spark.lock anew (needs uv on the PATH)
	@uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --upgrade --extra dev pyproject.toml -o requirements.lock
	@uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --upgrade --extra spark -c requirements.lock pyproject.toml -o requirements-spark.lock

clean: ## remove everything that was built
	@rm -rf $(VENV) .demo build dist .hypothesis .mypy_cache .ruff_cache .pytest_cache bench/anchors/node_modules
