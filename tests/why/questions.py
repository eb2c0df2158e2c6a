#!/usr/bin/env python3
"""`pinfold why` and the engine never disagree: random rules and paths, each answer compared with a real attempt in a box.

questions.py [--rounds N] [--questions N] [--seed N] [--engine NAME [--image IMAGE]]; landlock is native without user namespaces. A round makes a policy, asks `why` about some paths, and then
tries the same acts in one box of that policy. What `why` calls unknown is counted, not compared; too much of it fails.
"""
import argparse
import json
import os
import random
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import pf  # noqa: E402

# Tries each act and undoes it: prints a list of errno names, null for success.
PROBE = r"""
import errno, json, os, sys
def new(path):
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    os.close(fd)
    os.unlink(path)
def attempt(act, path):
    if act == "read":
        os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))
    elif act == "exec":
        quiet = [(os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)]
        os.waitpid(os.posix_spawn(path, [path], {"PATH": "/usr/bin:/bin"}, file_actions=quiet), 0)
    elif os.path.isdir(path):
        new(path + "/a new file")
    else:
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC))
        except FileNotFoundError:
            new(os.path.realpath(path))
out = []
for act, path in json.load(sys.stdin):
    try:
        attempt(act, path)
        out.append(None)
    except OSError as e:
        out.append(errno.errorcode.get(e.errno, str(e.errno)))
json.dump(out, sys.stdout)
"""
# The same for an image with a shell alone, one question a line; prints "done" or "refused" for each. It knows no errno.
SHELL_PROBE = r"""
fresh() { ( set -C; : >"$1" ) 2>/dev/null && rm -f "$1"; }
while IFS="$(printf '\t')" read -r act path; do
    case $act in
    read) ( : <"$path" ) 2>/dev/null ;;
    exec) ( "$path" >/dev/null 2>&1 </dev/null ); [ $? -lt 126 ] ;;
    *)  if [ -d "$path" ]; then fresh "$path/a new file"
        elif [ -e "$path" ]; then ( : >>"$path" ) 2>/dev/null
        else fresh "$(readlink -f "$path" || echo "$path")"; fi ;;
    esac && echo done || echo refused
done
"""
TREE = {  # path below the scene: content, or a link's target after ->; a mode after @
    "work/a.txt": "a", "work/src/main.c": "c", "work/src/.env": "KEY=1", "work/deep/x/y/z.txt": "z", "work/keys/id.pem": "k",
    "work/keys/note.txt": "n", "work/run.sh": "#!/bin/sh\nexit 0\n@755", "work/closed.txt": "x@000", "work/ro.txt": "x@444",
    "work/link-in": "->src/main.c", "work/link-out": "->../other/data.txt", "work/link-abs": "->/etc/hosts", "work/link-dead": "->nowhere",
    "work/link-tmp": "->/tmp/there", "work/locked/in.txt": "x", "work/.vscode/settings.json": "{}", "work/package.json": "{}",
    "work/.gitmodules": "", "work/vendor/.vscode/x": "x", "work/one.txt": "1", "other/one.txt": "1",
    "other/data.txt": "d", "other/tool": "#!/bin/sh\nexit 0\n@755", "other/sub/more.txt": "m", "other/shut/in.txt": "x", "other/loop": "->loop",
    "home/.ssh/id_rsa": "k", "home/.bashrc": "", "home/.config/app/conf": "c", "home/.cache/c/file": "c", "home/.npm/_cacache/x": "x",
    "home/doc/letter.txt": "l", "home/bin/prog": "#!/bin/sh\nexit 0\n@755", "home/.aws/credentials": "k", "home/secrets/one.key": "k",
    "home/.local/share/app/x": "x", "home/.local/state/pinfold-test/x": "x",
}
OUTSIDE = ["/etc/hosts", "/etc/passwd", "/etc/shadow", "/etc", "/tmp", "/tmp/new", "/dev/null", "/dev/zero", "/dev/new", "/dev/shm/x", "/usr/bin/env",
           "/usr/bin", "/usr/new", "/", "/new", "/run", "/run/new", "/var/tmp/x", "/root", "/root/x", "/sys/kernel", "/home", "/opt",
           "/usr/bin/../bin/env", "/dev/sda", "/run/lock/x", "/etc/ssh"]


FORBID = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "landlock", "forbid.py")
LOST = ["pid-namespace", "private-ipc", "private-tmp", "fresh-proc", "no-survivors"]


