# The two commands that matter: `make run` (the demo) and `make test`. Both set themselves up.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed-$(shell cat pyproject.toml requirements.lock requirements-nodeps.lock 2>/dev/null | sha256sum | cut -c1-16)

.PHONY: run test setup lint protos bench clean

run: setup
	$(BIN)/podium demo

test: setup
	$(BIN)/python -m tests.run

setup: $(STAMP)

$(STAMP):
	bash bin/setup.sh $(PYTHON) $(VENV) $(STAMP)

lint: setup
	bash bin/lint.sh

protos: setup
	bash bin/protos.sh

bench: setup
	$(BIN)/python -m bench.runtime

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache var
