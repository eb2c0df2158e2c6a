#!/usr/bin/env python3
"""Every source begins with a comment of two lines or two sentences: heads.py FILE.c ...

What lives there, and what a reader must know: how it works, why it is a file of its own, who calls it, where its rule is from.
"""
import re
import sys


def main():
    wrong = 0
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as file:
            head = re.match(r"/\*(.*?)\*/", file.read(), re.S)
        lines = [line.strip(" *") for line in head.group(1).split("\n")] if head else []
        lines = [line for line in lines if line]
        if len(lines) < 2 and len(re.findall(r"[.?!](?=\s|$)", " ".join(lines))) < 2:
            print(f"{path}: " + ("its first comment is one sentence; add what a reader must know: how it works, who calls it, where its rule is from" if head
                                 else "does not begin with a comment that says what it does"))
            wrong += 1
    return 1 if wrong or len(sys.argv) < 2 else 0


sys.exit(main())
