"""Programs on a terminal of their own.

When the leader of a terminal's session ends, the kernel throws away what nobody has read yet (tty_ldisc_hangup). So the leader here
is a process that stays: it waits for the program, leaves the terminal, on which the reader then finds the end, and ends with
the program's status as soon as somebody asks for that.
"""
import errno
import fcntl
import os
import pty
import signal
import subprocess
import termios

_HELD = {}  # leader's pid -> the pipe whose closing lets it end
_SENT = (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGHUP)  # the terminal sends these to the leader, too


def _lead(hold):
    """In the leader: returns in a child of it, which is the program; the leader itself never returns."""
    for one in _SENT:
        signal.signal(one, signal.SIG_IGN)
    program = os.fork()
    if program == 0:
        for one in _SENT:
            signal.signal(one, signal.SIG_DFL)
        return
    os.closerange(3, hold)
    os.closerange(hold + 1, 65536)
    _, status = os.waitpid(program, 0)
    for fd in (0, 1, 2):
        os.close(fd)
    os.read(hold, 1)
    if os.WIFSIGNALED(status):
        if os.WTERMSIG(status) != signal.SIGKILL:
            signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
        os.kill(os.getpid(), os.WTERMSIG(status))
    os._exit(os.waitstatus_to_exitcode(status))


def fork():
    """Like pty.fork(): (0, -1) in the program, (pid, terminal) outside. status(pid) gives the program's status."""
    hold, release = os.pipe()
    pid, master = pty.fork()
    if pid == 0:
        _lead(hold)
        return 0, -1
    os.close(hold)
    _HELD[pid] = release
    return pid, master


def program(pid):
    """The program's own process, as long as it lives."""
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return int(file.read().split()[0])


def let_go(pid):
    """Everything was read: the leader may end."""
    if pid in _HELD:
        os.close(_HELD.pop(pid))


def status(pid):
    let_go(pid)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def read(master):
    """What came meanwhile, or b"" when nobody has the terminal open any more.

    Linux looks for bytes first and for the end after that. What is written and closed in between is missed by the first read,
    which says EIO, and found by the next one.
    """
    for _ in range(2):
        try:
            return os.read(master, 65536)
        except OSError as why:
            if why.errno != errno.EIO:
                raise
    return b""


class Popen(subprocess.Popen):
    """A program whose standard descriptors and controlling terminal are `slave`, which this closes here."""

    def __init__(self, argv, slave, **more):
        hold, release = os.pipe()

        def lead():
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
            _lead(hold)
        super().__init__(argv, stdin=slave, stdout=slave, stderr=slave, preexec_fn=lead, **more)
        os.close(hold)
        os.close(slave)
        _HELD[self.pid] = release

    def wait(self, timeout=None):
        let_go(self.pid)
        return super().wait(timeout)

    def has_ended(self):
        """The program has; what it wrote can still be read."""
        try:
            program(self.pid)
        except (IndexError, OSError):
            return True
        return False

    def kill_program(self):
        """As kill(), which would hit the leader."""
        os.kill(program(self.pid), signal.SIGKILL)
