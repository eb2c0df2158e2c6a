#!/usr/bin/env python3
"""Messages and documents without turns of phrase that readers had to guess at: each stood here once, with what to say instead."""
import glob
import os
import re
import sys

RIDDLES = {
    r"one word too many": "unexpected argument",
    r"come into being": "be created",
    r"what is one more\b": "excess connections, files ...",
    r"no descriptor from 3 on": "not an open file descriptor (3 or higher)",
    r"not asked: an engine": "not needed: ENGINE can enforce this policy",
    r"does not write so\b": "malformed",
    r"\bno \w+ has so\b": "say what nobody has",
    r"'s file is none\b": "is not a ...",
    r"\bits \w+ is none at which\b": "does not ... at this host",
    r"\bfor everybody\b(?=\")": "say who may and who may not",
    r"\bthe (?:box|session|run) is over\b": "has ended",
    r"\bis another one now\b": "has been replaced",
    r"in a place that matters": "name the places",
    r"what had been interrupted": "an interrupted ...",
}
TEXT = re.compile(r'"((?:\\.|[^"\\\n])*)"')
COMMENT = re.compile(r"/\*.*?\*/", re.S)


def pieces(path, text):
    """(offset, text) of what a user reads."""
    if not path.endswith((".c", ".h")):
        return [(0, text)]
    text = COMMENT.sub(lambda m: re.sub(r"[^\n]", " ", m.group(0)), text)
    return [(m.start(), m.group(0)) for m in TEXT.finditer(text)]


def main():
    top, wrong = sys.argv[1], 0
    paths = [path for pattern in ("src/**/*.[ch]", "include/*.h", "docs/**/*.md", "docs/*.scd", "*.md") for path in glob.glob(os.path.join(top, pattern), recursive=True)]
    for path in sorted(paths):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for at, piece in pieces(path, text):
            for riddle, plain in RIDDLES.items():
                for found in re.finditer(riddle, piece, re.I):
                    line = text.count("\n", 0, at + found.start()) + 1
                    print(f"{os.path.relpath(path, top)}:{line}: '{found.group(0)}': {plain}")
                    wrong += 1
    return 1 if wrong or not paths else 0


if __name__ == "__main__":
    sys.exit(main())
