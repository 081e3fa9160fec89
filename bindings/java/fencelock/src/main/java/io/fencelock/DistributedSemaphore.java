package io.fencelock;

import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * So many at a time, among all clients of a store: a number of permits, of which each acquisition takes
 * one or several.
 *
 * <pre>{@code
 * DistributedSemaphore mailers = client.semaphore("mailers", 5);
 * try (Permit permit = mailers.acquire()) {
 *     send(mail);
 * }
 * }</pre>
 *
 * <p>It has the names of {@link java.util.concurrent.Semaphore}, and differs where several processes
 * must:
 *
 * <ul>
 *   <li>An acquire gives a {@link Permit}, which is closed to give back what it took, once. There is no
 *       {@code release(int)} that makes permits out of nothing, and no {@code reducePermits} or {@code
 *       drainPermits}. Keep it: who calls {@code acquire()} as a statement of its own has nothing to give
 *       back, and the garbage collector does so at some time.
 *   <li>It is always fair: first come, first served, and a small request never passes a larger one that
 *       waits. {@code tryAcquire} never passes whoever waits either. There it does.
 *   <li>Taking several takes all or waits for all; none are held while waiting for more.
 *   <li>A permit has a lease, which is renewed in the background until it is closed. Those of a process
 *       that died are free again when the lease is over. One can be <em>lost</em> all the same, by a long
 *       pause of this process, by the store, by an operator: {@link Hold#lost} tells, and closing it
 *       throws {@link LockLostException}.
 *   <li>Everybody who holds or waits must say the same number of permits, and the name must not be a
 *       lock's; what does not agree is a {@link StoreMisconfiguredException}, with both numbers.
 *   <li>Taking no permits is an {@link InvalidArgumentException}, as is a number above all that there are.
 * </ul>
 *
 * <p>Permits have no owner: who acquires again takes more, and may wait for its own. A virtual thread that
 * waits parks, and leaves its carrier to others.
 *
 * <p>Where several are valid at a time, a token cannot fence: see {@link Permit#token}.
 *
 * <p>Semaphores are made by {@link FencelockClient#semaphore}. The methods that begin with {@code with}
 * give another object for the same semaphore; two are equal when they are of one client, name and number,
 * and acquire alike. An interface, so that a framework can put a proxy around it, and a test its own in its
 * place.
 */
public interface DistributedSemaphore {
    /**
     * The name of the semaphore.
     *
     * @return the name
     */
    String name();

    /**
     * How many permits there are, as this object was told.
     *
     * @return 1 or more
     */
    int permits();

    // ---- options

    /**
     * The semaphore with an explicit lease: permits are not renewed, and come back on time.
     *
     * @param lease 100 ms to 7 days; what is outside is refused by the acquire
     * @return the same semaphore
     */
    DistributedSemaphore withLease(Duration lease);

    /**
     * The semaphore with a ceiling over the renewal: permits come back so long after their grant
     * although their holder lives.
     *
     * @param ceiling above zero
     * @return the same semaphore
     */
    DistributedSemaphore withMaxHold(Duration ceiling);

    /**
     * The semaphore with permits that interrupt the thread that acquired them when they are lost, as
     * {@link DistributedLock#withInterruptOnLoss}.
     *
     * @return the same semaphore
     */
    DistributedSemaphore withInterruptOnLoss();

    /**
     * The same semaphore, following the number of permits of those who hold or wait where that is another
     * than this object's: for who cannot know of a {@link #resize}. The number of this object counts when
     * nobody does, and is the most that one acquire takes. More than there are is an {@link
     * InvalidArgumentException} then, as after a resize.
     *
     * @return an object for it
     */
    DistributedSemaphore adopting();

    // ---- as of java.util.concurrent.Semaphore

    /**
     * Takes a permit, waiting as long as it takes, as {@link #acquire(int)} does.
     *
     * @return the permit, to be closed
     * @throws InterruptedException when the thread was interrupted; nothing is taken then
     */
    default Permit acquire() throws InterruptedException {
        return acquire(1);
    }

    /**
     * Takes so many permits together, waiting as long as it takes.
     *
     * @param permits 1 to all that there are
     * @return the permits, to be closed
     * @throws InterruptedException when the thread was interrupted; nothing is taken then
     * @throws InvalidArgumentException for another number
     * @throws StoreMisconfiguredException while others hold or wait who said another number of permits,
     *     while the name is a lock's, and when the store refuses for a lasting reason
     * @throws StoreUnavailableException when too many wait in this client already
     * @throws ClientClosedException when the client is closed, also while waiting
     */
    Permit acquire(int permits) throws InterruptedException;

    /**
     * Takes a permit, as {@link #acquireUninterruptibly(int)} does.
     *
     * @return the permit, to be closed
     */
    default Permit acquireUninterruptibly() {
        return acquireUninterruptibly(1);
    }

    /**
     * As {@link #acquire(int)}, but an interrupt does not end the wait, and is kept in the thread's
     * interrupt status.
     *
     * @param permits 1 to all that there are
     * @return the permits, to be closed
     */
    Permit acquireUninterruptibly(int permits);

    /**
     * Takes a permit, waiting for at most {@code limit}, as {@link #acquire(int, Duration)} does.
     *
     * @param limit how long
     * @return the permit, to be closed
     * @throws InterruptedException when the thread was interrupted; nothing is taken then
     */
    default Permit acquire(Duration limit) throws InterruptedException {
        return acquire(1, limit);
    }

    /**
     * Takes so many permits together, waiting for at most {@code limit}.
     *
     * @param permits 1 to all that there are
     * @param limit how long
     * @return the permits, to be closed
     * @throws LockTimeoutException when others had too many all the while; {@link
     *     LockContendedException} when the limit is zero
     * @throws StoreUnavailableException when the store could not be asked
     * @throws InterruptedException when the thread was interrupted; nothing is taken then
     */
    Permit acquire(int permits, Duration limit) throws InterruptedException;

    /**
     * Takes a permit, as {@link #tryAcquire(int)} does.
     *
     * <pre>{@code
     * try (Permit permit = mailers.tryAcquire()) {
     *     if (permit == null) return;   // all are out
     *     …
     * }
     * }</pre>
     *
     * @return the permit, to be closed; null when none is free, or others wait
     */
    default @Nullable Permit tryAcquire() {
        return tryAcquire(1);
    }

    /**
     * Takes so many permits together if they are free and nobody waits. An interrupt does not end the
     * call.
     *
     * @param permits 1 to all that there are
     * @return the permits, to be closed; null when too few are free, or others wait
     * @throws StoreUnavailableException when the store did not answer
     */
    @Nullable Permit tryAcquire(int permits);

    /**
     * Takes a permit, as {@link #tryAcquire(int, Duration)} does.
     *
     * @param time how long; zero and below ask once
     * @param unit of what
     * @return the permit, to be closed; null when none came free
     * @throws InterruptedException when the thread was interrupted; nothing is taken then
     */
    default @Nullable Permit tryAcquire(long time, TimeUnit unit) throws InterruptedException {
        return tryAcquire(1, time, unit);
    }

    /**
     * Takes so many permits together, as {@link #tryAcquire(int, Duration)} does.
     *
     * @param permits 1 to all that there are
     * @param time how long; zero and below ask once
     * @param unit of what
     * @return the permits, to be closed; null when others had too many all the while
     * @throws InterruptedException when the thread was interrupted; nothing is taken then
     */
    @Nullable Permit tryAcquire(int permits, long time, TimeUnit unit) throws InterruptedException;

    /**
     * Takes a permit, as {@link #tryAcquire(int, Duration)} does.
     *
     * @param limit how long; zero and below ask once
     * @return the permit, to be closed; null when none came free
     * @throws InterruptedException when the thread was interrupted; nothing is taken then
     */
    default @Nullable Permit tryAcquire(Duration limit) throws InterruptedException {
        return tryAcquire(1, limit);
    }

    /**
     * As {@link #acquire(int, Duration)}, but what that throws a {@link LockTimeoutException} for is
     * null here.
     *
     * @param permits 1 to all that there are
     * @param limit how long; zero and below ask once
     * @return the permits, to be closed; null when others had too many all the while
     * @throws StoreUnavailableException when the store could not be asked
     * @throws InterruptedException when the thread was interrupted; nothing is taken then
     */
    @Nullable Permit tryAcquire(int permits, Duration limit) throws InterruptedException;

    /**
     * Gives the semaphore another number of permits, until nobody holds or waits. Of more, whoever fits now
     * enters at once. Of fewer, nobody loses a permit, and nobody enters until enough have come back; who
     * waits for more than there are fails with {@link InvalidArgumentException}. Everybody who comes later
     * must say the new number, or be {@linkplain #adopting adopting}: this object keeps the one that it was
     * told.
     *
     * @param permits 1 to 1,000,000
     * @return false when nobody holds or waits: then whoever comes next says how many there are
     * @throws InvalidArgumentException for another number
     * @throws StoreMisconfiguredException while the name is a lock's
     * @throws StoreUnavailableException when the store did not answer
     */
    boolean resize(int permits);

    /**
     * As {@link #resize}, without waiting.
     *
     * @param permits 1 to 1,000,000
     * @return a future of what it gives
     */
    CompletableFuture<Boolean> resizeAsync(int permits);

    /**
     * How many permits the store's holds leave of this object's number, or of the one that it {@linkplain
     * #adopting follows}. Asks the store. Good for display, never for a decision: who waits comes first.
     *
     * @return 0 or more
     * @throws StoreUnavailableException when the store did not answer
     */
    int availablePermits();

    /**
     * As {@link #availablePermits}, without waiting.
     *
     * @return a future of the number
     */
    CompletableFuture<Integer> availablePermitsAsync();

    // ---- futures

    /**
     * As {@link #acquire()}, without waiting.
     *
     * @return a future of the permit, which whoever takes it has to release
     */
    default CompletableFuture<Permit> acquireAsync() {
        return acquireAsync(1);
    }

    /**
     * As {@link #acquire(int)}, without waiting. For the cancelling of the future see {@link
     * DistributedLock#acquireAsync()}.
     *
     * @param permits 1 to all that there are
     * @return a future of the permits, which whoever takes it has to release
     */
    CompletableFuture<Permit> acquireAsync(int permits);

    /**
     * As {@link #acquire(int, Duration)}, without waiting.
     *
     * @param permits 1 to all that there are
     * @param limit how long; zero and below ask once
     * @return a future that fails with {@link LockTimeoutException} when others had too many all the
     *     while; with {@link LockContendedException} when the limit is zero
     */
    CompletableFuture<Permit> acquireAsync(int permits, Duration limit);

    /**
     * As {@link #tryAcquire(int)}, without waiting for the store's answer.
     *
     * @param permits 1 to all that there are
     * @return a future of the permits; of null when too few are free, or others wait
     */
    CompletableFuture<@Nullable Permit> tryAcquireAsync(int permits);

    /**
     * As {@link #tryAcquire(int, Duration)}, without waiting.
     *
     * @param permits 1 to all that there are
     * @param limit how long; zero and below ask once
     * @return a future of the permits; of null when others had too many all the while
     */
    CompletableFuture<@Nullable Permit> tryAcquireAsync(int permits, Duration limit);

    /**
     * Takes a permit, runs {@code work}, and gives the permit back when what that gives has completed;
     * as {@link #withPermitsAsync}.
     *
     * @param work begun on the client's executor once the permit is taken; must not give null
     * @param <T> what the work gives
     * @return a future of what the work gives
     */
    default <T extends @Nullable Object> CompletableFuture<T> withPermitAsync(
            Function<? super Permit, ? extends CompletionStage<T>> work) {
        return withPermitsAsync(1, work);
    }

    /**
     * Takes so many permits, runs {@code work}, and gives them back when what that gives has completed.
     * Whatever fails or is cancelled, none are left behind; otherwise as {@link
     * DistributedLock#withLockAsync(Function)}.
     *
     * @param permits 1 to all that there are
     * @param work begun on the client's executor once the permits are taken; must not give null
     * @param <T> what the work gives
     * @return a future of what the work gives. It fails as {@link #acquireAsync(int)} and the work do,
     *     and with {@link LockLostException} when the permits were lost before the work had ended
     */
    default <T extends @Nullable Object> CompletableFuture<T> withPermitsAsync(
            int permits, Function<? super Permit, ? extends CompletionStage<T>> work) {
        return WithLock.run(acquireAsync(permits), work);
    }
}
