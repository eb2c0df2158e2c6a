#!/usr/bin/env python3
"""The whole program with its n-th kernel call failing, for every n: whole.py

Right is: the command runs as if nothing had happened, or status 125 to 127 with one sentence; never a signal, a hang,
silence, or anything left behind.

With the first error of an engine every call fails, until a long row of starts has met no failure: they make fewer calls than n.
What it has shown spares starts with the others, which fail the same calls:
- ENOMEM is told from other errors only where those are borne, so only calls fail with it that the first error did not end, and
  their neighbours.
- EPERM is borne in many places, so all calls fail with it but those within a row that the first error ended with one sentence:
  a loop. Of it the calls at both ends fail.
Two starts do not make quite the same calls: a row's ends are NEAR calls long.

With PINFOLD_TEST_ALL=1 (the soak) the search goes on for longer, and root's starts fail in every way, too.
"""
import atexit
import functools
import os
import re
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import pf  # noqa: E402

ALL = os.environ.get("PINFOLD_TEST_ALL") == "1"
QUIET = 120 if ALL else 40  # starts without a failure that end the search
NEAR = 3
# What makes the box, whose calls fail, and how; the first of an engine's fails all of them.
MODES = [("native", "PINFOLD_FAULT", "EIO", 5), ("native", "PINFOLD_FAULT", "ENOMEM", 12), ("native", "PINFOLD_FAULT", "EPERM", 1),
         ("bwrap", "PINFOLD_FAULT", "EIO", 5), ("bwrap", "PINFOLD_INIT_FAULT", "EIO", 5)]


class Scene:
    def __init__(self, program, place, user):
        self.program, self.user = program, user
        self.home = os.path.join(place, "home-" + user.label)
        self.work = os.path.join(self.home, "work")
        os.makedirs(self.work)
        user.own(self.home)

    def start(self, engine, variable, nth, error):
        """(what it said when it ended otherwise than without a failure, what was wrong)"""
        pids = set(pf.children())
        done = pf.run([self.program, "run", "--engine", engine, "--workspace", self.work, "--", "sh", "-c", "echo in the box"], user=self.user, cwd=self.work,
                      env=pf.environment(self.user, self.home, **{variable: f"{nth}:{error}"}), limit=120)
        text = done.err.decode("utf-8", "replace")
        said = [x for x in text.splitlines() if x.startswith("pinfold: ")]
        fine = done.status == 0 and done.out == b"in the box\n"
        left = pf.leftovers(allowed=pids, patience=30)
        wrong = None
        if done.late or done.status not in (0, 1, 125, 126, 127) or (done.status != 0 and not done.err.strip()) or (done.status >= 125 and not said):
            wrong = re.sub(r"\n", " | ", done.said()[:2000])
        elif done.status == 0 and done.out != b"in the box\n":
            wrong = "success without the command's output"
        elif left:
            wrong = f"left over: {left}"
        return None if fine else f"{done.status} " + re.sub(r"\d+|'[^']*'|/[^\s:]*", "#", text.strip()), wrong


def spared(nth, name, first):
    """Has the first error's search shown what this call's failure would? first: what was said for each call."""
    near = first[max(0, nth - 1 - NEAR):nth + NEAR]
    return None not in near and len(near) == 2 * NEAR + 1 and (name == "ENOMEM" or len(set(near)) == 1)


def search(scene, mode, first):
    """(what was said for each call, starts, what went wrong); first: what the first error's search said, if there was one."""
    engine, variable, name, error = mode
    nth, starts, quiet, told, wrong = 0, 0, 0, [], []
    end = len(first) - QUIET + NEAR if first else None
    while (nth < end or quiet < 2 * NEAR if first else quiet < QUIET) and len(wrong) < 5:
        nth += 1
        if first and spared(nth, name, first):
            told.append("")
            continue
        starts += 1
        said, complaint = scene.start(engine, variable, nth, error)
        told.append(said)
        quiet = 0 if said else quiet + 1
        if complaint:
            wrong.append(f"call {nth}: {complaint}")
    return told, starts, wrong


def main():
    pf.become_subreaper()
    tally = pf.Tally()
    program = os.path.join(pf.SCRATCH, "pinfold-faults")
    shutil.copy(os.path.join(pf.SOURCE, "build-faults", "pinfold"), program)
    shutil.copy(os.path.join(pf.SOURCE, "build-faults", "pinfold-init"), pf.SCRATCH)
    # Below /var/lib, which a box does not show whole, a start makes three times as many calls.
    place = tempfile.mkdtemp(prefix="pinfold-fault-", dir="/srv") if os.getuid() == 0 and os.path.isdir("/srv") else pf.SCRATCH
    os.chmod(place, 0o755)
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    for user in pf.users():
        scene, first = Scene(program, place, user), {}
        for mode in MODES:
            engine, variable, name, _ = mode
            if user.uid == 0 and pf.TEST_USER and (engine != "native" or (name != "EIO" and not ALL)):
                continue  # nearly the same calls as the user's
            before = pf.temp_names(), pf.cgroups(user.uid)
            told, starts, wrong = search(scene, mode, first.get((engine, variable)))
            first.setdefault((engine, variable), told)
            left = [sorted(pf.came(old, look)) for old, look in zip(before, (pf.temp_names, functools.partial(pf.cgroups, user.uid)))]
            if any(left):
                wrong.append(f"left on the host: {left}")
            of = "init/" if variable == "PINFOLD_INIT_FAULT" else "" if engine == "native" else engine + "/"
            label = f"whole/{user.label}/{of}{name}"
            if wrong:
                tally.fail(label, f"{len(wrong)} of {starts} starts went wrong", "\n".join(wrong))
            elif not any(told):
                tally.fail(label, "no start failed: nothing was injected")
            else:
                tally.ok(label, f"{starts} starts, {sum(map(bool, told))} told")
    pf.finish(tally)


main()
