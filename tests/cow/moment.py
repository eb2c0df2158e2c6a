#!/usr/bin/env python3
"""What counts as changed "since the box began": all that the host changes once the box has looked, nothing that it had written before.
The kernel counts times of files in ticks of some milliseconds, in which both may fall.

moment.py [TEST-REGEX...]. Each test runs as root and as the ordinary user.
"""
import json
import os
import re
import select
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import pf  # noqa: E402

TESTS = {}
ROUNDS = 20
BEFORE, MEANWHILE, LATER = 10, 80, 5  # files that the host changes before pinfold is started, until the box has looked, and right after that
# The box writes down which files have the host's change, says so, and changes all of them itself.
BOX = "grep -l new f* > seen; echo looked; read go; for f in f*; do echo box >> $f; done"


def test(function):
    TESTS[function.__name__.replace("_", "-")] = function
    return function


class Scene:
    def __init__(self, user, name):
        self.user, self.path = user, os.path.join(pf.SCRATCH, f"moment-{user.label}-{name}")
        self.home, self.work, self.state = self.path + "/home", self.path + "/work", self.path + "/state"
        for path in (self.home, self.work, self.state):
            os.makedirs(path)
        user.own(self.path)
        self.env = pf.environment(user, self.home, XDG_STATE_HOME=self.state)

    def pinfold(self, *words):
        done = pf.run([pf.PINFOLD, *words], self.user, self.work, self.env)
        assert done.status == 0, (words, done.said())
        return done.out.decode()

    def write(self, name, text):
        with open(os.path.join(self.work, name), "w", encoding="ascii") as file:
            file.write(text)


def changed_around_a_start(scene):
    """A box starts while the host changes one file after the other: (those changed before, those whose change the box has not seen,
    those that are in conflict)."""
    names = [f"f{n:03}" for n in range(BEFORE + MEANWHILE + LATER)]
    for name in names:
        scene.write(name, "old\n")
    for name in names[:BEFORE]:
        scene.write(name, "new\n")
    words = [pf.PINFOLD, "run", "-q", "--no-layers", "--cow", "--", "sh", "-c", BOX]
    changed = set(names[:BEFORE])
    with subprocess.Popen(words, cwd=scene.work, env=scene.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **scene.user.popen()) as box:
        for name in names[BEFORE:BEFORE + MEANWHILE]:
            if select.select([box.stdout], [], [], 0.0001)[0]:  # spread over the start
                break
            scene.write(name, "new\n")
            changed.add(name)
        assert box.stdout.readline() == b"looked\n"
        for name in names[-LATER:]:
            scene.write(name, "new\n")
            changed.add(name)
        box.communicate(b"go\n", timeout=pf.LIMIT)
    assert box.returncode == 0, box.returncode
    changes = {c["path"]: c for c in json.loads(scene.pinfold("diff", "--json"))["changes"]}
    upper = [os.path.join(top, "seen") for top, _, files in os.walk(scene.state) if "seen" in files]
    with open(upper[0], encoding="ascii") as file:
        seen = set(file.read().split())
    scene.pinfold("discard")
    return set(names[:BEFORE]), changed - seen, {name for name in names if changes[name].get("conflict")}


@test
def what_was_written_before_is_no_conflict(scene):
    """And what the box has not seen is one: the host's change of the same tick, too."""
    for n in range(BEFORE + MEANWHILE + LATER):
        scene.write(f"f{n:03}", "")
    scene.user.own(scene.work)
    for n in range(ROUNDS):
        before, unseen, conflicts = changed_around_a_start(scene)
        assert not before & conflicts, (n, "changed before the start, and in conflict", sorted(before & conflicts))
        assert unseen <= conflicts, (n, "changed after the box had looked, and no conflict", sorted(unseen - conflicts))
        assert unseen, (n, "the box has seen all")


@test
def what_was_made_before_is_no_conflict(scene):
    """The same with directories, whose times are those of what is in them."""
    for n in range(ROUNDS):
        os.makedirs(f"{scene.work}/d{n}/e")
        for name in (f"d{n}", f"d{n}/e"):
            os.chown(os.path.join(scene.work, name), scene.user.uid, scene.user.gid)
        scene.write(f"d{n}/e/f", "old\n")
        scene.user.own(f"{scene.work}/d{n}/e/f")
        scene.pinfold("run", "-q", "--no-layers", "--cow", "--", "sh", "-c", f"echo box >> d{n}/e/f; echo box > d{n}/e/g")
        scene.pinfold("apply", "--all")
        for name in ("f", "g"):
            with open(f"{scene.work}/d{n}/e/{name}", encoding="ascii") as file:
                assert file.read().endswith("box\n"), (n, name)


@test
def what_is_changed_as_it_begins_is_a_conflict(scene):
    """The host acts at once when the command says that it runs."""
    for n in range(ROUNDS):
        scene.write("f", "old\n")
        scene.user.own(scene.work + "/f")
        words = [pf.PINFOLD, "run", "-q", "--no-layers", "--cow", "--", "sh", "-c", "read was < f; echo looked; read go; echo $was >> f"]
        with subprocess.Popen(words, cwd=scene.work, env=scene.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **scene.user.popen()) as box:
            assert box.stdout.readline() == b"looked\n"
            scene.write("f", "new\n")
            box.communicate(b"go\n", timeout=pf.LIMIT)
        changes = json.loads(scene.pinfold("diff", "--json"))["changes"]
        assert [c["path"] for c in changes if c.get("conflict")] == ["f"], (n, changes)
        scene.pinfold("discard")


def main():
    chosen = sys.argv[1:]
    tally = pf.Tally()
    for user, pf.SCRATCH in pf.each_on_its_own():
        for name, function in TESTS.items():
            if chosen and not any(re.search(word, name) for word in chosen):
                continue
            try:
                function(Scene(user, name))
                tally.ok(f"{user.label}/{name}")
            except AssertionError as e:
                tally.fail(f"{user.label}/{name}", "not as it should be", "\n".join(str(word) for word in e.args))
    pf.finish(tally)


main()
