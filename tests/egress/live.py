"""What goes on while a box runs: events with who was it, rules over the control connection, questions, fresh resolver texts.

Real clients inside, this program as the caller outside; a pty of its own where a terminal is asked.
"""
import contextlib
import ctypes
import fcntl
import json
import os
import pty
import select
import shlex
import shutil
import signal
import socket
import subprocess
import termios
import time

import leader

CURL = "curl -sS -m 30 "
BARE = "curl --noproxy '*' -sS -m 30 "
PROXY = "http://127.0.0.1:61080"
PATIENCE = 60


class Caller:
    """pinfold with a shell inside whose stdin and stdout are ours, and a control connection."""

    def __init__(self, t, *flags, control=True, env=None):
        ours, theirs = socket.socketpair()
        more = ["--control-fd", str(theirs.fileno())] if control else []
        self.result = os.path.join(t.scratch, "result.json")
        self.process = subprocess.Popen(
            [t.pinfold, "run", "-q", "--workspace", ".", "--result", self.result, *more, *flags, "--", "sh"], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, pass_fds=[theirs.fileno()], env=env, start_new_session=True)
        theirs.close()
        self.socket, self.lines = ours, b""
        ours.settimeout(PATIENCE)

    def start(self, command):
        """Runs `command` and then says END and its status."""
        self.process.stdin.write(f"{command}\necho END $?\n".encode())
        self.process.stdin.flush()

    def finish(self, wanted=b"END "):
        """What is said until `wanted`, and the rest of that line."""
        out = b""
        until = time.monotonic() + PATIENCE
        while wanted not in out or not out.endswith(b"\n"):
            if not select.select([self.process.stdout], [], [], max(0, until - time.monotonic()))[0]:
                return out.decode() + "(too late)"
            more = os.read(self.process.stdout.fileno(), 65536)
            if not more:
                break
            out += more
        return out.decode("utf-8", "replace")

    def do(self, command):
        self.start(command)
        return self.finish()

    def send(self, what):
        self.socket.sendall((what if isinstance(what, bytes) else json.dumps(what).encode()) + b"\n")

    def hear(self):
        while b"\n" not in self.lines:
            try:
                more = self.socket.recv(65536)
            except OSError as e:
                return {"nothing": str(e)}
            if not more:
                return {"nothing": "end"}
            self.lines += more
        line, self.lines = self.lines.split(b"\n", 1)
        return json.loads(line)

    def say(self, what):
        self.send(what)
        return self.hear()

    def silent(self):
        return not self.lines and not select.select([self.socket], [], [], 0.3)[0]

    def end(self):
        self.process.stdin.close()
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            os.kill(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.process.stdout.close()
        self.socket.close()
        with open(self.result, encoding="utf-8") as text:
            return json.load(text)


def run_for_result(t, flags, command, env=None):
    path = os.path.join(t.scratch, "result.json")
    done = subprocess.run([t.pinfold, "run", "-q", "--workspace", ".", "--result", path, *flags, "--", "sh", "-c", command], env=env,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=180, check=False)
    with open(path, encoding="utf-8") as text:
        return json.load(text), done.stdout.decode("utf-8", "replace")


def run(t):
    events(t)
    control(t)
    said(t)
    asking(t)
    terminal(t)
    library(t)
    resolver(t)


# ---- events
def events(t):
    refused = [
        ("transparent", BARE + f"http://{t.private}:8099/f", "connect", f"{t.private}:8099", "transparent", "curl"),
        ("name", BARE + "http://other.test:8099/f", "resolve", "other.test", "dns", "curl"),
        ("connect", CURL + f"-p -x {PROXY} http://other.test:8099/f", "connect", "other.test:8099", "connect", "curl"),
        ("http", "env -u no_proxy -u NO_PROXY " + CURL + "http://other.test:8099/f", "connect", "other.test:8099", "http", "curl"),
        ("socks", CURL + "-x socks5h://127.0.0.1:61080 http://other.test:8099/f", "connect", "other.test:8099", "socks", "curl"),
        ("python", f"python3 -c \"import socket; socket.create_connection(('{t.private}', 77)).recv(1)\"", "connect", f"{t.private}:77", "transparent",
         "python3"),
    ]
    for name, command, action, target, how, who in refused:
        result, _ = run_for_result(t, t.allow, command)
        found = [d for d in result["denials"] if d["target"] == target and d["action"] == action]
        ok = len(found) == 1 and found[0]["how"] == how and found[0]["pid"] > 1 and found[0].get("command", "").startswith(who)
        t.report("event/" + name + "-says-who", ok, result["denials"])
    result, _ = run_for_result(t, t.allow, "echo $$ > mine; exec " + BARE + f"http://{t.private}:8099/f")
    with open("mine", encoding="ascii") as text:
        mine = int(text.read())
    t.report("event/the-pid-is-the-one-inside", [d["pid"] for d in result["denials"]] == [mine], (mine, result["denials"]))

    result, _ = run_for_result(t, [*t.allow, "--deny", "ok.test:8099", "--deny-port", "77"], BARE + "http://ok.test:8099/f; " + BARE + "http://ok.test:77/")
    found = {d["target"]: (d["rule"], d["origin"]) for d in result["denials"]}
    t.report("event/the-rule-and-who-said-it", found == {"ok.test:8099": ("ok.test:8099", "--deny"), "ok.test:77": ("77", "--deny-port")}
             or found.get("ok.test:77", ("", ""))[1] == "--deny-port" and found.get("ok.test:8099") == ("ok.test:8099", "--deny"), found)

    state = os.path.join(t.scratch, "state")
    env = {**os.environ, "XDG_STATE_HOME": state}
    url = "http://ok.test:8099/f; "
    ways = [BARE + url, BARE + url, CURL + url, CURL + f"-p -x {PROXY} " + url, CURL + "-x socks5h://127.0.0.1:61080 " + url,
            BARE + "http://127.0.0.1:8099/f; "]
    result, out = run_for_result(t, [*t.allow, "--reach", "127.0.0.1:8099"], "".join(ways), env)
    allowed = {(a["action"], a["how"]): a for a in result["network"]["allowed"]}
    a = allowed.get(("connect", "transparent"), {})
    ok = a.get("target") == "ok.test:8099" and a.get("address") == t.public and a.get("rule") == "ok.test" and a.get("origin") == "--allow"
    t.report("event/what-was-allowed", ok and a["count"] == 2, (result["network"], out[-2000:]))
    t.report("event/every-way-is-named", set(allowed) == {("resolve", "dns"), ("connect", "transparent"), ("connect", "http"), ("connect", "connect"),
                                                          ("connect", "socks"), ("connect", "reach")}, list(allowed))
    a = allowed.get(("connect", "reach"), {})
    t.report("event/the-rule-of-a-reach", (a.get("rule"), a.get("origin")) == ("127.0.0.1:8099", "--reach"), a)
    with open(os.path.join(state, "pinfold", "audit", "audit.jsonl"), encoding="utf-8") as text:
        lines = [json.loads(line) for line in text]
    counts = sorted(line.get("count", 1) for line in lines if line["kind"] == "network-allowed" and line["how"] == "transparent")
    t.report("event/allowed-ones-are-in-the-log", counts == [1, 1], lines)

    many = "python3 -c \"import socket\nfor i in range(300):\n  try: socket.getaddrinfo('h%d.many.test' % i, 80)\n  except OSError: pass\""
    result, _ = run_for_result(t, ["--allow", "*.many.test"], many)

    def counted(net):
        return len(net["allowed"]), net["allowed_not_kept"], net["events_lost"]
    of = counted(result["network"])
    t.report("event/many-are-counted", sum(of) == 300 and (of[0] == 256 or of[2] > 0), of)  # lost: pinfold got no processor in time
    t.report("event/what-nobody-read-is-counted", *unread(t, many, counted))
    result, _ = run_for_result(t, t.allow, many)
    kept = [d for d in result["denials"] if d["kind"] == "network"]
    more = [text for text in result["denials_not_seen"] if "more than" in text]
    t.report("event/many-refusals-are-counted", len(kept) == 256 and len(more) == 1 and int(more[0].split()[0]) >= 44, (len(kept), more))
    t.report("event/nothing-for-other-networks", run_for_result(t, ["--net", "none"], "true")[0]["network"] is None, "")


def wait_until(true):
    until = time.monotonic() + 90
    while not true():
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


# pinfold is stopped while the names are looked up: the last event that it can take is not the last one.
def unread(t, many, counted):
    path = os.path.join(t.scratch, "result.json")
    for name in ("begun", "go", "done"):
        if os.path.exists(name):
            os.unlink(name)
    child = subprocess.Popen([t.pinfold, "run", "-q", "--workspace", ".", "--result", path, "--allow", "*.many.test", "--", "sh", "-c",
                              f"touch begun; while [ ! -e go ]; do sleep 0.02; done; {many}; touch done"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        seen = wait_until(lambda: os.path.exists("begun"))
        child.send_signal(signal.SIGSTOP)
        with open("go", "w", encoding="ascii"):
            pass
        seen = wait_until(lambda: os.path.exists("done")) and seen
    finally:
        child.send_signal(signal.SIGCONT)
    status = child.wait(180)
    with open(path, encoding="utf-8") as text:
        of = counted(json.load(text)["network"])
    return seen and status == 0 and sum(of) == 300 and of[2] > 0, (seen, status, of)


# ---- the control connection
HOLD = ("python3 -c \"import socket; s = socket.create_connection(('ok.test', 8099)); s.sendall(b'GET /f HTTP/1.1\\r\\nHost: ok.test\\r\\n\\r\\n'); "
        "s.settimeout(15); print(b'hello' in s.recv(9999) or b'hello' in s.recv(9999), flush=True)\n"
        "try: print('end', s.recv(9))\nexcept OSError as e: print('closed', e)\"")


def control(t):
    get = BARE + "http://ok.test:8099/f"
    c = Caller(t, "--net", "allow", *t.exact)
    before, allowed, after = c.do(get), c.say({"op": "allow", "host": "ok.test:8099"}), c.do(get)
    t.report("control/allow", "hello" not in before and allowed == {"ok": True, "op": "allow", "rules": 2, "closed": 0} and "hello" in after,
             (before, allowed, after))
    listed = c.say({"op": "list"})
    rules = [(r["verb"], r["host"], r["origin"]) for r in listed.get("rules", [])]
    t.report("control/list", rules == [("allow", t.public, "--allow"), ("allow", "ok.test:8099", "--control-fd")], listed)
    bad = [b"no json", b"{", b"[1]", b'{"op":"allow"}', b'{"op":"allow","host":7}', b'{"op":"allow","host":"a b"}', b'{"op":"rob","host":"x.test"}',
           b'{"op":"allow","host":"x.test","port":3}', b'{"op":"replace"}', b'{"op":"replace","allow":["x.test","bad host"]}', b'{"op":"answer","id":9,"allow":true}',
           b'{"op":"answer","id":"1","allow":true}', b'{"op":"allow","host":"' + b"x" * 300000 + b'"}', b'\xff\xfe', b'{"op":"deny","host":["y.test",[]]}']
    answers = [c.say(line) for line in bad]
    ok = all(a.get("ok") is False and len(a["error"]) > 10 and "\n" not in a["error"] for a in answers) and c.say({"op": "list"}) == listed
    t.report("control/bad-lines-change-nothing", ok, answers)
    c.start(HOLD)
    out = c.finish(b"True")
    denied = c.say({"op": "deny", "host": "ok.test"})
    out += c.finish()
    t.report("control/a-tunnel-that-is-forbidden-ends", "True" in out and "closed" in out and denied.get("closed") == 1, (out, denied))
    out = c.do(get + "; getent ahosts ok.test; echo status $?")
    t.report("control/deny", "hello" not in out and "status 2" in out, out)
    c.say({"op": "replace", "allow": ["ok.test", t.public], "deny": []})
    t.report("control/replace-allows", "hello" in c.do(get), "")
    replaced = c.say({"op": "replace", "allow": ["sub.ok.test"]})
    out = c.do(get)
    rules = [(r["verb"], r["host"]) for r in c.say({"op": "list"})["rules"]]
    t.report("control/replace-takes-away", "hello" not in out and rules == [("allow", "sub.ok.test")], (replaced, out, rules))
    c.say({"op": "allow", "host": "ok.test"})
    c.say({"op": "allow", "host": t.public})
    out = c.do(get)
    c.say({"op": "deny", "host": "ok.test"})
    c.say({"op": "allow", "host": "ok.test"})
    t.report("control/the-last-word-counts", "hello" in out and "hello" in c.do(get), out)
    listed = [c.say({"op": "allow", "host": "@npm"}), c.say({"op": "list"}), c.say({"op": "deny", "host": "@no-such-set"})]
    hosts = [r["host"] for r in listed[1]["rules"]]
    t.report("control/sets", listed[0].get("ok") is True and "registry.npmjs.org" in hosts and listed[2].get("ok") is False, listed)
    c.socket.sendall(b'{"op":"list"}\n' * 40 + b'{"op":"allow","host":"last.test"}\n')
    ops = [c.hear().get("op") for _ in range(41)]
    t.report("control/answers-in-order", ops == ["list"] * 40 + ["allow"], ops)
    c.socket.close()
    time.sleep(0.3)
    t.report("control/rules-stay-when-the-caller-goes", "hello" in c.do(get), "")
    result = c.end()
    origins = {d["origin"] for d in result["denials"]} | {a["origin"] for a in result["network"]["allowed"]}
    t.report("control/events-name-it", "--control-fd" in origins, origins)

    c = Caller(t, *t.allow, "--deny", "other.test")
    lifted = c.say({"op": "allow", "host": "other.test"})
    c.say({"op": "allow", "host": "*"})
    c.say({"op": "replace", "allow": ["*", t.public]})
    out = c.do(BARE + "http://other.test:8099/f; " + get)
    t.report("control/what-the-policy-denies-stays", lifted.get("ok") is False and "--deny" in lifted["error"] and out.count("hello") == 1, (lifted, out))
    c.end()

    for name, flags, fd, says in (("no-network", [], None, "--net allow"), ("no-socket", ["--net", "allow"], "file", "socket"),
                                  ("not-open", ["--net", "allow"], "77", "descriptor"), ("no-number", ["--net", "allow"], "x", "descriptor")):
        with open("/dev/null", "rb") as null:
            pair = socket.socketpair()
            number = {None: str(pair[1].fileno()), "file": str(null.fileno())}.get(fd, fd)
            done = subprocess.run([t.pinfold, "run", *flags, "--control-fd", number, "--", "true"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, pass_fds=[pair[1].fileno(), null.fileno()], timeout=90, check=False)
            pair[0].close()
            pair[1].close()
        t.report("control/refuses-" + name, done.returncode == 125 and says in done.stdout.decode(), done)


# ---- what is said of a denial: the remedy that helps, or none
def said(t):
    rows = [
        ("default", t.allow, "http://other.test:8099/f", "(default); allow with --allow other.test:8099"),
        ("deny", ["--allow", "*", *t.exact, "--deny", "other.test"], "http://other.test:8099/f", "(other.test, --deny); a deny rule overrides every --allow: remove the deny rule to allow it"),
        ("deny-port", ["--allow", "*", *t.exact, "--deny-port", "8099"], "http://ok.test:8099/f", "--deny-port); a deny rule overrides every --allow: remove the deny rule to allow it"),
        ("private", ["--allow", "private.test"], "http://private.test:8099/f", f"(is at a private address); allow with --allow {t.private}:8099"),
        ("own", ["--allow", "own.test"], "http://own.test:8099/f", f"(is at an address of this machine); allow with --allow {t.public}:8099"),
        ("loopback", ["--allow", "loop.test"], "http://loop.test:8097/f", "(is at a loopback address); for a service of this machine: --reach 127.0.0.1:8097"),
        ("metadata", ["--allow", "meta.test"], "http://meta.test:8099/f", "(is at a cloud metadata endpoint); it hands out a machine's credentials"),
        ("multicast", ["--allow", "multi.test"], "http://multi.test:8099/f", "(is at an address that cannot be a destination)"),
        ("another-host", t.allow, "-H 'Host: other.test' http://ok.test:8099/f", "(HTTP Host differs from the host connected to)"),
        ("reach", ["--reach", "127.0.0.1:3999"], "http://127.0.0.1:3999/", "'127.0.0.1:3999' is allowed but was not reached: connection refused"),
    ]
    for name, flags, words, wanted in rows:
        client = CURL + f"-p -x {PROXY} " if name in ("default", "deny") else BARE
        done = subprocess.run([t.pinfold, "run", "--workspace", ".", *flags, "--", "sh", "-c", client + words], stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=180, check=False)
        lines = [x for x in done.stderr.decode().splitlines() if x.startswith("pinfold: network: ")]
        others = [x for x in lines if "allow with" in x and "allow with" not in wanted]
        t.report("said/" + name, any(wanted in x for x in lines) and not others, done.stderr.decode()[-2000:])


# ---- questions over the control connection
def asking(t):
    get = BARE + "http://ok.test:8099/f"
    c = Caller(t, "--ask", *t.exact)
    c.start(get)
    q = c.hear()
    ok = q.get("event") == "ask" and q["host"] == "ok.test" and q["port"] == 8099 and q["how"] == "transparent" and q.get("command") == "curl" and q["pid"] > 1
    answer = c.say({"op": "answer", "id": q.get("id", 0), "allow": True, "remember": "once"})
    out = c.finish()
    t.report("ask/yes", ok and answer == {"ok": True, "op": "answer"} and "hello" in out, (q, answer, out))
    again = c.say({"op": "answer", "id": q.get("id", 0), "allow": True})
    t.report("ask/an-answer-counts-once", again.get("ok") is False, again)
    c.start(get + "; " + get)
    q2 = c.hear()
    c.say({"op": "answer", "id": q2.get("id", 0), "allow": False})
    out = c.finish()
    t.report("ask/once-is-once-and-no-is-no", q2.get("id", 0) > q["id"] and "hello" not in out and c.silent(), (q2, out))
    time.sleep(2.2)
    c.start("python3 -c \"import socket\nl = [socket.create_connection(('ok.test', 8099)) for _ in 'abc']\nfor s in l: s.sendall(b'GET /f HTTP/1.0\\r\\nHost: ok.test\\r\\n\\r\\n')\n"
            "print('all', flush=True)\nfor s in l:\n  s.settimeout(20); d = b''\n  while b'hello' not in d: d += s.recv(9999) or b'hello?'\n  print('said', d.count(b'hello\\n'))\"")
    q3 = c.hear()
    out = c.finish(b"all")
    quiet = c.silent()
    c.say({"op": "answer", "id": q3.get("id", 0), "allow": True})
    out += c.finish()
    t.report("ask/many-for-one-host-are-one-question", quiet and out.count("said 1") == 3, (quiet, out))
    c.start(CURL + f"-p -x {PROXY} http://ok.test:8099/f")
    q4 = c.hear()
    c.say({"op": "answer", "id": q4.get("id", 0), "allow": True, "remember": "run"})
    out = c.finish()
    more = c.do(get)
    t.report("ask/yes-for-the-run", q4.get("how") == "connect" and "hello" in out and "hello" in more and c.silent(), (q4, out, more))
    c.start(BARE + "http://sub.ok.test:8099/f")
    q5 = c.hear()
    c.say({"op": "answer", "id": q5.get("id", 0), "allow": False, "remember": "run"})
    out = c.finish() + c.do(BARE + "http://sub.ok.test:8099/f")
    t.report("ask/no-for-the-run", "hello" not in out and c.silent(), out)
    c.start(BARE + "http://other.test:8099/f")
    c.hear()
    ruled = c.say({"op": "allow", "host": "other.test"})
    out = c.finish()
    t.report("ask/a-rule-answers-too", ruled.get("ok") is True and "hello" in out, (ruled, out))
    c.start(BARE + f"http://{t.private}:8099/f")
    q6 = c.hear()
    c.say({"op": "answer", "id": q6.get("id", 0), "allow": False})
    out = c.finish() + c.do(BARE + "http://169.254.169.254:8099/f; " + BARE + "-x '' http://127.0.0.2:8099/f; " + CURL + f"-p -x {PROXY} http://127.0.0.1:8099/f")
    t.report("ask/never-for-loopback-or-metadata", c.silent() and "hello" not in out, (q6, out))
    out = c.do(BARE + "http://nowhere.test:8099/f")
    t.report("ask/never-for-a-name-in-hosts-that-no-yes-opens", c.silent() and "hello" not in out, out)
    c.start(BARE + "http://either.test:8099/f")
    q7 = c.hear()
    c.say({"op": "answer", "id": q7.get("id", 0), "allow": True})
    out = c.finish()
    t.report("ask/for-a-name-that-a-yes-opens", q7.get("host") == "either.test" and "hello" in out, (q7, out))
    c.start(BARE + "http://evilok.test:8099/f")
    c.hear()
    c.socket.close()
    out = c.finish()
    t.report("ask/no-when-the-asker-goes", "hello" not in out and "too late" not in out, out)
    result = c.end()
    found = {(d["target"], d["origin"]) for d in result["denials"]}
    origins = {a["origin"] for a in result["network"]["allowed"] if a["action"] == "connect"}
    t.report("ask/answers-are-events", ("ok.test:8099", "asked") in found and ("sub.ok.test:8099", "asked") in found and
             ("evilok.test:8099", "asked") in found and "asked" in origins, (found, origins))

    c = Caller(t, "--ask", "--ask-time", "1s", *t.exact, "--deny", "other.test")
    c.start(get)
    q = c.hear()
    late = c.hear()
    out = c.finish()
    t.report("ask/no-answer-is-no", q.get("timeout_ms") == 1000 and late == {"event": "late", "id": q["id"]} and "hello" not in out, (q, late, out))
    out = c.do(BARE + "http://other.test:8099/f; " + CURL + f"-p -x {PROXY} http://other.test:8099/f")
    t.report("ask/what-is-denied-is-not-asked", c.silent() and "hello" not in out, out)
    c.end()

    # All of them stay open while they are counted.
    c = Caller(t, "--ask", "--ask-time", "60s", *t.exact)
    c.start("python3 -c \"import os, socket, time\nl = []\nfor i in range(40):\n  s = socket.socket(); s.setblocking(False); s.connect_ex(('11.0.0.%d' % i, 80)); l.append(s)\n"
            "while not os.path.exists('counted'): time.sleep(0.05)\"")
    asked = set()
    while len(asked) < 32 or not c.silent():
        line = c.hear()
        if "nothing" in line:
            break
        if line.get("event") == "ask":
            asked.add(line["host"])
    with open("counted", "w", encoding="ascii"):
        pass
    c.finish()
    os.unlink("counted")
    t.report("ask/questions-are-bounded", len(asked) == 32, sorted(asked))
    result = c.end()
    t.report("ask/too-many-are-refused", any(d["rule"] == "too many open questions" for d in result["denials"]), result["denials"][-3:])

    done = subprocess.run([t.pinfold, "run", "--ask", "--", "true"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          start_new_session=True, timeout=90, check=False)
    t.report("ask/nobody-to-ask-is-an-error", done.returncode == 125 and b"--control-fd" in done.stdout, done)


# ---- questions at the terminal
class Terminal:
    """pinfold on a pty of its own, in the foreground."""

    def __init__(self, t, *args, program=None):
        self.seen = b""
        program = program or [t.pinfold, "run", "-q", "--workspace", ".", *args]
        self.pid, self.fd = leader.fork()
        if self.pid == 0:
            os.execvp(program[0], program)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, b"\x18\0\xa0\0\0\0\0\0")

    def until(self, text, seconds=PATIENCE):
        """Waits until `text` is shown; returns what was until there, and takes it away."""
        end = time.monotonic() + seconds
        while text not in self.seen:
            if not select.select([self.fd], [], [], max(0, end - time.monotonic()))[0]:
                return None
            try:
                self.seen += os.read(self.fd, 65536)
            except OSError:
                return None
        at = self.seen.index(text) + len(text)
        found, self.seen = self.seen[:at], self.seen[at:]
        return found

    def type(self, text):
        os.write(self.fd, text)

    def end(self):
        rest = self.until(b"\0never\0", 0.5) or self.seen
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            leader.let_go(self.pid)
            pid, self.status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                os.close(self.fd)
                return rest
            time.sleep(0.05)
        os.kill(self.pid, signal.SIGKILL)
        _, self.status = os.waitpid(self.pid, 0)
        os.close(self.fd)
        return rest + b"(killed)"


OPEN = b"and Enter: "


def terminal(t):
    get = BARE + "http://ok.test:8099/f"
    flags = ["--ask", *t.exact, "--"]
    for name, key, hello in (("yes", b"y\r", True), ("no", b"n\r", False)):
        x = Terminal(t, *flags, "sh", "-c", get + "; echo over")
        shown = x.until(OPEN)
        x.type(key)
        out = x.until(b"over\r\n")
        x.end()
        t.report("prompt/" + name, shown is not None and out is not None and b"ok.test:8099 (curl, process " in shown and (b"hello" in out) == hello, (shown, out))

    # what was typed before is not an answer; the box's escape sequences do not reach into the question
    x = Terminal(t, *flags, "sh", "-c", "stty -echo; printf '\\033V\\033#3\\033[?38h\\033]8;;http://other.test\\007\\033]11;#123\\007\\033[8m\\033(0\\033]0;title'; " + get + "; echo over; while read -r line; do printf 'got<%s>\\n' \"$line\"; done")
    time.sleep(0.3)
    x.type(b"y\r")  # before the question, or in its first moment
    shown = x.until(b"the box asks")
    x.type(b"y\r")
    x.until(OPEN)
    early = x.until(b"over", 1.5)
    x.type(b"n\r")
    out = x.until(b"over")
    x.type(b"mine\r")
    got = x.until(b"got<mine>")  # the first line may have come before the question, and then it was the command's
    x.type(b"\x04")
    x.end()
    t.report("prompt/typed-before-does-not-count", shown is not None and early is None and out is not None and b"hello" not in out, (shown, early, out))
    cleaned = shown is not None and shown.rindex(b"\033[8m") < shown.rindex(b"\030\033\\\033[0m\017\033(B")
    t.report("prompt/begins-with-a-clean-terminal", cleaned, shown)
    coloured = shown is not None and all(b"\033]" + what in shown[shown.rindex(b"#123"):] for what in (b"8;;\033", b"104", b"110", b"111"))
    t.report("prompt/begins-with-no-link-and-the-terminal's-colours", coloured, shown)
    # xterm's second window gets what follows, until one of these leaves it (Tektronix mode)
    elsewhere, _, here = shown.rpartition(b"\033[?38h")[2].rpartition(b"the box asks")[0].rpartition(b"\033\003") if shown else (b"", b"", b"")
    t.report("prompt/begins-in-the-terminal's-own-window", elsewhere != b"" and here != b"", shown)
    # its line has letters of the usual height, and what is erased below it was not guarded any more when it was
    line = shown.rpartition(b"the box asks")[0].rpartition(b"\n")[2] if shown else b""
    plain = b"\033#5" in line and 0 <= line.find(b'\033[1"q\033[0"q') < line.find(b"\033[J")
    t.report("prompt/begins-on-a-plain-line-with-nothing-below", plain, shown)
    t.report("prompt/the-answer-is-not-the-command's", got is not None, got)

    # two boxes of one pipeline are in the foreground of one terminal: they ask one after the other, and an answer is for what is shown
    one = [shlex.join([t.pinfold, "run", "-q", "--workspace", ".", *flags, "sh", "-c", f"{BARE} http://{host}:8099/f >&2; echo over-{host} >&2"])
           for host in ("ok.test", "sub.ok.test")]
    x = Terminal(t, program=["sh", "-c", "</dev/null " + " | ".join(one)])  # whoever reads the terminal may get the answer
    shown = x.until(OPEN)
    more = x.until(b"the box asks", 1.5)
    x.type(b"y\r")
    granted = x.until(b"over-")
    x.until(OPEN)
    x.type(b"n\r")
    out = x.end()
    t.report("prompt/one-question-at-a-terminal", shown is not None and shown.count(b"the box asks") == 1 and more is None and granted is not None and
             b"hello" in granted and b"hello" not in out and b"curl: (" in out, (shown, more, granted, out))

    # nothing of the box is shown behind the question
    x = Terminal(t, *flags, "sh", "-c", f"({get}; echo over) & sleep 0.5; i=0; while [ $i -lt 20 ]; do echo noise; i=$((i+1)); sleep 0.1; done; wait")
    x.until(b"the box asks")
    behind = x.until(OPEN)
    more = x.until(b"noise", 1)
    x.type(b"a\r")
    out = x.until(b"over")
    x.end()
    t.report("prompt/the-box-is-quiet-behind-it", behind is not None and b"noise" not in behind and more is None and out is not None and b"hello" in out,
             (behind, more, out))

    x = Terminal(t, *flags, "sh", "-c", f"{get}; {BARE} http://sub.ok.test:8099/f; echo over")
    x.until(OPEN)
    x.type(b"what\r")
    asked_again = x.until(OPEN)
    x.type(b"q\r")
    out = x.until(b"over")
    x.end()
    t.report("prompt/other-keys-ask-again", asked_again is not None, asked_again)
    t.report("prompt/ask-no-more", out is not None and b"hello" not in out and b"sub.ok.test:8099 (" not in out, out)

    x = Terminal(t, "--ask-time", "1s", *flags, "sh", "-c", get + "; echo over")
    out = x.until(b"over")
    x.end()
    t.report("prompt/no-answer-is-no", out is not None and b"not answered" in out and b"hello" not in out, out)

    # a box that ends takes its question along, whoever ends it
    x = Terminal(t, "--timeout", "2s", "--grace", "1s", *flags, "sh", "-c", "echo before; " + get)
    x.until(OPEN)
    out = x.end()
    t.report("prompt/goes-with-the-box", b"(killed)" not in out and os.WEXITSTATUS(x.status) == 124, (out, x.status))
    x = Terminal(t, *flags, "sh", "-c", "echo before; " + get)
    x.until(OPEN)
    inside = leader.program(x.pid)
    with open(f"/proc/{inside}/task/{inside}/children", encoding="ascii") as text:
        for child in text.read().split():
            with contextlib.suppress(ProcessLookupError):  # it ended by itself
                os.kill(int(child), signal.SIGKILL)
    out = x.end()
    t.report("prompt/goes-with-a-box-that-is-killed", b"(killed)" not in out, out)

    # output goes elsewhere, the question still comes to the terminal
    master, slave = pty.openpty()
    done = subprocess.Popen([t.pinfold, "run", "-q", "--workspace", ".", *flags, "sh", "-c", get], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL, start_new_session=True,
                            preexec_fn=lambda: (fcntl.ioctl(slave, termios.TIOCSCTTY, 0), os.tcsetpgrp(slave, os.getpid())))
    x = Terminal.__new__(Terminal)
    x.fd, x.seen = master, b""
    shown = x.until(OPEN)
    x.type(b"y\n")
    out = done.communicate(timeout=PATIENCE)[0]
    os.close(master)
    os.close(slave)
    t.report("prompt/output-elsewhere", shown is not None and b"hello" in out, (shown, out))


# ---- the resolver's texts
def resolver(t):
    get = BARE + "http://fresh.test:8099/f"

    def wait_for(c, wanted):
        out = ""
        for _ in range(120):
            out = c.do(get)
            if ("hello" in out) == wanted:
                return True, out
            time.sleep(0.2)
        return False, out

    def write(path, text):
        with open(path, "w", encoding="ascii") as out:
            out.write(text)

    # in its own /etc: a copy, in which a file can be replaced
    etc = os.path.join(t.scratch, "etc")
    subprocess.run(["cp", "-a", "/etc", etc], stderr=subprocess.DEVNULL, check=False)
    for name in ("hosts", "resolv.conf"):
        if os.path.lexists(os.path.join(etc, name)):
            os.unlink(os.path.join(etc, name))
    hosts, resolv = os.path.join(etc, "hosts"), os.path.join(etc, "resolv.conf")
    with open("/etc/hosts", encoding="ascii") as text:
        old = text.read()
    write(hosts, old)
    os.makedirs(os.path.join(etc, "run-resolve"))
    stub = os.path.join(etc, "run-resolve", "stub-resolv.conf")
    write(stub, "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n")
    os.symlink("run-resolve/stub-resolv.conf", resolv)
    subprocess.run(["mount", "--bind", etc, "/etc"], check=True)
    try:
        c = Caller(t, "--allow", "fresh.test", "--allow", "dns.test", *t.exact, control=False)
        first = c.do(get)
        write("/etc/hosts", old + f"{t.public} fresh.test\n")
        ok, out = wait_for(c, True)
        t.report("resolver/hosts-rewritten-in-place", "hello" not in first and ok, (first, out))
        write("/etc/hosts.new", old)
        os.rename("/etc/hosts.new", "/etc/hosts")
        ok, out = wait_for(c, False)
        t.report("resolver/hosts-replaced", ok, out)
        write("/etc/hosts.new", old + f"{t.public} fresh.test\n")
        os.rename("/etc/hosts.new", "/etc/hosts")
        ok, out = wait_for(c, True)
        t.report("resolver/hosts-replaced-again", ok, out)

        get = BARE + "http://dns.test:8099/f"
        first = c.do(get)
        write("/etc/run-resolve/new", "nameserver 127.0.0.9\noptions timeout:1 attempts:1\n")
        os.rename("/etc/run-resolve/new", "/etc/run-resolve/stub-resolv.conf")
        ok, out = wait_for(c, False)
        t.report("resolver/a-stub-behind-a-link-replaced", "hello" in first and ok, (first, out))
        os.unlink("/etc/resolv.conf")
        write("/etc/resolv.conf", "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n")
        ok, out = wait_for(c, True)
        t.report("resolver/a-link-becomes-a-file", ok, out)
        write("/etc/resolv.conf", "nameserver 127.0.0.9\noptions timeout:1 attempts:1\n")
        ok, out = wait_for(c, False)
        t.report("resolver/rewritten-in-place", ok, out)
        os.symlink("run-resolve/stub-resolv.conf", "/etc/link")
        write("/etc/run-resolve/stub-resolv.conf", "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n")
        os.rename("/etc/link", "/etc/resolv.conf")
        ok, out = wait_for(c, True)
        t.report("resolver/a-file-becomes-a-link", ok, out)
        # A router's own address, as its announcements give it (RFC 8106), is one only with its interface.
        for server, wanted in (("fe80::53%none", False), ("fe80::53%lo", True)):
            write("/etc/resolv.conf", f"# 100%\nnameserver {server}\noptions timeout:1 attempts:1\n")
            ok, out = wait_for(c, wanted)
            t.report(f"resolver/a-server-with-a-zone/{server}", ok, out)
        c.end()
        c = Caller(t, "--allow", "dns.test", *t.exact, control=False)
        out = c.do(get)
        t.report("resolver/a-server-with-a-zone/from-the-start", "hello" in out, out)
        c.end()
    finally:
        subprocess.run(["umount", "-l", "/etc"], check=False)


# ---- the library's caller
class Error(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int), ("no", ctypes.c_int), ("text", ctypes.c_char * 1024)]


class Question(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("target", ctypes.c_char_p), ("how", ctypes.c_char_p), ("command", ctypes.c_char_p),
                ("pid", ctypes.c_uint32), ("timeout_ms", ctypes.c_uint32)]


ASK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(Question))


class Option(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("value", ctypes.c_char_p)]


class PolicyOptions(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("profile", ctypes.c_char_p), ("files", ctypes.c_void_p), ("settings", ctypes.c_char_p),
                ("options", ctypes.POINTER(Option)), ("cwd", ctypes.c_char_p), ("no_layers", ctypes.c_int), ("settings_format", ctypes.c_char_p),
                ("text", ctypes.c_char_p)]


class RunOptions(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("argv", ctypes.POINTER(ctypes.c_char_p)), ("env", ctypes.c_void_p), ("cwd", ctypes.c_char_p),
                ("stdin_fd", ctypes.c_int), ("stdout_fd", ctypes.c_int), ("stderr_fd", ctypes.c_int), ("use_fds", ctypes.c_int), ("capture", ctypes.c_int),
                ("capture_max", ctypes.c_size_t), ("say", ctypes.c_void_p), ("say_ctx", ctypes.c_void_p), ("foreground", ctypes.c_int), ("ask", ASK),
                ("ask_ctx", ctypes.c_void_p), ("control_fd", ctypes.c_int)]


def library(t):
    """The shared library, whose program is put where it looks for it, in this suite's own mount namespace."""
    path = os.path.join(os.environ.get("PINFOLD_HOST_BUILD", "build-host"), "src", "client", "libpinfold.so")
    with open(path, "rb") as text:
        found = [word for word in text.read().split(b"\0") if word.startswith(b"/") and word.endswith(b"/bin/pinfold")]
    place = os.path.dirname(found[0].decode())
    os.makedirs(place, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "none", place], check=True)
    shutil.copy(t.pinfold, os.path.join(place, "pinfold"))
    try:
        callback(t, ctypes.CDLL(path))
    finally:
        subprocess.run(["umount", "-l", place], check=False)


def callback(t, lib):
    for f in ("pinfold_result_stdout", "pinfold_result_json"):
        getattr(lib, f).restype = ctypes.c_char_p
    error, policy, result, asked = Error(), ctypes.c_void_p(), ctypes.c_void_p(), []
    options = (Option * 4)((b"net", b"allow"), (b"allow", t.public.encode() + b"/32"), (b"ask-time", b"5s"), (None, None))
    po = PolicyOptions(size=ctypes.sizeof(PolicyOptions), options=options, no_layers=1)
    loaded = lib.pinfold_policy_load(ctypes.byref(po), ctypes.byref(policy), ctypes.byref(error))
    get = BARE + "http://%s:8099/f; "
    argv = (ctypes.c_char_p * 4)(b"sh", b"-c", (get % "ok.test" + get % "sub.ok.test" + get % "sub.ok.test" + get % "ok.test" + get % "other.test").encode(), None)

    def answer(_, question):
        q = question.contents
        asked.append((q.target.decode(), q.how.decode(), q.command.decode(), q.pid > 1, q.timeout_ms))
        return {"ok.test:8099": 1, "sub.ok.test:8099": 3}.get(q.target.decode(), 0)

    keep = ASK(answer)
    o = RunOptions(size=ctypes.sizeof(RunOptions), argv=argv, capture=1, ask=keep)
    ran = lib.pinfold_run(policy, ctypes.byref(o), ctypes.byref(result), ctypes.byref(error)) if loaded == 0 else None
    if ran != 0:
        t.report("library/asks-its-caller", False, (loaded, ran, error.text))
        return
    out, found = lib.pinfold_result_stdout(result, None).decode(), json.loads(lib.pinfold_result_json(result))
    t.report("library/asks-its-caller", [a[0] for a in asked] == ["ok.test:8099", "sub.ok.test:8099", "ok.test:8099", "other.test:8099"] and
             all(a[1:] == ("transparent", "curl", True, 5000) for a in asked), asked)
    t.report("library/obeys-its-caller", out.count("hello") == 4 and any(d["target"] == "other.test:8099" and d["origin"] == "asked" for d in found["denials"]),
             (out, found["denials"]))
    lib.pinfold_result_free(result)

    ours, theirs = socket.socketpair()
    ours.settimeout(PATIENCE)
    ours.sendall(b'{"op":"allow","host":"ok.test"}\n')
    argv = (ctypes.c_char_p * 4)(b"sh", b"-c", ("sleep 1; " + get % "ok.test").encode(), None)
    o = RunOptions(size=ctypes.sizeof(RunOptions), argv=argv, capture=1, control_fd=theirs.fileno())
    result = ctypes.c_void_p()
    ran = lib.pinfold_run(policy, ctypes.byref(o), ctypes.byref(result), ctypes.byref(error))
    out = lib.pinfold_result_stdout(result, None).decode() if ran == 0 else error.text
    try:
        said = ours.recv(4096)
    except OSError as e:
        said = str(e).encode()
    t.report("library/control-connection", ran == 0 and "hello" in out and b'"ok":true' in said, (ran, out, said))
    lib.pinfold_result_free(result)
    lib.pinfold_policy_free(policy)
