package io.fencelock;

/**
 * Run by {@code java -jar fencelock.jar [URL]}: shows whether the native library can be loaded here
 * and, with a URL, whether its store answers.
 */
final class Check {
    private Check() {}

    /**
     * Prints what it finds.
     *
     * @param args nothing, or the URL of a store
     */
    public static void main(String[] args) {
        System.out.println("platform: " + Platform.current());
        System.out.println("version: " + FencelockClient.version());
        System.out.println("native library: from " + NativeLibrary.origin());
        if (args.length > 0) {
            try (FencelockClient client = FencelockClient.connect(args[0])) {
                System.out.println("store: " + client.capabilities());
                System.out.println("its time: " + client.ping());
            } catch (FencelockException e) {
                System.out.println("store: " + e.code().label() + ": " + e.getMessage());
                System.exit(1);
            }
        }
    }
}
