package io.fencelock;

import java.lang.ref.Reference;
import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** A semaphore with the options of its acquisitions. */
final class NativeSemaphore implements DistributedSemaphore {
    private final Source source;
    private final long lease;
    private final long maxHold;
    private final boolean interrupts;

    NativeSemaphore(NativeClient client, String name, int permits) {
        this(new Source(client, name, atLeastOne(permits)), 0, 0, false);
    }

    private NativeSemaphore(Source source, long lease, long maxHold, boolean interrupts) {
        this.source = source;
        this.lease = lease;
        this.maxHold = maxHold;
        this.interrupts = interrupts;
    }

    /** What has the native handle, for all objects that come of one. */
    private static final class Source {
        final NativeClient client;
        final String name;
        final int permits;
        final boolean adopts;
        final long handle;

        Source(NativeClient client, String name, int permits) {
            this(client, name, permits, false, made(client, name, permits));
        }

        private Source(
                NativeClient client, String name, int permits, boolean adopts, long handle) {
            this.client = client;
            this.name = name;
            this.permits = permits;
            this.adopts = adopts;
            this.handle = handle;
            client.cleaner().register(this, () -> Native.freeSemaphore(handle));
        }

        private static long made(NativeClient client, String name, int permits) {
            byte[] text = Text.encode("the name of a semaphore", name);
            return Native.semaphore(client.handle(), text, permits);
        }

        Source adopting() {
            try {
                return new Source(client, name, permits, true, Native.adopting(handle));
            } finally {
                Reference.reachabilityFence(this);
            }
        }
    }

    private static int atLeastOne(int permits) {
        if (permits < 1) {
            throw new InvalidArgumentException(
                    "a number of permits must be 1 or more, and is " + permits);
        }
        return permits;
    }

    @Override
    public String name() {
        return source.name;
    }

    @Override
    public int permits() {
        return source.permits;
    }

    // ---- options

    @Override
    public DistributedSemaphore withLease(Duration lease) {
        long span = Spans.positive("the lease", lease);
        return new NativeSemaphore(source, span, maxHold, interrupts);
    }

    @Override
    public DistributedSemaphore withMaxHold(Duration ceiling) {
        long span = Spans.positive("maxHold", ceiling);
        return new NativeSemaphore(source, lease, span, interrupts);
    }

    @Override
    public DistributedSemaphore withInterruptOnLoss() {
        return new NativeSemaphore(source, lease, maxHold, true);
    }

    @Override
    public DistributedSemaphore adopting() {
        Source adopting = source.adopts ? source : source.adopting();
        return new NativeSemaphore(adopting, lease, maxHold, interrupts);
    }

    // ---- as of java.util.concurrent.Semaphore

    @Override
    public Permit acquire(int permits) throws InterruptedException {
        Taking taking = new Taking(permits);
        Acquirer.checkInterrupt();
        return taking.hold(taking.waitInterruptibly(Native.FOREVER, 0), interrupts);
    }

    @Override
    public Permit acquireUninterruptibly(int permits) {
        Taking taking = new Taking(permits);
        return taking.hold(taking.waitFor(Native.FOREVER, 0), interrupts);
    }

    @Override
    public Permit acquire(int permits, Duration limit) throws InterruptedException {
        Taking taking = new Taking(permits);
        Acquirer.checkInterrupt();
        return taking.hold(taking.waitInterruptibly(Spans.patience(limit), 0), interrupts);
    }

    @Override
    public @Nullable Permit tryAcquire(int permits) {
        Taking taking = new Taking(permits);
        long hold = taking.waitFor(Native.TRY, Completion.CONTENDED);
        return hold == 0 ? null : taking.hold(hold, interrupts);
    }

    @Override
    public @Nullable Permit tryAcquire(int permits, long time, TimeUnit unit)
            throws InterruptedException {
        return tryFor(permits, Spans.patience(time, unit));
    }

    @Override
    public @Nullable Permit tryAcquire(int permits, Duration limit) throws InterruptedException {
        return tryFor(permits, Spans.patience(limit));
    }

