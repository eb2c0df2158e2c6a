"""The behaviours. A row: section, name, the sentence of docs/ENGINES.md, policy flags, what is done inside, what must come of it.

    script   for the shell inside; rows of equal flags run one after the other in one box
    out      what it must print, lines joined by a space;  match: a regular expression instead;  status: its own
    before   prepares the scene;  host: looks at the host afterwards and returns what is wrong, or nothing
    act      instead of a script: a function of a Scene (run) that starts boxes itself and raises Wrong
    must     guarantees that the profile may lose and this row is about

In scripts: $W the workspace, $H the home directory, $O a directory beside the workspace; w FILE writes and r FILE reads,
t WORDS tries: they say yes, no, or the content. {words} are the scene's.
"""
import dataclasses
import json
import os
import select
import shlex
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import pf  # noqa: E402
import leader  # noqa: E402

PUBLIC, OTHER = "203.0.114.7", "203.0.114.8"
PORT = 7000  # of the servers that say hello


class Wrong(Exception):
    pass


@dataclasses.dataclass
class Row:
    section: str
    name: str
    text: str
    script: str = ""
    flags: str = ""
    out: object = None
    match: str = ""
    status: int = 0
    before: object = None
    host: object = None
    act: object = None
    must: str = ""
    network: bool = False  # needs names and addresses of the suite's own network


ROWS = []
SECTION = ["Files"]


def R(name, text, script, out=None, **more):
    ROWS.append(Row(SECTION[0], name, text, script, out=out, **more))


def acts(name, text, **more):
    def take(function):
        ROWS.append(Row(SECTION[0], name, text, act=function, **more))
        return function
    return take


def check(holds, why, done=None):
    if not holds:
        raise Wrong(why, done.said() if isinstance(done, pf.Done) else str(done or ""))


def lines(done):
    return " ".join(done.out.decode("utf-8", "backslashreplace").split())


# ---- what the host sees afterwards

def holds(name, text):
    def look(s):
        try:
            with open(s.place(name), encoding="utf-8", errors="replace") as file:
                found = file.read()
        except OSError as e:
            return f"{name}: {e.strerror}"
        return "" if found == text else f"{name} holds {found[:80]!r}"
    return look


def absent(*names):
    def look(s):
        return ", ".join(f"{n} is there" for n in names if os.path.lexists(s.place(n)))
    return look


def put(**files):
    """Files of the scene: work__a_txt=... is not needed often; see puts()."""
    return lambda s: [s.put(name.replace("__", "/"), text) for name, text in files.items()]


def puts(*pairs):
    return lambda s: [s.put(name, text) for name, text in pairs]


def both(*looks):
    return lambda s: "; ".join(filter(None, (look(s) for look in looks)))


def owned(name):
    def look(s):
        st = os.lstat(s.place(name))
        return "" if (st.st_uid, st.st_gid) == (s.user.uid, s.user.gid) else f"{name} belongs to {st.st_uid}:{st.st_gid}"
    return look


# ==== files
R("workspace-written", "files in the workspace are made, changed and removed, and the host sees it at once",
  "echo a >a1; echo b >>a1; echo x >a2; rm a2; cat a1", "a b", host=both(holds("work/a1", "a\nb\n"), absent("work/a2")))
R("workspace-renamed", "files and directories of the workspace are renamed over and into each other",
  "mkdir -p b1/c; echo x >b1/c/f; mv b1 b2; echo y >b3; echo z >b4; mv b4 b3; cat b2/c/f b3", "x z", host=both(holds("work/b3", "z\n"), holds("work/b2/c/f", "x\n")))
R("workspace-links", "hard links and symbolic links are made in the workspace",
  "echo l >c1; ln c1 c2; ln -s c1 c3; cat c2 c3; readlink c3", "l l c1", host=lambda s: "" if os.stat(s.place("work/c1")).st_nlink == 2 else "not linked")
R("workspace-modes", "modes and times of files in the workspace are set",
  "echo m >d1; chmod 640 d1; touch -t 200001010000 d1; ls -l d1 | cut -c1-10", "-rw-r-----",
  host=lambda s: "" if os.stat(s.place("work/d1")).st_mtime < 1e9 else "the time is not set")
R("workspace-programs", "a program made in the workspace is executed", "cp probe e1; ./e1 fds >/dev/null && echo ran", "ran")
R("workspace-large", "8 MiB of a file come back as they were written",
  "head -c 8388608 /dev/urandom >f1; cp f1 f2; cmp f1 f2 && wc -c <f2; rm f1 f2", "8388608")
R("workspace-many", "300 files are made, listed and removed", "mkdir g1; i=0; while [ $i -lt 300 ]; do : >g1/$i; i=$((i+1)); done; ls g1 | wc -l; rm -r g1; t ls g1", "300 no")
R("system-read-only", "/usr, /etc and / are not written", "w /usr/conf; w /etc/conf; w /conf; t mkdir /conf.d", "no no no no")
R("neighbours-read-only", "what is beside the workspace is not written", "w $O/text; w $O/new; t mkdir $O/dir; t mv $O/text $O/t2; t rm $O/text", host=both(
    holds("other/text", "other\n"), absent("other/new", "other/dir", "other/t2")))
R("home-read-only", "nothing is written into the home directory of the host", "w $H/text; w $H/.bashrc; w $H/.profile; true", host=both(
    holds("home/text", "text\n"), absent("home/.bashrc", "home/.profile")))
R("upwards", "no path leads out of the workspace: .., /proc/self/cwd/.., /proc/self/root, symbolic links",
  "ln -s $O h1; w ../other/text; w /proc/self/cwd/../other/text; w /proc/self/root$O/text; w h1/text; true", host=holds("other/text", "other\n"))
R("read-only", "--read-only: the workspace is read and not written", "r plain; w plain; w i1", "plain no no", flags="--read-only", host=both(
    holds("work/plain", "plain\n"), absent("work/i1")))
R("rw", "--rw: another directory is written", "r $O/text; w $O/new; r $O/new", "other yes w", flags="--rw {other}", host=holds("other/new", "w\n"))
R("ro", "--ro: another directory is read and not written", "r $O/text; w $O/text; w $O/j1", "other no no", flags="--ro {other}", host=absent("other/j1"))
R("ro-in-workspace", "--ro of a directory in the workspace holds there only", "r sub/in; w sub/in; w sub/k1; w k2; t mv sub sub2; t rm sub/in",
  "in no no yes no no", flags="--ro {work}/sub", host=holds("work/sub/in", "in\n"))
