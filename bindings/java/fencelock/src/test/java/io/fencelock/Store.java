package io.fencelock;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.util.Arrays;
import java.util.UUID;
import java.util.stream.Stream;

/**
 * A store that the tests run on: {@code memory} and {@code sqlite}, {@code redis} with a server of
 * our own, or the URL of any other. The property {@code fencelock.test.stores} lists them.
 */
record Store(String url, boolean processes) {
    static Stream<Store> all() {
        return Arrays.stream(
                        System.getProperty("fencelock.test.stores", "memory,sqlite,redis")
                                .split(","))
                .map(String::trim)
                .map(Store::named);
    }

    private static Store named(String name) {
        return switch (name) {
            case "memory" -> new Store("memory:" + UUID.randomUUID(), false);
            case "sqlite" -> new Store("sqlite:" + file(), true);
            case "redis" -> new Store(RedisServer.shared().url(), true);
            default -> new Store(name, !name.startsWith("memory:"));
        };
    }

    private static String file() {
        try {
            return Files.createTempDirectory("fl-sqlite").resolve("locks.db").toString();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    @Override
    public String toString() {
        return url.substring(0, url.indexOf(':'));
    }
}
