#!/usr/bin/env python3
"""Runs the tests that meson knows in one of its suites, one line per cmocka test (or per program that speaks no TAP).

    run.py SUITE BUILD_FOLDER [NAME...]

Each program runs by itself with a time limit; several at a time, but for suites that make boxes as two users.
As root, programs of the suites "engine", "guard", "files" and "lib" run a second time as $PINFOLD_TEST_USER.
"""
import ast
import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys

# Count the control groups of the whole machine: run with nothing else, by the suite that asks for them by name.
ALONE = ("box_limits",)
# Under qemu-user there are no namespaces, filters or control groups: what makes real boxes is left to real machines.
REAL = ("box", "box_term", "box_limits", "box_serve")
TWICE = ("engine", "guard", "fault", "files")
CMOCKA = ("unit", "golden", "box")
LIMIT = 600
# cmocka writes a skipped test as "not ok 5 # SKIP name".
TAP_LINE = re.compile(r"^\s*(not )?ok\s+\d+\s*(?:-\s*)?([^#\s]\S*)?(?:\s*#\s*(skip)\b\s*(.*))?", re.I)


def run(test, wrapper, slow, user):
    """(lines to print, failed?); slow: each step takes ten times as long as usual"""
    name = test["name"].replace(" ", "-") + ("@user" if user else "")
    env = {**os.environ, **test["env"], "CMOCKA_MESSAGE_OUTPUT": "TAP",
           "ASAN_OPTIONS": "detect_leaks=1:abort_on_error=0", "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1"}
    if slow and os.environ.get("PINFOLD_TEST_ALL") != "1":
        env["PINFOLD_TEST_TRIES_BY"] = "10"
    extra, command, limit = {}, list(test["cmd"]), max(LIMIT, test.get("timeout") or 0)
    if user:
        # The build may lie where the user cannot go.
        place = os.path.join(os.environ["PINFOLD_SCRATCH"], "programs")
        os.makedirs(place, exist_ok=True)
        sqlite = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(command[0]))), "pinfold-sqlite")
        if test["name"] == "agents" and os.path.exists(sqlite):  # which it starts
            shutil.copy(sqlite, place)
        command[0] = shutil.copy(command[0], place)
        extra = {"user": user, "group": user, "extra_groups": []}
        env.update(HOME=os.path.expanduser("~" + user), USER=user, LOGNAME=user)
    try:
        done = subprocess.run(wrapper + command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=limit, cwd=test.get("workdir") or "/", check=False, **extra)
        text, status = done.stdout.decode("utf-8", "backslashreplace"), done.returncode
    except subprocess.TimeoutExpired as late:
        text = (late.stdout or b"").decode("utf-8", "backslashreplace") + f"\nno end after {limit} s"
        status = -1
    lines, seen, failed, other = [], 0, 0, []
    for line in text.splitlines():
        tap = TAP_LINE.match(line)
        if not tap:
            other.append("  " + line)
            continue
        seen += 1
        what = f"{name}/{tap.group(2) or tap.group(4) or 'unnamed'}"
        if tap.group(3):
            lines.append(f"skip {what}: {other[-1].strip() if other else 'says no reason'}")
        elif tap.group(1):
            failed += 1
            lines.append(f"FAIL {what}:")
        else:
            lines.append(f"ok {what}")
    if status == 77 and not seen:
        lines.append(f"skip {name}: {other[-1].strip() if other else 'says no reason'}")
    elif status != 0 and not failed:
        lines.append(f"FAIL {name}: ended with {status}")
        failed += 1
    elif not seen:
        lines.append(f"ok {name} {other[-1].strip() if other else ''}")
    return lines + (other[-60:] if failed else []), failed


def knows_cmocka(build):
    described = subprocess.run(["meson", "introspect", "--dependencies", build], check=True, stdout=subprocess.PIPE)
    return any(d["name"] == "cmocka" for d in json.loads(described.stdout))


def sanitized(build):
    described = subprocess.run(["meson", "introspect", "--buildoptions", build], check=True, stdout=subprocess.PIPE)
    return any(o["name"] == "b_sanitize" and o["value"] not in ("none", []) for o in json.loads(described.stdout))


def main():
    suite, build = sys.argv[1], os.path.abspath(sys.argv[2])
    described = subprocess.run(["meson", "introspect", "--tests", build], check=True, stdout=subprocess.PIPE)
    tests = [t for t in json.loads(described.stdout) if any(s.split(":")[-1] == suite for s in t["suite"])]
    user = os.environ.get("PINFOLD_TEST_USER", "")
    wrapper = []
    cross = os.path.join(build, "..", "cross.ini")
    if os.path.exists(cross):
        with open(cross, encoding="utf-8") as text:
            wrapper = ast.literal_eval(re.search(r"^exe_wrapper = (.*)$", text.read(), re.M).group(1))
    slow = bool(wrapper) or sanitized(build)
    names = sys.argv[3:]
    tests = [t for t in tests if (t["name"] in names if names else t["name"] not in (REAL if wrapper else ALONE))]
    runs = [(t, "") for t in tests]
    if suite in TWICE and user:
        runs += [(t, user) for t in tests]
    any_failed = 0
    with concurrent.futures.ThreadPoolExecutor(1 if suite in TWICE else os.cpu_count() or 1) as pool:
        for lines, failed in pool.map(lambda r: run(r[0], wrapper, slow, r[1]), runs):
            any_failed |= failed
            print("\n".join(lines), flush=True)
    if not tests and suite in CMOCKA and not knows_cmocka(build):
        print(f"skip {suite}: cmocka is not installed")
        return
    if not tests:
        print(f"FAIL {suite}: it has no test named {' or '.join(names)} (PINFOLD_TEST_ROWS)" if names else f"FAIL {suite}: meson knows no test of this suite in {sys.argv[2]}")
    sys.exit(1 if any_failed or not tests else 0)


main()
