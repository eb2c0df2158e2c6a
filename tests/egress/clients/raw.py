"""Says bytes and prints what comes back, as no well-behaved client would: raw.py PORT (connect|socks|send) TARGET [BYTES...]

A text pause=BYTES is not answered; tls=NAME/HOW is a ClientHello for NAME (client_hello); twice=FIRST/SECOND are two, the second
when the server asked for another group (twice).

connect, socks: through the proxy at 127.0.0.1:PORT to TARGET (HOST:PORT); then BYTES, Python escapes, one after the answer to the other.
"""
import socket
import sys
import time

pauses = []  # texts after which no answer is awaited


def plain(text):
    return text.encode("latin-1").decode("unicode_escape").encode("latin-1")


def client_hello(name, how):
    """A ClientHello for `name`, in odd records: another major or minor version, an empty one or an alert first, or cut into pieces."""
    import ssl  # which takes as long as all the rest: only where it is wanted
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
    if how == "major":
        return b"\x16\x05" + record(0x16, 1, body)[2:]
    if how == "alert":
        return record(0x15, 1, b"\x01\x5a") + record(0x16, 1, body)
    if how == "empty":
        return record(0x16, 1, b"") + record(0x16, 1, body)
    return b"".join(record(0x16, 1, body[i:i + 40]) for i in range(0, len(body), 40))


# The generators of two curves, uncompressed: shares that are valid, and whose secrets nobody needs here.
SHARES = {23: "046b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c2964fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5",
          24: "04aa87ca22be8b05378eb1c71ef320ad746e1d3b628ba79b9859f741e082542a385502f25dbf55296c3a545e3872760ab7"
              "3617de4a96262c6f5d9e98bf9292dc29f8f41dbd289a147ce9da3113b5f0b8c00a60b1ce1d7e819d7a431d7c90ea0e5f"}


def hello_with(name, group):
    """A ClientHello of TLS 1.3 for `name` that knows both groups and has a share of one."""
    def sized(n, data):
        return len(data).to_bytes(n, "big") + data

    def extension(kind, data):
        return kind.to_bytes(2, "big") + sized(2, data)
    share = bytes.fromhex(SHARES[group])
    extensions = (extension(0, sized(2, b"\0" + sized(2, name.encode()))) + extension(10, sized(2, b"\0\x17\0\x18")) +
                  extension(13, sized(2, b"\x08\x04\x04\x03\x04\x01")) + extension(43, sized(1, b"\3\4")) +
                  extension(51, sized(2, group.to_bytes(2, "big") + sized(2, share))))
    body = b"\3\3" + b"r" * 32 + sized(1, b"s" * 32) + sized(2, b"\x13\1\x13\2") + b"\1\0" + sized(2, extensions)
    return b"\x16\3\1" + sized(2, b"\1" + sized(3, body))


def server_hello(s):
    """The random of the next ServerHello; that of a HelloRetryRequest is the same always (RFC 8446 4.1.3)."""
    head = exactly(s, 5)
    body = exactly(s, int.from_bytes(head[3:5], "big"))
    return server_hello(s) if head[0] == 0x14 else body[6:38] if head[0] == 0x16 and body[0] == 2 else b""


def exactly(s, n):
    data = b""
    while len(data) < n:
        more = s.recv(n - len(data))
        if not more:
            raise OSError("the connection ended")
        data += more
    return data


def twice(s, first, second):
    """Asks for one name with a group that the server does not have, and when it wants another group for another name."""
    retry = bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")
    try:
        s.sendall(hello_with(first, 23))
        if server_hello(s) != retry:
            sys.exit("no HelloRetryRequest")
        s.sendall(b"\x14\3\3\0\1\1")
        s.sendall(hello_with(second, 24))
        return b"hello of a TLS server" if server_hello(s) not in (retry, b"") else b"an alert"
    except OSError as e:
        return str(e).encode()


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


def direct(where, texts):
    """Without a proxy: raw.py direct HOST:PORT BYTES... An empty text waits for the server's first words; pg=NAME asks as PostgreSQL's clients do, then TLS for NAME."""
    host, port = where.rsplit(":", 1)
    s = socket.create_connection((host, int(port)), timeout=6)
    for text in texts:
        if not text:
            s.recv(4096)
        elif text.startswith("pg="):
            import ssl
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            s.sendall(bytes.fromhex("0000000804d2162f"))
            if s.recv(1) == b"S":
                s = context.wrap_socket(s, server_hostname=text[3:])
        else:
            s.sendall(plain(text))
    sys.stdout.write(answer(s).decode("latin-1"))


def main():
    if sys.argv[1] == "direct":
        direct(sys.argv[2], sys.argv[3:])
        return
    port, how, target, texts = int(sys.argv[1]), sys.argv[2], plain(sys.argv[3]), [says(text) for text in sys.argv[4:] if not text.startswith("twice=")]
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
    for text in sys.argv[4:]:
        if text.startswith("twice="):
            sys.exit(twice(s, *text[6:].split("/")[:2]).decode())
    for text in texts:
        s.sendall(text)
        if text in pauses:
            time.sleep(0.5)
            continue
        sys.stdout.write(answer(s).decode("latin-1"))


main()
