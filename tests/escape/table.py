"""The attacks. A row: name, operations of the attack program, how they must end in a box, and what surrounds them.

    ops        words for the attack program; {work} {home} {outside} {victim} {pid} ... are the scene's
    deny       how it must end inside: errno names, "exit N", separated by spaces
    policy     flags besides --workspace
    effect     a function of the scene that says whether the host was harmed; seen outside, not inside
    leaks      outside, the secret is read; inside it never may be, in any row
    harmless   inside it may believe that it got through, as long as there is no effect and no leak
    any_step   an earlier operation may be the one that is refused
    outside    the operations outside, where they must differ
    absent     what outside means that the machine has no such thing
    through    what outside counts as success besides "through"
    before     prepares the scene;  during: acts on the host while the attack runs (at "wait" when waits)
    users      "root user"
"""
import array
import contextlib
import dataclasses
import glob
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import pf  # noqa: E402

MARK = "PINFOLD-WAS-HERE"
TOKEN = "SECRET-e5c9a1"


@dataclasses.dataclass
class Row:
    name: str
    ops: str
    deny: object = ""
    outside: str = ""
    policy: str = ""
    effect: object = None
    leaks: bool = False
    harmless: bool = False
    any_step: bool = False
    through: str = ""
    before: object = None
    during: object = None
    waits: bool = True
    mounts: bool = False
    terminal: bool = False
    settle: float = 0        # the end is told by the file work/over, and seconds pass until the effect is looked for
    limit: int = 120
    users: str = "root user"
    root_control: bool = False
    no_workspace: bool = False
    preload: str = ""
    absent: str = ""  # what outside means that this machine has no such thing
    values: dict = dataclasses.field(default_factory=dict)

    def __post_init__(self):
        self.deny = set(self.deny.split()) if "exit" not in self.deny else set(self.deny.split("|"))
        self.users = self.users.split()


class Cannot(Exception):
    """The row means nothing on this machine."""


ROWS = []


def A(name, ops, deny="", **more):
    ROWS.append(Row(name, ops, deny, **more))


# ---- what can be seen on the host afterwards

def marked(path):
    """The file has our mark."""
    def look(scene):
        with contextlib.suppress(OSError):
            with open(scene.words(path)[0], encoding="utf-8", errors="replace") as text:
                return MARK in text.read()
        return False
    return look


def exists(path):
    return lambda scene: os.path.lexists(scene.words(path)[0])


def gone(path):
    return lambda scene: not os.path.lexists(scene.words(path)[0])


def empty(path):
    return lambda scene: os.path.getsize(scene.words(path)[0]) == 0


def contains(path, text):
    def look(scene):
        with contextlib.suppress(OSError):
            with open(scene.words(path)[0], encoding="utf-8", errors="replace") as file:
                return text in file.read()
        return False
    return look


def mode_is(path, mode):
    return lambda scene: stat.S_IMODE(os.lstat(scene.words(path)[0]).st_mode) == mode


def made_with(path, mode):
    return lambda scene: exists(path)(scene) and mode_is(path, mode)(scene)


def old(path):
    return lambda scene: os.lstat(scene.words(path)[0]).st_mtime < 100


def helper_dead(scene):
    with contextlib.suppress(subprocess.TimeoutExpired):
        scene.host.helper.wait(0.3 if scene.inside else 10)
    dead = scene.host.helper.returncode is not None
    if dead:
        scene.host.start_helpers_again()
    return dead


def received(scene):
    end = time.monotonic() + (0.05 if scene.inside else 10)
    while not any(MARK.encode() in data for data in scene.host.received):
        if time.monotonic() >= end:
            return False
        time.sleep(0.01)
    return True


RO = "EROFS EACCES EPERM"
NO = "EACCES EPERM"
UNSEEN = "ESRCH EPERM EACCES ENOENT"

# ==== files outside the workspace ====
A("write-outside", "write {outside}/victim", "EROFS", effect=marked("{outside}/victim"))
A("write-outside-rdwr", "write-rdwr {outside}/victim", "EROFS", effect=marked("{outside}/victim"))
A("truncate-outside", "truncate {outside}/victim", "EROFS", effect=empty("{outside}/victim"))
A("truncate-open-outside", "trunc-open {outside}/victim", "EROFS", effect=empty("{outside}/victim"))
A("create-outside", "create {outside}/new", "EROFS", effect=exists("{outside}/new"))
A("mkdir-outside", "mkdir {outside}/new", "EROFS", effect=exists("{outside}/new"))
A("symlink-outside", "symlink /etc/passwd {outside}/new", "EROFS", effect=exists("{outside}/new"))
A("unlink-outside", "unlink {outside}/victim", "EROFS", effect=gone("{outside}/victim"))
A("rmdir-outside", "rmdir {outside}/dir", "EROFS", effect=gone("{outside}/dir"))
A("rename-outside", "rename {outside}/victim {outside}/other", "EROFS", effect=exists("{outside}/other"))
A("rename-out-of-workspace", "rename {work}/README {outside}/README", "EROFS EXDEV", effect=exists("{outside}/README"))
A("rename-into-workspace", "rename {outside}/victim {work}/victim", "EROFS EXDEV", effect=gone("{outside}/victim"))
A("link-into-workspace-and-write", "link {outside}/victim {work}/v , write {work}/v", "EROFS EXDEV EPERM EACCES", any_step=True,
  effect=marked("{outside}/victim"))
A("symlink-in-workspace-and-write", "symlink {outside}/victim {work}/v , write {work}/v", "EROFS", effect=marked("{outside}/victim"))
A("chmod-outside", "chmod {outside}/victim", "EROFS", effect=mode_is("{outside}/victim", 0o777))
A("fchmod-outside", "fchmod {outside}/victim", "EROFS", effect=mode_is("{outside}/victim", 0o777))
A("utimes-outside", "utimes {outside}/victim", "EROFS", effect=old("{outside}/victim"))
A("xattr-outside", "setxattr {outside}/victim", "EROFS")
A("inode-flags-outside", "setflags {outside}/victim", "EROFS EPERM ENOTTY")
A("generation-outside", "setversion {outside}/victim", "ENOTTY", absent="refused ENOTTY")
A("generation-in-workspace", "setversion {work}/README", "ENOTTY", absent="refused ENOTTY")
A("encryption-key-for-the-file-system", "add-encryption-key {work}", "ENOTTY", through="refused (EOPNOTSUPP|EINVAL)", absent="refused ENOTTY")
# what else file systems answer on a descriptor opened for reading: EXT4_IOC_MIGRATE, FS_IOC_ENABLE_VERITY, FITRIM
for key, request in {"migrate": "0x6609", "verity": "0x40806685", "trim": "0xc0185879", "precache": "0x6612"}.items():
    A("ioctl-" + key, "ioctl {work}/README " + request, "ENOTTY", through="refused (EOPNOTSUPP|EINVAL|EPERM|EFAULT)", absent="refused ENOTTY")
A("mmap-write-outside", "mmap-write {outside}/victim", "EROFS", effect=marked("{outside}/victim"))
A("bind-socket-outside", "bind {outside}/new", RO, effect=exists("{outside}/new"))
A("fifo-outside", "mkfifo {outside}/new", "EROFS EPERM", effect=exists("{outside}/new"))
A("dotdot-outside", "write {work}/src/../../outside/victim", "EROFS", effect=marked("{outside}/victim"))
A("proc-self-root", "write /proc/self/root{outside}/victim", "EROFS", effect=marked("{outside}/victim"))
A("proc-self-cwd", "write /proc/self/cwd/../outside/victim", "EROFS", effect=marked("{outside}/victim"))
A("proc-all-roots", "hunt-roots {outside}/victim", "EROFS EACCES EPERM ENOENT", effect=marked("{outside}/victim"))
A("proc-all-descriptors", "hunt-fds victim", "EACCES ENOENT ENOTDIR ESRCH", effect=lambda s: marked("{victim}")(s) and not restore(s))
A("lease-on-a-file-of-the-workspace", "lease {work}/README", "EPERM")
for name in ("kernel/debug", "kernel/tracing", "fs/pstore", "fs/bpf", "class/zram-control"):  # what the kernel tells root alone
    A("read-sys-" + name.replace("/", "-"), "list /sys/" + name, "EACCES ENOENT", users="root", absent="refused ENOENT")
A("write-home", "write {home}/.bashrc", "EROFS EACCES", effect=marked("{home}/.bashrc"))
A("create-in-home", "create {home}/.profile", "EROFS EACCES ENOENT", effect=exists("{home}/.profile"))
A("write-etc", "write /etc/hostname", "EROFS EACCES", through="refused .*", users="user")
A("write-tmp-of-host", "create /tmp/pf-escape-{own}", "", harmless=True, effect=lambda s: tmp_effect(s))


def restore(scene):
    """The shared victim of the helper's directory, as it was."""
    with open(scene.words("{victim}")[0], "w", encoding="ascii") as text:
        text.write("untouched\n")
    return False


def tmp_effect(scene):
    path = scene.words("/tmp/pf-escape-{own}")[0]
    there = os.path.exists(path)
    if there:
        os.unlink(path)
    return there


# ==== descriptors ====
def stdin_of(name, flags):
    def before(scene):
        scene.stdin = scene.open(name, flags)
    return before


def stdout_of(name, flags):
    def before(scene):
        scene.more["stdout"] = scene.open(name, flags)
    return before


def passed(number, name, flags):
    """The file as descriptor `number` of the started program."""
    def before(scene):
        fd = scene.open(name, flags)
        os.dup2(fd, number)
        scene.stack.callback(os.close, number)
        scene.more["pass_fds"] = (number,)
    return before


DIR, PATH = os.O_RDONLY | os.O_DIRECTORY, os.O_PATH
A("inherited-directory", "fd-relative 89 victim", "EBADF", before=passed(89, "outside", DIR), effect=marked("{outside}/victim"))
A("inherited-file", "fd-read 87", "EBADF", before=passed(87, "outside/secret", os.O_RDONLY), leaks=True)
A("any-extra-descriptor", "fd-extra", "EBADF", before=passed(85, "outside/victim", os.O_RDWR))
A("stdin-directory", "fd-relative 0 victim", "exit 125|exit 2|refused EBADF|refused ENOTDIR|refused EROFS", before=stdin_of("outside", DIR),
  effect=marked("{outside}/victim"))
A("stdin-directory-upwards", "fd-upwards 0 outside/victim", "exit 125|exit 2", before=stdin_of("outside/dir", DIR), through="refused ENOENT")
A("stdin-opath", "fd-relative 0 victim", "exit 125|exit 2", before=stdin_of("outside", PATH | os.O_DIRECTORY), effect=marked("{outside}/victim"))
A("stdin-reopened-for-writing", "reopen-write 0", RO, harmless=True, before=stdin_of("outside/victim", os.O_RDONLY),
  effect=marked("{outside}/victim"))
