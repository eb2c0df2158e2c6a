"""Clients that are a strain, for tests/egress/strain.py, which says what each does: strain.py KIND HOST PORT N"""
import hashlib
import os
import resource
import socket
import struct
import sys
import threading
import time

RESET = struct.pack("ii", 1, 0)


def connect(address):
    s = socket.create_connection(address, timeout=30)
    return s


def idle(address, n):
    """Opens n tunnels, each proved by an echo, says how many, and keeps them until its input ends."""
    found = []
    for _ in range(n):
        s = connect(address)
        s.sendall(b"x")
        assert s.recv(1) == b"x"
        found.append(s)
    os.write(1, f"open {len(found)}\n".encode())
    sys.stdin.read()


def crowd(address, n):
    """Opens n tunnels and says how many of them are open and how many were reset; then how many of the open ones still answer."""
    found, reset = [], 0
    for _ in range(n):
        try:
            s = connect(address)
            s.sendall(b"x")
            if s.recv(1) != b"x":
                raise OSError
            found.append(s)
        except OSError:
            reset += 1
    print("open", n - reset, "reset", reset, flush=True)
    alive = 0
    for s in found:
        s.sendall(b"x")
        alive += s.recv(1) == b"x"
    print("alive", alive, flush=True)


def stalled(address, n):
    """Asks for more than anybody can buffer, n times, and reads nothing."""
    found = []
    for _ in range(n):
        s = connect(address)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.sendall(b"B")
        found.append(s)
    time.sleep(4)
    os.write(1, f"open {len(found)}\n".encode())
    sys.stdin.read()


def loris(address, n):
    """Begins n requests of the proxy and goes on by a byte now and then; prints how many were cut off."""
    found = [connect(address) for _ in range(n)]
    text = b"GET http://ok.test:8099/f HTTP/1.1\r\nHost: ok.test:8099\r\nX: " + b"y" * 999
    ended = 0
    for i in range(120):
        for s in list(found):
            try:
                s.sendall(text[i:i + 1])
                s.setblocking(False)
                if s.recv(99) == b"":
                    raise OSError
            except BlockingIOError:
                pass
            except OSError:
                found.remove(s)
                ended += 1
        if not found:
            break
        time.sleep(0.5)
    print("ended", ended, flush=True)


def storm(address, n):
    """n connections that end in a reset: at once, after a byte, with bytes unread."""
    for i in range(n):
        try:
            s = connect(address)
            if i % 3:
                s.sendall(b"x" if i % 3 == 1 else b"B")
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            s.close()
        except OSError:
            pass
    print("done", n, flush=True)


def half(address, n):
    """The server ends its side first and reads slowly; all that was sent must arrive all the same. Prints how often it did."""
    whole, size = 0, 8 << 20
    for _ in range(n):
        s = connect(address)
        s.sendall(b"H" + struct.pack(">I", size))
        assert s.recv(9) == b"H" and s.recv(9) == b""  # the answer, and the end of the server's side
        s.sendall(b"z" * size)
        s.shutdown(socket.SHUT_WR)
        s.close()
    for _ in range(600):
        s = connect(address)
        s.sendall(b"?")
        s.shutdown(socket.SHUT_WR)
        whole = int(s.recv(99) or b"0")
        if whole == n:
            break
        time.sleep(0.1)
    print("whole", whole, flush=True)


def client_half(address, n):
    """The client ends its side first: the answer must still arrive."""
    whole = 0
    for _ in range(n):
        s = connect(address)
        s.sendall(b"E" + b"q" * 100000)
        s.shutdown(socket.SHUT_WR)
        data = b""
        while more := s.recv(65536):
            data += more
        whole += data == b"100000"
    print("whole", whole, flush=True)


def bulk(address, n):
    """Sends 8 MiB over each of n tunnels at once and reads them back by fits and starts; every third one is dropped on the way."""
    def one(i, found):
        piece = hashlib.sha256(bytes([i])).digest() * 8192
        s = connect(address)
        sent, got = hashlib.sha256(), hashlib.sha256()
        def send():
            try:
                s.sendall(b"M")
                for k in range(32):
                    data = piece[k:] + piece[:k]
                    sent.update(data)
                    s.sendall(data)
                s.shutdown(socket.SHUT_WR)
            except OSError:
                pass
        writer = threading.Thread(target=send)
        writer.start()
        size = 0
        while more := s.recv(1 << 18):
            got.update(more)
            size += len(more)
            if size % 7 == i % 7:
                time.sleep(0.02)
            if i % 3 == 0 and size > 3 << 20:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                s.close()
                break
        writer.join()
        found[i] = "dropped" if i % 3 == 0 else "same" if sent.digest() == got.digest() and size == 8 << 20 else f"other {size}"

    found = [""] * n
    threads = [threading.Thread(target=one, args=(i, found)) for i in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print("same", found.count("same"), "of", n - found.count("dropped"), flush=True)


def main():
    kind, host, port, n = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    address = (socket.gethostbyname(host), port)
    parts = (n + 999) // 1000 if kind == "idle" else 1
    for _ in range(parts - 1):
        if os.fork() == 0:
            break
    globals()[kind](address, n // parts)


main()
