"""`pinfold why` asked from within a box: right answers, the same ones whether or not the host has what is hidden, and a box that forges and floods."""
import json
import os
import platform
import select
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import pf  # noqa: E402

POLLS = ("7", "271") if platform.machine() == "x86_64" else ("-", "73")  # poll, ppoll

# What a box sends that does not use pinfold: a message, or none; the answer's verdict and reason, or None.
RAW = r"""
import json, os, socket, struct, sys
def connect():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(20)
    s.connect(b"\0pinfold/why")
    return s
def message(act, target):
    return act.ljust(16, b"\0") + target.ljust(4096, b"\0")
def ask(bytes, wait=True):
    s = connect()
    s.send(bytes)
    try:
        got = s.recv(65536)
    except ConnectionResetError: # what was no question was not read
        got = b""
    if not got:
        return None
    return [struct.unpack("i", got[:4])[0], got[24:280].split(b"\0")[0].decode(), got.decode("latin-1")]
"""


def box(scene, options, *words):
    return pf.run([pf.PINFOLD, "run", "-q", *options, "--", *words], user=scene.user, cwd=scene.work, env=scene.env)


def asked(scene, options, questions, before=""):
    """One box asks all of them: [(status, answer or its words)]."""
    script = before + "for q in " + " ".join(f"'{act} {target}'" for act, target in questions) + f"; do {pf.PINFOLD} why --json $q 2>&1 | tr '\\n' ' '; echo; done"
    done = box(scene, options, "sh", "-c", script)
    lines = done.out.decode().splitlines()
    return [json.loads(line) if line.startswith("{") else line for line in lines], done


def answers(scene, options=()):
    home, work, other = scene.home, scene.work, scene.path + "/other"
    expected = {
        ("read", home + "/.ssh/id_rsa"): ("refused", "hidden"), ("write", other + "/data.txt"): ("refused", "read-only"), ("create", other + "/new"): ("refused", "read-only"),
        ("read", other + "/data.txt"): ("allowed", "none"), ("create", "src/new.c"): ("allowed", "none"), ("create", ".envrc"): ("refused", "guarded"),
        ("create", "proj/.git/hooks/pre-commit"): ("refused", "guarded"), ("read", "nothing"): ("refused", "host"), ("read", "closed.txt"): ("refused", "host"),
        ("create", "/tmp/new"): ("allowed", "none"), ("exec", "sh"): ("allowed", "none"), ("exec", "no-such-program"): ("refused", "host"), ("connect", "example.com:443"): ("refused", "no-network"),
        ("connect", "169.254.169.254:80"): ("refused", "metadata"), ("connect", "127.0.0.1:9"): ("refused", "loopback"), ("signal", "1"): ("unknown", "none"),
    }
    found, done = asked(scene, list(options), list(expected))
    wrong = []
    for (question, want), answer in zip(expected.items(), found):
        got = (answer["verdict"], answer["cause"]) if isinstance(answer, dict) else answer
        if got != want:
            wrong.append(f"{question}: {answer}")
    remedies = [a["remedy"]["outside"] for a in found if isinstance(a, dict) and a["remedy"]]
    if len(found) != len(expected) or not remedies or any("--allow 169" in text or "--allow 127" in text for text in remedies):
        wrong.append(done.said())
    return wrong


def answers_on_bwrap(scene):
    """The same, where another program has made the box."""
    return answers(scene, ["--engine", "bwrap"])


