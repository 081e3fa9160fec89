package fencelock.curator;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Collection;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.framework.recipes.locks.Revoker;
import org.apache.curator.retry.RetryForever;

/**
 * Curator's client in a process of its own. It does what it is told, line by line, and says what
 * happens; it decides nothing. A lock belongs to a thread here, so each tag has a thread.
 *
 * <pre>
 * open CLIENT CONNECT SESSION_MS      opened CLIENT
 * acquire TAG CLIENT PATH [WAIT_MS]   asked TAG, then granted TAG at=… node=… token=… | timeout TAG
 * read TAG CLIENT PATH [WAIT_MS]      the same, to read; write: to write, by a read-write lock
 * revocable TAG CLIENT PATH           the same; `wanted TAG` when somebody asks for it
 * take TAG CLIENT PATH OF [COUNT]     asked TAG, then granted TAG: permits of a semaphore
 * back TAG                            returned TAG: all of them
 * crowd TAG CLIENT PATH OF N FOLDER   crowded TAG over=…: N times, each with a file, of which there are never more than OF
 * release TAG                         released TAG at=… (when it was called) | failed TAG why
 * participants CLIENT PATH            participants CLIENT node,node…
 * revoke CLIENT NODE                  revoking CLIENT
 * contend TAG CLIENT PATH N FOLDER    contended TAG: N times, each with a mark that excludes others
 * measure KIND CLIENT PATH COUNT      measured KIND nanoseconds
 * close CLIENT                        closed CLIENT
 * </pre>
 *
 * Instants are nanoseconds of the machine's monotonic clock, which all processes share.
 */
public final class Driver {
    private final Map<String, CuratorFramework> clients = new ConcurrentHashMap<>();
    private final Map<String, ExecutorService> threads = new ConcurrentHashMap<>();
    private final Map<String, InterProcessMutex> locks = new ConcurrentHashMap<>();
    private final Map<String, Collection<Lease>> leases = new ConcurrentHashMap<>();

    /** A mutex that says which node it has. */
    static final class Mutex extends InterProcessMutex {
        Mutex(CuratorFramework client, String path) {
            super(client, path);
        }

        String node() {
            return getLockPath();
        }
    }

    private interface Step {
        void run() throws Exception;
    }

