# The two commands of the README; both set up what they need on a fresh machine.
PYTHON ?= python3
VENV := .venv
INSTALLED := $(VENV)/.installed

.PHONY: run demo test check bench clean

run: $(INSTALLED) ## Serve the tiny zoo behind the LiteLLM proxy on port 4000, until Ctrl-C.
	$(VENV)/bin/messplus up

demo: $(INSTALLED) ## Send a few hundred requests through the running proxy.
	$(VENV)/bin/messplus demo

test: $(INSTALLED) check ## Lint, types and every test.
	$(VENV)/bin/pytest

check: $(INSTALLED)
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

bench: $(INSTALLED) ## What routing costs: decision time, and throughput with and without.
	$(VENV)/bin/python -m benchmarks.decision_time
	$(VENV)/bin/python -m benchmarks.throughput

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --upgrade pip
	# torch first: asked for by a range, pip may pick another, much larger build.
	$(VENV)/bin/pip install --quiet "$$(grep '^torch==' constraints.txt)"
	$(VENV)/bin/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) var .mypy_cache .pytest_cache .ruff_cache
