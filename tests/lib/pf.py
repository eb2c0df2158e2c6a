"""What the suites written in Python share: users, scenes, running things in a box and outside, what was left behind."""
import contextlib
import ctypes
import errno
import glob
import os
import pwd
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback

PINFOLD = os.environ["PINFOLD"]
SOURCE = os.environ["PINFOLD_SOURCE"]
SCRATCH = os.environ["PINFOLD_SCRATCH"]
TEST_USER = os.environ.get("PINFOLD_TEST_USER", "")
IS_ROOT = os.getuid() == 0
LIMIT = 180  # seconds for one command
SHOWN = 4000  # characters of what a failed row says
# Whoever starts a suite in the background of a script has it ignore these, and what ignores them passes that on: pinfold
# leaves an ignored signal alone, so that no test could send it one.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)


# setgroups(2), setresgid(2) and setresuid(2) of one thread: the C library's change all threads.
BECOME = {"x86_64": (116, 119, 117), "aarch64": (159, 149, 147)}.get(os.uname().machine)


@contextlib.contextmanager
def become(uid, gid):
    """As root: this thread has the ids of another, with root's kept to come back to. What it starts has them for good."""
    call = ctypes.CDLL(None, use_errno=True).syscall
    groups, setgroups, setresgid, setresuid = os.getgroups(), *BECOME
    before = (ctypes.c_uint32 * len(groups))(*groups)
    if call(setgroups, 0, None):
        raise OSError(ctypes.get_errno(), "no groups")
    try:
        if call(setresgid, gid, gid, 0) or call(setresuid, uid, uid, 0):
            raise OSError(ctypes.get_errno(), "become another user")
        yield
    finally:
        if call(setresuid, 0, 0, 0) or call(setresgid, 0, 0, 0) or call(setgroups, len(groups), before):
            os._exit(1)


class Popen(subprocess.Popen):
    """Python copies itself for a command of another user, which takes longer than many a box; not for one of its own (vfork(2)). So this thread
    becomes that user while it starts the command."""

    def __init__(self, args, **more):
        ids = {name: more[name] for name in ("user", "group", "extra_groups") if name in more}
        plain = IS_ROOT and BECOME and not more.get("preexec_fn") and ids.get("extra_groups") == [] and len(ids) == 3
        if plain and os.getresuid() == (0, 0, 0) and os.getresgid() == (0, 0, 0):
            try:
                with become(ids["user"], ids["group"]):
                    super().__init__(args, **{name: value for name, value in more.items() if name not in ids})
                    return
            except PermissionError:  # a directory that is root's alone, or no program: said by the plain way
                pass
        super().__init__(args, **more)


subprocess.Popen = Popen  # of subprocess.run(), too


class User:
    """Whom a command runs as."""

    def __init__(self, name):
        entry = pwd.getpwnam(name) if name else pwd.getpwuid(os.getuid())
        self.uid, self.gid, self.name = entry.pw_uid, entry.pw_gid, entry.pw_name
        self.label = "root" if self.uid == 0 else "user"

    def popen(self):
        """Arguments of Popen that make it so."""
        return {"user": self.uid, "group": self.gid, "extra_groups": []} if IS_ROOT and self.uid != 0 else {}

    def own(self, path):
        """Gives what lies at path to this user."""
        if IS_ROOT and self.uid != 0:
            os.lchown(path, self.uid, self.gid)
            if os.path.isdir(path) and not os.path.islink(path):
                for name in os.listdir(path):
                    self.own(os.path.join(path, name))
        return path


def own_mounts():
    """As root, mounts of this process's own: what other suites mount and unmount meanwhile is not among those that are counted."""
    libc = ctypes.CDLL(None, use_errno=True)
    if IS_ROOT and (libc.unshare(0x20000) < 0 or libc.mount(b"none", b"/", None, 0x44000, None) < 0):  # CLONE_NEWNS; MS_REC | MS_PRIVATE
        raise OSError(ctypes.get_errno(), "a mount namespace of its own")
    no_mounts_beside()


