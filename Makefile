# Two commands do everything: `make verify` and `make test`. Both set the environment up first.
PYTHON ?= python3
BIN := .venv/bin
BRIDGE := $(BIN)/python -m bridge

.PHONY: verify test docs docs-serve setup vectors clean help

verify: setup ## check every proof, run every implementation on the vectors, print the report
	@$(BRIDGE) verify

# A test worker holds torch and at times a Lean of 1.3 GB: no more than four, however many cores. A
# file's tests stay on one worker: what the chain tests start from is then made once.
test: setup ## lint, types, Lean build and audit, offline compilation, and the test-suite
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m mypy
	$(BIN)/lake build
	$(BRIDGE) audit
	$(BRIDGE) index
	$(BRIDGE) translate --check
	$(BIN)/python -m pyimpl.kernels.compile --quick
	$(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadfile

setup: ## make .venv with what is needed
	@$(PYTHON) bridge/bootstrap.py

vectors: setup ## write tests/vectors anew from the Lean definitions
	@$(BRIDGE) vectors

docs: setup ## build the documentation as a site, build/site/index.html
	@$(BRIDGE) site

docs-serve: docs ## build it, and show it at http://localhost:8000
	$(BIN)/python -m http.server --bind localhost --directory build/site 8000

help: ## list these commands
	@sed -n 's/^\([a-z-]*\):.* ## /\1: /p' $(firstword $(MAKEFILE_LIST))

clean: ## remove what the build made; .venv and the prepared Lean stay
	rm -rf build dist
