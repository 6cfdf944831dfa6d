# obsidian-agent: `make run` and `make test` set everything up on a machine that has python3 (3.11 or newer, with venv) and make.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
READY := $(VENV)/.ready
PLAY := .play
COMPANION := obsidian_agent/obsidian/companion
# Also where Python is not to write bytecode: tests are compiled once, not by each process of a run.
export PYTHONDONTWRITEBYTECODE :=
# Twice the processors: many tests wait for another program.
WORKERS = $$(($$($(BIN)/python -c 'import os; print(os.cpu_count())') * 2))

SAMPLE := "(killed_at_every_call and run and finish) or (fails_once and not comes_after and (EIO or EROFS)) \
    or (settings and KILL) or (audit and EIO) or room or in_the_place or clock or register or two_at_once or in_the_app"

.DEFAULT_GOAL := help
.PHONY: help run demo dev test check lint types types-tests imports collect cov soak soak-sample test-companion bench docs screenshots build test-release lock clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 16

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; set PYTHON=/path/to/python3" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing the pinned packages into $(VENV) (once)…"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r constraints.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m compileall -q obsidian_agent
	@touch $(READY)

$(PLAY)/vault:
	@mkdir -p $(PLAY) && cp -R fixtures/vault $(PLAY)/vault

run: $(READY) $(PLAY)/vault ## open the app on a copy of the sample vault: offline planner, no key, no network
	@$(BIN)/obsidian-agent app $(PLAY)/vault --offline --state-dir $(PLAY)/state

demo: $(READY) ## without a screen: plan, preview, run, history and undo on a copy of the sample vault
	@rm -rf $(PLAY)/demo && mkdir -p $(PLAY)/demo && cp -R fixtures/vault $(PLAY)/demo/vault
	@set -e; on="--vault $(PLAY)/demo/vault --state-dir $(PLAY)/demo/state --config $(PLAY)/demo/config.toml"; \
	for command in "recipe run find-notes --param notes=folder:Meetings" \
	    "recipe run add-text --param notes=Inbox --param text=Call_Ada --dry-run" \
	    "recipe run add-text --param notes=Inbox --param text=Call_Ada --yes" "history" "undo --yes"; do \
	    echo; echo "\$$ obsidian-agent $$command"; $(BIN)/obsidian-agent $$command $$on; done

dev: $(READY) $(PLAY)/vault ## as run, with Textual's devtools: saved styles are reloaded at once (`textual console` in another terminal)
	@$(BIN)/textual run --dev --command "$(BIN)/obsidian-agent app $(PLAY)/vault --offline --state-dir $(PLAY)/state"

test: $(READY) ## run lint, types and import contracts, then the tests
	@$(MAKE) --no-print-directory --jobs=2 collect lint types types-tests imports
	@$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

check: $(READY) lint types types-tests imports ## lint, types over package and tests, import contracts, dependencies
	@$(BIN)/python -m pytest -q tests/test_front_door.py tests/test_reading.py

lint: $(READY)
	$(BIN)/ruff check obsidian_agent tests bench
	$(BIN)/ruff format --check obsidian_agent tests bench

types: $(READY)
	$(BIN)/mypy

types-tests: $(READY)
	cd tests && ../$(BIN)/mypy .

imports: $(READY)
	$(BIN)/lint-imports

collect: $(READY)
	@$(BIN)/python -m pytest --collect-only -q >/dev/null || true # the run of the tests reports errors

cov: $(READY) ## run the tests, print which lines they reach, fail below 90 % (Python 3.12 and newer measure at little cost)
	@COVERAGE_CORE=$$($(BIN)/python -c 'import sys; print("sysmon" if sys.version_info >= (3, 12) else "ctrace")') \
	    $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --cov --cov-report=term:skip-covered

soak: $(READY) ## the long tests: kills and faults at every point, fifteen bugs that must be found, big vaults; one line a fault (strace and root for some; says what it skips)
	$(BIN)/python -m pytest -m soak -rs --timeout 3600

soak-sample: $(READY) ## half a minute of the long tests: a few points of each kind of fault
	OBSIDIAN_AGENT_SOAK_EVERY=100 $(BIN)/python -m pytest -q -m soak -n 2 --timeout 300 \
	    tests/soak/test_crashes.py tests/soak/test_faults.py -k $(SAMPLE)

$(COMPANION)/node_modules/.package-lock.json: $(COMPANION)/package-lock.json
	@command -v npm >/dev/null || { echo "Node.js with npm is needed for the plugin's tests" >&2; exit 1; }
	@echo "Installing the plugin's npm packages into $(COMPANION)/node_modules (once)…"
	@cd $(COMPANION) && npm ci --silent --no-audit --no-fund && touch node_modules/.package-lock.json

test-companion: $(READY) $(COMPANION)/node_modules/.package-lock.json ## the Obsidian plugin: types, lint, and it in a real browser (installs its npm packages, and chromium where apt-get may)
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || { test "$$(id -u)" = 0 && apt-get install -qq -y chromium; } \
	    || { echo "Chromium is needed for the plugin's tests" >&2; exit 1; }
	cd $(COMPANION) && npm run --silent lint
	$(BIN)/python -m pytest -m browser -rs tests/companion

bench: $(READY) ## measure, against named baselines in the same run
	$(BIN)/python -m bench

docs: $(READY) ## write docs/keys.md and docs/recipes.md from the program
	$(BIN)/python -m bench.pages

screenshots: $(READY) ## take the pictures of README and docs/guide from the app
	$(BIN)/python -m bench.screenshots

build: $(READY) ## build the wheel and the sdist into dist/
	$(BIN)/python -m hatchling build --clean

test-release: $(READY) ## build, look at the contents, install the wheel into an empty environment, run it
	$(BIN)/python -m pytest tests/test_release.py

lock: ## pin again what pyproject.toml asks for (needs uv)
	uv pip compile --quiet --no-strip-extras --extra dev --generate-hashes --universal --python-version 3.11 --no-header --no-annotate pyproject.toml -o constraints.txt

clean: ## remove the environment, the copies of the sample vault and what was built
	rm -rf $(VENV) $(PLAY) $(COMPANION)/node_modules dist build