def no_mounts_beside():
    """As root and after own_mounts(): what others have mounted in /var/lib goes, too (a suite beside this one; podman, when it is asked
    anything): over mounts below what it veils a box is made in another way."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        places = [line.split()[4] for line in file]
    for place in sorted(places, reverse=True) if IS_ROOT else ():
        if place.startswith("/var/lib/") and not place.startswith(SCRATCH):
            libc.umount2(place.encode(), 2)  # MNT_DETACH


def in_memory():
    """A place for scenes: as root in memory, in mounts of this process's own. Where a disk is told of each block that is free again, what a
    suite makes and removes takes more time than its boxes. It is not below /var/lib, where mounts change how a box is made (firejail mounts
    over /var/lib/sudo). On the disk it is for whoever else, and with PINFOLD_TEST_ALL=1."""
    place = "/var/local"
    own_mounts()
    if not IS_ROOT or not os.path.isdir(place):
        return SCRATCH
    words = ["-t", "tmpfs", "-o", "mode=755,size=4g", "none"]
    if os.environ.get("PINFOLD_TEST_ALL") == "1":
        words = ["--bind", os.path.join(SCRATCH, "disk")]
        os.makedirs(words[1], exist_ok=True)
    return place if run(["mount", *words, place]).status == 0 else SCRATCH


def disk_in_memory(memory):
    """Beside in_memory(), which gave this place: a disk for scenes, ext4 in a file in memory, which nobody tells of each block that is free
    again. SCRATCH for whoever has little memory, since several suites have such a disk at a time, or may make no such disk."""
    place, image = "/var/opt", os.path.join(memory, "disk")
    with open("/proc/meminfo", encoding="ascii") as file:
        available = next(int(line.split()[1]) << 10 for line in file if line.startswith("MemAvailable:"))
    if available < 8 << 30 or memory == SCRATCH or os.environ.get("PINFOLD_TEST_ALL") == "1" or not os.path.isdir(place) or have("mkfs.ext4"):
        return SCRATCH
    with open(image, "wb") as file:
        os.truncate(file.fileno(), 3 << 30)
    made = run(["mkfs.ext4", "-q", "-F", image]).status == 0 and run(["mount", "-o", "loop", image, place]).status == 0
    os.unlink(image)  # it is there as long as it is mounted
    if made:
        os.rmdir(os.path.join(place, "lost+found"))
    return place if made else SCRATCH


def each_on_its_own():
    """(user, place for scenes): the ordinary user's on a disk, root's beside it in memory."""
    memory = in_memory()
    disk = disk_in_memory(memory)
    return [(user, disk if user.label == users()[-1].label else memory) for user in users()]


def alone(user, place):
    """As root, words to put before a command of this user's: `place` is a file system of its own for it, where nobody else writes. What is
    free there is what --disk is measured by."""
    become = ["setpriv", f"--reuid={user.uid}", f"--regid={user.gid}", "--clear-groups"] if user.uid else []
    mount = f"mount -t tmpfs -o mode=755,uid={user.uid},gid={user.gid} none \"$0\" && cd \"$0\" && exec \"$@\""
    return ["unshare", "--mount", "sh", "-c", mount, place, *become] if IS_ROOT else []


def users():
    """Root and the ordinary user where we are root; otherwise ourselves."""
    return [User("root"), User(TEST_USER)] if IS_ROOT and TEST_USER else [User("")]


def each_user(work):
    """Calls work(user), which says whether all went well, for each user in a process of its own at the same time: rows that wait for most of
    their time. What the second one says is shown once the first has ended. Whether all went well for all."""
    began, good = [], True
    for user in users():
        said = tempfile.TemporaryFile() if began else None
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                if said:
                    os.dup2(said.fileno(), 1)
                status = 0 if work(user) else 1
            except Exception:  # pylint: disable=broad-except
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                os._exit(status)
        began.append((pid, said))
    for pid, said in began:
        good = os.waitpid(pid, 0)[1] == 0 and good
        if said:
            said.seek(0)
            sys.stdout.write(said.read().decode(errors="backslashreplace"))
            sys.stdout.flush()
    return good


def is_for(user, costly):
    """Whether a row runs as this user: costly ones, of programs that take seconds to start, run as the last user alone (the ordinary one,
    where there are two), or with PINFOLD_TEST_ALL=1 as each."""
    return not costly or os.environ.get("PINFOLD_TEST_ALL") == "1" or user.label == users()[-1].label


def shown(text):
    """What a failed row shows of a text: the log of a run elsewhere must suffice to find the cause. Of a long one its two ends."""
    left_out = len(text) - SHOWN
    return text if left_out <= 0 else f"{text[:SHOWN // 2]}\n... {left_out} characters are left out ...\n{text[-SHOWN // 2:]}"


def problem(error):
    """What an exception says, and where it was raised: an assertion may have no words."""
    frames = traceback.extract_tb(error.__traceback__)
    place = ", ".join(f"{os.path.basename(frame.filename)}:{frame.lineno}" for frame in frames[1:] or frames)
    said = error.args[0] if isinstance(error, AssertionError) and len(error.args) == 1 else error
    return f"{type(error).__name__} at {place}: {frames[-1].line}\n{said}"


class Tally:
    """Prints the lines that tests/lib/tally.py reads."""

    def __init__(self):
        self.failed = False
        self.began = time.monotonic()
        self.row_began = time.clock_gettime(time.CLOCK_BOOTTIME)

    def _note(self, note):
        now = time.monotonic()
        took, self.began = now - self.began, now
        self.row_began = time.clock_gettime(time.CLOCK_BOOTTIME)
        slow = f" [{took:.1f} s]" if took > 2 else ""
        return (" " + note if note else "") + slow

    def ok(self, name, note=""):
        print(f"ok {name}{self._note(note)}", flush=True)

    def fail(self, name, why, detail=""):
        self.failed = True
        running = started_since(self.row_began)
        first, _, rest = str(why).partition("\n")
        print(f"FAIL {name}: {shown(first)}{self._note('')}".replace("\n", " "), flush=True)
        if running:
            print("  still running: " + ", ".join(f"{one} ({pid})" for pid, one in running), flush=True)
        for line in shown(f"{rest}\n{detail}".strip("\n")).splitlines():
            print("  " + line, flush=True)

    def skip(self, name, why):
        print(f"skip {name}: {why}{self._note('')}", flush=True)


class Done:
    """How a command ended; `out` and `err` are bytes."""

    def __init__(self, status, out, err, late=False, hung=""):
        self.status, self.out, self.err, self.late, self.hung = status, out, err, late, hung

    def text(self):
        return (self.out + self.err).decode("utf-8", "backslashreplace")

    def said(self):
        return f"status {self.status}{' (no end in time)' if self.late else ''}\n" + self.text() + self.hung


def run(argv, user=None, cwd="/", env=None, stdin=b"", limit=LIMIT, **more):
    """Runs to the end; never raises for a status. stdin: bytes, or a descriptor or file."""
    more = {**(user.popen() if user else {}), **more}
    more.setdefault("stdout", subprocess.PIPE)
    more.setdefault("stderr", subprocess.PIPE)
    more.setdefault("start_new_session", True)
    feed = {"stdin": subprocess.PIPE} if isinstance(stdin, bytes) else {"stdin": stdin}
    began = time.clock_gettime(time.CLOCK_BOOTTIME)
    child = subprocess.Popen(argv, cwd=cwd, env=env, **feed, **more)
    try:
        out, err = child.communicate(stdin if isinstance(stdin, bytes) else None, timeout=limit)
        return Done(child.returncode, out or b"", err or b"")
    except subprocess.TimeoutExpired:
        hung = what_hangs(began)
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            child.kill()
        try:
            out, err = child.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            out, err = b"", b"its output was held open by somebody else"
        return Done(child.returncode, out or b"", err or b"", True, hung)


def landlock_abi():
    """As landlock_create_ruleset(2) says it with LANDLOCK_CREATE_RULESET_VERSION; -1: none."""
    return ctypes.CDLL(None, use_errno=True).syscall(444, None, ctypes.c_size_t(0), 1)


def environment(user, home, **more):
    """A plain environment, as after logging in."""
    return {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": home, "USER": user.name,
            "LOGNAME": user.name, "SHELL": "/bin/sh", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", **more}


# ---- what is left behind

def become_subreaper():
    """Orphans of what we start become our children, so that nothing can slip away unseen."""
    ctypes.CDLL(None, use_errno=True).prctl(36, 1, 0, 0, 0)


def children_of(pid):
    """As the kernel lists them: to read every process of the machine costs as much as a box."""
    found = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children", "rb") as text:
                found += [int(child) for child in text.read().split()]
    except OSError:  # it has ended; its children are somebody else's now
        pass
    return found


def state_of(pid):
    """The letter of the process's state in /proc, empty where it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as text:
            return text.read().rpartition(b")")[2].split()[0]
    except OSError:
        return b""


