#!/usr/bin/env python3
"""Reads one suite's output on standard input and prints one compact line per test.

Understood: our own lines ("ok NAME", "FAIL NAME: why", "skip NAME: why"), TAP ("ok 1 - name # skip why", "not ok 1 - name",
bats -t and cmocka speak it), and "N details" lines, which are shown only below a failure. "FAIL left-running" (tests/lib/suite.py) is
a failure of its own only where no row failed.

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
DETAILS = 120
NOT_EXPECTED = "skipped, and tests/expected-skips does not expect it"
RUNNING = re.compile(r"\s*still running: ")
PROCESS = re.compile(r"[^,]*\((\d+)\)")


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


def left_by_failed(rows, left):
    """What ran on when the suite had ended was left by rows that failed, where some did: each says so. Otherwise it is a failure of its own."""
    failed = [row for row in rows if row[0] == "FAIL" and not row[2].startswith(NOT_EXPECTED)]
    of_row = {}
    for n, row in enumerate(failed):
        for line in filter(RUNNING.match, row[3]):
            for one in PROCESS.finditer(RUNNING.sub("", line)):
                of_row.setdefault(one.group(1), n)
    for n, row in enumerate(failed):
        ours = [one.group().strip() for one in PROCESS.finditer(left.partition(": ")[2]) if of_row.get(one.group(1), len(failed) - 1) == n]
        if ours:
            row[3].append("  ran on when the suite had ended, and was ended then: " + ", ".join(ours))
    return bool(failed)


def main():
    suite, status_file, counts_file = sys.argv[1:4]
    strict = os.environ.get("PINFOLD_MUST_RUN") == "1"
    allowed = expected_skips()
    counts = {"ok": 0, "FAIL": 0, "skip": 0}
    rows, details = [], []  # rows: (kind, name, note, what is shown below it)
    left = None

    def say(kind, name, note):
        if kind == "skip" and strict and not any(s in (suite, "*") and p.match(name) for s, p, _ in allowed):
            kind, note = "FAIL", f"{NOT_EXPECTED}: {note}"
        counts[kind] += 1
        rows.append((kind, name, note, []))

    for raw in sys.stdin.buffer:
        line = raw.decode("utf-8", "backslashreplace").rstrip("\n")
        own, tap = OWN.match(line), TAP.match(line)
        if tap:
            name = re.sub(r"\s+", "-", tap.group(2).strip()) or "unnamed"
            kind = "skip" if tap.group(3) else ("FAIL" if tap.group(1) else "ok")
            say(kind, name, tap.group(4) or "")
        elif own and own.group(1, 2) == ("FAIL", "left-running"):
            left = own.group(3)
        elif own:
            say(own.group(1), own.group(2), own.group(3) or "")
        elif not PLAN.match(line):
            details.append(line)
            del details[:-DETAILS]
            if rows and rows[-1][0] == "FAIL" and len(rows[-1][3]) < DETAILS:
                rows[-1][3].append(line)
    if left is not None and not left_by_failed(rows, left):
        say("FAIL", "left-running", left)
        rows[-1][3].extend(details)
    with open(status_file, encoding="ascii") as text:
        status = int(text.read().strip() or "1")
    if status != 0 and counts["FAIL"] == 0:
        say("FAIL", "whole-suite", f"its program ended with {status} although no test failed; last lines:")
        rows[-1][3].extend(details)
    if sum(counts.values()) == 0:
        say("FAIL", "whole-suite", "no test ran")
    for kind, name, note, below in rows:
        print(f"{kind:<4} {suite}/{name}" + (f"  {note}" if note else ""))
        for line in below:
            print("       | " + line)
    with open(counts_file, "w", encoding="ascii") as text:
        print(counts["ok"], counts["FAIL"], counts["skip"], file=text)


main()
