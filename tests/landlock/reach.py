#!/usr/bin/env python3
"""reach.py files FOLDER | process PID [everybody] | own PID: tries to change what lies in FOLDER, or process PID; a line "NAME ok|ERRNO" for each try.

Outside of a box each try shows that it can work; in one nothing may. FOLDER has a victim for each try, made by victims().
"""
import ctypes
import errno
import fcntl
import os
import platform
import socket
import struct
import sys

libc = ctypes.CDLL(None, use_errno=True)
AT_FDCWD, AT_EMPTY_PATH = -100, 0x1000
X86 = platform.machine() == "x86_64"
NR = {"fchmodat2": 452, "setxattrat": 463, "removexattrat": 466, "file_setattr": 469, "pidfd_open": 434, "pidfd_send_signal": 424, "pidfd_getfd": 438,
      "process_madvise": 440, "ioprio_set": 251 if X86 else 30, "sched_setattr": 314 if X86 else 274, "sched_setparam": 142 if X86 else 118,
      "setpriority": 141 if X86 else 140, "kcmp": 312 if X86 else 272, "move_pages": 279 if X86 else 239, "migrate_pages": 256 if X86 else 238,
      "get_robust_list": 274 if X86 else 100, "tgkill": 234 if X86 else 131, "rt_sigqueueinfo": 129 if X86 else 138, "ptrace": 101 if X86 else 117,
      "process_vm_readv": 310 if X86 else 270, "prlimit64": 302 if X86 else 261, "utimensat": 280 if X86 else 88, "fchownat": 260 if X86 else 54}


def call(name, *arguments):
    result = libc.syscall(ctypes.c_long(NR[name]), *(ctypes.c_long(a) if isinstance(a, int) else a for a in arguments))
    if result < 0:
        raise OSError(ctypes.get_errno(), name)
    return result


def by_fd(flags):
    def opened(function):
        return lambda path: function(os.open(path, flags))
    return opened


def flags_of(path, clear):
    fd = os.open(path, os.O_RDONLY)
    data = bytearray(struct.pack("=l", 0))
    fcntl.ioctl(fd, 0x80086601, data)
    fcntl.ioctl(fd, 0x40086602, struct.pack("=l", struct.unpack("=l", data)[0] | (0 if clear else 0x40)))  # FS_NODUMP_FL


def extended(path):
    fd = os.open(path, os.O_RDONLY)
    data = bytearray(28)
    fcntl.ioctl(fd, 0x801C581F, data)
    fcntl.ioctl(fd, 0x401C5820, bytes(data))


def key(path):
    """FS_IOC_ADD_ENCRYPTION_KEY: what a file system that knows it says of an empty request differs from what one that does not says."""
    fcntl.ioctl(os.open(os.path.dirname(path), os.O_RDONLY), 0xC0506617, bytearray(80))


def bind(path):
    """By its bare name: a path may be longer than an address."""
    here = os.open(".", os.O_PATH)
    os.chdir(os.path.dirname(path))
    try:
        socket.socket(socket.AF_UNIX).bind(os.path.basename(path))
    finally:
        os.fchdir(here)


def by_link(path):
    link = f"link-{os.getpid()}-{os.path.basename(path)}"
    os.symlink(path, link)
    try:
        os.chmod(link, 0o600)
    finally:
        os.remove(link)


def at_empty(path):
    os.chown(os.open(path, os.O_PATH), -1, os.getgid())