R("rw-in-read-only", "--rw of a directory in a workspace that is read-only", "w l1; w sub/l2; r sub/l2", "no yes w", flags="--read-only --rw {work}/sub")
R("mount", "--mount: a directory appears at another path and is written there", "r /data/x/text; w /data/x/m1; r /data/x/m1", "other yes w",
  flags="--mount {other}:/data/x", host=holds("other/m1", "w\n"))
R("mount-ro", "--mount :ro is read and not written", "r /data/x/text; w /data/x/text; w /data/x/n1", "other no no", flags="--mount {other}:/data/x:ro")
R("mount-workspace", "the workspace appears at /workspace (in an image, there alone)", "r /workspace/plain; w /workspace/o1; cd $W 2>/dev/null; r o1", "plain yes w", flags="--mount {work}:/workspace")
R("mount-hides-nothing-made", "a place to mount at is not made on the host", "t ls /data-of-nobody; true", "yes", flags="--mount {other}:/data-of-nobody",
  host=lambda s: "made on the host" if os.path.exists("/data-of-nobody") else "")
R("hide-file", "--hide of a file in the workspace: not read, not linked, not renamed into sight",
  "r key; t ln key p1; r p1; t mv key p2; r p2; r plain", match=r"(no |KEY-IS-NOT-HERE)*plain$", flags="--hide {work}/key")
R("hide-directory", "--hide of a directory: not listed, nothing below it read", "t ls vault; r vault/deep/key; r ./vault/../vault/deep/key", "no no no",
  flags="--hide {work}/vault")
R("hide-parent", "a directory with something hidden in it cannot be renamed to get at it", "t mv vault q1; r q1/deep/key; r vault/deep/key; true",
  match="^(no ?)+$", flags="--hide {work}/vault/deep")
R("hide-pattern", "--hide '**/.secret' holds at any depth, also for files made, linked and renamed later",
  "r sub/.secret; mkdir -p r1/a; w r1/a/.secret; r r1/a/.secret; t ln sub/.secret r2; r r2; t mv sub/.secret r3; r r3",
  match=r"^(?!.*SECRET)no .*no$", flags="--hide **/.secret", before=puts(("work/sub/.secret", "SECRET\n")))
R("hide-and-ro-inside", "--ro of a directory inside a hidden one is read", "t ls $O; r $O/pub/p; r $O/text", match=r"(no|yes) p no$", flags="--hide {other} --ro {other}/pub",
  before=puts(("other/pub/p", "p\n")))
R("credentials-hidden", "credentials of the home directory are hidden without being told", "r $H/.ssh/id; t ls $H/.ssh; r $H/.netrc", match="^(?!.*SECRET)no .*no$")
R("protect", "--protect of a file: not changed, replaced, removed or linked away", "w plain; echo x >s1; t mv s1 plain; t rm plain; r plain; w s2",
  "no no no plain yes", flags="--protect {work}/plain", host=holds("work/plain", "plain\n"))
R("protect-missing", "--protect of a name that does not exist: it cannot be created", "w none; t mkdir none; echo x >t1; t mv t1 none; t ln -s plain none",
  "no no no no", flags="--protect {work}/none", host=absent("work/none"))
R("protect-deep", "the directory above something protected is not renamed away", "t mv sub u1; w u1/in; w sub/in; true", match="^(no ?)+$", flags="--protect {work}/sub/in",
  host=holds("work/sub/in", "in\n"))
R("tmp", "/tmp and /var/tmp are written, and are the box's own", "for d in /tmp /var/tmp; do w $d/conf-{mark}; t ls $d/conf-host-{mark}; done", "yes no yes no",
  before=lambda s: s.host_file("/tmp/conf-host-" + s.mark), must="private-tmp",
  host=lambda s: "made on the host" if os.path.exists("/tmp/conf-" + s.mark) or os.path.exists("/var/tmp/conf-" + s.mark) else "")
R("shm", "/dev/shm is written, and is the box's own", "w /dev/shm/conf-{mark}; t ls /dev/shm/conf-host-{mark}", "yes no",
  before=lambda s: s.host_file("/dev/shm/conf-host-" + s.mark), host=lambda s: "made on the host" if os.path.exists("/dev/shm/conf-" + s.mark) else "")
R("devices", "/dev/null, zero, full, random and urandom work", "w /dev/null; for d in zero random urandom; do head -c 4 /dev/$d | wc -c; done; "
  "(echo x >/dev/full) 2>/dev/null || echo full; : </dev/null && echo null", "yes 4 4 4 full null")
R("no-disks", "no disk, kernel log or kernel memory is in /dev", "for d in /dev/*; do [ -b $d ] && echo $d; done; t head -c 1 /dev/kmsg; t head -c 1 /dev/mem; t head -c 1 /dev/kcore", "no no no")
R("kernel-settings", "/proc/sys, sysrq-trigger and /sys are not written", "w /proc/sys/kernel/core_pattern; w /proc/sys/kernel/hostname; w /proc/sysrq-trigger; "
  "w /sys/kernel/mm/ksm/run; w /proc/1/oom_score_adj", "no no no no no")
R("kernel-secrets", "/proc/kcore shows nothing, /proc/kallsyms no address", "head -c 1 /proc/kcore 2>/dev/null | wc -c; head -c 1 /dev/mem 2>/dev/null | wc -c; grep -v '^0* ' /proc/kallsyms 2>/dev/null | wc -l", "0 0 0")
R("cache", "~/.cache is written, and not on the host", "mkdir -p $H/.cache/conf && w $H/.cache/conf/v1; r $H/.cache/conf/v1", "yes w", host=absent("home/.cache/conf"))
R("pinfold-itself", "pinfold's own configuration is not written, whatever the policy says", "w $H/.config/pinfold/policy.yaml; mkdir -p $H/.config/pinfold; w $H/.config/pinfold/policy.yaml; true",
  flags="--rw {home}/.config", before=lambda s: s.directory("home/.config"), host=absent("home/.config/pinfold/policy.yaml"))


