#!/usr/bin/env python3
"""
Runs a command on a terminal of 33 rows and 99 columns, types a line once it was asked for, makes it 44 rows and 55 columns
when "resize" was said, prints what it said and its status.
"""
import fcntl
import os
import select
import struct
import sys
import termios
import time

import leader

pid, master = leader.fork()
if pid == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 99, 0, 0))
    os.execvp(sys.argv[1], sys.argv[1:])
said, typed, resized, until = b"", False, False, time.monotonic() + 100
while time.monotonic() < until:
    if select.select([master], [], [], 0.5)[0]:
        try:
            more = os.read(master, 4096)
        except OSError:
            break
        if not more:
            break
        said += more
    if b"33 99" in said and not typed:
        os.write(master, b"typed\n")
        typed = True
    if b"resize" in said and not resized:
        fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 44, 55, 0, 0))
        resized = True
status = leader.status(pid)
print(said.decode(errors="replace").replace("\r", ""))
print("status", status)