    private @Nullable Permit tryFor(int permits, long patience) throws InterruptedException {
        Taking taking = new Taking(permits);
        Acquirer.checkInterrupt();
        long hold =
                taking.waitInterruptibly(patience, Completion.CONTENDED | Completion.TIMED_OUT);
        return hold == 0 ? null : taking.hold(hold, interrupts);
    }

    @Override
    public boolean resize(int permits) {
        try {
            if (VirtualThreads.current()) {
                Parking parking = new Parking(this);
                Native.resizeAsync(source.handle, atLeastOne(permits), parking);
                return parking.await().number() != 0;
            }
            return Native.resize(source.handle, atLeastOne(permits));
        } finally {
            Reference.reachabilityFence(source);
        }
    }

    @Override
    public CompletableFuture<Boolean> resizeAsync(int permits) {
        return Deferred.start(
                source.client.executor(),
                (result, number) -> number != 0,
                completion -> Native.resizeAsync(source.handle, atLeastOne(permits), completion));
    }

    @Override
    public int availablePermits() {
        try {
            if (VirtualThreads.current()) {
                Parking parking = new Parking(this);
                Native.availablePermitsAsync(source.handle, parking);
                return (int) parking.await().number();
            }
            return Native.availablePermits(source.handle);
        } finally {
            Reference.reachabilityFence(source);
        }
    }

    @Override
    public CompletableFuture<Integer> availablePermitsAsync() {
        return Deferred.start(
                source.client.executor(),
                (result, number) -> (int) number,
                completion -> Native.availablePermitsAsync(source.handle, completion));
    }

    // ---- futures

    @Override
    public CompletableFuture<Permit> acquireAsync(int permits) {
        return start(permits, Native.FOREVER, 0);
    }

    @Override
    public CompletableFuture<Permit> acquireAsync(int permits, Duration limit) {
        return start(permits, Spans.patience(limit), 0);
    }

    @Override
    public CompletableFuture<@Nullable Permit> tryAcquireAsync(int permits) {
        return start(permits, Native.TRY, Completion.CONTENDED);
    }

    @Override
    public CompletableFuture<@Nullable Permit> tryAcquireAsync(int permits, Duration limit) {
        return start(
                permits, Spans.patience(limit), Completion.CONTENDED | Completion.TIMED_OUT);
    }

    private CompletableFuture<@Nullable Permit> start(int permits, long timeout, int quiet) {
        Taking taking;
        try {
            taking = new Taking(permits);
        } catch (InvalidArgumentException e) {
            return CompletableFuture.failedFuture(e);
        }
        return taking.start(timeout, quiet);
    }

    /** One acquisition's number. */
    private final class Taking extends Acquirer<Permit> {
        private final int permits;

        Taking(int permits) {
            this.permits = atLeastOne(permits);
        }

        @Override
        NativeClient client() {
            return source.client;
        }

        @Override
        String what() {
            return permits + " of the semaphore \"" + source.name + "\"";
        }

        @Override
        long begin(long timeout, long block, Completion completion) {
            return Native.acquirePermits(
                    source.handle, permits, timeout, lease, maxHold, block, completion);
        }

        @Override
        long beginForTask(long timeout, Completion completion) {
            return begin(timeout, 0, completion);
        }

        @Override
        Permit hold(long handle, boolean interrupts) {
            Interrupter interrupter = interrupts ? Interrupter.watch(handle) : null;
            return new NativePermit(source.client, source.name, permits, handle, interrupter);
        }

        @Override
        public String toString() {
            return NativeSemaphore.this.toString();
        }
    }

    /** Equal are those by which the same is acquired: of one client, name and number, with equal options. */
    @Override
    public boolean equals(@Nullable Object other) {
        return other instanceof NativeSemaphore semaphore
                && source.client == semaphore.source.client
                && source.name.equals(semaphore.source.name)
                && source.permits == semaphore.source.permits
                && source.adopts == semaphore.source.adopts
                && lease == semaphore.lease
                && maxHold == semaphore.maxHold
                && interrupts == semaphore.interrupts;
    }

    @Override
    public int hashCode() {
        return Objects.hash(source.name, source.permits, lease, maxHold);
    }

    @Override
    public String toString() {
        return "DistributedSemaphore[" + source.name + ", " + source.permits + " permits]";
    }
}
