package io.fencelock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.time.Duration;
import java.util.concurrent.ExecutionException;
import org.junit.jupiter.api.Test;

/** Errors, and what is refused. */
class ErrorsTest {
    @Test
    void everyCodeHasItsException() throws Exception {
        for (ErrorCode code : ErrorCode.values()) {
            RuntimeException exception = FencelockException.of(code.number(), "why");
            FencelockFailure failure = assertInstanceOf(FencelockFailure.class, exception);
            assertSame(code, failure.code());
            assertEquals(code.isRetryable(), failure.isRetryable());
            assertEquals("why", exception.getMessage());
            ByteArrayOutputStream bytes = new ByteArrayOutputStream();
            try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
                out.writeObject(exception);
            }
            try (ObjectInputStream in =
                    new ObjectInputStream(new ByteArrayInputStream(bytes.toByteArray()))) {
                assertSame(code, ((FencelockFailure) in.readObject()).code());
            }
        }
        assertSame(ErrorCode.INTERNAL, ErrorCode.of(77));
    }

    @Test
    void theCodesAreThoseOfTheLibrary() throws Exception {
        // The engine's own table: the source of all languages.
        String source =
                java.nio.file.Files.readString(
                        java.nio.file.Path.of(
                                System.getProperty("fencelock.test.root"),
                                "core/engine/src/error.rs"));
        for (ErrorCode code : ErrorCode.values()) {
            if (code != ErrorCode.INTERNAL) {
                StringBuilder name = new StringBuilder();
                for (String word : code.label().split("_")) {
                    name.append(Character.toUpperCase(word.charAt(0))).append(word.substring(1));
                }
                assertTrue(source.contains(name + " = " + code.number() + ","), name.toString());
                assertTrue(
                        source.contains("ErrorKind::" + name + " => \"" + code.label() + "\""),
                        name.toString());
            }
        }
        assertFalse(source.contains(" = 12,"), "a new kind needs its exception");
    }

    @Test
    void aBadUrlIsRefused() {
        InvalidArgumentException refused =
                assertThrows(
                        InvalidArgumentException.class,
                        () -> FencelockClient.connect("carrier-pigeon://roof"));
        assertTrue(refused.getMessage().contains("carrier-pigeon"), refused.getMessage());
        assertThrows(InvalidArgumentException.class, () -> FencelockClient.connect(""));
        assertThrows(InvalidArgumentException.class, () -> FencelockClient.connect("memory:\uD800"));
        assertThrows(NullPointerException.class, () -> FencelockClient.connect(null));
        assertThrows(
                InvalidArgumentException.class,
                () -> FencelockClient.connect("x://" + "y".repeat(5000)));
    }

    @Test
    void aStoreThatIsNotThereIsUnavailable() {
        ClientBuilder nobody =
                FencelockClient.builder("redis://127.0.0.1:1").connectTimeout(Duration.ofMillis(200));
        StoreUnavailableException failure =
                assertThrows(StoreUnavailableException.class, nobody::connect);
        assertTrue(failure.isRetryable());
    }

    @Test
    void badOptionsAreRefused() {
        ClientBuilder builder = FencelockClient.builder("memory:errors");
        assertThrows(InvalidArgumentException.class, () -> builder.lease(Duration.ZERO));
        assertThrows(InvalidArgumentException.class, () -> builder.maxWaiters(0));
        assertThrows(InvalidArgumentException.class, () -> builder.localRunGrants(-1));
        assertThrows(
                InvalidArgumentException.class,
                () -> FencelockClient.builder("memory:e").lease(Duration.ofNanos(5)).connect());
        assertThrows(
                InvalidArgumentException.class,
                () -> FencelockClient.builder("memory:e").label("x\ny").connect());
    }

    @Test
    void goodOptionsAreTaken() throws Exception {
        try (FencelockClient client =
                        FencelockClient.builder("memory:options")
                                .lease(Duration.ofSeconds(2))
                                .claim(Duration.ofSeconds(1))
                                .requestTimeout(Duration.ofSeconds(5))
                                .connectTimeout(Duration.ofSeconds(5))
                                .localRunTime(Duration.ofMillis(1))
                                .localRunGrants(0)
                                .maxWaiters(1)
                                .label("tests of Java")
                                .noShutdownHook()
                                .connect();
                Hold hold = client.lock("options").acquire()) {
            assertTrue(hold.remaining().compareTo(Duration.ofSeconds(2)) <= 0);
            LockInfo info = client.inspect("options").orElseThrow();
            assertEquals("tests of Java", info.holds().get(0).label());
            assertEquals(Duration.ofSeconds(2), info.holds().get(0).lease());
            client.lock("options").acquireAsync();
            assertThrows(
                    StoreUnavailableException.class, () -> client.lock("options").nonReentrant().acquire());
        }
    }

    @Test
    void badNamesLimitsAndLeasesAreRefused() {
        try (FencelockClient client = FencelockClient.connect("memory:names")) {
            assertThrows(InvalidArgumentException.class, () -> client.lock(""));
            assertThrows(InvalidArgumentException.class, () -> client.lock("a\0b"));
            assertThrows(InvalidArgumentException.class, () -> client.lock("x".repeat(513)));
            assertThrows(InvalidArgumentException.class, () -> client.lock("x".repeat(5000)));
            assertThrows(InvalidArgumentException.class, () -> client.lock("half \uDC00"));
            assertThrows(InvalidArgumentException.class, () -> client.inspect("half \uDC00"));
            assertThrows(InvalidArgumentException.class, () -> client.breakLock("half \uDC00", 1));
            assertThrows(InvalidArgumentException.class, () -> client.list("half \uDC00", 1));
            assertThrows(InvalidArgumentException.class, () -> client.attach("half \uDC00"));
            assertThrows(InvalidArgumentException.class, () -> Owner.of("half \uDC00"));
            assertThrows(NullPointerException.class, () -> client.lock(null));
            for (int limit : new int[] {0, -1, Integer.MIN_VALUE}) {
                assertThrows(InvalidArgumentException.class, () -> client.list("", limit));
                ExecutionException refused =
                        assertThrows(
                                ExecutionException.class, () -> client.listAsync("", limit).get());
                assertInstanceOf(InvalidArgumentException.class, refused.getCause());
            }
            DistributedLock named = client.lock("ключ/钥匙/\uD83D\uDD11");
            named.lock();
            assertTrue(client.list("ключ", 10).contains("ключ/钥匙/\uD83D\uDD11"));
            named.unlock();
            assertThrows(
                    InvalidArgumentException.class,
                    () -> named.withLease(Duration.ofMillis(1)).lock());
            assertThrows(
                    InvalidArgumentException.class, () -> named.withLease(Duration.ofDays(-1)));
            assertFalse(named.isLocked());
        }
    }
}
