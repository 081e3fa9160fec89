import io.fencelock.ClientBuilder;
import io.fencelock.DistributedLock;
import io.fencelock.DistributedSemaphore;
import io.fencelock.FencelockClient;
import io.fencelock.FencelockFailure;
import io.fencelock.Hold;
import io.fencelock.LockTimeoutException;
import io.fencelock.Owner;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.Arrays;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Collectors;

/** The driver of Java: says what {@code io.fencelock} says. See ../README.md for the protocol. */
final class Driver {
    private static final Duration ENDLESS = Duration.ofSeconds(Long.MAX_VALUE);
    private static final Map<String, FencelockClient> CLIENTS = new ConcurrentHashMap<>();
    private static final Map<String, Hold> HOLDS = new ConcurrentHashMap<>();
    private static final Map<String, CompletableFuture<? extends Hold>> WAITS = new ConcurrentHashMap<>();

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            if (words[0].equals("leave")) System.exit(0);
            obey(words[0], words[1], Arrays.copyOfRange(words, 2, words.length));
        }
        Runtime.getRuntime().halt(0); // Whoever tells us what to do has gone.
    }

    private static void obey(String verb, String tag, String[] words) {
        switch (verb) {
            case "open" -> builder(words[0]).connectAsync().whenComplete((client, error) -> {
                if (error != null) {
                    failed("refused", tag, error);
                    return;
                }
                CLIENTS.put(tag, client);
                say("opened", tag, "id=" + client.id() + " knows=modes,conversions,resize");
            });
            case "acquire", "attach" -> {
                String rest = String.join(" ", Arrays.copyOfRange(words, 2, words.length));
                say("asked", tag, "client=" + words[0] + " lock=" + words[1] + " " + rest);
                FencelockClient client = CLIENTS.get(words[0]);
                await(tag, verb.equals("attach") ? client.attachAsync(words[1]) : begin(client, words));
            }
            case "cancel" -> {
                CompletableFuture<? extends Hold> wait = WAITS.get(tag);
                if (wait != null) wait.cancel(false);
            }
            case "look" -> {
                if (HOLDS.containsKey(tag)) say("seen", tag, trust(HOLDS.get(tag)));
            }
            case "ticket" -> {
                try {
                    say("ticket", tag, "text=" + HOLDS.get(tag).ticket());
                } catch (RuntimeException error) {
                    failed("failed", tag, error);
                }
            }
            case "release" -> {
                Hold hold = HOLDS.remove(tag);
                if (hold == null) return;
                say("release-asked", tag, trust(hold));
                hold.releaseAsync().whenComplete((done, error) -> {
                    if (error == null) say("released", tag, "");
                    else failed("unreleased", tag, error);
                });
            }
            case "downgrade" -> {
                if (!HOLDS.containsKey(tag)) return;
                say("downgrade-asked", tag, trust(HOLDS.get(tag)));
                converted(tag, HOLDS.get(tag), HOLDS.get(tag).downgradeAsync());
            }
            case "upgrade" -> {
                if (HOLDS.containsKey(tag)) converted(tag, HOLDS.get(tag), HOLDS.get(tag).tryUpgradeAsync());
            }
            case "drop" -> {
                say("drop-asked", tag, trust(HOLDS.get(tag)));
                HOLDS.remove(tag);
                say("dropped", tag, "");
                COLLECTING.start();
            }
            case "resize" -> resize(tag, CLIENTS.get(words[0]), words[1], Integer.parseInt(words[2]));
            case "list" -> CLIENTS.get(words[0]).listAsync("", Integer.parseInt(words[1]))
                    .whenComplete((names, error) -> {
                        if (error != null) failed("failed", tag, error);
                        else say("listed", tag, "count=" + names.size());
                    });
            case "name" -> {
                try {
                    CLIENTS.get(words[0]).lock(NAMES.get(words[1]));
                    say("named", tag, "");
                } catch (RuntimeException error) {
                    failed("failed", tag, error);
                }
            }
            case "close" -> close(tag, words.length == 0 ? null : words[0].substring("drain=".length()));
            default -> { }
        }
    }

    private static final Map<String, String> NAMES =
            Map.of("empty", "", "nul", "a\0b", "long", "x".repeat(513), "half", "half \uD83D");

    /** What nobody can reach any more is seen only by a collection. */
    private static final Thread COLLECTING = new Thread(() -> {
        for (int i = 0; i < 100; i++) {
            System.gc();
            LockSupport.parkNanos(100_000_000);
        }
    });

    static {
        COLLECTING.setDaemon(true);
    }

    private static ClientBuilder builder(String url) {
        return FencelockClient.builder(url).shutdownGrace(Duration.ofMillis(200)).shutdownDrain(Duration.ZERO);
    }

    private static void close(String tag, String drain) {
        Duration limit = drain == null ? Duration.ZERO : drain.equals("endless") ? ENDLESS : span(drain);
        CLIENTS.get(tag).closeAsync(limit).whenComplete((done, error) -> {
            boolean left = error instanceof LockTimeoutException;
            if (error != null && !left) failed("failed", tag, error);
            else say("closed", tag, "all=" + (left ? "no" : drain == null ? "silent" : "yes"));
        });
    }

    private static CompletableFuture<? extends Hold> begin(FencelockClient client, String[] words) {
        Map<String, String> options = Arrays.stream(words).filter(it -> it.contains("="))
                .map(it -> it.split("=", 2)).collect(Collectors.toMap(it -> it[0], it -> it[1]));
        String mode = options.getOrDefault("mode", "exclusive");
        if (mode.startsWith("permits:")) return take(client, words[1], mode.substring(8).split("/"), options);
        boolean shared = mode.equals("shared");
        DistributedLock lock = shared ? client.readWriteLock(words[1]).readLock() : client.lock(words[1]);
        String owner = options.get("owner");
        lock = owner == null ? lock.nonReentrant() : lock.withOwner(Owner.of(owner));
        if (options.containsKey("lease")) lock = lock.withLease(span(options.get("lease")));
        String wait = options.getOrDefault("wait", "forever");
        return switch (wait) {
            case "try" -> lock.acquireAsync(Duration.ZERO);
            case "forever" -> lock.acquireAsync();
            case "endless" -> lock.acquireAsync(ENDLESS);
            default -> lock.acquireAsync(span(wait));
        };
    }

    private static CompletableFuture<? extends Hold> take(
            FencelockClient client, String name, String[] numbers, Map<String, String> options) {
        int count = Integer.parseInt(numbers[0]);
        DistributedSemaphore semaphore = client.semaphore(name, Integer.parseInt(numbers[1]));
        if (options.containsKey("adopt")) semaphore = semaphore.adopting();
        if (options.containsKey("lease")) semaphore = semaphore.withLease(span(options.get("lease")));
        String wait = options.getOrDefault("wait", "forever");
        return switch (wait) {
            case "try" -> semaphore.acquireAsync(count, Duration.ZERO);
            case "forever" -> semaphore.acquireAsync(count);
            case "endless" -> semaphore.acquireAsync(count, ENDLESS);
            default -> semaphore.acquireAsync(count, span(wait));
        };
    }

    private static void resize(String tag, FencelockClient client, String name, int permits) {
        say("resize-asked", tag, "lock=" + name + " of=" + permits);
        client.semaphore(name, permits).resizeAsync(permits).whenComplete((used, error) -> {
            if (error != null) failed("failed", tag, error);
            else say("resized", tag, "used=" + (used ? "yes" : "no"));
        });
    }

    private static void await(String tag, CompletableFuture<? extends Hold> wait) {
        WAITS.put(tag, wait);
        wait.whenComplete((hold, error) -> {
            WAITS.remove(tag);
            if (error != null) {
                if (wait.isCancelled()) say("failed", tag, "kind=cancelled");
                else failed("failed", tag, error);
                return;
            }
            HOLDS.put(tag, hold);
            say("granted", tag, "lock=" + hold.name() + " token=" + hold.token()
                    + " abandoned=" + hold.previousAbandoned() + " reentry=" + hold.isReentry()
                    + " " + trust(hold));
            hold.lost().thenAccept(reason -> say("lost", tag, "reason=" + reason));
        });
    }

    private static void converted(String tag, Hold hold, CompletableFuture<?> change) {
        change.whenComplete((done, error) -> {
            if (error != null) failed("unconverted", tag, error);
            else if (Boolean.FALSE.equals(done)) say("unconverted", tag, "kind=contended");
            else say("converted", tag, "token=" + hold.token() + " mode=" + hold.mode().name().toLowerCase(Locale.ROOT));
        });
    }

    /** How far a hold is trusted, by a clock that was read before. */
    private static String trust(Hold hold) {
        long now = System.nanoTime();
        return "until=" + (now + hold.remaining().toNanos()) + " valid=" + hold.isValid();
    }

    private static void failed(String event, String tag, Throwable error) {
        Throwable cause = error instanceof CompletionException ? error.getCause() : error;
        String kind = cause instanceof FencelockFailure known ? known.code().label() : "internal";
        say(event, tag, "kind=" + kind + " why=" + String.valueOf(cause.getMessage()).replace(' ', '_'));
    }

    private static Duration span(String text) {
        return Duration.ofMillis(Long.parseLong(text.substring(0, text.length() - 2)));
    }

    /** In one piece. */
    private static synchronized void say(String event, String tag, String more) {
        System.out.println(System.nanoTime() + " " + System.currentTimeMillis() + "000000 " + event + " "
                + tag + " " + more);
    }
}
