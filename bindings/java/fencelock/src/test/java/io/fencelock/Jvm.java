package io.fencelock;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/** Another virtual machine. */
final class Jvm implements AutoCloseable {
    private final Process process;
    private final BufferedReader output;
    private final StringBuilder seen = new StringBuilder();

    private Jvm(List<String> command, Map<String, String> environment) throws IOException {
        ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
        builder.environment().putAll(environment);
        process = builder.start();
        output = new BufferedReader(new InputStreamReader(process.getInputStream()));
    }

    /** Where the classes of the library, or of the tests, are. */
    static String place(Class<?> type) {
        try {
            return Path.of(type.getProtectionDomain().getCodeSource().getLocation().toURI())
                    .toString();
        } catch (java.net.URISyntaxException e) {
            throw new IllegalStateException(e);
        }
    }

    /** Runs {@code arguments} with the library and the tests on the class path. */
    static Jvm start(List<String> options, String... arguments) throws IOException {
        return start(Map.of(), options, arguments);
    }

    /** As above, with more of an environment. */
    static Jvm start(Map<String, String> environment, List<String> options, String... arguments)
            throws IOException {
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.add("-cp");
        command.add(place(FencelockClient.class) + File.pathSeparator + place(Jvm.class));
        command.addAll(options);
        command.addAll(List.of(arguments));
        return new Jvm(command, environment);
    }

    /** Waits for a line. */
    void expect(String line) throws IOException {
        for (String next; (next = output.readLine()) != null; ) {
            seen.append(next).append('\n');
            if (next.equals(line)) {
                return;
            }
        }
        throw new AssertionError("no \"" + line + "\" in: " + seen);
    }

    /** Waits for the end; gives all that it has printed. */
    String end(int status) throws IOException, InterruptedException {
        for (String next; (next = output.readLine()) != null; ) {
            seen.append(next).append('\n');
        }
        if (!process.waitFor(60, TimeUnit.SECONDS) || process.exitValue() != status) {
            throw new AssertionError("status " + process + ": " + seen);
        }
        return seen.toString();
    }

    @Override
    public void close() {
        process.destroyForcibly();
    }
}
