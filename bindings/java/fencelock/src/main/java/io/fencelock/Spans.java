package io.fencelock;

import java.time.Duration;
import java.util.concurrent.TimeUnit;

/** Durations on their way to the native library, in nanoseconds. */
final class Spans {
    /** Far beyond anybody's patience, and far from an overflow. */
    private static final long MOST = Long.MAX_VALUE / 4;

    private Spans() {}

    /** How long to wait: not at all when that is zero or below. */
    static long patience(Duration limit) {
        return limit.isNegative() ? Native.TRY : clamped(limit);
    }

    /** As above. */
    static long patience(long time, TimeUnit unit) {
        return Math.min(MOST, Math.max(Native.TRY, unit.toNanos(time)));
    }

    /** A span that must be above zero, where 0 would mean 'the default'. */
    static long positive(String what, Duration span) {
        if (span.isNegative() || span.isZero()) {
            throw new InvalidArgumentException(what + " must be above zero, and is " + span);
        }
        return clamped(span);
    }

    private static long clamped(Duration span) {
        return span.getSeconds() >= MOST / 1_000_000_000 ? MOST : span.toNanos();
    }
}