def is_zombie(pid):
    return state_of(pid) in (b"Z", b"")


def below():
    found, level = [], [os.getpid()]
    while level:
        level = [child for pid in level for child in children_of(pid)]
        found += [pid for pid in level if not is_zombie(pid)]
    return found


def children():
    """Pids of our living descendants, zombies reaped on the way."""
    if not os.path.exists("/proc/thread-self/children"):
        raise OSError("this kernel lists no children (CONFIG_PROC_CHILDREN)")
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            break
        if pid == 0:
            break
    # A list may lack one while another ends, and one whose parent ends may move to a place that was read before: two looks.
    return sorted({*below(), *below()})


def leftovers(allowed=(), patience=30):
    """Descendants that are still there after `patience` seconds, beyond those allowed; they are ended and described."""
    end = time.monotonic() + patience
    while True:
        left = [p for p in children() if p not in allowed]
        if not left or time.monotonic() > end:
            break
        time.sleep(0.01)
    described = []
    for pid in left:
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as text:
                described.append(f"{pid} {text.read().replace(bytes(1), b' ').decode(errors='replace')}")
            os.kill(pid, signal.SIGKILL)
        except OSError:
            pass
    return described


def cgroups(uid=None):
    """Control groups whose name says they are ours, and whose maker (their first number) is gone: others are in use beside us. With `uid`
    those alone that this user made: what a suite beside us kills as root leaves its group to the next start, and is no start of ours."""
    found = glob.glob("/sys/fs/cgroup/**/*pinfold*", recursive=True)
    return {name for name in found if not is_alive(re.match(r"pinfold-(\d+)-", os.path.basename(name))) and (uid is None or owner_of(name) == uid)}


