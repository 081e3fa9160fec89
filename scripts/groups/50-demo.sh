# shellcheck shell=bash disable=SC2034,SC2154
about="the flash sale, on the embedded store"

run() { step "fencelock demo" env PROFILE=dev scripts/demo --out "$TMPDIR/demo"; }