A("stdin-truncated", "reopen-truncate 0", RO, harmless=True, before=stdin_of("outside/victim", os.O_RDONLY), effect=empty("{outside}/victim"))
A("stdin-chmod", "reopen-chmod 0", RO, harmless=True, before=stdin_of("outside/victim", os.O_RDONLY),
  effect=mode_is("{outside}/victim", 0o777))
A("stdin-of-hidden-file-reopened", "reopen-write 0", RO, harmless=True, before=stdin_of("home/.ssh/id_test", os.O_RDONLY),
  effect=marked("{home}/.ssh/id_test"))
A("stdout-read-back", "reopen-read 1", "EACCES EPERM ENOENT", harmless=True, before=stdout_of("home/.ssh/id_test", os.O_WRONLY | os.O_APPEND), leaks=True)
A("stdin-block-device", "fd-read 0", "exit 125|exit 2", before=lambda s: disk_stdin(s), users="root", through="refused ENODATA")
A("stdin-namespace", "setns-fd 0", "exit 125|exit 2|refused EPERM|refused EINVAL", before=lambda s: namespace_stdin(s), root_control=True)
A("stdin-pidfd", "setns-fd 0", "exit 125|exit 2|refused EPERM|refused EINVAL", before=lambda s: pidfd_stdin(s), through="refused (EINVAL|EPERM)")
A("stdin-socket-carries-directory", "scm-write 0 victim", "EAGAIN ENOTSOCK ENODATA EBADF EPERM EACCES ENOENT ENOTCONN", before=lambda s: scm_stdin(s),
  effect=marked("{outside}/victim"))


def reader_at(name, as_stdin=False, piped=True):
    """A FIFO from which a program of the host reads. Standard input is a pipe, which adds a rule, unless `piped` is false."""
    def before(scene):
        path = scene.file(name)
        os.mkfifo(path)
        os.chmod(path, 0o666)
        scene.user.own(path)
        scene.reader = scene.open(name, os.O_RDWR | os.O_NONBLOCK)
        if as_stdin:
            scene.stdin = scene.open(name, os.O_RDONLY | os.O_NONBLOCK)
        elif not piped:
            scene.stdin = os.open(os.devnull, os.O_RDONLY)
            scene.stack.callback(os.close, scene.stdin)
    return before


def piped(scene):
    """Standard input is a pipe of the user's, from which a program of the host reads on: a shell its script, say."""
    ends = os.pipe()
    for fd in ends:
        scene.stack.callback(os.close, fd)
    if pf.IS_ROOT:
        os.fchown(ends[0], scene.user.uid, scene.user.gid)
    os.set_blocking(ends[0], False)
    scene.stdin = scene.reader = ends[0]


def heard(scene):
    with contextlib.suppress(BlockingIOError):
        return MARK.encode() in os.read(scene.reader, 4096)
    return False


# No read-only mount keeps a FIFO from being written.
A("fifo-of-the-host", "write {outside}/pipe", "EROFS EACCES", before=reader_at("outside/pipe"), effect=heard)
A("fifo-of-the-host-rdwr", "write-rdwr {outside}/pipe", "EROFS EACCES", before=reader_at("outside/pipe"), effect=heard)
A("fifo-of-the-host-guard-off", "write {outside}/pipe", "EROFS EACCES", policy="--guard off", before=reader_at("outside/pipe"), effect=heard)
# Here the guard is not asked about opens, unless a tree of the host's lies in one that the box can write to.
for name, flags in {"layered": "--cow", "in-a-box-that-reads": "--profile readonly", "that-nobody-guards": "--read-only --guard off",
                    "layered-nested": "--cow --allow-nested-userns", "layered-in-a-private-place": "--cow --mount {outside}:/tmp/outside:ro"}.items():
    A("fifo-of-the-host-" + name, "write {outside}/pipe", "EROFS EACCES", policy=flags, before=reader_at("outside/pipe", piped=False), effect=heard)
    A("fifo-of-the-host-rdwr-" + name, "write-rdwr {outside}/pipe", "EROFS EACCES", policy=flags, before=reader_at("outside/pipe", piped=False), effect=heard)
A("fifo-of-the-host-in-a-private-place", "write /tmp/outside/pipe", "EROFS EACCES", outside="write {outside}/pipe",
  policy="--cow --mount {outside}:/tmp/outside:ro", before=reader_at("outside/pipe", piped=False), effect=heard)
A("fifo-of-the-host-as-stdin", "reopen-write 0", "EROFS EACCES", before=reader_at("outside/pipe", True), effect=heard)
for name, flags in {"": "", "-guard-off": "--guard off", "-in-a-box-that-reads": "--profile readonly", "-nested": "--allow-nested-userns"}.items():
    A("stdin-pipe-written" + name, "reopen-write 0", "EACCES", policy=flags, before=piped, effect=heard)
A("stdin-pipe-written-without-its-mark", "reopen-chmod 0 , reopen-write 0", "EACCES", any_step=True, before=piped, effect=heard)


def disk_stdin(scene):
    for disk in glob.glob("/dev/vd?") + glob.glob("/dev/sd?") + glob.glob("/dev/nvme?n?") + glob.glob("/dev/loop0"):
        with contextlib.suppress(OSError):
            fd = os.open(disk, os.O_RDONLY)
            scene.stack.callback(os.close, fd)
            scene.stdin = fd
            return
    raise Cannot("no block device may be opened on this machine")


def namespace_stdin(scene):
    fd = os.open("/proc/self/ns/uts", os.O_RDONLY)
    scene.stack.callback(os.close, fd)
    scene.stdin = fd


def pidfd_stdin(scene):
    fd = os.pidfd_open(scene.host.helper.pid)
    scene.stack.callback(os.close, fd)
    scene.stdin = fd


def scm_stdin(scene):
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    fd = os.open(scene.outside, DIR)
    ours.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))])
    os.close(fd)
    scene.stack.callback(ours.close)
    scene.stack.callback(theirs.close)
    scene.stdin = theirs.fileno()


# ==== processes ====
A("kill-host-process", "kill {pid} 0", "ESRCH EPERM")
A("kill-host-process-really", "kill {pid} 9", "ESRCH EPERM", effect=helper_dead)
A("pidfd-kill-host-process", "pidfd-kill {pid} 0", "ESRCH EPERM EINVAL")
A("queue-signal-to-host-process", "sigqueue {pid} 0", "ESRCH EPERM")
A("stop-parent", "kill parent 0", "ESRCH EPERM", harmless=True)
A("ptrace-host-process", "ptrace {pid}", "ESRCH EPERM")
A("ptrace-seize-host-process", "ptrace-seize {pid}", "ESRCH EPERM")
A("ptrace-parent", "ptrace-seize parent", "ESRCH EPERM EACCES", before=None, through="refused EPERM")
A("read-memory-of-host-process", "vm-read {pid}", "ESRCH EPERM")
A("write-memory-of-host-process", "vm-write {pid}", "ESRCH EPERM", through="refused EFAULT")
A("proc-mem-of-host-process", "mem-read {pid}", "ENOENT EACCES EPERM")
A("steal-descriptor-of-host-process", "pidfd-getfd {pid}", "ESRCH EPERM EINVAL")
A("environment-of-host-process", "read /proc/{pid}/environ", "ENOENT EACCES EPERM", leaks=True)
A("environment-of-any-process", "hunt-environ {token_head} {token_tail}", "ENOENT")
A("root-of-host-process", "read /proc/{pid}/root/etc/hostname", "ENOENT EACCES EPERM")
A("descriptor-of-host-process", "read /proc/{pid}/fd/0/victim", "ENOENT EACCES EPERM")
A("limits-of-host-process", "prlimit {pid}", "ESRCH EPERM")
A("affinity-of-host-process", "affinity {pid}", "ESRCH EPERM")
A("priority-of-host-process", "priority {pid}", "ESRCH EPERM EACCES")
A("kcmp-host-process", "kcmp {pid}", "ESRCH EPERM ENOSYS")
A("process-madvise-host-process", "process-madvise {pid}", "ESRCH EPERM EINVAL ENOSYS", root_control=True)  # wants CAP_SYS_NICE
A("count-host-processes", "count-processes 8", "ESRCH")
for what in ("mnt", "net", "pid", "user", "uts", "ipc"):
    A(f"setns-{what}-of-host-process", f"setns {{pid}} {what}", "ENOENT EACCES EPERM ESRCH", root_control=True, through="refused EINVAL")
A("setns-pidfd-of-host-process", "setns-pidfd {pid}", "ESRCH EPERM EINVAL", root_control=True)

# pid 1 and pinfold's own processes; outside, the helper stands for them
INSIDE_1 = {"target": "1"}


def target(name, ops, deny, **more):
    """Outside the target is the helper, inside pid 1 of the box."""
    def before(scene):
        scene.row = dataclasses.replace(scene.row, deny="", users="", values={"target": "1" if scene.inside else str(scene.host.helper.pid)})
    A(name, ops, deny, before=before, values={"target": "1"}, **more)


target("ptrace-pid-1", "ptrace-seize {target}", "EPERM ESRCH")
target("read-memory-of-pid-1", "vm-read {target}", "EPERM ESRCH")
target("proc-mem-of-pid-1", "mem-open-write {target}", NO)
target("environment-of-pid-1", "read /proc/{target}/environ", NO + " ENODATA", leaks=True)
# where the guard opens for the command, which may read what the command may not
JUDGED = "--hide '**/.env'"
target("environment-of-pid-1-where-opens-are-judged", "read /proc/{target}/environ", NO + " ENODATA", policy=JUDGED, leaks=True)
target("environment-of-pid-1-by-symlink", "symlink /proc/{target}/environ {work}/e , read {work}/e", NO + " ENODATA", policy=JUDGED, leaks=True)
target("environment-of-pid-1-by-thread", "read /proc/{target}/task/{target}/environ", NO + " ENODATA", policy=JUDGED, leaks=True)
A("environment-of-any-process-where-opens-are-judged", "hunt-environ {token_head} {token_tail}", "ENOENT", policy=JUDGED)
target("descriptors-of-pid-1", "readlink /proc/{target}/fd/0", NO)
target("program-of-pid-1", "readlink /proc/{target}/exe", NO)
target("exe-of-pid-1", "exe-read {target}", NO + " ENOENT")
target("steal-descriptor-of-pid-1", "pidfd-getfd {target}", "EPERM ESRCH")
target("write-by-root-of-pid-1", "write /proc/{target}/root{outside}/victim", RO, effect=marked("{outside}/victim"))
target("root-of-pid-1", "read /proc/{target}/root/etc/hostname", NO)
target("working-directory-of-pid-1", "read /proc/{target}/cwd/victim", NO)
target("maps-of-pid-1", "read /proc/{target}/maps", NO + " ENODATA")
target("namespaces-of-pid-1", "setns {target} mnt", NO, root_control=True)

