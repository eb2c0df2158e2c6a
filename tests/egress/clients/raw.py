"""Says bytes and prints what comes back, as no well-behaved client would: raw.py PORT (connect|socks|send) TARGET [BYTES...]

A text pause=BYTES is not answered; tls=NAME/HOW is a ClientHello for NAME (client_hello).

connect, socks: through the proxy at 127.0.0.1:PORT to TARGET (HOST:PORT); then BYTES, Python escapes, one after the answer to the other.
"""
import socket
import ssl
import sys
import time

pauses = []  # texts after which no answer is awaited


def plain(text):
    return text.encode("latin-1").decode("unicode_escape").encode("latin-1")


def client_hello(name, how):
    """A ClientHello for `name`, in odd records: another minor version, an empty one or an alert first, or cut into pieces."""
    context, out = ssl.create_default_context(), ssl.MemoryBIO()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.wrap_bio(ssl.MemoryBIO(), out, server_hostname=name).do_handshake()
    except ssl.SSLWantReadError:
        pass
    body = out.read()[5:]

    def record(kind, minor, part):
        return bytes((kind, 3, minor)) + len(part).to_bytes(2, "big") + part
    if how == "version":
        return record(0x16, 0x32, body)
    if how == "alert":
        return record(0x15, 1, b"\x01\x5a") + record(0x16, 1, body)
    if how == "empty":
        return record(0x16, 1, b"") + record(0x16, 1, body)
    return b"".join(record(0x16, 1, body[i:i + 40]) for i in range(0, len(body), 40))


def says(text):
    if text.startswith("pause="):
        pauses.append(plain(text[6:]))
        return pauses[-1]
    if text.startswith("tls="):
        return client_hello(*text[4:].split("/"))
    return plain(text)


def answer(s):
    data = b""
    try:
        while b"hello" not in data:
            if data[:2] == b"\x16\x03" and len(data) > 6 and data[5] == 2:
                return b"hello from a TLS server"
            more = s.recv(65536)
            if not more:
                break
            data += more
            if b"\r\n\r\n" in data and b"first" in data:
                break
    except OSError as e:
        data += str(e).encode()
    return data


def main():
    port, how, target, texts = int(sys.argv[1]), sys.argv[2], plain(sys.argv[3]), [says(text) for text in sys.argv[4:]]
    s = socket.create_connection(("127.0.0.1", port), timeout=6)
    if how == "connect":
        s.sendall(b"CONNECT " + target + b" HTTP/1.1\r\nHost: " + target + b"\r\n\r\n")
        reply = s.recv(4096)
        if b" 200 " not in reply:
            sys.exit("refused: " + repr(reply[:200]))
    elif how == "socks":
        host, number = target.rsplit(b":", 1)
        s.sendall(b"\5\1\0")
        s.recv(2)
        s.sendall(b"\5\1\0\3" + bytes((len(host),)) + host + int(number).to_bytes(2, "big"))
        reply = s.recv(10)
        if reply[1:2] != b"\0":
            sys.exit("refused: " + repr(reply))
    for text in texts:
        s.sendall(text)
        if text in pauses:
            time.sleep(0.5)
            continue
        sys.stdout.write(answer(s).decode("latin-1"))


main()
