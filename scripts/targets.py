#!/usr/bin/env python3
"""What ninja must build for the tests of some suites, and nothing else: targets.py BUILD_FOLDER SUITE..."""
import json
import os
import sys


def main():
    build = os.path.abspath(sys.argv[1])
    found = set()
    with open(os.path.join(build, "meson-info", "intro-tests.json"), encoding="utf-8") as text:
        for test in json.load(text):
            if not {suite.split(":")[-1] for suite in test["suite"]} & set(sys.argv[2:]):
                continue
            found |= {os.path.relpath(word, build) for word in test["cmd"] if word.startswith(build + os.sep)}
    print("\n".join(sorted(found)))


main()
