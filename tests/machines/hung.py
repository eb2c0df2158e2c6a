#!/usr/bin/env python3
"""hung.py DIRECTORY UID GID ACTION COMMAND...: runs a command as that user beside a FUSE file system whose server has stopped answering.

When the command has said on standard error what it waits for, ACTION follows: `interrupt` it, or `abort` the mount as an administrator
would, and it ends by itself. Prints its status, and passes on what it printed. To be run in a mount namespace of its own.
"""
import ctypes
import os
import signal
import struct
import subprocess
import sys

INIT = 26  # fuse_opcode


def hang(directory, uid):
    """Mounts there and answers the first request, without which the kernel would not take the server for one; no other."""
    fd = os.open("/dev/fuse", os.O_RDWR)
    words = f"fd={fd},rootmode=40000,user_id={uid},group_id=0,allow_other".encode()
    if ctypes.CDLL(None).mount(b"hung", directory.encode(), b"fuse", 6, words) != 0:
        sys.exit("hung.py: cannot mount")
    asked = os.read(fd, 1 << 20)
    _, opcode, unique = struct.unpack_from("<IIQ", asked)
    if opcode != INIT:
        sys.exit(f"hung.py: request {opcode} came first")
    answer = struct.pack("<IIIIHHII", 7, 31, 1 << 17, 0, 12, 9, 1 << 16, 1).ljust(64, b"\0")  # fuse_init_out
    os.write(fd, struct.pack("<IiQ", 16 + len(answer), 0, unique) + answer)
    return fd


def main(directory, uid, gid, action, *command):
    server = hang(directory, uid)
    become = {"user": int(uid), "group": int(gid), "extra_groups": []} if int(uid) else {}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, **become) as child:
        line = child.stderr.readline()
        if action == "interrupt":
            os.killpg(child.pid, signal.SIGINT)
        else:
            subprocess.run(["umount", "-f", directory], check=False, stderr=subprocess.DEVNULL)
        out, err = child.communicate()
    os.close(server)
    sys.stderr.buffer.write(line + err)
    sys.stdout.buffer.write(out + f"status {child.returncode}\n".encode())


main(*sys.argv[1:])
