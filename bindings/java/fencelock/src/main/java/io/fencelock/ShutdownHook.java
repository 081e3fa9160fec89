package io.fencelock;

import java.lang.ref.WeakReference;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/** Drains a client when the virtual machine shuts down. */
final class ShutdownHook {
    private ShutdownHook() {}

    /** The hook, to be removed; null when the virtual machine is shutting down already. */
    static @Nullable Thread add(FencelockClient client, Duration drain) {
        WeakReference<FencelockClient> reference = new WeakReference<>(client);
        Thread hook =
                new Thread(
                        () -> {
                            FencelockClient open = reference.get();
                            if (open != null) {
                                drain(open, drain);
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

    private static void drain(FencelockClient client, Duration drain) {
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
