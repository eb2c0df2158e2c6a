"""In the box: asks the agent for everything that is not allowed, and prints "NAME refused" or what else came of it.

attack.py [NAME]: one request alone, of a signature for files.
"""
import os
import socket
import struct
import sys

FAILURES = (5, 28)


def string(data):
    return struct.pack(">I", len(data)) + data


def connect():
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(20)
    s.connect(os.environ["SSH_AUTH_SOCK"])
    return s


def exact(s, n):
    data = b""
    while len(data) < n:
        more = s.recv(n - len(data))
        if not more:
            return None
        data += more
    return data


def ask(body, s=None):
    """The answer; None: the connection was closed."""
    own = s or connect()
    try:
        own.sendall(string(body))
        head = exact(own, 4)
        return head and exact(own, struct.unpack(">I", head)[0])
    except (BrokenPipeError, ConnectionResetError):
        return None
    finally:
        if not s:
            own.close()


def say(name, answer):
    ok = answer is None or (len(answer) == 1 and answer[0] in FAILURES)
    print(name, "refused" if ok else "signed" if answer[0] == 14 else f"answered {answer[:40]!r}", flush=True)


def keys():
    answer = ask(b"\x0b")
    n, rest, found = struct.unpack(">I", answer[1:5])[0], answer[5:], []
    for _ in range(n):
        for part in range(2):
            size = struct.unpack(">I", rest[:4])[0]
            if part == 0:
                found.append(rest[4:4 + size])
            rest = rest[4 + size:]
    return found


def sign(key, data, flags=0):
    return b"\x0d" + string(key) + string(data) + struct.pack(">I", flags)


def file_data(purpose):
    return b"SSHSIG" + string(purpose) + string(b"") + string(b"sha512") + string(bytes(64))


def login_data(key, session=b"s" * 32, hostbound=None, user=b"root"):
    method = b"publickey-hostbound-v00@openssh.com" if hostbound else b"publickey"
    return (string(session) + b"\x32" + string(user) + string(b"ssh-connection") + string(method) + b"\x01"
            + string(b"ssh-ed25519") + string(key) + (string(hostbound) if hostbound else b""))


def bind(host_key, session, forwarding=0):
    return (b"\x1b" + string(b"session-bind@openssh.com") + string(host_key) + string(session)
            + string(string(b"ssh-ed25519") + string(bytes(64))) + bytes([forwarding]))


def host_key():
    """The key of a host that the policy allows, from known_hosts as the box sees it."""
    import base64
    with open(os.path.expanduser("~/.ssh/known_hosts"), encoding="utf-8") as text:
        return base64.b64decode(text.readline().split()[2])


def main():
    mine = keys()[0]
    if sys.argv[1:]:
        if sys.argv[1] == "long-user":
            say("long-user", ask(sign(mine, login_data(mine, user=b"git@github.com with mine@test" + b"." * 150))))
        elif sys.argv[1] == "forged-bind":
            s, host = connect(), host_key()
            print("bind", ask(bind(host, b"s" * 32), s))
            say("forged-bind", ask(sign(mine, login_data(mine)), s))
            say("git", ask(sign(mine, file_data(b"git"))))
        else:
            say("sign-file", ask(sign(mine, file_data(b"file"))))
        return
    wrong = None
    for kind in range(256):
        for body in (bytes([kind]), bytes([kind]) + string(mine), bytes([kind]) + string(b"x") + string(b"y")):
            if body != b"\x0b":
                answer = ask(body)
                if answer is not None and (len(answer) != 1 or answer[0] not in FAILURES):
                    wrong = (kind, answer)
    print("every-other-request", "refused" if wrong is None else f"answered {wrong}", flush=True)
    for purpose in (b"file", b"", b"git\0", b"Git", b"email"):
        say(f"purpose-{purpose.hex()}", ask(sign(mine, file_data(purpose))))
    say("bare-data", ask(sign(mine, b"x" * 100)))
    say("git-and-more", ask(sign(mine, file_data(b"git") + b"x")))
    say("other-key", ask(sign(mine[:-1] + bytes([mine[-1] ^ 1]), file_data(b"git"))))
    say("login-unbound", ask(sign(mine, login_data(mine))))
    s, host = connect(), host_key()
    say("bind-forged", ask(bind(host, b"s" * 32), s))
    say("login-after-forged-bind", ask(sign(mine, login_data(mine), 0), s))
    say("login-hostbound-forged", ask(sign(mine, login_data(mine, hostbound=host), 0), s))
    for name in (b"restrict-destination-v00@openssh.com", b"session-bind@openssh.com2", b""):
        say(f"extension-{name.hex()[:24] or 'empty'}", ask(b"\x1b" + string(name) + string(b"x")))
    for name, raw in (("frame-of-nothing", struct.pack(">I", 0)), ("frame-too-large", struct.pack(">I", (256 << 10) + 1) + b"x"),
                      ("frame-of-4-gib", b"\xff\xff\xff\xff")):
        s = connect()
        s.sendall(raw)
        try:
            closed = exact(s, 1) is None
        except ConnectionResetError:
            closed = True
        print(name, "refused" if closed else "answered", flush=True)
    say("frame-of-256-kib", ask(b"\x0d" + bytes((256 << 10) - 1)))
    crowd = [connect() for _ in range(15)]  # and half a request in each
    for s in crowd:
        s.sendall(b"\0\0")
    print("beside-a-crowd", "refused" if keys() == [mine] else "answered", flush=True)
    for s in crowd:
        s.close()
    for _ in range(2000):
        ask(b"\x13")
    print("flood", "refused" if keys() == [mine] else "answered", flush=True)  # and within the time limit of the whole attack
    print("end", flush=True)


main()
