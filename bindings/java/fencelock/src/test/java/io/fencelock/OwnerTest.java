package io.fencelock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import org.junit.jupiter.api.Test;

/** Owners that are not threads. */
class OwnerTest extends StoreTest {
    @Test
    void whoeverShowsAnOwnerReenters() {
        for (Owner owner : new Owner[] {Owner.of("trace-8f3a"), Owner.create()}) {
            DistributedLock owned = lock.withOwner(owner);
            owned.lock();
            long token = owned.token();
            assertFalse(lock.isHeldByCurrentThread());
            assertFalse(lock.tryLock());
            Threads.start(
                            () -> {
                                assertTrue(owned.isHeldByCurrentThread());
                                assertTrue(client.lock(lock.name()).withOwner(owner).tryLock());
                                assertEquals(token, owned.token());
                                assertEquals(2, owned.getHoldCount());
                                owned.unlock();
                                return null;
                            })
                    .join();
            assertEquals(1, owned.getHoldCount());
            // Any thread that shows the owner may unlock.
            Threads.start(
                            () -> {
                                owned.unlock();
                                return null;
                            })
                    .join();
            NotHeldException no = assertThrows(NotHeldException.class, owned::unlock);
            assertTrue(no.getMessage().contains(owner.toString()), no.getMessage());
        }
    }

    @Test
    void anotherOwnerWaits() throws Exception {
        try (Hold hold = lock.withOwner(Owner.create()).acquire()) {
            assertNull(lock.withOwner(Owner.create()).tryAcquire());
            assertNull(lock.withOwner(Owner.of("stranger")).tryAcquire());
            assertNull(lock.tryAcquire());
            assertTrue(hold.isValid());
        }
    }

    @Test
    void anExplicitOwnerReentersFromAnotherClient() throws Exception {
        assumeTrue(client.capabilities().owners(), "owners across clients");
        Owner owner = Owner.of("Überweisung-7 \uD83D\uDD12");
        try (FencelockClient other = another();
                Hold here = lock.withOwner(owner).acquire();
                Hold there = other.lock(lock.name()).withOwner(owner).tryAcquire()) {
            assertEquals(here.token(), there.token());
            LockInfo info = client.inspect(lock.name()).orElseThrow();
            assertEquals(owner.toString(), info.owner());
            assertEquals(2, info.holds().size());
            assertEquals(here.token(), info.token());
        }
    }

    @Test
    void anAsyncOwnerReentersAnAsyncStrangerDoesNot() throws Exception {
        DistributedLock owned = lock.withOwner(Owner.create());
        Hold first = owned.acquireAsync().get();
        Hold second = owned.tryAcquireAsync().get();
        assertEquals(first.token(), second.token());
        // Without an owner an asynchronous acquire belongs to nobody, the thread included.
        assertNull(lock.tryAcquireAsync().get());
        first.release();
        second.release();
        Hold alone = lock.acquireAsync().get();
        assertFalse(lock.isHeldByCurrentThread());
        assertFalse(lock.tryLock());
        alone.release();
    }

    @Test
    void ownersAreEqualByTheirText() {
        assertEquals(Owner.of("a"), Owner.of("a"));
        assertEquals(Owner.of("a").hashCode(), Owner.of("a").hashCode());
        assertNotEquals(Owner.of("a"), Owner.of("b"));
        assertNotEquals(Owner.create(), Owner.create());
        assertThrows(InvalidArgumentException.class, () -> Owner.of("half \uD83D of a pair"));
        assertThrows(
                InvalidArgumentException.class, () -> lock.withOwner(Owner.of("")).tryLock());
        assertThrows(NullPointerException.class, () -> Owner.of(null));
    }
}
