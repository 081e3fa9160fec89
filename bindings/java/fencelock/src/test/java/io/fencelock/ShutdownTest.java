package io.fencelock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Test;

/** What the end of a virtual machine does to its holds. */
class ShutdownTest extends StoreTest {
    /** Runs {@code Child} until it holds the lock and ends. */
    private String run(String way) throws Exception {
        assumeTrue(store.processes(), "a store for several processes");
        // So that its predecessor is known.
        lock.lock();
        lock.unlock();
        try (Jvm child =
                Jvm.start(List.of(), Child.class.getName(), way, store.url(), lock.name())) {
            child.expect("held");
            return child.end(3);
        }
    }

    /** Runs a {@code Child} whose own hook locks during the shutdown. */
    private void served(String way) throws Exception {
        String said = run(way);
        assertTrue(said.contains("served\n"), said);
    }

    @Test
    void theHookWaitsForTheRelease() throws Exception {
        served("release");
        try (Hold hold = lock.acquire(Duration.ofSeconds(20))) {
            if (client.capabilities().abandoned()) {
                assertEquals(Abandoned.NO, hold.previousAbandoned());
            }
        }
    }

    /** As a server's that finishes its requests: nothing is held at the signal, but later. */
    @Test
    void anotherHookIsServedByAClientThatWasIdle() throws Exception {
        served("later");
        assertFalse(lock.isLocked());
    }

    @Test
    void anotherHookIsServedWhileSomethingIsHeld() throws Exception {
        served("release");
        assertFalse(lock.isLocked());
    }

    @Test
    void afterTheGraceNobodyNewIsServed() throws Exception {
        String said = run("refused");
        assertTrue(said.contains("refused\n"), said);
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
        private final String way;
        private final FencelockClient client;
        private final DistributedLock lock;
        private final DistributedLock other;
        private final CountDownLatch held = new CountDownLatch(1);
        private final CountDownLatch hooked = new CountDownLatch(1);

        private Child(String way, FencelockClient client, String name) {
            this.way = way;
            this.client = client;
            lock = client.lock(name);
            // Not below the first: a ZooKeeper lock's name is no other's beginning.
            other = client.lock(name + "-other");
        }

        public static void main(String[] args) throws Exception {
            ClientBuilder builder =
                    FencelockClient.builder(args[1]).lease(Duration.ofMinutes(10));
            switch (args[0]) {
                case "keep" ->
                        builder.shutdownGrace(Duration.ofMillis(100))
                                .shutdownDrain(Duration.ofMillis(100));
                case "refused" ->
                        builder.shutdownGrace(Duration.ZERO).shutdownDrain(Duration.ofSeconds(30));
                case "leave" -> builder.noShutdownHook();
                default -> builder.shutdownGrace(Duration.ofSeconds(30));
            }
            new Child(args[0], builder.connect(), args[2]).run();
        }

        private void run() throws Exception {
            Runtime.getRuntime().addShutdownHook(new Thread(this::anotherHook));
            Thread worker = new Thread(this::work);
            worker.start();
            held.await();
            if (way.equals("later")) {
                worker.join();
            }
            System.exit(3);
        }

        private void work() {
            lock.lock();
            System.out.println("held");
            held.countDown();
            switch (way) {
                case "later" -> lock.unlock();
                case "release" -> {
                    await(hooked);
                    lock.unlock();
                }
                default -> {}
            }
        }

        private void anotherHook() {
            switch (way) {
                // Idle in between, again and again.
                case "release", "later" -> {
                    for (int i = 0; i < 100; i++) {
                        other.lock();
                        other.unlock();
                        LockSupport.parkNanos(1_000_000);
                    }
                    System.out.println("served");
                }
                case "refused" -> {
                    Wait.until("nobody new is served", this::refused);
                    System.out.println("refused");
                    client.close();
                }
                default -> {}
            }
            hooked.countDown();
        }

        private boolean refused() {
            try {
                if (other.tryLock()) {
                    other.unlock();
                }
                return false;
            } catch (ClientClosedException e) {
                return true;
            }
        }

        private static void await(CountDownLatch latch) {
            try {
                latch.await();
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        }
    }
}
