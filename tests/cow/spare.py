#!/usr/bin/env python3
"""The empty layer that is kept ready (src/layer/spare.c): the next box begins with it, nothing of an earlier box comes along, and a damaged one
is never used; kills at every step, boxes at once, other users, file systems that are full.

spare.py STRIKE [TEST-REGEX...]. Each test runs as root and as the ordinary user. STRIKE is tests/layer/strike.c, compiled.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import pf  # noqa: E402

TESTS = {}


COSTLY = set()


def test(function):
    TESTS[function.__name__.replace("_", "-")] = function
    return function


def costly(function):
    COSTLY.add(function)
    return function


def lasting(tries):
    """A command for the box beside which the spare is made: a longer one if short ones leave no time for it."""
    return "true" if tries < 20 else "sleep 0.2"


class Scene:
    def __init__(self, user, name, strike):
        self.user, self.strike, self.path = user, strike, os.path.join(pf.SCRATCH, f"spare-{user.label}-{name}")
        self.home, self.work, self.state = self.path + "/home", self.path + "/work", self.path + "/state"
        for path in (self.home, self.work, self.state):
            os.makedirs(path)
        user.own(self.path)
        self.layers, self.spare = self.state + "/pinfold/layers", self.state + "/pinfold/layers/.spare"
        self.env = pf.environment(user, self.home, XDG_STATE_HOME=self.state)

    def words(self, script, name="--cow"):
        return [pf.PINFOLD, "run", "-q", "--no-layers", name, "--", "sh", "-c", script]

    def box(self, script, cwd=None, name="--cow"):
        done = pf.run(self.words(script, name), self.user, cwd or self.work, self.env)
        assert done.status == 0, done.said()
        return done.out.decode()

    def pinfold(self, *words):
        done = pf.run([pf.PINFOLD, *words], self.user, self.work, self.env)
        assert done.status == 0, (words, done.said())
        return done.out.decode()

    def listed(self):
        return json.loads(self.pinfold("layers", "--json"))["layers"]

    def ready(self):
        """A spare that was a layer before: its files are written over by the next one. It is made beside a box, if that lives long enough."""
        names = []
        for n in range(200):
            self.box(lasting(n))
            names = sorted(os.listdir(self.spare)) if os.path.isdir(self.spare) else []
            if names == ["lock", "record", "upper", "work"]:
                return os.stat(self.spare).st_ino
        raise AssertionError(names, os.listdir(self.layers))

    def made(self, name="made", before=()):
        """A box sees the workspace as it is and nothing else; what it makes is all that its layer has."""
        seen = self.box(f"ls -A; echo new > {name}").split()
        assert seen == sorted(os.listdir(self.work)), (seen, os.listdir(self.work))
        new = [one for one in self.listed() if one["id"] not in before]
        assert len(new) == 1, new
        place = os.path.join(self.layers, new[0]["id"])
        upper = [one for one in os.listdir(place) if one.startswith("upper")]
        assert len(upper) == 1 and os.listdir(os.path.join(place, upper[0])) == [name], (upper, os.listdir(place))
        self.pinfold("discard", new[0]["id"])
        return place

    def close(self):
        pf.remove(self.path)


@test
def the_next_box_begins_with_it(scene):
    number = scene.ready()
    scene.box("echo x > f")
    layer = scene.listed()
    assert len(layer) == 1 and os.stat(os.path.join(scene.layers, layer[0]["id"])).st_ino == number, (number, layer)
    assert scene.pinfold("diff", "--names").split()[-1] == "f"


@test
def it_is_no_layer(scene):
    scene.ready()
    assert scene.listed() == [] and "no layers" in scene.pinfold("layers") or not scene.pinfold("layers").strip(), scene.pinfold("layers")
    for which in (".spare", ".gone.0", "spare"):
        done = pf.run([pf.PINFOLD, "discard", which], scene.user, scene.work, scene.env)
        assert done.status != 0 and os.path.isdir(scene.spare), (which, done.said())
    kept = os.listdir(scene.layers)
    scene.pinfold("layers", "prune", "--dry-run")
    assert os.listdir(scene.layers) == kept
    scene.pinfold("layers", "prune")
    assert os.listdir(scene.layers) == [], os.listdir(scene.layers)
    scene.made()


@test
def nothing_of_a_box_comes_along(scene):
    """What a box may do to the top of the workspace ends up at the upper directory itself."""
    os.chmod(scene.work, 0o755)
    scene.ready()
    look = "stat -c '%a %Y %u:%g' .; python3 -c 'import os; print(os.listxattr(\".\"))'"
    change = "python3 -c 'import os; os.setxattr(\".\", \"user.mark\", b\"1\")'; chmod 0711 .; mkdir d; echo x > d/f; rm -r d; touch -d @1000000000 ."
    before = scene.box(look)
    for _ in range(3):
        after = scene.box(change + "; " + look)
        assert after.startswith("711 1000000000 ") and "user.mark" in after, after
        assert scene.listed() == [], scene.listed()
        now = scene.box(look)
        assert now == before, (before, now)
    scene.made()


@test
def a_repository_does_not_come_along(scene):
    """What is remembered of one (base-git, base-index) is not the next layer's, whose workspace has none."""
    project = scene.path + "/project"
    os.makedirs(project)
    scene.user.own(project)
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@x"]
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "one"]):
        assert pf.run([*git, *words], scene.user, project, scene.env).status == 0
    with open(project + "/f", "w", encoding="ascii") as file:
        file.write("f\n")
    assert pf.run([*git, "add", "f"], scene.user, project, scene.env).status == 0
    for n in range(200):
        scene.box(lasting(n), cwd=project)
        if os.path.exists(scene.spare + "/base-index.new"):
            break
    else:
        raise AssertionError(os.listdir(scene.layers))
    scene.box("echo x > f")
    names = os.listdir(os.path.join(scene.layers, scene.listed()[0]["id"]))
    assert "record" in names and not any(name.startswith("base-") for name in names), names
    scene.pinfold("discard", scene.listed()[0]["id"])
    scene.box("echo y >> f; git -c user.name=x -c user.email=x@x commit -qam two", cwd=project)
    done = pf.run([pf.PINFOLD, "apply", "--all"], scene.user, project, scene.env)
    assert done.status == 0, done.said()
    assert pf.run([*git, "log", "--oneline"], scene.user, project, scene.env).out.count(b"\n") == 2


