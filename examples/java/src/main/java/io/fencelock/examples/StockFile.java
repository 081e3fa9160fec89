package io.fencelock.examples;

import io.fencelock.Hold;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;

/**
 * The stock in a folder, as two text files that know nothing of locks. {@code stock} says LEFT
 * NEWEST: how many are left, and the highest token that has written. {@code sales} has a line for
 * each sale, SELLER TOKEN FROM TO, with times in microseconds.
 */
final class StockFile implements Counter {
    private final Path stock;
    private final Path sales;
    private final Path next;
    private final String seller;

    StockFile(Path folder, String seller) {
        stock = folder.resolve("stock");
        sales = folder.resolve("sales");
        next = folder.resolve("stock." + ProcessHandle.current().pid());
        this.seller = seller;
    }

    private record Stock(int left, long newest) {}

    private Stock read() throws IOException {
        String[] words = Files.readString(stock).strip().split(" ");
        return new Stock(Integer.parseInt(words[0]), Long.parseLong(words[1]));
    }

    private static long micros() {
        return System.nanoTime() / 1000;
    }

    @Override
    public boolean sell(Hold hold) throws IOException, InterruptedException {
        long from = micros();
        Stock seen = read();
        if (seen.left() == 0) {
            return false;
        }
        Thread.sleep(1);
        long token = hold == null ? 0 : hold.token();
        long newest = read().newest();
        if (token < newest) {
            throw new IOException("token " + token + " is refused: " + newest + " has written");
        }
        Files.writeString(
                sales,
                seller + " " + token + " " + from + " " + micros() + "\n",
                StandardOpenOption.CREATE,
                StandardOpenOption.APPEND);
        // In one step, so that nobody reads half of it.
        Files.writeString(next, (seen.left() - 1) + " " + token + "\n");
        Files.move(next, stock, StandardCopyOption.ATOMIC_MOVE);
        return true;
    }
}
