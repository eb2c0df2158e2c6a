"""In a box of --cow: tries every way to change the workspace on the host. What fails says nothing: the host is compared afterwards."""
import ctypes
import fcntl
import mmap
import os
import socket
import stat
import struct
import sys

libc = ctypes.CDLL(None, use_errno=True)
state = sys.argv[1]
done = []


def attempt(name, act):
    try:
        act()
        done.append(name)
    except OSError as e:
        print(f"{name}: {os.strerror(e.errno)}")


def write(path, flags=0, text=b"changed\n"):
    fd = os.open(path, os.O_WRONLY | flags)
    os.write(fd, text)
    os.close(fd)


def mapped():
    fd = os.open("mapped", os.O_RDWR)
    with mmap.mmap(fd, 4096, mmap.MAP_SHARED) as m:
        m[0:4] = b"evil"
        m.flush()
    os.close(fd)


def direct():
    fd = os.open("direct", os.O_RDWR | os.O_DIRECT)
    with mmap.mmap(-1, 4096) as m:
        m.write(b"e" * 4096)
        os.writev(fd, [m])
    os.close(fd)


def old_descriptor():
    """Opened for reading before the copy-up, reopened for writing through /proc."""
    fd = os.open("reopened", os.O_RDONLY)
    write(f"/proc/self/fd/{fd}", os.O_TRUNC)


def flags():
    fd = os.open("ioctl", os.O_RDONLY)
    fcntl.ioctl(fd, 0x40086602, struct.pack("l", 0x40))  # FS_IOC_SETFLAGS, NODUMP
    os.close(fd)


def connects():
    s = socket.socket(socket.AF_UNIX)
    s.connect("host.sock")
    s.send(b"evil")
    print("CONNECTED")


def pipes():
    fd = os.open("host.fifo", os.O_WRONLY | os.O_NONBLOCK)
    os.write(fd, b"evil")


def binds():
    socket.socket(socket.AF_UNIX).bind("bound.sock")


def replaced_directory():
    os.mkdir("fresh")
    os.unlink("tree/x")
    os.rmdir("tree")
    os.rename("fresh", "tree")


def handle():
    """open_by_handle_at of the workspace's directory on the host."""
    room = ctypes.create_string_buffer(struct.pack("Ii", 128, 0) + bytes(128))
    number = ctypes.c_int()
    if libc.name_to_handle_at(-100, b"plain", room, ctypes.byref(number), 0) < 0 or libc.open_by_handle_at(3, room, os.O_WRONLY) < 0:
        raise OSError(ctypes.get_errno(), "")


def mounts():
    if libc.umount2(os.getcwd().encode(), 2) < 0:
        raise OSError(ctypes.get_errno(), "")
    print("UNMOUNTED")


attempt("write", lambda: write("plain"))
attempt("append", lambda: write("appended", os.O_APPEND))
attempt("truncate", lambda: os.truncate("truncated", 0))
attempt("O_TRUNC", lambda: write("emptied", os.O_TRUNC, b""))
attempt("mmap", mapped)
attempt("O_DIRECT", direct)
attempt("reopen", old_descriptor)
attempt("ioctl", flags)
attempt("fallocate", lambda: os.posix_fallocate(os.open("allocated", os.O_RDWR), 0, 65536))
attempt("chmod", lambda: os.chmod("mode", 0o777))
attempt("utime", lambda: os.utime("times", (1, 1)))
attempt("setxattr", lambda: os.setxattr("xattr", "user.evil", b"1"))
attempt("chown", lambda: os.chown("owner", os.getuid(), os.getgid()))
attempt("rename", lambda: os.rename("renamed", "other"))
attempt("replace", lambda: os.replace("over", "covered"))
attempt("link", lambda: os.link("linked", "another"))
attempt("linked write", lambda: write("name1"))
attempt("unlink", lambda: os.unlink("removed"))
attempt("symlink", lambda: os.symlink("/etc", "out"))
attempt("mkdir", lambda: os.mkdir("directory"))
attempt("directory", replaced_directory)
attempt("chmod top", lambda: os.chmod(".", 0o777))
attempt("setxattr top", lambda: os.setxattr(".", "user.evil", b"1"))
attempt("mknod", lambda: os.mknod("device", stat.S_IFBLK | 0o666, os.makedev(8, 0)))
attempt("mkfifo", lambda: os.mkfifo("fifo"))
attempt("connect", connects)
attempt("fifo", pipes)
attempt("bind", binds)
attempt("handle", handle)
attempt("umount", mounts)
attempt("whiteout", lambda: os.mknod("whiteout", stat.S_IFCHR | 0o600, 0))
attempt("overlay xattr", lambda: os.setxattr("tree", "user.overlay.redirect", b"/"))
for path in (state, state + "/pinfold", state + "/pinfold/layers"):
    attempt("layers", lambda path=path: print("SEEN", os.listdir(path)) if os.listdir(path) and "layers" in path else None)
    attempt("layers write", lambda path=path: (os.mkdir(path + "/evil"), print("MADE", path)))
print("DONE", len(done))
