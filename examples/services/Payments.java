import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import io.fencelock.FencelockClient;
import io.fencelock.FencelockException;
import io.fencelock.Hold;
import io.fencelock.NotHeldException;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.concurrent.Executors;

/**
 * The second service: re-enters the lock by the ticket that it is given, and passes its own on.
 *
 * <p>{@code java -cp … Payments.java STORE URL-OF-SHIPPING} says on which address it listens.
 */
public final class Payments {
    private final FencelockClient locks;
    private final String shipping;
    private final HttpClient http = HttpClient.newHttpClient();

    private Payments(FencelockClient locks, String shipping) {
        this.locks = locks;
        this.shipping = shipping;
    }

    private void serve(HttpExchange exchange) throws IOException {
        String ticket = exchange.getRequestHeaders().getFirst("X-Lock-Ticket");
        Answer answer;
        try {
            answer =
                    ticket == null
                            ? new Answer(400, "X-Lock-Ticket is missing\n")
                            : pay(ticket, exchange.getRequestURI());
        } catch (NotHeldException e) {
            answer = new Answer(409, "the request with this ticket is over\n");
        } catch (FencelockException e) {
            answer = new Answer(e.isRetryable() ? 503 : 500, e.getMessage() + "\n");
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            answer = new Answer(503, "payments is closing\n");
        }
        byte[] body = answer.text().getBytes();
        try (exchange) {
            exchange.sendResponseHeaders(answer.status(), body.length);
            exchange.getResponseBody().write(body);
        }
    }

    private record Answer(int status, String text) {}

    private Answer pay(String ticket, URI path) throws IOException, InterruptedException {
        try (Hold hold = locks.attach(ticket)) {
            HttpRequest request =
                    HttpRequest.newBuilder(URI.create(shipping + path))
                            .header("X-Lock-Ticket", hold.ticket())
                            .POST(HttpRequest.BodyPublishers.noBody())
                            .build();
            HttpResponse<String> shipped =
                    http.send(request, HttpResponse.BodyHandlers.ofString());
            return new Answer(
                    shipped.statusCode(), "payments " + hold.token() + "\n" + shipped.body());
        }
    }

    public static void main(String[] args) throws IOException {
        FencelockClient locks = FencelockClient.builder(args[0]).label("payments").connect();
        HttpServer server =
                HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.createContext("/", new Payments(locks, args[1])::serve);
        server.setExecutor(Executors.newCachedThreadPool());
        server.start();
        System.out.println("http://127.0.0.1:" + server.getAddress().getPort());
    }
}
