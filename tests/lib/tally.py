#!/usr/bin/env python3
"""Reads one suite's output on standard input and prints one compact line per test.

Understood: our own lines ("ok NAME", "FAIL NAME: why", "skip NAME: why"), TAP ("ok 1 - name # skip why", "not ok 1 - name",
bats -t and cmocka speak it), and "N details" lines, which are shown only below a failure.

    tally.py SUITE STATUS_FILE COUNTS_FILE < output

STATUS_FILE holds the exit status of the suite's program once its output ended: a program that fails without a failed
test is a failed test itself. With PINFOLD_MUST_RUN=1 a skip that tests/expected-skips does not name is a failure.
"""
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TAP = re.compile(r"^(not )?ok\s+\d+\s*(?:-\s*)?(.*?)(?:\s+#\s*(skip|todo)\b\s*(.*))?\s*$", re.I)
OWN = re.compile(r"^(ok|FAIL|skip) (\S+?):?(?:\s+(.*))?$")
PLAN = re.compile(r"^\d+\.\.\d+|^TAP version")
DETAILS = 60


def expected_skips():
    """{(suite, name pattern): reason}; a name pattern is a regular expression for the whole name."""
    found = []
    with open(os.path.join(HERE, "..", "expected-skips"), encoding="utf-8") as text:
        for number, line in enumerate(text, 1):
            line = line.strip()
            if not line or line.startswith("#"):
                continue
            parts = line.split(None, 2)
            if len(parts) < 3:
                sys.exit(f"tests/expected-skips:{number}: SUITE NAME REASON")
            found.append((parts[0], re.compile(parts[1] + r"\Z"), parts[2]))
    return found


def main():
    suite, status_file, counts_file = sys.argv[1:4]
    strict = os.environ.get("PINFOLD_MUST_RUN") == "1"
    allowed = expected_skips()
    counts = {"ok": 0, "FAIL": 0, "skip": 0}
    details, showing, shown = [], False, 0

    def say(kind, name, note):
        if kind == "skip" and strict and not any(s in (suite, "*") and p.match(name) for s, p, _ in allowed):
            kind, note = "FAIL", f"skipped, and tests/expected-skips does not expect it: {note}"
        counts[kind] += 1
        print(f"{kind:<4} {suite}/{name}" + (f"  {note}" if note else ""))
        return kind == "FAIL"

    for raw in sys.stdin.buffer:
        line = raw.decode("utf-8", "backslashreplace").rstrip("\n")
        own, tap = OWN.match(line), TAP.match(line)
        if tap:
            name = re.sub(r"\s+", "-", tap.group(2).strip()) or "unnamed"
            kind = "skip" if tap.group(3) else ("FAIL" if tap.group(1) else "ok")
            showing, shown = say(kind, name, tap.group(4) or ""), 0
        elif own:
            showing, shown = say(own.group(1), own.group(2), own.group(3) or ""), 0
        elif PLAN.match(line):
            continue
        else:
            details.append(line)
            del details[:-DETAILS]
            if showing and shown < DETAILS:
                shown += 1
                print("       | " + line)
            continue
    with open(status_file, encoding="ascii") as text:
        status = int(text.read().strip() or "1")
    if status != 0 and counts["FAIL"] == 0:
        say("FAIL", "whole-suite", f"its program ended with {status} although no test failed; last lines:")
        print("\n".join("       | " + line for line in details))
    if sum(counts.values()) == 0:
        say("FAIL", "whole-suite", "no test ran")
    with open(counts_file, "w", encoding="ascii") as text:
        print(counts["ok"], counts["FAIL"], counts["skip"], file=text)


main()
