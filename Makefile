# make demo   train a digit classifier, with the weft of python3 if it has one, else in .venv
# make example-NAME   run a program of examples/ (examples/README.md lists them)
# make test   format check, lint, types, doctests and tests: the gate, 15 minutes on two cores, 25 the first time
# make test-all  the same with every case of every table, compiled as for users; hours
# make test-sanitized  the tests of the kernels in C++, which stop at a fault of memory or arithmetic
# make test-onnx  programs as ONNX models: every row of the suite, run by onnxruntime
# make docs   the site of the documentation, in build/site/html
# make bench  compare with JAX and NumPy, side by side; writes docs/benchmarks.md and programs.md
# make bench-torch  install PyTorch, 3 GB, for `make bench` to compare with it too
# make test-ecosystem  a sample of the tests of libraries written for JAX, here and on JAX (ARGS=--all)
# make gpu-smoke   check and time everything on a GPU, if there is one
# make wheels   a wheel for each platform, into dist/ (ARGS=manylinux_2_17_x86_64 for one of them)
# make try-wheel   install the wheel of this machine without a compiler, and test it
# make release   all that a release has to pass: tests, wheels, the site, one version
# make clean  remove everything these make

SUPPORTED := import sys, venv; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c '$(SUPPORTED)' 2>/dev/null && { echo $$p; break; }; done)
JOBS ?= 2

VENV := .venv
# The newest JAX is what is measured where the Python that it needs is there, else the oldest that weft serves.
BENCH_VENV := .venv-bench
BENCH_PYTHON := $(shell for p in python3.13 "$${PYENV_ROOT:-$$HOME/.pyenv}"/versions/3.13.*/bin/python; do \
	"$$p" -c 'import venv' 2>/dev/null && { echo "$$p"; break; }; done)
BENCH_JAX := $(if $(BENCH_PYTHON),0.12.0.1,0.10.2)

# What runs keep on disk stays inside the checkout, so an empty or missing HOME is fine.
export WEFT_CACHE_DIR ?= $(CURDIR)/.cache/weft
export MPLCONFIGDIR ?= $(CURDIR)/.cache/matplotlib
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Tests start a hundred processes, which import weft in 0.4 s where its bytecode is kept, else in 0.6.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test test-all test-sanitized test-ecosystem docs bench bench-torch gpu-smoke clean
.PHONY: test-onnx wheels try-wheel release

demo:
	@if "$(PYTHON)" -c 'import matplotlib, sklearn, weft' 2>/dev/null; \
		then "$(PYTHON)" examples/digits.py; \
		else $(MAKE) --no-print-directory $(VENV)/.examples && $(VENV)/bin/python examples/digits.py; fi

# any program of examples/ (README there): make example-vae ARGS='--epochs 5'
example-%: $(VENV)/.examples
	$(VENV)/bin/python examples/$*.py $(ARGS)

# Types are checked beside the examples: mypy has one process, and the machine two cores or more.
test: $(VENV)/.test
	@mkdir -p build
	$(VENV)/bin/python -m ruff format --check .
	$(VENV)/bin/python -m ruff check .
	$(VENV)/bin/python -m mypy > build/mypy.txt & types=$$!; \
		$(VENV)/bin/python -m pytest -q -n $(JOBS) --doctest-modules --doctest-glob='*.md' --ignore=docs/distributed.md src/weft README.md docs; \
		examples=$$?; wait $$types; types=$$?; cat build/mypy.txt; exit $$((examples + types))
	$(VENV)/bin/python -m pytest -n $(JOBS) tests

test-all: export WEFT_TEST_ALL := 1
test-all: test

# The kernels once more, built by GCC to end the process where they read or write outside of memory of
# theirs, or compute what C++ leaves open; GCC's libraries have to be in the process before Python is.
SANITIZED := build/sanitized
FAULTS := -O1 -g1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=undefined
KERNEL_TESTS := tests/test_image.py tests/cpu

test-sanitized: $(SANITIZED)/kernels.so
	LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libstdc++.so)" \
		ASAN_OPTIONS=detect_leaks=0 \
		UBSAN_OPTIONS=print_stacktrace=1 WEFT_KERNELS=$(abspath $(SANITIZED)) \
		$(VENV)/bin/python -m pytest -q -n $(JOBS) --capture=sys $(KERNEL_TESTS)

