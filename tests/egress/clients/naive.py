"""A proxy with the mistakes of published ones, to show that an attempt would work against them: naive.py PORT.

Rules are asked of the text a client sent, and names are resolved again for the dial; an empty list lets everything through;
what follows the first request of a connection is passed on unseen. Its resolver passes every question on.
"""
import socket
import sys
import threading

ALLOWED_ENDS = ("ok.test",)
DENIED = ("other.test",)
LOCAL = ("127.0.0.1", "localhost", "::1", "0.0.0.0")


def permitted(text, mode):
    if mode == "ends":  # endswith on bytes that the C library will cut at the NUL; and no dot before the end
        return text.endswith(ALLOWED_ENDS)
    if mode == "denied":  # a list of names, compared as they were spelt
        return text not in DENIED
    if mode == "local":  # the usual spellings of this machine
        return text not in LOCAL
    if mode == "resolved":  # judged by one look-up, dialled by the next
        return not socket.gethostbyname(text).startswith("127.")
    return True  # an empty list


def dial(text, port):
    return socket.create_connection((text.split("\0")[0].strip("[]").rstrip("."), port), timeout=10)


def relay(a, b):
    def one(x, y):
        try:
            while True:
                data = x.recv(65536)
                if not data:
                    break
                y.sendall(data)
        except OSError:
            pass
        for s in (x, y):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
    threading.Thread(target=one, args=(a, b), daemon=True).start()
    one(b, a)


def head(s):
    data = b""
    while b"\r\n\r\n" not in data:
        more = s.recv(4096)
        if not more:
            raise OSError("no head")
        data += more
    return data


def socks(s, mode):
    s.recv(s.recv(2)[1])
    s.sendall(b"\5\0")
    kind = s.recv(4)[3]
    text = s.recv(s.recv(1)[0]).decode("latin-1") if kind == 3 else socket.inet_ntoa(s.recv(4))
    port = int.from_bytes(s.recv(2), "big")
    if not permitted(text, mode):
        s.sendall(b"\5\2\0\1" + bytes(6))
        return
    out = dial(text, port)
    s.sendall(b"\5\0\0\1" + bytes(6))
    relay(s, out)


def http(s, mode):
    data = head(s)
    method, target = data.split(b" ")[:2]
    target = target.decode("latin-1")
    if method != b"CONNECT":
        authority = target = target[len("http://"):].split("/")[0]
        checked = target.split(":")[0]  # of user@host the user, where there is one
        target = target.rsplit("@", 1)[-1]
    else:
        checked = target.rsplit(":", 1)[0]
    host, port = target.rsplit(":", 1)
    if not permitted(checked, mode):
        s.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
        return
    out = dial(host, int(port))
    if method == b"CONNECT":
        s.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    else:
        out.sendall(data.replace(b"http://" + authority.encode("latin-1"), b"", 1))
    relay(s, out)


def serve(s, mode):
    try:
        (socks if s.recv(1, socket.MSG_PEEK) == b"\5" else http)(s, mode)
    except (OSError, ValueError, IndexError):
        pass
    s.close()


def main():
    for i, mode in enumerate(("ends", "denied", "local", "resolved", "empty")):
        listener = socket.create_server(("127.0.0.1", int(sys.argv[1]) + i))
        threading.Thread(target=lambda li=listener, m=mode: [threading.Thread(target=serve, args=(li.accept()[0], m), daemon=True).start()
                                                             for _ in iter(int, 1)], daemon=True).start()
    resolver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    resolver.bind(("127.0.0.1", int(sys.argv[1]) + 9))
    while True:
        query, peer = resolver.recvfrom(2048)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as up:
            up.connect(("127.0.0.1", 53))
            up.settimeout(5)
            up.send(query)
            resolver.sendto(up.recv(2048), peer)


main()
