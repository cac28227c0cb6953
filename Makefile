# Two commands do everything on a machine with Python 3.11, 3.12 or 3.13, pip and venv:
#   make book   installs what the book needs, runs every notebook, builds the site into _build/html
#   make test   installs what the tests need besides, checks style and layers, runs all tests
# TORCH=cpu, in the command that installs, takes PyTorch without CUDA.
# PYTHON=/path/to/python names one; else the first that fits is taken. It is run, as a name may be
# there without a program behind it (pyenv), and a program without venv (Debian).
NAMES := python3.11 python3.12 python3.13 python3.14 python3
FITTING = for name in $(NAMES); do $$name tools/check.py --python && echo $$name && break; done
UNFIT = { echo "'$(PYTHON)' is not there or does not fit: install Python 3.12 (https://www.python.org/downloads), or name one with PYTHON=/path/to/python3.12"; exit 1; }
PYTHON ?= $(or $(shell { $(FITTING); } 2>/dev/null | grep -x 'python[0-9.]*'),python3)
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
TESTED := $(VENV)/.installed-test
TEACHES := $(VENV)/.installed-teach
PIP := $(BIN)/python -m pip install --progress-bar on
# A build that uv knows: cpu, auto, cu130, ... An environment keeps the one it was made with.
TORCH ?= $(shell cat $(VENV)/torch 2>/dev/null)
OF_TORCH := torch|torchvision|triton|nvidia-[a-z0-9-]+|cuda-[a-z]+
PORT ?= 8000
export PYTHONHASHSEED := 0
# Where this is set, as in some containers, every process compiles what it imports, pytest its tests.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help install book test rehearsal teach lint serve lab copies colab clean benchmarks gpu-bundle constraints environments wheel repository addresses links check social release attack levels mutants

help:
	@echo "make check       say whether this machine can: Python, disk, browser, GPU, versions"
	@echo "make book        run every notebook and build the site into _build/html"
	@echo "make book TORCH=cpu   the same, with PyTorch's build for machines without a CUDA card"
	@echo "make test        style, layers, tests, notebooks, the site in a browser"
	@echo "make rehearsal   the studies in the profile 'paper', on random models and invented data"
	@echo "make teach       PDFs, course packages and the instructor's edition, after make book"
	@echo "make serve       build the book and show it on http://localhost:$(PORT)"
	@echo "make lab         open the notebooks in JupyterLab"
	@echo "make copies      write the copies of the notebooks for Colab and others into colab/"
	@echo "make colab       one zip with which the chapters run on Colab, without a web address"
	@echo "make benchmarks  load every family at its full size; kill extractions"
	@echo "make gpu-bundle  one archive that measures a card in eight minutes, without installing"
	@echo "make levels      simulate how often tests reject and intervals hold what is true"
	@echo "make attack      kill, damage, mislead and lie to it, and count what came of it"
	@echo "make mutants     the share of wrong expressions that a test catches, by layer"
	@echo "make clean       delete what was built; 'rm -r $(VENV)' deletes the environment too"

# With the environment's Python where there is one, so that its versions are looked at.
check:
	@test -x $(BIN)/python || "$(PYTHON)" -c 'f""' 2>/dev/null || $(UNFIT)
	@$$(test -x $(BIN)/python && echo $(BIN)/python || echo "$(PYTHON)") tools/check.py

install: $(INSTALLED)

# pip compares every file that it gets with its hash, what it builds others with included. The builds
# of PyTorch's own index have no hash here: they are asked for by version, and with them goes
# nothing of CUDA that the main index would bring.
$(INSTALLED): pyproject.toml requirements.txt
	@echo "== Installing into $(VENV): some minutes the first time (PyTorch is large)"
	@test -x $(BIN)/python || "$(PYTHON)" tools/check.py --python 2>/dev/null || $(UNFIT)
	@test -x $(BIN)/python || "$(PYTHON)" -m venv $(VENV)
	sed -nE '/^(packaging|setuptools|wheel)==/,/[^\\]$$/p' requirements.txt > $(VENV)/build.txt
	$(PIP) --require-hashes --requirement $(VENV)/build.txt
	sed -E '/^$(if $(TORCH),($(OF_TORCH))==,$$)/,/[^\\]$$/d' requirements.txt > $(VENV)/book.txt
ifneq ($(TORCH),)
	sed -nE '/^uv==/,/[^\\]$$/p' requirements-test.txt > $(VENV)/uv.txt
	$(PIP) --require-hashes --requirement $(VENV)/uv.txt
	$(BIN)/uv pip install --python $(BIN)/python --torch-backend $(TORCH) --no-deps $$(sed -nE 's/^(torch(vision)?==[^ ]+).*/\1/p' requirements.txt)
	@echo $(TORCH) > $(VENV)/torch
endif
	$(PIP) --require-hashes --no-build-isolation --requirement $(VENV)/book.txt
	$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

