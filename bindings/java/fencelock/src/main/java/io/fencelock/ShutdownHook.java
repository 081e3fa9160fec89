package io.fencelock;

import java.lang.ref.WeakReference;
import java.time.Duration;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/**
 * Lets a client live on when the virtual machine shuts down, for as long as other hooks need it: a
 * server that finishes its requests goes on locking meanwhile.
 */
final class ShutdownHook {
    /** How often to look whether the client is idle, in nanoseconds. */
    private static final long LOOK = 5_000_000;

    /**
     * How long the hook waits.
     *
     * @param grace for what is held or waited for, while the client serves as ever
     * @param drain after that, for what is held, while nobody new is served
     */
    record Patience(Duration grace, Duration drain) {}

    private ShutdownHook() {}

    /** The hook, to be removed; null when the virtual machine is shutting down already. */
    static @Nullable Thread add(NativeClient client, Patience patience) {
        WeakReference<NativeClient> reference = new WeakReference<>(client);
        Thread hook =
                new Thread(
                        () -> {
                            NativeClient open = reference.get();
                            if (open != null && !becomesIdle(open, patience.grace)) {
                                drain(open, patience.drain);
                            }
                        },
                        "fencelock-shutdown");
        try {
            Runtime.getRuntime().addShutdownHook(hook);
        } catch (IllegalStateException e) {
            return null;
        }
        return hook;
    }

    /** An idle client is not closed: others may need it still, and there is nothing to lose. */
    private static boolean becomesIdle(NativeClient client, Duration grace) {
        long began = System.nanoTime();
        long limit = Spans.patience(grace);
        while (!client.isClosed() && !client.isIdle()) {
            if (System.nanoTime() - began >= limit) {
                return false;
            }
            LockSupport.parkNanos(client, LOOK);
        }
        return true;
    }

    private static void drain(NativeClient client, Duration drain) {
        try {
            client.close(drain);
        } catch (LockTimeoutException e) {
            System.getLogger("io.fencelock")
                    .log(System.Logger.Level.WARNING, "at the shutdown: " + e.getMessage());
        }
    }

    static void remove(@Nullable Thread hook) {
        if (hook != null) {
            try {
                Runtime.getRuntime().removeShutdownHook(hook);
            } catch (IllegalStateException e) {
                // It is running, or about to: then it does what was to be done.
            }
        }
    }
}