# ==== privileges ====
def setuid_program(scene):
    tool = scene.file("outside/gain")
    shutil.copy(scene.file("work/attack"), tool)
    os.chown(tool, 65534 if scene.user.uid == 0 else 0, 0)
    os.chmod(tool, 0o6755)


def capable_program(scene):
    tool = scene.file("outside/gain")
    shutil.copy(scene.file("work/attack"), tool)
    os.chmod(tool, 0o755)
    # VFS_CAP_REVISION_2, effective, CAP_SYS_CHROOT permitted (linux/capability.h)
    os.setxattr(tool, "security.capability", (0x02000001).to_bytes(4, "little") + (1 << 18).to_bytes(4, "little") + bytes(12))


A("setuid-program", "exec-gain {outside}/gain", NO, before=setuid_program, root_control=True)
A("capable-program", "exec-gain {outside}/gain", NO, before=capable_program, users="user", root_control=True)
A("become-other-user", "setuid 65534", "EPERM EINVAL", root_control=True)
A("become-root", "setuid 0", "EPERM EINVAL", users="user", root_control=True)
A("set-groups", "setgroups", "EPERM", root_control=True)
A("raise-capabilities", "capset", "EPERM", root_control=True)
A("bounding-set", "bounding", "EPERM")
A("no-new-privileges", "new-privs", "EPERM")

# ==== namespaces and mounts ====
A("user-namespace-unshare", "unshare-user", "EPERM ENOSYS ENOSPC")
A("user-and-mount-namespace", "unshare-user-mount", "EPERM ENOSYS ENOSPC")
A("user-namespace-clone", "clone-user", "EPERM ENOSYS ENOSPC")
A("user-namespace-clone3", "clone3-user", "EPERM ENOSYS ENOSPC")
A("mount-namespace", "unshare-mount", "EPERM ENOSYS", root_control=True)
A("net-namespace", "unshare-net", "EPERM ENOSYS", root_control=True)
A("mount-tmpfs", "mount-tmpfs {work}/src", "EPERM ENOSYS", mounts=True, root_control=True)
A("mount-bind", "mount-bind {outside} {work}/src", "EPERM ENOSYS", mounts=True, root_control=True)
A("mount-proc", "mount-proc {work}/src", "EPERM ENOSYS", mounts=True, root_control=True)
A("remount-root-writable", "remount-rw /", "EPERM ENOSYS EINVAL", mounts=True, root_control=True)
A("unmount-tmp", "mount-tmpfs {work}/src , umount {work}/src", "EPERM ENOSYS", any_step=True, mounts=True, root_control=True)
A("unmount-hidden", "umount {home}/.ssh", "EPERM ENOSYS EINVAL EACCES", mounts=True, root_control=True, through="refused EINVAL")
A("open-tree", "open-tree /", "EPERM ENOSYS", mounts=True, root_control=True)
A("move-mount", "move-mount {outside} {work}/src", "EPERM ENOSYS", mounts=True, root_control=True)
A("fsopen", "fsopen", "EPERM ENOSYS", root_control=True)
A("fspick", "fspick /proc", "EPERM ENOSYS", mounts=True, root_control=True)
A("mount-setattr", "mount-setattr /", "EPERM ENOSYS", mounts=True, root_control=True)
A("pivot-root", "pivot-root {work}", "EPERM ENOSYS", mounts=True, root_control=True)
A("chroot", "chroot {work}", "EPERM ENOSYS", root_control=True)

# ==== the kernel's wider surface ====
SURFACE = "EPERM ENOSYS EACCES"
for op in ("bpf", "perf", "io-uring", "userfaultfd", "kexec", "kexec-file", "init-module", "finit-module", "delete-module", "syslog",
           "syslog-clear", "reboot", "swapon", "swapoff", "acct", "quotactl", "settime", "adjtime", "sethostname", "fanotify",
           "personality-old", "iopl", "ioperm", "modify-ldt", "add-key", "keyctl-user-ring", "lookup-cookie"):
    A(op, op, SURFACE, root_control=op not in ("perf", "io-uring", "userfaultfd", "quotactl", "personality-old", "modify-ldt",
                                               "add-key", "keyctl-user-ring"))
A("vhangup", "vhangup", SURFACE, users="user", through="refused EPERM")
A("open-by-handle", "open-by-handle {outside}", SURFACE, root_control=True)
A("move-pages-of-host-process", "move-pages {pid}", SURFACE + " ESRCH")
A("i386-entry", "i386-getpid", "EPERM ENOSYS")
A("i386-user-namespace", "i386-unshare", "EPERM ENOSYS")
A("x32-entry", "x32", "EPERM ENOSYS")

# ==== devices and kernel files ====
def device_nodes(scene):
    os.mknod(scene.file("work/kmsg"), stat.S_IFCHR | 0o666, os.makedev(1, 11))
    os.mknod(scene.file("work/zero"), stat.S_IFCHR | 0o666, os.makedev(1, 5))
    for name in ("work/kmsg", "work/zero"):
        os.chmod(scene.file(name), 0o666)


def cgroup_file():
    """A release_agent of cgroup v1, or a file of v2 that root may write."""
    found = sorted(glob.glob("/sys/fs/cgroup/*/release_agent")) + ["/sys/fs/cgroup/cgroup.max.depth"]
    return next(p for p in found if os.path.exists(p) or p == found[-1])


def same_text(path):
    with contextlib.suppress(OSError):
        with open(path, encoding="utf-8") as text:
            return text.read().strip()
    return ""


A("make-null-device", "mknod {work}/null c 1 3", "EPERM EACCES", root_control=True)
A("make-disk-device", "mknod {work}/disk b 7 0", "EPERM EACCES", root_control=True, through="refused ENXIO")
A("device-node-in-workspace", "read {work}/zero", "EACCES EPERM", before=device_nodes, root_control=True)
A("kernel-log-node-in-workspace", "read {work}/kmsg", "EACCES EPERM", before=device_nodes, root_control=True)
A("kernel-log", "read /dev/kmsg", "ENOENT EACCES EPERM", root_control=True)
A("kernel-memory", "read /proc/kcore", "EACCES EPERM ENOENT", root_control=True, through="refused ENOENT")
A("sysrq", "write-text /proc/sysrq-trigger h", RO + " ENOENT", root_control=True, absent="refused ENOENT")
A("core-pattern", "write-text /proc/sys/kernel/core_pattern {same}", RO, root_control=True,
  values={"same": same_text("/proc/sys/kernel/core_pattern") or "core"})
A("sysctl-vm", "write-text /proc/sys/vm/overcommit_memory {same}", RO, root_control=True,
  values={"same": same_text("/proc/sys/vm/overcommit_memory") or "0"})
A("sysfs", "write-text /sys/kernel/mm/transparent_hugepage/defrag madvise", RO + " ENOENT", root_control=True, through="refused (ENOENT|EINVAL)")
A("cgroup-release-agent", "write-text {file} {same}", RO + " ENOENT", root_control=True, values={"file": cgroup_file(), "same": same_text(cgroup_file()) or "''"},
  through="refused EINVAL")
A("cgroup-make", "mkdir {dir}/pf-escape-{own}", RO + " ENOENT", root_control=True, values={"dir": os.path.dirname(cgroup_file())},
  effect=lambda s: cgroup_effect(s))
A("oom-score-of-pid-1", "write-text /proc/1/oom_score_adj 500", NO, root_control=True, before=lambda s: None, users="user",
  through="refused .*")
A("core-limit-lowered-to-0", "core-limit", "EPERM")
A("core-limit-lowered-where-devices-are-shown", "core-limit", "EPERM", policy="--rw /dev/null")
A("core-dump", "core {work}", "EPERM", effect=lambda s: bool(glob.glob(s.file("work/core*"))) or not s.inside)


def cgroup_effect(scene):
    path = os.path.join(os.path.dirname(cgroup_file()), scene.words("pf-escape-{own}")[0])
    there = os.path.isdir(path)
    if there:
        os.rmdir(path)
    return there


# ==== secrets ====
A("hidden-key", "read {home}/.ssh/id_test", "EACCES", leaks=True)
A("hidden-directory-list", "list {home}/.ssh", "EACCES")
A("hidden-file", "read {home}/.netrc", "EACCES", leaks=True)
A("hidden-by-symlink", "symlink {home}/.ssh {work}/k , read {work}/k/id_test", "EACCES", leaks=True)
A("hidden-by-hard-link", "link {home}/.ssh/id_test {work}/k , read {work}/k", "EACCES EPERM EXDEV EROFS", any_step=True, leaks=True)
A("hidden-by-dotdot", "read {work}/../home/.ssh/id_test", "EACCES", leaks=True)
A("hidden-by-proc-root", "read /proc/self/root{home}/.ssh/id_test", "EACCES", leaks=True)
A("hidden-replaced-by-host", "wait , read {home}/.ssh/id_test", "EACCES ENOENT", leaks=True, during=lambda s, c: replace_dir(s, "home/.ssh"))
A("hidden-file-replaced-by-host", "wait , read {home}/.netrc", "EACCES ENOENT", leaks=True, during=lambda s, c: replace_file(s, "home/.netrc"))
A("hidden-deleted-and-made-again", "wait , read {home}/.ssh/id_test", "EACCES ENOENT", leaks=True, during=lambda s, c: remake_dir(s, "home/.ssh"))
A("hidden-created-later", "wait , read {home}/.aws/credentials", "EACCES ENOENT", leaks=True,
  during=lambda s, c: s.write("home/.aws/credentials", TOKEN))
A("hidden-wallet-created-later", "wait , read {home}/.electrum/wallets/default_wallet", "EACCES ENOENT", leaks=True,
  during=lambda s, c: s.write("home/.electrum/wallets/default_wallet", TOKEN))
A("hidden-token-below-what-is-seen-created-later", "wait , read {home}/.config/configstore/firebase-tools.json", "EACCES ENOENT", leaks=True,
  during=lambda s, c: s.write("home/.config/configstore/firebase-tools.json", TOKEN))
A("hidden-file-created-later", "wait , read {home}/.git-credentials", "EACCES ENOENT", leaks=True,
  during=lambda s, c: s.write("home/.git-credentials", TOKEN))
# A link into a process of the box leads whoever follows it outside into the box, whose directories of its own nothing guards.
for name, text in {"root": "/proc/4321/root", "root-of-self": "/proc/self/root/tmp/x", "directory": "/proc/4321/cwd/x", "of-a-thread": "/proc/4321/task/4322/root",
                   "descriptor": "/proc/4321/fd/9", "descriptor-in-dev": "/dev/fd/9/x", "behind-a-stream": "/proc/self/fd/0/x", "by-dots": "../../../../../../../proc/4321/root",
                   "over-a-link": "/var/run/../proc/4321/root/tmp"}.items():
    A("link-to-a-process-" + name, f"symlink {text} {{work}}/v", "EACCES", effect=exists("{work}/v"))
