package io.fencelock.bench;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;

/** A lock and an unlock, with {@code side}, and {@code key} own or hot. */
@BenchmarkMode(Mode.Throughput)
@OutputTimeUnit(TimeUnit.SECONDS)
public class LockBench {
    /** What all threads use. */
    @State(Scope.Benchmark)
    public static class Shared {
        /** See {@link Side#open}. */
        @Param("fencelock")
        public String side;

        /** A key for each thread, or one for all. */
        @Param({"own", "hot"})
        public String key;

        private Side library;
        private final AtomicInteger threads = new AtomicInteger();

        /** Connects. */
        @Setup
        public void open() {
            library = Side.open(side, System.getProperty("fencelock.bench.redis"));
        }

        /** Closes. */
        @TearDown
        public void close() {
            library.close();
        }

        private Mutex mutex() {
            int number = threads.getAndIncrement();
            return library.mutex(key.equals("hot") ? "bench/hot" : "bench/" + number);
        }
    }

    /** What one thread uses. */
    @State(Scope.Thread)
    public static class Mine {
        private Mutex mutex;

        /** Chooses a key. */
        @Setup
        public void choose(Shared shared) {
            mutex = shared.mutex();
        }
    }

    /** A lock that its thread holds already. */
    @State(Scope.Thread)
    public static class Entered {
        private Mutex mutex;

        /** Enters. */
        @Setup
        public void enter(Shared shared) {
            mutex = shared.mutex();
            mutex.lock();
        }

        /** Leaves. */
        @TearDown
        public void leave() {
            mutex.unlock();
        }
    }

    /** Acquire and release. */
    @Benchmark
    public void pair(Mine mine) {
        mine.mutex.lock();
        mine.mutex.unlock();
    }

    /** Enter again and leave again. */
    @Benchmark
    public void reentry(Entered entered) {
        entered.mutex.lock();
        entered.mutex.unlock();
    }
}
