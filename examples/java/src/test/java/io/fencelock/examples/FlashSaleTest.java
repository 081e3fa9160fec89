package io.fencelock.examples;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeFalse;

import io.fencelock.FencelockClient;
import java.io.File;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** The sale as a user runs it. The property {@code fencelock.test.stores} names the stores. */
class FlashSaleTest {
    private static void play(String... arguments) throws Exception {
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.add("-cp");
        command.add(place(FencelockClient.class) + File.pathSeparator + place(FlashSale.class));
        command.add(FlashSale.class.getName());
        command.addAll(List.of(arguments));
        Process sale = new ProcessBuilder(command).redirectErrorStream(true).start();
        String said = new String(sale.getInputStream().readAllBytes());
        System.out.print(said);
        assertEquals(0, sale.waitFor(), said);
        assertTrue(said.contains("the books are right"), said);
    }

    private static String place(Class<?> type) throws Exception {
        return Path.of(type.getProtectionDomain().getCodeSource().getLocation().toURI()).toString();
    }

    @Test
    void onSqlite() throws Exception {
        play();
    }

    @Test
    void onRedis() throws Exception {
        int port;
        try (ServerSocket free = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            port = free.getLocalPort();
        }
        String program = System.getenv().getOrDefault("REDIS_SERVER", "redis-server");
        Process server =
                new ProcessBuilder(
                                program, "--port", "" + port, "--bind", "127.0.0.1", "--save", "")
                        .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                        .start();
        try {
            for (int i = 0; i < 300; i++) {
                try {
                    new Socket(InetAddress.getLoopbackAddress(), port).close();
                    break;
                } catch (java.net.ConnectException e) {
                    TimeUnit.MILLISECONDS.sleep(100);
                }
            }
            play("redis://127.0.0.1:" + port);
        } finally {
            server.destroyForcibly().waitFor();
        }
    }

    @Test
    void onAnotherStore() throws Exception {
        String store = System.getProperty("fencelock.example.store", "");
        assumeFalse(store.isEmpty(), "no other store was named by fencelock.example.store");
        play(store);
    }
}