A("link-to-a-process-in-a-writable-place", "symlink /proc/4321/root/tmp {outside}/v", "EACCES", policy="--rw {outside}", effect=exists("{outside}/v"))
A("link-to-a-process-by-rename", "mkdir {work}/d , symlink /proc/4321/root {work}/d/v , rename {work}/d/v {work}/v", "EACCES", any_step=True, effect=exists("{work}/v"))


def any_link_in(path):
    def harmed(scene):
        top = scene.words(path)[0]
        return any(os.path.islink(os.path.join(at, name)) for at, dirs, files in os.walk(top) for name in dirs + files)
    return harmed


# In a tree without links, which is one with the workspace for the kernel, none arrives by a rename, either: nor in a directory, nor below one.
for name, ops in {"made": "symlink /etc/passwd {work}/src/l",
                  "renamed": "symlink /etc/passwd {work}/l , rename {work}/l {work}/src/l",
                  "in-a-directory": "mkdir {work}/d , symlink /etc/passwd {work}/d/l , rename {work}/d {work}/src/d",
                  "exchanged": "symlink /etc/passwd {work}/l , create {work}/src/f , exchange {work}/l {work}/src/f",
                  "exchanged-with-a-directory": "mkdir {work}/d , symlink /etc/passwd {work}/d/l , mkdir {work}/src/d , exchange {work}/src/d {work}/d",
                  "while-it-is-away": "rename {work}/src {work}/s , symlink /etc/passwd {work}/s/l , rename {work}/s {work}/src"}.items():
    A("no-links-" + name, ops, "EACCES EXDEV", any_step=True, policy="--mount {work}/src:{work}/src:nolinks", effect=any_link_in("{work}/src"))
HIDE = "--hide {work}/vault"


def vault(scene):
    scene.write("work/vault/deep/key", TOKEN)
    scene.write("work/open/deep/key", "nothing\n")


A("hide-in-workspace", "read {work}/vault/deep/key", NO, policy=HIDE, before=vault, leaks=True)
A("hide-in-workspace-rename", "rename {work}/vault {work}/v2 , read {work}/v2/deep/key", NO + " EBUSY", policy=HIDE, before=vault, any_step=True, leaks=True)
A("hide-in-workspace-parent-rename", "rename {work}/vault {work}/v2 , read {work}/v2/key", NO + " EBUSY", policy="--hide {work}/vault/deep",
  before=lambda s: (vault(s), s.write("work/vault/key", TOKEN)), any_step=True, through="", leaks=True, harmless=False)
A("hide-in-workspace-exchange", "exchange {work}/vault {work}/open , read {work}/open/deep/key", NO + " EBUSY", policy=HIDE, before=vault,
  any_step=True, leaks=True)
A("hide-in-workspace-link", "link {work}/vault/deep/key {work}/k , read {work}/k", NO + " EXDEV", policy=HIDE, before=vault, any_step=True, leaks=True)
A("hide-in-workspace-directory-descriptor", "chdir {work}/vault , chdir deep , read key", NO, policy=HIDE, before=vault, any_step=True, leaks=True)
A("hide-in-workspace-created-later", "wait , read {work}/vault/deep/key", NO + " ENOENT", policy=HIDE, leaks=True,
  during=lambda s, c: s.write("work/vault/deep/key", TOKEN))
A("hide-in-workspace-replaced-by-host", "wait , read {work}/vault/deep/key", NO + " ENOENT", policy=HIDE, before=vault, leaks=True,
  during=lambda s, c: replace_dir(s, "work/vault"))
A("hide-any-depth", "read {work}/src/a/b/.env", NO, policy="--hide '**/.env'", before=lambda s: s.write("work/src/a/b/.env", TOKEN), leaks=True)
A("hide-any-depth-later", "wait , read {work}/src/a/b/.env", NO, policy="--hide '**/.env'", leaks=True,
  during=lambda s, c: s.write("work/src/a/b/.env", TOKEN))
A("hide-any-depth-rename", "rename {work}/src/.env {work}/src/env , read {work}/src/env", NO, policy="--hide '**/.env'",
  before=lambda s: s.write("work/src/.env", TOKEN), any_step=True, leaks=True)
A("hide-any-depth-link", "link {work}/src/.env {work}/src/env , read {work}/src/env", NO, policy="--hide '**/.env'",
  before=lambda s: s.write("work/src/.env", TOKEN), any_step=True, leaks=True)
A("hide-any-depth-race", "race-swap-read {work}/src/a {work}/src/.env {work}/src/a {rounds}", NO, policy="--hide '**/.env'", leaks=True,
  before=lambda s: (s.write("work/src/.env", TOKEN * 2), s.write("work/src/a", "x")))


# Another name of a file that is guarded at the top of the workspace, which the guard finds by what is listed there.

def other_name(entries=0, odd="", mode=0o755):
    def prepare(scene):
        scene.write("work/.envrc", "x")
        scene.write("work/sub/f", "x")
        os.link(scene.file("work/.envrc"), scene.file("work/sub/other"))
        for n in [odd] * bool(odd) + list(range(entries)):
            scene.write(f"work/{n}", "")
        os.chmod(scene.file("work"), mode)
    return prepare


for name, more in {"": {}, "-among-many": {"entries": 400}, "-beside-letters-that-fold": {"odd": "\u212a"}, "-in-an-unreadable-directory": {"mode": 0o311}}.items():
    A("guarded-by-another-name" + name, "write {work}/sub/other", "EACCES", before=other_name(**more), effect=marked("{work}/.envrc"))
    A("guarded-by-a-further-name" + name, "link {work}/sub/other {work}/sub/third , write {work}/sub/third", "EACCES", any_step=True, before=other_name(**more),
      effect=marked("{work}/.envrc"))
A("guarded-by-another-name-chmod", "chmod {work}/sub/other", "EACCES", before=other_name(), effect=mode_is("{work}/.envrc", 0o777))
A("guarded-by-another-name-fchmod", "fchmod {work}/sub/other", "EACCES", before=other_name(), effect=mode_is("{work}/.envrc", 0o777))


# ---- what a hidden name gives away without an open

def kept_link(*names):
    """A link whose text is the secret, and a file that has it in an attribute, in its name and in an attribute's."""
    def make(scene):
        vault(scene)
        scene.write("work/src/.env", TOKEN)
        for name in names or ("work/vault/deep/l", "work/src/l/.env"):
            os.makedirs(os.path.dirname(scene.file(name)), exist_ok=True)
            os.symlink(TOKEN, scene.file(name))
        for name in ("work/vault/deep/key", "work/src/.env"):
            try:
                os.setxattr(scene.file(name), "user.pinfold", TOKEN.encode())
                os.setxattr(scene.file(name), "user." + TOKEN, b"x")
            except OSError as e:
                raise Cannot("this file system has no extended attributes") from e
    return make


def unopened(name, ops, engines=("native",), **more):
    for engine in engines:
        A(f"unopened-{name}" + ("" if engine == "native" else "-" + engine), ops, NO, leaks=True, any_step=True,
          **{"before": kept_link(), **more, "policy": f"--engine {engine} {HIDE} {more.get('policy', JUDGED)}"})


BOTH = ("native", "bwrap")
for call in ("readlink", "readlink-fd"):
    unopened(f"{call}-below-a-hidden-directory", call + " {work}/vault/deep/l", BOTH)
    unopened(f"{call}-any-depth", call + " {work}/src/l/.env", BOTH)
unopened("readlink-relative", "chdir {work}/vault/deep , readlink l")
unopened("readlink-by-symlink", "symlink {work}/vault {work}/v , readlink {work}/v/deep/l")
unopened("readlink-by-proc-cwd", "chdir {work}/vault , readlink /proc/self/cwd/deep/l")
unopened("readlink-by-link", "link {work}/src/l/.env {work}/l , readlink {work}/l")
unopened("readlink-by-rename", "rename {work}/src/l/.env {work}/l , readlink {work}/l")
unopened("readlink-race", "race-text-readlink {work}/src/k/.inv {work}/src/l/.env {rounds}",
         before=lambda s: (kept_link()(s), os.mkdir(s.file("work/src/k")), os.symlink("x", s.file("work/src/k/.inv"))))
unopened("readlink-moved-by-host", "wait , readlink {work}/seen", policy="--hide {work}/held", before=kept_link("work/held"),
         during=lambda s, c: os.rename(s.file("work/held"), s.file("work/seen")))
for call in ("getxattr", "lgetxattr", "listxattr", "llistxattr", "getxattr-fd"):
    unopened(f"{call}-below-a-hidden-directory", call + " {work}/vault/deep/key")
    unopened(f"{call}-any-depth", call + " {work}/src/.env", BOTH)
unopened("getxattr-by-symlink", "symlink .env {work}/src/e , getxattr {work}/src/e")
unopened("names-made-in-a-hidden-directory", "watch {work}/vault/deep , wait , watched", BOTH,
         during=lambda s, c: s.write("work/vault/deep/" + TOKEN, ""))
# What the name of a link hides is what it leads to, too.
unopened("content-behind-a-hidden-link", "read {work}/src/l/.env",
         before=lambda s: (vault(s), s.write("work/free", TOKEN), os.mkdir(s.file("work/src/l")), os.symlink("../../free", s.file("work/src/l/.env"))))
unopened("content-behind-a-hidden-link-to-a-directory", "read {work}/src/.env/f",
         before=lambda s: (vault(s), s.write("work/free/f", TOKEN), os.symlink("../free", s.file("work/src/.env"))))
# The guard reads links of /proc for the command, and may look at more than it.
target("descriptors-of-pid-1-where-links-are-judged", "readlink /proc/{target}/fd/0", NO, policy=JUDGED)
target("program-of-pid-1-where-links-are-judged", "readlink /proc/{target}/exe", NO, policy=JUDGED)
target("program-of-pid-1-by-descriptor-where-links-are-judged", "readlink-fd /proc/{target}/exe", NO, policy=JUDGED)
target("root-of-pid-1-by-thread-where-links-are-judged", "readlink /proc/{target}/task/{target}/root", NO, policy=JUDGED)
A("secret-variable", "variable AWS_SECRET_ACCESS_KEY", "ENOENT", leaks=True)
A("preload-variable", "variable LD_PRELOAD", "ENOENT", preload="/pinfold/no/such.so")
A("protected-write", "write {work}/README", RO, policy="--protect {work}/README", effect=marked("{work}/README"))
A("protected-replace", "create {work}/new , rename {work}/new {work}/README", RO + " EBUSY", policy="--protect {work}/README",
  effect=marked("{work}/README"))
A("protected-parent-rename", "rename {work}/src {work}/s2 , write {work}/s2/main.c", RO + " EBUSY", policy="--protect {work}/src/main.c",
  any_step=True, effect=marked("{work}/s2/main.c"))