@test
@costly
def the_index_is_copied_beside_the_box(scene):
    """The start does not read it. Whole, or not there: what the host does to it meanwhile is not in it."""
    project, index = scene.path + "/project", scene.path + "/project/.git/index"
    os.makedirs(project)
    scene.user.own(project)
    assert pf.run(["git", "init", "-q"], scene.user, project, scene.env).status == 0
    old, new = os.urandom(1 << 20), os.urandom(1000)
    seen = {"mv": set(), "cat": set()}
    for how, words in (("mv", "mv new .git/index"), ("cat", "cat new >> .git/index")):
        for n in range(6, 40, 3):
            for path, content in ((index, old), (project + "/new", new)):
                with open(path, "wb") as file:
                    file.write(content)
            scene.user.own(project)
            done = pf.run([scene.strike, "do", str(n), words, *scene.words("echo x > f")], scene.user, project, scene.env)
            assert done.status == 0, (how, n, done.said())
            layer = scene.listed()[0]["id"]
            kept = pf.read(os.path.join(scene.layers, layer, "base-index")) if os.path.exists(os.path.join(scene.layers, layer, "base-index")) else None
            assert kept in (None, old, new, old + new), (how, n, len(kept))
            seen[how].add(kept)
            scene.pinfold("discard", layer)
    assert old in seen["mv"] and old in seen["cat"], "never whole"
    assert None not in seen["mv"], "git replaces its index: what was open is whole"
    assert None in seen["cat"], "never changed while it was copied"


