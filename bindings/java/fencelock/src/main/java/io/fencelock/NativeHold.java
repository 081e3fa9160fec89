package io.fencelock;

import java.lang.ref.Cleaner;
import java.lang.ref.Reference;
import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongConsumer;
import java.util.function.LongFunction;
import org.jspecify.annotations.Nullable;

/** A hold of the native library. */
sealed class NativeHold implements Hold permits NativePermit {
    private final NativeClient client;
    private final String name;

    /** What it is held of, in a message. */
    private final String what;

    private volatile long token;

    /** Set before the first change of the mode: then the token is the native side's to say. */
    private volatile boolean converted;

    private final Possession possession;
    private final Cleaner.Cleanable cleanable;
    private final @Nullable Interrupter interrupter;
    private @Nullable CompletableFuture<LossReason> lost;
    private @Nullable CompletableFuture<@Nullable Void> wanted;

    NativeHold(NativeClient client, String name, long handle, @Nullable Interrupter interrupter) {
        this(client, name, "the lock", handle, interrupter);
    }

    NativeHold(
            NativeClient client,
            String name,
            String what,
            long handle,
            @Nullable Interrupter interrupter) {
        this.client = client;
        this.name = name;
        this.what = what + " \"" + name + "\"";
        this.interrupter = interrupter;
        token = Native.token(handle);
        possession = new Possession(this.what, handle);
        cleanable = client.cleaner().register(this, possession);
    }

    /** The native hold, until it is released; and what is left to do when that is forgotten. */
    private static final class Possession extends AtomicLong implements Runnable {
        private static final long serialVersionUID = 1L;

        private final String what;

        Possession(String what, long handle) {
            super(handle);
            this.what = what;
        }

        @Override
        public void run() {
            long handle = getAndSet(0);
            if (handle != 0) {
                System.getLogger("io.fencelock")
                        .log(
                                System.Logger.Level.WARNING,
                                "a hold of {0} was forgotten: it is released now;"
                                        + " close holds, best by try-with-resources",
                                what);
                Native.freeHold(handle);
            }
        }
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    public long token() {
        if (converted) {
            long handle = possession.get();
            try {
                if (handle != 0) {
                    token = Native.token(handle);
                }
            } catch (InvalidArgumentException e) {
                // Released meanwhile, by who has read it last.
            } finally {
                Reference.reachabilityFence(this);
            }
        }
        return token;
    }