def owner_of(path):
    """None if it is gone."""
    try:
        return os.lstat(path).st_uid
    except FileNotFoundError:
        return None


def read(path):
    with open(path, "rb") as file:
        return file.read()


def descendants(pid):
    """Of any process, whoever started it."""
    found = []
    for child in children_of(pid):
        found += [child, *descendants(child)]
    return found


def of_this_suite():
    """Pids of all that this suite has started, daemons too; those of the whole machine are many more to look at. Two looks: a list may lack one
    while another ends."""
    suite = int(os.environ.get("PINFOLD_SUITE", os.getpid()))
    return sorted({*descendants(suite), *descendants(suite)})


def started_since(when):
    """[(pid, name)] of what this suite has started since then (CLOCK_BOOTTIME) and still runs; daemons are below the suite's runner."""
    found = []
    for pid in descendants(int(os.environ.get("PINFOLD_SUITE", os.getpid()))):
        try:
            head, _, tail = read(f"/proc/{pid}/stat").rpartition(b")")
        except OSError:
            continue
        fields = tail.split()
        if fields[0] != b"Z" and pid != os.getpid() and int(fields[19]) / os.sysconf("SC_CLK_TCK") >= when - 0.02:
            found.append((pid, head.partition(b"(")[2].decode(errors="replace")))
    return found


def what_hangs(when):
    """What has been started since then and still runs, with what each waits for: the kernel's function, and the call with its arguments."""
    lines = ["\nstill running then (pid, parent, state, words; wchan; syscall):"]
    for pid, name in started_since(when):
        about = {}
        for part in ("stat", "cmdline", "wchan", "syscall"):
            try:
                about[part] = read(f"/proc/{pid}/{part}").decode(errors="replace").strip("\0\n").replace("\0", " ")
            except OSError as why:
                about[part] = why.strerror
        fields = about["stat"].rpartition(")")[2].split()[:2]
        lines.append(f"{pid} {' '.join(reversed(fields))} {about['cmdline'][:120] or name}; {about['wchan']}; {about['syscall']}")
    return "\n".join(lines) + "\n"


