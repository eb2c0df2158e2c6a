"""Servers at PORT, PORT + 1 and PORT + 2 of ADDRESS that are none of HTTP: first.py ADDRESS PORT KEY CERTIFICATE

One speaks first and answers a line; one answers PostgreSQL's question and then speaks TLS for any name; one answers a line of text.
"""
import socket
import ssl
import sys
import threading

CONTEXT = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)


def greets(s):
    s.sendall(b"220 at your service\r\n")
    s.recv(4096)
    s.sendall(b"hello\n")


def postgres(s):
    s.recv(8)
    s.sendall(b"S")
    CONTEXT.wrap_socket(s, server_side=True).sendall(b"hello\n")


def text(s):
    s.recv(4096)
    s.sendall(b"hello\n")


def serve(one, s):
    try:
        one(s)
        s.recv(4096)
    except OSError:
        pass
    s.close()


def listen(one, port):
    listener = socket.create_server((sys.argv[1], port))
    while True:
        threading.Thread(target=serve, args=(one, listener.accept()[0]), daemon=True).start()


def main():
    CONTEXT.load_cert_chain(sys.argv[4], sys.argv[3])
    for i, one in enumerate((postgres, text)):
        threading.Thread(target=listen, args=(one, int(sys.argv[2]) + 1 + i), daemon=True).start()
    listen(greets, int(sys.argv[2]))


main()