    @Override
    public boolean isValid() {
        try {
            return Native.isValid(possession.get());
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    @Override
    public long check() {
        return ask(Native::check);
    }

    @Override
    public Duration remaining() {
        try {
            return Duration.ofNanos(Native.remaining(possession.get()));
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    @Override
    public boolean isReentry() {
        return ask(Native::isReentry);
    }

    @Override
    public Abandoned previousAbandoned() {
        return ask(handle -> Abandoned.of(Native.previousAbandoned(handle)));
    }

    @Override
    public boolean isWanted() {
        try {
            return Native.isWanted(possession.get());
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    @Override
    public synchronized CompletableFuture<LossReason> lost() {
        if (lost == null) {
            CompletableFuture<LossReason> told = new CompletableFuture<>();
            // The native side keeps the notice, and so whatever that refers to: not this hold.
            Executor executor = client.executor();
            Notice notice =
                    reason -> Tasks.run(executor, () -> told.complete(LossReason.of(reason)));
            watch(handle -> Native.onLost(handle, notice));
            lost = told;
        }
        return lost.copy();
    }

    @Override
    public synchronized CompletableFuture<@Nullable Void> wanted() {
        if (wanted == null) {
            CompletableFuture<@Nullable Void> told = new CompletableFuture<>();
            Executor executor = client.executor();
            Notice notice = reason -> Tasks.run(executor, () -> told.complete(null));
            watch(handle -> Native.onWanted(handle, notice));
            wanted = told;
        }
        return wanted.copy();
    }

    @Override
    public void extend(Duration lease) {
        long span = Spans.positive("the lease", lease);
        ask(
                handle -> {
                    if (VirtualThreads.current()) {
                        Parking parking = new Parking(this);
                        Native.extendAsync(handle, span, parking);
                        return parking.await().number();
                    }
                    Native.extend(handle, span);
                    return 0L;
                });
    }

    @Override
    public CompletableFuture<@Nullable Void> extendAsync(Duration lease) {
        return Deferred.start(
                client.executor(),
                (result, number) -> null,
                completion ->
                        ask(
                                handle -> {
                                    long span = Spans.positive("the lease", lease);
                                    Native.extendAsync(handle, span, completion);
                                    return 0L;
                                }));
    }

    @Override
    public LockMode mode() {
        return ask(handle -> LockMode.of(Native.mode(handle)));
    }

    @Override
    public void downgrade() {
        converted = true;
        ask(
                handle -> {
                    if (VirtualThreads.current()) {
                        Parking parking = new Parking(this);
                        Native.downgradeAsync(handle, parking);
                        return parking.await().number();
                    }
                    Native.downgrade(handle);
                    return 0L;
                });
    }

    @Override
    public CompletableFuture<@Nullable Void> downgradeAsync() {
        converted = true;
        return Deferred.start(
                client.executor(),
                (result, number) -> null,
                completion ->
                        ask(
                                handle -> {
                                    Native.downgradeAsync(handle, completion);
                                    return 0L;
                                }));
    }

    @Override
    public boolean tryUpgrade() {
        converted = true;
        return ask(
                handle -> {
                    if (VirtualThreads.current()) {
                        Parking parking = new Parking(this);
                        Native.tryUpgradeAsync(handle, parking);
                        return parking.await().succeeded(Completion.CONTENDED);
                    }
                    return Native.tryUpgrade(handle);
                });
    }

    @Override
    public CompletableFuture<Boolean> tryUpgradeAsync() {
        converted = true;
        CompletableFuture<@Nullable Boolean> done =
                Deferred.start(
                        client.executor(),
                        Completion.CONTENDED,
                        (result, number) -> true,
                        result -> {},
                        completion ->
                                ask(
                                        handle -> {
                                            Native.tryUpgradeAsync(handle, completion);
                                            return 0L;
                                        }));
        return done.thenApply(Objects::nonNull);
    }

    @Override
    public String ticket() {
        return ask(handle -> Text.decode(Native.ticket(handle)));
    }

    @Override
    public void release() {
        release(takeLive(), interrupter, this);
    }

    /** Releases a native hold. */
    static void release(long handle, @Nullable Interrupter interrupter, Object blocker) {
        if (interrupter != null) {
            interrupter.end();
        }
        if (VirtualThreads.current()) {
            Parking parking = new Parking(blocker);
            Native.releaseAsync(handle, parking);
            parking.await().number();
        } else {
            Native.release(handle);
        }
    }

    @Override
    public CompletableFuture<@Nullable Void> releaseAsync() {
        return Deferred.start(
                client.executor(),
                (result, number) -> null,
                completion -> {
                    long handle = takeLive();
                    if (interrupter != null) {
                        interrupter.end();
                    }
                    Native.releaseAsync(handle, completion);
                });
    }

    @Override
    public void close() {
        long handle = take();
        if (handle != 0) {
            release(handle, interrupter, this);
        }
    }

    /** Releases in the background. */
    void abandon() {
        long handle = take();
        if (handle != 0) {
            Native.freeHold(handle);
        }
    }

    private long take() {
        token();
        long handle = possession.getAndSet(0);
        cleanable.clean();
        return handle;
    }

    private long takeLive() {
        long handle = take();
        if (handle == 0) {
            throw released();
        }
        return handle;
    }

    /** Calls the native side for a hold that is not released. */
    private <T> T ask(LongFunction<T> call) {
        try {
            long handle = possession.get();
            if (handle == 0) {
                throw released();
            }
            return call.apply(handle);
        } catch (InvalidArgumentException e) {
            // Released by another thread meanwhile: then the handle is refused.
            throw possession.get() == 0 ? released() : e;
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /** Begins to watch; there is nothing to watch in a hold that is released. */
    private void watch(LongConsumer begin) {
        try {
            ask(
                    handle -> {
                        begin.accept(handle);
                        return 0L;
                    });
        } catch (NotHeldException e) {
            // As the future says: it never completes.
        }
    }

    private NotHeldException released() {
        return new NotHeldException(
                "this hold of " + what + " was released already: acquire it again");
    }

    @Override
    public String toString() {
        return "Hold[" + name + ", token " + token + (isValid() ? "]" : ", ended]");
    }
}
