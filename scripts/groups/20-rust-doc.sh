# shellcheck shell=bash disable=SC2034,SC2154
about="Rust: the examples in the documentation"

run() { doctest --workspace --exclude fencelock-sim; }
