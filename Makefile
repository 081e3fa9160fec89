# Each target is one line that calls a script of the same name in scripts/. Variables given on the
# command line, as in `make test ONLY=rust`, reach it through the environment.

.PHONY: help demo check test lint bench verify c header node java python python-dev fmt setup clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

demo: ## run the flash sale; STORE=redis://… on another store, WITH=java,python,node,c in these languages, too
	@scripts/demo

check: ## the inner loop, a few minutes: the engine, memory and one real Redis, one language (IN=c, java, node or python)
	@scripts/check

test: ## run every group of tests; ONLY=rust runs those whose name begins so
	@scripts/test

lint: ## formatting, clippy, docs, licences, dependency arrows, the wasm build
	@scripts/lint

bench: ## run the benchmarks; BENCH=name runs one
	@scripts/bench

verify: ## the simulator's deep run; VERIFY_SECONDS bounds it, SEED=… replays one run
	@scripts/verify

c: ## build the C library in release, and install it under PREFIX (dist/c)
	@scripts/native install

header: ## write include/fencelock.h anew from bindings/c
	@scripts/header

node: ## build the npm package in release, and pack it into node/pack
	@node/scripts/package

java: ## build the jar with the native library inside, its sources and Javadoc
	@scripts/java jar

python: ## build the wheels, for manylinux and musllinux, into python/dist
	@scripts/python wheels

python-dev: ## install the Python package from these sources into a virtual environment
	@scripts/python dev

fmt: ## format the Rust sources
	@cargo fmt --all

setup: ## install what lint and test need (each does so by itself)
	@scripts/setup lint test

clean: ## remove what was built
	@cargo clean
