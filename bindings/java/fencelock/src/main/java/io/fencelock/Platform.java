package io.fencelock;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;

/** The platform that this virtual machine runs on, as the folders in the jar are named. */
record Platform(String os, String arch) {
    static Platform current() {
        String os = System.getProperty("os.name", "").toLowerCase(Locale.ROOT);
        String family;
        if (os.startsWith("linux")) {
            family = isMusl() ? "linux-musl" : "linux";
        } else if (os.startsWith("mac")) {
            family = "macos";
        } else if (os.startsWith("windows")) {
            family = "windows";
        } else {
            family = os.replaceAll("[^a-z0-9]+", "_");
        }
        String arch = System.getProperty("os.arch", "").toLowerCase(Locale.ROOT);
        return new Platform(
                family,
                switch (arch) {
                    case "amd64", "x86_64", "x64" -> "x86_64";
                    case "aarch64", "arm64" -> "aarch64";
                    default -> arch;
                });
    }

    /** Whether the virtual machine itself runs on musl: it is mapped into this process then. */
    private static boolean isMusl() {
        try {
            return Files.readString(Path.of("/proc/self/maps")).contains("/ld-musl-");
        } catch (IOException e) {
            return false;
        }
    }

    /** The file that {@link System#loadLibrary} would look for. */
    String file() {
        return System.mapLibraryName(NativeLibrary.NAME);
    }

    /** Where the library lies in the jar. No package has such a name, so a module can have it. */
    String resource() {
        return "/io/fencelock/native/" + this + "/" + file();
    }

    @Override
    public String toString() {
        return os + "-" + arch;
    }
}
