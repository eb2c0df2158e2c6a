#!/usr/bin/env python3
"""No function longer than LIMIT lines: functions.py LIMIT. Reports the longest as well."""
import glob
import re
import sys

# Functions begin in column one, and their braces stand in column one too (.clang-format holds that).
EXCEPTIONS = {}  # {"file:function": reason}


def lengths(path):
    name, begin = None, 0
    with open(path, encoding="utf-8") as text:
        lines = text.read().split("\n")
    for number, line in enumerate(lines, 1):
        if line == "{":
            begin = number
            head = " ".join(lines[max(0, number - 6):number - 1])
            found = re.findall(r"(\w+)\((?=[^()]*(?:\([^()]*\)[^()]*)*\)[^;{}]*$)", head)
            name = found[-1] if found else "?"
        elif line == "}" and begin:
            yield number - begin + 2, name
            begin = 0


def main():
    limit, wrong, longest = int(sys.argv[1]), [], (0, "", "")
    for path in sorted(glob.glob("src/**/*.c", recursive=True) + glob.glob("src/**/*.h", recursive=True)):
        for n, name in lengths(path):
            longest = max(longest, (n, path, name))
            if n > limit and f"{path}:{name}" not in EXCEPTIONS:
                wrong.append(f"{path}: {name}() has {n} lines, more than {limit}")
    print("\n".join(wrong + ["longest: %s() in %s, %d lines" % (longest[2], longest[1], longest[0])]))
    return 1 if wrong else 0


sys.exit(main())
