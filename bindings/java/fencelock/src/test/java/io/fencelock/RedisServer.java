package io.fencelock;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;

/** A real server as a process on a free port, ended with this virtual machine at the latest. */
final class RedisServer implements AutoCloseable {
    private static RedisServer shared;

    private final Process process;
    private final int port;

    private RedisServer(Process process, int port) {
        this.process = process;
        this.port = port;
    }

    /** The server that the tests share. */
    static synchronized RedisServer shared() {
        if (shared == null) {
            shared = start();
            Runtime.getRuntime().addShutdownHook(new Thread(shared::close));
        }
        return shared;
    }

    static RedisServer start() {
        String program = System.getenv().getOrDefault("REDIS_SERVER", "redis-server");
        try {
            Path folder = Files.createTempDirectory("fl-redis");
            for (int attempt = 0; ; attempt++) {
                int port = freePort();
                Process process =
                        new ProcessBuilder(
                                        program,
                                        "--port",
                                        String.valueOf(port),
                                        "--bind",
                                        "127.0.0.1",
                                        "--save",
                                        "",
                                        "--appendonly",
                                        "no",
                                        "--dir",
                                        folder.toString())
                                .redirectErrorStream(true)
                                .redirectOutput(folder.resolve("log").toFile())
                                .start();
                RedisServer server = new RedisServer(process, port);
                // Another program may have taken the port meanwhile.
                Wait.until("redis-server answers", () -> server.answers() || !process.isAlive());
                if (process.isAlive()) {
                    return server;
                }
                if (attempt == 4) {
                    throw new IllegalStateException(Files.readString(folder.resolve("log")));
                }
            }
        } catch (IOException e) {
            throw new UncheckedIOException(program + " cannot be started", e);
        }
    }

    private static int freePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return socket.getLocalPort();
        }
    }

    private boolean answers() {
        try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), port)) {
            socket.setSoTimeout(5000);
            socket.getOutputStream().write("PING\r\n".getBytes());
            return new String(socket.getInputStream().readNBytes(5)).equals("+PONG");
        } catch (IOException e) {
            return false;
        }
    }

    String url() {
        return "redis://127.0.0.1:" + port;
    }

    /** From now on it keeps its connections, and answers nothing. */
    void stop() {
        signal("STOP");
    }

    /** Lets it go on. */
    void resume() {
        signal("CONT");
    }

    private void signal(String name) {
        try {
            Process kill =
                    new ProcessBuilder("kill", "-" + name, String.valueOf(process.pid())).start();
            if (kill.waitFor() != 0) {
                throw new IllegalStateException("redis-server does not take the signal " + name);
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    @Override
    public void close() {
        kill();
    }

    /** Ends it, with its connections. */
    void kill() {
        // It may be stopped, and has nothing to save.
        process.destroyForcibly();
        try {
            process.waitFor(30, TimeUnit.SECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
