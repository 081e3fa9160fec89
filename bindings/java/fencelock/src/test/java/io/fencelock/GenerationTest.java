package io.fencelock;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.reflect.Field;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

/** A handle is a number of 64 bits, which Java may see as one below zero: it is a handle still. */
class GenerationTest {
    @Test
    void aHandleBelowZeroIsAHandle() throws Exception {
        // The slots' generations cross the sign after four uses.
        String generation = Integer.toString(Integer.MAX_VALUE - 4);
        try (Jvm jvm =
                Jvm.start(
                        Map.of("FENCELOCK_TEST_GENERATION", generation),
                        List.of(),
                        Locks.class.getName())) {
            String said = jvm.end(0);
            assertTrue(said.contains("holds below zero: "), said);
        }
    }

    /** Takes and releases a lock in every way, over the end of the positive numbers. */
    static final class Locks {
        private Locks() {}

        public static void main(String[] arguments) throws Exception {
            int below = 0;
            for (int i = 0; i < 12; i++) {
                try (FencelockClient client = FencelockClient.connect("memory:signs");
                        FencelockClient other = FencelockClient.connect("memory:signs")) {
                    for (int j = 0; j < 3; j++) {
                        below += once(client.lock("x"), other.lock("x"));
                    }
                    check(client.list("", 10).size() == 1, "list");
                    check(client.inspect("x").isPresent(), "inspect");
                }
            }
            check(below > 0, "no handle was below zero");
            System.out.println("holds below zero: " + below);
        }

        private static int once(DistributedLock lock, DistributedLock theirs) throws Exception {
            int below = 0;
            check(lock.tryLock(), "tryLock");
            check(lock.isHeldByCurrentThread(), "held");
            lock.unlock();
            check(lock.tryLock(1, TimeUnit.SECONDS), "a timed tryLock");
            lock.unlock();
            lock.lock();
            lock.unlock();
            try (Hold hold = lock.tryAcquire()) {
                check(hold != null && hold.isValid(), "tryAcquire");
                below += handle(hold) < 0 ? 1 : 0;
                check(theirs.tryAcquire() == null && !theirs.tryLock(), "others are refused");
            }
            try (Hold hold = lock.tryAcquire(Duration.ofSeconds(1))) {
                check(hold != null && hold.isValid(), "a timed tryAcquire");
            }
            try (Hold hold = lock.acquireAsync().get(30, TimeUnit.SECONDS)) {
                check(hold.isValid(), "acquireAsync");
            }
            check(!lock.isLocked(), "all is released");
            return below;
        }

        private static long handle(Hold hold) throws ReflectiveOperationException {
            Field possession = NativeHold.class.getDeclaredField("possession");
            possession.setAccessible(true);
            return ((AtomicLong) possession.get(hold)).get();
        }

        private static void check(boolean holds, String what) {
            if (!holds) {
                throw new AssertionError(what);
            }
        }
    }
}
