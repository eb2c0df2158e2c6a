"""Boxes of one project that begin at the same moment. strace holds one of them up at the call that matters, so that it happens each time."""
import contextlib
import fcntl
import glob
import os
import shutil
import subprocess
import time

import own
import pf
import verify

HELD = 3  # seconds; what is waited for is seen in a hundredth of that


def held_up(s, top, inject, *words, all_of_it=False):
    """A pinfold whose calls strace keeps waiting; all_of_it: those of what it starts, too, for the end of which strace waits."""
    call = inject.split(":")[0]
    argv = ["strace", *["-f"] * all_of_it, "-qq", "-o", "/dev/null", "-e", "trace=" + call, "-e", "inject=" + inject, pf.PINFOLD, *words]
    return subprocess.Popen(argv, cwd=top, env=s.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **s.user.popen())


def ended(child):
    said = child.communicate(timeout=pf.LIMIT)[0].decode()
    return pf.Done(child.returncode, said.encode(), b"")


def served_when_told(s, _hand):
    """Whoever says that a branch has begun says so when its remote can be reached, although another begins to serve it."""
    top = s.checkout("begun")
    s.good(top, "start", "--branch", "feature/one")
    servers = [pid for pid in pf.of_this_suite() if serves(s, top, pid)]
    assert len(servers) == 1, servers
    os.kill(servers[0], 9)
    verify.wait_for(lambda: not os.path.exists(f"/proc/{servers[0]}"))
    first = held_up(s, top, f"listen:delay_enter={HELD * 1000000}", "start", "--branch", "feature/one")
    verify.wait_for(lambda: first.poll() is not None or os.path.exists(s.shelf(top) + "/remote/feature__one/socket.new"))
    assert first.poll() is None, ended(first).said()
    done = s.do(top, "start", "--branch", "feature/one")
    pushed = s.inside(top, "feature/one", "git commit -q --allow-empty -m x && git push host feature/one 2>&1")
    one = ended(first)
    assert (done.status, one.status) == (0, 0) and b"served" not in done.err + one.out, (done.said(), one.said())
    assert pushed.status == 0, pushed.said()
    s.clean(top)


def serves(s, top, pid):
    try:
        return any(os.readlink(f"/proc/{pid}/fd/{n}").startswith(s.shelf(top) + "/remote/") for n in os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return False


def swept(s, _hand):
    """A checker's directory is swept before it is locked, by somebody who takes a second for it: the checker makes another."""
    top, swept_first = own.scene(s, "swept"), False
    for n in range(10):  # commits, until one is seen before it has its lock: on a busy machine the first may have it by then
        first = held_up(s, top, "flock:delay_enter=700000", "run", "--", "git", "commit", "-qn", "--allow-empty", "-m", f"fix: x {n}", all_of_it=True)
        at = verify.wait_for(lambda child=first: glob.glob(s.shelf(top) + "/checks/run-*") or child.poll() is not None)
        assert at is not True, ended(first).said()
        with contextlib.suppress(FileNotFoundError, BlockingIOError):
            lock = os.open(at[0], os.O_RDONLY)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                swept_first = True
                time.sleep(1)  # the sweeper's
                shutil.rmtree(at[0], ignore_errors=True)
            finally:
                os.close(lock)
        done = ended(first)
        assert done.status == 0 and s.git(top, "log", "-1", "--format=%s", "main") == f"fix: x {n}", done.said()
        if swept_first:
            break
    assert swept_first
    assert not os.path.exists(s.shelf(top)), os.listdir(s.shelf(top))
    s.clean(top)


TESTS = {} if pf.have("strace") else {"beside-served": served_when_told, "beside-swept": swept}
