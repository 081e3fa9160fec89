package io.fencelock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;

import java.time.Duration;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** A store that takes requests and answers none. */
class SilentStoreTest {
    @Test
    void anInterruptEndsATry() throws Exception {
        try (RedisServer server = RedisServer.start();
                FencelockClient client =
                        FencelockClient.builder(server.url())
                                .requestTimeout(Duration.ofMinutes(5))
                                .connect()) {
            DistributedLock lock = client.lock("locked");
            DistributedLock other = client.lock("held");
            server.stop();
            interrupted(client, () -> lock.tryLock(0, TimeUnit.SECONDS));
            interrupted(client, () -> other.acquire(Duration.ZERO));
            server.resume();
            lock.lock();
            assertEquals(1, lock.getHoldCount());
            lock.unlock();
        }
    }

    private static void interrupted(FencelockClient client, Callable<?> attempt) {
        Threads.Run<?> run = Threads.start(attempt);
        Wait.forWaiters(client, 1);
        run.thread.interrupt();
        assertInstanceOf(InterruptedException.class, run.failure());
        Wait.forWaiters(client, 0);
    }
}
