# shellcheck shell=bash disable=SC2034,SC2154
about="UniFFI: Kotlin and Ruby on every store, their examples; a word with the Python; Swift where it is"
beside_zookeeper=yes

needs() { needs_redis && needs_zookeeper; }

# without LANGUAGE WHY: one that cannot be tested here. A machine that tests every change must not pass
# by leaving tests out.
without() {
    say "$1: left out, $2"
    if [ "${CI:-}" = true ]; then
        count 0 1 0
        return 1
    fi
    count 0 0 1
}

test_kotlin() {
    has mvn || { without Kotlin "Maven is missing" || return 1; return 0; }
    has javac || { without Kotlin "a JDK is missing" || return 1; return 0; }
    local status=0
    rm -rf bindings/kotlin/fencelock/target/surefire-reports
    surefire scripts/uniffi mvn package "-Dfencelock.test.jvm=-Djava.io.tmpdir=$TMPDIR" \
        "-Dfencelock.test.stores=$stores" || status=$?
    step "Kotlin's public surface" scripts/uniffi api || status=$?
    return "$status"
}

test_ruby() {
    local status=0 log=$TMPDIR/minitest summary runs failures errors skips
    ruby -rffi -rminitest -e '' 2>/dev/null ||
        { without Ruby "it is missing, or its ffi or minitest" || return 1; return 0; }
    FENCELOCK_STORES=$stores scripts/uniffi ruby -e 'Dir["bindings/ruby/test/test_*.rb"].each { |file| require "./#{file}" }' \
        2>&1 | tee "$log" || status=$?
    summary=$(grep -E '^[0-9]+ runs, ' "$log" | tail -n 1 | tr -d ,) || true
    # runs, assertions, failures, errors, skips
    read -r runs _ _ _ failures _ errors _ skips _ <<<"${summary:-0 runs 0 assertions 0 failures 0 errors 0 skips}"
    count $((runs - failures - errors - skips)) $((failures + errors)) "$skips"
    step "Ruby's first lock" scripts/uniffi ruby examples/ruby/first_lock.rb || status=$?
    step "Ruby's flash sale" scripts/uniffi ruby examples/ruby/flash_sale.rb || status=$?
    return "$status"
}

test_swift() {
    if ! has swift; then
        say "Swift: left out, there is no toolchain: what is generated for it is not tested"
        count 0 0 1
        return
    fi
    step "Swift" scripts/uniffi swift test
}

run() {
    local status=0 stores=${UNIFFI_STORES:-memory,sqlite,redis,$FENCELOCK_TEST_ZK}
    step "the sources of four languages" scripts/uniffi generate || return 1
    step "the generated Python" scripts/uniffi python bindings/uniffi/tests/smoke.py || status=$?
    test_ruby || status=$?
    test_kotlin || status=$?
    test_swift || status=$?
    return "$status"
}
