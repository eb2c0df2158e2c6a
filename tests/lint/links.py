#!/usr/bin/env python3
"""No link cycles, read from what was built: links.py BUILD_FOLDER

Between folders the static libraries must form no cycle, and within a folder neither its sources. Of `cli`, whose objects are
in no library but the program itself, also that it calls nothing but what it may know: pinfold.h, base, and where main() hands over.

Which source needs which, its object says. Where a folder's sources were compiled as one text (meson.build, `whole`), the symbols are
the folder's, and the sources' words say which file defines one and which files use it (but for names that macros paste together).
Words say too much at times: what seems to be a cycle is one if the objects of its sources, compiled one by one, say so.
"""
import collections
import glob
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile

import names

# Of cli: the folders whose functions it may call, and single functions besides those of pinfold.h.
CLI_MAY = {"base", "mcp", "project", "learn"}
CLI_CALLS = {"entry_hidden", "entry_agent_known", "entry_agent_owns", "entry_agent_begin", "entry_agent_end", "entry_agent_keep", "entry_dangers_report", "entry_agent_after", "entry_agent_define", "entry_agent_login", "entry_agent_merge", "entry_agent_init", "entry_agent_logout", "entry_in_box", "entry_open_url", "entry_image_build", "entry_image_check", "entry_image_checked_free", "entry_image_dockerfile", "entry_image_own_file", "entry_image_version", "srt_main", "srt_named",
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


WORD = re.compile(r"(\.\s*|->\s*|\b(?:struct|union|enum)\s+)?\b([A-Za-z_]\w*)")
NO_TYPE = {"return", "case", "goto", "else", "sizeof", "do"}


def words(text):
    """Those that may name a function or a variable."""
    return {word for other, word in WORD.findall(text) if not other}


def local(word, text):
    """Is it a variable's or a parameter's name in this text, and never called?"""
    if re.search(rf"(?<![\w.>]){word}\s*\(", text):
        return False
    declared = re.findall(rf"(\w+)(?:\s+\*?|\s*\*+\s*(?:const\s+)?){word}\s*(?=[=;,)\[:])", text)
    return any(before not in NO_TYPE for before in declared)


class Texts:
    """The words of sources, with what they reach by macros and inline functions of headers."""

    def __init__(self, top):
        self.reached, self.read = collections.defaultdict(set), {}
        for header in glob.glob(os.path.join(top, "src", "**", "*.h"), recursive=True):
            with open(header, encoding="utf-8") as file:
                text = names.NOISE.sub(" ", file.read())
            for name, body in re.findall(r"^[ \t]*#[ \t]*define[ \t]+(\w+)((?:[^\n]*\\\n)*[^\n]*)", text, re.M):
                self.reached[name] |= words(body)
            for name, body in re.findall(r"^static inline [^\n;]*?(\w+)\([^{;]*\n(\{\n.*?^\})", text, re.M | re.S):
                self.reached[name] |= words(body)

    def of(self, source):
        """(its text, what it defines for others to see, what it names)"""
        if source not in self.read:
            with open(source, encoding="utf-8") as file:
                whole = file.read()
            text = re.sub(r"\boffsetof\([^()]*\)", "0", names.NOISE.sub(" ", whole))
            seen = words(text)
            todo = list(seen)
            while todo:
                new = self.reached.get(todo.pop(), set()) - seen
                seen |= new
                todo += new
            self.read[source] = text, names.names(whole), seen
        return self.read[source]

    def graph(self, sources, symbols_of_all):
        """{source: those that it needs}, of a folder's sources, by the symbols that all of them define."""
        owner = {}
        for symbol in symbols_of_all:
            for source in sources:
                text, defined, _ = self.of(source)
                if symbol in defined or re.search(rf"^[a-z][^;=\n]*\b{symbol}(\(|(\[[^\]]*\])*\s*=)", text, re.M):
                    owner[symbol] = source
                    break
        found = {}
        for source in sources:
            text, _, named = self.of(source)
            found[source] = {owner[s] for s in named & set(owner) if owner[s] != source and not local(s, text)}
        return found


def compiled_apart(build, unity_of, group):
    """Their graph by objects: the sources as the text that they are part of was compiled, one by one."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as text:
        commands = {os.path.realpath(os.path.join(c["directory"], c["file"])): c for c in json.load(text)}
    objects = {}
    with tempfile.TemporaryDirectory() as scratch:
        for number, source in enumerate(group):
            command = commands[os.path.realpath(unity_of[source])]
            words_of = shlex.split(command["command"])[:-1]
            words_of[words_of.index("-o") + 1] = made = os.path.join(scratch, f"{number}.o")
            subprocess.run([*words_of, "-w", os.path.abspath(source)], cwd=command["directory"], check=True)
            objects[source] = next(iter(symbols(made).values()), (set(), set()))
    owner = {s: o for o, (defined, _) in objects.items() for s in defined}
    return {o: {owner[s] for s in undefined if s in owner and owner[s] != o} for o, (_, undefined) in objects.items()}


def sources_of(build, name):
    """{source: the text that it was compiled in} of a target, by the path of what it makes; none where each was compiled by itself."""
    with open(os.path.join(build, "meson-info", "intro-targets.json"), encoding="utf-8") as text:
        for target in json.load(text):
            if any(os.path.realpath(made) == os.path.realpath(name) for made in target["filename"]):
                parts = [source for part in target["target_sources"] for source in part.get("sources", []) + part.get("generated_sources", [])]
                found = {}
                for part in parts:
                    if re.search(r"-unity\d+\.c$", part):
                        with open(part, encoding="utf-8") as unity:
                            found.update({os.path.relpath(one): part for one in re.findall(r"^#include\s*<(.*)>$", unity.read(), re.M)})
                return found
    return {}


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
    pinfold = os.path.join(sys.argv[1], "pinfold")
    whole = sources_of(sys.argv[1], pinfold)
    program = sorted(glob.glob(os.path.join(sys.argv[1], "pinfold.p", "meson-generated_*.o" if whole else "src_cli_*.o")))
    if len(program) < (1 if whole else 10):
        print(f"{len(program)} objects of src/cli in {sys.argv[1]}/pinfold.p: not built?")
        return 1
    wrong, defined_by, wants, texts = [], {}, {}, Texts(".")
    made = {os.path.basename(archive)[len("libpf_"):-2]: archive for archive in archives} | {"cli": pinfold}
    folders = [(os.path.basename(archive)[len("libpf_"):-2], symbols(archive)) for archive in archives]
    for folder, objects in folders + [("cli", symbols(*program))]:
        owner = {s: o for o, (defined, _) in objects.items() for s in defined}
        together = sources_of(sys.argv[1], made[folder])
        if together:
            graph = texts.graph(list(together), set(owner))
            for group in components(graph):
                graph.update(compiled_apart(sys.argv[1], together, group))
        else:
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
