#!/usr/bin/env python3
"""ports.py N: for a suite in shell, prints N ports on one line and holds them (pf.held_port) until it is killed."""
import signal
import sys

import pf

print(*[pf.held_port() for _ in range(int(sys.argv[1]))], flush=True)
signal.pause()