def while_running(s, flags, before_go, script):
    """The script waits for the file `go`, which comes when the host did its part."""
    child = s.start("echo up; i=0; until [ -e go ] || [ $i -gt 1800 ]; do sleep 0.05; i=$((i+1)); done; " + script, *s.words(flags))
    try:
        s.line(child, b"up\n")
        before_go()
        s.put("work/go", "")
        out, err = child.communicate(timeout=90)
        return pf.Done(child.returncode, out, err)
    finally:
        s.end(child)


@acts("hide-made-later", "a hidden name that the host makes during the run stays hidden")
def _(s):
    done = while_running(s, "--hide {work}/later", lambda: s.put("work/later", "SECRET\n"), "r later")
    check(lines(done) == "no", "it was read", done)


@acts("hide-replaced", "a hidden file that the host replaces during the run stays hidden")
def _(s):
    def replace():
        s.put("work/key.new", "SECRET\n")
        os.rename(s.place("work/key.new"), s.place("work/key"))
    done = while_running(s, "--hide {work}/key", replace, "r key; r plain")
    check(lines(done) == "no plain", "it was read", done)


@acts("host-changes-seen", "what the host changes in the workspace during the run is seen inside")
def _(s):
    def change():
        s.put("work/from-host", "new\n")
        s.put("work/plain.new", "changed\n")
        os.rename(s.place("work/plain.new"), s.place("work/plain"))
    done = while_running(s, "", change, "r from-host; r plain")
    check(lines(done) == "new changed", "the host's changes are not seen", done)


@acts("cache-kept", "what was written into a cache is there in the next run of the project")
def _(s):
    s.run("mkdir -p $H/.cache/kept; w $H/.cache/kept/f")
    done = s.run("r $H/.cache/kept/f")
    check(lines(done) == "w", "it is gone", done)
    check(not os.path.exists(s.place("home/.cache/kept")), "it is on the host")


@acts("cache-flag", "--cache: writes to a directory go to a private layer")
def _(s):
    flags = s.words("--cache {other}")
    done = s.run("w $O/mine; r $O/mine", *flags)
    check(lines(done) == "yes w", "not writable", done)
    check(not os.path.exists(s.place("other/mine")), "it was written through")


@acts("workspace-elsewhere", "--workspace: another directory than the current one")
def _(s):
    done = s.run("w $O/x; w $W/y", *s.words("--workspace {other}"))
    check(lines(done) == "yes no" and os.path.exists(s.place("other/x")) and not os.path.exists(s.place("work/y")), "not that one", done)


# ==== guarded names
SECTION[0] = "Guarded names"
HOOK = "work/.git/hooks/pre-commit"
R("hook", "a git hook cannot be created: by writing, renaming, linking, copying",
  "w .git/hooks/pre-commit; echo x >ga; t mv ga .git/hooks/pre-commit; t ln plain .git/hooks/pre-commit; t cp probe .git/hooks/pre-commit; t ln -s plain .git/hooks/pre-commit; t mkdir .git/hooks/pre-commit",
  "no no no no no no", host=absent(HOOK))
R("hook-sample", "a hook's sample is neither changed nor made a hook", "w .git/hooks/pre-push.sample; t mv .git/hooks/pre-push.sample .git/hooks/pre-push", "no no",
  host=both(holds("work/.git/hooks/pre-push.sample", "sample\n"), absent("work/.git/hooks/pre-push")))
R("git-directory", ".git is not moved away, replaced or exchanged", "mkdir -p gb/hooks; echo x >gb/hooks/pre-commit; t mv gb/hooks .git/; mv .git gc; t mv gb .git; r .git/hooks/pre-commit", match="no no$",
  flags="--guard strict", host=absent(HOOK))
R("git-config-command", ".git/config does not take a key that makes git execute something",
  "cp .git/config gd; printf '[core]\\n\\thooksPath = /tmp/evil\\n' >>gd; t mv gd .git/config; printf '[core]\\n\\tfsmonitor = /tmp/evil\\n' >>.git/config; grep -c evil .git/config", match="0$",
  status=1, host=lambda s: "evil" if "evil" in s.get("work/.git/config") else "")
R("git-config-plain", ".git/config takes other keys", "cp .git/config ge; printf '[user]\\n\\tname = Somebody\\n' >>ge; t mv ge .git/config; grep -c Somebody .git/config", "yes 1",
  host=lambda s: "" if "Somebody" in s.get("work/.git/config") else "it is not in the file")
R("envrc", ".envrc, .mcp.json and shells' files cannot be created", "for f in .envrc .mcp.json .bashrc .profile .zshrc; do w $f; done", "no no no no no",
  host=absent("work/.envrc", "work/.mcp.json", "work/.bashrc", "work/.profile", "work/.zshrc"))
R("editor-directories", ".vscode, .idea, .claude, .husky cannot be created", "for f in .vscode .idea .claude .husky; do t mkdir $f; done; mkdir gf; t mv gf .vscode", "no no no no no",
  host=absent("work/.vscode", "work/.idea", "work/.claude", "work/.husky"))
R("existing-guarded", "a guarded file that exists is read, not changed, not removed", "r .gemini/s; w .gemini/s; t rm .gemini/s; t mv .gemini gg; w .gemini/t", "s no no no no",
  before=puts(("work/.gemini/s", "s\n")), host=holds("work/.gemini/s", "s\n"))
R("guarded-at-depth", "guarded names at any depth: hooks of a repository below, and of one that was made inside", "w nested/.git/hooks/post-checkout; mkdir -p gh/.git/hooks; w gh/.git/hooks/pre-commit; w gh/fine", "no no yes",
  before=puts(("work/nested/.git/HEAD", "ref: refs/heads/main\n"), ("work/nested/.git/hooks/x.sample", "x\n"), ("work/nested/.git/config", "[core]\n"),
              ("work/nested/.git/objects/x", "x"), ("work/nested/.git/refs/x", "x")),
  host=absent("work/nested/.git/hooks/post-checkout", "work/gh/.git/hooks/pre-commit"))
R("guarded-by-link", "a guarded name is not reached by a symbolic link or ..", "ln -s .git/hooks gi; w gi/pre-commit; w sub/../.git/hooks/pre-commit; w /proc/self/cwd/.envrc; ln -s .envrc gj; w gj",
  "no no no no", host=absent(HOOK, "work/.envrc"))
