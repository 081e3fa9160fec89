package io.fencelock.examples;

import io.fencelock.Abandoned;
import io.fencelock.DistributedLock;
import io.fencelock.FencelockClient;
import io.fencelock.Hold;
import io.fencelock.LockLostException;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.Socket;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;

/** One process of the sale: threads that sell until nothing is left. */
final class Seller {
    private Seller() {}

    /** Arguments: port of the shop, threads, mishaps or none, and for a lock its store and name. */
    public static void main(String[] args) throws Exception {
        int port = Integer.parseInt(args[0]);
        int threads = Integer.parseInt(args[1]);
        boolean mishaps = args[2].equals("mishaps");
        FencelockClient client = args.length > 3 ? connect(args[3], mishaps) : null;
        DistributedLock lock = client == null ? null : client.lock(args[4]);
        List<Thread> team = new ArrayList<>();
        for (int i = 0; i < threads; i++) {
            Thread thread = new Thread(() -> sell(port, lock, mishaps));
            thread.start();
            team.add(thread);
        }
        for (Thread thread : team) {
            thread.join();
        }
        if (client != null) {
            client.close();
        }
    }

    private static FencelockClient connect(String store, boolean mishaps) {
        // Short when somebody is to be lost, so that nobody waits long.
        return FencelockClient.builder(store)
                .lease(mishaps ? Duration.ofSeconds(1) : Duration.ofSeconds(30))
                .claim(Duration.ofMillis(500))
                .label("flash sale")
                .connect();
    }

    private static void sell(int port, DistributedLock lock, boolean mishaps) {
        try (Socket shop = new Socket(InetAddress.getLoopbackAddress(), port)) {
            BufferedReader in = new BufferedReader(new InputStreamReader(shop.getInputStream()));
            PrintStream out = new PrintStream(shop.getOutputStream(), true);
            sell(lock, hold -> serve(in, out, hold, mishaps));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    /** Sells until nothing is left, each sale under the lock, if there is one. */
    static void sell(DistributedLock lock, Counter counter) throws Exception {
        boolean open = true;
        while (open) {
            if (lock == null) {
                open = counter.sell(null);
                continue;
            }
            try (Hold hold = lock.acquire()) {
                open = counter.sell(hold);
            } catch (LockLostException e) {
                // What was written too late, the shop has refused.
            }
        }
    }

    /** The critical section: read, think, write. False when nothing is left. */
    private static boolean serve(BufferedReader in, PrintStream out, Hold hold, boolean mishaps)
            throws IOException, InterruptedException {
        int stock = Integer.parseInt(ask(in, out, "STOCK"));
        if (stock <= 0) {
            return false;
        }
        if (mishaps) {
            ask(in, out, "LOT " + ProcessHandle.current().pid());
        }
        Thread.sleep(ThreadLocalRandom.current().nextInt(2));
        long token = hold == null ? 0 : hold.token();
        boolean abandoned = hold != null && hold.previousAbandoned() == Abandoned.YES;
        ask(in, out, "SELL " + stock + " " + token + " " + (abandoned ? "YES" : "NO"));
        return true;
    }

    private static String ask(BufferedReader in, PrintStream out, String question)
            throws IOException {
        out.println(question);
        String answer = in.readLine();
        if (answer == null) {
            throw new IOException("the shop is closed");
        }
        return answer;
    }
}
