package io.fencelock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/** What the jar tells native-image is what the native side looks up: no more, and no less. */
class NativeImageTest {
    private static final Pattern CLASS = Pattern.compile("FindClass\\(\\w+, \"([^\"]+)\"");
    private static final Pattern METHOD =
            Pattern.compile("Get(?:Static)?MethodID\\(\\w+, (\\w+), \"(\\w+)\",\\s*\"([^\"]+)\"");
    private static final Pattern THROWS = Pattern.compile("ThrowNew\\(");
    private static final Pattern NAMED =
            Pattern.compile("\"name\": \"([^\"]+)\"(?:, \"parameterTypes\": \\[(.*)] })?");

    private static String metadata(String file) throws Exception {
        String place = "/META-INF/native-image/io.fencelock/fencelock/" + file;
        try (InputStream in = Native.class.getResourceAsStream(place)) {
            return new String(in.readAllBytes(), StandardCharsets.UTF_8);
        }
    }

    /** Of each class its methods, as a descriptor's parameters. */
    private static TreeMap<String, Set<String>> listed() throws Exception {
        TreeMap<String, Set<String>> listed = new TreeMap<>();
        Set<String> methods = null;
        Matcher named = NAMED.matcher(metadata("jni-config.json"));
        while (named.find()) {
            if (named.group(2) == null) {
                methods = new TreeSet<>();
                listed.put(named.group(1).replace('.', '/'), methods);
            } else {
                String types =
                        named.group(2)
                                .replaceAll("[\" ,]", "")
                                .replace("byte[]", "[B")
                                .replace("int", "I")
                                .replace("long", "J")
                                .replace("java.lang.String", "Ljava/lang/String;");
                methods.add(named.group(1) + "(" + types + ")");
            }
        }
        return listed;
    }

    @Test
    void theJarNamesWhatTheNativeSideLooksUp() throws Exception {
        StringBuilder text = new StringBuilder();
        Path sources =
                Path.of(
                        System.getProperty("fencelock.test.root"),
                        "bindings/java/fencelock/src/main/native");
        try (var files = Files.newDirectoryStream(sources, "*.c")) {
            for (Path file : files) {
                text.append(Files.readString(file));
            }
        }
        Set<String> classes = new TreeSet<>();
        CLASS.matcher(text).results().forEach(found -> classes.add(found.group(1)));
        assertTrue(THROWS.matcher(text).find());
        assertFalse(classes.isEmpty());
        assertEquals(classes, listed().keySet());
        Set<String> methods = new TreeSet<>();
        METHOD.matcher(text)
                .results()
                .forEach(
                        found -> {
                            String descriptor = found.group(3);
                            int end = descriptor.indexOf(')') + 1;
                            methods.add(found.group(2) + descriptor.substring(0, end));
                        });
        // What is thrown is made by its message.
        methods.add("<init>(Ljava/lang/String;)");
        Set<String> all = new TreeSet<>();
        listed().values().forEach(all::addAll);
        assertEquals(methods, all);
    }

    @Test
    void theLibraryIsAmongTheResources() throws Exception {
        Matcher pattern =
                Pattern.compile("\"pattern\": \"([^\"]+)\"")
                        .matcher(metadata("resource-config.json"));
        assertTrue(pattern.find());
        String library = Platform.current().resource().substring(1);
        assertTrue(library.matches(pattern.group(1)), library);
    }
}