R("guard-existing", "--guard existing: what exists is kept, new names may come", "w .gemini/s; w .envrc", "no yes", flags="--guard existing", before=puts(("work/.gemini/s", "s\n")))
R("guard-off", "--guard off: no name is guarded", "w .envrc; w .git/hooks/pre-commit; t mkdir .vscode", "yes yes yes", flags="--guard off", host=holds(HOOK, "w\n"))
EMPTY_INDEX = r"DIRC\000\000\000\002\000\000\000\000\071\330\220\023\236\345\065\154\176\365\162\041\154\353\315\047\252\101\371\337"  # of git, with its sum: what is none may not take its place
R("git-config-flag", "the guard lets ordinary work in .git be done", f"printf '{EMPTY_INDEX}' >.git/index.lock; mv .git/index.lock .git/index; mkdir -p .git/objects/ab; w .git/objects/ab/cd; w .git/HEAD; w .git/COMMIT_EDITMSG", "yes yes yes")


@acts("guarded-made-later", "a guarded file that the host makes during the run is not changed")
def _(s):
    done = while_running(s, "", lambda: s.put("work/.mcp.json", "host\n"), "r .mcp.json; w .mcp.json; t rm .mcp.json")
    check(lines(done) == "host no no" and s.get("work/.mcp.json") == "host\n", "it was changed", done)


@acts("guard-tells", "a refused name stands in the result's denials, with rule and origin")
def _(s):
    result, done = s.result("w .git/hooks/pre-commit")
    told = [d for d in result["denials"] if d["target"].endswith(".git/hooks/pre-commit")]
    check(told and told[0]["how"] == "guard" and told[0]["rule"] and told[0]["origin"], "not told", done)


# ==== network
SECTION[0] = "Network"
R("none", "without a word: no server of this machine is reached", "./probe connect 127.0.0.1 {port}; ./probe connect 203.0.114.7 7000; ./probe udp 127.0.0.1 {port}", "refused refused refused")
R("none-interfaces", "without a word: loopback is the only interface", "grep -c : /proc/net/dev", "1")
# A server that has begun to listen at some time.
OWN = "./probe listen {0} own & i=0; until ./probe connect 127.0.0.1 {0} | grep 'got own' || [ $i -gt 600 ]; do i=$((i+1)); sleep 0.05; done; kill $! 2>/dev/null; wait"
R("own-loopback", "a server in the box is reached at the box's own 127.0.0.1", OWN.format(7070), match="got own$")
R("raw-sockets", "raw, packet and other unusual sockets are not made", "./probe socket 2 3 1; ./probe socket 17 3 0; ./probe socket 40 1 0; ./probe socket 38 5 0; ./probe socket 16 3 12", "refused refused refused refused refused")
R("unix-host", "Unix sockets of the host in the workspace or elsewhere are not connected to", "./probe unix s.sock; cd $O 2>/dev/null; $W/probe unix s.sock", "refused refused",
  before=lambda s: (s.unix("work/s.sock"), s.unix("other/s.sock")), host=lambda s: s.called())
R("unix-own", "Unix sockets made in the box work, by path and abstract", "cd /tmp; $W/probe own-unix ./o.sock; $W/probe own-unix @own", "connected connected")
R("unix-abstract", "abstract sockets of the host are not connected to", "./probe unix @conf-{mark}", "refused", before=lambda s: s.unix("@conf-" + s.mark))
R("unix-allowed", "--unix-socket: this one is connected to, others are not", "./probe unix s.sock; ./probe unix t.sock", "connected refused", flags="--unix-socket {work}/s.sock",
  before=lambda s: (s.unix("work/s.sock"), s.unix("work/t.sock")))
R("host", "--net host: a server of this machine is reached", "./probe connect 127.0.0.1 {port}", "got hello", flags="--net host")
R("host-unix", "--net host: Unix sockets are still judged", "./probe unix s.sock", "refused", flags="--net host", before=lambda s: s.unix("work/s.sock"))
ALLOW = "--allow ok.test:7000"
R("allow-name", "--allow NAME: a program that knows no proxy reaches it", "./probe connect ok.test 7000", "got hello", flags=ALLOW, network=True)
R("allow-other-name", "--allow NAME: another name is not reached, though its address is the same", "./probe connect other.test 7000", "refused", flags=ALLOW, network=True)
R("allow-other-port", "--allow NAME:PORT: another port is not reached", "./probe connect ok.test 7001", "refused", flags=ALLOW, network=True)
R("allow-other-address", "--allow NAME: the name's address itself is not reached without asking for the name", "./probe connect 203.0.114.7 7000; ./probe connect 203.0.114.8 7000", "refused refused", flags=ALLOW, network=True)
R("allow-loopback", "--allow NAME: this machine's own services are not reached", "./probe connect 127.0.0.1 {port}; ./probe connect local.test {port}", "refused refused",
  flags=ALLOW + " --allow local.test", network=True)
R("allow-proxy", "--allow NAME: a proxy stands in the environment and judges by the same rules", "./probe proxy http_proxy ok.test 7000; ./probe proxy http_proxy other.test 7000; ./probe proxy https_proxy 127.0.0.1 {port}",
  "got hello refused refused", flags=ALLOW, network=True)
R("allow-dns", "--allow NAME: the name resolves inside, others do not", "./probe resolve ok.test; ./probe resolve nobody.invalid", match="^yes no$", flags=ALLOW, network=True)
R("allow-udp", "--allow NAME: UDP goes nowhere", "./probe udp 203.0.114.7 7000; ./probe udp ok.test 7000", "refused refused", flags=ALLOW, network=True)
R("allow-own-loopback", "--allow NAME: the box's own loopback is still its own", OWN.format(7071), match="got own$", flags=ALLOW, network=True)
R("allow-unix", "--allow NAME: Unix sockets are still judged", "./probe unix s.sock", "refused", flags=ALLOW, before=lambda s: s.unix("work/s.sock"), network=True)
R("allow-wildcard", "--allow '*.DOMAIN': names below it are reached, others are not; --deny wins",
  "./probe connect a.wild.test 7000; ./probe connect bad.wild.test 7000; ./probe connect ok.test 7000", "got hello refused refused",
  flags="--allow *.wild.test --deny bad.wild.test", network=True)
