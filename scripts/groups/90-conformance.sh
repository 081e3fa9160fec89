# shellcheck shell=bash disable=SC2034,SC2154
about="every language on the same stores: a scene for each promise, all together under faults, the demo and the services in all languages"

needs() { needs_redis && needs_zookeeper; }

run() {
    local log=$TMPDIR/conformance status=0
    local one=(--store sqlite --store redis --store zookeeper) several=(--store sentinel --store cluster)
    scripts/conformance "${one[@]}" 2>&1 | tee "$log" || status=$?
    # All scenes of these, and their mix, are a part of `make verify`.
    scripts/conformance "${several[@]}" --scene exclusion --scene restart 2>&1 | tee -a "$log" || status=$?
    scripts/conformance "${one[@]}" --no-scenes --mix "${MIX_SECONDS:-10}" 2>&1 | tee -a "$log" || status=$?
    # A promise that one language kept on one store counts, and so does the mix on a store.
    count "$(($(number_before kept <"$log") + $(grep -c ', mixed: .*: clean$' "$log")))" \
        "$(grep -c '^BROKEN\|^FAILED' "$log")" \
        "$(grep -c 'it takes no part$' "$log")"
    step "the demo in all languages" env WITH=c,java,python,node scripts/demo --out "$TMPDIR/demo" ||
        status=$?
    step "the demo over a failover" env STORE=sentinel PROFILE=dev scripts/demo --out "$TMPDIR/demo" ||
        status=$?
    if has javac && has mvn && has node; then
        step "a lock across services" scripts/services || status=$?
    else
        warn "a lock across services: skipped, a JDK, Maven or Node is missing"
        count 0 0 1
    fi
    return "$status"
}
