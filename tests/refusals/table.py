"""The refusals that a person must be told of: each way in which users of sandboxes were left without a reason.

A row: options of the policy, a command, then the event that is expected under --monitor (kind, action, end of the target, part of the rule),
and what its remedy is:
    "option"    one that lets the same command succeed
    "why"       one that cannot be tried here (it takes the internet): `pinfold why` says that it would be allowed
    "person"    words: only somebody outside can do it
    "=WORDS"    these words
"""


def py(code, *words):
    return ["python3", "-c", code, *words]


CONNECT = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 3).close()"
CONNECT_UDP = "import socket, sys; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.connect((sys.argv[1], int(sys.argv[2])))"
CONNECT_UNIX = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1].replace('@', '\\0'))"
SYSCALL = "import ctypes, os, sys; l = ctypes.CDLL(None, use_errno=True); r = l.syscall(*[int(w) for w in sys.argv[1:]]); sys.exit(os.strerror(ctypes.get_errno()) if r < 0 else 0)"
SOCKET = "import socket, sys; socket.socket(int(sys.argv[1]), int(sys.argv[2]))"
NODE_READ = "try { require('fs').readFileSync(process.argv[1]) } catch (e) { console.error(e.message); process.exit(1) }"
NODE_WRITE = "try { require('fs').writeFileSync(process.argv[1], 'x') } catch (e) { console.error(e.message); process.exit(1) }"
NODE_CONNECT = "require('net').connect({host: process.argv[1], port: +process.argv[2]}).on('error', e => { console.error(e.message); process.exit(1) }).on('connect', () => process.exit(0))"


def writes(p):
    other, home, work = p.other, p.home, p.work
    beside = "read-only /"
    return {
        "a shell writes beside the workspace": ([], ["sh", "-c", f"echo x > {other}/new"], ("file", "create", "/other/new", beside), "option"),
        "a shell appends beside it": ([], ["sh", "-c", f"echo x >> {other}/data.txt"], ("file", "write", "/other/data.txt", beside), "option"),
        "mkdir beside it": ([], ["mkdir", other + "/made"], ("file", "create", "/other/made", beside), "option"),
        "mkdir -p beside it": ([], ["mkdir", "-p", other + "/a/b"], ("file", "create", "/other/a", beside), "option"),
        "cp beside it": ([], ["cp", "a.txt", other + "/copy"], ("file", "create", "/other/copy", beside), "option"),
        "cp -r beside it": ([], ["cp", "-r", "src", other + "/tree"], ("file", "create", "/other/tree", beside), "option"),
        "rm beside it": ([], ["rm", "-f", other + "/data.txt"], ("file", "remove", "/other/data.txt", beside), "option"),
        "find -delete beside it": ([], ["find", other + "/sub", "-type", "f", "-delete"], ("file", "remove", "/sub/more.txt", beside), "option"),
        "chmod beside it": ([], ["chmod", "600", other + "/data.txt"], ("file", "change", "/other/data.txt", beside), "option"),
        "touch beside it": ([], ["touch", other + "/data.txt"], ("file", "write", "/other/data.txt", beside), "option"),
        "ln -s beside it": ([], ["ln", "-s", "x", other + "/link"], ("file", "create", "/other/link", beside), "option"),
        "mkfifo beside it": ([], ["mkfifo", other + "/fifo"], ("file", "create", "/other/fifo", beside), "option"),
        "truncate beside it": ([], ["truncate", "-s", "0", other + "/data.txt"], ("file", "write", "/other/data.txt", beside), "option"),
        "sed -i beside it": ([], ["sed", "-i", "s/d/e/", other + "/data.txt"], ("file", "create", "/other/sed", beside), "option"),
        "dd beside it": ([], ["dd", "if=/dev/zero", "count=1", f"of={other}/zero"], ("file", "create", "/other/zero", beside), "option"),
        "tar beside it": ([], ["sh", "-c", f"tar cf - a.txt | tar xf - -C {other}"], ("file", "create", "/other/a.txt", beside), "option"),
        "git init beside it": ([], ["git", "init", "-q", other + "/repo"], ("file", "create", "/other/repo", beside), "option"),
        "python beside it": ([], py("import sys; open(sys.argv[1], 'a')", other + "/data.txt"), ("file", "write", "/other/data.txt", beside), "option"),
        "node beside it": ([], ["node", "-e", NODE_WRITE, other + "/node"], ("file", "create", "/other/node", beside), "option"),
        "through a link out of the workspace": ([], ["sh", "-c", "echo x >> link-out"], ("file", "write", "/other/data.txt", beside), "option"),
        "a relative path": ([], ["sh", "-c", "echo x > ../other/rel"], ("file", "create", "/other/rel", beside), "option"),
        "a directory of the home": ([], ["touch", home + "/doc/new"], ("file", "create", "/doc/new", beside), "option"),
        "a start-up file": ([], ["sh", "-c", f"echo x >> {home}/.bashrc"], ("file", "write", "/.bashrc", beside), "option"),
        "the top of the home": ([], ["touch", home + "/new"], ("file", "create", "/home/new", beside), "person"),
        "git config --global": ([], ["git", "config", "--global", "user.name", "x"], ("file", "create", ".gitconfig.lock", beside), "person"),
        "a program installed in the home": ([], ["install", "-D", "a.txt", home + "/.local/bin/tool"], ("file", "create", "/.local/bin", beside), "option"),
        "a read-only workspace": (["--read-only"], ["touch", "new"], ("file", "create", "/work/new", "workspace_read_only --read-only"), "=leave out --read-only, or do it outside the box"),
        "a read-only directory of the workspace": (["--ro", work + "/src"], ["touch", "src/new"], ("file", "create", "/src/new", "src"), "person"),
        "a file with other names": (["--rw", other + "/one.txt"], ["sh", "-c", f"echo x >> {other}/one.txt"], ("file", "write", "/one.txt", ""), "person"),
        "pinfold's own state": (["--rw", home], ["touch", home + "/.local/state/pinfold/new"], ("file", "create", "/pinfold/new", ""), "person"),
    }