XATTR = struct.pack("=QII", 0, 0, 0)
FILES = {
    "chmod": lambda p: os.chmod(p, 0o600),
    "chmod-directory": lambda p: os.chmod(os.path.dirname(p), 0o755),
    "chmod-by-link": by_link,
    "chmod-by-proc": lambda p: os.chmod(f"/proc/self/fd/{os.open(p, os.O_PATH)}", 0o600),
    "chmod-socket": lambda p: call("fchmodat2", os.open(p, os.O_PATH), b"", 0o600, AT_EMPTY_PATH),
    "fchmod": by_fd(os.O_RDONLY)(lambda fd: os.fchmod(fd, 0o600)),
    "fchmodat2": lambda p: call("fchmodat2", AT_FDCWD, p.encode(), 0o600, 0),
    "fchmodat2-empty": by_fd(os.O_PATH)(lambda fd: call("fchmodat2", fd, b"", 0o600, AT_EMPTY_PATH)),
    "chown": lambda p: os.chown(p, -1, os.getgid()),
    "lchown": lambda p: os.lchown(p, -1, os.getgid()),
    "fchown": by_fd(os.O_RDONLY)(lambda fd: os.fchown(fd, -1, os.getgid())),
    "fchownat-empty": by_fd(os.O_PATH)(lambda fd: call("fchownat", fd, b"", -1, os.getgid(), AT_EMPTY_PATH)),
    "utimes": lambda p: os.utime(p, (1, 1)),
    "utimes-now": lambda p: os.utime(p, None),
    "futimens": by_fd(os.O_RDONLY)(lambda fd: os.utime(fd, (1, 1))),
    "utimensat-empty": by_fd(os.O_PATH)(lambda fd: call("utimensat", fd, b"", 0, AT_EMPTY_PATH)),
    "setxattr": lambda p: os.setxattr(p, "user.x", b"1"),
    "lsetxattr": lambda p: os.setxattr(p, "user.x", b"1", follow_symlinks=False),
    "fsetxattr": by_fd(os.O_RDONLY)(lambda fd: os.setxattr(fd, "user.x", b"1")),
    "removexattr": lambda p: os.removexattr(p, "user.there"),
    "fremovexattr": by_fd(os.O_RDONLY)(lambda fd: os.removexattr(fd, "user.there")),
    "setxattrat": lambda p: call("setxattrat", AT_FDCWD, p.encode(), 0, b"user.x", XATTR, 16),
    "removexattrat": lambda p: call("removexattrat", AT_FDCWD, p.encode(), 0, b"user.there"),
    "file_setattr": lambda p: call("file_setattr", AT_FDCWD, p.encode(), bytes(24), 24, 0),
    "FS_IOC_SETFLAGS": lambda p: flags_of(p, False),
    "FS_IOC_FSSETXATTR": extended,
    "FS_IOC_ADD_ENCRYPTION_KEY": key,
    "truncate": lambda p: os.truncate(p, 1),
    "open-truncate": lambda p: os.open(p, os.O_RDONLY | os.O_TRUNC),
    "write": lambda p: os.open(p, os.O_WRONLY),
    "create": lambda p: os.open(p + ".new", os.O_WRONLY | os.O_CREAT, 0o600),
    "mkdir": lambda p: os.mkdir(p + ".new"),
    "symlink": lambda p: os.symlink("x", p + ".new"),
    "mkfifo": lambda p: os.mkfifo(p + ".new"),
    "bind": lambda p: bind(p + ".new"),
    "link-here": lambda p: os.link(p, f"link-{os.getpid()}"),
    "link-there": lambda p: os.link(p, p + ".new"),
    "rename": lambda p: os.rename(p, p + ".new"),
    "rename-here": lambda p: os.rename(p, f"moved-{os.getpid()}"),
    "remove": os.remove,
}


def victims(folder):
    for name in FILES:
        os.makedirs(f"{folder}/{name}")
        path = f"{folder}/{name}/victim"
        if name == "chmod-socket":
            bind(path)
            continue
        with open(path, "w", encoding="ascii") as file:
            file.write("before\n")
        try:
            os.setxattr(path, "user.there", b"1")
        except OSError:
            pass  # not on this file system


def reached(name, function, *arguments):
    try:
        function(*arguments)
        print(name, "ok", flush=True)
    except OSError as error:
        print(name, errno.errorcode.get(error.errno, error.errno), flush=True)


def descriptor_of(pid):
    return call("pidfd_open", pid, 0)


def word(value=0):
    return ctypes.byref(ctypes.c_long(value))


def remote_read(pid):
    room = ctypes.create_string_buffer(8)
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        at = int(file.read().rsplit(")", 1)[1].split()[23])  # startcode
    here, there = struct.pack("=QQ", ctypes.addressof(room), 8), struct.pack("=QQ", at, 8)
    call("process_vm_readv", pid, here, 1, there, 1, 0)


def seize(pid):
    call("ptrace", 0x4206, pid, 0, 0)
    call("ptrace", 0x4207, pid, 0, 0)
    os.waitpid(pid, 0x40000000)
    call("ptrace", 17, pid, 0, 0)


def read(path):
    fd = os.open(path, os.O_RDONLY)
    os.read(fd, 1)