R("allow-address", "--allow ADDRESS and CIDR: addresses are reached, others are not", "./probe connect 203.0.114.7 7000; ./probe connect 203.0.114.8 7000", "got hello refused", flags="--allow 203.0.114.7/32:7000", network=True)
R("deny-port", "--deny-port holds where the name is allowed", "./probe connect ok.test 7001; ./probe connect ok.test 7000", "got hello refused", flags="--allow ok.test --deny-port 7000", network=True)
R("reach", "--reach: this one service of this machine, no other", "./probe connect 127.0.0.1 {port}; ./probe connect 127.0.0.1 {port2}", "got hello refused", flags="--reach 127.0.0.1:{port}")


@acts("allow-tells", "a refused host stands in the result's denials", network=True)
def _(s):
    result, done = s.result("./probe connect other.test 7000", *s.words(ALLOW))
    told = [d for d in result["denials"] if "other.test" in d["target"]]
    check(told and told[0]["kind"] == "network", "not told", done)


@acts("publish", "--publish: a port of this machine leads to the box's")
def _(s):
    port = pf.held_port()
    child = s.start("./probe listen 8000 inside", *s.words(f"--publish {port}:8000"))
    try:
        s.line(child, b"up\n")
        with socket.create_connection(("127.0.0.1", port), 10) as client:
            check(client.recv(64) == b"inside", "nothing came through")
        check(child.wait(90) == 0, "its status")
    finally:
        s.end(child)


# ==== limits
SECTION[0] = "Limits"


def limited(s, script, flags, limit, status=137):
    result, done = s.result(script, *s.words(flags), limit=180)
    check(done.status == status, f"status {done.status}, not {status}", done)
    check(result["ended"] == ("timeout" if limit == "timeout" else "limit") and result["limit"] == limit, f"ended {result['ended']}, limit {result['limit']}", done)
    return result


@acts("memory", "--memory: status 137, the result names the limit", must="limit-memory")
def _(s):
    limited(s, "./probe memory 400 90", "--memory 100M", "memory")


@acts("memory-tree", "--memory counts all processes together", must="limit-memory")
def _(s):
    limited(s, "for i in 1 2 3 4 5 6; do ./probe memory 40 90 & done; wait", "--memory 120M", "memory")


R("memory-enough", "--memory: what keeps below it runs", "./probe memory 30 0", "had", flags="--memory 200M", must="limit-memory")


@acts("pids", "--pids: no more processes than that", must="limit-processes")
def _(s):
    done = s.run("./probe forks 100 20", *s.words("--pids 20"), limit=120)
    made = done.out.split()
    check(done.status == 137 or (made and int(made[0]) < 20), "more were made", done)


@acts("timeout", "--timeout: status 124")
def _(s):
    limited(s, "sleep 170", "--timeout 500ms --grace 300ms", "timeout", 124)


@acts("timeout-stubborn", "--timeout holds against a command that ignores SIGTERM")
def _(s):
    limited(s, "trap '' TERM; while :; do sleep 1; done", "--timeout 500ms --grace 300ms", "timeout", 124)


@acts("grace", "--timeout asks with SIGTERM first; what the command then says is heard")
def _(s):
    result = limited(s, "trap 'echo bye; exit 0' TERM; sleep 60 & wait", "--timeout 3s --grace 30s", "timeout", 124)
    check("bye" in result["stdout"], "SIGTERM did not come", result)


@acts("output", "--output: status 137, no more bytes than that")
def _(s):
    done = s.run("while :; do echo 0123456789012345678901234567890123456789; done", *s.words("--output 64K"), limit=120)
    check(done.status == 137 and len(done.out) <= 65536, f"status {done.status}, {len(done.out)} bytes", pf.Done(done.status, b"", done.err))


def disk_ended(done):
    """By its limit: the workspace's file system is looked at now and then, and others who write there count, too."""
    return done.status == 137 and b"disk: the box wrote more than" in done.err


@acts("disk-tmp", "--disk: private storage is not filled beyond it", must="limit-disk")
def _(s):
    done = s.run("head -c 64000000 /dev/zero >/tmp/f 2>/dev/null && echo all; [ $(wc -c </tmp/f) -le 33554432 ] && echo held", *s.words("--disk 32M"), limit=180)
    check(done.out == b"held\n" or (disk_ended(done) and not done.out), f"status {done.status}", done)


@acts("disk-workspace", "--disk: the workspace does not grow far beyond it", must="limit-disk")
def _(s):
    done = s.run("head -c 256000000 /dev/zero >big", *s.words("--disk 16M"), limit=180)
    big = s.place("work/big")
    size = os.path.getsize(big) if os.path.exists(big) else 0
    check(done.status != 0 and size <= 16 << 20 and (size or disk_ended(done)), f"status {done.status}, {size} bytes", done)
    done = s.run("mkdir many; i=0; while [ $i -lt 400 ]; do head -c 8000000 /dev/zero >many/$i; i=$((i+1)); sleep 0.1; done; echo all", *s.words("--disk 16M"), limit=180)
    check(disk_ended(done) and not done.out, f"status {done.status}", done)


@acts("cpus", "--cpus: no more processor time than that", must="limit-cpu")
def _(s):
    result, done = s.result("./probe burn 1500", *s.words("--cpus 0.3"))
    usage = result["usage"]
    check(usage["cpu_ms"] <= 0.6 * usage["wall_ms"], f"{usage}", done)


R("open-files", "--open-files: as said", "ulimit -n", "64", flags="--open-files 64")
R("core-files", "no core file is written", "ulimit -c; (kill -SEGV $(exec sh -c 'echo $PPID')); ls core* 2>/dev/null", match="^0")


@acts("usage", "the result counts wall time, processor time and the peak of memory")
def _(s):
    result, done = s.result("./probe memory 60 0; ./probe spend 300")
    usage = result["usage"]
    check(usage["wall_ms"] >= 250 and usage["cpu_ms"] >= 150 and usage["peak_bytes"] >= 50 << 20, f"{usage}", done)


# ==== ends
SECTION[0] = "Exit status"


def ends(name, text, script, status, **more):
    @acts(name, text)
    def _(s):
        done = s.run(script, plain=True)
        check(done.status == status, f"status {done.status}, not {status}", done)


