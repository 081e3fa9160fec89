package io.fencelock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.lang.reflect.Method;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.spi.ToolProvider;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Where the native library comes from, and what is said when it does not. */
@Tag("platform")
class LoadingTest {
    private static String check(int status, String... options) throws Exception {
        List<String> all = new ArrayList<>(List.of(options));
        // A newer JDK must have nothing to say about native access that was declared.
        if (Runtime.version().feature() >= 24) {
            all.add("--enable-native-access=ALL-UNNAMED");
            all.add("--illegal-native-access=deny");
        }
        try (Jvm jvm = Jvm.start(all, Check.class.getName(), "memory:")) {
            return jvm.end(status);
        }
    }

    private static Path library(Path folder) throws Exception {
        Platform platform = Platform.current();
        Path file = folder.resolve(platform.file());
        try (var in = Native.class.getResourceAsStream(platform.resource())) {
            Files.copy(in, file);
        }
        return file;
    }

    @Test
    void fromTheJar(@TempDir Path folder) throws Exception {
        String said = check(0, "-Dfencelock.library.tmpdir=" + folder);
        assertTrue(said.contains("native library: from the jar"), said);
        assertTrue(said.contains("store=memory"), said);
        assertTrue(!said.contains("WARNING"), said);
        try (var left = Files.list(folder)) {
            assertEquals(0, left.count(), "the unpacked file is removed");
        }
    }

    @Test
    void fromWhereThePropertySays(@TempDir Path folder) throws Exception {
        Path file = library(folder);
        String said = check(0, "-Dfencelock.library.path=" + file);
        assertTrue(said.contains("native library: from " + file), said);
    }

    @Test
    void aPropertyThatIsWrongIsNotPassedOver(@TempDir Path folder) throws Exception {
        String said = check(1, "-Dfencelock.library.path=" + folder.resolve("nothing"));
        assertTrue(said.contains("the property fencelock.library.path names"), said);
        Path broken = Files.writeString(folder.resolve("broken.so"), "no library");
        said = check(1, "-Dfencelock.library.path=" + broken);
        assertTrue(said.contains("the property fencelock.library.path names"), said);
    }

    @Test
    void fromTheLibraryPathOnAnotherPlatform(@TempDir Path folder) throws Exception {
        library(folder);
        String said = check(0, "-Dos.arch=sparc", "-Djava.library.path=" + folder);
        assertTrue(said.contains("native library: from java.library.path"), said);
    }

    @Test
    void nowhereIsAClearErrorEachTime(@TempDir Path folder) throws Exception {
        String said = check(1, "-Dos.arch=sparc", "-Djava.library.path=" + folder);
        assertTrue(said.contains("cannot be loaded on linux"), said);
        assertTrue(said.contains("-sparc"), said);
        assertTrue(said.contains("-Dfencelock.library.path=FILE"), said);
        try (Jvm jvm =
                Jvm.start(
                        List.of("-Dfencelock.library.path=/nothing"), Twice.class.getName())) {
            said = jvm.end(0);
            assertEquals(2, said.lines().filter(line -> line.contains("/nothing")).count(), said);
        }
    }

    @Test
    void fromAModule(@TempDir Path folder) throws Exception {
        List<String> options =
                new ArrayList<>(
                        List.of("--module-path", Jvm.place(FencelockClient.class)));
        if (Runtime.version().feature() >= 24) {
            options.add("--enable-native-access=io.fencelock");
            options.add("--illegal-native-access=deny");
        }
        try (Jvm jvm =
                Jvm.start(options, "--module", "io.fencelock/" + Check.class.getName())) {
            String said = jvm.end(0);
            assertTrue(said.contains("native library: from the jar"), said);
        }
    }

    /** A module that requires ours needs nothing else on its path, not even for its annotations. */
    @Test
    void aModuleIsCompiledAndRunWithTheJarAlone(@TempDir Path folder) throws Exception {
        Path sources = Files.createDirectories(folder.resolve("sources/shop"));
        Path module = sources.resolveSibling("module-info.java");
        Files.writeString(module, "module shop { requires io.fencelock; }");
        Path main = sources.resolve("Main.java");
        Files.writeString(
                main,
                """
                package shop;
                import io.fencelock.*;
                class Main {
                    public static void main(String[] args) throws Exception {
                        try (FencelockClient client = FencelockClient.connect("memory:");
                                Hold hold = client.lock("sale").tryAcquire()) {
                            System.out.println("held " + hold.isValid() + client.inspect("x"));
                        }
                    }
                }
                """);
        Path classes = folder.resolve("classes");
        StringWriter said = new StringWriter();
        String path = Jvm.place(FencelockClient.class);
        PrintWriter out = new PrintWriter(said);
        int status =
                ToolProvider.findFirst("javac")
                        .orElseThrow()
                        .run(
                                out,
                                out,
                                "--module-path",
                                path,
                                "-Xlint:all",
                                "-Werror",
                                "-d",
                                classes.toString(),
                                module.toString(),
                                main.toString());
        assertEquals(0, status, said.toString());
        List<String> running =
                new ArrayList<>(List.of("--module-path", path + File.pathSeparator + classes));
        if (Runtime.version().feature() >= 24) {
            running.add("--enable-native-access=io.fencelock");
        }
        try (Jvm jvm = Jvm.start(running, "--module", "shop/shop.Main")) {
            assertTrue(jvm.end(0).contains("held true"));
        }
    }

    /** The jar in a web application is loaded once for each, and again by each redeployment. */
    @Test
    void aSecondClassLoaderLoadsALibraryThatThePropertyNames(@TempDir Path folder)
            throws Exception {
        Path file = library(folder);
        List<String> options =
                new ArrayList<>(
                        List.of(
                                "-Dfencelock.library.path=" + file,
                                "-Dfencelock.library.tmpdir=" + folder));
        if (Runtime.version().feature() >= 24) {
            options.add("--enable-native-access=ALL-UNNAMED");
        }
        try (Jvm jvm = Jvm.start(options, Loaders.class.getName())) {
            String said = jvm.end(0);
            assertEquals(2, said.lines().filter(line -> line.equals("held true")).count(), said);
        }
        try (var left = Files.list(folder)) {
            assertEquals(List.of(file), left.toList(), "what was unpacked is removed");
        }
    }

    /** Uses the library through two loaders of its classes. */
    static final class Loaders {
        private Loaders() {}

        public static void main(String[] args) throws Exception {
            URL[] classes = {
                FencelockClient.class.getProtectionDomain().getCodeSource().getLocation(),
                Loaders.class.getProtectionDomain().getCodeSource().getLocation()
            };
            for (int i = 0; i < 2; i++) {
                try (URLClassLoader loader =
                        new URLClassLoader(classes, ClassLoader.getPlatformClassLoader())) {
                    Method main =
                            loader.loadClass(Once.class.getName())
                                    .getMethod("main", String[].class);
                    main.setAccessible(true);
                    main.invoke(null, (Object) args);
                }
            }
        }
    }

    /** Takes a lock. */
    static final class Once {
        private Once() {}

        public static void main(String[] args) throws Exception {
            try (FencelockClient client = FencelockClient.connect("memory:");
                    Hold hold = client.lock("loaded").acquire()) {
                System.out.println("held " + hold.isValid());
            }
        }
    }

    /** Tries twice, and says why it fails each time. */
    static final class Twice {
        private Twice() {}

        public static void main(String[] args) {
            for (int i = 0; i < 2; i++) {
                try {
                    FencelockClient.connect("memory:");
                } catch (UnsatisfiedLinkError e) {
                    System.out.println(e.getMessage());
                }
            }
        }
    }
}
