#!/usr/bin/env python3
"""clang-tidy over the sources of src/; silent when it finds nothing that tests/lint/tidy-accepted does not name.

    tidy.py BUILD FILE...

What was found in a file is kept in BUILD/tidy, by the contents of the file, of every header that it reads, of .clang-tidy, and by
clang-tidy itself and the words of the command: only what has changed is looked at again, and a finding is told again each time.
"""
import concurrent.futures
import functools
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys

# The file that defines what analyzer.h redefines.
PLAIN = "src/base/err.c"
# The analyzer's default of 225,000 nodes a function takes six times as long and finds what this finds.
# With PINFOLD_FAULTS a kernel call is a function to it, so that it knows that the kernel writes through pointers; of the plain
# form, a piece of assembly, it believes that nothing is written.
# analyzer.h tells it how functions of other files answer.
DEEP = ["-DPINFOLD_FAULTS", "-include", os.path.abspath("tests/lint/analyzer.h"), "-Xclang", "-analyzer-config", "-Xclang", "max-nodes=40000"]
ALWAYS = ["-Wno-unknown-warning-option"]
FINDING = re.compile(r"^\S+:\d+:\d+: (?:error|warning):")


@functools.lru_cache(None)
def digest(path):
    try:
        with open(path, "rb") as text:
            return hashlib.sha256(text.read()).hexdigest()
    except OSError:
        return "gone"


@functools.lru_cache(None)
def version():
    return subprocess.run(["clang-tidy", "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout


def commands(build):
    """{source: (directory, words of the compiler)}; of the files that several programs are made of, one command."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as text:
        return {os.path.realpath(os.path.join(c["directory"], c["file"])): (c["directory"], c["command"]) for c in reversed(json.load(text))}


class Tidy:
    def __init__(self, build):
        self.build = build
        self.commands = commands(build)
        self.kept = os.path.join(build, "tidy")
        os.makedirs(self.kept, exist_ok=True)

    def words(self, source):
        return ALWAYS + ([] if source == PLAIN else DEEP)

    def key(self, source, headers):
        parts = [version(), digest(".clang-tidy"), *self.words(source), str(self.commands.get(os.path.realpath(source)))]
        return hashlib.sha256("\n".join(parts + [f"{path} {digest(path)}" for path in [source, *headers]]).encode()).hexdigest()

    def headers(self, source):
        """All that the preprocessor reads for it, the system's headers too."""
        directory, command = self.commands.get(os.path.realpath(source), (".", f"cc -iquote src -Iinclude -std=gnu11 -D_GNU_SOURCE {source}"))
        words = [w for w in shlex.split(command) if w != "-MD"]
        words = words[1:] if os.path.basename(words[0]) == "ccache" else words
        kept, skip = [], False
        for word in words[1:]:
            if not skip and word not in ("-o", "-MF", "-MQ", "-c") and not word.startswith("-W"):
                kept.append(word)
            skip = word in ("-o", "-MF", "-MQ")
        done = subprocess.run(["clang", *kept, *[w for w in self.words(source) if w.startswith(("-D", "-inc")) or w.endswith(".h")], "-w", "-M"],
                              cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
        if done.returncode != 0:
            return None
        names = done.stdout.replace("\\\n", " ").partition(":")[2].split()
        return sorted({os.path.realpath(os.path.join(directory, name)) for name in names} - {os.path.realpath(source)})

    def run(self, source):
        """(what it printed, what it complained about)"""
        place = os.path.join(self.kept, source.replace("/", "-") + ".json")
        try:
            with open(place, encoding="utf-8") as text:
                last = json.load(text)
            if last["key"] == self.key(source, last["headers"]):
                return last["out"], last["err"]
        except (OSError, ValueError, KeyError):
            pass
        done = subprocess.run(["clang-tidy", "--quiet", *["--extra-arg=" + w for w in self.words(source)], "-p", self.build, source],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        headers = None if "Error while processing" in done.stderr else self.headers(source)
        if headers is not None:
            with open(place + ".new", "w", encoding="utf-8") as text:
                json.dump({"key": self.key(source, headers), "headers": headers, "out": done.stdout, "err": done.stderr}, text)
            os.replace(place + ".new", place)
        return done.stdout, done.stderr


def accepted():
    with open("tests/lint/tidy-accepted", encoding="utf-8") as text:
        return {tuple(line.split()[:2]) for line in text if line.strip() and not line.startswith("#")}


def main():
    build, sources = os.path.abspath(sys.argv[1]), sys.argv[2:]
    tidy, known = Tidy(build), accepted()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        results = list(pool.map(tidy.run, sources))
    new, texts = set(), []
    for source, (out, err) in zip(sources, results):
        if re.search(r"Error while processing|no such file", err) and not any(FINDING.match(line) for line in out.splitlines()):
            new.add(f"{source}: clang-tidy cannot read it: {err.strip()[-400:]}")
        for line in out.splitlines():
            if not FINDING.match(line):
                continue
            line = re.sub(r"^\S*?/(?=(?:src|include)/)", "", line)
            where, checks = line.partition(":")[0], line.rpartition("[")[2].rstrip("]")
            if (where, checks.partition(",")[0]) not in known:
                new.add(line)
                texts.append(out)
    print("\n".join(sorted(new) + texts), end="\n" if new else "")
    sys.exit(1 if new else 0)


main()
