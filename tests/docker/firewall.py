#!/usr/bin/env python3
"""The firewall of the base image started by hand, and the second belt of boxes: containers in a network of this test's own. As root.

    firewall.py hand IMAGE DIR SIDE       by hand, with docker: `nft`, `iptables` (without nft), and what is refused
    firewall.py belt PINFOLD DIR ENGINE   a box of pinfold's whose network somebody outside attaches to another one

Prints a line for each row, as suites do. The world outside is a network namespace with a name server, GitHub's document over TLS by a
certificate of this test, and servers at public addresses, which exist in that namespace alone. SIDE is an image with sleep, for the container
whose network it is.
"""
import ctypes
import glob
import json
import os
import signal
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time

LIMIT = 60
RULE, PEER = "10.9.8.2", "10.9.8.1"
GITHUB, ALLOWED, LATER, OTHER = "140.82.112.5", "104.16.1.34", "104.16.9.9", "93.184.215.14"
RANGE4, RANGE6, ALLOWED6, OTHER6 = "140.82.121.9", "2606:50c0:8000::9", "2606:4700::34", "2a00:1450::9"
META = {"web": ["140.82.112.0/20", "2606:50c0:8000::/40"], "api": ["140.82.112.0/20"], "git": ["140.82.120.0/23", "10.0.0.0/8"], "hooks": ["93.184.215.0/24"]}
ZONE = {"api.github.com": [GITHUB], "registry.npmjs.org": [ALLOWED, ALLOWED6], "statsig.com": ["10.9.8.1"]}
FAILED = []


def row(name, wrong):
    print(f"FAIL {name}: {wrong}" if wrong else f"ok {name}", flush=True)
    FAILED.extend([name] if wrong else [])


def do(*words, check=True, **more):
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False, **more)
    if check and done.returncode:
        raise AssertionError(f"{' '.join(words)}: status {done.returncode}: {done.stderr[-1500:]}")
    return done


def wait_for(what, question, detail=lambda: ""):
    end = time.monotonic() + LIMIT
    while not question():
        if time.monotonic() > end:
            raise AssertionError(f"not after {LIMIT} s: {what}; {detail()}")
        time.sleep(0.05)


# ---- the world outside


def answer(query, zone):
    """One answer of a name server to an A or AAAA question."""
    at, labels = 12, []
    while query[at]:
        labels.append(query[at + 1:at + 1 + query[at]].decode())
        at += 1 + query[at]
    kind = struct.unpack(">H", query[at + 1:at + 3])[0]
    family = {1: socket.AF_INET, 28: socket.AF_INET6}.get(kind)
    name = ".".join(labels).lower()
    found = [socket.inet_pton(family, a) for a in zone.get(name, []) if family and (":" in a) == (kind == 28)]
    head = query[:2] + struct.pack(">HHHHH", 0x8180 if name in zone else 0x8183, 1, len(found), 0, 0)
    return head + query[12:at + 5] + b"".join(b"\xc0\x0c" + struct.pack(">HHIH", kind, 1, 1, len(a)) + a for a in found)


def serve_names(dir):
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind(("0.0.0.0", 53))
    while True:
        query, peer = udp.recvfrom(4096)
        with open(dir + "/zone", encoding="utf-8") as file:
            udp.sendto(answer(query, json.load(file)), peer)


def serve_words(port):
    """Says on each connection where it arrived."""
    s = socket.socket(socket.AF_INET6)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    s.bind(("::", port))
    s.listen(64)
    while True:
        one, _ = s.accept()
        one.sendall(f"at {one.getsockname()[0]} {port}\n".encode())
        one.close()


def serve_github(dir):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(dir + "/github.pem", dir + "/github.key")
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((GITHUB, 443))
    s.listen(64)
    body = json.dumps(META).encode()
    while True:
        one, _ = s.accept()
        try:
            with context.wrap_socket(one, server_side=True) as tls:
                tls.recv(65536)
                tls.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        except OSError:
            pass


def certificate(dir):
    do("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=api.github.com", "-addext", "subjectAltName=DNS:api.github.com",
       "-keyout", dir + "/github.key", "-out", dir + "/github.pem")


