# Every habit is a target; `make` alone lists them. Each target does its own
# set-up: a virtual environment in .venv with the wheel built and installed.
# Stamps keep the second run quick.

SHELL       := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON   ?= python3
GO       ?= go
FUZZTIME ?= 10s
SOAK     ?= 10m
DEMO     ?=
TESTS    ?=
WORKERS  ?= $(if $(TESTS),0,3)
BENCH    ?=

VENV := .venv
PY   := $(VENV)/bin/python
OUT  := build/test
MOCK := rdma/rdmamock/mock.go

# What the library and the wheel are made of.
SOURCES := VERSION README.md LICENSE go.mod go.sum $(shell find docs -name "*.md") $(shell find capi graphs internal libmalt rdma python -type f \
	\( -name '*.go' -o -name '*.c' -o -name '*.h' -o -name '*.map' -o -name '*.py' -o -name '*.pyi' -o -name '*.toml' -o -name '*.sh' \) \
	-not -name '*_test.go' -not -path '*/build/*' 2>/dev/null)

.PHONY: help torch build wheel test test-go test-py test-4 test-envs test-net test-avx512 test-rdma test-engines race fuzz soak explore bench bench-compare bench-net bench-training bench-go notebooks check check-go check-py check-english docs demo clean

help: ## this list
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'
	@echo
	@echo "  DEMO='-n 8 --k 6'  arguments of the demo        FUZZTIME=$(FUZZTIME)  for each fuzz target"
	@echo "  TESTS='-k shard'   arguments for pytest, files  SOAK=$(SOAK)      length of the soak run"
	@echo "  WORKERS=3          processes that pytest uses; none with TESTS"
	@echo "  BENCH='--rows average'  rows by a word of their title; --starts 2, --sizes, --deaths 100 and others: BENCH=--help"

# ---- set-up

