#!/usr/bin/env python3
"""clang-tidy over the sources of src/; silent when it finds nothing that tests/lint/tidy-accepted does not name.

    tidy.py BUILD FILE...

Up to SIZE sources of a folder are read as one text, as the build of the product compiles them: their headers are parsed once, and the
analyzer follows a call into another file of the folder. What was found in a text is kept in BUILD/tidy, by the contents of its files, of
every header that they read, of .clang-tidy, and by clang-tidy itself and the words of the command: only what has changed is looked at
again, and a finding is told again each time. A file that is named has its whole text looked at.
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
# How far the analyzer follows a function. Its own default of 225,000 nodes takes more than twenty times as long, and 10,000 a half more; both have found
# nothing here that this does not find. With 3,000 it gives up in the middle of functions, and warns of what they do not do. PINFOLD_TIDY_NODES looks deeper,
# before a release.
NODES = os.environ.get("PINFOLD_TIDY_NODES", "6000")
# With PINFOLD_FAULTS a kernel call is a function to it, so that it knows that the kernel writes through pointers; of the plain
# form, a piece of assembly, it believes that nothing is written.
# analyzer.h tells it how functions of other files answer.
# It takes a file that a text includes for a header, of whose functions it follows none unless told to.
DEEP = ["-DPINFOLD_FAULTS", "-include", os.path.abspath("tests/lint/analyzer.h"), "-Xclang", "-analyzer-config", "-Xclang", f"max-nodes={NODES}",
        "-Xclang", "-analyzer-opt-analyze-headers"]
ALWAYS = ["-Wno-unknown-warning-option"]
SIZE = 16  # sources of a text, as unity_size in meson.build
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


def words_of(command):
    """The words of a compiler's command without itself, its input and its outputs."""
    words = shlex.split(command)[:-1]
    kept, skip = [], False
    for word in words[2 if os.path.basename(words[0]) == "ccache" else 1:]:
        if not skip and word not in ("-o", "-MF", "-MQ", "-c", "-MD"):
            kept.append(word)
        skip = word in ("-o", "-MF", "-MQ")
    return kept


class Text:
    """Sources that are looked at together, and how one of them is compiled."""

    def __init__(self, name, sources, directory, words):
        self.name, self.sources, self.directory = name, sources, directory
        self.words = words + ALWAYS + ([] if PLAIN in sources else DEEP)


def sources_of(path):
    """A source, or those that a build of whole folders compiles by this file (meson's unity=on)."""
    if not re.search(r"-unity\d+\.c$", path):
        return [os.path.relpath(path)]
    with open(path, encoding="utf-8") as text:
        return [os.path.relpath(one) for one in re.findall(r"^#include\s*<(.*)>$", text.read(), re.M)]


def texts_of(build):
    """All texts of a build; a source that several programs are made of is in the first one's."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as text:
        commands = json.load(text)
    targets, seen = {}, set()
    for c in commands:
        for source in sources_of(os.path.join(c["directory"], c["file"])):
            if source.startswith("src/") and source not in seen:
                seen.add(source)
                words = words_of(c["command"])
                target = PLAIN if source == PLAIN else os.path.dirname(c["output"])
                targets.setdefault((target, c["directory"], tuple(words)), []).append(source)
    return [Text(f"{number}-{target.replace('/', '-')}-{at}", sources[at:at + SIZE], directory, list(words))
            for number, ((target, directory, words), sources) in enumerate(targets.items()) for at in range(0, len(sources), SIZE)]


class Tidy:
    def __init__(self, build):
        self.kept = os.path.join(build, "tidy")
        os.makedirs(self.kept, exist_ok=True)

    @staticmethod
    def key(text, files):
        parts = [version(), digest(".clang-tidy"), text.directory, *text.words, *text.sources]
        return hashlib.sha256("\n".join(parts + [f"{path} {digest(path)}" for path in files]).encode()).hexdigest()

    @staticmethod
    def files(text, path):
        """All that the preprocessor reads for it: sources, headers, the system's headers too."""
        done = subprocess.run(["clang", *[w for w in text.words if not w.startswith("-W")], "-w", "-M", path],
                              cwd=text.directory, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
        if done.returncode != 0:
            return None
        names = done.stdout.replace("\\\n", " ").partition(":")[2].split()
        return sorted({os.path.realpath(os.path.join(text.directory, name)) for name in names})

    def run(self, text):
        """(what it printed, what it complained about)"""
        path = os.path.join(self.kept, text.name + ".c")
        place = path[:-1] + "json"
        try:
            with open(place, encoding="utf-8") as last:
                last = json.load(last)
            if last["key"] == self.key(text, last["files"]):
                return last["out"], last["err"]
        except (OSError, ValueError, KeyError):
            pass
        with open(path, "w", encoding="utf-8") as out:
            for source in text.sources:
                out.write(f'#include "{os.path.abspath(source)}" // NOLINT\n')
        done = subprocess.run(["clang-tidy", "--quiet", "--config-file=" + os.path.abspath(".clang-tidy"), path, "--", *text.words],
                              cwd=text.directory, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        files = None if "Error while processing" in done.stderr else self.files(text, path)
        if files is not None:
            with open(place + ".new", "w", encoding="utf-8") as out:
                json.dump({"key": self.key(text, files), "files": files, "out": done.stdout, "err": done.stderr}, out)
            os.replace(place + ".new", place)
        return done.stdout, done.stderr


def accepted():
    with open("tests/lint/tidy-accepted", encoding="utf-8") as text:
        return {tuple(line.split()[:2]) for line in text if line.strip() and not line.startswith("#")}


def chosen(build, sources):
    """The texts that these are in, the longest first; a source that nothing here is made of is one by itself."""
    texts = texts_of(build)
    known = {source for text in texts for source in text.sources}
    found = [text for text in texts if set(sources) & set(text.sources)]
    found += [Text(source.replace("/", "-"), [source], os.getcwd(), ["-iquote", "src", "-Iinclude", "-std=gnu11", "-D_GNU_SOURCE"]) for source in sources if source not in known]
    return sorted(found, key=lambda text: -sum(os.path.getsize(source) for source in text.sources if os.path.exists(source)))


def main():
    build, sources = os.path.abspath(sys.argv[1]), [os.path.normpath(source) for source in sys.argv[2:]]
    tidy, known = Tidy(build), accepted()
    looked_at = chosen(build, sources)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        results = list(pool.map(tidy.run, looked_at))
    new, texts = set(), []
    for text, (out, err) in zip(looked_at, results):
        if re.search(r"Error while processing|no such file", err) and not any(FINDING.match(line) for line in out.splitlines()):
            new.add(f"{text.sources[0]} and what is compiled with it: clang-tidy cannot read it: {err.strip()[-400:]}")
        for line in out.splitlines():
            if not FINDING.match(line):
                continue
            line = re.sub(r"^\S*?/(?=(?:src|include)/)", "", line)
            where, checks = line.partition(":")[0], line.rpartition("[")[2].rstrip("]")
            if (where, checks.partition(",")[0]) not in known:
                new.add(line)
                if out not in texts:
                    texts.append(out)
    print("\n".join(sorted(new) + texts), end="\n" if new else "")
    sys.exit(1 if new else 0)


main()
