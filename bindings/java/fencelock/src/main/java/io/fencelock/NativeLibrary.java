package io.fencelock;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Finds and loads the native library: the file that the property {@value #PATH} names, and no other
 * if it is set; or the one in the jar for this platform, which is unpacked into a folder of its own;
 * or the one in {@code java.library.path}.
 */
final class NativeLibrary {
    static final String NAME = "fencelock_java";
    static final String PATH = "fencelock.library.path";
    static final String FOLDER = "fencelock.library.tmpdir";

    private static @Nullable String origin;
    private static @Nullable String failure;

    private NativeLibrary() {}

    /**
     * Loads the library the first time.
     *
     * @throws UnsatisfiedLinkError each time with the reason, when it could not be loaded
     */
    static synchronized void require() {
        if (origin != null) {
            return;
        }
        if (failure == null) {
            try {
                load();
                return;
            } catch (UnsatisfiedLinkError e) {
                failure = e.getMessage();
            }
        }
        throw new UnsatisfiedLinkError(failure);
    }

    private static void load() {
        String chosen = System.getProperty(PATH);
        if (chosen != null) {
            Path path = Path.of(chosen).toAbsolutePath();
            try {
                loadFile(path);
            } catch (UnsatisfiedLinkError e) {
                throw failed("the property " + PATH + " names " + path + ": " + e.getMessage());
            }
            origin = path.toString();
            return;
        }
        Platform platform = Platform.current();
        List<String> tried = new ArrayList<>();
        if (loadFromJar(platform, tried)) {
            return;
        }
        try {
            loadFile(inLibraryPath());
            origin = "java.library.path";
        } catch (UnsatisfiedLinkError e) {
            tried.add("in java.library.path: " + e.getMessage());
            throw failed(String.join("; ", tried));
        }
    }

    private static Path inLibraryPath() {
        String file = System.mapLibraryName(NAME);
        for (String folder : System.getProperty("java.library.path", "").split(File.pathSeparator)) {
            Path path = Path.of(folder, file).toAbsolutePath();
            if (Files.exists(path)) {
                return path;
            }
        }
        throw new UnsatisfiedLinkError("there is no " + file);
    }

    /** A virtual machine loads a file for one class loader only: another one gets a copy. */
    @SuppressWarnings("restricted") // declared in the manifest and described in docs/java.md
    private static void loadFile(Path path) {
        try {
            System.load(path.toString());
        } catch (UnsatisfiedLinkError e) {
            try (InputStream library = Files.newInputStream(path)) {
                loadUnpacked(library, path.getFileName().toString());
            } catch (IOException | UnsatisfiedLinkError second) {
                throw e;
            }
        }
    }

    /** Where it was found, for people. */
    static String origin() {
        return String.valueOf(origin);
    }

    private static UnsatisfiedLinkError failed(String why) {
        return new UnsatisfiedLinkError(
                "the native library of Fencelock cannot be loaded on "
                        + Platform.current()
                        + ": "
                        + why
                        + ". Use a jar that has this platform, or name the library's file by -D"
                        + PATH
                        + "=FILE");
    }

    private static boolean loadFromJar(Platform platform, List<String> tried) {
        try (InputStream library = NativeLibrary.class.getResourceAsStream(platform.resource())) {
            if (library == null) {
                tried.add("the jar has no " + platform.resource());
                return false;
            }
            loadUnpacked(library, platform.file());
            origin = "the jar, " + platform.resource();
            return true;
        } catch (IOException | UnsatisfiedLinkError e) {
            tried.add(
                    "the one in the jar could not be unpacked and loaded, see the property "
                            + FOLDER
                            + " for a folder where files may be run: "
                            + e.getMessage());
            return false;
        }
    }

    @SuppressWarnings("restricted")
    private static void loadUnpacked(InputStream library, String name) throws IOException {
        Path file = unpack(library, name);
        try {
            System.load(file.toString());
        } finally {
            remove(file);
        }
    }

    /** Each virtual machine and class loader gets a file of its own, which nobody else can write. */
    private static Path unpack(InputStream library, String name) throws IOException {
        String parent = System.getProperty(FOLDER);
        Path folder =
                parent == null
                        ? Files.createTempDirectory("fencelock")
                        : Files.createTempDirectory(Path.of(parent), "fencelock");
        Path file = folder.resolve(name);
        Files.copy(library, file);
        return file;
    }

    /** A loaded library needs its file no more; Windows alone keeps it until the end. */
    private static void remove(Path file) {
        Path folder = file.getParent();
        try {
            Files.delete(file);
            Files.delete(folder);
        } catch (IOException e) {
            folder.toFile().deleteOnExit();
            file.toFile().deleteOnExit();
        }
    }
}