class World:
    """A process in a network namespace of its own, whose end takes all of it away."""

    def __init__(self, dir):
        self.dir = dir
        self.zone(ZONE)
        ready, told = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                if ctypes.CDLL(None, use_errno=True).unshare(0x40000000) < 0:  # CLONE_NEWNET
                    raise OSError(ctypes.get_errno(), "unshare")
                do("ip", "link", "set", "lo", "up")
                for address in (GITHUB, ALLOWED, LATER, OTHER, RANGE4):
                    do("ip", "addr", "add", address + "/32", "dev", "lo")
                for address in (RANGE6, ALLOWED6, OTHER6):
                    do("ip", "addr", "add", address + "/128", "dev", "lo", "nodad")
                serves = [(serve_names, (dir,)), *((serve_words, (port,)) for port in (22, 80, 8080))]
                if os.path.exists(dir + "/github.pem"):
                    serves.append((serve_github, (dir,)))
                serves.append((serve_words, (444,)))
                for function, words in serves:
                    threading.Thread(target=function, args=words, daemon=True).start()
                os.write(told, b"r")
                signal.pause()
            finally:
                os._exit(1)
        os.close(told)
        assert os.read(ready, 1) == b"r", "the world outside did not begin"

    def zone(self, names):
        with open(self.dir + "/zone.new", "w", encoding="utf-8") as file:
            json.dump(names, file)
        os.rename(self.dir + "/zone.new", self.dir + "/zone")

    def attach(self, pid, device="eth0"):
        """An interface in the network of that process, whose other end is here."""
        inside = ("nsenter", "-t", str(pid), "-n")
        outside = ("nsenter", "-t", str(self.pid), "-n")
        do(*inside, "sh", "-c", "for f in /proc/sys/net/ipv6/conf/*/disable_ipv6; do echo 0 >$f; done", check=False)
        do(*outside, "ip", "link", "add", "world", "type", "veth", "peer", "name", device, "netns", str(pid))
        do(*outside, "sh", "-c", f"ip addr add {PEER}/24 dev world && ip addr add fd09::1/64 dev world nodad && ip link set world up")
        do(*inside, "sh", "-c", f"ip link set lo up && ip addr add {RULE}/24 dev {device} && ip addr add fd09::2/64 dev {device} nodad && ip link set {device} up && ip route add default via {PEER} dev {device} && ip route add default via fd09::1 dev {device}")

    def reaches(self, port, address=RULE):
        """What it gets from a port of the container."""
        code = f"import socket\ns = socket.create_connection(('{address}', {port}), 3)\nprint(s.recv(99))"
        return do("nsenter", "-t", str(self.pid), "-n", sys.executable, "-c", code, check=False)

    def end(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


# ---- started by hand

PROBES = [  # what is tried, whether it is allowed
    (ALLOWED, 80, True), (ALLOWED6, 80, True), (RANGE4, 22, True), (RANGE4, 80, True), (RANGE6, 80, True), (GITHUB, 80, True),
    (ALLOWED, 8080, False), (ALLOWED, 22, False), (OTHER, 80, False), (OTHER, 22, False), (OTHER, 53, False), (OTHER6, 80, False), (LATER, 80, False), (PEER, 80, False)]


def tries(probes):
    """A script for bash in the container: a line for each."""
    return "".join(f'exec 3<>/dev/tcp/{a}/{p} && read -t 20 -r x <&3 && echo "got {a} {p} $x" || echo "no {a} {p}"; exec 3>&-\n' for a, p, _ in probes)


LISTENS = """
import selectors, socket
waits = selectors.DefaultSelector()
for port in (3000, 3001):
    waits.register(socket.create_server(("", port)), selectors.EVENT_READ)
print("up", flush=True)
while True:
    for key, _ in waits.select():
        one, _ = key.fileobj.accept()
        one.sendall(b"inside")
        one.close()
"""


class Hand:
    def __init__(self, dir, image, side):
        self.dir, self.image = dir, image
        certificate(dir)
        self.world = World(dir)
        self.side = do("docker", "run", "-d", "--network", "none", side, "sleep", "3600").stdout.strip()
        pid = do("docker", "inspect", "-f", "{{.State.Pid}}", self.side).stdout.strip()
        self.world.attach(pid)
        self.servers = subprocess.Popen(["nsenter", "-t", pid, "-n", sys.executable, "-c", LISTENS], stdout=subprocess.PIPE, text=True)
        assert self.servers.stdout.readline() == "up\n", "nothing listens in the container's network"
        for name, text in (("resolv.conf", f"nameserver {PEER}\n"), ("refresh", "1\n"), ("nothing", "#!/bin/sh\n")):
            with open(f"{dir}/{name}", "w", encoding="utf-8") as file:
                file.write(text)
        os.chmod(dir + "/nothing", 0o755)

    def run(self, *words, options=(), admin=True, network=None):
        mounts = {"resolv.conf": "/etc/resolv.conf", "github.pem": "/etc/ssl/certs/ca-certificates.crt", "refresh": "/etc/agent-sandbox/refresh"}
        return do("docker", "run", "--network", network or "container:" + self.side, *(["--cap-add", "NET_ADMIN"] if admin else []),
                  *(w for name, to in mounts.items() for w in ("-v", f"{self.dir}/{name}:{to}:ro")), "-e", "AGENT_SANDBOX_PUBLISH=3000", *options, self.image, *words, check=False)

    def inside(self, box, script):
        return do("docker", "exec", "-i", box, "bash", "-c", script, check=False)

    def way(self, way):
        """One container, with one of the two packet filters."""
        self.world.zone(ZONE)
        options = ("-d",) if way == "nft" else ("-d", "-v", "/dev/null:/usr/sbin/nft:ro")
        box = self.run("sleep", "3600", options=options).stdout.strip()
        said = lambda: do("docker", "logs", box, check=False)  # noqa: E731
        try:
            wait_for("the firewall is set up", lambda: "and nothing else" in said().stderr or "nothing is started" in said().stderr, lambda: said().stderr)
            assert f"allowed ({way}), and nothing else" in said().stderr, said().stderr
            assert "statsig.com is at 10.9.8.1, which is no public address" in said().stderr and "5 addresses" not in said().stderr, said().stderr
            wait_for("the command runs", lambda: "sleep 3600" in do("docker", "top", box, "-eo", "pid,args").stdout)
            got = self.inside(box, tries(PROBES)).stdout.splitlines()
            wanted = [f"got {a} {p} at {'' if ':' in a else '::ffff:'}{a} {p}" if good else f"no {a} {p}" for a, p, good in PROBES]
            assert got == wanted, [pair for pair in zip(got, wanted) if pair[0] != pair[1]] or got
            udp = self.inside(box, f"echo x >/dev/udp/{OTHER}/9 && echo sent; id -un; sudo -n id; sudo -n /usr/local/bin/init-firewall.sh keep-fresh; echo $?")
            assert udp.stdout.split() == ["node", "1"], udp
            # nothing comes in but to what was published, also when sudo is asked again with another word
            assert "inside" in self.world.reaches(3000).stdout, self.world.reaches(3000)
            again = self.inside(box, "AGENT_SANDBOX_PUBLISH=3001 sudo -n /usr/local/bin/init-firewall.sh")
            assert again.returncode == 0 and "and nothing else" in again.stderr, again
            closed, published = self.world.reaches(3001), self.world.reaches(3000)
            assert closed.returncode and "inside" in published.stdout, (closed, published)
            # kept fresh: a name moves
            self.world.zone({**ZONE, "registry.npmjs.org": [LATER]})
            script = tries([(LATER, 80, True)])
            wait_for("a new address is allowed", lambda: "got" in self.inside(box, script).stdout, lambda: self.inside(box, "cat /etc/resolv.conf; ps ax"))
            assert self.inside(box, tries([(OTHER, 80, False)])).stdout.startswith("no "), "another address is open, too"
        finally:
            do("docker", "rm", "-f", box, check=False)

    def refused(self):
        """Where it cannot be set up, or what it did cannot be seen to work, nothing starts."""
        for name, says, more in (("no NET_ADMIN", "the packet filter cannot be used", {"admin": False}), ("no network", "no host could be resolved", {"network": "none"}),
                                 ("a filter that does nothing", "the rules are not in the kernel", {"options": ("-v", self.dir + "/nothing:/usr/sbin/nft:ro", "--rm")}),
                                 ("a port that is none", "'3x' is no port", {"options": ("-e", "AGENT_SANDBOX_PUBLISH=3x")}),
                                 ("a variable alone", "the packet filter cannot be used", {"admin": False, "options": ("-e", "PINFOLD=1")})):
            done = self.run("echo", "started", **more)
            assert done.returncode == 1 and "started" not in done.stdout and says in done.stderr and "nothing is started" in done.stderr, (name, done)

    def end(self):
        self.servers.kill()
        self.servers.communicate()
        do("docker", "rm", "-f", self.side, check=False)
        self.world.end()


def by_hand(image, dir, side):
    hand = Hand(dir, image, side)
    try:
        for name, function in (("nft", lambda: hand.way("nft")), ("iptables", lambda: hand.way("iptables")), ("refused", hand.refused)):
            wrong = ""
            try:
                function()
            except AssertionError as e:
                wrong = str(e)[:3000]
            row("docker/firewall-" + name, wrong)
    finally:
        hand.end()


# ---- a box of pinfold's

SEEN = """
import select, socket, sys
s = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0x0300)
s.bind(("world", 3))
print("up", flush=True)
while not select.select([s, sys.stdin], [], [])[0] == [sys.stdin]:
    packet, where = s.recvfrom(2048)
    if where[2] != 4 and where[1] in (0x800, 0x86dd): # not its own
        at, proto = (20, packet[9]) if where[1] == 0x800 else (40, packet[6])
        if proto in (6, 17):
            print("seen", "TCP" if proto == 6 else "UDP", int.from_bytes(packet[at + 2:at + 4], "big"), flush=True)
"""
BOUND = """
import socket
def try_it(family, where, device):
    for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
        s = socket.socket(family, kind)
        s.settimeout(3)
        if device:
            s.setsockopt(socket.SOL_SOCKET, 25, device)
        try:
            s.connect((where, 80))
            s.send(b'secret')
            answer = s.recv(99)
        except OSError as e:
            answer = e
    return answer
"""


def belt(pinfold, dir, engine):
    """An interface is attached from outside: nothing leaves by it though a program asks for it by name, and nothing comes in."""
    world = World(dir)
    options, python = (), ["/usr/bin/python3"]
    if engine != "native":  # the image has no python: this machine's
        [loader] = glob.glob("/usr/lib/*-linux-gnu/ld-linux-*.so.*")
        options, python = ("--engine", engine, "--image", "kit/busybox:1", "--mount", "/usr:/usr:ro"), [loader, "--library-path", os.path.dirname(loader), "/usr/bin/python3"]
    script = "import socket, sys, threading\n" + BOUND + f"""
s = socket.create_server(('0.0.0.0', 3000))
def serve():
    while True:
        one, _ = s.accept()
        one.sendall(b'inside')
threading.Thread(target=serve, daemon=True).start()
print('up', flush=True)
sys.stdin.readline()
print('bound', try_it(socket.AF_INET, '{OTHER}', b'eth9'), try_it(socket.AF_INET6, '{OTHER6}', b'eth9'), 'free', try_it(socket.AF_INET, '{OTHER}', None), flush=True)
"""
    box = subprocess.Popen([pinfold, "run", "-q", *options, "--allow", "nowhere.test", "--", *python, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=dir)
    try:
        assert box.stdout.readline() == "up\n", box.communicate()
        pids = [p for p in os.listdir("/proc") if p.isdigit() and "create_server" in text_of(f"/proc/{p}/cmdline")]
        pids = [p for p in pids if os.readlink(f"/proc/{p}/ns/net") != os.readlink("/proc/self/ns/net")]
        assert pids, "the command is not found"
        world.attach(pids[0], "eth9")
        sniffs = subprocess.Popen(["nsenter", "-t", str(world.pid), "-n", sys.executable, "-c", SEEN], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert sniffs.stdout.readline() == "up\n", "no sniffer"
        came = world.reaches(3000)
        out, err = box.communicate("go\n", timeout=LIMIT)
        assert came.returncode and "inside" not in came.stdout, came
        assert out.startswith("bound ") and "at " not in out, (out, err)
        seen, _ = sniffs.communicate("\n", timeout=LIMIT)
        assert not seen, ("packets left by it", seen, out)
    finally:
        box.kill()
        box.communicate()
        world.end()


def text_of(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


if __name__ == "__main__":
    if sys.argv[1] == "hand":
        by_hand(*sys.argv[2:5])
    else:
        wrong = ""
        try:
            belt(*sys.argv[2:5])
        except AssertionError as e:
            wrong = str(e)[:3000]
        row(f"{sys.argv[4]}/belt", wrong)
    sys.exit(bool(FAILED))