$(TESTED): $(INSTALLED) requirements-test.txt
	@echo "== Installing what the tests need besides"
	$(PIP) --require-hashes --no-build-isolation --requirement requirements-test.txt
	@touch $@

book: $(INSTALLED)
	@echo "== Building the book: a notebook runs when it, or what it used, has changed"
	$(BIN)/jupyter-book build . -W -n --keep-going
	@echo "== Open _build/html/index.html, or: make serve"

# One process more than cores; a file to one process: a notebook's cells share a kernel, the site is
# built once.
# Files keep their order, so that the tests that take minutes start first (tests/conftest.py);
# make test PYTEST_ARGS=--order-seed=1 draws another order.
test: $(TESTED) lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses auto --dist loadfile --no-loadscope-reorder $(PYTEST_ARGS)

rehearsal: $(TESTED)
	@echo "== The studies' notebooks in the profile 'paper', on a model hub on this machine"
	cd tests && ../$(BIN)/python -m support.rehearsal $(NOTEBOOK)

lint: $(TESTED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

$(TEACHES): $(INSTALLED) requirements-teach.txt
	@echo "== Installing what PDFs and packages for course systems need besides the book"
	$(PIP) --require-hashes --no-build-isolation --requirement requirements-teach.txt
	@touch $@

teach: $(TEACHES)
	$(BIN)/python tools/teach.py

serve: book
	@echo "== http://localhost:$(PORT) (stop with Ctrl-C)"
	$(BIN)/python -m http.server $(PORT) --bind 127.0.0.1 --directory _build/html

lab: $(INSTALLED)
	$(BIN)/jupyter lab notebooks

copies: $(INSTALLED)
	$(BIN)/python tools/notebook_copies.py

colab: $(INSTALLED)
	$(BIN)/python tools/colab_zip.py

clean:
	rm -rf _build build dist *.egg-info .pytest_cache .ruff_cache .hypothesis

# For maintainers

benchmarks: $(INSTALLED)
	@echo "== Some twenty minutes on two idle cores; 9 GB of memory and 4 GB of disk"
	$(BIN)/python -m tools.benchmarks.kills
	$(BIN)/python -m tools.benchmarks.full_size

gpu-bundle: $(INSTALLED)
	$(BIN)/python tools/gpu_bundle.py

levels: $(INSTALLED)
	@echo "== Level, power and coverage of each test and interval: some ten minutes on one core"
	OMP_NUM_THREADS=1 $(BIN)/python -m tools.levels

# The tests of what the drawn layers compute; planted worlds, the site and the notebooks take hours.
MEASURED := metrics inference datasets stud reproduction audit text analyses properties extremes parity stimuli published \
	inputs mask networks models_own images region_files dual vilt visualbert vl_bert generative fusion \
	batches detector checkpoints released adding folders runtime stored report companion claim_cards exercise capstone \
	what_is first_figures

mutants: export COVERAGE_FILE := $(CURDIR)/build/mutants/coverage
mutants: $(TESTED)
	@echo "== Which test executes which line, then one change at a time: an hour and a half"
	rm -rf build/mutants && mkdir -p build/mutants
	OMP_NUM_THREADS=1 $(BIN)/python -m coverage run --source=biaslib,companion -m pytest -q -p tools.mutants \
		biaslib companion $(wildcard $(MEASURED:%=tests/test_%*.py))
	$(BIN)/python -m tools.mutants

attack: $(TESTED)
	@echo "== Kills, damage, bad files, hostile hosts and hidden code: some minutes"
	cd tests && PYTHONPATH=.. ../$(BIN)/python -m attack

wheel: $(TESTED)
	$(BIN)/python -m build --wheel

# Some 12 GB on the disk, and an hour: all notebooks, doctests and checkpoints in each.
environments: $(INSTALLED)
	@echo "== The lowest versions of pyproject.toml (Python 3.10), then Colab's (Python 3.13)"
	$(BIN)/python tools/environments.py lowest
	$(BIN)/python tools/environments.py colab

constraints: $(TESTED)
	$(BIN)/python tools/constraints.py $(OPTIONS)

# Exit status 1: a model's file has no living address left; what died is printed in either case.
addresses: $(INSTALLED)
	@echo "== Asking each address of the models' files for its headers; nothing is downloaded"
	$(BIN)/python tools/addresses.py

# Exit status 1: a page that the book links to is gone.
links: $(INSTALLED)
	@echo "== Asking each page that the book links to for its headers"
	$(BIN)/python tools/links.py

# The picture of link previews; a test says when it no longer shows what the book computes.
social: $(INSTALLED)
	$(BIN)/python tools/social_image.py

# VERSION=0.2.0: after make book, from a commit in which changelog and citation have that version.
# The files in _build/release are those that the workflow attaches to the tag.
release: $(TEACHES)
	$(BIN)/python tools/release.py $(VERSION)
	$(BIN)/python tools/teach.py

repository: $(INSTALLED)
	$(BIN)/python tools/repository.py $(URL)
	$(BIN)/python tools/notebook_copies.py
