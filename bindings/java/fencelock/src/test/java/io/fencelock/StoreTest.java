package io.fencelock;

import java.util.UUID;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.MethodSource;

/** Tests that run on every store, each with a client and a lock of its own. */
@ParameterizedClass(name = "{0}")
@MethodSource("io.fencelock.Store#all")
abstract class StoreTest {
    @Parameter Store store;

    FencelockClient client;
    DistributedLock lock;

    @BeforeEach
    void connect() {
        client = FencelockClient.connect(store.url());
        lock = client.lock(name("lock"));
    }

    @AfterEach
    void close() {
        client.close();
    }

    static String name(String kind) {
        return "java/" + kind + "/" + UUID.randomUUID();
    }

    /** The same lock through a client of its own, which stays open until the test ends. */
    FencelockClient another() {
        return FencelockClient.connect(store.url());
    }
}