IMAGES = ("docker", "podman")  # engines whose boxes have an image's files
ENGINES_OWN = ("PATH", "DOCKER_HOST", "XDG_RUNTIME_DIR", "CONTAINERS_CONF", "CONTAINERS_STORAGE_CONF", "CONTAINERS_REGISTRIES_CONF")  # variables that they need


class Scene:
    program = [pf.PINFOLD]
    image = None

    def __init__(self, user, name):
        self.user, self.path = user, os.path.join(pf.SCRATCH, f"{user.label}-{name}")
        self.home, self.work = self.path + "/home", self.path + "/work"
        shutil.rmtree(self.path, ignore_errors=True)
        modes = {}
        for name, text in TREE.items():
            path = os.path.join(self.path, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            if text.startswith("->"):
                os.symlink(text[2:], path)
                continue
            body, _, mode = text.partition("@")
            with open(path, "w", encoding="utf-8") as file:
                file.write(body)
            modes[path] = int(mode or "644", 8)
        user.own(self.path)
        for path, mode in modes.items():
            os.chmod(path, mode)
        self.env = pf.environment(user, self.home)
        pf.run(["git", "init", "-q", "proj"], user=user, cwd=self.work, env=self.env)
        pf.run(["git", "init", "-q", "--bare", "bare"], user=user, cwd=self.work, env=self.env)
        os.link(self.path + "/other/one.txt", self.path + "/other/twin.txt")
        os.link(self.path + "/work/one.txt", self.path + "/work/deep/twin.txt")
        for name in ("work/locked", "other/shut"):
            os.chmod(os.path.join(self.path, name), 0o000 if name.startswith("other") else 0o555)
        self.names = sorted(set(TREE) | {os.path.dirname(name) for name in TREE} | {
            "work/new.txt", "work/src/new.c", "other/new", "work/keys/new.pem", "work/proj/.git/config", "work/proj/.git/hooks/pre-commit",
            "work/proj/.git/HEAD", "work/proj/new", "work/proj/.vscode", "work/bare/config", "work/bare/hooks/update", "work/bare/hooks/x.sample",
            "work/proj/.git/refs/heads/-x", "work/.git", "work/.envrc", "work/src/.vscode", "work/missing/dir/file", "home/.ssh", "home/.ssh/new",
            "home/new", "home", "home/.cache", "home/.cache/new", "home/.cargo/x", "home/.local/bin/new", "work/a.txt/below", "work/src/../a.txt",
            "other", "", "work/deep", "work/.env", "work/SRC/.ENV", "work/deep/.env", "home/.gitconfig", "home/.npm", "home/.netrc", "home/.npmrc",
            "work/link-out/x", "other/twin.txt", "work/deep/twin.txt", "work/node_modules/.vscode/x", "home/.config", "home/.local/share/new"})

    def any_path(self, rng):
        return rng.choice(OUTSIDE) if rng.random() < (0.04 if self.image else 0.2) else os.path.join(self.path, rng.choice(self.names)).rstrip("/")

    def options(self, rng):
        """A policy: mostly rules for paths of the scene, sometimes a guard or network of another kind."""
        found = []
        for _ in range(rng.randrange(6)):
            kind = rng.choice(["rw", "ro", "hide", "protect", "hide", "ro", "rw", "cache"])
            path = self.any_path(rng)
            if rng.random() < 0.15:
                kind, path = rng.choice(["hide", "protect"]), rng.choice(["**/.env", "**/*.pem", self.work + "/keys/*.pem", self.path + "/other/*.txt", "**/x"])
            if kind == "cache" and not path.startswith(self.path):
                continue  # caches are in homes
            shown = self.sees(path)
            if (path == self.path and kind != "ro") or (kind in ("rw", "ro", "cache") and not shown and rng.random() < 0.9):
                continue  # such a policy is refused, mostly
            found += ["--" + kind, path]
        for words in (["--guard", "off"], ["--guard", "existing"], ["--guard-everyday", "guard"], ["--read-only"], ["--expand", "start"],
                      ["--mount", f"{self.path}/other:/srv"], ["--mount", f"{self.path}/other:/opt:ro"], ["--net", "host"]):
            if rng.random() < 0.08:
                found += words
        return found

    def sees(self, path):
        """Whether the user can open it on the host."""
        return pf.run(["test", "-r", path], user=self.user).status == 0

    def questions(self, rng, n):
        found = []
        for _ in range(n):
            path = self.any_path(rng)
            if rng.random() < 0.05:
                path = rng.choice(["/srv", "/srv/data.txt", "/srv/new", "/opt/data.txt", "/opt/tool", "/opt/new"])
            found.append([rng.choice(["read", "write", "create", "exec"]), path])
        return found


def ask(scene, options, act, path):
    done = pf.run([*scene.program, "why", "--json", *options, act, path], user=scene.user, cwd=scene.work, env=scene.env)
    try:
        return json.loads(done.out), done
    except ValueError:
        return None, done


def one_round(scene, rng, n, engine, counts):
    """Lines about what disagrees."""
    options = scene.options(rng)
    if engine == "landlock":
        scene.program = ["python3", shutil.copy(FORBID, scene.path), "filter", pf.PINFOLD]
        options = ["--engine", "native", *(word for lost in LOST for word in ("--may-lose", lost)), *options]
    elif engine != "auto":
        options = ["--engine", engine, *(["--image", scene.image] if scene.image else []), *options]
    questions = scene.questions(rng, n)
    answers = []
    for act, path in questions:
        answer, done = ask(scene, options, act, path)
        if answer is None:
            counts["refused policies"] += 1
            tried = pf.run([*scene.program, "run", "-q", *options, "true"], user=scene.user, cwd=scene.work, env=scene.env)
            return [] if tried.status == 125 else [f"why gives no answer, and the box starts: {options}", done.said()]
        answers.append(answer)
    probe, asked = (["sh", "-c", SHELL_PROBE], "".join(f"{act}\t{path}\n" for act, path in questions)) if scene.image else (["/usr/bin/python3", "-c", PROBE], json.dumps(questions))
    tried = pf.run([*scene.program, "run", "-q", *options, "--", *probe], user=scene.user, cwd=scene.work, env=scene.env, stdin=asked.encode())
    try:
        results = [None if line == "done" else line for line in tried.out.decode().splitlines()] if scene.image else json.loads(tried.out)
        if len(results) != len(questions):
            raise ValueError(results)
    except ValueError:
        if b"python3" in tried.err or b"Fatal Python" in tried.err or b"encodings" in tried.err or tried.status in (126, 127, 125, 1):
            counts["boxes without the probe"] += 1  # a rule hides what it needs
            return [] if tried.status != 125 else [f"why answers, and the box does not start: {options}", tried.said()]
        return [f"the probe failed: {options}", tried.said()]
    wrong = []
    for (act, path), answer, result in zip(questions, answers, results):
        counts["questions"] += 1
        if answer["verdict"] == "unknown":
            counts["unknown"] += 1
            continue
        succeeded = result is None or result == "ENOEXEC"
        if (answer["verdict"] == "allowed") != succeeded:
            wrong.append(f"{scene.user.label}: {act} {path}: why says {answer['verdict']} ({answer['reason']}; {answer['rule']}), the box: {result or 'done'}; "
                         f"{' '.join(options)}")
        elif not scene.image and answer["errno"] and answer["errno"] != result and {answer["errno"], result} != {"EACCES", "EROFS"}:
            counts["another errno"] += 1
    return wrong


def check(tally, name, user, rounds, n, seed, engine, image=None):
    rng, counts, wrong = random.Random(f"{seed}-{user.label}-{engine}"), dict.fromkeys(("questions", "unknown", "another errno", "refused policies",
                                                                                     "boxes without the probe"), 0), []
    scene = Scene(user, name)
    if engine in IMAGES:
        scene.image = image
        scene.env.update({name: os.environ[name] for name in ENGINES_OWN if name in os.environ})
    for _ in range(rounds):
        wrong += one_round(scene, rng, n, engine, counts)
    note = ", ".join(f"{number} {what}" for what, number in counts.items() if number)
    for path in ("other/shut",):
        os.chmod(os.path.join(scene.path, path), 0o755)
    shutil.rmtree(scene.path, ignore_errors=True)
    if wrong:
        tally.fail(name, f"{len(wrong)} answers of {counts['questions']} are not what the box does (seed {seed})", "\n".join(wrong))
    elif counts["questions"] < rounds * n // 3 or counts["unknown"] * 4 > counts["questions"]:
        tally.fail(name, f"too little was compared: {note}")
    else:
        tally.ok(name, f"({note})")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--questions", type=int, default=24)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--engine", action="append")
    parser.add_argument("--image")
    args = parser.parse_args()
    tally = pf.Tally()
    pf.own_mounts()
    for engine in args.engine or ["auto"]:
        for user in pf.users():
            check(tally, f"why agrees with {engine} as {user.label}", user, args.rounds, args.questions, args.seed, engine, args.image)
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
