#!/bin/sh
# needs: python3
set -eu
python3 - <<'END'
import os, socket
import tempfile
here = os.getcwd()
for place, path in ((here, "s"), (tempfile.mkdtemp(), "s"), (here, f"\0pinfold-work-{os.getpid()}")):
    os.chdir(place)  # a whole path may be longer than an address can be
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen()
    client = socket.socket(socket.AF_UNIX)
    client.connect(path)
    peer, _ = server.accept()
    peer.sendall(b"x")
    assert client.recv(1) == b"x"
a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
socket.send_fds(a, [b"x"], [os.open("/dev/null", os.O_RDONLY)])
assert len(socket.recv_fds(b, 1, 1)[1]) == 1
a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
a.send(b"x")
assert b.recv(1) == b"x"
END