PROCESS = {
    "prlimit": lambda p: call("prlimit64", p, 7, struct.pack("=QQ", 64, 64), 0),
    "sched_setaffinity": lambda p: os.sched_setaffinity(p, os.sched_getaffinity(0)),
    "sched_setscheduler": lambda p: os.sched_setscheduler(p, os.SCHED_BATCH, os.sched_param(0)),
    "sched_setparam": lambda p: call("sched_setparam", p, struct.pack("=i", 0)),
    "sched_setattr": lambda p: call("sched_setattr", p, struct.pack("=IIQiIQQQ", 48, 3, 0, os.getpriority(os.PRIO_PROCESS, p), 0, 0, 0, 0), 0),
    "setpriority": lambda p: os.setpriority(os.PRIO_PROCESS, p, os.getpriority(os.PRIO_PROCESS, p)),
    "setpriority-group": lambda p: os.setpriority(os.PRIO_PGRP, os.getpgid(p), os.getpriority(os.PRIO_PROCESS, p)),
    "ioprio_set": lambda p: call("ioprio_set", 1, p, 2 << 13 | 6),
    "ioprio_set-group": lambda p: call("ioprio_set", 2, os.getpgid(p), 2 << 13 | 7),
    "kill": lambda p: os.kill(p, 0),
    "kill-group": lambda p: os.killpg(os.getpgid(p), 0),
    "tgkill": lambda p: call("tgkill", p, p, 0),
    "rt_sigqueueinfo": lambda p: call("rt_sigqueueinfo", p, 0, struct.pack("=iii", 0, 0, -1) + bytes(116)),
    "pidfd_send_signal": lambda p: call("pidfd_send_signal", descriptor_of(p), 0, 0, 0),
    "pidfd_getfd": lambda p: call("pidfd_getfd", descriptor_of(p), 0, 0),
    "ptrace": seize,
    "process_vm_readv": remote_read,
    "process_madvise": lambda p: call("process_madvise", descriptor_of(p), struct.pack("=QQ", 0, 0), 1, 20, 0),
    "kcmp": lambda p: call("kcmp", os.getpid(), p, 1, 0, 0),
    "move_pages": lambda p: call("move_pages", p, 0, 0, 0, 0, 0),
    "migrate_pages": lambda p: call("migrate_pages", p, 64, word(1), word(1)),
    "get_robust_list": lambda p: call("get_robust_list", p, word(), word()),
    "environ": lambda p: read(f"/proc/{p}/environ"),
    "maps": lambda p: read(f"/proc/{p}/maps"),
    "mem": lambda p: os.open(f"/proc/{p}/mem", os.O_RDONLY),
    "auxv": lambda p: read(f"/proc/{p}/auxv"),
    "root": lambda p: os.listdir(f"/proc/{p}/root/"),
    "cwd": lambda p: os.listdir(f"/proc/{p}/cwd/"),
    "fd": lambda p: os.readlink(f"/proc/{p}/fd/0"),
    "exe": lambda p: os.readlink(f"/proc/{p}/exe"),
    "oom_score_adj": lambda p: os.close(os.open(f"/proc/{p}/oom_score_adj", os.O_WRONLY)),
}


# Not tried outside, where they would work: they speak of everything that this user runs.
EVERYBODY = {
    "setpriority-user": lambda p: call("setpriority", os.PRIO_USER, os.getuid(), 0),
    "setpriority-everybody": lambda p: call("setpriority", os.PRIO_USER, 0, 0),
    "ioprio_set-user": lambda p: call("ioprio_set", 3, os.getuid(), 2 << 13 | 4),
}


def own_signal(pid):
    """SIGIO to whoever is said to own a descriptor: ends a process that does not expect it."""
    a, b = socket.socketpair()
    fcntl.fcntl(a, fcntl.F_SETOWN, pid)
    fcntl.fcntl(a, fcntl.F_SETFL, fcntl.fcntl(a, fcntl.F_GETFL) | os.O_ASYNC)
    b.send(b"x")


if __name__ == "__main__":
    if sys.argv[1] == "files":
        for each, attempt in FILES.items():
            reached(each, attempt, f"{sys.argv[2]}/{each}/victim")
    elif sys.argv[1] == "process":
        for each, attempt in {**PROCESS, **(EVERYBODY if sys.argv[3:] else {})}.items():
            reached(each, attempt, int(sys.argv[2]))
    else:
        own_signal(int(sys.argv[2]))