A("read-only-in-workspace", "write {work}/src/main.c", RO, policy="--ro {work}/src", effect=marked("{work}/src/main.c"))
A("read-only-in-workspace-rename", "rename {work}/src {work}/s2 , write {work}/s2/main.c", RO + " EBUSY", policy="--ro {work}/src", any_step=True,
  effect=marked("{work}/s2/main.c"))
A("read-only-replaced-by-host", "wait , write {work}/src/main.c", RO, policy="--ro {work}/src", effect=marked("{work}/src/main.c"),
  during=lambda s, c: replace_dir(s, "work/src"))


def replace_dir(scene, name):
    path = scene.file(name)
    shutil.copytree(path, path + ".new", symlinks=True)
    scene.user.own(path + ".new")
    os.rename(path, scene.file("replaced"))
    os.rename(path + ".new", path)


def remake_dir(scene, name):
    path = scene.file(name)
    shutil.copytree(path, scene.file("copy"), symlinks=True)
    shutil.rmtree(path)
    shutil.copytree(scene.file("copy"), path, symlinks=True)
    scene.user.own(path)


def replace_file(scene, name):
    scene.write(name + ".new", TOKEN + "\n")
    os.rename(scene.file(name + ".new"), scene.file(name))


# ==== names that must not be created ====
HOOKS = "{work}/.git/hooks"
EVIL = HOOKS + "/pre-commit"
GUARD = "EACCES EPERM EROFS"
# A filter that notifies opens cannot look into openat2's structure: it may say that there is no such call.


def guarded(name, ops, deny=GUARD, effect=exists(EVIL), **more):
    A("guard-" + name, ops, deny, effect=effect, **more)


# Who may write there could do from outside what the box may not: another user of the machine is not in the box.
for name, path in (("tree", "{work}"), ("git", "{work}/.git"), ("info", "{work}/.git/info"), ("config", "{work}/.git/config"), ("nested", "{work}/src")):
    nested_repository = (lambda s: shutil.copytree(s.file("work/.git"), s.file("work/src/.git"))) if name == "nested" else None
    for op in ("chmod", "fchmod", "setacl") if name == "tree" else ("chmod",):
        guarded(f"opened-to-everybody-{name}-{op}", f"{op} {path}", "EACCES", effect=mode_is(path, 0o777), before=nested_repository)
guarded("opened-to-everybody-by-rename", "chmod {work}/.git/config.lock , rename {work}/.git/config.lock {work}/.git/config",
        effect=mode_is("{work}/.git/config", 0o777), harmless=True, before=lambda s: s.user.own(shutil.copy(s.file("work/.git/config"), s.file("work/.git/config.lock"))))
for name, to in (("everybody", 0), ("a-user", 12345)):
    guarded(f"passed-on-to-{name}", f"passon {{work}}/src {to} {{work}}/src/.git", "EACCES", effect=made_with("{work}/src/.git", 0o777 if to == 0 else 0o775))
guarded("opened-to-everybody-by-umask", "mkdir-for-all {work}/src/.git", effect=mode_is("{work}/src/.git", 0o777), harmless=True)
A("guard-directory-locked-by-the-box", "flock {work}/.git", "EACCES")
A("guard-directory-elsewhere-locked-by-the-box", "flock {outside}", "EACCES")


def linked(scene):
    """A file of the host's that has a second name in the workspace, as a package from pnpm's store has."""
    scene.write("outside/stored", "stored\n" * 9)
    os.utime(scene.file("outside/stored"), (10**9, 10**9))
    os.chmod(scene.file("outside/stored"), 0o644)
    os.link(scene.file("outside/stored"), scene.file("work/linked"))


STORED = "{outside}/stored"


def hard_link(name, ops, effect=marked(STORED), **more):
    """In the box it may work, on a file of the box's own."""
    A("hard-link-" + name, ops, "through", effect=effect, before=linked, harmless=True, **more)


hard_link("write", "write {work}/linked")
hard_link("write-by-a-second-link", "link {work}/linked {work}/again , write {work}/again")
hard_link("write-by-symlink", "symlink linked {work}/way , write {work}/way")
hard_link("write-after-rename", "rename {work}/linked {work}/moved , write {work}/moved")
hard_link("map", "mmap-write {work}/linked")
hard_link("empty", "trunc-open {work}/linked", empty(STORED))
hard_link("truncate", "truncate {work}/linked", empty(STORED))
hard_link("mode", "chmod {work}/linked", mode_is(STORED, 0o777))
hard_link("mode-by-descriptor", "fchmod {work}/linked", mode_is(STORED, 0o777))
hard_link("times", "utimes {work}/linked", old(STORED))
hard_link("attribute", "setxattr {work}/linked", lambda s: bool(os.listxattr(s.words(STORED)[0])))
hard_link("write-and-read", "write-rdwr {work}/linked")


def moved_out(scene, child):
    """The host takes a directory out of the workspace, in which somebody stands."""
    os.rename(scene.file("work/src"), scene.file("outside/src"))


A("moved-out-create", "chdir {work}/src , wait , create new", GUARD, during=moved_out, effect=exists("{outside}/src/new"))
A("moved-out-write", "chdir {work}/src , wait , write main.c", GUARD, during=moved_out, effect=marked("{outside}/src/main.c"))
A("moved-out-mode", "chdir {work}/src , wait , chmod main.c", GUARD, during=moved_out, effect=mode_is("{outside}/src/main.c", 0o777))
A("moved-out-remove", "chdir {work}/src , wait , unlink main.c", GUARD, during=moved_out, effect=gone("{outside}/src/main.c"))
A("moved-out-by-cwd-link", "chdir {work}/src , wait , create /proc/self/cwd/new", GUARD, during=moved_out, effect=exists("{outside}/src/new"))
A("hide-in-workspace-moved-by-host", "wait , read {work}/seen/deep/key", NO, policy=HIDE, before=vault, leaks=True,
  during=lambda s, c: os.rename(s.file("work/vault"), s.file("work/seen")))
A("hide-in-workspace-file-moved-by-host", "wait , read {work}/env.old", NO, policy="--hide {work}/.env", leaks=True,
  before=lambda s: s.write("work/.env", TOKEN), during=lambda s, c: os.rename(s.file("work/.env"), s.file("work/env.old")))


guarded("hook-open", f"create-open {EVIL}")
guarded("hook-create", f"create {EVIL}")
guarded("hook-creat", f"creat {EVIL}")
guarded("hook-openat2", f"openat2 {EVIL}", GUARD + " ENOSYS")
guarded("hook-directory-descriptor", f"create-dirfd {HOOKS} pre-commit")
guarded("hook-opath-descriptor", f"create-opath {HOOKS} pre-commit")
guarded("hook-proc-fd", f"create-procfd {HOOKS} pre-commit")
guarded("hook-chdir", f"create-chdir {HOOKS} pre-commit")
guarded("hook-dotdot", "create {work}/src/../.git/hooks/pre-commit")
guarded("hook-by-symlink", f"symlink .git/hooks {{work}}/h , create {{work}}/h/pre-commit")
guarded("hook-by-dangling-symlink", f"symlink .git/hooks/pre-commit {{work}}/h , create-open {{work}}/h")
guarded("hook-proc-self-cwd", "create /proc/self/cwd/.git/hooks/pre-commit")
guarded("hook-mkdir", f"mkdir {EVIL}")
guarded("hook-symlink", f"symlink {{work}}/src/main.c {EVIL}")
guarded("hook-link", f"link {{work}}/src/main.c {EVIL}")
guarded("hook-rename-file", f"create {{work}}/x , rename {{work}}/x {EVIL}")
guarded("hook-rename-noreplace", f"create {{work}}/x , rename-noreplace {{work}}/x {EVIL}")
guarded("hook-rename-sample", f"rename {HOOKS}/pre-commit.sample {EVIL}")
guarded("hook-tmpfile", f"tmpfile-link {{work}} {EVIL}")
guarded("hook-fifo", f"mkfifo {EVIL}")
guarded("hook-mknod", f"mknod {EVIL} c 1 3", root_control=True)
guarded("hook-socket", f"bind {EVIL}")
guarded("hook-directory-moved-into-place", f"mkdir {{work}}/h , create {{work}}/h/pre-commit , rename {HOOKS} {{work}}/old , rename {{work}}/h {HOOKS}",
        GUARD + " EBUSY", any_step=True)
guarded("hook-directory-exchanged", f"mkdir {{work}}/h , create {{work}}/h/pre-commit , exchange {{work}}/h {HOOKS}", GUARD + " EBUSY")
guarded("git-directory-moved-into-place", "mkdir {work}/g , mkdir {work}/g/hooks , create {work}/g/hooks/pre-commit , rename {work}/.git {work}/old , "
        "rename {work}/g {work}/.git", GUARD + " EBUSY", any_step=True)
guarded("git-directory-exchanged", "mkdir {work}/g , mkdir {work}/g/hooks , create {work}/g/hooks/pre-commit , exchange {work}/g {work}/.git", GUARD + " EBUSY",
        any_step=True)
guarded("git-directory-moved-away-and-back", "rename {work}/.git {work}/g , create {work}/g/hooks/pre-commit , rename {work}/g {work}/.git",
        GUARD + " EBUSY", any_step=True)
guarded("hook-made-executable", f"chmod {HOOKS}/pre-commit.sample", effect=mode_is(HOOKS + "/pre-commit.sample", 0o777))
guarded("hook-sample-overwritten", f"write {HOOKS}/pre-commit.sample", effect=marked(HOOKS + "/pre-commit.sample"))
guarded("hook-sample-linked-out", f"link {HOOKS}/pre-commit.sample {{work}}/s , write {{work}}/s", GUARD + " EXDEV", any_step=True,
        effect=marked(HOOKS + "/pre-commit.sample"))
guarded("hook-race-text", f"race-text {{work}}/src/x {EVIL} 8000")
guarded("hook-race-swap", f"mkdir {{work}}/d , mkdir {{work}}/d/hooks , symlink .git {{work}}/l , race-swap {{work}}/d {{work}}/l "
        f"{{work}}/d/hooks/pre-commit {EVIL} {{tries}}")
# What cannot be looked at is not absent: the box takes permissions away from what is its own, acts, and gives them back.
BARE = "mkdir {work}/g , mkdir {work}/g/objects , mkdir {work}/g/refs , mkdir {work}/g/"
guarded("hook-in-unsearchable-repository", BARE + "hooks , create-shut {work}/g 644 {work}/g/hooks pre-commit", effect=exists("{work}/g/hooks/pre-commit"))
guarded("remote-in-unsearchable-repository", BARE + "remotes , create-shut {work}/g 644 {work}/g/remotes origin", effect=exists("{work}/g/remotes/origin"))
MODULE = "mkdir {work}/.git/modules , mkdir {work}/.git/modules/m , mkdir {work}/.git/modules/m/objects , mkdir {work}/.git/modules/m/refs , " \
         "replace-text {work}/.git/modules/m/config {text} , "