    public static void main(String[] args) throws Exception {
        Driver driver = new Driver();
        BufferedReader input =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] words = line.split(" ");
            String tag = words[1];
            switch (words[0]) {
                // Those that wait have a thread each.
                case "acquire", "read", "write", "revocable", "release", "contend", "measure", "take", "back", "crowd" -> driver.threads
                        .computeIfAbsent(tag, it -> Executors.newSingleThreadExecutor())
                        .execute(() -> attempt(tag, () -> driver.obey(words)));
                default -> attempt(tag, () -> driver.obey(words));
            }
        }
        // Whoever tells us what to do has gone: end as a crash would.
        Runtime.getRuntime().halt(0);
    }

    private static void attempt(String tag, Step step) {
        try {
            step.run();
        } catch (Exception error) {
            say("failed " + tag + " " + error);
        }
    }

    static void say(String line) {
        System.out.println(line);
    }

    private void obey(String[] words) throws Exception {
        String tag = words[1];
        switch (words[0]) {
            case "open" -> {
                CuratorFramework client = CuratorFrameworkFactory.newClient(
                        words[2], Integer.parseInt(words[3]), 5000, new RetryForever(50));
                client.start();
                client.blockUntilConnected();
                clients.put(tag, client);
                say("opened " + tag);
            }
            case "read", "write" -> {
                InterProcessReadWriteLock both =
                        new InterProcessReadWriteLock(clients.get(words[2]), words[3]);
                if (words[0].equals("read")) {
                    acquire(tag, words, both.readLock(), both.readLock()::getLockPath);
                } else {
                    acquire(tag, words, both.writeLock(), both.writeLock()::getLockPath);
                }
            }
            case "acquire", "revocable" -> {
                Mutex lock = new Mutex(clients.get(words[2]), words[3]);
                if (words[0].equals("revocable")) {
                    lock.makeRevocable(it -> say("wanted " + tag));
                }
                acquire(tag, words, lock, lock::node);
            }
            case "release" -> {
                long at = System.nanoTime();
                locks.remove(tag).release();
                say("released " + tag + " at=" + at);
            }
            case "participants" -> {
                Mutex lock = new Mutex(clients.get(tag), words[2]);
                say("participants " + tag + " " + String.join(",", lock.getParticipantNodes()));
            }
            case "revoke" -> {
                Revoker.attemptRevoke(clients.get(tag), words[2]);
                say("revoking " + tag);
            }
            case "contend" -> contend(tag, words);
            case "take" -> {
                InterProcessSemaphoreV2 semaphore = semaphore(words);
                say("asked " + tag);
                leases.put(tag, semaphore.acquire(words.length > 5 ? Integer.parseInt(words[5]) : 1));
                say("granted " + tag);
            }
            case "back" -> {
                for (Lease lease : leases.remove(tag)) {
                    lease.close();
                }
                say("returned " + tag);
            }
            case "crowd" -> crowd(tag, words);
            case "measure" -> {
                int count = Integer.parseInt(words[4]);
                say("measured " + tag + " " + Measure.run(tag, clients.get(words[2]), words[3], count));
            }
            case "close" -> {
                clients.remove(tag).close();
                say("closed " + tag);
            }
            default -> throw new IllegalArgumentException(words[0]);
        }
    }

    private void acquire(String tag, String[] words, InterProcessMutex lock, Supplier<String> node)
            throws Exception {
        say("asked " + tag);
        long wait = words.length > 4 ? Long.parseLong(words[4]) : 600_000;
        if (lock.acquire(wait, TimeUnit.MILLISECONDS)) {
            long at = System.nanoTime();
            locks.put(tag, lock);
            say("granted " + tag + " at=" + at + " node=" + node.get() + " token="
                    + token(words[2], node.get()));
        } else {
            say("timeout " + tag);
        }
    }

    /** What a service that fences would use: comparable with the tokens of ours. */
    private long token(String client, String node) throws Exception {
        return clients.get(client).checkExists().forPath(node).getCzxid() * 1024;
    }

    private InterProcessSemaphoreV2 semaphore(String[] words) {
        return new InterProcessSemaphoreV2(clients.get(words[2]), words[3], Integer.parseInt(words[4]));
    }

    /** Each permit is a file while it is out; of more than there are, it was one too many. */
    private void crowd(String tag, String[] words) throws Exception {
        InterProcessSemaphoreV2 semaphore = semaphore(words);
        Path folder = Path.of(words[6]);
        int over = 0;
        for (int turn = 0; turn < Integer.parseInt(words[5]); turn++) {
            Lease lease = semaphore.acquire();
            Path mark = Files.createFile(folder.resolve(tag + turn));
            try (Stream<Path> out = Files.list(folder)) {
                over += out.count() > Integer.parseInt(words[4]) ? 1 : 0;
            }
            Files.delete(mark);
            lease.close();
        }
        say("crowded " + tag + " over=" + over);
    }

    /** Each hold makes a file that must not be there, writes its token, and takes the file away. */
    private void contend(String tag, String[] words) throws Exception {
        Mutex lock = new Mutex(clients.get(words[2]), words[3]);
        Path folder = Path.of(words[5]);
        int overlaps = 0;
        for (int turn = 0; turn < Integer.parseInt(words[4]); turn++) {
            lock.acquire();
            boolean alone = true;
            try {
                Files.createFile(folder.resolve("held"));
            } catch (FileAlreadyExistsException error) {
                alone = false;
                overlaps++;
            }
            String entry = token(words[2], lock.node()) + " curator-" + tag + "\n";
            Files.writeString(folder.resolve("tokens"), entry,
                    StandardOpenOption.CREATE, StandardOpenOption.APPEND);
            if (alone) {
                Files.delete(folder.resolve("held"));
            }
            lock.release();
        }
        say("contended " + tag + " overlaps=" + overlaps);
    }
}
