# Everything here installs what it needs into a virtual environment of its own, and installs nothing the second time.

VENV ?= .venv
INSTALLER ?= uv
ENGINE ?= embedded
DEMO_ARGS ?=
PYTEST_ARGS ?=

# The first Python on the PATH that is new enough.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
PYTHON := $(PYTHON)

BIN = $(VENV)/bin
PROVIDE = $(PYTHON) scripts/environment.py --venv '$(VENV)' --installer $(INSTALLER)
CHECK = build/check

.NOTPARALLEL:
.PHONY: help demo test test-unit test-pythons test-integration lint types imports wheel jaeger clean python

help: ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 26
	@echo
	@echo "  PYTHON=python3.12   another Python        VENV=PATH         another virtual environment"
	@echo "  INSTALLER=pip       pip instead of uv     DEMO_ARGS=…       options of 'hotspan demo'"

demo: python ## Run the RAG pipeline and the agent, traced, and print where the time went; ENGINE=vllm: on a vLLM server
	@case '$(ENGINE)' in \
	embedded) $(PROVIDE) demo ;; \
	vllm) $(PROVIDE) demo vllm ;; \
	*) echo "ENGINE is '$(ENGINE)'; it can be embedded or vllm." >&2; exit 2 ;; esac
	@$(BIN)/hotspan demo --engine $(ENGINE) $(DEMO_ARGS)

test: python lint ## Run everything but the integration tests: lint, types, import rules, unit and packaging tests
	@$(BIN)/python -m pytest -m 'not integration' $(PYTEST_ARGS)

test-unit: python ## Run the unit tests of the core alone; for another Python: VENV=.venv-3.12 PYTHON=python3.12
	@$(PROVIDE) unit
	@$(BIN)/python -m pytest -m 'not integration and not rag' $(PYTEST_ARGS)

test-pythons: python ## Run test-unit with each other Python of 3.11, 3.12 and 3.13 found here
	@mine=$$($(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])'); \
	for version in 3.11 3.12 3.13; do \
		[ "$$version" != "$$mine" ] || continue; \
		found=; \
		for python in "python$$version" "$$HOME"/.pyenv/versions/$$version.*/bin/python; do \
			"$$python" -c "import sys; sys.exit('%d.%d' % sys.version_info[:2] != '$$version')" 2>/dev/null \
				&& found=$$python && break; \
		done; \
		if [ -z "$$found" ]; then echo "Python $$version: not found, left out"; continue; fi; \
		echo "Python $$version: $$found"; \
		$(MAKE) --no-print-directory test-unit PYTHON="$$found" VENV=".venv-$$version" || exit; \
	done

test-integration: python jaeger ## Run the tests with a real vLLM server, a llama.cpp server and a real Jaeger
	@$(PROVIDE) test servers vllm
	@$(BIN)/python -m pytest -m integration $(PYTEST_ARGS)

lint: python imports types ## Check style, format, import rules and types
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check .

types: wheel ## Check types (mypy --strict) as a user of the installed wheel sees them
	@echo "Checking types"
	@cd $(CHECK) && MYPYPATH=site '$(abspath $(BIN))/python' -m mypy --config-file '$(CURDIR)/pyproject.toml' -p hotspan
	@if [ -f tests/typing/api.py ]; then cd $(CHECK) && MYPYPATH=site '$(abspath $(BIN))/python' -m mypy \
		--config-file '$(CURDIR)/pyproject.toml' '$(CURDIR)/tests/typing/api.py'; fi

imports: wheel ## Check who imports whom
	@cd $(CHECK) && PYTHONPATH=site '$(abspath $(BIN))/lint-imports' '$(CURDIR)/pyproject.toml'

# The checkers cannot see a mapped package through the editable install: they get the wheel, unpacked.
wheel: python
	@$(PROVIDE) test
	@rm -rf build && mkdir -p $(CHECK)
	@$(BIN)/python -m build --wheel --no-isolation --outdir $(CHECK) . >$(CHECK)/build.log 2>&1 \
		|| { cat $(CHECK)/build.log; echo "The wheel could not be built."; exit 1; }
	@$(BIN)/python -m zipfile -e $(CHECK)/hotspan-*.whl $(CHECK)/site

jaeger: python ## Build Jaeger for the integration tests (needs Go; minutes, once)
	@$(PYTHON) scripts/build_jaeger.py

clean: ## Remove what was built here, the virtual environments too
	rm -rf build dist *.egg-info .venv .venv-3.* .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

python:
	@test -n '$(PYTHON)' || { echo "Hotspan needs Python 3.11 or newer, and none was found." \
		"Install one, or name it: make PYTHON=/path/to/python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "Hotspan needs Python 3.11 or newer; $(PYTHON) is older or does not run." \
		"Name another: make PYTHON=/path/to/python3.12" >&2; exit 1; }
