"""What tests/egress/strain.py talks to, HOST PORT: the first byte of a connection says what becomes of it."""
import resource
import selectors
import socket
import struct
import sys
import threading
import time

HALVES = [0]


def exactly(s, n):
    data = bytearray()
    while len(data) < n:
        more = s.recv(min(65536, n - len(data)))
        if not more:
            break
        data += more
    return bytes(data)


def half(s):
    """Answers, ends its side, reads late and slowly, and counts what arrived whole."""
    want = struct.unpack(">I", exactly(s, 4))[0]
    s.sendall(b"H")
    s.shutdown(socket.SHUT_WR)
    got, end = 0, False
    while not end and got < want:
        time.sleep(0.01)
        more = s.recv(65536)
        end = not more
        got += len(more)
    HALVES[0] += got == want


def mirror(s):
    """Sends back what comes, in gulps, until it ends."""
    held = bytearray()
    while more := s.recv(1 << 20):
        held += more
        if len(held) > 1 << 20:
            s.sendall(held)
            held.clear()
    s.sendall(held)


def serve(s, kind):
    try:
        s.setblocking(True)
        if kind == b"B":
            while True:
                s.sendall(bytes(65536))
        elif kind == b"H":
            half(s)
        elif kind == b"M":
            mirror(s)
        elif kind == b"E":
            n = 0
            while more := s.recv(65536):
                n += len(more)
            s.sendall(str(n).encode())
        elif kind == b"?":
            s.sendall(str(HALVES[0]).encode())
    except OSError:
        pass
    s.close()


def main():
    most = 40000
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    except (ValueError, OSError):
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    watch = selectors.DefaultSelector()
    listener = socket.create_server((sys.argv[1], int(sys.argv[2])), backlog=4096)
    listener.setblocking(False)
    watch.register(listener, selectors.EVENT_READ)
    while True:
        for key, _ in watch.select():
            if key.fileobj is listener:
                try:
                    s = listener.accept()[0]
                except OSError:
                    continue
                s.setblocking(False)
                watch.register(s, selectors.EVENT_READ)
                continue
            s = key.fileobj
            try:
                kind = s.recv(1)
                if kind == b"x":
                    s.sendall(kind)
                    continue
            except OSError:
                kind = b""
            watch.unregister(s)
            if kind:
                threading.Thread(target=serve, args=(s, kind), daemon=True).start()
            else:
                s.close()


main()
