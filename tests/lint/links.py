#!/usr/bin/env python3
"""No link cycles, read from the archives that were built: links.py BUILD_FOLDER

Between folders the static libraries must form no cycle, and within a folder neither its object files.
"""
import collections
import glob
import os
import re
import subprocess
import sys


def symbols(archive):
    """{object: (defined, undefined)} of one archive."""
    text = subprocess.run(["nm", "-A", "--format=posix", archive], check=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL).stdout.decode()
    objects = collections.defaultdict(lambda: (set(), set()))
    for line in text.splitlines():
        match = re.match(r".*[\[:/]([^\]:/]+\.o)\]?: (\S+) (\S)", line)
        if match:
            name, symbol, kind = match.groups()
            if kind in "TDBRVWC":
                objects[name][0].add(symbol)
            elif kind == "U":
                objects[name][1].add(symbol)
    return objects


def components(graph):
    """Strongly connected components with more than one member (Tarjan)."""
    index, low, stack, found, count = {}, {}, [], [], [0]

    def visit(node):
        index[node] = low[node] = count[0]
        count[0] += 1
        stack.append(node)
        for there in graph.get(node, ()):
            if there not in index:
                visit(there)
                low[node] = min(low[node], low[there])
            elif there in stack:
                low[node] = min(low[node], index[there])
        if low[node] == index[node]:
            group = []
            while True:
                group.append(stack.pop())
                if group[-1] == node:
                    break
            if len(group) > 1:
                found.append(sorted(group))

    sys.setrecursionlimit(10000)
    for node in list(graph):
        if node not in index:
            visit(node)
    return found


def main():
    archives = sorted(glob.glob(os.path.join(sys.argv[1], "src", "*", "libpf_*.a")))
    if not archives:
        print(f"no archives in {sys.argv[1]}/src: not built?")
        return 1
    wrong, defined_by, wants = [], {}, {}
    for archive in archives:
        folder = os.path.basename(archive)[len("libpf_"):-2]
        objects = symbols(archive)
        owner = {s: o for o, (defined, _) in objects.items() for s in defined}
        graph = {o: {owner[s] for s in undefined if s in owner and owner[s] != o} for o, (_, undefined) in objects.items()}
        for group in components(graph):
            wrong.append(f"{folder}: link cycle between {', '.join(group)}")
        for symbol in owner:
            defined_by.setdefault(symbol, folder)
        wants[folder] = set().union(*(u for _, u in objects.values())) if objects else set()
    graph = {f: {defined_by[s] for s in undefined if s in defined_by and defined_by[s] != f} for f, undefined in wants.items()}
    for group in components(graph):
        wrong.append(f"link cycle between the folders {', '.join(group)}")
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


sys.exit(main())
