#!/usr/bin/env python3
"""Runs one program in a session of its own, and ends everything that it has started.

    suite.py SECONDS PROGRAM [ARGUMENT...]

The status is the program's: 124 when it took longer than SECONDS, 128 and the signal's number when a signal ended it or this.
What the program starts may leave its session and lose its parent; it becomes a child of this process then, and is found. When the
program has ended by itself and something is left, that is said in a line FAIL (tests/lib/tally.py gives it to the failed row that
had started it). PINFOLD_SUITE is the number of this process, below which all of it is.
"""
import ctypes
import glob
import os
import signal
import subprocess
import sys
import time

ASKED = 5.0  # seconds that whoever is told to end has for it
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
PATIENCE = float(os.environ.get("PINFOLD_LEFT_SECONDS", "30"))  # that what still ends when its suite has ended may take
ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
statuses = {}


def reap():
    """What has ended goes at once: a test asks whether the process that it has orphaned is still there."""
    try:
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            statuses[ended[0]] = os.waitstatus_to_exitcode(ended[1])
    except ChildProcessError:
        pass


def descendants():
    """{pid: command} of what lives below this process."""
    reap()
    below, level, found = {}, [os.getpid()], {}
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(path, "rb") as text:
                head, _, tail = text.read().rpartition(b")")
        except OSError:
            continue
        state, parent = tail.split()[:2]
        pid = int(path.split("/")[2])
        below.setdefault(int(parent), []).append(pid)
        if state != b"Z":
            found[pid] = head.partition(b"(")[2].decode(errors="replace")
    alive = {}
    while level:
        level = [pid for parent in level for pid in below.get(parent, ())]
        alive.update((pid, found[pid]) for pid in level if pid in found)
    return alive


def send(number, pids, call=os.kill):
    for pid in pids:
        try:
            call(pid, number)
        except (ProcessLookupError, PermissionError):
            pass


def gone(seconds, pids=None):
    """Waits until no descendant, or none of pids, is left; the last look."""
    end, pause = time.monotonic() + seconds, 0.01
    while (left := {p: n for p, n in descendants().items() if pids is None or p in pids}) and time.monotonic() < end:
        time.sleep(pause)
        pause = min(2 * pause, 0.2)  # all of /proc is read each time
    return left


def end_all():
    """Ends what is left: it is asked, then killed until nothing is there."""
    send(signal.SIGTERM, descendants())
    left, end = gone(ASKED), time.monotonic() + ASKED
    while left and time.monotonic() < end:
        send(signal.SIGKILL, left)
        left = gone(0.1)


def start(argv):
    def unblock():
        for one in (signal.SIGINT, signal.SIGQUIT):
            signal.signal(one, signal.SIG_DFL)  # a script's background has them ignored
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
    try:
        return subprocess.Popen(argv, start_new_session=True, preexec_fn=unblock)  # pylint: disable=consider-using-with,subprocess-popen-preexec-fn
    except OSError as why:
        print(f"FAIL whole-suite: {argv[0]} cannot be started: {why.strerror}")
        sys.exit(1)


def main():
    limit, argv = float(sys.argv[1]), sys.argv[2:]
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    for one in (*ENDS, signal.SIGCHLD):  # one that is ignored would not be waited for
        signal.signal(one, lambda *_: None)
    waited = {*ENDS, signal.SIGCHLD}
    signal.pthread_sigmask(signal.SIG_BLOCK, waited)
    os.environ["PINFOLD_SUITE"] = str(os.getpid())
    started = start(argv)  # kept: one that nobody holds takes its own status away
    child = started.pid
    end, status = time.monotonic() + limit, None
    while status is None:
        got = signal.sigtimedwait(waited, max(0.0, end - time.monotonic()))
        reap()
        if got and got.si_signo != signal.SIGCHLD:
            status = 128 + got.si_signo
        elif child in statuses:
            status = statuses[child] if statuses[child] >= 0 else 128 - statuses[child]
        elif time.monotonic() >= end:
            status = 124
    if child not in statuses:
        # Asked as a group, so that a shell's own trap is not kept waiting for the program that it runs.
        send(signal.SIGTERM, [child], os.killpg)
        gone(ASKED, [child])
        end_all()
    elif left := gone(PATIENCE):
        print("FAIL left-running: these ran on when the suite had ended: " + ", ".join(f"{name} ({pid})" for pid, name in left.items()), flush=True)
        end_all()
        status = status or 1
    sys.exit(status)


main()
