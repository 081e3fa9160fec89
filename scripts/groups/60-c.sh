# shellcheck shell=bash disable=SC2034,SC2154
about="C: the header, and the library on memory, SQLite, Redis and ZooKeeper"
beside_zookeeper=yes

needs() { needs_redis && needs_zookeeper; }

# abi NAME URL: the test program on one store; each of its tests counts.
abi() {
    local name=$1 url=$2 log=$TMPDIR/abi.log status=0 passed
    say "$name on ${url%%:*}"
    scripts/c-test run "$name" "$url" | tee "$log" || status=$?
    passed=$(grep -c '^ok ' "$log") || true
    count "$passed" $((status != 0)) 0
    return "$status"
}

run() {
    local status=0 redis socket=$TMPDIR/r.sock
    scripts/native dev || return 1
    step "the header" scripts/c-test headers || status=$?
    step "pkg-config and CMake" scripts/c-test consumers || status=$?
    # What leaks or is used after it was freed is found by the program's own malloc; the library is
    # the one that the other tests run on.
    scripts/c-test build abi-test || return 1
    scripts/c-test build abi-asan "${CC:-cc}" -fsanitize=address,undefined || return 1
    "${REDIS_SERVER:-redis-server}" --port 0 --unixsocket "$socket" --save '' --appendonly no \
        --dir "$TMPDIR" >"$TMPDIR/redis.log" &
    redis=$!
    until [ -S "$socket" ] || ! kill -0 "$redis" 2>/dev/null; do sleep 0.1; done
    for name in abi-test abi-asan; do
        abi "$name" memory: || status=$?
        abi "$name" "sqlite:$TMPDIR/$name.db" || status=$?
        abi "$name" "redis+unix://$socket" || status=$?
        abi "$name" "$FENCELOCK_TEST_ZK" || status=$?
    done
    step "examples on SQLite" scripts/c-test examples || status=$?
    STORE="redis+unix://$socket" step "examples on Redis" scripts/c-test examples || status=$?
    kill "$redis"
    wait "$redis" || true
    return "$status"
}
