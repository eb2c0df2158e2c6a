"""HTTP/2 in the clear, byte by byte.

    h2raw.py serve ADDR PORT              a server as credulous as can be: says "hello" and whom it was asked for, whatever else stands there
    h2raw.py VIA HOST:PORT PIECE...       sends pieces, each after an answer to the one before, and prints what comes back

VIA is "direct", or the port of a proxy on 127.0.0.1 that is asked by CONNECT. Pieces: begin, for=NAME, host=NAME (with the right
authority), split=NAME (in three frames), upgrade, other (a protocol that is no HTTP/2), data.
"""
import socket
import sys
import threading

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
NAMES = (b"ok.test", b"other.test")


def frame(kind, flags, stream, body):
    return len(body).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + body


def text(s):
    return bytes([len(s)]) + s


def request(name, more=b""):
    return b"\x82\x86\x84\x01" + text(name) + more


def piece(word, host, stream):
    kind, _, name = word.partition("=")
    name = name.encode()
    own = host.split(":", maxsplit=1)[0].encode()
    if kind == "begin":
        return PREFACE + frame(4, 0, 0, b"")
    if kind == "for":
        return frame(1, 5, stream, request(name))
    if kind == "host":
        return frame(1, 5, stream, request(own, b"\x00" + text(b"host") + text(name)))
    if kind == "split":
        whole = request(name)
        return frame(1, 1, stream, whole[:6]) + frame(9, 0, stream, whole[6:9]) + frame(9, 4, stream, whole[9:])
    if kind == "upgrade":
        return (b"GET / HTTP/1.1\r\nHost: " + host.encode() + b"\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n")
    if kind == "other":
        return b"raw bytes for other.test\n"
    return frame(0, 0, stream, b"x" * 40000 + b"data for other.test")


def reply(s, words):
    found = max(NAMES, key=words.lower().rfind)
    s.sendall(b"hello from " + found + b"\n" if found in words.lower() else b"heard\n")


def answer(s):
    raw, frames, block = b"", False, b""
    while True:
        got = s.recv(65536)
        if not got:
            return
        raw += got
        if not frames and b"Upgrade: h2c" in raw:
            s.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n")
            raw = b""
        elif not frames and raw.startswith(PREFACE):
            raw, frames = raw[len(PREFACE):], True
        elif not frames and b"\n" in raw and not PREFACE.startswith(raw[:24]):
            reply(s, raw)
            raw = b""
        while frames and len(raw) >= 9 and len(raw) >= 9 + int.from_bytes(raw[:3], "big"):
            size, kind, flags = int.from_bytes(raw[:3], "big"), raw[3], raw[4]
            block += raw[9:9 + size] if kind in (1, 9) else b""
            if kind not in (1, 9) or flags & 4:
                reply(s, block)
                block = b""
            raw = raw[9 + size:]


def serve(address, port):
    listener = socket.create_server((address, int(port)), backlog=64)
    while True:
        s, _ = listener.accept()
        threading.Thread(target=lambda s=s: quietly(answer, s), daemon=True).start()


def quietly(call, s):
    try:
        call(s)
    except OSError:
        pass
    s.close()


def main():
    if sys.argv[1] == "serve":
        serve(*sys.argv[2:])
    via, host, *words = sys.argv[1:]
    name, port = host.split(":")
    s = socket.create_connection((name, int(port)) if via == "direct" else ("127.0.0.1", int(via)))
    s.settimeout(10)
    if via != "direct":
        s.sendall(f"CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        print(s.recv(4096).split(b"\r\n")[0].decode())
    for number, word in enumerate(words):
        try:
            s.sendall(piece(word, host, 2 * number + 1))
            got = s.recv(65536)
        except OSError as e:
            print(f"ended: {e}")
            return
        print(got.decode("latin-1").strip() or "ended")
        if not got:
            return


main()
