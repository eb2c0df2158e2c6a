#!/usr/bin/env python3
"""A name of a file means one thing in its program: names.py BUILD_FOLDER ...

The sources of a target are compiled as one text (meson.build, `whole`), so a function, variable, type, enumerator or macro
that one of them defines for itself may stand in no other. A macro that its file undefines again counts for nothing.
Nor do two of its files have one name. And a structure's name means one thing in the whole of src/, headers included.
Folders of which one may include the other are neighbours: who reads one has the other open. A function that both have for
themselves needs two names, or is in tests/lint/one-meaning, which says what it means in all of them; two of one text are one.
"""
import collections
import json
import os
import re
import sys

import includes

ONE_MEANING = "tests/lint/one-meaning"
HELPER = re.compile(r"^static (?:inline |_Noreturn )*[\w ]+?[ *]+(\w+)\(([^;{]*)\)\s*\n\{\n(.*?)\n\}\n", re.M | re.S)
# Targets whose sources are compiled one by one.
APART = set()

NOISE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
# Functions' braces stand in column one (.clang-format).
BODY = re.compile(r"\n\{\n.*?\n\}(?=\n)", re.S)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*\n", re.M)
ELSEWHERE = re.compile(r"^extern\b[^;]*;", re.M)
TOKEN = re.compile(r"\w+|[^\w\s]")
OPEN, CLOSE = {"(", "{", "["}, {")", "}", "]"}


def is_name(token):
    return token[0].isalpha() or token[0] == "_"


def names(text):
    """What `text` defines or declares outside of functions."""
    text = NOISE.sub(" ", text)
    found = set(re.findall(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", text, re.M))
    found -= set(re.findall(r"^[ \t]*#[ \t]*undef[ \t]+(\w+)", text, re.M))
    tokens = TOKEN.findall(ELSEWHERE.sub("", DIRECTIVE.sub("", BODY.sub("\n{}", text))))
    tokens.append(";")
    depth, value, function, enums = 0, False, False, []
    for i, token in enumerate(tokens[:-1]):
        before, after = tokens[i - 1] if i else ";", tokens[i + 1]
        if token in OPEN:
            if token == "{" and "enum" in (before, tokens[i - 2]):
                enums.append(depth)
            depth += 1
        elif token in CLOSE:
            depth -= 1
            if enums and enums[-1] == depth:
                enums.pop()
            if depth == 0 and token == "}" and function:  # a function's end
                value = function = False
        elif depth == 0 and token == ";":
            value = function = False
        elif depth == 0 and token == "=":
            value = True
        elif depth == 0 and token == ",":
            value = False
        elif not is_name(token):
            pass
        elif before in ("struct", "union", "enum"):
            if after == "{" and depth == 0:
                found.add(token)
        elif enums and depth == enums[-1] + 1:
            if before in ("{", ","):
                found.add(token)
        elif depth == 0 and not value and not function:
            if after == "(" and not token.startswith("__") and token not in ("_Static_assert", "_Alignas"):
                found.add(token)
                function = True
            elif after in ("=", ";", ",", "["):
                found.add(token)
        elif depth == 1 and not value and not function and before == "*" and tokens[i - 2] == "(":
            found.add(token)  # a pointer to a function
    return found


# What a program sees of the library as opaque is one thing in the server and another in the client.
OPAQUE = {"pinfold_session", "pinfold_result", "pinfold_policy"}


def types(src):
    """Structures of one name in two files; programs of the build (src/tools) stand for themselves."""
    where, wrong = {}, set()
    for at, _, files in os.walk(src):
        for name in sorted(files):
            path = os.path.join(at, name)
            if not name.endswith((".c", ".h")) or os.path.join(src, "tools") == at:
                continue
            with open(path, encoding="utf-8") as text:
                for kind, tag in re.findall(r"\b(struct|union|enum) (\w+) \{", NOISE.sub(" ", text.read())):
                    first = where.setdefault(tag, path)
                    if first != path and tag not in OPAQUE:
                        wrong.add(f"{path}: '{kind} {tag}' stands in {first}, too: one of the two needs another name")
    return wrong


def neighbours(a, b):
    return a != b and (b in includes.MAY.get(a, "").split() or a in includes.MAY.get(b, "").split())


def helpers(top):
    """Functions of one name in neighbouring folders that nothing says the meaning of; and of one text."""
    where, wrong, used = collections.defaultdict(list), set(), set()
    with open(os.path.join(top, ONE_MEANING), encoding="utf-8") as text:
        said = [line.split(None, 1) for line in text.read().splitlines() if line and line[0] != "#"]
    for at, _, files in os.walk(os.path.join(top, "src")):
        for name in sorted(files):
            path = os.path.relpath(os.path.join(at, name), top)
            if name.endswith(".c"):
                with open(os.path.join(top, path), encoding="utf-8") as text:
                    for helper, arguments, body in HELPER.findall(NOISE.sub(lambda m: m.group(0) if m.group(0)[0] in "\"'" else " ", text.read())):
                        where[helper].append((path, " ".join(arguments.split()), " ".join(body.split())))
    if len(where) < 3000:
        wrong.add(f"src: only {len(where)} functions of files' own were found: this test reads them wrongly")
    for helper, found in where.items():
        for i, (path, arguments, body) in enumerate(found):
            for other, its_arguments, its_body in found[:i]:
                if not neighbours(path.split("/")[1], other.split("/")[1]):
                    continue
                if (arguments, body) == (its_arguments, its_body):
                    wrong.add(f"{path}: {helper}() stands in {other} word by word: have one, in a header of a folder that both may include")
                means = [pattern for pattern, _ in said if re.fullmatch(pattern.replace("*", r"\w+"), helper)]
                used.update(means)
                if not means:
                    wrong.add(f"{path}: {helper}() stands in {other}, too, whose folder is a neighbour's: rename one, or say in {ONE_MEANING} what it means in both")
    wrong |= {f"{ONE_MEANING}: {pattern} is not in two neighbouring folders any more: remove its line" for pattern, _ in said if pattern not in used}
    return wrong


def main():
    targets = collections.defaultdict(set)
    for build in sys.argv[1:]:
        with open(os.path.join(build, "meson-info", "intro-targets.json"), encoding="utf-8") as text:
            for target in json.load(text):
                for part in target["target_sources"]:
                    for source in part.get("sources", []):
                        if source.endswith(".c") and target["name"] not in APART and not os.path.relpath(target["defined_in"]).startswith("tests/"):
                            targets[target["id"]].add(os.path.normpath(source))
    if not targets:
        print(f"no targets in {' '.join(sys.argv[1:])}: not set up?")
        return 1
    top = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    known, wrong = {}, types(os.path.join(top, "src")) | helpers(top)
    for target, sources in targets.items():
        where, files = {}, {}
        for source in sorted(sources):
            folder = re.match(r"(.*/)?src/[^/]+/", source)
            first = files.setdefault((folder and folder.group(0), os.path.basename(source)), source)
            if first != source:
                wrong.add(f"{source}: {first} has the same name, in the same folder of src/")
            if source not in known:
                with open(source, encoding="utf-8") as text:
                    known[source] = names(text.read())
            for name in known[source]:
                first = where.setdefault(name, source)
                if first != source:
                    wrong.add(f"{source}: '{name}' stands in {first}, too: one of the two needs another name, or both share one in a header")
    print("\n".join(sorted(wrong)).replace(os.getcwd() + "/", ""), end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