ends("zero", "a command that succeeds: 0", "exit 0", 0)
ends("own", "a command's own status", "exit 7", 7)
ends("own-255", "a command's own status 255", "exit 255", 255)
ends("signal-term", "128+n: ended by SIGTERM", "kill -TERM $$", 143)
ends("signal-kill", "128+n: ended by SIGKILL", "kill -KILL $$", 137)
ends("signal-segv", "128+n: ended by SIGSEGV", "kill -SEGV $$", 139)


@acts("not-found", "127: a command that is not there")
def _(s):
    done = s.command("/no/such")
    check(done.status == 127 and b"/no/such" in done.err, f"status {done.status}", done)


@acts("not-executable", "126: a file that is no program")
def _(s):
    done = s.command("/etc/passwd")
    check(done.status == 126, f"status {done.status}", done)


@acts("by-path", "a command without a slash is looked for in the box's PATH; 127 where it is not")
def _(s):
    check(s.command("true").status == 0, "true")
    done = s.command("no-such-command-of-nobody")
    check(done.status == 127, f"status {done.status}", done)


@acts("policy-wrong", "125: a policy that is wrong, and the command has not run")
def _(s):
    done = s.run("w ran", "--memory", "lots", raw=True)
    check(done.status == 125 and not os.path.exists(s.place("work/ran")), f"status {done.status}", done)


@acts("result-of-signal", "the result tells a signal from a status")
def _(s):
    result, done = s.result("kill -TERM $$", plain=True)
    check((result["ended"], result["signal"], result["exit_code"], result["success"]) == ("signal", 15, None, False) or result["signal"] == "SIGTERM", "not told", done)


# ==== streams
SECTION[0] = "Streams"


@acts("pipes", "stdin, stdout and stderr through pipes, kept apart")
def _(s):
    done = s.run("cat; echo err >&2", stdin=b"in\n", plain=True)
    check((done.out, done.err) == (b"in\n", b"err\n"), "not as sent", done)


@acts("stdin-file", "a file as stdin")
def _(s):
    s.put("work/input", "one\ntwo\n")
    with open(s.place("work/input"), "rb") as file:
        done = s.run("cat", stdin=file, plain=True)
    check(done.out == b"one\ntwo\n", "not the file", done)


@acts("stdin-file-outside", "a file that the box cannot see as stdin")
def _(s):
    s.put("private/input", "mine\n")
    with open(s.place("private/input"), "rb") as file:
        done = s.run("cat", stdin=file, plain=True)
    check(done.out == b"mine\n", "not the file", done)


@acts("stdin-null", "/dev/null as stdin ends at once")
def _(s):
    done = s.run("cat; echo end", stdin=subprocess.DEVNULL, plain=True)
    check(done.out == b"end\n", "no end", done)


@acts("stdin-large", "3 MB through stdin and back, byte for byte")
def _(s):
    data = os.urandom(3000000)
    done = s.run("cat", stdin=data, plain=True)
    check(done.out == data, f"{len(done.out)} bytes came back", pf.Done(done.status, b"", done.err))


@acts("stdin-unread", "a command that does not read its stdin ends all the same")
def _(s):
    done = s.run("echo done", stdin=b"x" * 1000000, plain=True)
    check(done.out == b"done\n" and done.status == 0, "it did not", done)


@acts("stdout-file", "a file as stdout, appended to and in order with stderr")
def _(s):
    with open(s.place("out"), "wb") as file:
        s.run("echo 1; echo 2 >&2; echo 3", stdout=file, stderr=file, plain=True)
    check(s.get("out") == "1\n2\n3\n", "not in the file", s.get("out"))


@acts("stdout-large", "3 MB of output to a reader that takes its time")
def _(s):
    child = s.start("head -c 3000000 /dev/zero", plain=True)
    try:
        time.sleep(0.3)
        out = b""
        while part := child.stdout.read(100000):
            out += part
        check(len(out) == 3000000 and child.wait(90) == 0, f"{len(out)} bytes")
    finally:
        s.end(child)


@acts("stdout-closed", "a reader that goes away ends a command that writes, as in a pipe")
def _(s):
    child = s.start("while :; do echo y; done", plain=True)
    try:
        child.stdout.read(10)
        child.stdout.close()
        try:
            status = child.wait(90)
        except subprocess.TimeoutExpired:
            raise Wrong("it writes on") from None
        check(status != 0, f"status {status}")
    finally:
        s.end(child)


@acts("stdin-directory", "a directory as stdin is refused: 125")
def _(s):
    fd = os.open(s.place("other"), os.O_RDONLY)
    done = s.run("true", stdin=fd, raw=True)
    os.close(fd)
    check(done.status == 125 and b"directory" in done.err, f"status {done.status}", done)


@acts("descriptors", "no other descriptor of the caller enters")
def _(s):
    fd = os.open(s.place("other/text"), os.O_RDONLY)
    done = s.run("./probe fds", pass_fds=(fd,), plain=True)
    os.close(fd)
    check(lines(done) in ("end", "10 end"), "there are some", done)


@acts("json-streams", "--json captures both streams")
def _(s):
    result, done = s.result("echo out; echo err >&2")
    check((result["stdout"], result["stderr"]) == ("out\n", "err\n") and not done.err.strip(), "not captured", done)


@acts("json-bytes", "--json keeps bytes that are no text")
def _(s):
    result, done = s.result("printf '\\377\\000x'")
    check(result["encoding"] == "base64" and result["stdout"] == "/wB4", "not kept", done)


def terminal(s, script, talk):
    """Runs the script at a terminal; talk(read, write, master) until the end."""
    pid, master = leader.fork()
    if pid == 0:
        try:
            import fcntl
            import struct
            import termios
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 101, 0, 0))
            s.become()
            words = s.argv(["-q"], ["sh", "-c", s.header() + script])
            os.execvpe(words[0], words, s.env())
        except OSError as e:
            print(e, flush=True)
        finally:
            os._exit(97)
    said, end, told = b"", time.monotonic() + 120, set()
    while time.monotonic() < end:
        if select.select([master], [], [], 0.5)[0]:
            try:
                part = os.read(master, 4096)
            except OSError:
                break
            if not part:
                break
            said += part
        for word, act in talk.items():
            if word in said and word not in told:
                told.add(word)
                act(master)
    else:
        os.kill(pid, signal.SIGKILL)
    status = leader.status(pid)
    os.close(master)
    done = pf.Done(status, said, b"")
    s.judge(done)
    return done


