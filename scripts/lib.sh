# What every script here begins with: strict mode, the root of the repository, the tools.
# shellcheck shell=bash disable=SC2034

set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
cd "$root"

# Own tools live outside target/, so that `make clean` does not cost minutes.
tools=${FENCELOCK_TOOLS:-${XDG_CACHE_HOME:-${HOME:-$root/target}/.cache}/fencelock/tools}
export PATH="$PATH:${CARGO_HOME:-${HOME:-}/.cargo}/bin:$tools/bin"

# Where cargo puts what it builds.
target=${CARGO_TARGET_DIR:-$root/target}

# Lock files are binding in CI; a developer who adds a dependency is not stopped by his own edit.
locked=()
if [ "${CI:-}" = true ]; then
    locked=(--locked)
    # Each thing is built once there, so what serves the next build, or a debugger, only fills the disk.
    export CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=0
fi

say() { printf '%s\n' "$*"; }
warn() { printf '%s\n' "$*" >&2; }
die() {
    warn "$*"
    exit 1
}
has() { command -v "$1" >/dev/null 2>&1; }

# at_least WANTED FOUND: whether version FOUND is WANTED or newer.
at_least() { [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]; }

# our_files [FOLDER…]: the files of the repository, also those not committed yet, each ended by NUL.
our_files() {
    # The folder may belong to somebody else, as in a container; git would refuse it.
    git -c safe.directory="$root" ls-files -z -co --exclude-standard -- "$@"
}

# Whether there are ZooKeeper's jars, of Debian's package or elsewhere.
has_zookeeper() { [ -n "${ZOOKEEPER_CLASSPATH:-}" ] || [ -e /usr/share/java/zookeeper.jar ]; }

# The Java that runs ZooKeeper, and its jars, or the word what to install.
java=${JAVA_HOME:+$JAVA_HOME/bin/}java
needs_zookeeper() {
    has "$java" || die "Java is missing: on Debian, apt-get install default-jre-headless"
    has_zookeeper || die "ZooKeeper is missing: on Debian, apt-get install zookeeper, or give ZOOKEEPER_CLASSPATH=jars"
}
