/**
 * Fencelock: a distributed lock that is a {@link java.util.concurrent.locks.Lock}.
 *
 * <p>The module calls native code. Newer JDKs want that declared when the program is started:
 * {@code --enable-native-access=io.fencelock} when the jar is on the module path,
 * {@code --enable-native-access=ALL-UNNAMED} when it is on the class path.
 */
module io.fencelock {
    // Annotations only: who wants to see them brings it along.
    requires static org.jspecify;

    exports io.fencelock;
}
