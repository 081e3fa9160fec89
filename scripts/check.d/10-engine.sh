# shellcheck shell=bash disable=SC2034,SC2154
about="the engine and its rules, and the store in memory"

needs() { needs_nextest; }

run() { nextest -p fencelock-engine -p fencelock-memory; }