for kind, shut in {"config": ".git/modules/m/config 0", "directory": ".git/modules/m 0", "folder": ".git/modules 311", "git": ".git 644"}.items():
    guarded("submodule-unreadable-" + kind, MODULE + "symlink-shut {work}/" + shut + " /tmp {work}/sub", effect=exists("{work}/sub"),
            values={"text": "[core]\n\tworktree = ../../../sub\n"})
OTHER = "".join(f"mkdir {{work}}/s{place} , " for place in ("", "/.git", "/.git/objects", "/.git/refs", "/.git/modules", "/.git/modules/m", "/.git/modules/m/objects",
                                                        "/.git/modules/m/refs", "/sub"))
guarded("submodule-unreadable-moved", OTHER + "replace-text {work}/s/.git/modules/m/config {text} , mkdir {work}/t , symlink /tmp {work}/t/sub , "
        "rename-shut {work}/s/.git/modules 300 {work}/s/.git {work}/t/.git", effect=exists("{work}/t/.git"), values={"text": "[core]\n\tworktree = ../../../sub\n"})
guarded("config-write", "write {work}/.git/config", effect=marked("{work}/.git/config"), harmless=True)
CONFIG = "{work}/.git/config"
for key, text in {"hooks-path": "[core]\\n\\thooksPath = /tmp/evil\\n", "fsmonitor": "[core]\\n\\tfsmonitor = /tmp/evil\\n",
                  "alias": "[alias]\\n\\tst = !/tmp/evil\\n", "include": "[include]\\n\\tpath = /tmp/evil\\n",
                  "include-if": "[includeIf \\\"gitdir:/\\\"]\\n\\tpath = /tmp/evil\\n", "ssh-command": "[core]\\n\\tsshCommand = /tmp/evil\\n",
                  "pager": "[core]\\n\\tpager = /tmp/evil\\n", "editor": "[core]\\n\\teditor = /tmp/evil\\n",
                  "filter": "[filter \\\"x\\\"]\\n\\tclean = /tmp/evil\\n", "credential": "[credential]\\n\\thelper = /tmp/evil\\n",
                  "upload-pack": "[remote \\\"o\\\"]\\n\\tuploadpack = /tmp/evil\\n", "receive-pack": "[remote \\\"o\\\"]\\n\\treceivepack = /tmp/evil\\n",
                  "remote-vcs": "[remote \\\"o\\\"]\\n\\tvcs = evil\\n", "url-ext": "[remote \\\"o\\\"]\\n\\turl = ext::/tmp/evil\\n",
                  "diff-external": "[diff]\\n\\texternal = /tmp/evil\\n", "merge-driver": "[merge \\\"x\\\"]\\n\\tdriver = /tmp/evil\\n",
                  "gpg-program": "[gpg]\\n\\tprogram = /tmp/evil\\n", "worktree": "[core]\\n\\tworktree = /etc\\n",
                  "sequence-editor": "[sequence]\\n\\teditor = /tmp/evil\\n", "url-instead-of": "[url \\\"ext::/tmp/evil\\\"]\\n\\tinsteadOf = https://\\n",
                  "attributes-file": "[core]\\n\\tattributesFile = /tmp/evil\\n", "ask-pass": "[core]\\n\\taskPass = /tmp/evil\\n",
                  "continued-line": "[core]\\n\\thooks\\\\\\nPath = /tmp/evil\\n", "same-line": "[core] hooksPath = /tmp/evil\\n",
                  "upper-case": "[CORE]\\n\\tHOOKSPATH = /tmp/evil\\n"}.items():
    evil = text.replace("\\n", "\n").replace("\\t", "\t").replace('\\"', '"').replace("\\\\", "\\")
    guarded("config-" + key, "replace-text " + CONFIG + " {evil}", GUARD + " EINVAL", values={"evil": "[core]\n\trepositoryformatversion = 0\n" + evil},
            effect=contains(CONFIG, evil.strip().splitlines()[-1].strip()), harmless=True)
guarded("config-written-in-place", f"write-text {CONFIG} {{evil}}", GUARD + " EINVAL", values={"evil": "[core]\n\thooksPath = /tmp/evil\n"},
        effect=contains(CONFIG, "hooksPath"), harmless=True)
guarded("config-truncated", f"truncate {CONFIG}", GUARD, effect=empty(CONFIG))
guarded("config-by-symlink", f"write-text {{work}}/c {{evil}} , unlink {CONFIG} , symlink ../c {CONFIG}", GUARD, any_step=True,
        values={"evil": "[core]\n\thooksPath = /tmp/evil\n"}, effect=contains(CONFIG, "hooksPath"))
guarded("config-by-hard-link", f"link {CONFIG} {{work}}/c , write {{work}}/c", GUARD + " EXDEV", any_step=True, effect=marked(CONFIG))
guarded("config-mmap", f"mmap-write {CONFIG}", GUARD + " EINVAL", effect=marked(CONFIG), harmless=True)
guarded("config-worktree-file", "write-text {work}/.git/config.worktree {evil}", GUARD + " EINVAL", values={"evil": "[core]\n\thooksPath = /tmp/evil\n"},
        effect=contains("{work}/.git/config.worktree", "hooksPath"), harmless=True)
guarded("info-attributes", "write-text {work}/.git/info/attributes {evil}", GUARD, values={"evil": "* filter=x\n"},
        effect=contains("{work}/.git/info/attributes", "filter"), harmless=True)
def armed_repository(scene):
    """Somewhere in the home, state directory included, is a repository whose configuration starts a program: a .git file of the workspace can name it."""
    for top, directories, files in os.walk(scene.file("home")):
        if {"objects", "refs"} <= set(directories) and "config" in files:
            with open(os.path.join(top, "config"), encoding="utf-8") as text:
                if "fsmonitor" in text.read():
                    return True
    return False


def has_cache(name):
    return lambda s: None if s.inside else os.makedirs(s.file("home/" + name), exist_ok=True)


for kind, cache in {"linked": ".m2", "layer": ".cache"}.items():
    REPO = "mkdir {home}/" + cache + "/g , mkdir {home}/" + cache + "/g/objects , "
    for order, ops in {"before": "write-text {home}/" + cache + "/g/config {evil} , mkdir {home}/" + cache + "/g/refs",
                       "after": "mkdir {home}/" + cache + "/g/refs , write-text {home}/" + cache + "/g/config {evil}"}.items():
        guarded(f"repository-in-{kind}-cache-config-{order}", REPO + ops, any_step=True, harmless=order == "after", effect=armed_repository, before=has_cache(cache),
                values={"evil": "[core]\n\tfsmonitor = /tmp/evil\n"})
guarded("gitmodules-command", "write-text {work}/.gitmodules {evil}", GUARD + " EINVAL",
        values={"evil": '[submodule "x"]\n\tpath = x\n\turl = ./x\n\tupdate = !/tmp/evil\n'}, effect=contains("{work}/.gitmodules", "!/tmp/evil"), harmless=True)
for name in (".vscode", ".idea", ".claude", ".codex", ".cursor", ".gemini", ".husky", ".githooks", ".helix", ".vim", ".mise"):
    guarded("directory" + name, f"mkdir {{work}}/{name} , create {{work}}/{name}/settings.json", any_step=True, effect=exists(f"{{work}}/{name}"))
for name in (".mcp.json", ".envrc", ".bashrc", ".zshrc", ".profile", "mise.toml", ".Renviron", ".RData", ".ghci", "rust-toolchain.toml", ".pnpmfile.mjs"):
    guarded("file" + name, f"create {{work}}/{name}", effect=exists(f"{{work}}/{name}"))
for place in (".hg/hgrc", ".hg/sharedpath", ".yarn/releases/yarn.cjs", ".jj/repo/config.toml", ".config/mise/config.toml", ".mvn/jvm.config"):
    # below the top, where git looks and others do: any depth
    top = "{work}" if place.startswith((".yarn", ".config", ".mvn")) else "{work}/src/deep"
    steps = ["mkdir " + top] if top != "{work}" else []
    parts = place.split("/")
    steps += ["mkdir " + "/".join([top, *parts[:i]]) for i in range(1, len(parts))]
    guarded("name-" + place.strip(".").replace("/", "-"), " , ".join([*steps, f"create {top}/{place}"]), any_step=True, effect=exists(f"{top}/{place}"))
    if top != "{work}":
        first = parts[0]
        steps = [f"mkdir {top}"] + ["mkdir " + "/".join([top, "x", *parts[1:i]]) for i in range(1, len(parts))]
        guarded("moved-" + place.strip(".").replace("/", "-"), " , ".join([*steps, f"create {top}/x/" + "/".join(parts[1:]), f"rename {top}/x {top}/{first}"]), any_step=True,
                effect=exists(f"{top}/{place}"))
guarded("directory-moved-into-place", "mkdir {work}/v , create {work}/v/tasks.json , rename {work}/v {work}/.vscode", effect=exists("{work}/.vscode"))
guarded("existing-directory-changed", "create {work}/.vscode/tasks.json", before=lambda s: s.write("work/.vscode/settings.json", "{{}}\n"),
        effect=exists("{work}/.vscode/tasks.json"))
guarded("existing-file-changed", "write {work}/.mcp.json", before=lambda s: s.write("work/.mcp.json", "{{}}\n"), effect=marked("{work}/.mcp.json"))
guarded("existing-file-removed", "unlink {work}/.mcp.json", before=lambda s: s.write("work/.mcp.json", "{{}}\n"), effect=gone("{work}/.mcp.json"))
guarded("made-by-host-later", "wait , write {work}/.mcp.json", effect=marked("{work}/.mcp.json"), during=lambda s, c: s.write("work/.mcp.json", "{{}}\n"))
guarded("bare-repository-at-depth", "mkdir {work}/src/.git , mkdir {work}/src/.git/hooks , create {work}/src/.git/hooks/post-checkout", GUARD, any_step=True,
        effect=exists("{work}/src/.git/hooks/post-checkout"))

# ==== the host's services ====
A("tcp-loopback", "tcp 127.0.0.1 {port}", "ECONNREFUSED ENETUNREACH EPERM EACCES EAFNOSUPPORT", leaks=True)
A("tcp-fastopen-loopback", "tcp-fastopen 127.0.0.1 {port}", "ECONNREFUSED ENETUNREACH EPERM EACCES EAFNOSUPPORT EOPNOTSUPP", leaks=True)
A("udp-loopback", "udp 127.0.0.1 {udp}", "ETIMEDOUT ECONNREFUSED ENETUNREACH EPERM EACCES EAFNOSUPPORT", leaks=True)