def guarded(p):
    work = p.work
    return {
        "a file that is loaded unasked": ([], ["sh", "-c", "echo x > .envrc"], ("file", "create", "/.envrc", ".envrc"), "option"),
        "an editor's directory": ([], ["mkdir", ".idea"], ("file", "create", "/.idea", ".idea"), "option"),
        "an editor's settings": ([], ["sh", "-c", "echo x > .vscode/settings.json"], ("file", "write", "settings.json", ".vscode"), "option"),
        "a git hook": ([], ["sh", "-c", "echo x > proj/.git/hooks/pre-commit"], ("file", "create", "pre-commit", ".git/hooks"), "option"),
        "a program in git's configuration": ([], ["git", "-C", "proj", "config", "core.fsmonitor", "x"], ("file", "git-config", "/.git/config", ""), "option"),
        "a protected file": (["--protect", work + "/a.txt"], ["sh", "-c", "echo x >> a.txt"], ("file", "write", "/a.txt", "a.txt"), "person"),
        "a name in a protected directory": (["--protect", work + "/src"], ["touch", "src/new.c"], ("file", "create", "/src/new.c", "src"), "person"),
    }


def reads(p):
    other, home, work = p.other, p.home, p.work
    ssh = ".ssh"
    return {
        "cat of a key": ([], ["cat", home + "/.ssh/id_rsa"], ("file", "read", "/.ssh/id_rsa", ssh), "option"),
        "a listing of the keys": ([], ["ls", home + "/.ssh"], ("file", "read", "/.ssh", ssh), "option"),
        "cd to the keys": ([], ["sh", "-c", f"cd {home}/.ssh"], ("file", "read", "/.ssh", ssh), "option"),
        "python reads a key": ([], py("import sys; open(sys.argv[1])", home + "/.ssh/id_rsa"), ("file", "read", "/.ssh/id_rsa", ssh), "option"),
        "node reads a key": ([], ["node", "-e", NODE_READ, home + "/.ssh/id_rsa"], ("file", "read", "/.ssh/id_rsa", ssh), "option"),
        "a program that says nothing": ([], ["sh", "-c", f"cat {home}/.ssh/id_rsa 2>/dev/null"], ("file", "read", "/.ssh/id_rsa", ssh), "option"),
        "credentials of a cloud's tools": ([], ["cat", home + "/.aws/credentials"], ("file", "read", "/.aws/credentials", ".aws"), "option"),
        "through a link in the workspace": ([], ["cat", "link-key"], ("file", "read", "/.ssh/id_rsa", ssh), "option"),
        ".env of the project": ([], ["cat", ".env"], ("file", "read", "/work/.env", ".env"), "option"),
        "what a rule hides": (["--hide", other], ["cat", other + "/data.txt"], ("file", "read", "/other/data.txt", "other"), "option"),
        "a listing of what a rule hides": (["--hide", other], ["ls", other], ("file", "read", "/other", "other"), "person"),
        "what a pattern hides": (["--hide", other + "/*.txt"], ["cat", other + "/data.txt"], ("file", "read", "/other/data.txt", "hide"), "option"),
        "a hidden file of the workspace": (["--hide", work + "/a.txt"], ["cat", "a.txt"], ("file", "read", "/a.txt", "a.txt"), "person"),
        "a name hidden at any depth": (["--hide", "**/.env"], ["cat", "src/.env"], ("file", "read", "/src/.env", ".env"), "person"),
        "grep in hidden files": (["--hide", other], ["grep", "-q", "d", other + "/data.txt"], ("file", "read", "/other/data.txt", "other"), "option"),
        "a file where the box has its own directory": ([], ["cat", p.file], ("file", "read", p.file, ""), "option"),
        "a hidden program": (["--hide", other], [other + "/tool"], ("file", "exec", "/other/tool", "other"), "option"),
        "a hidden interpreter": (["--hide", other + "/tool"], ["sh", "-c", "./script"], ("file", "exec", "/other/tool", "tool"), "person"),
        "a hidden program that a shell starts": (["--hide", other], ["sh", "-c", f"{other}/tool 2>/dev/null"], ("file", "exec", "/other/tool", "other"), "option"),
        "a directory that became a link": ([], ["sh", "-c", f"mkdir d; cat d/id_rsa; rmdir d; ln -s {home}/.ssh d; cat d/id_rsa"], ("file", "read", "/.ssh/id_rsa", ssh), "option"),
        "after a missing name beside it": ([], ["sh", "-c", f"cat {home}/.nothing; ls {home}/.nothing-either; ls {home}/.aws"], ("file", "read", "/.aws", ".aws"), "option"),
        "a write to a key": ([], ["sh", "-c", f"echo x >> {home}/.ssh/id_rsa"], ("file", "", "/.ssh/id_rsa", ssh), "option"),
    }


