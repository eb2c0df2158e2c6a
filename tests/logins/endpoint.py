"""A token endpoint of the test's own on loopback, with TLS and a certificate authority of its own. A refresh token is good once: one
that was used, and comes again, revokes all that came of it, as the strictest providers do."""
import base64
import http.server
import json
import socket
import ssl
import subprocess
import threading
import time
import urllib.parse


def certificates(where):
    """CA and server's certificate in `where`; the CA's path."""
    ca, key, request = where + "/ca.pem", where + "/server.key", where + "/server.csr"
    names = where + "/names"
    with open(names, "w", encoding="utf-8") as file:
        file.write("subjectAltName=IP:127.0.0.1\nsubjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid\n")
    quiet = {"check": True, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    new = ["openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    subprocess.run([*new, "-x509", "-keyout", where + "/ca.key", "-out", ca, "-days", "2", "-subj", "/CN=logins-test",
                    "-addext", "keyUsage=critical,keyCertSign,cRLSign"], **quiet)  # without it Python 3.13 believes no such CA
    subprocess.run([*new, "-keyout", key, "-out", request, "-subj", "/CN=127.0.0.1"], **quiet)
    subprocess.run(["openssl", "x509", "-req", "-in", request, "-CA", ca, "-CAkey", where + "/ca.key", "-CAcreateserial", "-out", where + "/server.pem",
                    "-days", "2", "-extfile", names], **quiet)
    return ca


def web_token(**claims):
    def part(value):
        return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()
    return f"{part({'alg': 'none'})}.{part(claims)}.sig"


class Endpoint:
    """state: `current` is the one refresh token that is good; `revoked` what the family ended by."""

    def __init__(self, where):
        self.lock, self.requests, self.number = threading.Lock(), [], 0
        self.current, self.used, self.revoked = None, set(), None
        self.open, self.last = 0, 0  # connections; the client's port of the last one
        self.lasts, self.answer, self.jwt, self.delay = 7200, None, False, 0
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_POST(self):
                outer.serve(self)

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 64

            def process_request(self, request, client_address):
                with outer.lock:
                    outer.open += 1
                    outer.last = client_address[1]
                super().process_request(request, client_address)

            def process_request_thread(self, request, client_address):
                try:
                    super().process_request_thread(request, client_address)
                finally:
                    with outer.lock:
                        outer.open -= 1

            def handle_error(self, request, client_address):
                pass  # a client that was killed

        self.server = Server(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(where + "/server.pem", where + "/server.key")
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.port = self.server.server_address[1]
        self.url = f"https://127.0.0.1:{self.port}/v1/oauth/token"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def settle(self):
        """Waits until what was sent by somebody who is gone has been dealt with: connections are accepted in their order."""
        with socket.create_connection(("127.0.0.1", self.port)) as mine:
            while self.last != mine.getsockname()[1]:
                time.sleep(0.002)
        while self.open:
            time.sleep(0.002)

    def begin(self, token):
        with self.lock:
            self.current, self.used, self.revoked, self.requests = token, set(), None, []

    def grant(self, body):
        """(status, answer) for what was asked."""
        token = body.get("refresh_token")
        with self.lock:
            self.requests.append(body)
            if body.get("grant_type") != "refresh_token" or not body.get("client_id"):
                return 400, {"error": "invalid_request"}
            if token != self.current or self.revoked:
                if token in self.used:
                    self.revoked = self.revoked or token
                    self.current = None
                return 400, {"error": "invalid_grant", "error_description": "Refresh token not found or invalid"}
            self.used.add(token)
            self.number += 1
            self.current = f"r-{self.number}"
            access = web_token(exp=int(time.time()) + self.lasts, n=self.number) if self.jwt else f"a-{self.number}"
            said = {"token_type": "Bearer", "access_token": access, "refresh_token": self.current}
            if self.jwt:
                said["id_token"] = web_token(email="me@example.org")
            else:
                said["expires_in"] = self.lasts
            return 200, said

    def serve(self, handler):
        data = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        if "json" in handler.headers.get("Content-Type", ""):
            body = json.loads(data)
        else:
            body = dict(urllib.parse.parse_qsl(data.decode()))
        if self.answer:
            status, text = self.answer
            with self.lock:
                self.requests.append(body)
        else:
            status, said = self.grant(body)
            text = json.dumps(said)
        time.sleep(self.delay)
        handler.send_response(status)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(text)))
        handler.end_headers()
        handler.wfile.write(text.encode())


def ask(url, ca, body):
    """As an agent on the host asks: the answer, or None."""
    import urllib.request
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, context=ssl.create_default_context(cafile=ca), timeout=30) as answer:
            return json.load(answer)
    except OSError:
        return None


