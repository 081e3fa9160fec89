package io.fencelock.bench;

import io.fencelock.FencelockClient;
import io.fencelock.bench.Callers.Total;
import io.fencelock.bench.Callers.Work;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.IntFunction;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.redisson.Redisson;
import redis.clients.jedis.Jedis;

/** One library, which does what it is told line by line: bench/drivers/README.md has the lines. */
final class Driver {
    /** What is timed as one, so that the clock does not cost more than a re-entry. */
    private static final int REENTRIES = 100;

    /** An order that runs beside the others. */
    private interface Task {
        void run() throws Exception;
    }

    private final String url;
    private final boolean bare;
    private final Side side;
    private final Map<String, CountDownLatch> holds = new HashMap<>();
    private final List<CompletionStage<?>> waits = new ArrayList<>();

    private Driver(String library, String url) {
        this.url = url;
        bare = library.equals("jedis");
        side = Side.open(bare ? "jedis-bare" : library, url);
    }

    /** Arguments: the library and the server's URL. */
    public static void main(String[] args) throws Exception {
        Thread.setDefaultUncaughtExceptionHandler((thread, failure) -> fail(failure));
        Driver driver = new Driver(args[0], args[1]);
        say("ready", version(args[0]));
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null; ) {
            driver.obey(line.split(" "));
        }
        // Hooks of the libraries would first release and drain what is held.
        Runtime.getRuntime().halt(0);
    }

    private static String version(String library) throws IOException {
        return switch (library) {
            case "fencelock" -> FencelockClient.version();
            case "jedis" -> {
                Properties properties = new Properties();
                try (InputStream in = Jedis.class.getResourceAsStream("pom.properties")) {
                    properties.load(in);
                }
                yield properties.getProperty("version");
            }
            default -> Redisson.class.getPackage().getImplementationVersion();
        };
    }

    private void obey(String[] order) throws Exception {
        switch (order[0]) {
            case "pairs" -> beside(() -> pairs(order[1], order[2]));
            case "keys" -> beside(
                    () -> keys(Integer.parseInt(order[1]), i -> order[2] + "-" + i, order[3]));
            case "hot" -> beside(() -> hot(Integer.parseInt(order[1]), order[2], order[3]));
            case "read" -> beside(
                    () -> read(number(order[1]), number(order[2]), order[3], order[4]));
            case "permits" -> beside(
                    () -> permits(number(order[1]), number(order[2]), order[3], order[4]));
            case "reenter" -> beside(
                    () -> reenter(order[1], Integer.parseInt(order[2]), nanos(order[3])));
            case "acquire" -> acquire(order[1], order[2], order[3]);
            case "release" -> holds.remove(order[1]).countDown();
            case "wait" -> beside(() -> await(Integer.parseInt(order[1]), order[2]));
            case "sell" -> beside(() -> sell(Integer.parseInt(order[1]), order[2]));
            default -> say("cannot");
        }
    }

    private void pairs(String key, String millis) throws Exception {
        Total total = cycle(1, any -> key, millis);
        say("did", total.count(), total.nanos(), total.tallies().get(0).median());
    }

    private void keys(int callers, IntFunction<String> keys, String millis) throws Exception {
        Total total = cycle(callers, keys, millis);
        say("did", total.count(), total.nanos());
    }

    private void hot(int callers, String key, String millis) throws Exception {
        fair(cycle(callers, any -> key, millis));
    }

    private void read(int callers, int percent, String key, String millis) throws Exception {
        if (side.pairs() == null) {
            say("cannot");
            return;
        }
        long nanos = nanos(millis);
        fair(together(callers, i -> Callers.reads(side.pairs().apply(key), i, percent, nanos)));
    }

    private void permits(int callers, int of, String key, String millis) throws Exception {
        if (side.permits() == null) {
            say("cannot");
            return;
        }
        long nanos = nanos(millis);
        fair(together(callers, i -> Callers.cycle(side.permits().apply(key, of), nanos)));
    }

    private static void fair(Total total) {
        say("did", total.count(), total.nanos(), total.least(), total.most(), total.longest());
    }

    private static int number(String word) {
        return Integer.parseInt(word);
    }

    private Total cycle(int callers, IntFunction<String> keys, String millis) throws Exception {
        return together(callers, i -> Callers.cycle(side.mutex(keys.apply(i)), nanos(millis)));
    }

    private void reenter(String key, int count, long nanos) throws Exception {
        if (bare) {
            say("cannot");
            return;
        }
        Mutex mutex = side.mutex(key);
        List<Mutex> held = new ArrayList<>(List.of(mutex));
        IntStream.range(1, count).forEach(i -> held.add(side.mutex(key + "-" + i)));
        held.forEach(Mutex::lock);
        long began = System.nanoTime();
        long done = 0;
        while (System.nanoTime() - began < nanos) {
            for (int i = 0; i < REENTRIES; i++) {
                mutex.lock();
                mutex.unlock();
            }
            done += REENTRIES;
        }
        long took = System.nanoTime() - began;
        held.forEach(Mutex::unlock);
        say("did", done, took);
    }

    /** A lock belongs to its thread: what acquires stays, and releases. */
    private void acquire(String tag, String key, String lease) {
        Mutex mutex = side.mutex(key);
        CountDownLatch release = new CountDownLatch(1);
        holds.put(tag, release);
        say("asked", tag);
        beside(
                () -> {
                    if (lease.equals("default")) {
                        mutex.lock();
                    } else {
                        mutex.lock(Long.parseLong(lease));
                    }
                    say("granted", tag, System.nanoTime());
                    release.await();
                    long at = System.nanoTime();
                    mutex.unlock();
                    say("released", tag, at);
                });
    }

    private void await(int count, String key) {
        List<Mutex> mutexes = Stream.generate(() -> side.mutex(key)).limit(count).toList();
        for (Mutex mutex : mutexes) {
            long caller = waits.size();
            waits.add(mutex.ask(caller).whenComplete((held, failure) -> fail(failure)));
        }
        say("waiting", count);
    }

    private void sell(int callers, String key) throws Exception {
        IntFunction<Work> seller =
                bare
                        ? any -> Stock.at(url).free()
                        : any -> Stock.at(url).under(side.mutex(key));
        Total total = together(callers, seller);
        say("sold", total.count(), total.nanos());
    }

    private static Total together(int callers, IntFunction<Work> work)
            throws InterruptedException {
        return Callers.together(IntStream.range(0, callers).mapToObj(work).toList());
    }

    private static void beside(Task task) {
        Callers.spawn(
                () -> {
                    try {
                        task.run();
                    } catch (Exception e) {
                        fail(e);
                    }
                });
    }

    private static long nanos(String millis) {
        return TimeUnit.MILLISECONDS.toNanos(Long.parseLong(millis));
    }

    private static void say(Object... words) {
        System.out.println(String.join(" ", Stream.of(words).map(String::valueOf).toList()));
    }

    private static void fail(Throwable failure) {
        if (failure != null) {
            failure.printStackTrace();
            Runtime.getRuntime().halt(1);
        }
    }
}