def by_ways(p):
    """Ways to a name by which a box would hide from the monitor what it is refused. Without the monitor nobody is told of them. Links into
    /proc stand in the box's own /tmp: in the workspace they are refused."""
    other, home, ssh, beside = p.other, p.home, ".ssh", "read-only /"
    return {
        "a write through the root in /proc": ([], ["sh", "-c", f"echo x > /proc/self/root{other}/new"], ("file", "create", "/other/new", beside), "any"),
        "mkdir through the root in /proc": ([], ["sh", "-c", f"mkdir /proc/self/root{other}/made 2>/dev/null"], ("file", "create", "/other/made", beside), "any"),
        "a write through a link into /proc": ([], ["sh", "-c", f"ln -s /proc/self/root{other}/new /tmp/l; echo x 2>/dev/null > /tmp/l"], ("file", "create", "/other/new", beside), "any"),
        "through /proc and up": ([], ["sh", "-c", f"cat /proc/..{home}/.ssh/id_rsa 2>/dev/null"], ("file", "read", "/.ssh/id_rsa", ssh), "any"),
        "through the root in /proc": ([], ["sh", "-c", f"cat /proc/self/root{home}/.ssh/id_rsa 2>/dev/null"], ("file", "read", "/.ssh/id_rsa", ssh), "any"),
        "through another's root in /proc": ([], ["sh", "-c", f"cat /proc/$$/root{home}/.ssh/id_rsa 2>/dev/null; false"], ("file", "read", "/.ssh/id_rsa", ssh), "any"),
        "from a directory of /proc": ([], ["sh", "-c", f"cd /proc/self && cat root{home}/.ssh/id_rsa 2>/dev/null"], ("file", "read", "/.ssh/id_rsa", ssh), "any"),
        "through a descriptor": ([], ["sh", "-c", f"exec 3</; cat /dev/fd/3{home}/.ssh/id_rsa 2>/dev/null"], ("file", "read", "/.ssh/id_rsa", ssh), "any"),
        "through a link to the root in /proc": ([], ["sh", "-c", f"ln -s /proc/self/root /tmp/l; cat /tmp/l{home}/.ssh/id_rsa 2>/dev/null"], ("file", "read", "/.ssh/id_rsa", ssh), "any"),
        "through links into /proc": ([], ["sh", "-c", f"ln -s /proc/self/root{home}/.ssh/id_rsa /tmp/l; ln -s l /tmp/m; cat /tmp/m 2>/dev/null"], ("file", "read", "/.ssh/id_rsa", ssh), "any"),
        "cd through /proc": ([], ["sh", "-c", f"cd /proc/self/root{home}/.ssh 2>/dev/null"], ("file", "read", "/.ssh", ssh), "any"),
        "a hidden program through /proc": (["--hide", other], ["sh", "-c", f"/proc/self/root{other}/tool 2>/dev/null"], ("file", "exec", "/other/tool", "other"), "any"),
    }