def unix_server(where, kind=socket.SOCK_STREAM):
    def before(scene):
        path = scene.file(where)
        old = os.open(".", os.O_RDONLY)
        os.chdir(os.path.dirname(path))  # the address has room for 107 bytes only
        try:
            sock = scene.host.unix(os.path.basename(path), kind)
        finally:
            os.fchdir(old)
            os.close(old)
        scene.stack.callback(sock.close)
    return before


SOCKET_NO = "EACCES EPERM ECONNREFUSED ENOENT"
A("unix-outside", "chdir {outside} , unix-stream s", SOCKET_NO, before=unix_server("outside/s"), leaks=True)
A("unix-in-workspace", "unix-stream s", SOCKET_NO, before=unix_server("work/s"), leaks=True)
A("unix-by-symlink", "symlink ../outside/s {work}/l , unix-stream l", SOCKET_NO, before=unix_server("outside/s"), leaks=True)
A("unix-by-proc-root", "chdir {outside} , unix-stream /proc/self/cwd/s", SOCKET_NO, before=unix_server("outside/s"), leaks=True)
A("unix-seqpacket", "chdir {outside} , unix-seqpacket s", SOCKET_NO, before=unix_server("outside/s", socket.SOCK_SEQPACKET), leaks=True)
A("unix-hard-link", "link {outside}/s {work}/l , unix-stream l", SOCKET_NO + " EROFS EXDEV", any_step=True, before=unix_server("outside/s"), leaks=True)
A("unix-renamed", "rename s t , unix-stream t", SOCKET_NO, any_step=True, before=unix_server("work/s"), leaks=True)
A("unix-datagram", "chdir {outside} , unix-dgram s", SOCKET_NO + " EPROTONOSUPPORT ESOCKTNOSUPPORT", before=unix_server("outside/s", socket.SOCK_DGRAM), effect=received)
A("unix-datagram-sendto", "chdir {outside} , unix-sendto s", SOCKET_NO + " EPROTONOSUPPORT ESOCKTNOSUPPORT", before=unix_server("outside/s", socket.SOCK_DGRAM), effect=received)
# The pair in a box sends to its own end, whatever address is said.
A("unix-datagram-pair-sendmmsg", "chdir {outside} , unix-pair-sendmsg s", SOCKET_NO + " EISCONN E106 EPROTONOSUPPORT ESOCKTNOSUPPORT", any_step=True,
  before=unix_server("outside/s", socket.SOCK_DGRAM), effect=received, harmless=True)
A("unix-race", "unix-race {socket} s {tries}", SOCKET_NO, before=unix_server("work/s"))
A("unix-made-later", "wait , chdir {outside} , unix-stream s", SOCKET_NO, during=lambda s, c: unix_server("outside/s")(s), leaks=True)
A("abstract-stream", "unix-stream {abstract}", SOCKET_NO, leaks=True)
A("abstract-datagram", "unix-sendto {abstract}-dgram", SOCKET_NO + " EPROTONOSUPPORT ESOCKTNOSUPPORT", effect=received)
FAMILY = "EPERM EACCES EAFNOSUPPORT EPROTONOSUPPORT ESOCKTNOSUPPORT EINVAL"
for name, numbers, privileged in (
        ("packet", "17 3 0", True), ("raw-ip", "2 3 1", True), ("vsock", "40 1 0", False), ("alg", "38 5 0", False), ("netlink-netfilter", "16 3 12", False),
        ("netlink-uevent", "16 3 15", False), ("netlink-audit", "16 3 9", False), ("netlink-xfrm", "16 3 6", False), ("netlink-generic", "16 3 16", False),
        ("netlink-crypto", "16 3 21", False), ("netlink-sock-diag", "16 3 4", False), ("bluetooth", "31 3 1", False), ("xdp", "44 3 0", True), ("sctp", "2 1 132", False), ("mptcp", "2 1 262", False),
        ("dccp", "2 6 33", False), ("can", "29 3 1", False), ("tipc", "30 5 0", False), ("rds", "21 5 0", False), ("kcm", "41 5 0", False), ("smc", "43 1 0", False),
        ("qipcrtr", "42 2 0", False), ("x25", "9 5 0", False), ("ax25", "3 5 0", False), ("appletalk", "5 2 0", False), ("ipx", "4 2 0", False), ("llc", "26 1 0", False),
        ("ieee802154", "36 2 0", False), ("phonet", "35 2 0", False), ("caif", "37 5 0", False), ("nfc", "39 5 1", False), ("pppox", "24 1 0", False), ("key", "15 3 2", True)):
    A("socket-" + name, f"socket {numbers}", FAMILY, root_control=privileged)
A("shared-memory-of-host", "shm {key}", "ENOENT EACCES EPERM ENOSYS", leaks=True)
A("posix-shared-memory-of-host", "read {shm}", "ENOENT EACCES", leaks=True)
A("message-queue-of-host", "mq {queue}", "ENOENT EACCES EPERM ENOSYS", leaks=True, before=lambda s: s.host.mq_refill())
A("key-of-host-by-number", "keyctl-read {keyid}", "EPERM EACCES ENOSYS ENOKEY", leaks=True)
A("key-of-host-by-name", "request-key {keyname}", "EPERM EACCES ENOSYS ENOKEY", through="refused ENOKEY")

# ==== terminals ====
A("tty-of-host-by-number", "tty-write {pty}", "ENOENT EACCES EPERM EIO", effect=lambda s: pty_effect(s))
A("tiocsti", "tiocsti-fd 0 x", "EPERM EACCES EIO ENOTTY", terminal=True, root_control=True)
A("tiocsti-dev-tty", "tiocsti /dev/tty x", "EPERM EACCES EIO ENOTTY ENXIO", terminal=True, root_control=True)
A("tiocsti-wide-request", "tiocsti-wide 0 x", "EPERM EACCES EIO ENOTTY EINVAL", terminal=True, root_control=True)
A("tioclinux", "tioclinux 0", "EPERM EACCES", terminal=True, root_control=True, through="refused EPERM")
A("line-discipline", "tiocsetd 0", "EPERM EACCES", terminal=True, root_control=True)
A("steal-terminal", "tiocsctty {pty}", "ENOENT EACCES EPERM EIO ENOTTY", through="refused EPERM", users="user")


def pty_effect(scene):
    os.set_blocking(scene.host.pty_master, False)
    with contextlib.suppress(BlockingIOError, OSError):
        return MARK.encode() in os.read(scene.host.pty_master, 4096)
    return False


# ==== what is left, and how much ====
def kill_pinfold(scene, child):
    child.kill()


def stop_and_kill(scene, child):
    child.send_signal(signal.SIGSTOP)
    end = time.monotonic() + 10
    while time.monotonic() < end and pf.state_of(child.pid) not in (b"T", b"Z", b""):
        time.sleep(0.005)
    child.kill()


def kill_parts(scene, child):
    """Every process of pinfold's own that the host can see, builder and guard first, not the command."""
    if scene.inside:
        for pid in pf.children():
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/{pid}/exe") == pf.PINFOLD and pid != child.pid:
                    os.kill(pid, signal.SIGKILL)
                    return


A("survive-the-end", "survive {work}/late {work}/over", "", harmless=True, effect=exists("{work}/late"), settle=0.5)
A("survive-kill-of-pinfold", "survive {work}/late {work}/over , wait", "", harmless=True, any_step=True, effect=exists("{work}/late"), settle=0.5,
  during=kill_pinfold, through="signal 9")
ROWS[-1].deny |= {"exit 137", "signal 9"}
A("survive-stopped-pinfold", "survive {work}/late {work}/over , wait", "", harmless=True, effect=exists("{work}/late"), settle=0.5, during=stop_and_kill, through="signal 9")
ROWS[-1].deny |= {"exit 137", "signal 9"}
A("survive-death-of-the-builder", "survive {work}/late {work}/over , wait , create {work}/again", "", harmless=True, effect=exists("{work}/late"), settle=0.5, during=kill_parts)
ROWS[-1].deny |= {f"exit {n}" for n in range(1, 256)}
A("survive-hang-up", "survive {work}/late {work}/over , wait", "", harmless=True, effect=exists("{work}/late"), settle=0.5,
  during=lambda s, c: c.send_signal(signal.SIGHUP), through="signal 1")
ROWS[-1].deny |= {"exit 129", "signal 1", "exit 125"}
A("fork-bomb", "forks 400", "refused EAGAIN|exit 137", policy="--pids 60", limit=180)
A("memory-bomb", "memory 600", "exit 137|refused ENOMEM|signal 9", policy="--memory 100M", limit=180)
A("memory-bomb-spread", "memory-spread 30 20", "exit 137|refused ENOMEM|signal 9|exit 1", policy="--memory 100M --pids 200", limit=180)
# Private storage is exact; who else writes to the workspace's file system may have the box ended before that.
A("fill-tmp", "fill /tmp/pf-fill-{own} 200", "refused ENOSPC|refused EDQUOT|exit 137", policy="--disk 32M", effect=lambda s: fill_effect(s))
A("fill-dev-shm", "fill /dev/shm/pf-fill-{own} 200", "refused ENOSPC|refused EDQUOT|refused ENOMEM|exit 137", policy="--disk 32M", effect=lambda s: fill_effect(s, "/dev/shm"))
A("raise-open-files", "raise-files", "EPERM", root_control=True, through="refused EPERM", users="root")
A("raise-priority", "nice", "EPERM EACCES", root_control=True)
A("lock-memory", "lock-memory", "EPERM ENOMEM EAGAIN", root_control=True)
A("aio-contexts-of-the-machine", "aio-context", "ENOSYS", absent="refused (ENOSYS|EAGAIN)")
A("pending-signals-of-the-user", "pending-signals 9000", "EAGAIN", absent="refused EAGAIN")
A("message-queues-of-the-user", "message-queues 6", "EMFILE", absent="refused (EMFILE|ENOSYS)")


def fill_effect(scene, place="/tmp"):
    path = scene.words(f"{place}/pf-fill-{{own}}")[0]
    there = os.path.exists(path)
    if there:
        os.unlink(path)
    return there


# ==== in user and mount namespaces of its own: allow_nested_userns ====
NESTED = "--allow-nested-userns"
MAPPED = " --user 1000:1000"  # who has no number in its own namespace makes nothing in file systems of that


def nested(name, ops, deny="EACCES EPERM EBUSY EROFS ENODEV", policy="", any_step=True, **more):
    """With each engine whose guard is ours and whose box can make namespaces."""
    mapped = MAPPED if "overlay" in ops and MAPPED not in policy else ""
    for engine in ("native", "bwrap"):
        A(f"nested-{name}" + ("" if engine == "native" else "-" + engine), ops, deny, policy=f"{NESTED} --engine {engine} {policy}{mapped}", any_step=any_step, **more)


def files(*texts):
    def make(scene):
        for name, text in texts:
            scene.write(name, text)
    return make


