package io.fencelock.examples;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.concurrent.CountDownLatch;

/**
 * What the lock protects: a stock that sellers read, think about, and write. It believes what they
 * write, but refuses a fencing token below the highest that it has seen.
 */
final class Shop implements AutoCloseable {
    private final ServerSocket door = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
    private final CountDownLatch opening;
    private final Mishap mishap;
    private int stock;
    private int sold;
    private int refused;
    private int abandoned;
    private long highestToken;
    private boolean lotDrawn;

    /** What befalls the first seller that asks, in the middle of its sale. */
    interface Mishap {
        /** Returns when the seller may go on, if it still can. */
        void befall(long process) throws Exception;
    }

    /** Sellers see the stock as soon as so many of them have asked for it. */
    Shop(int stock, int sellers, Mishap mishap) throws IOException {
        this.stock = stock;
        this.mishap = mishap;
        opening = new CountDownLatch(sellers);
        Thread greeter = new Thread(this::greet, "shop");
        greeter.setDaemon(true);
        greeter.start();
    }

    int port() {
        return door.getLocalPort();
    }

    private void greet() {
        try {
            for (; ; ) {
                Socket seller = door.accept();
                Thread counter = new Thread(() -> serve(seller), "counter");
                counter.setDaemon(true);
                counter.start();
            }
        } catch (IOException e) {
            // The shop is closed.
        }
    }

    private void serve(Socket seller) {
        try (seller) {
            BufferedReader in = new BufferedReader(new InputStreamReader(seller.getInputStream()));
            PrintStream out = new PrintStream(seller.getOutputStream(), true);
            boolean first = true;
            for (String line; (line = in.readLine()) != null; ) {
                String[] words = line.split(" ");
                switch (words[0]) {
                    case "STOCK" -> {
                        if (first) {
                            opening.countDown();
                            opening.await();
                            first = false;
                        }
                        out.println(stock());
                    }
                    case "LOT" -> {
                        if (drawLot()) {
                            mishap.befall(Long.parseLong(words[1]));
                        }
                        out.println("GO");
                    }
                    case "SELL" ->
                            out.println(
                                    sell(
                                            Integer.parseInt(words[1]),
                                            Long.parseLong(words[2]),
                                            words[3].equals("YES")));
                    default -> throw new IOException("a seller said: " + line);
                }
            }
        } catch (Exception e) {
            // A seller that was killed says nothing more.
        }
    }

    private synchronized int stock() {
        return stock;
    }

    private synchronized boolean drawLot() {
        boolean drawn = mishap != null && !lotDrawn;
        lotDrawn |= drawn;
        return drawn;
    }

    /** Writes what the seller makes of the stock that it saw. */
    private synchronized String sell(int seen, long token, boolean predecessorAbandoned) {
        if (predecessorAbandoned) {
            abandoned++;
        }
        if (token < highestToken) {
            refused++;
            return "REFUSED";
        }
        highestToken = token;
        stock = seen - 1;
        sold++;
        notifyAll();
        return "SOLD";
    }

    /** Waits until so many more are sold, or none are left. */
    synchronized void awaitSales(int more) throws InterruptedException {
        int enough = sold + more;
        while (sold < enough && stock > 0) {
            wait();
        }
    }

    synchronized int sold() {
        return sold;
    }

    synchronized int refused() {
        return refused;
    }

    synchronized int abandoned() {
        return abandoned;
    }

    @Override
    public void close() throws IOException {
        door.close();
    }
}
