"""What an unfriendly box can do to its egress: many tunnels, slow talkers, stalled readers, half-closed streams, resets.

Bounded in number and time; memory is stated, and judged only where it would otherwise grow without an end.
"""
import json
import os
import resource
import socket
import subprocess
import sys
import time

HERE = os.environ["PINFOLD_SCRATCH"] + "/clients"  # see run: main()
PORT = 8450
CLIENT = f"python3 {HERE}/strain.py"


class Box:
    """A box that lives while its command is looked at."""

    def __init__(self, t, command, before=(), flags=()):
        self.p = subprocess.Popen([*before, t.pinfold, "run", "-q", "--workspace", ".", *t.allow, "--allow", f"ok.test:{PORT}", "--pids", "200", *flags,
                                   "--", "sh", "-c", command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.egress = None

    def find(self):
        """The egress: of pinfold's children the one in this network namespace."""
        for _ in range(600):
            with open(f"/proc/{self.p.pid}/task/{self.p.pid}/children", encoding="ascii") as text:
                for child in map(int, text.read().split()):
                    try:
                        with open(f"/proc/{child}/status", encoding="ascii") as status:
                            locked = "Seccomp:\t2" in status.read()
                        if locked and os.readlink(f"/proc/{child}/ns/net") == os.readlink("/proc/self/ns/net"):
                            self.egress = child
                            return child
                    except OSError:
                        pass
            time.sleep(0.05)
        raise RuntimeError("no egress")

    def memory(self):
        """Bytes of memory that are the egress's alone."""
        with open(f"/proc/{self.egress}/smaps_rollup", encoding="ascii") as text:
            return sum(int(line.split()[1]) << 10 for line in text if line.startswith("Private"))

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.egress}/fd"))

    def line(self):
        return self.p.stdout.readline().decode("utf-8", "replace").strip()

    def end(self):
        out = self.p.communicate(timeout=180)[0] if not self.p.stdin.closed else b""
        return self.p.returncode, out.decode("utf-8", "replace")


def settled(box, most):
    """Whether the egress has no more than `most` descriptors within a while."""
    for _ in range(600):
        if box.descriptors() <= most:
            return True
        time.sleep(0.1)
    return False


def run(t):
    server = subprocess.Popen([sys.executable, HERE + "/strain_server.py", t.public, str(PORT)], stdin=subprocess.DEVNULL)
    try:
        for _ in range(600):
            try:
                socket.create_connection((t.public, PORT), timeout=1).close()
                break
            except OSError:
                time.sleep(0.1)
        idle(t)
        beyond(t)
        stalled(t)
        loris(t)
        for kind, n, expect in (("half", 20, "whole 20"), ("client_half", 20, "whole 20")):
            _, out = t.box(t.allow, f"timeout 60 {CLIENT} {kind} ok.test {PORT} {n}", 90)
            t.report("strain/" + kind.replace("_", "-") + "-closed", expect in out, out[-2000:])
        connects(t)
        bulk(t)
        storm(t)
    finally:
        server.terminate()
        server.wait()


def idle(t):
    """1,000 idle tunnels, and as root 10,000, or as many as the descriptors that one process may have here: two for each."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, 40000))
    except (ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    most = (resource.getrlimit(resource.RLIMIT_NOFILE)[1] - 200) // 2000 * 1000
    for n in (1000, min(10000, most)) if os.getuid() == 0 and not in_user_namespace() else (1000,):
        box = Box(t, f"{CLIENT} idle ok.test {PORT} {n}")
        box.find()
        before = box.memory()
        lines = [box.line() for _ in range((n + 999) // 1000)]
        found = sum(int(line.split()[1]) for line in lines if line.startswith("open "))
        each = (box.memory() - before) / max(found, 1)
        ok = found == n and box.descriptors() >= 2 * n
        name = f"strain/idle-tunnels-{n}"
        if ok:
            print(f"ok {name}: {found} tunnels, {each:.0f} bytes of the egress's memory each", flush=True)
        else:
            t.report(name, False, (found, box.descriptors(), lines, box.end()))
        box.end()


def beyond(t):
    """More connections than descriptors: those are reset, the others go on, and there is room again when they end."""
    box = Box(t, f"{CLIENT} crowd ok.test {PORT} 300; curl -sS -m 60 http://ok.test:8099/f; cat > /dev/null", ["prlimit", "--nofile=460:460"], ["--result", "crowd.json"])
    lines = [box.line(), box.line(), box.line()]
    count = lines[0].split()[1] if lines[0].startswith("open ") else ""
    why = box.end()[1][-2000:]
    t.report("strain/beyond-the-descriptors", count.isdigit() and 100 < int(count) < 200 and lines[1:] == [f"alive {count}", "hello"], (lines, why))
    with open("crowd.json", encoding="utf-8") as text:
        denials = json.load(text)["denials"]
    t.report("strain/beyond-the-descriptors-said", any(d["target"] == f"ok.test:{PORT}" and f"{count} connections at once" in d["rule"] and "ulimit -Hn, 460" in d["rule"]
                                                       for d in denials) and len(denials) < 5, denials)


def in_user_namespace():
    with open("/proc/self/uid_map", encoding="ascii") as text:
        return text.read().split() != ["0", "0", "4294967295"]


def stalled(t):
    """Readers that read nothing must not fill the host's memory: what is kept for each becomes less as they become more."""
    box = Box(t, f"{CLIENT} stalled ok.test {PORT} 100")
    box.find()
    before = box.memory()
    line = box.line()
    grown = (box.memory() - before) / (1 << 20)
    if line == "open 100" and grown < 20:
        print(f"ok strain/stalled-readers: 100 of them, {grown:.1f} MiB kept", flush=True)
    else:
        t.report("strain/stalled-readers", False, (line, grown))
    box.end()


def connects(t):
    """What the guard does for a connect leaves no trace, and waits for nobody but its caller."""
    command = f"python3 {HERE}/connects.py"
    if "as it was" not in t.outside(command):
        t.report("strain/connects", False, "not so outside either")
        return
    for name, flags in (("no-network", []), ("allow", t.allow), ("hides", ["--hide", "**/.secret"])):
        status, out = t.box(flags, f"timeout 30 {command} 2>&1", 60)
        t.report("strain/connects-" + name, "as it was" in out, (status, out[-2000:]))


def loris(t):
    """Talkers that never finish their request are cut off, and others are served meanwhile."""
    box = Box(t, f"{CLIENT} loris 127.0.0.1 61080 300 & sleep 2; curl -sS -m 60 http://ok.test:8099/f; wait")
    box.find()
    had = box.descriptors()
    _, out = box.end() if box.p.poll() is not None else (0, "")
    if not out:
        out = box.p.communicate(timeout=180)[0].decode("utf-8", "replace")
    t.report("strain/slow-talkers", "hello" in out and "ended 300" in out, (had, out[-2000:]))


def bulk(t):
    """Much over more tunnels than there are pipes for: all of it arrives, and what was dropped half-way leaves nothing."""
    box = Box(t, f"{CLIENT} bulk ok.test {PORT} 24; {CLIENT} bulk ok.test {PORT} 24; cat > /dev/null")
    box.find()
    had = box.descriptors()
    lines = [box.line(), box.line()]
    t.report("strain/bulk", lines == ["same 16 of 16"] * 2 and settled(box, had + 16 + 4), (lines, had, box.descriptors()))
    box.end()


def storm(t):
    """Resets at every moment leave nothing behind."""
    box = Box(t, f"{CLIENT} storm ok.test {PORT} 30 > /dev/null; echo first; {CLIENT} storm ok.test {PORT} 3000; {CLIENT} storm 127.0.0.1 61080 1000; "
              f"{CLIENT} storm 127.53.53.53 53 1000; curl -sS -m 60 http://ok.test:8099/f; cat > /dev/null")
    box.find()
    had = box.descriptors()
    lines = [box.line() for _ in range(5)]
    ok = lines == ["first", "done 3000", "done 1000", "done 1000", "hello"] and settled(box, had + 4)
    t.report("strain/resets", ok, (lines, had, box.descriptors()))
    box.end()
