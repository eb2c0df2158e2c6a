#!/usr/bin/env python3
"""Names of libpinfold are said five times, and all agree: abi.py BUILD_FOLDER

What the built library exports, what pinfold.h declares, pinfold.map, the static archive, and debian/libpinfold0.symbols, which also
knows since which version a name is there. A name that leaves or joins the interface is thus a line that somebody writes. What is
behind the names (types, values, places of fields): interface.py.
"""
import glob
import os
import re
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def text(path):
    with open(os.path.join(TOP, path), encoding="utf-8") as file:
        return file.read()


def exported(*words):
    lines = subprocess.run(["nm", *words], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    found = [line.split() for line in lines]
    return {parts[2] for parts in found if len(parts) == 3 and parts[1] != "A"}


def newest(build, name):
    """A build folder that has seen the source renamed holds old ones, too."""
    found = [path for path in glob.glob(os.path.join(build, "src/**", name), recursive=True) if os.path.exists(path)]
    if not found:
        sys.exit(f"there is no {name} in {build}: scripts/build.sh host")
    return max(found, key=os.path.getmtime)


def main():
    build = sys.argv[1]
    maps = glob.glob(os.path.join(TOP, "src/**/pinfold.map"), recursive=True)
    library = newest(build, "libpinfold.so")
    archive = newest(build, "libpinfold.a")
    if len(maps) != 1:
        sys.exit(f"one pinfold.map in src is needed, found {maps}")
    shared = exported("-D", "--defined-only", library)
    version = {name.partition("@@")[2] for name in shared}
    symbols = re.findall(r"^ (pinfold_\w+)@(\w+) (\S+)$", text("debian/libpinfold0.symbols"), re.M)
    said = {
        "the shared library": {name.partition("@@")[0] for name in shared},
        "the static library": exported("--defined-only", "--extern-only", archive),
        "include/pinfold.h": set(re.findall(r"^PINFOLD_PUBLIC [^;{(]*?\b(\w+)\(", text("include/pinfold.h"), re.M)),
        "pinfold.map": set(re.findall(r"^\s+(\S+);", text(maps[0]).partition("local:")[0], re.M)),
        "debian/libpinfold0.symbols": {name for name, _, _ in symbols},
    }
    every = set().union(*said.values())
    if len(every) < 40:
        sys.exit(f"only {len(every)} names were found: this test reads them wrongly")
    wrong = [f"{name}: is not in {place}" for place, names in said.items() for name in sorted(every - names)]
    if version != {one for _, one, _ in symbols}:
        wrong.append(f"versions of symbols: {sorted(version)} in the library, {sorted({one for _, one, _ in symbols})} in debian/libpinfold0.symbols")
    print("\n".join(wrong))
    return 1 if wrong else 0


sys.exit(main())
