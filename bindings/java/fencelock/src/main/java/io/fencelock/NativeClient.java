package io.fencelock;

import java.lang.ref.Cleaner;
import java.lang.ref.Reference;
import java.lang.ref.ReferenceQueue;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import org.jspecify.annotations.Nullable;

/** A client of the native library. */
final class NativeClient implements FencelockClient {
    static final Cleaner CLEANER = Cleaner.create();

    private final long handle;
    private final Executor executor;
    private final Cleaner.Cleanable cleanable;
    private final @Nullable Thread hook;
    private final ConcurrentHashMap<String, LockState.Anchor> locks = new ConcurrentHashMap<>();
    private final ConcurrentHashMap<String, LockState.Anchor> readers = new ConcurrentHashMap<>();
    private final ReferenceQueue<LockState> forgotten = new ReferenceQueue<>();

    NativeClient(long handle, Executor executor, ShutdownHook.@Nullable Patience atShutdown) {
        this.handle = handle;
        this.executor = executor;
        hook = atShutdown == null ? null : ShutdownHook.add(this, atShutdown);
        cleanable = CLEANER.register(this, new Sweep(handle, hook));
    }

    /** What is left to do when nobody can reach the client any more. */
    private record Sweep(long handle, @Nullable Thread hook) implements Runnable {
        @Override
        public void run() {
            ShutdownHook.remove(hook);
            Native.freeClient(handle);
        }
    }

    @Override
    public DistributedLock lock(String name) {
        return side(name, false);
    }

    @Override
    public DistributedReadWriteLock readWriteLock(String name) {
        // First the side that a store may not have.
        DistributedLock reader = side(name, true);
        return new NativeReadWriteLock(reader, side(name, false));
    }

    @Override
    public DistributedSemaphore semaphore(String name, int permits) {
        return new NativeSemaphore(this, name, permits);
    }

    private NativeLock side(String name, boolean reads) {
        Reference<? extends LockState> gone;
        while ((gone = forgotten.poll()) != null) {
            LockState.Anchor anchor = (LockState.Anchor) gone;
            locks.remove(anchor.name, anchor);
            readers.remove(anchor.name, anchor);
        }
        LockState.Anchor anchor = (reads ? readers : locks).get(name);
        LockState state = anchor == null ? null : anchor.get();
        if (state == null) {
            state = make(name, reads);
        }
        return new NativeLock(state);
    }

    private LockState make(String name, boolean reads) {
        LockState[] made = new LockState[1];
        (reads ? readers : locks).compute(
                name,
                (key, old) -> {
                    LockState other = old == null ? null : old.get();
                    made[0] =
                            other == null
                                    ? new LockState(this, name, reads, CLEANER, forgotten)
                                    : other;
                    return made[0].anchor();
                });
        return made[0];
    }

