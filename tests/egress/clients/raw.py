"""Says bytes and prints what comes back, as no well-behaved client would: raw.py PORT (connect|socks|send) TARGET [BYTES...]

connect, socks: through the proxy at 127.0.0.1:PORT to TARGET (HOST:PORT); then BYTES, Python escapes, one after the answer to the other.
"""
import socket
import sys


def plain(text):
    return text.encode("latin-1").decode("unicode_escape").encode("latin-1")


def answer(s):
    data = b""
    try:
        while b"hello" not in data:
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
    port, how, target, *says = int(sys.argv[1]), sys.argv[2], plain(sys.argv[3]), *map(plain, sys.argv[4:])
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
    for text in says:
        s.sendall(text)
        sys.stdout.write(answer(s).decode("latin-1"))


main()
