package io.fencelock;

import java.nio.channels.ClosedByInterruptException;
import java.nio.channels.spi.AbstractInterruptibleChannel;

/**
 * Lets an interrupt end a wait in native code. The JDK's hook for that is the base class of
 * channels: an interrupt of a thread between {@code begin} and {@code end} closes the channel, and
 * here that cancels the wait.
 */
final class Interruption extends AbstractInterruptibleChannel {
    private final long cancel = Native.newCancel();

    /** A wait in native code that obeys the cancel token that it is given. */
    interface Wait {
        long run(long cancel);
    }

    /** Runs {@code wait}; an interrupt, also an earlier one, cancels it and is not cleared. */
    static long during(Wait wait) {
        Interruption interruption = new Interruption();
        try {
            interruption.begin();
            try {
                return wait.run(interruption.cancel);
            } finally {
                interruption.leave();
            }
        } finally {
            Native.freeCancel(interruption.cancel);
        }
    }

    private void leave() {
        try {
            end(true);
        } catch (ClosedByInterruptException e) {
            // The interrupt status says it, too.
        } catch (java.nio.channels.AsynchronousCloseException e) {
            throw new AssertionError("thrown for an incomplete call only", e);
        }
    }

    /** Called by the thread that interrupts. */
    @Override
    protected void implCloseChannel() {
        Native.cancel(cancel);
    }
}
