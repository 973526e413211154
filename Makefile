# The commands of the README; each sets up what it needs on a fresh machine.
PYTHON ?= python3
VENV := .venv
INSTALLED := $(VENV)/.installed
# The newest LiteLLM that is tested stands with what the start of the plugin asks of it.
NEWEST := $(shell sed -n 's/^NEWEST = "\(.*\)"$$/\1/p' litellm_messplus/serving/litellm_fit.py)
VERSION := $(NEWEST)
LITELLM_VENV := .venv-litellm-$(VERSION)
LITELLM_INSTALLED := $(LITELLM_VENV)/.installed
VLLM_VENV := .venv-vllm
VLLM_INSTALLED := $(VLLM_VENV)/.installed
RELEASE_VENV := .venv-release
RELEASE_INSTALLED := $(RELEASE_VENV)/.installed
SITE_VENV := .venv-site
SITE_INSTALLED := $(SITE_VENV)/.installed
packages = $$($(1)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
TORCH_INDEX := https://download.pytorch.org/whl/cpu
TORCH := $(shell grep '^torch==' constraints.txt)

# Unit tests run in two processes, on a terminal that has room for their long paths. LONG are left to
# `make test-all`, and so are all tests of a real proxy but FIRST.
UNIT := $(VENV)/bin/pytest --numprocesses 2 --dist worksteal
# Real proxies run in two processes too, the tests of one file in the same one: they share a proxy.
REAL := --numprocesses 2 --dist loadfile -m end_to_end
LONG := \
	tests/benchmarks/test_forecast.py \
	tests/docs/test_grafana.py \
	tests/energy/test_command.py \
	tests/postgres/test_backup.py \
	tests/upkeep/test_backup.py \
	tests/core/test_adaptive_holds_alpha.py \
	tests/core/test_newcomers.py::test_the_cheapest_that_holds_is_adopted_within_300_requests \
	tests/core/test_newcomers.py::test_one_that_holds_nothing_stays_within_the_bound_and_the_promise_is_kept \
	tests/examples/test_agent.py::test_the_larger_model_solves_more_and_none_does_without_the_calculator \
	tests/upkeep/test_prune_command.py \
	tests/core/test_lines.py::test_a_million_lines_take_bounded_memory_and_the_oldest_are_forgotten \
	tests/labels/test_key_pull.py::test_one_hostile_key_changes_the_others_cost_by_a_tenth_at_most \
	tests/core/test_snapshot.py::test_a_snapshot_stays_small
FIRST := tests/end_to_end/test_serving.py tests/end_to_end/test_feedback.py

# The least share of lines, in percent, that the unit tests of `make test` reach; COVER=yes holds it.
FLOOR := 93
COVER :=
COVERAGE := $(if $(COVER),--cov --cov-report=term:skip-covered --cov-fail-under=$(FLOOR))

WHEEL_VENV := dist/venv
DATABASE :=
FAULTS := tests/faults

.PHONY: run demo docs test test-all test-long test-litellm test-faults test-postgres test-vllm check wheel bench pictures release-dry site clean

run: $(INSTALLED) ## Serve the tiny zoo behind the LiteLLM proxy on port 4000, until Ctrl-C.
	$(VENV)/bin/python -m examples.up

demo: $(INSTALLED) ## Send a few hundred requests through the running proxy, and ask every model aside.
	$(VENV)/bin/python -m examples.tiny_zoo.demo --ask-all

test: $(INSTALLED) check ## Lint, types, unit tests, and a few tests of a real proxy: what every change needs.
	$(UNIT) $(COVERAGE) -m 'not end_to_end and not faults and not vllm' $(LONG:%=--deselect=%)
	$(VENV)/bin/pytest $(REAL) $(FIRST)

test-all: test-long ## The tests that `make test` leaves out: long ones, and of more real proxies.
	$(VENV)/bin/pytest $(REAL) $(FIRST:%=--deselect=%)

test-long: $(INSTALLED)
	$(UNIT) $(LONG)

test-litellm: $(LITELLM_INSTALLED) ## What knows LiteLLM, and real proxies, on another LiteLLM. VERSION=1.108.11: which.
	$(LITELLM_VENV)/bin/python -c 'import sys; from importlib import metadata; found = metadata.version("litellm"); print("LiteLLM", found); sys.exit(found != "$(VERSION)")'
	$(LITELLM_VENV)/bin/python -m pytest --numprocesses 2 --dist worksteal tests/serving
	$(LITELLM_VENV)/bin/python -m pytest $(REAL)
	$(LITELLM_VENV)/bin/python tools/matrix.py note --ran 'real proxies'

test-postgres: $(INSTALLED) ## Workers on a real Postgres, and proxies with their history in it: needs Debian's postgresql.
	$(VENV)/bin/pytest tests/postgres
	$(VENV)/bin/pytest --postgres tests/end_to_end/test_feedback.py tests/end_to_end/test_serving.py

test-faults: $(INSTALLED) ## A real proxy under load while what it depends on breaks, and a table of it: minutes.
	$(VENV)/bin/pytest -m faults $(FAULTS)

test-vllm: $(INSTALLED) $(VLLM_INSTALLED) ## The tiny zoo on three real vLLM servers, without a GPU: minutes.
	$(VENV)/bin/pytest -m vllm tests/vllm

check: $(INSTALLED)
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

wheel: $(INSTALLED) ## Build a wheel into dist/, and try it in a fresh environment. DATABASE=URL: on Postgres.
	rm -rf dist
	$(VENV)/bin/pip wheel --quiet --no-deps --wheel-dir dist .
	$(PYTHON) -m venv $(WHEEL_VENV)
	$(WHEEL_VENV)/bin/pip install --quiet --constraint constraints.txt "$$(ls dist/*.whl)[postgres]"
	cd dist && venv/bin/python ../.ci/try_wheel.py $(DATABASE)
	$(WHEEL_VENV)/bin/python tools/matrix.py note --ran wheel $(if $(DATABASE),--database $(DATABASE))

release-dry: $(RELEASE_INSTALLED) ## All of a release but its end. TAG=v0.2.0: under that. DEMO=yes: `make run` and `make demo` too.
	$(RELEASE_VENV)/bin/python -m tools.dry $(if $(TAG),--tag "$(TAG)") $(if $(DEMO),--demo)

bench: $(INSTALLED) ## What routing costs: decision time, and throughput with and without.
	$(VENV)/bin/python -m benchmarks.decision_time
	$(VENV)/bin/python -m benchmarks.throughput

docs: $(INSTALLED) ## Write the tables of the docs that the code declares.
	$(VENV)/bin/python -m benchmarks.docs_tables

pictures: $(INSTALLED) ## Take the pictures of the docs anew, of a run and a demo: needs Debian's chromium; minutes.
	$(VENV)/bin/python -m benchmarks.pictures

site: $(SITE_INSTALLED) ## Build the site of the docs into dist/site; a link that leads nowhere fails.
	NO_MKDOCS_2_WARNING=1 $(SITE_VENV)/bin/mkdocs build --strict --config-file tools/mkdocs.yml

$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -m examples.install $(VENV)
	@touch $@

# Another LiteLLM, in front of all that the project's own environment has: what a newer one depends on
# need not be in every index. `semver` is what 1.110 needs besides.
$(LITELLM_INSTALLED): $(INSTALLED)
	$(PYTHON) -m venv --clear $(LITELLM_VENV)
	$(LITELLM_VENV)/bin/pip install --quiet --no-deps "litellm==$(VERSION)" semver --editable .
	echo "import site; site.addsitedir('$(call packages,$(VENV))')" > "$(call packages,$(LITELLM_VENV))/behind.pth"
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

$(RELEASE_INSTALLED): tools/release.txt
	$(PYTHON) -m venv $(RELEASE_VENV)
	$(RELEASE_VENV)/bin/pip install --quiet --requirement $<
	touch $@

# Nothing of the project is in it: the pages are read, not imported.
$(SITE_INSTALLED): tools/site.txt
	$(PYTHON) -m venv $(SITE_VENV)
	$(SITE_VENV)/bin/pip install --quiet --requirement $<
	touch $@

clean:
	rm -rf $(VENV) .venv-litellm-* $(VLLM_VENV) $(SITE_VENV) $(RELEASE_VENV) dist var .mypy_cache .pytest_cache .ruff_cache
