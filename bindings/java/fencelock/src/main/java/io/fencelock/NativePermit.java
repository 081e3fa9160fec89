package io.fencelock;

import org.jspecify.annotations.Nullable;

/** Permits of the native library. */
final class NativePermit extends NativeHold implements Permit {
    private final int permits;

    NativePermit(
            NativeClient client,
            String name,
            int permits,
            long handle,
            @Nullable Interrupter interrupter) {
        super(client, name, "the semaphore", handle, interrupter);
        this.permits = permits;
    }

    @Override
    public int permits() {
        return permits;
    }

    @Override
    public String toString() {
        return "Permit["
                + name()
                + ", "
                + permits
                + ", token "
                + token()
                + (isValid() ? "]" : ", ended]");
    }
}