LOWER = files(("work/low/hooks/pre-commit", "#!/bin/sh\n"), ("work/low/.envrc", "echo\n"), ("work/m/x", ""))
ENVRC = files(("work/.envrc", "before\n"), ("work/f", ""), ("work/m/x", ""))
HIDDEN = files(("work/deep/.secret.env", TOKEN + "\n"), ("work/hid/key", TOKEN + "\n"), ("work/f", ""), ("work/m/x", ""))
HIDES = "--hide **/.secret.env --hide {work}/hid"


def hidden_program(scene):
    HIDDEN(scene)
    program = os.path.join(scene.work, "deep", ".secret.env")
    shutil.copyfile(os.path.join(scene.work, "attack"), program)
    os.chmod(program, 0o755)


OVER = "{work}/low {work}/.git {work}/wk {work}/m"

nested("hook-by-bind", f"nested , bind-over {HOOKS} {{work}}/m , create {{work}}/m/pre-commit", effect=exists(EVIL), before=ENVRC)
nested("hook-by-bind-of-the-tree", "nested , bind-over {work} {work}/m , create {work}/m/.git/hooks/pre-commit", effect=exists(EVIL), before=ENVRC)
nested("hook-by-moved-tree", f"nested , move-over {HOOKS} {{work}}/m , create {{work}}/m/pre-commit", effect=exists(EVIL), before=ENVRC)
nested("hook-by-detached-tree", f"nested , create-detached {HOOKS} pre-commit", effect=exists(EVIL), before=ENVRC)
nested("hook-in-process-namespace", f"nested-pid , bind-over {HOOKS} {{work}}/m , create {{work}}/m/pre-commit", effect=exists(EVIL), before=ENVRC)
nested("hook-below-a-tmpfs", f"nested , fresh-tmpfs {{work}}/m , mkdir {{work}}/m/d , bind-over {HOOKS} {{work}}/m/d , create {{work}}/m/d/pre-commit", effect=exists(EVIL), policy=MAPPED, before=ENVRC)
nested("guarded-file-under-a-free-name", "nested , bind-over {work}/.envrc {work}/f , write {work}/f", effect=marked("{work}/.envrc"), before=ENVRC)
nested("guarded-file-under-a-name-of-a-tmpfs", "nested , fresh-tmpfs {work}/m , create {work}/m/f , bind-over {work}/.envrc {work}/m/f , write {work}/m/f",
       effect=marked("{work}/.envrc"), policy=MAPPED, before=ENVRC)
nested("guarded-file-truncated-by-bind", "nested , bind-over {work}/.envrc {work}/f , truncate {work}/f", effect=empty("{work}/.envrc"), before=ENVRC)
nested("guarded-file-chmod-by-bind", "nested , bind-over {work}/.envrc {work}/f , chmod {work}/f", effect=mode_is("{work}/.envrc", 0o777), before=ENVRC)
# The directory that is judged is covered by an empty one while it is judged; without that cover it holds a hook.
nested("repository-with-its-hooks-covered", "mkdir {work}/r , mkdir {work}/r/hooks , create {work}/r/hooks/pre-commit , mkdir {work}/r/objects , mkdir {work}/e , nested , "
       "bind-over {work}/e {work}/r/hooks , mkdir {work}/r/refs", effect=exists("{work}/r/refs"), before=ENVRC)
nested("outside-written-by-bind", "nested , bind-over {outside} {work}/m , write {work}/m/victim", effect=marked("{outside}/victim"), before=ENVRC)
nested("hook-by-overlay", f"nested , overlay {OVER} , chmod-read-fd {{work}}/m/hooks/pre-commit", effect=exists(EVIL), before=LOWER)
nested("hook-by-overlay-fsopen", f"nested , overlay-new {OVER} , chmod-read-fd {{work}}/m/hooks/pre-commit", effect=exists(EVIL), before=LOWER)
nested("hook-by-overlay-old-flags", f"nested , overlay-magic {OVER} , chmod-read-fd {{work}}/m/hooks/pre-commit", effect=exists(EVIL), before=LOWER)
nested("hook-by-overlay-race", f"nested , overlay-race {OVER} , chmod-read-fd {{work}}/m/hooks/pre-commit", effect=exists(EVIL), before=LOWER)
nested("hook-by-overlay-path-fd", f"nested , overlay {OVER} , chmod-path-fd {{work}}/m/hooks/pre-commit", effect=exists(EVIL), before=LOWER)
nested("hook-by-overlay-chown", f"nested , overlay {OVER} , chown-path-fd {{work}}/m/hooks/pre-commit", effect=exists(EVIL), before=LOWER)
nested("hook-by-overlay-utimes", f"nested , overlay {OVER} , utimes-read-fd {{work}}/m/hooks/pre-commit", effect=exists(EVIL), before=LOWER)
nested("hidden-name-under-a-free-one", "nested , bind-over {work}/deep/.secret.env {work}/f , read {work}/f", policy=HIDES, leaks=True, before=HIDDEN)
nested("hidden-directory-under-a-free-name", "nested , bind-over {work}/hid {work}/m , read {work}/m/key", policy=HIDES, leaks=True, before=HIDDEN)
nested("hidden-in-a-bound-tree", "nested , bind-over {work} {work}/m , read {work}/m/deep/.secret.env", policy=HIDES, leaks=True, before=HIDDEN)
nested("hidden-link-in-a-bound-tree", "nested , bind-over {work} {work}/m , readlink {work}/m/src/l/.env", policy=JUDGED, leaks=True,
       before=lambda s: (s.write("work/m/x", ""), kept_link()(s)))
nested("hidden-attribute-under-a-free-name", "nested , bind-over {work}/src/.env {work}/f , getxattr {work}/f", policy=JUDGED, leaks=True,
       before=lambda s: (s.write("work/f", ""), kept_link()(s)))
nested("hidden-below-a-tmpfs", "nested , fresh-tmpfs {work}/m , create {work}/m/f , bind-over {work}/hid/key {work}/m/f , read {work}/m/f", policy=HIDES + MAPPED, leaks=True, before=HIDDEN)
nested("guard-directory-locked", "nested , bind-over {work}/.git /tmp , flock /tmp", before=ENVRC)
nested("hidden-by-detached-tree", "nested , read-detached {work}/hid key", policy=HIDES, leaks=True, before=HIDDEN)
nested("hidden-copied-by-overlay", "mkdir {work}/up , nested , overlay {work}/hid {work}/up {work}/wk {work}/m , chmod-path-fd {work}/m/key , read {work}/up/key", policy=HIDES,
       leaks=True, before=HIDDEN)
nested("hidden-any-depth-copied-by-overlay", "mkdir {work}/up , nested , overlay {work}/deep {work}/up {work}/wk {work}/m , chown-path-fd {work}/m/.secret.env , "
       "rename {work}/m/.secret.env {work}/m/free , read {work}/m/free", policy=HIDES, leaks=True, before=HIDDEN)
nested("hidden-under-a-veil", "nested , bind-over / {work}/m , read {work}/m{home}/.ssh/id_test", "EACCES ENOENT", leaks=True, before=ENVRC)
nested("hidden-under-a-veil-by-detached-tree", "nested , read-detached {home} .ssh/id_test", "EACCES ENOENT", leaks=True, before=ENVRC)
nested("hidden-under-a-veil-by-overlay", "mkdir {work}/up , nested , overlay {home} {work}/up {work}/wk {work}/m , read {work}/m/.ssh/id_test", leaks=True, before=ENVRC)
# Where `nested` has been, the kernel shows nobody's memory outside; so what proves that the operation works is done without it.
INNER = "EACCES EPERM ENOENT ESRCH"
nested("memory", "nested , hunt-memory /proc", INNER, outside="hunt-memory /proc", any_step=False)
nested("memory-of-reads", "nested , hunt-memory /proc", INNER, outside="hunt-memory /proc", policy=HIDES, any_step=False)
nested("memory-in-process-namespace", "nested-pid , hunt-memory /proc", INNER, outside="hunt-memory /proc", policy=HIDES, any_step=False)
nested("memory-by-a-bound-proc", "nested , bind-over /proc {work}/m , hunt-memory {work}/m", INNER, outside="hunt-memory /proc", policy=HIDES, any_step=False, before=ENVRC)
nested("memory-bound-over-a-file", "nested , hunt-memory-bound /proc {work}/f", INNER, outside="hunt-memory /proc", policy=HIDES, any_step=False, before=ENVRC)
nested("memory-bound-over-an-id-map", "nested , fresh-tmpfs {work}/m , create {work}/m/uid_map , hunt-memory-bound /proc {work}/m/uid_map", INNER, outside="hunt-memory /proc",
       policy=HIDES + MAPPED, any_step=False, before=ENVRC)
nested("memory-of-a-hidden-program", "nested , program-memory {work}/deep/.secret.env /proc", policy=HIDES, before=hidden_program)
nested("memory-of-a-hidden-program-by-a-bound-proc", "nested , bind-over /proc {work}/m , program-memory {work}/deep/.secret.env {work}/m", policy=HIDES, before=hidden_program)
nested("memory-by-calls", "nested , hunt-memory-calls", INNER, outside="hunt-memory-calls", any_step=False)
nested("memory-without-namespaces", "hunt-memory /proc", INNER, policy=HIDES)
nested("host-socket-bound", "nested , fresh-tmpfs {work}/m , create {work}/m/s , bind-over {path}/sock {work}/m/s , connect-read {work}/m/s", "EACCES EPERM ECONNREFUSED",
       policy=MAPPED, leaks=True, before=lambda s: (ENVRC(s), s.stack.callback(s.host.unix(s.path + "/sock", socket.SOCK_STREAM).close)))

# What the host removes takes the box's mounts on it along, and frees their ids for the next mounts of anybody.
GOING = [f"gone{i}" for i in range(20)]
GOES = "".join(f" --rw {{path}}/{name}" for name in GOING)


def going(scene):
    for name in GOING:
        os.mkdir(os.path.join(scene.path, name))
        scene.user.own(os.path.join(scene.path, name))


def goes(scene, _child):
    for name in GOING:
        os.rmdir(os.path.join(scene.path, name))
    time.sleep(0.2)  # ids are freed a moment later; the attack only becomes less likely without


nested("host-socket-bound-where-mounts-went", "nested , fresh-tmpfs {work}/m , create {work}/m/s , wait , connect-over-many {path}/sock {work}/m", "EACCES EPERM ECONNREFUSED",
       policy=MAPPED + GOES, leaks=True, during=goes, before=lambda s: (ENVRC(s), going(s), s.stack.callback(s.host.unix(s.path + "/sock", socket.SOCK_STREAM).close)))
nested("hidden-bound-where-mounts-went", "nested , fresh-tmpfs {work}/m , create {work}/m/s , wait , read-over-many {work}/hid/key {work}/m", "EACCES ENOENT",
       policy=HIDES + MAPPED + GOES, leaks=True, during=goes, before=lambda s: (HIDDEN(s), going(s)))
