#!/usr/bin/env python3
"""The trusted part does not grow unnoticed: trusted.py. Its folders are those whose mistakes are holes; tests/lint/trusted-lines has
the lines that each may have, comments included. Whoever needs more raises the number there and says why; whoever
needs less lowers it: a number that is more than SLACK too high is a failure, too."""
import os
import sys

SLACK = 40


def main():
    wrong, total = [], 0
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "trusted-lines"), encoding="utf-8") as text:
        rows = [line.split(None, 2) for line in text if line.strip() and line[0] != "#"]
    for folder, most, _ in rows:
        lines = 0
        for at, _, names in os.walk(os.path.join("src", folder)):
            for name in names:
                if name.endswith((".c", ".h")):
                    with open(os.path.join(at, name), encoding="utf-8") as source:
                        lines += sum(1 for _ in source)
        total += lines
        if not lines:
            wrong.append(f"src/{folder}: there is no such folder")
        elif lines > int(most):
            wrong.append(f"src/{folder}: {lines} lines, and tests/lint/trusted-lines allows {most}: take some away, or raise it there and say why")
        elif lines < int(most) - SLACK:
            wrong.append(f"src/{folder}: {lines} lines, fewer than the {most} of tests/lint/trusted-lines: lower it there")
    print("\n".join(wrong or [f"{total} lines"]))
    return 1 if wrong else 0


sys.exit(main())
