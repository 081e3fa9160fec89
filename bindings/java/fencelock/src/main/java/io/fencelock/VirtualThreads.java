package io.fencelock;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import org.jspecify.annotations.Nullable;

/** Tells virtual threads from platform threads, also on a JDK that has no virtual ones. */
final class VirtualThreads {
    private static final @Nullable MethodHandle IS_VIRTUAL = find();

    private VirtualThreads() {}

    private static @Nullable MethodHandle find() {
        try {
            return MethodHandles.publicLookup()
                    .findVirtual(Thread.class, "isVirtual", MethodType.methodType(boolean.class));
        } catch (ReflectiveOperationException e) {
            return null;
        }
    }

    /** Whether the calling thread must not block in native code. */
    static boolean current() {
        if (IS_VIRTUAL == null) {
            return false;
        }
        try {
            return (boolean) IS_VIRTUAL.invokeExact(Thread.currentThread());
        } catch (Throwable e) {
            throw new AssertionError("Thread.isVirtual throws nothing", e);
        }
    }
}
