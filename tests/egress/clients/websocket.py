"""A WebSocket server (HOST PORT) or client (ws://HOST:PORT/ [kept|connect]): RFC 6455, one text frame there and back.

kept: on a connection that carried other requests before, whose answers have bodies of all kinds; connect: the same in a tunnel of the box's proxy.
"""
import base64
import hashlib
import os
import socket
import sys
import threading


def exactly(s, n):
    data = b""
    while len(data) < n:
        more = s.recv(n - len(data))
        if not more:
            raise OSError("the connection ended")
        data += more
    return data


def head(s):
    data = b""
    while not data.endswith(b"\r\n\r\n"):
        data += exactly(s, 1)
    return data.decode("latin-1")


def accept_key(key):
    return base64.b64encode(hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()).decode()


LONG = 6 << 20
PLAIN = {"GET /short": b"Content-Length: 24\r\n\r\nHTTP/1.1 101 is a body.\n", "HEAD /short": b"Content-Length: 24\r\n\r\n",
         "GET /long": f"Content-Length: {LONG}\r\n\r\n".encode() + b"HTTP/1.1 101" * (LONG // 12),
         "GET /chunks": b"Transfer-Encoding: chunked\r\n\r\n" + b"c\r\nHTTP/1.1 101\r\n" * 3 + b"0\r\n\r\n"}


def echo(s):
    try:
        asked = head(s)
        while asked.split(" HTTP/")[0] in PLAIN:
            s.sendall(b"HTTP/1.1 200 OK\r\n" + PLAIN[asked.split(" HTTP/")[0]])
            asked = head(s)
        key = [line.split(":", 1)[1].strip() for line in asked.split("\r\n") if line.lower().startswith("sec-websocket-key:")][0]
        s.sendall(f"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept_key(key)}\r\n\r\n".encode())
        while True:
            n = exactly(s, 2)[1] & 127
            mask, data = exactly(s, 4), exactly(s, n)
            data = bytes(b ^ mask[i % 4] for i, b in enumerate(data))
            s.sendall(bytes((0x81, n)) + data)
    except (OSError, IndexError):
        s.close()


def dial(host, port, tunnel):
    if tunnel:
        try:
            s = socket.create_connection(("127.0.0.1", 61080), timeout=10)
        except OSError:  # outside there is none
            return dial(host, port, False)
        s.sendall(f"CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
        answer = head(s)
        if " 200 " not in answer:
            sys.exit("no tunnel: " + answer)
        return s
    return socket.create_connection((host, port), timeout=10)


def main():
    if not sys.argv[1].startswith("ws:"):
        listener = socket.create_server((sys.argv[1], int(sys.argv[2])))
        while True:
            threading.Thread(target=echo, args=(listener.accept()[0],), daemon=True).start()
    host, port = sys.argv[1][5:-1].rsplit(":", 1)
    s = dial(host, int(port), "connect" in sys.argv)
    for request, answer in PLAIN.items() if sys.argv[2:] else ():
        s.sendall(f"{request} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
        if exactly(s, 17 + len(answer)) != b"HTTP/1.1 200 OK\r\n" + answer:
            sys.exit("another answer")
    key = base64.b64encode(os.urandom(16)).decode()
    s.sendall(f"GET / HTTP/1.1\r\nHost: {host}:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n".encode())
    answer = head(s)
    if " 101 " not in answer or accept_key(key) not in answer:
        sys.exit("no WebSocket: " + answer)
    for text in (b"hel", b"lo\n"):  # beyond the first exchange nothing is judged any more
        s.sendall(bytes((0x81, 0x80 | len(text), 0, 0, 0, 0)) + text)
        n = exactly(s, 2)[1]
        sys.stdout.write(exactly(s, n).decode())


main()