    @Override
    public Hold attach(String ticket) {
        try {
            byte[] text = Text.encode("the ticket", ticket);
            long hold;
            if (VirtualThreads.current()) {
                Parking parking = new Parking(this);
                long operation = Native.attachAsync(handle, text, parking);
                try {
                    hold = parking.await().result();
                } finally {
                    Native.freeOperation(operation);
                }
            } else {
                hold = Native.attach(handle, text);
            }
            return attached(hold);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    @Override
    public CompletableFuture<Hold> attachAsync(String ticket) {
        return Deferred.start(
                executor,
                (hold, number) -> attached(hold),
                Native::freeHold,
                completion ->
                        Native.attachAsync(
                                handle, Text.encode("the ticket", ticket), completion));
    }

    private Hold attached(long hold) {
        return new NativeHold(this, Text.decode(Native.holdName(hold)), hold, null);
    }

    @Override
    public Instant ping() {
        try {
            if (VirtualThreads.current()) {
                Parking parking = new Parking(this);
                Native.pingAsync(handle, parking);
                return instant(parking.await().number());
            }
            return instant(Native.ping(handle));
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    @Override
    public CompletableFuture<Instant> pingAsync() {
        return Deferred.start(
                executor,
                (result, number) -> instant(number),
                completion -> Native.pingAsync(handle, completion));
    }

    private static Instant instant(long nanos) {
        return Instant.EPOCH.plusNanos(nanos);
    }

    @Override
    public Optional<LockInfo> inspect(String name) {
        try {
            byte[] text = Text.encode("the name of a lock", name);
            if (VirtualThreads.current()) {
                Parking parking = new Parking(this);
                Native.inspectAsync(handle, text, parking);
                return info(parking.await().result());
            }
            return info(Native.inspect(handle, text));
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    @Override
    public CompletableFuture<Optional<LockInfo>> inspectAsync(String name) {
        return Deferred.start(
                executor,
                (result, number) -> info(result),
                Native::freeInspection,
                completion -> {
                    Native.inspectAsync(
                            handle, Text.encode("the name of a lock", name), completion);
                    return 0;
                });
    }

    private static Optional<LockInfo> info(long inspection) {
        return inspection == 0 ? Optional.empty() : Optional.of(LockInfo.take(inspection));
    }

    @Override
    public List<String> list(String prefix, int limit) {
        try {
            byte[] text = Text.encode("the prefix", prefix);
            some(limit);
            if (VirtualThreads.current()) {
                Parking parking = new Parking(this);
                Native.listAsync(handle, text, limit, parking);
                return names(parking.await().result());
            }
            return names(Native.list(handle, text, limit));
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    @Override
    public CompletableFuture<List<String>> listAsync(String prefix, int limit) {
        return Deferred.start(
                executor,
                (result, number) -> names(result),
                Native::freeNames,
                completion -> {
                    some(limit);
                    Native.listAsync(handle, Text.encode("the prefix", prefix), limit, completion);
                    return 0;
                });
    }

    private static void some(int limit) {
        if (limit < 1) {
            throw new InvalidArgumentException(
                    "the limit of a list must be 1 or more, and is " + limit);
        }
    }

    private static List<String> names(long handle) {
        List<String> names = new ArrayList<>();
        for (byte[] name : Native.takeNames(handle)) {
            names.add(Text.decode(name));
        }
        return List.copyOf(names);
    }

    @Override
    public Broken breakLock(String name, long token) {
        try {
            byte[] text = Text.encode("the name of a lock", name);
            if (VirtualThreads.current()) {
                Parking parking = new Parking(this);
                Native.breakLockAsync(handle, text, Broken.token(token), parking);
                return Broken.of(parking.await().number());
            }
            return Broken.of(Native.breakLock(handle, text, Broken.token(token)));
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    @Override
    public CompletableFuture<Broken> breakLockAsync(String name, long token) {
        return Deferred.start(
                executor,
                (result, number) -> Broken.of(number),
                completion ->
                        Native.breakLockAsync(
                                handle,
                                Text.encode("the name of a lock", name),
                                Broken.token(token),
                                completion));
    }

    @Override
    public Broken breakHold(String name, long token, String hold) {
        try {
            byte[] text = Text.encode("the name of a lock", name);
            byte[] id = Text.encode("the id of a hold", hold);
            if (VirtualThreads.current()) {
                Parking parking = new Parking(this);
                Native.breakHoldAsync(handle, text, Broken.token(token), id, parking);
                return Broken.of(parking.await().number());
            }
            return Broken.of(Native.breakHold(handle, text, Broken.token(token), id));
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    @Override
    public CompletableFuture<Broken> breakHoldAsync(String name, long token, String hold) {
        return Deferred.start(
                executor,
                (result, number) -> Broken.of(number),
                completion ->
                        Native.breakHoldAsync(
                                handle,
                                Text.encode("the name of a lock", name),
                                Broken.token(token),
                                Text.encode("the id of a hold", hold),
                                completion));
    }

    @Override
    public String id() {
        return Text.decode(Native.clientId(handle));
    }

    @Override
    public String metrics() {
        return Text.decode(Native.metrics(handle));
    }

    @Override
    public Capabilities capabilities() {
        int bits = Native.capabilities(handle);
        return new Capabilities(
                Text.decode(Native.storeName(handle)),
                (bits & 1) != 0,
                (bits & 2) != 0,
                (bits & 4) != 0,
                (bits & 8) != 0,
                (bits & 16) != 0,
                (bits & 32) != 0,
                (bits & 64) != 0,
                (bits & 128) != 0);
    }

    @Override
    public boolean isClosed() {
        return Native.isClosed(handle);
    }

    @Override
    public void close(Duration drain) {
        ShutdownHook.remove(hook);
        try {
            if (VirtualThreads.current()) {
                Parking parking = new Parking(this);
                Native.closeAsync(handle, Spans.patience(drain), parking);
                parking.await().number();
            } else {
                Native.close(handle, Spans.patience(drain));
            }
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    @Override
    public CompletableFuture<@Nullable Void> closeAsync(Duration drain) {
        ShutdownHook.remove(hook);
        return Deferred.start(
                executor,
                (result, number) -> null,
                completion -> Native.closeAsync(handle, Spans.patience(drain), completion));
    }

    /** Whether nothing is held, waited for or being released. */
    boolean isIdle() {
        return Native.isIdle(handle);
    }

    long handle() {
        return handle;
    }

    Executor executor() {
        return executor;
    }

    Cleaner cleaner() {
        return CLEANER;
    }

    /** Nobody wants this client. */
    void abandon() {
        cleanable.clean();
    }

    @Override
    public String toString() {
        return "FencelockClient[" + capabilities().store() + (isClosed() ? ", closed]" : "]");
    }
}
