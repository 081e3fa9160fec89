package io.fencelock.bench;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.openjdk.jmh.results.RunResult;
import org.openjdk.jmh.runner.Runner;
import org.openjdk.jmh.runner.options.OptionsBuilder;
import org.openjdk.jmh.runner.options.TimeValue;
import org.openjdk.jmh.runner.options.VerboseMode;

/**
 * Measures all sides in turn, in rounds, each side in a JVM of its own by JMH, and divides ours by
 * the others within each round: a machine that is slower for a while is slower for all of them.
 */
final class Main {
    private final String url;
    private final int rounds;
    private final TimeValue span;

    private Main(String url, int rounds, TimeValue span) {
        this.url = url;
        this.rounds = rounds;
        this.span = span;
    }

    /** Pairs a second of one side. */
    interface Measure {
        double of(String side) throws Exception;
    }

    /** Arguments: the server's URL, rounds, seconds for each side, and words of the cases wanted. */
    public static void main(String[] args) throws Exception {
        Main main =
                new Main(
                        args[0],
                        Integer.parseInt(args[1]),
                        TimeValue.milliseconds((long) (Double.parseDouble(args[2]) * 1000)));
        String only = args.length > 3 ? args[3] : "";
        main.play(
                only,
                "re-entry",
                side -> main.jmh("reentry", side, "own", 1),
                "fencelock",
                "reentrant-fair",
                "redisson-lock");
        main.play(
                only,
                "uncontended pair",
                side -> main.jmh("pair", side, "own", 1),
                "fencelock",
                "jedis",
                "lettuce",
                "redisson-lock",
                "redisson-fair",
                "redisson-fenced");
        main.play(
                only,
                "64 threads on 64 keys",
                side -> main.jmh("pair", side, "own", 64),
                "fencelock",
                "jedis",
                "lettuce",
                "redisson-lock",
                "redisson-fair",
                "redisson-fenced");
        main.play(
                only,
                "16 threads on one key",
                side -> main.jmh("pair", side, "hot", 16),
                "fencelock",
                "reentrant-fair",
                "redisson-lock",
                "redisson-fair",
                "redisson-fenced");
        main.play(
                only,
                "4 processes of 4 threads on one key",
                side ->
                        Processes.measure(
                                side, 4, 4, main.span.convertTo(java.util.concurrent.TimeUnit.MILLISECONDS) / 1e3, main.url),
                "fencelock",
                "redisson-lock",
                "redisson-fair",
                "redisson-fenced");
    }

    private double jmh(String benchmark, String side, String key, int threads) throws Exception {
        RunResult result =
                new Runner(
                                new OptionsBuilder()
                                        .include(LockBench.class.getName() + "\\." + benchmark + "$")
                                        .param("side", side)
                                        .param("key", key)
                                        .threads(threads)
                                        .forks(1)
                                        .warmupIterations(1)
                                        .warmupTime(span)
                                        .measurementIterations(1)
                                        .measurementTime(span)
                                        .jvmArgsAppend("-Dfencelock.bench.redis=" + url)
                                        .verbosity(VerboseMode.SILENT)
                                        .shouldFailOnError(true)
                                        .build())
                        .runSingle();
        return result.getPrimaryResult().getScore();
    }

    private void play(String only, String title, Measure measure, String... sides)
            throws Exception {
        if (!title.contains(only)) {
            return;
        }
        Map<String, List<Double>> rates = new LinkedHashMap<>();
        for (int round = 0; round < rounds; round++) {
            List<String> order = new ArrayList<>(Arrays.asList(sides));
            if (round % 2 == 1) {
                java.util.Collections.reverse(order);
            }
            for (String side : order) {
                rates.computeIfAbsent(side, any -> new ArrayList<>()).add(measure.of(side));
            }
        }
        System.out.printf("%n%s%n", title);
        List<Double> ours = rates.get(sides[0]);
        for (String side : sides) {
            List<Double> theirs = rates.get(side);
            double median = median(theirs);
            List<Double> ratios = new ArrayList<>();
            for (int round = 0; round < rounds; round++) {
                ratios.add(ours.get(round) / theirs.get(round));
            }
            System.out.printf(
                    "  %-18s %,14.0f pairs/s %,12.0f ns", side, median, 1e9 / median);
            if (!side.equals(sides[0])) {
                System.out.printf(
                        "   ours/this %6.2f  (%.2f to %.2f)",
                        median(ratios),
                        ratios.stream().min(Double::compare).orElseThrow(),
                        ratios.stream().max(Double::compare).orElseThrow());
            }
            System.out.println();
        }
    }

    private static double median(List<Double> values) {
        double[] sorted = values.stream().mapToDouble(Double::doubleValue).sorted().toArray();
        int middle = sorted.length / 2;
        return sorted.length % 2 == 1
                ? sorted[middle]
                : (sorted[middle - 1] + sorted[middle]) / 2;
    }
}
