# The commands of the README; each sets up what it needs on a fresh machine.
PYTHON ?= python3
VENV := .venv
INSTALLED := $(VENV)/.installed
VLLM_VENV := .venv-vllm
VLLM_INSTALLED := $(VLLM_VENV)/.installed
TORCH_INDEX := https://download.pytorch.org/whl/cpu
TORCH := $(shell grep '^torch==' constraints.txt)

.PHONY: run demo test test-vllm check bench clean

run: $(INSTALLED) ## Serve the tiny zoo behind the LiteLLM proxy on port 4000, until Ctrl-C.
	$(VENV)/bin/messplus up

demo: $(INSTALLED) ## Send a few hundred requests through the running proxy, and ask every model aside.
	$(VENV)/bin/messplus demo --ask-all

test: $(INSTALLED) check ## Lint, types and every test.
	$(VENV)/bin/pytest

test-vllm: $(INSTALLED) $(VLLM_INSTALLED) ## The tiny zoo on three real vLLM servers, without a GPU: minutes.
	$(VENV)/bin/pytest -m vllm tests/vllm

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
	$(VENV)/bin/pip install --quiet "$(TORCH)"
	$(VENV)/bin/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

# Apart from the project's own environment, as a server is from the proxy: vLLM pins much of what it
# uses. torch without a hash: its build for CPUs comes from wherever pip is told to look, else from
# PyTorch's own index, and the one that PyPI has is for GPUs.
$(VLLM_INSTALLED): tests/vllm/requirements.txt constraints.txt
	$(PYTHON) -m venv $(VLLM_VENV)
	$(VLLM_VENV)/bin/pip install --quiet --no-deps "$(TORCH)+cpu" || \
	$(VLLM_VENV)/bin/pip install --quiet --no-deps "$(TORCH)+cpu" --index-url $(TORCH_INDEX)
	$(VLLM_VENV)/bin/pip install --quiet --no-deps --require-hashes --requirement $<
	touch $@

clean:
	rm -rf $(VENV) $(VLLM_VENV) var .mypy_cache .pytest_cache .ruff_cache