$(SANITIZED)/kernels.so: $(VENV)/.test $(wildcard src/weft/native/*.cc src/weft/native/*.h)
	mkdir -p $(SANITIZED)
	cp src/weft/native/*.cc src/weft/native/*.h $(SANITIZED)
	CXX=$(CXX) CXXFLAGS="$(FAULTS)" $(VENV)/bin/python -c \
		"import hatch_build, pathlib; hatch_build.compile_kernels(pathlib.Path('$(SANITIZED)').resolve())"

docs: $(VENV)/.docs
	$(VENV)/bin/python tools/site/build.py $(DOCS_ARGS)
	$(VENV)/bin/python tools/site/check.py
	$(VENV)/bin/python tools/site/notebooks.py build/site/source/notebooks/guide-*.ipynb

bench: $(BENCH_VENV)/.made $(BENCH_VENV)-numba/.made $(BENCH_VENV)-weft/.made $(VENV)-ecosystem/.made
	$(BENCH_VENV)-weft/bin/python bench/run.py $(BENCH_ARGS)
	$(BENCH_VENV)-weft/bin/python bench/sizes.py
	$(BENCH_VENV)/bin/python bench/sizes.py --jax
	$(BENCH_VENV)-weft/bin/python bench/c_programs.py
	$(BENCH_VENV)-weft/bin/python tools/site/charts.py

bench-torch: | $(VENV)/.made
	rm -rf $(BENCH_VENV)-torch
	$(VENV)/bin/python -m venv $(BENCH_VENV)-torch
	$(BENCH_VENV)-torch/bin/python -m pip install -q torch numpy

test-ecosystem: $(VENV)-ecosystem/.made
	$(VENV)-ecosystem/bin/python tools/run_ecosystem.py $(ARGS)

test-onnx: $(VENV)/.test
	$(VENV)/bin/python -m pip install -q onnx onnxruntime
	$(VENV)/bin/python -m pytest -q --all tests/export/onnx tests/examples/test_onnx_import.py

# The plugin is of jaxlib's version; without a GPU there is nothing to install, or to check.
gpu-smoke: $(VENV)/.test
	@if command -v nvidia-smi > /dev/null; then $(VENV)/bin/python -m pip install -q \
		"jax-cuda13-plugin[with-cuda]==$$($(VENV)/bin/python -c 'import jaxlib; print(jaxlib.__version__)')"; fi
	$(VENV)/bin/python bench/gpu_smoke.py $(ARGS)

wheels: $(VENV)/.wheels
	$(VENV)/bin/python tools/make_wheels.py $(ARGS)

WHEEL = $(firstword $(wildcard dist/weft-*-py3-none-manylinux_*_$(shell uname -m).whl))

try-wheel: $(VENV)/.test
	@test -n "$(WHEEL)" || { echo "make: no wheel of this machine in dist/; make wheels" >&2; exit 1; }
	$(VENV)/bin/python tools/try_wheel.py $(WHEEL) -n $(JOBS) tests/cpu tests/test_tiny.py tests/test_command.py

release: $(VENV)/.test
	$(VENV)/bin/python tools/check_release.py --clean
	rm -rf dist
	$(MAKE) test
	$(MAKE) wheels
	$(MAKE) try-wheel
	$(MAKE) docs

clean:
	rm -rf $(VENV) $(VENV)-* .cache build dist examples/out .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find src tests examples bench -name __pycache__ -prune -exec rm -rf {} +

# One environment, filled by extras as a target needs them; a stamp says that an extra is in.
$(VENV)/.made:
	@test -n "$(PYTHON)" || { echo "make: no Python 3.11 to 3.14 found; set PYTHON=/path/to/python" >&2; exit 1; }
	@"$(PYTHON)" -c '$(SUPPORTED)' || { echo "make: $(PYTHON) is no Python 3.11 to 3.14 with venv" >&2; exit 1; }
	rm -rf $(VENV)
	"$(PYTHON)" -m venv $(VENV)
	@touch $@

# The tools that build weft and its kernels, and the packages that it needs to run. An environment of
# pip's own for building would hold a second jaxlib. Byte code is compiled at the first import.
REQUIRED = hatchling editables $(shell $(VENV)/bin/python -c 'import tomllib; \
	print(*map(repr, tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"]))')

NATIVE := hatch_build.py $(wildcard src/weft/native/*.cc src/weft/native/*.h)

$(VENV)/.%: pyproject.toml $(NATIVE) | $(VENV)/.made
	$(VENV)/bin/python -m pip install --no-compile $(REQUIRED)
	$(VENV)/bin/python hatch_build.py
	$(VENV)/bin/python -m pip install --no-compile --no-build-isolation --editable '.[$*]'
	@touch $@

# JAX lives apart, beside a weft on the same jaxlib: the two must not share an environment.
$(BENCH_VENV)/.made: | $(VENV)/.made
	rm -rf $(BENCH_VENV)
	$(or $(BENCH_PYTHON),$(VENV)/bin/python) -m venv $(BENCH_VENV)
	$(BENCH_VENV)/bin/python -m pip install -q jax==$(BENCH_JAX)
	@touch $@

$(BENCH_VENV)-numba/.made: | $(VENV)/.made
	rm -rf $(BENCH_VENV)-numba
	$(VENV)/bin/python -m venv $(BENCH_VENV)-numba
	$(BENCH_VENV)-numba/bin/python -m pip install -q numba scipy
	@touch $@

# Libraries, the JAX that they require, and weft.
$(VENV)-ecosystem/.made: tests/ecosystem/requirements.txt pyproject.toml | $(VENV)/.made
	rm -rf $(VENV)-ecosystem
	$(VENV)/bin/python -m venv $(VENV)-ecosystem
	$(VENV)-ecosystem/bin/python -m pip install -q -r $< --editable .
	@touch $@

# The kernels hold no Python: those built for the tests serve every version.
$(BENCH_VENV)-weft/.made: pyproject.toml $(VENV)/.test
	rm -rf $(BENCH_VENV)-weft
	$(or $(BENCH_PYTHON),$(VENV)/bin/python) -m venv $(BENCH_VENV)-weft
	$(BENCH_VENV)-weft/bin/python -m pip install -q jaxlib==$(BENCH_JAX) hatchling editables
	WEFT_BUILD=none $(BENCH_VENV)-weft/bin/python -m pip install -q --no-build-isolation --editable .
	@touch $@
