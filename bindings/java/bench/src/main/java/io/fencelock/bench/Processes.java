package io.fencelock.bench;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;

/** Several processes with several threads each, all on one key. */
final class Processes {
    private Processes() {}

    /** One process: side, threads, URL. Counts pairs between two lines of its input. */
    public static void main(String[] args) throws Exception {
        AtomicLong pairs = new AtomicLong();
        Side side = Side.open(args[0], args[2]);
        for (int i = 0; i < Integer.parseInt(args[1]); i++) {
            Mutex mutex = side.mutex("bench/processes");
            Thread thread =
                    new Thread(
                            () -> {
                                for (; ; ) {
                                    mutex.lock();
                                    mutex.unlock();
                                    pairs.incrementAndGet();
                                }
                            });
            thread.setDaemon(true);
            thread.start();
        }
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        while (pairs.get() == 0) {
            Thread.sleep(10);
        }
        System.out.println("ready");
        in.readLine();
        long before = pairs.get();
        in.readLine();
        System.out.println(pairs.get() - before);
        // Threads are in the middle of a pair.
        Runtime.getRuntime().halt(0);
    }

    /** Pairs a second of all processes together. */
    static double measure(String side, int processes, int threads, double seconds, String url)
            throws Exception {
        List<Process> children = new ArrayList<>();
        try {
            List<BufferedReader> outputs = new ArrayList<>();
            for (int i = 0; i < processes; i++) {
                Process child =
                        new ProcessBuilder(
                                        Path.of(System.getProperty("java.home"), "bin", "java")
                                                .toString(),
                                        "-cp",
                                        System.getProperty("java.class.path"),
                                        Processes.class.getName(),
                                        side,
                                        String.valueOf(threads),
                                        url)
                                .redirectError(ProcessBuilder.Redirect.INHERIT)
                                .start();
                children.add(child);
                outputs.add(
                        new BufferedReader(new InputStreamReader(child.getInputStream())));
            }
            for (BufferedReader output : outputs) {
                if (!"ready".equals(output.readLine())) {
                    throw new IllegalStateException(side + ": a process has ended");
                }
            }
            long began = System.nanoTime();
            tell(children);
            Thread.sleep((long) (seconds * 1000));
            tell(children);
            double span = (System.nanoTime() - began) / 1e9;
            long pairs = 0;
            for (BufferedReader output : outputs) {
                pairs += Long.parseLong(output.readLine());
            }
            return pairs / span;
        } finally {
            children.forEach(Process::destroyForcibly);
        }
    }

    private static void tell(List<Process> children) throws Exception {
        for (Process child : children) {
            child.getOutputStream().write('\n');
            child.getOutputStream().flush();
        }
    }
}
