#!/usr/bin/env python3
"""ports.py N: for a suite in shell, prints N ports on one line and holds them (pf.held_port) until it is killed."""
import os
import signal
import sys

import pf

# One write: with PYTHONUNBUFFERED print() makes one of each part, and who waits for the first byte reads half of the line.
os.write(1, (" ".join(str(pf.held_port()) for _ in range(int(sys.argv[1]))) + "\n").encode())
signal.pause()