def put(path, text="x\n"):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def again(path, act):
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)
    act()


DAMAGES = {
    "a file in upper": lambda s, v: put(s + "/upper/evil"),
    "a directory in upper": lambda s, v: os.mkdir(s + "/upper/evil"),
    "an opaque upper": lambda s, v: os.setxattr(s + "/upper", "user.overlay.opaque", b"y"),
    "an attribute of work": lambda s, v: os.setxattr(s + "/work", "user.overlay.upper", b"y"),
    "upper is a link": lambda s, v: again(s + "/upper", lambda: os.symlink(v, s + "/upper")),
    "upper is missing": lambda s, v: os.rmdir(s + "/upper"),
    "work is a link": lambda s, v: again(s + "/work", lambda: os.symlink(v, s + "/work")),
    "work is not empty": lambda s, v: os.mkdir(s + "/work/work"),
    "work is a file": lambda s, v: again(s + "/work", lambda: put(s + "/work")),
    "the record is a link": lambda s, v: again(s + "/record", lambda: os.symlink(v + "/file", s + "/record")),
    "the record is somebody's": lambda s, v: again(s + "/record", lambda: os.link(v + "/file", s + "/record")),
    "the record is a FIFO": lambda s, v: again(s + "/record", lambda: os.mkfifo(s + "/record")),
    "a journal": lambda s, v: put(s + "/journal", "1\n"),
    "an undo": lambda s, v: os.mkdir(s + "/undo"),
    "base-git is a link": lambda s, v: os.symlink(v + "/file", s + "/base-git"),
    "the lock is missing": lambda s, v: os.unlink(s + "/lock"),
    "the lock is a link": lambda s, v: again(s + "/lock", lambda: os.symlink(v + "/file", s + "/lock")),
    "the lock is somebody's": lambda s, v: again(s + "/lock", lambda: os.link(v + "/file", s + "/lock")),
    "all of it is a link": lambda s, v: again(s, lambda: os.symlink(v, s)),
    "all of it is a file": lambda s, v: again(s, lambda: put(s)),
    "others may enter": lambda s, v: os.chmod(s, 0o755),
    "no part of it": lambda s, v: again(s, lambda: os.mkdir(s, 0o700)),
}


@test
@costly
def a_damaged_one_is_not_used(scene):
    """It is set aside, and nothing that it leads to is touched."""
    victim = scene.path + "/victim"
    os.mkdir(victim)
    put(victim + "/file", "")
    os.mkdir(victim + "/upper")
    scene.user.own(victim)
    put(scene.work + "/mine")
    before = pf.tree(victim)
    for what, damage in DAMAGES.items():
        scene.ready()
        damage(scene.spare, victim)
        if scene.user.uid:
            for path in (scene.spare, *(os.path.join(scene.spare, name) for name in (os.listdir(scene.spare) if os.path.isdir(scene.spare) else ()))):
                if not os.path.islink(path):
                    os.chown(path, scene.user.uid, scene.user.gid)
        try:
            scene.made()
            for name in ("record", "lock"):
                path = os.path.join(scene.spare, name)
                assert not os.path.exists(path) or os.stat(path).st_nlink == 1, name
            assert pf.tree(victim) == before, (before, pf.tree(victim))
        except AssertionError as e:
            raise AssertionError(what, *e.args) from e


@test
def anothers_is_not_used(scene):
    """As after a run with sudo that kept HOME."""
    if not pf.IS_ROOT or not scene.user.uid:
        return
    scene.ready()
    for top, folders, files in os.walk(scene.spare):
        for path in (top, *(os.path.join(top, name) for name in folders + files)):
            os.lchown(path, 0, 0)
    scene.made()
    scene.made()


