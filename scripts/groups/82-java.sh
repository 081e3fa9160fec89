# shellcheck shell=bash disable=SC2034,SC2154
about="Java: the package, on the embedded stores, Redis and ZooKeeper; virtual threads on a newer JDK"
beside_zookeeper=yes

needs() {
    needs_redis && needs_zookeeper
    has mvn || die "Maven is missing, see above"
    has javac || die "a JDK is missing, see above"
}

# A JDK that has virtual threads: $NEWER_JDK, or one that lies where packages put them.
newer_jdk() {
    local jdk version
    for jdk in "${NEWER_JDK:-}" "${JAVA_HOME:-}" /usr/lib/jvm/*; do
        if [ ! -x "$jdk/bin/java" ] || [ ! -f "$jdk/release" ]; then continue; fi
        version=$(sed -n 's/^JAVA_VERSION="\([0-9]*\).*/\1/p' "$jdk/release")
        if [ "${version:-0}" -ge 21 ]; then
            printf '%s\n' "$jdk"
            return
        fi
    done
}

maven() { surefire scripts/java mvn "$@"; }

# The virtual machine tells of wrong uses of JNI on its output, which surefire keeps apart.
jni_is_clean() {
    local found
    found=$(grep -rhE 'in native method|JNI (call|local refs)' "$1" \
        "${LOG:-${TMPDIR:-/tmp}/fencelock}.maven" 2>/dev/null | sort | uniq -c) || true
    [ -z "$found" ] || { warn "$found" && return 1; }
}

# Whoever uses the jar has no other pom of ours. The JDK's own tool opens it: unzip may be missing.
pom_stands_alone() {
    local jar folder pom file=META-INF/maven/io.fencelock/fencelock/pom.xml
    jar=$(compgen -G "$root/$1/fencelock-[0-9]*[0-9].jar") ||
        { warn "there is no jar to look at: Maven failed before" && return 1; }
    folder=$(mktemp -d)
    pom=$(cd "$folder" && jar xf "$jar" "$file" && cat "$file") || return 1
    rm -rf "$folder"
    case $pom in
    *'<parent>'*) warn "the pom in the jar names a parent, which is nowhere" && return 1 ;;
    *'<artifactId>jspecify</artifactId>'*) ;;
    *) warn "the pom in the jar names no dependency" && return 1 ;;
    esac
}

run() {
    local status=0 jdk module=bindings/java/fencelock
    local options="-Xcheck:jni -Djava.io.tmpdir=$TMPDIR"
    local stores=${JAVA_STORES:-memory,sqlite,redis,$FENCELOCK_TEST_ZK}
    rm -rf "$module"/target/surefire-reports "$module"/target/fencelock-*.jar
    step "native library of Java" scripts/java native
    maven package "-Dfencelock.test.jvm=$options" \
        "-Dfencelock.test.stores=$stores" || status=$?
    step "the jar's pom stands alone" pom_stands_alone "$module/target" || status=$?
    step "public surface of Java" scripts/java api || status=$?
    step "-Xcheck:jni has nothing to say" jni_is_clean "$module/target/surefire-reports" || status=$?
    jdk=$(newer_jdk)
    if [ -z "$jdk" ]; then
        say "virtual threads: left out, no JDK 21 or newer was found; NEWER_JDK=path names one"
        count 0 0 1
        return "$status"
    fi
    options+=" --enable-native-access=ALL-UNNAMED --illegal-native-access=deny"
    # Those two options are younger than 21.
    if ! "$jdk/bin/java" --illegal-native-access=deny -version >/dev/null 2>&1; then
        options="-Xcheck:jni -Djava.io.tmpdir=$TMPDIR"
    fi
    options+=" -Djdk.virtualThreadScheduler.parallelism=2"
    options+=" -Djdk.virtualThreadScheduler.maxPoolSize=2"
    maven surefire:test -pl fencelock "-Djvm=$jdk/bin/java" "-Dfencelock.test.jvm=$options" \
        "-Dfencelock.test.groups=virtual | platform" -Dfencelock.test.excluded= || status=$?
    step "-Xcheck:jni has nothing to say there" \
        jni_is_clean "$module/target/surefire-reports" || status=$?
    return "$status"
}
