#!/usr/bin/env python3
"""A name of a file means one thing in its program: names.py BUILD_FOLDER ...

The sources of a target are compiled as one text (meson.build, `whole`), so a function, variable, type, enumerator or macro
that one of them defines for itself may stand in no other. A macro that its file undefines again counts for nothing.
Nor do two of its files have one name. And a structure's name means one thing in the whole of src/, headers included.
"""
import collections
import json
import os
import re
import sys

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
    known, wrong = {}, types(os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "src"))
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
