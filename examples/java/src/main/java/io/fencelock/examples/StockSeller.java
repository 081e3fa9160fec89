package io.fencelock.examples;

import io.fencelock.FencelockClient;
import java.nio.file.Path;

/**
 * One of several sellers, which may be written in any language: sells from the stock in a folder,
 * each sale under the lock, until nothing is left. {@code make demo WITH=java} lets it sell beside
 * others.
 */
public final class StockSeller {
    private StockSeller() {}

    /**
     * Sells.
     *
     * @param args the store's URL, the lock's name, the shop's folder, and what the seller is called
     * @throws Exception when it cannot sell
     */
    public static void main(String[] args) throws Exception {
        if (args.length != 4) {
            System.err.println("arguments: URL LOCK FOLDER NAME");
            System.exit(2);
        }
        try (FencelockClient client =
                FencelockClient.builder(args[0]).label(args[3]).connect()) {
            Seller.sell(client.lock(args[1]), new StockFile(Path.of(args[2]), args[3]));
        }
    }
}
