#!/usr/bin/env python3
"""The vm engine's start beside a bare qemu's: bench/vm.py PINFOLD [KERNEL] [ROUNDS]

Bare: the same machine (the words of `pinfold show-run`, its kernel and initial file system) without a box around it, until
pinfold-init in it speaks for the first time. pinfold: the whole of `pinfold run --engine vm -- true`. By turns; medians."""
import os
import re
import shlex
import socket
import statistics
import subprocess
import sys
import time

pinfold = os.path.abspath(sys.argv[1])
options = ["--engine", "vm"] + (["--vm-kernel", sys.argv[2]] if len(sys.argv) > 2 and sys.argv[2] else [])
rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 5
state = os.path.join(os.environ.get("XDG_STATE_HOME", os.path.expanduser("~/.local/state")), "pinfold/vm")


def ours():
    began = time.monotonic()
    subprocess.run([pinfold, "run", "-q", *options, "--", "true"], check=True, stdin=subprocess.DEVNULL)
    return time.monotonic() - began


def bare():
    words = shlex.split(subprocess.check_output([pinfold, "show-run", *options], text=True).replace("\\\n", " "))
    here, there = socket.socketpair()
    words = [re.sub(r"^/run/pinfold-vm/", state + "/", w) for w in words]
    words = [w.replace("fd=0", f"fd={there.fileno()}").replace("path=/proc/self/fd/2", "path=/dev/null") for w in words]
    began = time.monotonic()
    machine = subprocess.Popen(words, pass_fds=[there.fileno()], stdin=subprocess.DEVNULL)
    here.recv(1)
    took = time.monotonic() - began
    machine.kill()
    machine.wait()
    return took


ours()  # makes what is booted
took = {"bare": [], "pinfold": []}
for _ in range(rounds):
    took["bare"].append(bare())
    took["pinfold"].append(ours())
for name, all_of_it in took.items():
    print(f"{name:8} median {statistics.median(all_of_it):.3f} s, least {min(all_of_it):.3f} s, {len(all_of_it)} rounds")
print(f"least against least: {(min(took['pinfold']) - min(took['bare'])) * 1000:+.0f} ms")