@acts("tty", "a terminal of its own: /dev/tty, its size, echo, the status")
def _(s):
    done = terminal(s, "tty; echo through >/dev/tty; stty size; read a; echo got $a; exit 5", {b"33 101": lambda m: os.write(m, b"word\n")})
    text = done.out.decode(errors="replace")
    check("/dev/pts/" in text and "through" in text and "33 101" in text and "got word" in text and done.status == 5, f"status {done.status}", done)


@acts("tty-resize", "a terminal that changes its size: SIGWINCH and the new size")
def _(s):
    import fcntl
    import struct
    import termios
    done = terminal(s, "trap 'stty size; exit 6' WINCH; echo ready; i=0; while [ $i -lt 900 ]; do sleep 0.1; i=$((i+1)); done",
                    {b"ready": lambda m: fcntl.ioctl(m, termios.TIOCSWINSZ, struct.pack("HHHH", 44, 55, 0, 0))})
    check(b"44 55" in done.out and done.status == 6, f"status {done.status}", done)


@acts("tty-interrupt", "Ctrl-C at the terminal is SIGINT inside")
def _(s):
    done = terminal(s, "trap 'echo int; exit 9' INT; echo ready; i=0; while [ $i -lt 900 ]; do sleep 0.1; i=$((i+1)); done", {b"ready": lambda m: os.write(m, b"\x03")})
    check(b"int" in done.out and done.status == 9, f"status {done.status}", done)


# ==== user
SECTION[0] = "User and powers"
R("ids", "user and group are the caller's", "id -u; id -g", lambda s: f"{s.user.uid} {s.user.gid}")
R("owner", "files made inside belong to the caller outside", "echo x >ua; mkdir ub; ln -s x uc; ls -ln ua | tr -s ' ' | cut -d' ' -f3,4", lambda s: f"{s.user.uid} {s.user.gid}",
  host=both(owned("work/ua"), owned("work/ub"), owned("work/uc")))
R("user-root", "--user root: uid 0 without capabilities; what it makes belongs to the caller", "id -u; echo x >ud; grep CapEff /proc/self/status", "0 CapEff: 0000000000000000",
  flags="--user root", host=owned("work/ud"))
R("no-capabilities", "no capability, and none to be had", "grep -c '^Cap.*0000000000000000$' /proc/self/status; grep NoNewPrivs /proc/self/status", "5 NoNewPrivs: 1")
R("filter", "a system call filter is on", "grep '^Seccomp:' /proc/self/status", "Seccomp: 2")
R("no-mounts", "nothing is mounted or unmounted", "t mount -t tmpfs x /tmp; t umount /tmp; t umount -l /proc", "no no no")
R("no-namespaces", "no user namespace is made", "t unshare -U true; t unshare -Ur true; t unshare -m true", "no no no")
R("other-files", "what only root may read of this machine is not read, by root neither", "for f in /etc/shadow /etc/gshadow; do grep -v '^root:!:19000' $f 2>/dev/null; done | wc -l", "0")
R("host-name", "the host's name is not seen; --hostname names the box", "cat /proc/sys/kernel/hostname; hostname", "boxed boxed", flags="--hostname boxed")

# ==== environment
SECTION[0] = "Environment"
R("reduced", "variables that are not on the list do not enter", "env | grep -c -e CONF_SECRET -e AWS_SECRET -e LD_PRELOAD -e XDG_RUNTIME -e hunter", "0", status=1)
R("kept", "HOME, PATH, LANG, USER, TERM and PINFOLD are there", 'echo "${HOME:+1}${PATH:+2}${LANG:+3}${USER:+4}${TERM:+5} $PINFOLD"; [ "$HOME" = "$H" ] && echo home; [ "$USER" = {user} ] && echo user', "12345 1 home user")
R("home-exists", "HOME is a directory", "[ -d $HOME ] && echo yes", "yes")
R("set", "--env NAME=VALUE sets it, whatever is in the value", 'printf "%s|%s" "$MORE" "$EMPTY"', "a b='c' \"d\" $e \\ ü|", flags="--env 'MORE=a b='\"'\"'c'\"'\"' \"d\" $e \\ ü' --env EMPTY=")
R("passed", "--env NAME passes the caller's; --unset takes one away", 'echo "$CONF_PLAIN ${LANG-unset}"', "of-the-caller unset", flags="--env CONF_PLAIN --unset LANG")
R("place", "the command starts in the caller's directory, with PWD saying so", 'pwd; echo "$PWD"', lambda s: f"{s.place('work')} {s.place('work')}")


@acts("subdirectory", "started below the workspace, it starts there")
def _(s):
    done = s.run("pwd; w $W/from-below", *s.words("--workspace {work}"), cwd=s.place("work/sub"))
    check(done.out.split() == [s.place("work/sub").encode(), b"yes"], "not there", done)


@acts("umask", "the umask is the caller's")
def _(s):
    done = s.run("umask; : >made", umask=0o027)
    check(done.out.strip() == b"0027" and os.stat(s.place("work/made")).st_mode & 0o777 == 0o640, "another one", done)


@acts("no-secret-listed", "no variable's value stands in any command line, or in an environment that others read")
def _(s):
    child = s.start("echo up; sleep 20", "--env", "TOKEN=hunter2-" + s.mark)
    word = ("hunter2-" + s.mark).encode()
    try:
        s.line(child, b"up\n")
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    words = file.read()
            except OSError:
                continue
            check(word not in words or int(pid) == child.pid or words.startswith(pf.PINFOLD.encode()), "in a command line", words)
    finally:
        s.end(child)


# ==== signals and processes
SECTION[0] = "Signals and processes"


def signalled(s, number, script, status, out=b""):
    child = s.start(script, plain=True)
    try:
        s.line(child, b"up\n")
        child.send_signal(number)
        more, err = child.communicate(timeout=90)
        check(child.returncode in status and out in more, f"status {child.returncode}", pf.Done(child.returncode, more, err))
    except subprocess.TimeoutExpired:
        raise Wrong("it goes on") from None
    finally:
        s.end(child)


WAIT = "echo up; i=0; while [ $i -lt 900 ]; do sleep 0.1; i=$((i+1)); done"


