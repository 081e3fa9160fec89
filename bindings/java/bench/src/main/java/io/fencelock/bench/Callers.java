package io.fencelock.bench;

import java.util.Arrays;
import java.util.List;
import java.util.concurrent.BrokenBarrierException;
import java.util.concurrent.CyclicBarrier;
import java.util.function.IntFunction;
import java.util.stream.IntStream;

/** Callers, a thread for each, who begin at the same instant. */
final class Callers {
    /** What one of them does from the common beginning on. */
    interface Work {
        Tally from(long began);
    }

    /**
     * What one has done: how often, the longest wait in nanoseconds, and how long each took, as far
     * as that was looked at.
     */
    record Tally(long count, long longest, long[] spans) {
        Tally(long count, long longest) {
            this(count, longest, new long[0]);
        }

        /** How long the pair in the middle took. */
        long median() {
            long[] sorted = spans.clone();
            Arrays.sort(sorted);
            return sorted.length == 0 ? 0 : sorted[sorted.length / 2];
        }
    }

    /** What all have done, and how long it took. */
    record Total(List<Tally> tallies, long nanos) {
        long count() {
            return tallies.stream().mapToLong(Tally::count).sum();
        }

        long least() {
            return tallies.stream().mapToLong(Tally::count).min().orElseThrow();
        }

        long most() {
            return tallies.stream().mapToLong(Tally::count).max().orElseThrow();
        }

        long longest() {
            return tallies.stream().mapToLong(Tally::longest).max().orElseThrow();
        }
    }

    private final List<Work> works;
    private final Tally[] tallies;
    private final CyclicBarrier start;
    private long began;

    private Callers(List<Work> works) {
        this.works = works;
        tallies = new Tally[works.size()];
        start = new CyclicBarrier(works.size(), () -> began = System.nanoTime());
    }

    /** Lets each do its work, and waits for all. */
    static Total together(List<Work> works) throws InterruptedException {
        return new Callers(works).run();
    }

    private Total run() throws InterruptedException {
        List<Thread> threads =
                IntStream.range(0, tallies.length)
                        .mapToObj(number -> spawn(() -> perform(number)))
                        .toList();
        for (Thread thread : threads) {
            thread.join();
        }
        return new Total(List.of(tallies), System.nanoTime() - began);
    }

    private void perform(int number) {
        try {
            start.await();
        } catch (InterruptedException | BrokenBarrierException e) {
            throw new IllegalStateException(e);
        }
        tallies[number] = works.get(number).from(began);
    }

    /** Acquires and releases until the time is over. */
    static Work cycle(Mutex mutex, long nanos) {
        return turns(any -> mutex, nanos);
    }

    /** The same on a read-write lock, so many of a hundred times to read; not all write at once. */
    static Work reads(Side.Pair sides, int caller, int percent, long nanos) {
        return turns(
                turn -> {
                    long at = turn + 3L * caller;
                    boolean reads = (at + 1) * percent / 100 > at * percent / 100;
                    return reads ? sides.reader() : sides.writer();
                },
                nanos);
    }

    /** The same with the mutex of each turn. */
    private static Work turns(IntFunction<Mutex> mutexes, long nanos) {
        return began -> {
            int count = 0;
            long longest = 0;
            long[] spans = new long[4096];
            long next;
            for (long asked = began; asked - began < nanos; asked = next) {
                Mutex mutex = mutexes.apply(count);
                mutex.lock();
                longest = Math.max(longest, System.nanoTime() - asked);
                mutex.unlock();
                next = System.nanoTime();
                if (count == spans.length) {
                    spans = Arrays.copyOf(spans, count * 2);
                }
                spans[count++] = next - asked;
            }
            return new Tally(count, longest, Arrays.copyOf(spans, count));
        };
    }

    /** A thread that does not keep the process. */
    static Thread spawn(Runnable work) {
        Thread thread = new Thread(work);
        thread.setDaemon(true);
        thread.start();
        return thread;
    }
}
