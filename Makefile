# Each command sets up what it needs first, in one .venv that the larger ones add to.
PYTHON ?= python3
BIN := .venv/bin
BRIDGE := $(BIN)/python -m bridge
SETUP := $(PYTHON) bridge/bootstrap.py
# Compiled Python is kept, whatever the environment says: where it is not, a process that uses
# attention begins with 3 s of compiling torch and Triton.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: try verify quick test test-all docs docs-serve setup vectors dist clean help

try: ## a first result, without Lean: a few families of vectors, on a function with a mistake too
	@$(SETUP) try
	@$(BRIDGE) try

verify: ## check every proof, run every implementation on the vectors, print the report
	@$(SETUP) verify
	@$(BRIDGE) verify $(ARGS)

quick: ## lint, types and the tests of your changes, without Lean: a minute or so
	@$(SETUP) test
	@$(BRIDGE) test --quick $(ARGS)

test: ## lint, types, Lean build and audit, offline compilation, and the test-suite; a check is skipped while its inputs are as they were when it passed
	@$(SETUP) test
	@$(BRIDGE) test $(ARGS)

test-all: ## the same with the thorough tests, the embedded Lean's replay of all proofs, and every kernel compiled offline
	@$(SETUP) test
	@$(BRIDGE) test --all $(ARGS)

setup: ## make .venv with all that these commands need
	@$(SETUP) test

vectors: ## write tests/vectors anew from the Lean definitions
	@$(SETUP) verify
	@$(BRIDGE) vectors

dist: ## build the wheels of the package and of the vectors alone, dist/
	@$(SETUP) test
	@$(BIN)/python -m build --wheel --no-isolation --outdir dist .
	@$(BIN)/python -m build --wheel --no-isolation --outdir dist packages/vectors

docs: ## build the documentation as a site, build/site/index.html
	@$(SETUP) verify
	@$(BRIDGE) site

docs-serve: docs ## build it, and show it at http://localhost:8000
	$(BIN)/python -m http.server --bind localhost --directory build/site 8000

help: ## list these commands
	@sed -n 's/^\([a-z-]*\):.* ## /\1: /p' $(firstword $(MAKEFILE_LIST))

clean: ## remove the build's outputs; keep .venv and the prepared Lean
	rm -rf build dist
