"""Connects to listeners of its own on 127.0.0.1: a socket is afterwards what it was before, and one that waits holds nobody up."""
import errno
import fcntl
import os
import socket
import time


def flags(s):
    return fcntl.fcntl(s, fcntl.F_GETFL)


def blocking():
    return socket.socket(socket.AF_INET, socket.SOCK_STREAM)


def code(call, *what):
    try:
        call(*what)
    except OSError as e:
        return e.errno
    return 0


def main():
    server = blocking()
    server.bind(("127.0.0.1", 0))
    server.listen(0)
    at = server.getsockname()
    first = blocking()
    fcntl.fcntl(first, fcntl.F_SETFL, flags(first) | os.O_APPEND)
    before = flags(first)
    assert code(first.connect, at) == 0 and flags(first) == before
    assert code(first.connect, at) == errno.EISCONN
    refused = blocking()
    assert code(refused.connect, ("127.0.0.1", 1)) == errno.ECONNREFUSED and not flags(refused) & os.O_NONBLOCK
    eager = blocking()
    eager.setblocking(False)
    assert code(eager.connect, ("127.0.0.1", 1)) in (errno.EINPROGRESS, errno.ECONNREFUSED) and flags(eager) & os.O_NONBLOCK
    talk = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    assert code(talk.connect, at) == 0 and not flags(talk) & os.O_NONBLOCK

    crowd = [blocking() for _ in range(4)]  # the queue is full: whoever comes now waits until the server looks
    for s in crowd:
        s.setblocking(False)
        assert code(s.connect, at) in (0, errno.EINPROGRESS)
    child = os.fork()
    if child == 0:
        late = blocking()
        os._exit(code(late.connect, at) != 0 or bool(flags(late) & os.O_NONBLOCK))
    time.sleep(0.3)
    assert os.waitpid(child, os.WNOHANG) == (0, 0)
    other = blocking()  # meanwhile others are served
    assert code(other.connect, ("127.0.0.1", 1)) == errno.ECONNREFUSED
    with open("meanwhile", "w", encoding="ascii"):
        pass
    os.unlink("meanwhile")
    for s in crowd:
        s.close()
    server.setblocking(False)
    for _ in range(600):
        if code(server.accept):
            time.sleep(0.02)
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            break
    assert ended and status == 0, status
    print("as it was")


main()