def network(p):
    none = "net none"
    return {
        "an address": ([], py(CONNECT, "1.2.3.4", "80"), ("network", "connect", "1.2.3.4:80", none), "why"),
        "an address, IPv6": ([], py(CONNECT, "2a00::1", "443"), ("network", "connect", "[2a00::1]:443", none), "why"),
        "a database at an address": ([], py(CONNECT, "1.2.3.4", "5432"), ("network", "connect", "1.2.3.4:5432", none), "why"),
        "node connects": ([], ["node", "-e", NODE_CONNECT, "1.2.3.4", "443"], ("network", "connect", "1.2.3.4:443", none), "why"),
        "datagrams to an address": ([], py(CONNECT_UDP, "1.2.3.4", "123"), ("network", "connect", "1.2.3.4:123", none), "why"),
        "curl to a name": ([], ["curl", "-sS", "-m", "5", "https://example.com"], ("network", "resolve", ":53", none), "person"),
        "git clone over https": ([], ["git", "clone", "-q", "https://example.com/x.git", "cloned"], ("network", "resolve", ":53", none), "person"),
        "git clone over ssh": ([], ["git", "clone", "-q", "ssh://git@example.com/x.git", "cloned"], ("network", "resolve", ":53", none), "person"),
        "getent": ([], ["getent", "hosts", "example.com"], ("network", "resolve", ":53", none), "person"),
        "a machine's credentials": ([], ["curl", "-sS", "-m", "5", "http://169.254.169.254/"], ("network", "connect", "169.254.169.254:80", none), "person"),
        "a service of the host": ([], py(CONNECT, "127.0.0.1", str(p.port)), ("network", "connect", f"127.0.0.1:{p.port}", none), "option"),
        "a service of the host by name": ([], py(CONNECT, "localhost", str(p.port)), ("network", "connect", f"127.0.0.1:{p.port}", none), "option"),
        "a Unix socket": ([], py(CONNECT_UNIX, p.unix), ("socket", "connect", p.unix, ""), "option"),
        "a Unix socket where the box has its own directory": ([], py(CONNECT_UNIX, p.own_unix), ("socket", "connect", p.own_unix, ""), "option"),
        "an abstract socket": ([], py(CONNECT_UNIX, p.abstract), ("socket", "connect", p.abstract, none), "person"),
        "a host that no rule allows": (["--allow", "example.org"], ["curl", "-sS", "-m", "5", "https://example.com"], ("network", "", "example.com", ""), "any"),
        "a denied host": (["--allow", "*", "--deny", "example.com"], ["curl", "-sS", "-m", "5", "https://example.com"], ("network", "", "example.com", "example.com"), "any"),
    }


def others(p):
    return {
        "a signal to a process of the host": ([], ["sh", "-c", f"kill -TERM {p.pid}"], ("process", "signal", str(p.pid), ""), "person"),
        "a user namespace": ([], ["unshare", "-U", "true"], ("namespace", "create", "", "nested-userns"), "option"),
        "keyrings": ([], py(SYSCALL, p.nr["keyctl"], "0", "-3", "1"), ("syscall", "call", "keyctl", "filter"), "person"),
        "performance events": ([], py(SYSCALL, p.nr["perf_event_open"], "0", "0", "0", "0", "0"), ("syscall", "call", "perf_event_open", "filter"), "person"),
        "a kind of socket": ([], py(SOCKET, "40", "1"), ("syscall", "call", "socket(40, 1)", "filter"), "person"),
        "the kernel's cryptography": ([], py(SOCKET, "38", "5"), ("syscall", "call", "socket(38, 5)", "filter"), "person"),
        "time": (["--timeout", "1s"], ["sleep", "170"], ("limit", "timeout", "", "limits.timeout"), "any"),
        "memory": (["--memory", "64M"], py("x = bytearray(300 << 20); import time; time.sleep(90)"), ("limit", "memory", "", "limits.memory"), "any"),
        "output": (["--output", "1K"], ["sh", "-c", "while :; do echo 0123456789; done"], ("limit", "output", "", "limits.output"), "any"),
    }


