"""`pinfold volume import`: volumes as agent-sandbox makes them, and as no honest tool does. Docker's real client gets them from a stand-in for
the daemon, so that archives can be hostile or break off; real volumes of docker and podman are in tests/docker/volumes.sh."""
import base64
import hashlib
import http.server
import io
import json
import os
import re
import shutil
import signal
import socketserver
import subprocess
import tarfile
import threading
import urllib.parse

import pf
import verify



class Daemon(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """What docker's client and pinfold ask a daemon for: volumes, who uses them, and the files of a container that never runs."""
    daemon_threads = True

    def __init__(self, path):
        super().__init__(path, Answers)
        self.archives, self.running, self.containers, self.images = {}, [], {}, set()
        self.stop = None  # bytes after which it waits for `go`
        self.cut = None  # bytes after which it closes
        self.go = threading.Event()
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Answers(http.server.BaseHTTPRequestHandler):
    def log_message(self, *words):
        pass

    def address_string(self):
        return "client"

    def say(self, value, status=200, headers=()):
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(status)
        for name, text in headers:
            self.send_header(name, text)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD" and data:
            self.wfile.write(data)

    def answer(self):
        daemon, length = self.server, int(self.headers.get("Content-Length") or 0)
        if self.headers.get("Transfer-Encoding") == "chunked":
            while size := int(self.rfile.readline(), 16):
                self.rfile.read(size + 2)
            self.rfile.readline()
        body = self.rfile.read(length)
        url = urllib.parse.urlparse(self.path)
        what = re.sub(r"^/v[0-9.]+/", "/", url.path)
        if what == "/_ping":
            self.say(b"OK", headers=[("API-Version", "1.41"), ("OSType", "linux")])
        elif what == "/volumes":
            self.say({"Volumes": [{"Name": n} for n in daemon.archives]})
        elif what == "/containers/json":
            self.say(daemon.running)
        elif what == "/images/create":
            daemon.images.add("sha256:" + "1" * 64)
            self.say({"status": "sha256:" + "1" * 64})
        elif what == "/images/json":
            self.say([{"Id": one, "RepoTags": None} for one in daemon.images])
        elif what == "/containers/create":
            name, mount = f"{len(daemon.containers) + 1:064x}", json.loads(body)["HostConfig"]["Mounts"][0]
            assert mount["Type"] == "volume" and mount["ReadOnly"] and mount["VolumeOptions"]["NoCopy"], mount
            daemon.containers[name] = mount["Source"]
            self.say({"Id": name, "Warnings": []}, 201)
        elif what.endswith("/archive"):
            stat = base64.b64encode(json.dumps({"name": "volume", "size": 4096, "mode": 0o20000000755, "mtime": "2026-01-01T00:00:00Z", "linkTarget": ""}).encode()).decode()
            self.archive(daemon.archives[daemon.containers[what.split("/")[2]]], [("X-Docker-Container-Path-Stat", stat), ("Content-Type", "application/x-tar")])
        elif self.command == "DELETE":
            daemon.containers.pop(what.split("/")[2], None)
            daemon.images.discard(what.split("/")[2])
            self.say(b"" if "containers" in what else [], 204 if "containers" in what else 200)
        else:
            self.say({"message": "not here: " + what}, 404)

    def archive(self, data, headers):
        daemon = self.server
        self.send_response(200)
        for name, text in headers:
            self.send_header(name, text)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command == "HEAD":
            return
        try:
            if daemon.stop is not None:
                self.wfile.write(data[:daemon.stop])
                data = data[daemon.stop:]
                daemon.go.wait(180)
            self.wfile.write(data[:daemon.cut])
        except BrokenPipeError:
            pass
        self.close_connection = True

    do_GET = do_HEAD = do_POST = do_DELETE = answer


class Volumes:
    """Volumes of one checkout, and a client that hands them out."""

    def __init__(self, s, name, branches=("feature/one", "clean")):
        self.s, self.home = s, os.path.join(s.path, name + "-home")
        os.makedirs(self.home)
        self.daemon = Daemon(self.home + "/docker.sock")
        self.top = os.path.join(s.path, name)
        self.env = {**s.env, "HOME": self.home, "DOCKER_HOST": "unix://" + self.home + "/docker.sock",
                    "CONTAINERS_STORAGE_CONF": self.home + "/none.conf", "XDG_DATA_HOME": self.home + "/data", "XDG_STATE_HOME": self.home + "/state"}
        s.user.own(self.home)
        self.git(s.path, "config", "--global", "user.name", "a")
        self.git(s.path, "config", "--global", "user.email", "a@b.test")
        self.git(s.path, "init", "-q", "-b", "main", self.top)
        for file, text in (("a.txt", "one\n"), ("b.txt", "b\n")):
            s.write(self.top, file, text)
        self.git(self.top, "add", "-A")
        self.git(self.top, "commit", "-q", "-m", "first")
        for branch in branches:
            self.git(self.top, "branch", branch)
        self.hash = hashlib.md5(self.top.encode()).hexdigest()
        self.shelf = f"{self.home}/state/pinfold-shelves/agent-sbx-repo-{self.hash}"
        self.old = os.path.join(s.path, name + "-old")

    def put(self, name, text, mode=0o644):
        path = os.path.join(self.home, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, mode)
        self.s.user.own(path)

    def run(self, words, cwd):
        return pf.run(words, self.s.user, cwd, self.env)

    def do(self, *words):
        return self.run([pf.PINFOLD, *words], self.top)

    def git(self, cwd, *words):
        done = self.run(["git", *words], cwd)
        assert done.status == 0, done.said()
        return done.out.decode().strip()

    def sh(self, cwd, text):
        done = self.run(["sh", "-ec", text], cwd)
        assert done.status == 0, done.said()

    def provision(self, branches):
        """What the tool's specification has it do for each branch; then names are those of its containers."""
        repo = self.old + "/repo"
        if not os.path.exists(repo):
            self.git(self.s.path, "clone", "-q", "--no-checkout", "file://" + self.top, repo)
            self.git(repo, "remote", "add", "host", "file://" + self.top)
        for branch in branches:
            at = f"{self.old}/worktrees/{branch.replace('/', '__')}"
            known = self.run(["git", "show-ref", "-q", "--verify", "refs/remotes/origin/" + branch], repo).status == 0
            self.git(repo, "worktree", "add", "-q", "-B", branch, at, "origin/" + (branch if known else "main"))

    def archive(self, kind, entries=None):
        """Keeps an archive of the volume: what stands in the directory, or these entries."""
        name = {"branches": "agent-sbx-repo-" + self.hash, "history": f"agent-sandbox-{self.hash}-history", "claude": "agent-sandbox-claude-code-config", "codex": "agent-sandbox-codex-config"}[kind]
        file = io.BytesIO()
        with tarfile.open(fileobj=file, mode="w") as out:
            if kind == "branches" and os.path.exists(self.old):
                for at in os.listdir(self.old):
                    out.add(f"{self.old}/{at}", at, filter=self.named)
            for one, text in entries or ():
                info = one if isinstance(one, tarfile.TarInfo) else tarfile.TarInfo(one)
                data = text.encode() if text is not None else b""
                info.size = len(data)
                out.addfile(info, io.BytesIO(data))
        self.daemon.archives[name] = file.getvalue()
        return name

    def named(self, info):
        """git's names of places, as the containers had them."""
        info.uid = info.gid = 1000
        return info

    def moved(self):
        """The paths in git's own files become those of the containers."""
        for at, _, files in os.walk(self.old):
            for name in files:
                path = os.path.join(at, name)
                if name == "gitdir" or (name == ".git" and os.path.isfile(path)):
                    with open(path, encoding="utf-8") as file:
                        text = file.read().replace(self.old, "/repo-shelf")
                    with open(path, "w", encoding="utf-8") as file:
                        file.write(text)

    def inside(self, branch, text):
        done = self.do("start", "--branch", branch)
        assert done.status == 0, done.said()
        done = self.do("exec", self.s.session(self.top, branch), "--", "sh", "-c", text)
        assert self.do("stop", "--branch", branch).status == 0
        return done

    def branches(self):
        done = self.do("list", "--json")
        return {p["branch"] for p in json.loads(done.out)["projects"] if p["path"] == self.top and p["mode"] == "branch"}

    def end(self):
        self.do("rm", "--force")
        self.daemon.shutdown()
        self.daemon.server_close()
        for path in (self.top, self.old, self.home):
            shutil.rmtree(path, ignore_errors=True)


CHANGES = """
cd feature__one
echo two >a.txt; git commit -qam second; echo staged >s.txt; git add s.txt; echo changed >>s.txt; echo loose >u.txt; mkdir -p sub/deep; echo x >sub/deep/f; ln -s /etc/passwd link; printf '#!/bin/sh\n' >run.sh; chmod 755 run.sh; rm b.txt
cd ../fresh; echo n >new; git add new; git commit -qm 'of fresh'; git tag v-local
echo stashed >>a.txt; git stash -q -m 'my stash'; echo again >>a.txt; git stash -q -m 'another'
git branch lonely $(git commit-tree -p HEAD -m alone HEAD^{tree}); git branch nothing origin/main
cd ../apart; git checkout -q --detach; git commit -q --allow-empty -m 'of nobody'; git branch -q -D apart
"""


def filled(s, name):
    v = Volumes(s, name)
    v.provision(["feature/one", "clean", "fresh", "apart"])
    v.sh(v.old + "/worktrees", CHANGES)
    v.moved()
    v.archive("branches")
    v.archive("history", [(".bash_history", "ls\nmake of-the-tool\n")])
    v.archive("claude", [("settings.json", '{"model": "opus"}'), ("CLAUDE.md", "# of the volume\n"), ("skills/x/SKILL.md", "skill\n"), (".credentials.json", '{"claudeAiOauth": {"refreshToken": "RT"}}'), (".claude.json", '{"primaryApiKey": "K"}')])
    v.archive("codex", [("config.toml", "model = 'x'\n"), ("auth.json", '{"tokens": {"refresh_token": "RT"}}')])
    return v


def moves(s, _hand):
    """All that is in the volumes is here afterwards, and again changes nothing; nothing of the source is removed."""
    v = filled(s, "moves")
    done = v.do("init")
    assert done.status == 0 and "look:  docker has volumes of agent-sandbox for this directory; to take over what they have: pinfold volume import\n" in done.text(), done.said()
    done = v.do("volume")
    assert re.search(rf"agent-sbx-repo-{v.hash} +agent-sandbox's +{re.escape(v.top)} +docker; see: volume import", done.text()), done.said()
    assert v.do("volume", "--names").out == b""
    assert v.do("volume", "rm", "agent-sbx-repo-" + v.hash).status == 4, "another tool's volume is not ours to remove"
    os.makedirs(v.home + "/.claude")
    v.put(".claude/CLAUDE.md", "# the person's\n")
    s.user.own(v.home + "/.claude")
    done = v.do("volume", "import", "--dry-run")
    assert done.status == 0 and "branch feature/one: would be imported, 1 commit that no remote has, 6 changed files\n" in done.text(), done.said()
    assert not os.path.exists(v.shelf) and not os.path.exists(v.home + "/.local/state/pinfold-agents"), "nothing is made by --dry-run"
    done = v.do("volume", "import")
    text = done.text()
    assert done.status == 0 and "branch apart: imported, 1 commit" in text and "branch lonely: imported, 2 commits" in text and "branch nothing" not in text, done.said()
    assert v.branches() == {"feature/one", "clean", "fresh", "lonely", "apart"}, v.branches()
    got = v.inside("feature/one", "git status --porcelain; git log --format=%s; cat s.txt u.txt sub/deep/f; readlink link; test -x run.sh && stat -c %a run.sh a.txt; git show :s.txt; git remote get-url host; git fsck --strict --no-dangling")
    assert got.out.decode().split("\n") == [" D b.txt", "AM s.txt", "?? link", "?? run.sh", "?? sub/", "?? u.txt", "second", "first", "staged", "changed", "loose", "x", "/etc/passwd", "755", "644", "staged", "file:///workspace/moves", ""], got.said()
    got = v.inside("fresh", "git stash list; git stash show -p stash@{1} | tail -n 1; git tag; git log --format=%s -1 apart; git log -1 --format=%s lonely; git push -q host fresh && echo pushed")
    assert got.out.decode().splitlines() == ["stash@{0}: On fresh: another", "stash@{1}: On fresh: my stash", "+stashed", "v-local", "of nobody", "alone", "pushed"], got.said()
    assert v.git(v.top, "log", "-1", "--format=%s", "fresh") == "of fresh"
    # Settings without logins; the person's own come first.
    layer = pf.run(["sh", "-c", "cd .local/state/pinfold-agents && find . -type f ! -name lock ! -name project | sort | sed 's,/[0-9a-f]*/,/,'; cat claude/*/box0/CLAUDE.md"], s.user, v.home, v.env).out.decode().split("\n")
    assert layer == ["./claude/box0/CLAUDE.md", "./claude/box0/settings.json", "./claude/box0/skills/x/SKILL.md", "./claude/seeds0/CLAUDE.md", "./codex/box0/config.toml", "# the person's", ""], layer
    assert "~/.claude/.credentials.json is a login and was not taken over" in text and "~/.codex/auth.json is a login" in text and "~/.claude/.claude.json may hold keys" in text, text
    # The history is what a shell begins with, where it has none; then it is the shell's own.
    shell = {**v.env, "SHELL": "/bin/bash", "TERM": "dumb"}
    for words, wanted in (("history | grep -q make.of-the-too[l] && echo found-$((1+1)); echo mine >/commandhistory/history", "found-2"), ("history | grep -q make.of-the-too[l] || echo gone-$((1+1))", "gone-2")):
        done = pf.run(["script", "-qec", f"{pf.PINFOLD} shell", "/dev/null"], s.user, v.top, shell, stdin=(words.replace("; ", "\n") + "\nexit\n").encode())
        assert wanted in done.text(), done.said()
    v.do("stop")
    # Again.
    again = v.do("volume", "import")
    assert again.status == 0 and again.text().count("it is here already, as it is there") == 5 and ": imported" not in again.text() and "exists and stays as it is" in again.text(), again.said()
    assert v.inside("fresh", "git stash list | wc -l").out == b"2\n"
    assert not v.daemon.containers and not v.daemon.images and len(v.daemon.archives) == 4, (v.daemon.containers, v.daemon.images)
    # Taken away here, it can be had again; and a branch by itself.
    assert v.do("rm", "--branch", "fresh", "--force").status == 0
    done = v.do("volume", "import", "--branch", "fresh")
    assert done.status == 0 and done.text().startswith("branch fresh: imported") and "claude" not in done.text(), done.said()
    v.end()


def nothing_is_lost(s, _hand):
    """What is here stays: a branch with other commits, one that a box uses; what the volume has of it is kept beside. A container at work is let work."""
    v = filled(s, "kept")
    assert v.inside("feature/one", "echo mine >a.txt; git commit -qam mine").status == 0
    assert v.inside("clean", "git branch fresh; git branch lonely").status == 0  # without a worktree
    done = v.do("volume", "import")
    assert done.status == 1, done.said()
    for branch in ("feature/one", "fresh", "lonely"):
        assert f"branch {branch}: a branch of this name is here and stays as it is" in done.text(), done.said()
    got = v.inside("feature/one", "git log --format=%s; cat a.txt; git show refs/agent-sandbox/feature__one:u.txt; git log -1 --format=%s refs/agent-sandbox/fresh; git log -1 --format=%s fresh; ls /repo-shelf/worktrees")
    assert got.out.decode().split() == ["mine", "first", "mine", "loose", "of", "fresh", "first", "apart", "clean", "feature__one"], got.said()
    # What the tool has done since is told, and not taken.
    v.daemon.running = [{"Names": ["/agent-sandbox-kept-apart-x"]}]
    done = v.do("volume", "import")
    assert done.status == 1 and "the container 'agent-sandbox-kept-apart-x' works in it; stop it first: docker stop agent-sandbox-kept-apart-x" in done.text() and "branch" not in done.out.decode(), done.said()
    v.daemon.running = []
    for words, status, why in ((["volume", "import", "--branch", "-x"], 2, "cannot be a branch's name"), (["volume", "import", "--branch", "none"], 1, "no such branch"), (["volume", "import", "a", "b"], 2, "unexpected argument"),
                               (["volume", "import", "--force"], 2, "no option --force"), (["volume", "--dry-run"], 2, "for import"), (["start", "--dry-run"], 2, "no option --dry-run"), (["volume", "import", "/none"], 2, "No such file")):
        done = v.do(*words)
        assert done.status == status and why in done.text(), (words, done.said())
    other = v.run([pf.PINFOLD, "volume", "import", v.home], v.top)
    assert other.status == 0 and "branch" not in other.text(), other.said()  # the settings are everybody's
    v.end()


def info(name, kind, **more):
    one = tarfile.TarInfo(name)
    one.type = kind
    for key, value in more.items():
        setattr(one, key, value)
    return one


def hostile(s, _hand):
    """Whatever the archive has, nothing lands but branches and files of theirs; no program of it runs, in no box either."""
    v = Volumes(s, "hostile")
    v.provision(["feature/one", "clean"])
    v.sh(v.old + "/worktrees/feature__one", "echo two >a.txt; git commit -qam second; echo '* filter=x diff=x' >.gitattributes")
    v.moved()
    ran = "touch /repo-shelf/RAN"
    victim = os.path.join(s.path, "victim")
    with open(victim, "w", encoding="utf-8") as file:
        file.write("safe\n")
    s.user.own(victim)
    config = (f'[core]\n\tfsmonitor = "{ran}"\n\thooksPath = /repo-import/h\n\tsshCommand = "{ran}"\n\talternateRefsCommand = "{ran}"\n[uploadpack]\n\tpackObjectsHook = "{ran}"\n[filter "x"]\n\tclean = "{ran}"\n\tsmudge = "{ran}"\n'
              f'[include]\n\tpath = {victim}\n[extensions]\n\tworktreeConfig = true\n[alias]\n\tfetch = "!{ran}"\n[remote "host"]\n\turl = "ext::{ran}"\n')
    hook = tarfile.TarInfo("h/post-checkout")
    hook.mode = 0o755
    entries = [("repo/.git/config", config), ("repo/.git/config.worktree", config), ("repo/.git/worktrees/feature__one/config.worktree", config), (hook, "#!/bin/sh\n" + ran + "\n"), ("repo/.git/objects/info/alternates", v.top + "/.git/objects\n"),
               ("repo/.git/refs/replace/" + v.git(v.top, "rev-parse", "main"), v.git(v.old + "/repo", "rev-parse", "refs/heads/feature/one") + "\n"),
               ("repo/.git/refs/heads/--upload-pack=touch", v.git(v.top, "rev-parse", "main") + "\n"), ("repo/.git/worktrees/evil/gitdir", "/repo-shelf/worktrees/../../etc/.git\n"), ("repo/.git/worktrees/evil/HEAD", "ref: refs/heads/feature/one\n"),
               ("repo/.git/worktrees/linked/gitdir", "/repo-shelf/worktrees/linked/.git\n"), ("repo/.git/worktrees/linked/HEAD", "ref: refs/heads/linked\n"), ("repo/.git/refs/heads/linked", v.git(v.top, "rev-parse", "main") + "\n"), (info("worktrees/linked", tarfile.SYMTYPE, linkname="/etc"), None),
               (info("worktrees/feature__one/null", tarfile.CHRTYPE, devmajor=1, devminor=3), None), (info("worktrees/feature__one/disk", tarfile.BLKTYPE, devmajor=8), None), (info("worktrees/feature__one/fifo", tarfile.FIFOTYPE), None),
               (info("out", tarfile.SYMTYPE, linkname=os.path.dirname(victim)), None), ("out/victim", "taken\n"), ("../../../../../../../../../../../.." + victim, "taken\n"), (info("/" + victim.lstrip("/"), tarfile.REGTYPE), "taken\n"),
               (info("worktrees/feature__one/hard", tarfile.LNKTYPE, linkname="../../../../../etc/hostname"), None), (info("worktrees/feature__one/hard2", tarfile.LNKTYPE, linkname="/etc/passwd"), None),
               (info("worktrees/feature__one/setuid", tarfile.REGTYPE, mode=0o6755), "#!/bin/sh\n"), (info("worktrees/feature__one/abs", tarfile.SYMTYPE, linkname="/etc/shadow"), None), ("worktrees/feature__one/\x1b[31mred", "x\n")]
    v.archive("branches", entries)
    v.archive("history", [(info(".bash_history", tarfile.SYMTYPE, linkname="/etc/passwd"), None)])
    v.archive("claude", [(info("settings.json", tarfile.SYMTYPE, linkname=victim), None), (info("skills", tarfile.SYMTYPE, linkname=os.path.dirname(victim)), None), (info("CLAUDE.md", tarfile.FIFOTYPE), None), ("agents/a.md", "x\n"), (info("agents/b.md", tarfile.LNKTYPE, linkname=victim), None)])
    before = {path: os.stat(path).st_mtime_ns for path in (victim, "/etc/passwd", "/etc", s.path)}
    done = v.do("volume", "import")
    assert done.status == 0 and "branch feature/one: imported" in done.text() and "entries were left out" in done.text() and "\x1b" not in done.text() and "--upload-pack" not in done.out.decode(), done.said()
    assert {path: os.stat(path).st_mtime_ns for path in before} == before
    assert open(victim, encoding="utf-8").read() == "safe\n"
    shelf = v.shelf + "/shelf"
    assert sorted(os.listdir(shelf)) == ["repo", "worktrees"] and sorted(os.listdir(shelf + "/worktrees")) == ["clean", "feature__one"], os.listdir(shelf)
    assert not os.path.exists(v.shelf + "/checks") and not os.path.exists(v.shelf + "/making"), os.listdir(v.shelf)
    at = shelf + "/worktrees/feature__one"
    assert set(os.listdir(at)) == {".git", ".gitattributes", "\x1b[31mred", "a.txt", "abs", "b.txt", "setuid"}, os.listdir(at)
    assert not os.stat(at + "/setuid").st_mode & 0o7000 and os.readlink(at + "/abs") == "/etc/shadow" and open(at + "/a.txt", encoding="utf-8").read() == "two\n"
    settings = open(shelf + "/repo/.git/config", encoding="utf-8").read()
    assert "fsmonitor" not in settings and "alias" not in settings and "ext::" not in settings, settings
    assert not os.path.exists(v.shelf + "/remote/.bind/history")
    layer = pf.run(["sh", "-c", "find .local/state/pinfold-agents -path '*box0/*' ! -type d -printf '%P %y\\n'; grep -r -l -e safe -e taken .local"], s.user, v.home, v.env).out.decode()
    assert re.fullmatch(r"claude/[0-9a-f]+/box0/agents/a\.md f\n", layer), layer
    v.end()


def broken(s, _hand):
    """An archive that breaks off, is none, or has no repository; one message, nothing here, and nothing left."""
    v = filled(s, "broken")
    name = "agent-sbx-repo-" + v.hash
    whole = v.daemon.archives[name]
    with tarfile.open(fileobj=io.BytesIO(whole)) as tar:
        middle = tar.getmembers()[len(tar.getmembers()) // 2].offset  # tar takes this for the end
    for data, cut, why in ((whole, middle, "cannot read the volume"), (whole, len(whole) - 10240, "cannot read the volume"), (whole, 0, "cannot read the volume"), (b"", None, "cannot be unpacked"), (b"x" * 4096, None, "cannot be unpacked")):
        v.daemon.archives[name], v.daemon.cut = data, cut
        done = v.do("volume", "import", "--branch", "feature/one")
        assert done.status == 1 and name in done.text() and why in done.text() and done.err.count(b"\n") == 1, (len(data), cut, done.said())
        assert not os.path.exists(v.shelf), (len(data), os.listdir(v.shelf))
        assert not v.daemon.containers and not v.daemon.images, (v.daemon.containers, v.daemon.images)
    v.end()


def killed(s, _hand):
    """kill -9 while the archive comes, while git works, and when some branches are done: what is listed is whole, and the next run brings the rest."""
    v = filled(s, "killed")
    checks, half = v.shelf + "/checks", len(v.daemon.archives["agent-sbx-repo-" + v.hash]) // 2

    def kill_when(until):
        child = subprocess.Popen([pf.PINFOLD, "volume", "import"], cwd=v.top, env=v.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True, **s.user.popen())
        verify.wait_for(lambda: until() or child.poll() is not None)
        child.send_signal(signal.SIGKILL)
        child.wait()

    v.daemon.stop = half
    kill_when(lambda: any(os.path.exists(f"{checks}/{run}/volume-0/repo") for run in (os.listdir(checks) if os.path.exists(checks) else ())))
    v.daemon.go.set()
    v.daemon.stop = None
    verify.wait_for(lambda: not v.daemon.containers and not v.daemon.images)  # its reader tidies up
    assert v.branches() == set()
    for until in (lambda: os.path.exists(v.shelf + "/making"), lambda: os.path.exists(v.shelf + "/shelf/worktrees/clean/.git"), lambda: len(v.branches()) > 1 and os.path.exists(v.shelf + "/making")):
        kill_when(until)
        if "feature/one" in v.branches():
            assert v.inside("feature/one", "cat u.txt").out == b"loose\n"
    done = v.do("volume", "import")
    assert done.status == 0 and v.branches() == {"feature/one", "clean", "fresh", "lonely", "apart"}, done.said()
    got = v.inside("feature/one", "git status --porcelain | wc -l; git log --format=%s | wc -l; git fsck --strict --no-dangling")
    assert got.out == b"6\n2\n", got.said()
    assert not os.path.exists(checks) and not os.path.exists(v.shelf + "/making")
    v.end()


TESTS = {"volume-import": moves, "volume-nothing-is-lost": nothing_is_lost, "volume-hostile": hostile, "volume-broken": broken, "volume-killed": killed}
COSTLY = ("volume-import", "volume-nothing-is-lost", "volume-broken", "volume-killed")  # many starts of git, the same for both users
