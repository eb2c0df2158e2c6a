"""Real programs in the box, without proxy variables: each reaches the allowed name, and says at once that it cannot reach another.

Both names lead to the same server, so the same command works for either outside the box: shown first.
"""
import glob
import os
import pwd
import re
import shutil
import socket
import subprocess
import time

HERE = os.environ["PINFOLD_SCRATCH"] + "/clients"  # see run: main()
SSH = "-o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o IdentitiesOnly=yes -i key"
BARE = "env -u http_proxy -u https_proxy -u HTTP_PROXY -u HTTPS_PROXY -u no_proxy -u NO_PROXY "
NO_NAME = "not known|not resolve|resolve host|does not resolve|no such host|ENOTFOUND|UnresolvedAddress|Name or service|Name does not"
LIMIT = 60  # seconds after which a client counts as hanging; none of them waits that long by itself


def find(program, *places):
    return shutil.which(program) or next((p for pattern in places for p in sorted(glob.glob(pattern)) if os.access(p, os.X_OK)), None)


class Servers:
    """What the clients talk to; ended by stop()."""

    def __init__(self, t):
        self.t, self.running = t, []
        uid, gid = map(int, os.environ["PINFOLD_EGRESS_CALLER"].split())
        self.user = os.environ.get("PINFOLD_TEST_USER") if uid == 0 else None
        if uid:  # servers that must not be root: as the caller again, in a user namespace below that of the suite
            self.as_user, self.name = ["unshare", "--user", f"--map-user={uid}", f"--map-group={gid}"], pwd.getpwuid(uid).pw_name
        else:
            self.as_user = ["setpriv", f"--reuid={self.user}", f"--regid={self.user}", "--init-groups"]
            self.name = self.user
        self.as_user += ["env", "HOME=" + t.scratch]

    def start(self, *argv):
        self.running.append(subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

    def own(self, name):
        """A directory that the user who runs the servers owns."""
        path = os.path.join(self.t.scratch, name)
        os.makedirs(path)
        if self.user:
            shutil.chown(path, self.user, self.user)
        return path

    def ssh(self):
        sshd, place = find("sshd", "/usr/sbin/sshd"), self.own("ssh")
        if not sshd:
            return
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "key"], check=True)  # in the workspace
        shutil.copy("key.pub", place + "/keys")
        with open(place + "/config", "w", encoding="ascii") as out:
            out.write(f"ListenAddress {self.t.public}:2222\nHostKey {place}/host\nAuthorizedKeysFile {place}/keys\nPidFile none\n"
                      "StrictModes no\nUsePAM no\nPasswordAuthentication no\n")
        subprocess.run([*self.as_user, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", place + "/host"], check=True)
        shutil.copytree(self.t.scratch + "/web/repo.git", place + "/repo.git")
        if self.user:
            subprocess.run(["chown", "-R", self.user + ":", place], check=True)
        self.start(*self.as_user, sshd, "-D", "-f", place + "/config")

    def postgres(self):
        binary = find("postgres", "/usr/lib/postgresql/*/bin/postgres")
        place = self.own("pg")
        if not binary or not find("psql"):
            return
        initdb = os.path.join(os.path.dirname(os.path.realpath(binary)), "initdb")
        subprocess.run([*self.as_user, initdb, "-A", "trust", "-U", "hello", "--no-sync", "-D", place], check=True, stdout=subprocess.DEVNULL)
        with open(place + "/pg_hba.conf", "a", encoding="ascii") as out:
            out.write("host all all all trust\n")
        self.start(*self.as_user, binary, "-D", place, "-h", self.t.public, "-p", "5432", "-k", place, "-c", "fsync=off")

    def all(self):
        self.ssh()
        self.postgres()
        self.start("node", HERE + "/h2.js", self.t.public, "8445", "8446", self.t.scratch + "/key", self.t.scratch + "/cert")
        self.start("python3", HERE + "/websocket.py", self.t.public, "8447")
        for port in (2222, 5432, 8445, 8447):
            self.wait(port)

    def wait(self, port):
        for _ in range(600):
            try:
                socket.create_connection((self.t.public, port), timeout=1).close()
                return
            except OSError:
                time.sleep(0.1)

    def stop(self):
        for p in self.running:
            p.terminate()
        for p in self.running:
            p.wait()


def programs(t):
    """Compiles what is compiled; {name: whether it is there}."""
    there = {}
    there["static-musl"] = subprocess.run(["musl-gcc", "-static", "-O1", "-o", "plain-c", HERE + "/plain.c"], check=False).returncode == 0
    go = find("go", "/usr/lib/go-*/bin/go")
    cache = dict(os.environ, CGO_ENABLED="0", GOCACHE=t.scratch + "/go-cache", GOPATH=t.scratch + "/go", GOFLAGS="-mod=mod", GO111MODULE="off")
    there["go"] = bool(go) and subprocess.run([go, "build", "-o", "plain-go", HERE + "/plain.go"], env=cache, check=False).returncode == 0
    there["java"] = bool(find("javac")) and subprocess.run(["javac", "-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC", "-d", ".", HERE + "/Fetch.java"], check=False).returncode == 0
    return there


def table(user):
    """name, package that brings it, command with NAME for the host's name, what it says when that is refused"""
    return [
        ("ssh", "openssh-server", f"ssh {SSH} -p 2222 {user}@NAME echo hello", NO_NAME),
        ("git-over-ssh", "openssh-server", f"rm -rf r; GIT_SSH_COMMAND='ssh {SSH}' git clone -q ssh://{user}@NAME:2222$SSH_REPO r && cat r/x && rm -rf r && echo hello", NO_NAME),
        ("psql", "postgresql", "PGPASSWORD=x psql -h NAME -p 5432 -U hello -d postgres -Atc \"select 'hel' || 'lo'\"", NO_NAME),
        ("java", "default-jdk-headless", "java -XX:TieredStopAtLevel=1 -cp . Fetch http://NAME:8099/f", "ConnectException|Unresolved"),
        ("static-musl", "musl-tools", "./plain-c NAME 8099 /f", NO_NAME),
        ("go", "golang-go", "./plain-go NAME 8099 /f", NO_NAME),
        ("websocket", "python3", f"python3 {HERE}/websocket.py ws://NAME:8447/", NO_NAME),
        ("websocket-on-a-kept-connection", "python3", f"python3 {HERE}/websocket.py ws://NAME:8447/ kept", NO_NAME),
        ("websocket-on-a-kept-connection-in-a-tunnel", "python3", f"python3 {HERE}/websocket.py ws://NAME:8447/ connect", "no tunnel: HTTP/1.1 403"),
        ("python-requests", "python3-requests", "/usr/bin/python3 -c \"import requests; s = requests.Session(); s.trust_env = False; print(s.get('http://NAME:8099/f', timeout=15).text)\"", NO_NAME),
        ("node-fetch", "nodejs", "node -e \"fetch('http://NAME:8099/f').then(r => r.text()).then(console.log)\"", "ENOTFOUND"),
        ("node-tls", "nodejs", "node -e \"require('https').get({host: 'NAME', port: 8443, path: '/', rejectUnauthorized: false}, r => { r.resume(); r.on('end', () => console.log('hello')) })\"", "ENOTFOUND"),
        ("curl-http2-over-tls", "curl", "curl --http2 -ksS https://NAME:8445/", NO_NAME),
        ("curl-http2-in-clear", "curl", "curl --http2-prior-knowledge -sS http://NAME:8446/", NO_NAME),
        ("nghttp", "nghttp2-client", "nghttp -n --stat https://NAME:8445/ 2>&1 | grep -q '200 ' && echo hello || { nghttp -n https://NAME:8445/; false; }", "not known|resolv|Could not"),
        ("h2load", "nghttp2-client", "h2load -n 60 -c 3 -m 10 https://NAME:8445/ | grep -q '60 succeeded' && echo hello", "not known|resolv|0 succeeded|Could not"),
    ]


def judge(t, name, command, flags, says):
    """One box for both names: the allowed one answers, the other is refused in words and before the limit."""
    allowed, refused = command.replace("NAME", "ok.test"), command.replace("NAME", "other.test")
    out = t.outside(f"{{ {BARE} timeout {LIMIT} sh -c {quote(refused)}; }} 2>&1")
    if "hello" not in out:
        t.report("clients/" + name, False, "does not work outside either: " + out[-2000:])
        return
    _, out = t.box(flags, f"{BARE} timeout {LIMIT} sh -c {quote(allowed)}; echo; echo \"== $?\"; {BARE} timeout {LIMIT} sh -c {quote(refused)}; echo \"== $?\"", 3 * LIMIT)
    parts = out.split("== ")
    t.report("clients/" + name, len(parts) == 3 and "hello" in parts[0], out[-2000:])
    refusal = parts[1][parts[1].find("\n") + 1:] if len(parts) == 3 else ""
    status = parts[2].split()[0] if len(parts) == 3 else ""
    t.report("clients/" + name + "-refused", "hello" not in refusal and bool(re.search(says, refusal, re.I)) and status != "124", (status, refusal[-2000:]))


def judge_port(t, name, command, says):
    """A host that is allowed but for this port: the connection is made, for the box cannot know, and reset with words."""
    _, out = t.box([*t.allow, "--deny-port", "1024-65535"], f"{BARE} timeout {LIMIT} sh -c {quote(command.replace('NAME', 'ok.test'))}; echo \"== $?\"", 2 * LIMIT)
    t.report("clients/" + name + "-port-refused", "hello" not in out and bool(re.search(says, out, re.I)) and "== 124" not in out, out[-2000:])


def quote(command):
    return "'" + command.replace("'", "'\\''") + "'"


def run(t):
    servers = Servers(t)
    there = programs(t)
    try:
        servers.all()
        for name, package, command, says in table(servers.name):
            needs = {"git-over-ssh": "sshd", "ssh": "sshd", "psql": "psql", "curl-http2-over-tls": "curl", "curl-http2-in-clear": "curl",
                     "nghttp": "nghttp", "h2load": "h2load"}.get(name)
            if not there.get(name, True) or (needs and not find(needs, "/usr/sbin/" + needs)):
                t.skip("clients/" + name, f"it takes the package {package}")
                continue
            command = command.replace("$SSH_REPO", t.scratch + "/ssh/repo.git")
            judge(t, name, command, t.allow, says)
            if name in ("ssh", "psql", "java", "go", "node-fetch"):
                judge_port(t, name, command, "reset|refused|closed|IOException|ECONNRESET")
        _, out = t.box([*t.allow, "--deny-port", "1024-65535"], f"python3 {HERE}/reset.py ok.test 8099", 60)
        t.report("clients/reset-with-the-first-words", out.split("\n")[:2] == ["waits for words", "reset"], out[-2000:])
    finally:
        servers.stop()
