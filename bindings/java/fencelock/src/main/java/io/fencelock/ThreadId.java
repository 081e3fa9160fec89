package io.fencelock;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import org.jspecify.annotations.Nullable;

/**
 * Which thread is calling, by what a subclass of {@link Thread} cannot override, as it can {@code
 * getId}, {@code equals} and {@code hashCode}: the final {@code threadId} of JDK 19 and newer, and a
 * number of our own before.
 */
final class ThreadId {
    private static final @Nullable MethodHandle THREAD_ID = find();

    /** Boxed, so that a thread keeps nothing of this class's loader. */
    private static final ThreadLocal<Long> OWN = ThreadLocal.withInitial(Owner::next);

    private ThreadId() {}

    private static @Nullable MethodHandle find() {
        try {
            return MethodHandles.publicLookup()
                    .findVirtual(Thread.class, "threadId", MethodType.methodType(long.class));
        } catch (ReflectiveOperationException e) {
            return null;
        }
    }

    /** Never that of an {@link Owner}, and below 2^62. */
    static long current() {
        if (THREAD_ID == null) {
            return OWN.get();
        }
        try {
            return (long) THREAD_ID.invokeExact(Thread.currentThread());
        } catch (Throwable e) {
            throw new AssertionError("Thread.threadId throws nothing", e);
        }
    }
}
