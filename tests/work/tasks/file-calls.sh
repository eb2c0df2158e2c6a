#!/bin/sh
# needs: python3
# What programs do with files in a workspace, all kinds of calls.
set -eu
python3 - <<'END'
import ctypes, fcntl, mmap, os, stat, tempfile
os.umask(0o027)
fd = os.open("a", os.O_CREAT | os.O_RDWR | os.O_EXCL, 0o666)
assert stat.S_IMODE(os.fstat(fd).st_mode) == 0o640, oct(os.fstat(fd).st_mode)
os.write(fd, b"x" * 8192)
with mmap.mmap(fd, 8192) as m:
    m[:5] = b"hello"
assert open("a", "rb").read(5) == b"hello"
fcntl.flock(fd, fcntl.LOCK_EX)
fcntl.lockf(fd, fcntl.LOCK_EX)
os.posix_fallocate(fd, 0, 1 << 16)
os.ftruncate(fd, 10)
os.close(fd)
os.link("a", "b")
os.rename("b", "c")
os.symlink("a", "l")
os.mkfifo("fifo")
assert os.readlink("l") == "a"
os.chmod("a", 0o600)
os.utime("a", (1, 1))
assert os.stat("a").st_mtime == 1
os.replace("c", "a")
os.truncate("a", 0)
d = os.open(".", os.O_DIRECTORY)
os.mkdir("sub", dir_fd=d)
f = os.open("x", os.O_CREAT | os.O_WRONLY, dir_fd=os.open("sub", os.O_DIRECTORY))
os.fsync(f)
os.fsync(d)
os.unlink("x", dir_fd=os.open("sub", os.O_DIRECTORY))
os.rmdir("sub")
t = tempfile.TemporaryFile(dir=".")
t.write(b"1")
fd = os.open(".", os.O_TMPFILE | os.O_RDWR, 0o600)
AT_FDCWD, AT_SYMLINK_FOLLOW = -100, 0x400
assert ctypes.CDLL(None).linkat(AT_FDCWD, f"/proc/self/fd/{fd}".encode(), AT_FDCWD, b"linked", AT_SYMLINK_FOLLOW) == 0
assert os.path.exists("linked")
try:
    os.setxattr("a", "user.test", b"1")
    assert os.getxattr("a", "user.test") == b"1"
except OSError as e:
    import errno
    assert e.errno == errno.EOPNOTSUPP, e
try:
    open("no/such/dir", "w")
except FileNotFoundError:
    pass
try:
    os.mkdir("a")
except FileExistsError:
    pass
try:
    os.open("a", os.O_CREAT | os.O_EXCL)
except FileExistsError:
    pass
try:
    open("a/b", "w")
except NotADirectoryError:
    pass
os.symlink("loop", "loop")
try:
    open("loop", "w")
except OSError as e:
    assert e.errno == 40
END
