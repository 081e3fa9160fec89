# shellcheck shell=bash disable=SC2034
about="simulator: its own tests, and a small dose of runs, the planted bugs"

needs() { needs_nextest; }

run() {
    local status=0
    export SIM_PROFILE=sim
    nextest --cargo-profile sim -p fencelock-sim -E "not binary(/^differential/)" \
        --no-tests pass || status=$?
    step "simulator, quick run" scripts/sim quick || status=$?
    step "simulator, planted bugs" scripts/sim known || status=$?
    step "simulator, the table of guarantees" scripts/sim check-table || status=$?
    return "$status"
}
