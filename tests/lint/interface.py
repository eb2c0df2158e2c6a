#!/usr/bin/env python3
"""What libpinfold's last release promised still holds: interface.py BUILD_FOLDER [--write | --try]

tests/lint/abi-record has a line for each thing that programs are compiled or linked with: functions and their types, values of
enumerators and macros, fields with their place, size and type, sizes of structures, versions of symbols. A line begins with the
release that had it first, or "next" until there is one; --write adds what is new as "next", and scripts/release.sh refuses those.
A line "gone" is of what was withdrawn on purpose. A structure whose first field is its size may get new fields at its end.
--try changes the header in each way that breaks programs, and says which one went unnoticed.
"""
import glob
import os
import re
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RECORD = "tests/lint/abi-record"
PLAIN_TYPES = {"void", "char", "int", "unsigned", "long", "size_t", "int64_t", "uint64_t", "uint32_t"}


def text(path):
    with open(os.path.join(TOP, path), encoding="utf-8") as file:
        return file.read()


def output(*words):
    return subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout


def newest(build, name):
    """A build folder that has seen the source renamed holds old ones, too."""
    found = [path for path in glob.glob(os.path.join(build, "src/**", name), recursive=True) if os.path.exists(path)]
    if not found:
        sys.exit(f"there is no {name} in {build}: scripts/build.sh host")
    return max(found, key=os.path.getmtime)


# ---- what a program is compiled with

def parts(said, by):
    """`said` at each `by` that stands in no parentheses."""
    depth, found = 0, [""]
    for c in said:
        depth += (c == "(") - (c == ")")
        if c == by and depth == 0:
            found.append("")
        else:
            found[-1] += c
    return [" ".join(one.split()) for one in found if one.strip()]


def unnamed(parameter):
    """A parameter's type: another name for it breaks nothing."""
    last = re.search(r"(\w+)$", parameter)
    if not last or last.group(1) in PLAIN_TYPES or " " not in parameter or re.fullmatch(r"(const )?(struct|enum) \w+", parameter):
        return parameter
    return parameter[: last.start()].rstrip()


def signature(result, name, parameters):
    return f"function {' '.join(result.split())} {name}({', '.join(unnamed(one) for one in parts(parameters, ','))})".replace("* ", "*")


def fields(body):
    """(name, type with the name) of each, in order."""
    for said in parts(body, ";"):
        first, *more = parts(said, ",")
        pointer = re.search(r"\(\*(\w+)\)\((.*)\)$", first)
        if pointer:
            yield pointer.group(1), f"{first[: pointer.start()]}(*)({', '.join(unnamed(one) for one in parts(pointer.group(2), ','))})"
            continue
        base = re.match(r"((?:const )?(?:struct |enum )?\w+)\s*", first)
        for one in [first[base.end():], *more]:
            array = re.search(r"\[.*$", one)
            declared = one[: array.start()] if array else one
            name = re.search(r"(\w+)$", declared).group(1)
            yield name, f"{base.group(1)} {declared[: -len(name)].strip()}{array.group(0) if array else ''}".strip()


def interface(header):
    """The lines of a header, but for the version of a release."""
    plain = re.sub(r"/\*.*?\*/", " ", header, flags=re.S)
    lines = [signature(*one) for one in re.findall(r"^PINFOLD_PUBLIC ([^;{(]*?)(\w+)\(([^;]*)\);", plain, re.M)]
    asked = []  # what the compiler knows
    for name in re.findall(r"^#define (PINFOLD_\w+)[ \t]+\S", plain, re.M):
        if name != "PINFOLD_PUBLIC":
            asked.append((f"macro {name}", name))
    for name, body in re.findall(r"^enum (pinfold_\w+) \{(.*?)\}", plain, re.M | re.S):
        for one in parts(body, ","):
            asked.append((f"enum {name} {one.split()[0]}", one.split()[0]))
    for name, body in re.findall(r"^struct (pinfold_\w+) \{\n(.*?)^\};", plain, re.M | re.S):
        found = list(fields(body))
        if found[0][0] != "size":
            asked.append((f"size {name}", f"sizeof(struct {name})"))
        for field, kind in found:
            asked.append((f"field {name} {field} {kind} at", f"offsetof(struct {name}, {field})"))
            asked.append((f"field {name} {field} bytes", f"sizeof(((struct {name} *)0)->{field})"))
    with tempfile.TemporaryDirectory() as scratch:
        for name, written in (("pinfold.h", header), ("ask.c", '#include "pinfold.h"\n#include <stdio.h>\nint main(void)\n{\n'
                               + "".join(f'    printf("%s %lld\\n", "{said}", (long long)({expression}));\n' for said, expression in asked) + "}\n")):
            with open(os.path.join(scratch, name), "w", encoding="utf-8") as file:
                file.write(written)
        program = os.path.join(scratch, "ask")
        subprocess.run(["cc", "-I", scratch, os.path.join(scratch, "ask.c"), "-o", program], check=True)
        return lines + output(program).splitlines()


