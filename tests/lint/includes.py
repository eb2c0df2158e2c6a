#!/usr/bin/env python3
"""Folders have a direction: who may include whom, and no cycle between files; headers that clash are included nowhere.
includes.py [TREE]"""
import os
import re
import sys

MAY = {
    "base": "",
    "match": "base",
    "sys": "base",
    "protocol": "base",
    "git": "match base",
    "policy": "match protocol base",
    "plan": "policy match protocol base",
    "runtime": "protocol sys base",
    "pump": "protocol sys base",
    "judge": "git policy match protocol base",
    "user": "sys base",
    "layer": "user git match protocol sys base",
    "guard": "judge git policy match protocol runtime sys base",
    "survey": "git plan policy match protocol user sys base",
    "backends": "survey plan runtime guard pump policy match protocol user sys base",
    "egress": "policy match protocol sys base",
    "ssh": "match protocol sys base",
    "gpg": "ssh/filter.h ssh/clients.h sys base",
    "supervisor": "backends survey egress ssh gpg plan policy match protocol user sys base",
    "why": "judge git plan policy match protocol base",
    "agents": "policy match protocol user sys base",
    "sessiond": "supervisor backends plan policy match protocol sys base",
    "run": "agents layer why supervisor backends survey ssh gpg plan policy match protocol user sys base pinfold.h",
    "session": "run sessiond supervisor backends survey plan policy protocol user sys base pinfold.h",
    "doctor": "run why backends survey plan policy match protocol user sys base pinfold.h",
    "client": "doctor session run agents supervisor survey backends policy protocol sys base pinfold.h",
    "guest": "runtime pump protocol sys base",
    "init": "guest runtime guard protocol sys base",
    "sqlite": "protocol sys base",
    "login": "agents/expires.h protocol sys base",
    "bwrap": "sys base",
    "mcp": "match user sys base pinfold.h",
    "project": "git protocol user sys base pinfold.h",
    "learn": "match user base pinfold.h",
    "srt": "policy base pinfold.h",
    "hook": "project match user base pinfold.h",
    "cli": "mcp/mcp.h client/entry.h hook/hook.h srt/srt.h project learn user/dialogue.h user/umask.h base pinfold.h",  # the first four: main() hands over to them
    "tools": "runtime policy match protocol sys base",  # run while pinfold is built, or part of builds for tests alone
}
# Headers of the kernel that define what a C library's own defines, too, in one version or another: with them a source compiles
# on one system and not on the next. Each may stand in one header of ours at most; the others have a structure of our own.
DOUBLE = {
    "linux/fcntl.h": None,
    "linux/fs.h": None,  # includes linux/mount.h
    "linux/in.h": None,
    "linux/mount.h": None,
    "linux/openat2.h": "sys/file.h",
    "linux/signal.h": None,
    "linux/socket.h": None,
    "linux/stat.h": None,
    "linux/time.h": None,
    "linux/uio.h": None,
}
SOURCES_MAX = 20
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]', re.M)


def main():
    top = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "..", ".."))
    src = os.path.join(top, "src")
    wrong, graph = [], {}
    for folder in sorted(os.listdir(src)):
        if not os.path.isdir(os.path.join(src, folder)):
            continue
        if folder not in MAY:
            wrong.append(f"src/{folder}: a folder that tests/lint/includes.py has no direction for")
            continue
        for at, _, names in os.walk(os.path.join(src, folder)):
            count = sum(name.endswith(".c") for name in names)
            if count > SOURCES_MAX:
                wrong.append(f"{os.path.relpath(at, top)}: {count} sources in one flat list, at most {SOURCES_MAX}: divide it")
        paths = (os.path.join(at, name) for at, _, names in os.walk(os.path.join(src, folder)) for name in names)
        for path in sorted(paths):
            if not path.endswith((".c", ".h")):
                continue
            here = os.path.relpath(path, src)
            with open(os.path.join(src, here), encoding="utf-8") as text:
                found = INCLUDE.findall(text.read())
            graph[here] = []
            for mark, there in found:
                if mark == "<":
                    if DOUBLE.get(there, here) != here:
                        wrong.append(f"src/{here}: <{there}> may define what the C library does: "
                                     + (f'include "{DOUBLE[there]}"' if DOUBLE[there] else "spell out what is needed in sys/"))
                    if os.path.exists(os.path.join(src, there)) and not there.startswith("sys/") or there == "pinfold.h":
                        wrong.append(f'src/{here}: <{there}> is ours: write "{there}"')
                    continue
                target = there.split("/")[0]
                if there == "pinfold.h":
                    target = there
                elif "/" not in there:
                    wrong.append(f'src/{here}: "{there}" must be written "folder/{there}"')
                    continue
                elif not os.path.exists(os.path.join(src, there)):
                    # Made by the build: still judged by its folder.
                    pass
                may = MAY[folder].split()  # folders, or single headers
                if target != folder and target not in may and there not in may:
                    wrong.append(f"src/{here}: {folder}/ may not know {target}")
                graph[here].append(there)
    wrong += cycles(graph)
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


def cycles(graph):
    state, stack, found = {}, [], []

    def visit(file):
        state[file] = 1
        stack.append(file)
        for there in graph.get(file, []):
            if state.get(there) == 1:
                found.append("include cycle: " + " -> ".join(stack[stack.index(there):] + [there]))
            elif there not in state:
                visit(there)
        stack.pop()
        state[file] = 2

    for file in graph:
        if file not in state:
            visit(file)
    return found


if __name__ == "__main__":
    sys.exit(main())
