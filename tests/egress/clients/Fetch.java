// java.net.http.HttpClient as programs use it, without any proxy setting.
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;

public class Fetch {
    public static void main(String[] args) {
        try {
            HttpRequest ask = HttpRequest.newBuilder(URI.create(args[0])).build();
            System.out.print(HttpClient.newHttpClient().send(ask, HttpResponse.BodyHandlers.ofString()).body());
        } catch (Exception e) {
            System.err.println("Fetch: " + e + " " + e.getCause());
            System.exit(1);
        }
    }
}