def nothing_of_the_host(scene):
    """Of two names of which the host has one, the same is said; no text names a place of the host's or a file of the policy."""
    home, work, other = scene.home, scene.work, scene.path + "/other"
    policy = home + "/.config/pinfold/policy.yaml"
    os.makedirs(os.path.dirname(policy), exist_ok=True)
    with open(policy, "w", encoding="utf-8") as file:
        file.write(f"files:\n  hide: ['{work}/src/main.c', '{other}/sub']\n")
    scene.user.own(os.path.dirname(os.path.dirname(policy)))
    pairs = [(home + "/.ssh/id_rsa", home + "/.ssh/is_rsa"), (home + "/.aws/credentials", home + "/.aws/cregentials"), (other + "/sub/more.txt", other + "/sub/mOre.txt"),
             (work + "/src/main.c", work + "/src/main.c/x"), (work + "/link/id_rsa", work + "/link/is_rsa")]
    try:
        found, done = asked(scene, [], [("read", p) for pair in pairs for p in pair], before=f"ln -s {home}/.ssh link; ")
        mounted, more = asked(scene, ["--mount", other + ":/data:ro"], [("write", "/data/data.txt"), ("read", "/data/nothing")])
    finally:
        os.unlink(policy)
        if os.path.lexists(work + "/link"):
            os.unlink(work + "/link")
    wrong = [] if len(found) == 2 * len(pairs) and len(mounted) == 2 else [done.said() + more.said()]
    for (one, two), first, second in zip(pairs, found[::2], found[1::2]):
        same = [json.dumps(answer, sort_keys=True).replace(answer["target"], "T").replace(answer["asked"], "T") if isinstance(answer, dict) else answer for answer in (first, second)]
        if same[0] != same[1] or first["cause"] != "hidden":
            wrong.append(f"{one}, {two}: {same}")
    for text in [json.dumps(a) for a in mounted]:
        if other in text or "policy.yaml" in text:
            wrong.append("the host's names: " + text)
    if policy in done.out.decode() or "policy.yaml" in done.out.decode():
        wrong.append("the policy's file: " + done.said())
    return wrong


def forged(scene):
    """Questions that pinfold's own program would not send; then the run ends as always, and a refusal after them is told."""
    script = RAW + f"""
home, work = {scene.home!r}.encode(), {scene.work!r}.encode()
os.symlink(home + b"/.ssh/id_rsa", b"to-key")
os.symlink({scene.path!r}.encode() + b"/other", b"to-other")
say = dict(
    link=ask(message(b"read", work + b"/to-key")), directory=ask(message(b"read", work + b"/to-other/data.txt")),
    dots=ask(message(b"read", work + b"/../home/.ssh/id_rsa")), relative=ask(message(b"read", b"a.txt")), act=ask(message(b"last", b"")), empty=ask(message(b"read", b"")),
    endless=ask(b"read".ljust(16, b"\\0") + b"/" + b"x" * 4095), short=ask(b"read"), long=ask(b"x" * 60000), good=ask(message(b"read", work + b"/a.txt")))
os.unlink("to-key"); os.unlink("to-other")
print(json.dumps(say))
"""
    done = box(scene, [], "python3", "-c", script)
    try:
        say = json.loads(done.out)
    except ValueError:
        return [done.said()]
    elsewhere = "it leads elsewhere; ask for the path that it leads to"
    wrong = [f"{name}: {say[name]}" for name in ("link", "directory") if not say[name] or say[name][1] != elsewhere or "hidden" in say[name][2]]
    wrong += [f"{name}: {say[name]}" for name in ("dots", "relative", "act", "empty") if not say[name] or say[name][0] != -1]
    wrong += [f"{name}: {say[name]}" for name in ("short", "long") if say[name] is not None]
    wrong += [] if say["endless"] and say["endless"][0] == 1 else [f"a target without an end: {say['endless']}"]
    return wrong + ([] if say["good"] and say["good"][0] == 0 else [f"good: {say['good']}"])


def flooded(scene):
    """Hundreds of questions and of connections without one: refused beyond a number, and nothing else suffers."""
    script = RAW + f"""
idle, answers, refused = [], [], 0
for i in range(400):
    try:
        if i % 2:
            idle.append(connect())
        else:
            answers.append(ask(message(b"read", {scene.work!r}.encode() + b"/a.txt")))
    except OSError:
        refused += 1
print(json.dumps([len([a for a in answers if a and a[0] == 0]), len([a for a in answers if a and a[0] == -1]), refused]))
try:
    open("proj/.git/hooks/pre-commit", "w")
except OSError:
    sys.exit(7)
"""
    done = pf.run([pf.PINFOLD, "run", "--json", "--", "python3", "-c", script], user=scene.user, cwd=scene.work, env=scene.env)
    result = json.loads(done.out)
    counts = json.loads(result["stdout"] or "[0, 0, 0]")
    wrong = [] if result["exit_code"] == 7 and any(d["target"].endswith("/hooks/pre-commit") for d in result["denials"]) else ["the run suffers: " + done.said()]
    # 16 at once and five more each second of a slow machine; the guard's own bound is 256 connections.
    return wrong + ([] if 16 <= counts[0] < 150 and counts[1] > 0 and counts[2] > 0 else [f"answers, refusals, connections refused: {counts}\n{done.said()}"])


