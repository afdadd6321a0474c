# The verbs of this repository. `make help` prints the lines that carry two hashes.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

.PHONY: help
help: ## print this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{ printf "%-20s %s\n", $$1, $$2 }'

.PHONY: install
install: $(STAMP) ## make .venv with the locked packages and riffdb in it

$(STAMP): requirements/dev.lock pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "make install: '$(PYTHON)' is not on this machine. RiffDB needs Python 3.11 or newer; on Debian and Ubuntu: apt-get install python3 python3-venv" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "make install: '$(PYTHON)' is $$($(PYTHON) --version 2>&1), and RiffDB needs Python 3.11 or newer. Name another one: make install PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "make install: '$(PYTHON)' lacks the venv module. On Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	@$(BIN)/python -c 'import pip' 2>/dev/null || $(PYTHON) -m venv --clear .venv
	@echo "Installing the locked packages into .venv (about a minute the first time)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m compileall -q src/riffdb
	@touch $@

.PHONY: demo
demo: install ## the story of examples/queue, told with figures, in under two minutes
	@$(BIN)/python -m tools.demo

.PHONY: format
format: install ## lay out the code and mend what can be mended
	$(BIN)/ruff check --fix --quiet
	$(BIN)/ruff format --quiet

.PHONY: check
check: install ## lint, layout, types, import rules, house rules
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest --quiet tests/tidy.py

.PHONY: test
test: check ## everything that CI runs: check, then every test
	$(BIN)/pytest --quiet --ignore=tests/tidy.py

.PHONY: cases
cases: install ## rewrite the expected files of cases and pages; read the difference before you commit it
	$(BIN)/pytest --quiet tests/cases tests/surface/test_pages.py -k page_lists --update

.PHONY: mutations
mutations: install ## spoil a quarter of a million contracts; RIFFDB_SEED chooses which
	RIFFDB_MUTATIONS=250000 $(BIN)/pytest --quiet tests/unit/test_mutations.py

.PHONY: conformance
conformance: install ## the suite that every store passes
	$(BIN)/pytest --quiet tests/conformance

.PHONY: bench
bench: install ## measure this machine; figures also in bench/results.json
	@$(BIN)/python -m tools.bench

.PHONY: kills
kills: install ## kill servers and consumers, twenty times at each place: make kills times=20
	RIFFDB_KILLS=$(or $(times),20) $(BIN)/pytest --quiet tests/surface/test_consumer_kills.py

.PHONY: twin
twin: install ## the slow twin over many more commands: make twin commands=1000000 seed=1000
	@$(BIN)/python -m tests.model.campaign $(or $(commands),50000) $(or $(seed),1000)

.PHONY: planted
planted: install ## plant bugs in a copy of the source, one at a time, and write down which test finds each
	@$(BIN)/python -m tests.model.planted