$(VENV)/.tools: requirements-dev.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "MALT needs Python 3.10 or newer: make PYTHON=python3.x")'
	test -x $(PY) || $(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet --disable-pip-version-check --requirement requirements-dev.txt
	@touch $@

build/wheel: $(VENV)/.tools $(SOURCES)
	@mkdir -p build
	rm -f dist/*.whl
	$(PY) -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir dist ./python
	@touch $@

$(VENV)/.malt: build/wheel
	$(PY) -m pip install --quiet --disable-pip-version-check --no-deps --force-reinstall dist/*.whl
	@touch $@

# Apart from the rest for its size: one copy in the user's cache serves every checkout.
TORCH := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/malt/torch-$(shell cat requirements-torch.txt <($(PYTHON) -V) | cksum | tr ' ' -)

torch: $(VENV)/.tools ## PyTorch (5 GB, in the user's cache) for the tests and examples that use it
	@test -d $(TORCH) || { part=$(TORCH).part.$$$$; echo "PyTorch: installing it in $(TORCH)"; \
	$(PY) -m pip install --quiet --disable-pip-version-check --target $$part --requirement requirements-torch.txt && \
	mv -T $$part $(TORCH) || { rm -rf $$part; test -d $(TORCH); }; }
	@echo $(TORCH) > "$$($(PY) -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/torch.pth"

build: $(VENV)/.malt ## compile everything, install MALT into .venv
	$(GO) build ./...

wheel: build/wheel ## dist/*.whl, which installs without Go or a compiler
	@ls -l dist/*.whl

# ---- tests

# Signals that are ignored here, as by nohup, would be ignored in all that the tests start.
TESTED = env --default-signal

$(OUT):
	@mkdir -p $@

test: $(VENV)/.malt | $(OUT) ## all tests; prints the transports that ran and the slowest tests
	@rm -f $(OUT)/*; status=0; \
	for part in test-go test-py; do $(MAKE) --no-print-directory $$part || status=1; done; \
	$(PY) tests/report.py summary $(OUT)/go.json $(OUT)/py.xml; exit $$status

test-go: $(VENV)/.malt | $(OUT)
	$(TESTED) $(GO) test -json -vet off -timeout 20m ./... | $(PY) tests/report.py go $(OUT)/go.json

test-py: $(VENV)/.malt | $(OUT)
	$(TESTED) $(PY) -m pytest $(if $(filter tests/%,$(TESTS)),,tests/py) --quiet --numprocesses $(WORKERS) --dist worksteal --junitxml $(OUT)/py.xml $(TESTS)

test-4: $(VENV)/.malt ## the Python tests that hold at any world size, as 4 ranks
	$(VENV)/bin/malt run -n 4 -m pytest tests/py/anysize --quiet $(TESTS)

test-envs: $(VENV)/.malt ## the wheel in fresh environments: each Python, oldest and newest numpy, what is missing
	$(PY) tests/envs/run.py

# Programs of Go beside hosts, as many as there can be schedules at once times four.
ON_HOSTS = $(TESTED) $(GO) test -count=1 -v -exec '$(CURDIR)/$(PY) $(CURDIR)/tests/net/beside.py --hosts 32 $(filter --required,$(TESTS))' ./tests/go/processes

test-net: $(VENV)/.malt ## simulated networks: cables that are slow, lossy, cut; needs iproute2 and root, says so and skips without
	$(TESTED) $(PY) tests/net/run.py $(TESTS)
	$(if $(filter-out --required,$(TESTS)),,$(ON_HOSTS) -timeout 5m -run OnHosts)

test-engines: $(VENV)/.malt ## malt.ray and malt.dask on clusters of this machine, in an environment of their own
	$(PY) tests/engines/run.py $(TESTS)

test-avx512: ## the kernels on an emulated processor with AVX-512, for machines without; some minutes, 90 MB from Debian
	tests/avx512/run.sh

test-rdma: $(VENV)/.malt ## RDMA on Soft-RoCE, in an emulated machine; needs qemu, says so and skips without, 70 MB from Debian
	tests/rdma/run.sh $(TESTS)

# What runs one goroutine at a time the race detector has nothing to see in: of that the pointers are checked, which -race does as well.
ALONE = ./internal/explore ./libmalt/reduce
race: ## the Go tests under the race detector, which sees all that goes over inmem, and nothing of libfabric's code in C
	$(GO) test -race -short -skip Libfabric -vet off -timeout 20m $$($(GO) list ./internal/... ./rdma/... ./libmalt/... | grep -vxF "$$($(GO) list $(ALONE))")
	$(GO) test -short -gcflags=malt/...=-d=checkptr -vet off -timeout 20m $(ALONE)

# Go before 1.27 may fail at the end of the time, without an input (golang/go#75804): once more then.
fuzz: ## every fuzz target for FUZZTIME, two at a time
	@grep -rE --include='*_test.go' '^func Fuzz' . | sed -E 's#/[^/]*:func (Fuzz[A-Za-z0-9_]*).*# \1#' | sort | \
	nice -n 19 xargs -P 2 -L 1 sh -c 'for try in 1 2 3; do \
	out=$$($(GO) test -run "^$$" -fuzz "^$$2\$$" -fuzztime $(FUZZTIME) -parallel 1 $$1 2>&1); status=$$?; \
	case "$$status $$out" in 0*|*"Failing input"*) break;; *"    context deadline exceeded"*) ;; *) break;; esac; done; \
	echo "$$1 $$2"; echo "$$out" | tail -n $$([ $$status = 0 ] && echo 3 || echo 200); exit $$status' fuzz

soak: $(VENV)/.malt ## random schedules with stops and kills for SOAK, also such that the others survive, and on several hosts; then every fuzz target
	MALT_SOAK=$(SOAK) $(GO) test -count=1 -v -timeout 0 -run '^TestSoak$$' ./tests/go/processes
	MALT_SOAK=$(SOAK) $(GO) test -count=1 -v -timeout 0 -run '^TestSoakSurvivors$$' ./tests/go/processes
	MALT_SOAK=$(SOAK) $(ON_HOSTS) -timeout 0 -run '^TestSoakOnHosts$$'
	MALT_SOAK=$(SOAK) $(ON_HOSTS) -timeout 0 -run '^TestSoakSurvivorsOnHosts$$'
	$(MAKE) --no-print-directory fuzz FUZZTIME=$(SOAK)

explore: ## every interleaving of cases that take minutes each: about an hour
	MALT_EXPLORE=big $(GO) test -count=1 -v -timeout 0 -run '^TestExploreBig$$' ./tests/go

bench: $(VENV)/.malt ## how fast MALT is beside this machine's limit: table, JSON and pictures in build/bench
	cd tests && ../$(PY) -m bench --out ../build/bench/alone $(BENCH)

bench-compare: $(VENV)/.malt ## the same, in turns with Open MPI, MPICH, Intel MPI and programs by hand
	cd tests && ../$(PY) -m bench --compare --out ../build/bench/compared $(BENCH)

bench-net: $(VENV)/.malt ## over simulated networks, beside iperf3 (apt install iperf3) and gloo; needs what test-net needs
	cd tests && ../$(PY) -m bench --net --out ../build/bench/net $(BENCH)

bench-training: $(VENV)/.malt ## how soon models are good, beside scikit-learn, PyTorch, Hogwild and mpi4py: 20 minutes and more
	cd tests && ../$(PY) -m bench.training $(BENCH)
	cd tests && ../$(PY) -m bench.training --hosts -n 4 $(BENCH)

bench-go: ## the Go benchmarks
	$(GO) test -run '^$$' -bench . -benchmem ./...

notebooks: $(VENV)/.malt ## run examples/notebooks and keep what comes out in them (NOTEBOOKS='…' for some)
	$(PY) examples/notebooks/run.py --write $(NOTEBOOKS)

# ---- checks

check: check-go check-py check-english docs ## gofmt, vet, staticcheck, ruff, mypy --strict, English, generated code up to date, docs

# The packages that have other code where they are explored.
EXPLORED = $$(grep -rlE '^//go:build .*explore' --include=*.go capi graphs internal libmalt rdma | xargs -n1 dirname | sort -u | sed 's,^,./,')

check-go:
	@out=$$(gofmt -l $$(git ls-files '*.go')); test -z "$$out" || { echo "gofmt -w needed:"; echo "$$out"; exit 1; }
	$(GO) vet ./...
	$(GO) vet -tags explore $(EXPLORED)
	$(GO) mod tidy -diff
	$(GO) tool staticcheck ./...
	$(GO) tool staticcheck -tags explore $(EXPLORED)
	@before=$$(cksum $(MOCK)); at=$$(stat --format %y $(MOCK)); $(GO) generate ./...; \
	test "$$before" = "$$(cksum $(MOCK))" || { echo "$(MOCK) was out of date and has been generated again: commit it"; exit 1; }; \
	touch --date "$$at" $(MOCK)

# With one cache and the same options: PyTorch takes it a quarter of a minute.
MYPY = $(CURDIR)/$(VENV)/bin/mypy --config-file $(CURDIR)/python/pyproject.toml --cache-dir $(CURDIR)/.mypy_cache

check-py: $(VENV)/.malt
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(MYPY) python/malt
	cd examples && $(MYPY) .
	$(MYPY) tests/report.py tests/envs/run.py
	cd tests && MYPYPATH=../examples $(MYPY) -p bench

# Built once for every checkout, in the user's cache: a minute or two on two cores.
VALE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/malt/vale-v3.21.0

$(VALE):
	@part=$@.part.$$$$; echo "vale: building it in $@"; mkdir -p $(@D); \
	GOFLAGS= GOBIN=$$part $(GO) install github.com/vale-cli/vale/v3/cmd/vale@v3.21.0 && mv -T $$part $@ || { rm -rf $$part; test -d $@; }

check-english: $(VENV)/.tools $(VALE) ## what people read, against the rules in docs/_vale
	@test "$$($(VALE)/vale --output=line docs/_vale/wrong.md | cut -d: -f2 | sort -u | wc -l)" = "$$(awk -v RS= 'END {print NR}' docs/_vale/wrong.md)" || \
		{ echo "docs/_vale/wrong.md: the rules must find each paragraph of it"; exit 1; }
	@rm -rf build/english
	@$(PY) docs/_ext/english.py build/english
	$(VALE)/vale --output=line --glob='!**/_vale/*.md' README.md ARCHITECTURE.md CONTRIBUTING.md CHANGELOG.md $$(find examples -name '*.md') docs build/english

# ---- the rest

docs: $(VENV)/.malt ## the documentation, in build/docs; fails on any warning and on links that lead nowhere
	@test -x $(VENV)/bin/sphinx-build || { echo "the documentation needs Python 3.11 or newer: make PYTHON=python3.x docs"; exit 1; }
	@rm -rf build/docs
	$(VENV)/bin/sphinx-build --quiet --fail-on-warning --keep-going -d build/doctrees docs build/docs
	@$(PY) docs/_ext/links.py build/docs
	@echo build/docs/index.html

demo: $(VENV)/.malt ## train a real model with 1, 2 and 4 ranks: table and picture in build/demo
	cd examples && ../$(PY) -m demo --out ../build/demo $(DEMO)

clean: ## remove all that make made
	rm -rf build dist $(VENV) python/build python/*.egg-info .mypy_cache .ruff_cache .pytest_cache
