#!/usr/bin/env python3
"""Sessions live longer than the program that started them: what is said to their daemon has a number, KEEP_REVISION.

    revision.py [--accept]

Holds the number together with what it stands for: the files below without comments and blanks. Whoever changes one of them in a
way that the other end would notice raises KEEP_REVISION in src/protocol/keep.h; --accept then writes down what the number stands for.
"""
import hashlib
import os
import re
import sys

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
FILES = ["src/protocol/" + name for name in ("control.h", "files.h", "job.c", "job.h", "keep.h")]
KEPT = os.path.join(TOP, "tests", "lint", "protocol-revision")
COMMENT = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?\*/', re.S)


def meaning():
    """The number and the digest of what it stands for, without the line that holds the number."""
    digest, number = hashlib.sha256(), None
    for name in FILES:
        with open(os.path.join(TOP, name), encoding="utf-8") as text:
            code = COMMENT.sub(lambda m: m[0] if m[0].startswith('"') else " ", text.read())
        found = re.search(r"#define KEEP_REVISION (\d+)u\s*\n", code)
        if found:
            number, code = int(found[1]), code.replace(found[0], "")
        digest.update("".join(code.replace("\\\n", "").split()).encode())
    return number, digest.hexdigest()


def main():
    number, digest = meaning()
    if sys.argv[1:] == ["--accept"]:
        with open(KEPT, "w", encoding="ascii") as text:
            text.write(f"{number} {digest}\n")
        return 0
    with open(KEPT, encoding="ascii") as text:
        kept_number, kept = text.read().split()
    if (number, digest) == (int(kept_number), kept):
        return 0
    if digest == kept:
        print(f"KEEP_REVISION is {number} and was {kept_number}, but nothing has changed: {', '.join(FILES)}")
    elif number == int(kept_number):
        print(f"one of {', '.join(FILES)} has changed: if a session daemon of before would misunderstand it, raise KEEP_REVISION in src/protocol/keep.h; "
              "then, and if it would not: tests/lint/revision.py --accept")
    else:
        print(f"KEEP_REVISION was raised to {number}: tests/lint/revision.py --accept, and commit tests/lint/protocol-revision")
    return 1


sys.exit(main())
