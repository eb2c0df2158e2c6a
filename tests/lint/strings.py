#!/usr/bin/env python3
"""A text that fills its array of char leaves no room for the NUL, and C says nothing: the next field is read as a part of it.

gcc warns of it from 15 on (-Wunterminated-string-initialization); every gcc does as of something that C++ refuses, among other things. Each source of the
product is read once more for that: strings.py BUILD
"""
import concurrent.futures
import json
import os
import shlex
import subprocess
import sys


def only_read(command):
    """The compiler's command without what it writes."""
    words, skip = [], False
    for word in shlex.split(command):
        if skip or word in ("-o", "-MF", "-MQ"):
            skip = not skip
        elif not word.startswith(("-MD", "-O", "-g", "-flto", "-Werror")):
            words.append(word)
    return words + ["-fsyntax-only", "-fdiagnostics-color=never", "-Wc++-compat"]


def unlike(entry):
    env = dict(os.environ, LC_ALL="C", CCACHE_DISABLE="1")
    done = subprocess.run(only_read(entry["command"]), cwd=entry["directory"], env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return [f"{entry['file']}: cannot be compiled:", *done.stderr.splitlines()[:5]]
    return [line for line in done.stderr.splitlines() if "initializer-string for array of" in line]


def main():
    with open(os.path.join(sys.argv[1], "compile_commands.json"), encoding="utf-8") as file:
        entries = [entry for entry in json.load(file) if entry["file"].endswith(".c")]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = [line for lines in pool.map(unlike, entries) for line in lines]
    print("\n".join(found))
    return 1 if found or not entries else 0


if __name__ == "__main__":
    sys.exit(main())
