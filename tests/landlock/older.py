#!/usr/bin/env python3
"""older.py ABI COMMAND...: runs a command and its descendants on a Landlock of an older ABI. x86-64 only.

Debian has kernels with ABI 2 (Linux 6.1) and from 6 on; this stands in for those between. A tracer (a supervisor by seccomp
notification would take the place of the box's own) answers each landlock_create_ruleset(2) of theirs as that kernel would: its ABI, EINVAL for flags and for
rights or scopes that came later, E2BIG for members that came later and are not zero. What is left is done by this kernel, for which a
right that a ruleset does not handle is as unknown as for the older one.
"""
import ctypes
import os
import signal
import struct
import sys

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
libc.ptrace.restype = ctypes.c_long
CONT, GETREGS, SETREGS, SEIZE, LISTEN = 7, 12, 13, 0x4206, 0x4208
FORK, VFORK, CLONE, SECCOMP, STOP = 1, 2, 3, 7, 128
OPTIONS = 1 << FORK | 1 << VFORK | 1 << CLONE | 1 << SECCOMP | 0x100000  # EXITKILL
R10, RAX, RDX, RSI, RDI, ORIG_RAX, REGISTERS = 7, 10, 12, 13, 14, 15, 27
CREATE_RULESET, EINVAL, E2BIG, WALL = 444, 22, 7, 0x40000000
# linux/landlock.h: file rights, network rights, scopes, and the size of struct landlock_ruleset_attr
KNOWN = {1: (0x1fff, 0, 0, 8), 2: (0x3fff, 0, 0, 8), 3: (0x7fff, 0, 0, 8), 4: (0x7fff, 3, 0, 16), 5: (0xffff, 3, 0, 16), 6: (0xffff, 3, 3, 24)}


def ptrace(request, pid, address=None, data=None):
    if libc.ptrace(request, pid, address, data) < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"ptrace {request:#x}: {os.strerror(number)}")


def answer(abi, pid, attribute, size, flags):
    """What the older kernel returns at once; None: it creates a ruleset."""
    if flags:
        return abi if flags == 1 and not attribute and not size else -EINVAL
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        memory.seek(attribute)
        text = memory.read(min(size, 4096)).ljust(24, b"\0")
    *known, length = KNOWN[abi]
    if any(text[length:]):
        return -E2BIG
    asked = struct.unpack("=3Q", text[:24])
    return -EINVAL if any(have & ~may for have, may in zip(asked, known)) else None


def at_call(abi, pid):
    registers = (ctypes.c_uint64 * REGISTERS)()
    ptrace(GETREGS, pid, None, ctypes.addressof(registers))
    said = answer(abi, pid, registers[RDI], registers[RSI], registers[RDX] & 0xffffffff)
    if said is not None:  # the call is left out
        registers[ORIG_RAX], registers[RAX] = 2 ** 64 - 1, said % 2 ** 64
        ptrace(SETREGS, pid, None, ctypes.addressof(registers))


def trace_calls():
    program = [(0x20, 0, 0, 0), (0x15, 0, 1, CREATE_RULESET), (0x06, 0, 0, 0x7ff00000), (0x06, 0, 0, 0x7fff0000)]
    code = b"".join(struct.pack("=HBBI", *row) for row in program)
    room = ctypes.create_string_buffer(code, len(code))
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.create_string_buffer(struct.pack("@HxxxxxxQ", len(program), ctypes.addressof(room)))):
        raise OSError(ctypes.get_errno(), "cannot trace calls")


def main():
    abi = int(sys.argv[1])
    ready, go = os.pipe()
    first = os.fork()
    if first == 0:
        os.close(go)
        os.read(ready, 1)
        os.close(ready)
        trace_calls()
        os.execvp(sys.argv[2], sys.argv[2:])
    os.close(ready)
    ptrace(SEIZE, first, None, OPTIONS)
    os.close(go)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda one, _: os.kill(first, one))
    end = 0
    while True:
        try:
            pid, status = os.waitpid(-1, WALL)
        except ChildProcessError:
            break
        if not os.WIFSTOPPED(status):
            end = status if pid == first else end
            continue
        event, number = status >> 16, os.WSTOPSIG(status)
        try:
            if event == SECCOMP:
                at_call(abi, pid)
            stopped = event == STOP and number in (signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)
            ptrace(LISTEN if stopped else CONT, pid, None, 0 if event else number)
        except ProcessLookupError:  # killed meanwhile
            pass
    if os.WIFSIGNALED(end):
        signal.signal(os.WTERMSIG(end), signal.SIG_DFL)
        os.kill(os.getpid(), os.WTERMSIG(end))
    sys.exit(os.WEXITSTATUS(end))


if __name__ == "__main__":
    main()
