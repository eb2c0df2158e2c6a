#!/usr/bin/env python3
"""No link cycles, read from what was built: links.py BUILD_FOLDER

Between folders the static libraries must form no cycle, and within a folder neither its object files. Of `cli`, whose objects are
in no library but the program itself, also that it calls nothing but what it may know: pinfold.h, base, and where main() hands over.
"""
import collections
import glob
import os
import re
import subprocess
import sys


# Of cli: the folders whose functions it may call, and single functions besides those of pinfold.h.
CLI_MAY = {"base", "mcp", "project", "learn"}
CLI_CALLS = {"entry_hidden", "entry_waits_said", "entry_agent_known", "entry_agent_owns", "entry_agent_begin", "entry_agent_end", "entry_agent_keep", "entry_dangers_report", "entry_trust_written", "entry_session_seen", "entry_session_soon", "entry_agent_after", "entry_agent_define", "entry_agent_login", "entry_agent_merge", "entry_agent_init", "entry_agent_logout", "entry_agent_adopt", "entry_agent_keys", "entry_volumes_find", "entry_volume_user", "entry_volume_read_begin", "entry_volume_read_end", "entry_in_box", "entry_open_url", "entry_image_build", "entry_image_check", "entry_image_checked_free", "entry_image_dockerfile", "entry_image_own_file", "entry_image_version", "srt_main", "srt_named", "umask_begin",
             "hook_shell_main", "hook_shell_named", "hook_install", "hook_remove", "hook_status",
             "dialogue_begin", "dialogue_due", "dialogue_end", "dialogue_in_foreground", "dialogue_read", "dialogue_terminal"}


def symbols(*files):
    """{object: (defined, undefined)} of archives or objects."""
    text = subprocess.run(["nm", "-A", "--format=posix", *files], check=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL).stdout.decode()
    objects = collections.defaultdict(lambda: (set(), set()))
    for line in text.splitlines():
        match = re.match(r"(?:.*[\[:/])?([^\]:/]+\.o)\]?: (\S+) (\S)", line)
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
    program = sorted(glob.glob(os.path.join(sys.argv[1], "pinfold.p", "src_cli_*.o")))
    if len(program) < 10:
        print(f"{len(program)} objects of src/cli in {sys.argv[1]}/pinfold.p: not built with an object for each source?")
        return 1
    wrong, defined_by, wants = [], {}, {}
    folders = [(os.path.basename(archive)[len("libpf_"):-2], symbols(archive)) for archive in archives]
    for folder, objects in folders + [("cli", symbols(*program))]:
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
    for symbol in sorted(wants["cli"]):
        folder = defined_by.get(symbol, "cli")
        if folder not in CLI_MAY | {"cli"} and symbol not in CLI_CALLS and not symbol.startswith("pinfold_"):
            wrong.append(f"cli calls {symbol}() of {folder}/, which is not in pinfold.h")
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


sys.exit(main())
