# shellcheck shell=bash disable=SC2034,SC2154
about="Python: the package on memory, SQLite, Redis and ZooKeeper, and its examples"
beside_zookeeper=yes

needs() {
    needs_redis && needs_zookeeper
    python3 -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' ||
        die "Python 3.10 with venv is missing: on Debian, apt-get install python3-venv"
}

run() {
    local status=0 log=$TMPDIR/pytest summary
    scripts/python build || return 1
    scripts/python pytest --color=no -q --basetemp="$TMPDIR/p" 2>&1 | tee "$log" || status=$?
    summary=$(grep -E '^[0-9]+ (passed|failed|skipped|error)' "$log" | tail -n 1) || true
    count "$(number_before passed <<<"$summary")" "$(number_before 'failed|errors?' <<<"$summary")" \
        "$(number_before skipped <<<"$summary")"
    step "the other Pythons of this machine" scripts/python smoke || status=$?
    return "$status"
}
