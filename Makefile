# make demo    from a fresh clone to a cited answer
# make test    the tests of every change, with the real small models: some eight minutes on two fast cores
# make test-long   the others: sweeps, waits, large models
# make test-torch   the tests of the torch embedder, in a .venv-torch of their own
# make pictures   draws the stored pictures of the screens anew; look at what git says has changed
# make faults  the writer stopped at every system call in every way, and a power loss after each: most of an hour; then
#              faults of seven kinds at random in all that is done with a library: some ten minutes
# make soak    thousands of asks and ingests in one process: whether memory, files, threads or times grow; a quarter of an hour
# make fuzz    20,000 damaged segment files through the kernel under sanitizers; some ten minutes
# make test-cpus   the program on processors that are not here, under QEMU's user emulation; half an hour
# make test-bundle   one bundle for x86_64 and aarch64, installed on both (aarch64 under QEMU) and asked; an hour the first time
# make check   format, lint, strict types, import contracts, and the tests of every change
# make bench   the figures of README and docs, measured here, into bench/results
# make bench-index   the same for the index, against hnswlib and usearch; long

PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	if $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then echo $$python; break; fi; done)
BIN := .venv/bin
QUESTION ?= Which torque do the lid screws of the pump need?

# Tests of one file run in one process; four at once, each with its models, are as many as a laptop has room for.
WORKERS ?= $(shell nproc 2>/dev/null | awk '{print ($$1 < 4) ? $$1 : 4}')

# Tests start hundreds of processes: without bytecode each would compile the program anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo prepare prepare-dev test test-long test-torch test-cpus test-bundle pictures lint check format bench bench-index faults soak fuzz clean

demo: prepare
	@$(BIN)/edgerag --library demo ingest examples/docs
	@echo
	@echo '$$ edgerag --library demo ask "$(QUESTION)"'
	@$(BIN)/edgerag --library demo ask "$(QUESTION)"
	@echo
	@echo 'Open the terminal UI:   $(BIN)/edgerag --library demo'
	@echo 'Read your own files:    $(BIN)/edgerag ingest ~/Documents'

prepare:
	@if [ -z "$(PYTHON)" ]; then echo "Python 3.11 or newer is missing. Install it, or name it: make demo PYTHON=..."; exit 1; fi
	@$(PYTHON) tools/prepare.py

prepare-dev:
	@if [ -z "$(PYTHON)" ]; then echo "Python 3.11 or newer is missing. Install it, or name it: make test PYTHON=..."; exit 1; fi
	@$(PYTHON) tools/prepare.py --dev

test: prepare-dev
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile

test-long: prepare-dev
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile -m long

TORCH_TESTS := tests/unit/engine/test_embed_torch.py tests/unit/measure/test_bench_ingest.py tests/flow/test_bulk_ingest.py

test-torch: prepare-dev
	@$(PYTHON) tools/prepare_torch.py
	.venv-torch/bin/python -m pytest -m "" $(TORCH_TESTS)

test-cpus: prepare-dev
	$(BIN)/python tests/cpus/emulated.py --kernel-tests

test-bundle: prepare-dev
	@$(PYTHON) tools/prepare.py --wheels --for linux-x86_64,linux-aarch64 --python 3.11
	@$(BIN)/python tests/cpus/prepare_aarch64.py
	$(BIN)/python tests/cpus/bundles.py --python 3.11

pictures: prepare-dev
	RENEW_PICTURES=1 $(BIN)/python -m pytest -m "" tests/tui/test_pictures.py

lint: prepare-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

check: lint test

format: prepare-dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: prepare-dev
	$(BIN)/python bench/first_words.py

# Takes hours on two cores the first time: the vector sets and their graphs are made, then kept in bench/.cache.
# EDGERAG_BENCH_DATA names the folder with the texts.
bench-index: prepare-dev
	$(BIN)/python bench/vector_sets.py --graph c200k text100k real20k c1m
	$(BIN)/python bench/index_peers.py --sets c200k,text100k,real20k --sweep
	$(BIN)/python bench/index_scenarios.py --set c1m

faults: prepare-dev
	$(BIN)/python tests/faults/exhaustive.py
	$(BIN)/python bench/injected_faults.py

soak: prepare-dev
	$(BIN)/python bench/soak.py --minutes 13

fuzz: prepare-dev
	$(BIN)/python tests/fuzz/campaign.py

clean:
	rm -rf .venv .venv-torch .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