def memory(pid):
    """All private bytes of a process (as root)."""
    parts = []
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps, open(f"/proc/{pid}/mem", "rb", 0) as mem:
        for line in maps:
            span, rights = line.split()[:2]
            if not rights.startswith("rw"):
                continue
            start, end = (int(x, 16) for x in span.split("-"))
            mem.seek(start)
            try:
                parts.append(mem.read(end - start))
            except OSError:
                pass  # [vvar]
    return b"".join(parts)


def is_alive(number):
    return bool(number) and os.path.exists("/proc/" + number.group(1))


def mounts():
    with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as text:
        return sorted(line.split()[4] for line in text)


def temp_names():
    """Names in the places for temporary files that look like ours."""
    found = set()
    for place in ("/tmp", "/var/tmp", "/dev/shm", "/run", f"/run/user/{os.getuid()}"):
        found |= set(glob.glob(f"{place}/*pinfold*")) | set(glob.glob(f"{place}/.*pinfold*"))
    # Not what suites beside us have there for as long as they run: it is called pinfold-test-*. Nor the users' runtime directories, which stay.
    return {name for name in found if not re.match(r"pinfold-(test-|\d+\Z)", os.path.basename(name))}


def came(before, look, patience=30):
    """What look(), a set, has beyond `before` and keeps for a while: what suites beside us make goes away again, and what has gone is no leftover."""
    new, end = look() - before, time.monotonic() + patience
    while new and time.monotonic() < end:
        time.sleep(0.1)
        new &= look()  # each of theirs goes, although another of theirs is always there
    return new


# pinfold's own place below a home, with the parents it may have to make: private cache layers, the audit log.
OWN_STATE = re.compile(r"\.local(/state(/pinfold(/.*)?)?)?\Z")


def tree(path):
    """{relative name: (mode, size)} of everything below path but pinfold's own state, for comparing before and after."""
    found = {}
    for here, dirs, files in os.walk(path):
        dirs[:] = [d for d in dirs if not OWN_STATE.match(os.path.relpath(os.path.join(here, d), path))]
        for name in dirs + files:
            full = os.path.join(here, name)
            st = os.lstat(full)
            found[os.path.relpath(full, path)] = (st.st_mode, st.st_size if not os.path.isdir(full) else 0)
    return found


def remove(path):
    """Removes a scene, whatever modes were left in it."""
    if not os.path.lexists(path):
        return
    if not IS_ROOT:
        subprocess.run(["chmod", "-R", "u+rwX", path], check=False, stderr=subprocess.DEVNULL)
    shutil.rmtree(path, ignore_errors=True)


def have(*programs):
    """The first program that is not installed, or None."""
    return next((p for p in programs if not shutil.which(p)), None)


HELD = []  # the sockets of held_port(): each keeps its number as long as this suite runs


def held_port(family=socket.AF_INET, address="127.0.0.1"):
    """A port where nothing listens and that nobody beside us is given, in this network namespace: it is bound here from now on. Who is told
    the number can still listen there, with SO_REUSEADDR as servers do (socket(7)); until then connections are refused. A port that is
    found free and let go may be the next that the kernel gives to somebody else."""
    low = int(read("/proc/sys/net/ipv4/ip_local_port_range").split()[0])
    while True:
        s = socket.socket(family)
        try:
            # Not of those that connections get: the same number may be wanted at another address, where a connection may have it.
            s.bind((address, random.randrange(8192, low) if low > 9216 else 0))
        except OSError as why:
            s.close()
            if why.errno != errno.EADDRINUSE:
                raise
            continue
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # not before: nobody else may hold it as we do
        HELD.append(s)
        return s.getsockname()[1]


def firejail_runs():
    """Not in a container, for which firejail takes what has no thread of the kernel among the first ten processes."""
    for pid in range(1, 11):
        try:
            with open(f"/proc/{pid}/comm", encoding="ascii", errors="replace") as file:
                if file.read().startswith(("kthreadd", "ksoftirqd", "kworker", "rcu_sched", "rcu_bh")):
                    return True
        except OSError:
            pass
    return False


def finish(tally):
    sys.exit(1 if tally.failed else 0)
