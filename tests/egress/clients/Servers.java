// Servers that read loosely: HTTP without a version in the request line at argument 1, TLS with any version in a record's head at 2.
import com.sun.net.httpserver.HttpServer;
import com.sun.net.httpserver.HttpsConfigurator;
import com.sun.net.httpserver.HttpsServer;
import java.io.FileInputStream;
import java.net.InetSocketAddress;
import java.security.KeyStore;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;

class Servers {
    static void answer(HttpServer s) {
        s.createContext("/", x -> {
            byte[] hello = "hello\n".getBytes();
            x.sendResponseHeaders(200, hello.length);
            x.getResponseBody().write(hello);
            x.close();
        });
        s.start();
    }

    public static void main(String[] args) throws Exception {
        KeyStore keys = KeyStore.getInstance("PKCS12");
        keys.load(new FileInputStream(args[3]), "pinfold".toCharArray());
        KeyManagerFactory factory = KeyManagerFactory.getInstance("PKIX");
        factory.init(keys, "pinfold".toCharArray());
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(factory.getKeyManagers(), null, null);
        HttpsServer tls = HttpsServer.create(new InetSocketAddress(args[0], Integer.parseInt(args[2])), 0);
        tls.setHttpsConfigurator(new HttpsConfigurator(context));
        answer(tls);
        answer(HttpServer.create(new InetSocketAddress(args[0], Integer.parseInt(args[1])), 0));
    }
}