def in_a_session(scene):
    def pinfold(*words):
        return pf.run([pf.PINFOLD, *words], user=scene.user, cwd=scene.work, env=scene.env)
    pinfold("session", "start", "inside")
    done = pinfold("exec", "inside", "--", pf.PINFOLD, "why", "write", scene.path + "/other/data.txt")
    option = pinfold("exec", "inside", "--", pf.PINFOLD, "why", "--rw", scene.path + "/other", "write", scene.path + "/other/data.txt")
    last = pinfold("exec", "inside", "--", pf.PINFOLD, "why", "--last")
    pinfold("session", "rm", "inside")
    wrong = [] if done.status == 1 and done.out.startswith(b"refused: write ") and b"--rw " in done.out else [done.said()]
    return wrong + [f"taken: {d.said()}" for d in (option, last) if d.status != 2 or b"in a box it answers for that box" not in d.err]


def followed(scene):
    """An event wakes a follower, which waits without a time-out; it has it while the command still runs."""
    def start(*words):
        return subprocess.Popen([pf.PINFOLD, *words], cwd=scene.work, env=scene.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, **scene.user.popen())
    box(scene, [], "sh", "-c", "touch .envrc")
    follower = start("log", "-f", "--json")
    waits, wrong = "", []
    for _ in range(1200):  # until it waits for more
        with open(f"/proc/{follower.pid}/syscall", encoding="ascii") as file:
            waits = file.read().split()
        if select.select([follower.stdout], [], [], 0.05)[0]:
            os.read(follower.stdout.fileno(), 1 << 20)
        elif waits[0] != "running" and waits[0] in POLLS:
            break
    if waits[0] == POLLS[0] and int(waits[3], 16) & 0xffffffff != 0xffffffff or waits[0] == POLLS[1] and int(waits[3], 16) != 0:
        wrong.append(f"it waits with a time-out: {waits}")
    command = start("run", "-q", "sh", "-c", "touch .vscode; until test -e go; do sleep 0.02; done")
    told = b""
    while b".vscode" not in told and select.select([follower.stdout], [], [], 60)[0]:
        told += os.read(follower.stdout.fileno(), 1 << 16)
    if b".vscode" not in told or command.poll() is not None:
        wrong.append(f"the event came late or not: {told}, the command: {command.poll()}")
    with open(scene.work + "/go", "w", encoding="ascii"):
        pass
    command.wait()
    follower.kill()
    follower.wait()
    for stream in (command.stdout, follower.stdout):
        stream.close()
    os.unlink(scene.work + "/go")
    return wrong


def monitor_is_said_where_it_was(scene):
    """Events and denials have the member `monitor` only in a run with --monitor."""
    script = "python3 -c 'import os; os.kill(1234567, 0)' 2>/dev/null; cat ~/.ssh/id_rsa; curl -sS -m 5 http://192.0.2.1/; exit 1"
    wrong = []
    for options in ([], ["--monitor"]):
        events = os.path.join(scene.path, "events")
        done = pf.run([pf.PINFOLD, "run", "--json", *options, "--events", events, "sh", "-c", script], user=scene.user, cwd=scene.work, env=scene.env)
        with open(events, encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
        os.unlink(events)
        said = [d for d in json.loads(done.out)["denials"] + lines if "monitor" in d]
        if not json.loads(done.out)["denials"] or bool(said) != bool(options):
            wrong.append(f"{options}: {said}\n{done.said()}")
    return wrong


def run(tally, scene, wanted):
    for name, test in (("answers", answers), ("answers on bwrap", answers_on_bwrap), ("nothing of the host's", nothing_of_the_host), ("forged questions", forged), ("a flood", flooded), ("in a session", in_a_session),
                       ("a follower", followed), ("the member monitor", monitor_is_said_where_it_was)):
        if not wanted("inside: " + name):
            continue
        label = f"{scene.user.label}: inside: {name}"
        wrong = test(scene)
        if wrong:
            tally.fail(label, "other answers", "\n".join(wrong))
        else:
            tally.ok(label)
