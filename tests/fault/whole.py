#!/usr/bin/env python3
"""The whole program with its n-th kernel call failing, for every n: whole.py

Right is: the command runs as if nothing had happened, or status 125 to 127 with one sentence; never a signal, a hang,
silence, or anything left behind. Ends after a long row of starts that met no failure: they make fewer calls than n.
"""
import atexit
import os
import re
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import pf  # noqa: E402

QUIET = 120  # starts without a failure that end the search
# What makes the box, whose calls fail, and how.
MODES = [("native", "PINFOLD_FAULT", "EIO", 5), ("native", "PINFOLD_FAULT", "ENOMEM", 12), ("native", "PINFOLD_FAULT", "EPERM", 1),
         ("bwrap", "PINFOLD_FAULT", "EIO", 5), ("bwrap", "PINFOLD_INIT_FAULT", "EIO", 5)]


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
        home = os.path.join(place, "home-" + user.label)
        work = os.path.join(home, "work")
        os.makedirs(work)
        user.own(home)
        for engine, variable, name, error in MODES:
            if engine != "native" and user.uid == 0 and pf.TEST_USER:
                continue  # the same calls as the user's
            n, quiet, failed, wrong = 0, 0, 0, []
            before = pf.temp_names(), pf.cgroups()
            while quiet < QUIET and len(wrong) < 5:
                n += 1
                pids = set(pf.children())
                done = pf.run([program, "run", "--engine", engine, "--workspace", work, "--", "sh", "-c", "echo in the box"], user=user, cwd=work,
                              env=pf.environment(user, home, **{variable: f"{n}:{error}"}), limit=60)
                said = [x for x in done.err.decode("utf-8", "replace").splitlines() if x.startswith("pinfold: ")]
                if done.status == 0 and done.out == b"in the box\n":
                    quiet += 1
                else:
                    quiet, failed = 0, failed + 1
                left = pf.leftovers(allowed=pids, patience=30)
                if done.late or done.status not in (0, 1, 125, 126, 127) or (done.status != 0 and not done.err.strip()) or (done.status >= 125 and not said):
                    wrong.append(f"call {n}: " + re.sub(r"\n", " | ", done.said()[:300]))
                elif done.status == 0 and done.out != b"in the box\n":
                    wrong.append(f"call {n}: success without the command's output")
                elif left:
                    wrong.append(f"call {n}: left over: {left}")
            left = [sorted(pf.came(old, look)) for old, look in zip(before, (pf.temp_names, pf.cgroups))]
            if any(left):
                wrong.append(f"left on the host: {left}")
            of = "init/" if variable == "PINFOLD_INIT_FAULT" else "" if engine == "native" else engine + "/"
            label = f"whole/{user.label}/{of}{name}"
            if wrong:
                tally.fail(label, f"{len(wrong)} of {n} starts went wrong", "\n".join(wrong))
            elif not failed:
                tally.fail(label, "no start failed: nothing was injected")
            else:
                tally.ok(label, f"{n - QUIET} calls, {failed} told")
    pf.finish(tally)


main()
