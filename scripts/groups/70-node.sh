# shellcheck shell=bash disable=SC2034,SC2154
source scripts/versions
about="Node: the npm package and its examples, on every store"
beside_zookeeper=yes

needs() {
    needs_redis && needs_zookeeper
    has npm || die "Node with npm is missing, see above"
    at_least "$node_version" "$(node -p process.versions.node)" ||
        die "Node $(node -p process.versions.node) is older than $node_version"
}

# It counts its own tests. What was packed is then used as a user would.
run() {
    local status=0
    node/scripts/test || status=$?
    step "the packed npm package" node/scripts/package --dev || status=$?
    return "$status"
}
