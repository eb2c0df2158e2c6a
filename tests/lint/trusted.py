#!/usr/bin/env python3
"""The trusted part does not grow unnoticed: trusted.py. Its folders are those whose mistakes are holes; tests/lint/trusted-lines
has the lines that each may have, comments included, one row for each reason. Whoever needs more adds a row there; whoever needs
fewer lowers one: a sum that is more than SLACK too high is a failure, too."""
import os
import re
import sys

SLACK = 40
TABLE = "tests/lint/trusted-lines"


def read(text):
    """{folder: [(lines, reason)]} and what is wrong with the table."""
    folders, wrong, rows = {}, [], None
    for number, line in enumerate(text, 1):
        line = line.rstrip("\n")
        if not line or line[0] == "#":
            continue
        row = re.fullmatch(r" +([1-9]\d*)  (\S.*)", line)
        if row and rows is not None:
            rows.append((int(row[1]), row[2]))
        elif re.fullmatch(r"[a-z/]+", line) and line not in folders:
            rows = folders[line] = []
        else:
            wrong.append(f"{TABLE}:{number}: neither a new folder nor '    LINES  REASON' below one")
    return folders, wrong


def size(folder):
    lines = 0
    for at, _, names in os.walk(os.path.join("src", folder)):
        for name in names:
            if name.endswith((".c", ".h")):
                with open(os.path.join(at, name), encoding="utf-8") as source:
                    lines += sum(1 for _ in source)
    return lines


def main():
    total = 0
    with open(TABLE, encoding="utf-8") as text:
        folders, wrong = read(text)
    for folder, rows in folders.items():
        lines, most = size(folder), sum(count for count, _ in rows)
        total += lines
        if not lines:
            wrong.append(f"src/{folder}: there is no such folder")
        elif lines > most:
            wrong.append(f"src/{folder}: {lines} lines, {lines - most} more than {TABLE} has reasons for: take some away, or add a row there that says why")
        elif lines < most - SLACK:
            wrong.append(f"src/{folder}: {lines} lines, {most - lines} fewer than the rows of {TABLE} add up to: lower them there")
        if len({reason for _, reason in rows}) < len(rows):
            wrong.append(f"{TABLE}: {folder} has one reason twice")
    print("\n".join(wrong or [f"{total} lines"]))
    return 1 if wrong or not folders else 0


sys.exit(main())
