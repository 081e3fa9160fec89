# shellcheck shell=bash disable=SC2034,SC2154
about="Rust: what needs no server"

needs() { needs_nextest; }

# The simulator is left to its own groups: they are built with optimisation.
run() { nextest --workspace --exclude fencelock-sim -E "not ($server_tests | $zookeeper_tests | $several_tests)"; }
