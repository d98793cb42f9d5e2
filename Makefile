# `make demo` and `make test` set up .venv themselves; all they need is Python 3.11 or newer.

VENV ?= .venv
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python3.14 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && { echo $$p; break; }; done)
BIN := $(VENV)/bin

.PHONY: demo test lint docs clean

demo: $(VENV)/.installed-plot
	$(BIN)/arnpg demo

test: $(VENV)/.installed-test
	$(BIN)/python -m pytest --numprocesses auto --dist loadfile

lint: $(VENV)/.installed-test
	$(BIN)/ruff check src tests bench
	$(BIN)/pyright --pythonpath $(BIN)/python

docs: $(VENV)/.installed-docs
	$(BIN)/sphinx-build -W -q docs docs/_build
	@echo "open docs/_build/index.html"

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "arnpg needs Python 3.11 or newer; none was found on PATH."; exit 1; }
	$(PYTHON) -m venv $(VENV)

# The test extra holds the plot extra, so that a later `make demo` installs nothing.
$(VENV)/.installed-%: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[$*]"
	@touch $@ $(if $(filter test,$*),$(VENV)/.installed-plot)

clean:
	rm -rf $(VENV) demo docs/_build .pytest_cache .ruff_cache