@test
def boxes_at_once_have_a_layer_each(scene):
    for _ in range(3):
        scene.ready()
        children = [subprocess.Popen(scene.words(f"ls -A; echo {n} > f{n}"), cwd=scene.work, env=scene.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **scene.user.popen()) for n in range(8)]
        for child in children:
            said = child.communicate(timeout=pf.LIMIT)[0]
            assert child.returncode == 0 and not said, (child.returncode, said)
        layers = scene.listed()
        found = sorted(scene.pinfold("diff", "--names", one["id"]).split()[-1] for one in layers)
        assert found == [f"f{n}" for n in range(8)], found
        for one in layers:
            scene.pinfold("discard", one["id"])


@test
@costly
def a_kill_leaves_nothing_that_is_used(scene):
    """Before each call of pinfold itself that changes a file: of one that takes the spare, ends empty, and makes the next one."""
    put(scene.work + "/mine")
    scene.ready()
    run = scene.words("true")
    calls = 0
    for _ in range(5):  # how much is done beside the box differs
        counted = pf.run([scene.strike, "count", *run], scene.user, scene.work, scene.env)
        assert counted.status == 0, counted.said()
        calls = max(calls, int(counted.err.split()[-1]))
    assert calls > 7, counted.said()
    for n in range(1, calls + 1):
        done = pf.run([scene.strike, "kill", str(n), *run], scene.user, scene.work, scene.env)
        assert done.status in (0, 99), (n, done.said())
        unfinished = [one["id"] for one in scene.listed()]
        assert len(unfinished) <= 1, (n, unfinished)
        try:
            scene.made(before=unfinished)
        except AssertionError as e:
            raise AssertionError(n, *e.args) from e
        end = time.monotonic() + 30
        while any(pf.run([pf.PINFOLD, "discard", one], scene.user, scene.work, scene.env).status for one in unfinished) and time.monotonic() < end:
            time.sleep(0.1)  # what was killed may still be ending
    for name in os.listdir(scene.layers):
        os.utime(os.path.join(scene.layers, name), (1e9, 1e9))
    scene.pinfold("layers", "prune")
    assert os.listdir(scene.layers) == [], os.listdir(scene.layers)
    scene.made()


@test
def a_full_disk_takes_nothing(scene):
    """Without an inode left a box starts with what the last one has left, or says why not; the next one that has them makes its layer and a spare."""
    if not pf.IS_ROOT:
        return
    subprocess.run(["mount", "-t", "tmpfs", "-o", "nr_inodes=200,mode=0755", "none", scene.state], check=True)
    try:
        os.chown(scene.state, scene.user.uid, scene.user.gid)
        done = pf.run(scene.words("true"), scene.user, scene.work, scene.env)
        if b"overlay" in done.err and done.status:
            return  # before Linux 6.6 tmpfs keeps no attributes of users
        scene.ready()
        for n in range(200):
            try:
                put(f"{scene.state}/fill{n}", "")
            except OSError:
                break
        done = pf.run(scene.words("true"), scene.user, scene.work, scene.env)
        assert done.status == 0 or (done.status == 125 and b"pace" in done.err), done.said()
        for n in range(0, 60):
            os.unlink(f"{scene.state}/fill{n}")
        scene.made()
        scene.ready()
    finally:
        subprocess.run(["umount", scene.state], check=True)


def main():
    strike, chosen = sys.argv[1], sys.argv[2:]
    tally = pf.Tally()
    for user, pf.SCRATCH in pf.each_on_its_own():
        for name, function in TESTS.items():
            if not pf.is_for(user, function in COSTLY) or (chosen and not any(re.search(word, name) for word in chosen)):
                continue
            scene = Scene(user, name, strike)
            try:
                function(scene)
                tally.ok(f"{user.label}/{name}")
            except AssertionError as e:
                tally.fail(f"{user.label}/{name}", "not as it should be", "\n".join(str(word) for word in e.args))
            finally:
                scene.close()
    pf.finish(tally)


main()
