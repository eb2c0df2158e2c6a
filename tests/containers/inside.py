#!/usr/bin/env python3
"""inside.py TIER: what a program does in a box inside a container; prints a line per thing that went wrong, and `done`.

The container's filter refuses pidfd_getfd(2), and some refuse process_vm_readv(2): what the guard does about descriptors and
addresses of its callers then goes other ways, which nothing on an ordinary machine takes.
"""
import array
import fcntl
import os
import socket
import subprocess
import sys

HOME, TIER = os.environ["HOME"], sys.argv[1]


def expect(what, found, wanted):
    if found != wanted:
        print(f"{what}: {found!r} instead of {wanted!r}")


def refused(what, action):
    try:
        action()
    except OSError:
        return
    print(f"{what}: was not refused")


def put(path, text="x"):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def put_again(path):
    """Opens for writing through the link of a descriptor that was opened without a mode: opening it again is another way to the file."""
    by_path = os.open(path, os.O_PATH)
    try:
        os.close(os.open(f"/proc/self/fd/{by_path}", os.O_WRONLY))
    finally:
        os.close(by_path)


def files():
    put("new", "text")
    os.rename("new", "newer")
    os.link("newer", "second")
    os.truncate("newer", 2)
    os.chmod("newer", 0o640)
    os.utime("newer", (1, 2))
    found = os.stat("second")
    expect("file", (oct(found.st_mode), found.st_size, found.st_mtime, found.st_nlink), ("0o100640", 2, 2.0, 2))
    os.symlink("newer", "link")
    expect("link", os.readlink("link"), "newer")
    with open("newer", "r+", encoding="ascii") as file:
        os.fchmod(file.fileno(), 0o600)
        os.ftruncate(file.fileno(), 1)
        os.utime(file.fileno(), (3, 4))
        found = os.stat("newer")
        expect("descriptor", (oct(found.st_mode), found.st_size, found.st_mtime), ("0o100600", 1, 4.0))
    by_path = os.open("newer", os.O_PATH)
    refused("chmod of an O_PATH descriptor", lambda: os.fchmod(by_path, 0o644))
    os.mkdir("dir")
    directory = os.open("dir", os.O_RDONLY)
    os.fchmod(directory, 0o750)
    expect("directory", oct(os.stat("dir").st_mode), "0o40750")


def limits():
    refused("a guarded name", lambda: put(".git/hooks/pre-commit"))
    refused("a hidden file", lambda: open(HOME + "/.ssh/id", encoding="ascii").read())
    refused("a file outside", lambda: put(HOME + "/outside"))
    refused("the descriptor of a file outside", lambda: os.fchmod(os.open(HOME + "/text", os.O_RDONLY), 0o777))
    refused("an attribute of a file outside", lambda: os.setxattr(HOME + "/text", "user.a", b"1"))
    own = ()  # its own /proc elsewhere
    if TIER == "landlock":
        own = ("self/comm", "self/oom_score_adj", "thread-self/comm", "self/task/{0}/comm", "{0}/comm", "self/clear_refs",
               "self/timerslack_ns", "self/coredump_filter", "sys/kernel/domainname", "sys/net/ipv4/ip_forward")
        own = tuple(name.format(os.getpid()) for name in own if os.path.exists("/proc/" + name.format(os.getpid())))
    for name in (*own, f"{os.getppid()}/comm", "1/comm", "self/mem", f"{os.getppid()}/mem"):
        refused("/proc/" + name, lambda name=name: put("/proc/" + name, "0"))
        if TIER != "landlock":
            continue
        refused(f"/proc/{name}, as it is", lambda name=name: os.close(os.open("/proc/" + name, os.O_WRONLY)))
        refused(f"/proc/{name}, by a descriptor", lambda name=name: put_again("/proc/" + name))
    refused("an internet socket", lambda: socket.create_connection(("192.0.2.1", 80), 2))


def pair(listener, client, address):
    client.connect(address)
    server, _ = listener.accept()
    client.sendall(b"text")
    expect("received", server.recv(9), b"text")
    server.sendall(b"back")
    client.setblocking(True)
    expect("answered", client.recv(9), b"back")


def sockets():
    path = os.path.abspath("socket")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(4)
    pair(listener, socket.socket(socket.AF_UNIX), path)
    pair(listener, socket.socket(socket.AF_UNIX), "socket")
    patient = socket.socket(socket.AF_UNIX)
    patient.setblocking(False)
    pair(listener, patient, path)
    packets = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    packets.bind(path + "2")
    packets.listen(1)
    pair(packets, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET), path + "2")
    refused("a socket twice bound", lambda: listener.bind(path + "3"))
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    one.send(b"pair")
    expect("pair", other.recv(9), b"pair")
    reader, writer = os.pipe()
    one, other = socket.socketpair()
    one.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [writer]))])
    _, extra, _, _ = other.recvmsg(1, socket.CMSG_SPACE(4))
    os.write(int.from_bytes(extra[0][2][:4], "little"), b"sent")
    expect("passed descriptor", os.read(reader, 9), b"sent")
    refused("a socket outside", lambda: socket.socket(socket.AF_UNIX).connect(HOME + "/outside.socket"))


def locks():
    with open("lock", "w", encoding="ascii") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        expect("a held lock", subprocess.run(["flock", "-n", "lock", "true"], check=False).returncode, 1)
        waits = subprocess.Popen(["flock", "lock", "true"])
        fcntl.flock(file, fcntl.LOCK_UN)
        expect("a lock that is waited for", waits.wait(90), 0)
    refused("a lock on a directory", lambda: fcntl.flock(os.open(".", os.O_RDONLY), fcntl.LOCK_EX))


for part in (files, limits, sockets, locks):
    try:
        part()
    except OSError as error:
        print(f"{part.__name__}: {error}, line {error.__traceback__.tb_next.tb_lineno if error.__traceback__.tb_next else 0}")
print("done")
