package io.fencelock.bench;

import java.util.List;
import java.util.concurrent.BrokenBarrierException;
import java.util.concurrent.CyclicBarrier;
import java.util.stream.IntStream;

/** Callers, a thread for each, who begin at the same instant. */
final class Callers {
    /** What one of them does from the common beginning on. */
    interface Work {
        Tally from(long began);
    }

    /** What one has done: how often, and the longest wait in nanoseconds. */
    record Tally(long count, long longest) {}

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
        return began -> {
            long count = 0;
            long longest = 0;
            for (long asked = began; asked - began < nanos; asked = System.nanoTime()) {
                mutex.lock();
                longest = Math.max(longest, System.nanoTime() - asked);
                mutex.unlock();
                count++;
            }
            return new Tally(count, longest);
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
