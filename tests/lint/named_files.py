#!/usr/bin/env python3
"""Files named in comments and documents exist: a.c, dir/a.h, docs/A.md ..., by the end of a path in this tree.

    tests/lint/named_files.py [FILE...]     without files: all that git tracks, or without git all but the builds
"""
import os
import re
import subprocess
import sys

# Names of other projects' files, and examples. By the end of a path, as the tree's own.
EXTERNAL = {
    # the kernel, git, libraries
    "linux/fs.h", "linux/landlock.h", "linux/magic.h", "linux/mount.h", "linux/capability.h", "asm-generic/resource.h",
    "fs/namei.c", "fs/namespace.c", "fs/coredump.c", "fs/overlayfs/params.c", "kernel/fork.c", "kernel/user_namespace.c", "net/unix/af_unix.c",
    "drivers/tty/pty.c", "xen/include/public/elfnote.h", "sequencer.c", "setup.c", "jansson.h",
    # of projects that a box works in
    "CLAUDE.md", "GEMINI.md", "AGENTS.md", "QWEN.md", "secrets.yaml", "setup.py", "conftest.py", "setup.sh", "pre-commit.sh", "pnpm-workspace.yaml", "scripts/check.sh",
    # made by a build or a bench; placeholders
    "floor-plan.h", "policy.yaml", "folder/file.h", "OUT.c",
}
PLACEHOLDER = re.compile(r"NAME\.")
NAME = re.compile(r"(?<![\w./*<${}-])((?:[A-Za-z0-9_][\w.-]*/)*[A-Za-z0-9_][\w-]*\.(?:c|h|py|md|scd|yaml|sh))(?![\w/*-]|\.\w)")
COMMENT = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|/\*.*?\*/|//[^\n]*', re.S)
WHOLE = (".md", ".scd")  # documents; of other files only the comments are read
SKIPPED = ("bench/results/", "tests/golden/", "tests/fuzz/corpus/", "CHANGELOG.md", "LICENSE", "examples/")


def tree():
    found = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True, check=False)
    if found.returncode == 0:
        return [path for path in found.stdout.splitlines() if os.path.isfile(path)]
    paths = []
    for top, dirs, files in os.walk("."):
        dirs[:] = [d for d in dirs if not (top == "." and d.startswith("build"))]
        paths += [os.path.relpath(os.path.join(top, f), ".") for f in files]
    return paths


def comments(path, text):
    """The text with everything but comments blanked, so that lines keep their numbers."""
    if path.endswith(WHOLE):
        return re.sub(r"^```.*?^```$", lambda m: "\n" * m[0].count("\n"), text, flags=re.S | re.M)
    if path.endswith((".c", ".h")):
        out, at = [], 0
        for m in COMMENT.finditer(text):
            out.append("\n" * text.count("\n", at, m.start()))
            out.append(m[0] if m[0][0] == "/" else "")
            at = m.end()
        return "".join(out)
    return "\n".join(line[line.index("#"):] if re.search(r"(^|\s)#(\s|$)", line) else "" for line in text.split("\n"))


def readable(path):
    if path.startswith(SKIPPED):
        return False
    if path.endswith((".c", ".h", ".py", ".sh", ".yaml", "meson.build") + WHOLE):
        return True
    if os.path.splitext(path)[1]:
        return False
    with open(path, "rb") as f:
        return f.read(2) == b"#!"


def main():
    paths = tree()
    known = set(EXTERNAL)
    for path in paths:
        parts = path.split("/")
        known.update("/".join(parts[i:]) for i in range(len(parts)))
    wrong = 0
    for path in sys.argv[1:] or paths:
        if not readable(path):
            continue
        with open(path, encoding="utf-8", errors="replace") as f:
            text = comments(path, f.read())
        for number, line in enumerate(text.split("\n"), 1):
            for name in NAME.findall(line):
                base = os.path.normpath(os.path.join(os.path.dirname(path), name))
                if name not in known and not PLACEHOLDER.search(name) and base not in known and not os.path.exists(base):
                    print(f"{path}:{number}: {name}: no such file in this tree (or in EXTERNAL of tests/lint/named_files.py)")
                    wrong = 1
    return wrong


sys.exit(main())