def linked(build):
    """The lines of the built library."""
    library = newest(build, "libpinfold.so")
    lines = [f"soname {name}" for name in re.findall(r"\(SONAME\).*\[(.*)\]", output("readelf", "-d", library))]
    return lines + [f"symbol {name.replace('@@', ' ')}" for name in re.findall(r" [A-Z] (pinfold_\S+)$", output("nm", "-D", "--defined-only", library), re.M)]


# ---- and what was

def subject(line):
    """What a line is about, so that the old one and the new one can be shown beside each other."""
    kind, *words = line.split()
    if kind == "function":
        return re.search(r"(\w+)\(", line).group(1) + "()"
    return " ".join(words[:2]) if kind in ("enum", "field") else words[0]


def compare(record, now):
    """(what breaks programs, what the record lacks or has too much)"""
    broken, stale = [], []
    here = set(now)
    for since, line in record:
        if since == "gone" or line in here:
            continue
        if since == "next":
            stale.append(f"{RECORD}: no release had '{line}', which is no more so: remove the line")
            continue
        beside = [one for one in now if one.split()[0] == line.split()[0] and subject(one) == subject(line) and one.split()[-2] == line.split()[-2]]
        broken.append(f"{subject(line)}: programs compiled with {since} break: '{line}' is now {repr(beside[0]) if beside else 'missing'}. Leave it as it was and "
                      "add what is new beside it, under another name or at the end of a structure that has its size. If it has to break: another soname, "
                      f"'gone' in place of the version in {RECORD}, and a line under 'When you upgrade' in CHANGELOG.md")
    known = {line for _, line in record}
    gone = {line for since, line in record if since == "gone"}
    stale += [f"{RECORD}: lacks 'next {line}'; python3 tests/lint/interface.py BUILD_FOLDER --write adds what is new" for line in now if line not in known]
    stale += [f"{RECORD}: '{line}' is gone, it says, but is there" for line in gone & here]
    stale += [f"CHANGELOG.md: does not name {subject(line)}, which is gone" for line in gone if subject(line) not in text("CHANGELOG.md")]
    return broken, stale


def read():
    lines = [line.split(" ", 1) for line in text(RECORD).splitlines() if line and not line.startswith("#")]
    wrong = [since for since, _ in lines if since not in ("next", "gone") and not re.fullmatch(r"\d+\.\d+\.\d+", since)]
    if wrong or len(lines) < 400:
        sys.exit(f"{RECORD}: {f'{wrong[0]!r} is no release' if wrong else 'is not whole'}")
    return [(since, line) for since, line in lines]


# What breaks programs: a text of the header, and what it becomes.
BREAKS = [
    ("int pinfold_policy_load(", "long pinfold_policy_load("),
    ("pinfold_run(struct pinfold_policy *policy, ", "pinfold_run("),
    ("PINFOLD_PUBLIC const char *pinfold_version(void);", ""),
    ("PINFOLD_ERROR_NONE,", "PINFOLD_ERROR_NONE = 1,"),
    ("    PINFOLD_NO, ", "    PINFOLD_SOME, PINFOLD_NO, "),
    ("#define PINFOLD_TEXT_CONVERTED 2", "#define PINFOLD_TEXT_CONVERTED 8"),
    ("    char text[1024];", "    char text[512];"),
    ("    const char *profile; ", "    int before; const char *profile; "),
    ("    int no_layers; ", "    unsigned no_layers; "),
    ("    const char *name, *value;", "    const char *value, *name;"),
]


def unnoticed(record, header):
    links = [line for since, line in record if line.split()[0] in ("soname", "symbol") and since != "gone"]
    for was, becomes in BREAKS:
        if header.count(was) != 1:
            yield f"include/pinfold.h: '{was}' is not there once: BREAKS of tests/lint/interface.py needs another example"
        elif not compare(record, interface(header.replace(was, becomes)) + links)[0]:
            yield f"'{was}' -> '{becomes}' breaks programs, and was not noticed"
    at_the_end = header.replace("    const struct pinfold_option *wishes;\n", "    const struct pinfold_option *wishes;\n    int more;\n")
    broken, lacks = compare(record, interface(at_the_end) + links)
    if broken or len(lacks) != 2:
        yield f"a new field at the end of a structure with its size: {broken or lacks}"


def main():
    if sys.argv[2:] == ["--try"]:
        wrong = list(unnoticed(read(), text("include/pinfold.h")))
    else:
        now = linked(sys.argv[1]) + interface(text("include/pinfold.h"))
        record = read()
        if sys.argv[2:] == ["--write"]:
            known = {line for _, line in record}
            record = [one for one in record if one[0] != "next" or one[1] in set(now)] + [("next", line) for line in now if line not in known]
            head = [line for line in text(RECORD).splitlines() if line.startswith("#")]
            with open(os.path.join(TOP, RECORD), "w", encoding="utf-8") as file:
                file.write("\n".join(head + sorted((f"{since} {line}" for since, line in record), key=lambda one: (one.split(" ", 1)[1], one))) + "\n")
        broken, stale = compare(record, now)
        wrong = broken + stale
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