@acts("term", "SIGTERM to pinfold is the command's")
def _(s):
    signalled(s, signal.SIGTERM, "trap 'echo term; exit 3' TERM; " + WAIT, (3,), b"term")


@acts("int", "SIGINT to pinfold is the command's")
def _(s):
    signalled(s, signal.SIGINT, "trap 'echo int; exit 4' INT; " + WAIT, (4,), b"int")


@acts("term-default", "a command that SIGTERM ends: 143")
def _(s):
    signalled(s, signal.SIGTERM, WAIT, (143, -15))


@acts("kill", "SIGKILL of pinfold leaves nothing: no process, no container, no file", must="no-survivors")
def _(s):
    mark = f"4{os.getpid() % 10000}{s.user.uid % 10}"
    child = s.start(f"echo up; (setsid sleep {mark} &) ; sleep {mark}")
    try:
        s.line(child, b"up\n")
    finally:
        child.kill()
        child.wait()
    end = time.monotonic() + 60
    while (found := pf.run(["pgrep", "-fx", f"sleep {mark}"]).out) and time.monotonic() < end:
        time.sleep(0.05)
    check(not found, "a process of the box goes on")
    check(not (left := s.left(20)), "processes are left", "\n".join(left))
    check(not (kept := s.engine.kept(s)), "the engine kept something", kept)


@acts("end", "what a command leaves running ends with it")
def _(s):
    mark = f"5{os.getpid() % 10000}{s.user.uid % 10}"
    done = s.run(f"setsid sleep {mark} >/dev/null 2>&1 & (sleep {mark} >/dev/null 2>&1 &); exit 0")
    check(done.status == 0 and not pf.run(["pgrep", "-fx", f"sleep {mark}"]).out, "it goes on", done)
    check(not (kept := s.engine.kept(s)), "the engine kept something", kept)


@acts("kill-all", "a command that signals everything it sees ends only itself and its own")
def _(s):
    sleeper = subprocess.Popen(["sleep", "600"], **s.user.popen())
    try:
        done = s.run(f"kill -9 {sleeper.pid} 2>/dev/null; kill -9 -1; echo gone", plain=True)
        check(sleeper.poll() is None, "a process outside was ended", done)
    finally:
        sleeper.kill()
        sleeper.wait()


R("own-processes", "/proc shows the box's processes only", "ls -d /proc/[0-9]* | wc -l | { read n; [ $n -lt 14 ] && echo few; }", "few", must="fresh-proc")
R("no-host-processes", "processes outside are not seen or signalled", "t kill -0 {sleeper}; t ls /proc/{sleeper}/fd; r /proc/{sleeper}/environ", match="^(no ?)+$", must="pid-namespace",
  before=lambda s: s.sleeper())
R("ipc", "System V memory of the host is not seen", "tail -n +2 /proc/sysvipc/shm | wc -l", "0", must="private-ipc", before=lambda s: s.shared_memory())
R("pid-1", "pinfold's own processes inside give nothing away", "r /proc/1/environ; t readlink /proc/1/fd/0; t ls /proc/1/root/; t kill -0 1; head -c 1 /proc/1/mem 2>/dev/null | wc -c", match="^no no no (yes|no) 0$")

# ==== result
SECTION[0] = "Result"
KEYS = {"v", "success", "exit_code", "signal", "ended", "limit", "stdout", "stderr", "stdout_truncated", "stderr_truncated", "encoding", "usage", "denials",
        "monitor", "denials_not_seen", "enforced", "lost", "engine", "session", "policy_digest", "plan_digest"}


@acts("schema", "--json: the one schema, with the engine's name")
def _(s):
    result, done = s.result("exit 3")
    check(KEYS <= set(result), f"without {KEYS - set(result)}", done)
    check((result["v"], result["engine"], result["exit_code"], result["ended"], result["success"]) == (1, s.engine.name, 3, "exit", False), "not told", done)


@acts("enforced", "--json: what is enforced is named, with by what")
def _(s):
    result, done = s.result("true")
    missing = [n for n in ("file-confinement", "hides", "guard", "unix-sockets", "network", "pid-namespace", "seccomp", "nested-userns") if not result["enforced"].get(n)]
    check(not missing, f"not enforced: {missing}", done)


@acts("digest", "the digest of a policy is the same for the same policy, another for another")
def _(s):
    one, two, other = (s.result("true", *s.words(f))[0]["policy_digest"] for f in ("", "", "--hide {work}/key"))
    check(one == two != other, "not so", f"{one} {two} {other}")


@acts("result-file", "--result FILE leaves the streams direct")
def _(s):
    done = s.run("echo direct; exit 2", "--result", s.place("result.json"), plain=True)
    check(done.out == b"direct\n" and json.loads(s.get("result.json"))["exit_code"] == 2, "not so", done)


@acts("explain", "explain says the same engine and plan without starting anything")
def _(s):
    s.result("true")  # makes the directories of the caches, which the plan then finds
    result, _ = s.result("true")
    done = s.verb("explain", "--json")
    check(done.status == 0, "explain", done)
    plan = json.loads(done.out)
    check(plan["engine"] == s.engine.name and plan["policy_digest"] == result["policy_digest"], "another one", done)


@acts("show-run", "show-run prints the engine's command line, or says that there is none")
def _(s):
    done = s.verb("show-run")
    check(done.status == 3 if s.engine.name == "native" else (done.status == 0 and shlex.split(done.out.decode().replace("\\\n", " "))), f"status {done.status}", done)


@acts("must-have", "a guarantee that is not there and must be: refused before the command, named")
def _(s):
    result, _ = s.result("true")
    for name in [*result["lost"], "network-ports"]:
        flags = ["--net-catch", "routes", "--allow", "ok.test"] if name == "network-ports" else ["--must-have", name]
        done = s.run("w ran", *flags, raw=True)
        check(done.status == 125 and name.encode() in done.err and not os.path.exists(s.place("work/ran")), name, done)


@acts("quiet", "-q: nothing but the command's own output")
def _(s):
    done = s.run("echo only", "-q", plain=True)
    check((done.out, done.err) == (b"only\n", b""), "more is said", done)


names = [row.name for row in ROWS]
assert len(names) == len(set(names)), "two rows of one name"
