"""SIGKILL of pinfold before a system call of `checkout`, `start` and `stop`: the next one completes what was begun, and nothing stays behind.
PINFOLD_BRANCH_KILLS: before each Nth of those that make or end something (tests/layer/strike.c); 1: before all."""
import json
import os
import shutil
import subprocess

import pf
import verify

EVERY = int(os.environ.get("PINFOLD_BRANCH_KILLS") or ("5" if os.environ.get("PINFOLD_TEST_ALL") == "1" else "23"))


def strike_program():
    out = os.path.join(pf.SCRATCH, "strike-branches")
    if not os.path.exists(out):
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "layer", "strike.c")
        subprocess.run(["cc", "-O1", "-Wall", "-Wextra", "-Werror", "-o", out, source], check=True)
    return out


def programs(s):
    """Processes of this user's home that are pinfold, and so would outlive a box."""
    found = set()
    for pid in pf.of_this_suite():
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if f"HOME={s.home}".encode() in file.read().split(b"\0") and os.path.basename(os.readlink(f"/proc/{pid}/exe")) == "pinfold":
                    found.add(pid)
        except OSError:
            continue
    return found


def at_each_call(s, _hand):
    top = s.checkout("kills", ("one",))
    strike, shelf = strike_program(), s.shelf(top)
    before = programs(s)

    def pinfold(how, *words):
        return pf.run([strike, *how, pf.PINFOLD, *words], s.user, top, s.env)

    def stopped():
        done = s.do(top, "stop", "--branch", "one")
        assert done.status in (0, 4), done.said()
        verify.wait_for(lambda: not programs(s) - before)

    def things():
        """What stays of a branch whose box has ended, without what git keeps."""
        with os.scandir(shelf) as entries:
            names = {e.name: sorted(os.listdir(e.path)) if e.is_dir() and e.name != "shelf" else None for e in entries if e.name != "making"}  # which tells the next that prepares of the kill
        listed = [(p["branch"], p["state"]) for p in json.loads(s.good(top, "list", "--json"))["projects"] if p.get("branch")]
        return names, listed, sorted(os.listdir(shelf + "/shelf/worktrees"))

    def whole(after):
        done = s.do(top, "start", "--branch", "one")
        assert done.status == 0, (after, done.said())
        done = s.inside(top, "one", "git symbolic-ref --short HEAD; git ls-remote -q host refs/heads/one | cut -f2; cat a.txt")
        assert done.out.decode().split() == ["one", "refs/heads/one", "one"], (after, done.said())
        stopped()
        assert things() == kept, (after, things(), kept)

    s.good(top, "start", "--branch", "one")
    stopped()
    kept = things()
    for words, prepare in ((("checkout", "one"), lambda: shutil.rmtree(shelf)), (("start", "--branch", "one"), stopped), (("stop", "--branch", "one"), lambda: s.good(top, "start", "--branch", "one"))):
        prepare()
        done = pinfold(("count-steps",), *words)
        assert done.status == 0, done.said()
        calls = int(done.err.decode().rsplit("\n", 2)[-2])
        assert calls >= 5, done.said()
        for n in range(1 + (s.user.uid != 0) * (EVERY // 2), calls + 1, EVERY):
            stopped()
            prepare()
            done = pinfold(("kill-steps", str(n)), *words)
            if done.status != 99:  # once in a while it takes a call less
                assert done.status == 0 and n > calls - 5, (words, n, calls, done.said())
                continue
            if words[0] == "stop":
                stopped()
            whole((words, n, done.err.decode().rsplit("\n", 2)[-2]))
    stopped()
    s.clean(top)


TESTS = {"killed-at-each-call": at_each_call}