def for_root(p):
    """What only root may do outside; for others it is no matter of the sandbox."""
    return {
        "a mount": ([], ["env", "LIBMOUNT_FORCE_MOUNT2=always", "mount", "-t", "tmpfs", "x", "/mnt"], ("syscall", "call", "mount", "filter"), "person"),
        "the kernel's messages": ([], py(SYSCALL, p.nr["syslog"], "10", "0", "0"), ("syscall", "call", "syslog", "filter"), "person"),
        "another root": ([], ["chroot", "/", "true"], ("syscall", "call", "chroot", "filter"), "person"),
        "packets": ([], py(SOCKET, "2", "3"), ("syscall", "call", "socket(2, 3)", "filter"), "any"),
        "the kernel's settings": ([], ["sh", "-c", "echo 1 > /proc/sys/vm/drop_caches"], ("file", "write", "drop_caches", "/proc"), "person"),
        "the kernel's files": ([], ["sh", "-c", "echo x > /sys/kernel/mm/transparent_hugepage/enabled"], ("file", "write", "enabled", ""), "person"),
        "the top of the system": ([], ["mkdir", "/usr/pinfold-made"], ("file", "create", "/usr/pinfold-made", "read-only /"), "person"),
        "a map of ids in a namespace of its own": (["--allow-nested-userns"], ["unshare", "-Ur", "true"], ("namespace", "map", "user 0", "nested-userns"), "option"),
        "another owner": ([], ["chown", "5", "a.txt"], ("file", "owner", "/a.txt", "user"), "person"),
    }


def hosts_own(p):
    """Refused outside as well: told apart as not the sandbox."""
    return {
        "a file without permissions": (["cat", "closed.txt"], "/closed.txt"),
        "a directory without permissions": (["touch", p.other + "/shut/new"], "/shut/new"),
        "a file that is no program": (["./a.txt"], "/a.txt"),
    }


def silent(p):
    """Nothing that anybody was refused: no event at all, whatever the programs probe."""
    return {
        "a shell's tests": ["sh", "-c", f"test -w {p.other}/data.txt; test -r {p.home}/.ssh/id_rsa; test -e /nothing; true"],
        "a missing file": ["cat", "/etc/nothing"],
        "a missing program": ["sh", "-c", "command -v no-such-program; no-such-program; true"],
        "a missing name in the home": ["cat", p.home + "/.not-there"],
        "a service that is nowhere": py(CONNECT, "127.0.0.1", "1"),
        "a signal to nobody": ["sh", "-c", "kill -TERM 4194303; true"],
        "a look at a process": ["sh", "-c", f"kill -0 {p.pid}; true"],
        "python": py("import json, ssl, sqlite3, subprocess"),
        "node": ["node", "-e", "require('fs').readdirSync('.')"],
        "git": ["git", "-C", "proj", "status"],
        "a compiler": ["sh", "-c", "echo 'int main(void) { return 0; }' > t.c && cc t.c -o t && ./t"],
        "make": ["make", "--version"],
        "/proc and links into it": ["sh", "-c", "ln -s /proc/self l; cat /proc/self/status l/status /proc/self/root/etc/passwd /proc/self/../cpuinfo; ls -l /proc/self/fd l/fd /proc/self/cwd/; "
                                    "cat /dev/fd/0 /proc/self/root/nothing l/nothing </dev/null; cd /proc/self/cwd"],
        "its own sockets and files": ["python3", "-c", "import socket, tempfile; s = socket.create_server(('127.0.0.1', 0)); "
                                      "socket.create_connection(s.getsockname()); tempfile.TemporaryFile().write(b'x')"],
    }
