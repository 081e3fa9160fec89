package io.fencelock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** What the end of a virtual machine does to its holds. */
class ShutdownTest extends StoreTest {
    /** Runs {@code Child} until it holds the lock and ends. */
    private void run(String way) throws Exception {
        assumeTrue(store.processes(), "a store for several processes");
        // So that its predecessor is known.
        lock.lock();
        lock.unlock();
        try (Jvm child =
                Jvm.start(List.of(), Child.class.getName(), way, store.url(), lock.name())) {
            child.expect("held");
            child.end(3);
        }
    }

    @Test
    void theHookWaitsForTheRelease() throws Exception {
        run("release");
        try (Hold hold = lock.acquire(Duration.ofSeconds(20))) {
            if (client.capabilities().abandoned()) {
                assertEquals(Abandoned.NO, hold.previousAbandoned());
            }
        }
    }

    @Test
    void theHookGivesUpAndTheLockIsFree() throws Exception {
        run("keep");
        // Long before the lease of ten minutes is over.
        try (Hold hold = lock.acquire(Duration.ofSeconds(20))) {
            if (client.capabilities().abandoned()) {
                assertEquals(Abandoned.YES, hold.previousAbandoned());
            }
        }
    }

    @Test
    void withoutTheHookTheLeaseGoesOn() throws Exception {
        assumeTrue(client.capabilities().leases(), "a hold that outlives its client");
        run("leave");
        assertFalse(lock.tryLock(50, TimeUnit.MILLISECONDS));
        assertTrue(lock.isLocked());
    }

    /** The other virtual machine: holds the lock and exits. */
    static final class Child {
        private Child() {}

        public static void main(String[] args) throws Exception {
            ClientBuilder builder =
                    FencelockClient.builder(args[1])
                            .lease(Duration.ofMinutes(10))
                            .shutdownDrain(
                                    args[0].equals("keep")
                                            ? Duration.ofMillis(100)
                                            : Duration.ofSeconds(30));
            if (args[0].equals("leave")) {
                builder.noShutdownHook();
            }
            FencelockClient client = builder.connect();
            DistributedLock lock = client.lock(args[2]);
            CountDownLatch held = new CountDownLatch(1);
            Thread worker =
                    new Thread(
                            () -> {
                                lock.lock();
                                System.out.println("held");
                                held.countDown();
                                if (args[0].equals("release")) {
                                    awaitDrain(client);
                                    lock.unlock();
                                }
                            });
            worker.start();
            held.await();
            System.exit(3);
        }

        private static void awaitDrain(FencelockClient client) {
            try {
                for (; ; ) {
                    Hold other = client.lock("java/other").tryAcquire();
                    if (other != null) {
                        other.close();
                    }
                }
            } catch (ClientClosedException e) {
                // The hook drains, and refuses new holds.
            }
        }
    }
}
