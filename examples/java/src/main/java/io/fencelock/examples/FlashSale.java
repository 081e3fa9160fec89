package io.fencelock.examples;

import io.fencelock.FencelockClient;
import io.fencelock.FencelockException;
import io.fencelock.Hold;
import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/**
 * A flash sale: several processes sell the same coupons. Without a lock too many are sold; with one
 * the books are right, also when a holder is paused past its lease, and when one is killed.
 *
 * <p>{@code java -cp … io.fencelock.examples.FlashSale [URL]}; without a URL the lock lies in a
 * SQLite file.
 */
public final class FlashSale {
    private static final int COUPONS = 60;
    private static final int PROCESSES = 4;
    private static final int THREADS = 3;
    private static final int SOLD_MEANWHILE = 6;

    private final String store;
    private final FencelockClient probe;

    private FlashSale(String store, FencelockClient probe) {
        this.store = store;
        this.probe = probe;
    }

    /** What a scene came to. */
    record Result(int sold, int refused, int abandoned) {}

    /**
     * Plays the four scenes.
     *
     * @param args the URL of a store that several processes can reach, or nothing
     * @throws Exception when the sale cannot be held
     */
    public static void main(String[] args) throws Exception {
        Path folder = Files.createTempDirectory("flash-sale");
        String store = args.length > 0 ? args[0] : "sqlite:" + folder.resolve("locks.db");
        boolean right;
        try (FencelockClient probe =
                FencelockClient.builder(store).requestTimeout(Duration.ofMillis(500)).connect()) {
            FlashSale sale = new FlashSale(store, probe);
            System.out.printf(
                    "%d coupons, %d processes with %d threads each, lock in %s%n",
                    COUPONS, PROCESSES, THREADS, probe.capabilities().store());
            Result none = sale.play("without a lock", false, null);
            Result lock = sale.play("with a lock", true, null);
            Result paused = sale.play("a holder is paused", true, Way.PAUSE);
            Result killed = sale.play("a holder is killed", true, Way.KILL);
            right =
                    none.sold() > COUPONS
                            && lock.equals(new Result(COUPONS, 0, 0))
                            && paused.sold() == COUPONS
                            && paused.refused() >= 1
                            && killed.sold() == COUPONS
                            && killed.abandoned() >= 1;
        }
        try (Stream<Path> files = Files.list(folder)) {
            files.forEach(file -> file.toFile().delete());
        }
        Files.delete(folder);
        System.out.println(right ? "the books are right" : "THE BOOKS ARE WRONG");
        System.exit(right ? 0 : 1);
    }

    private enum Way {
        PAUSE,
        KILL
    }

    private Result play(String title, boolean locked, Way way) throws Exception {
        List<Process> processes = new ArrayList<>();
        Shop[] shop = new Shop[1];
        Shop.Mishap mishap = way == null ? null : pid -> befall(way, pid, shop[0]);
        try {
            // Under a lock there is one seller in the shop at a time.
            shop[0] = new Shop(COUPONS, locked ? 1 : PROCESSES * THREADS, mishap);
            String lock = "java/sale/" + UUID.randomUUID();
            if (locked) {
                // So that nobody's predecessor is unknown.
                probe.lock(lock).acquire().close();
            }
            for (int i = 0; i < PROCESSES; i++) {
                processes.add(seller(shop[0].port(), locked ? lock : null, way != null));
            }
            for (Process process : processes) {
                int status = process.waitFor();
                if (status != 0 && way != Way.KILL) {
                    throw new IllegalStateException("a seller ended with " + status);
                }
            }
        } finally {
            processes.forEach(Process::destroyForcibly);
            if (shop[0] != null) {
                shop[0].close();
            }
        }
        Result result = new Result(shop[0].sold(), shop[0].refused(), shop[0].abandoned());
        System.out.printf(
                "%-20s %3d sold of %d%s%s%s%n",
                title,
                result.sold(),
                COUPONS,
                result.sold() > COUPONS ? ", TOO MANY" : "",
                result.refused() > 0 ? ", late writes refused: " + result.refused() : "",
                result.abandoned() > 0 ? ", told of a lost holder: " + result.abandoned() : "");
        return result;
    }

    private Process seller(int port, String lock, boolean mishaps) throws Exception {
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        if (Runtime.version().feature() >= 24) {
            command.add("--enable-native-access=ALL-UNNAMED");
        }
        command.add("-cp");
        command.add(place(FencelockClient.class) + File.pathSeparator + place(Seller.class));
        command.add(Seller.class.getName());
        command.addAll(
                List.of(
                        String.valueOf(port),
                        String.valueOf(THREADS),
                        mishaps ? "mishaps" : "none"));
        if (lock != null) {
            command.addAll(List.of(store, lock));
        }
        return new ProcessBuilder(command).inheritIO().start();
    }

    private static String place(Class<?> type) throws Exception {
        return Path.of(type.getProtectionDomain().getCodeSource().getLocation().toURI()).toString();
    }

    /** The holder is lost in the middle of its sale; the others go on when its lease is over. */
    private void befall(Way way, long pid, Shop shop) throws Exception {
        if (way == Way.KILL) {
            signal("KILL", pid);
            return;
        }
        stop(pid);
        shop.awaitSales(SOLD_MEANWHILE);
        signal("CONT", pid);
    }

    /** Stops a process where it does not stop the store: SQLite waits for a stopped writer. */
    private void stop(long pid) throws Exception {
        for (; ; ) {
            signal("STOP", pid);
            try (Hold hold = probe.lock("java/sale/probe").acquire(Duration.ofMillis(500))) {
                if (hold.isValid()) {
                    return;
                }
            } catch (FencelockException e) {
                // It was in the middle of a transaction.
            }
            signal("CONT", pid);
            TimeUnit.MILLISECONDS.sleep(5);
        }
    }

    private static void signal(String name, long pid) throws Exception {
        int status = new ProcessBuilder("kill", "-" + name, String.valueOf(pid)).start().waitFor();
        if (status != 0) {
            throw new IllegalStateException("kill ended with " + status);
        }
    }
}
