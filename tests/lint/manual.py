#!/usr/bin/env python3
"""The manual and the other documents against the program: manual.py PINFOLD

Each policy key is in pinfold-policy(5), each subcommand, member of a result, exit status and name of an event in the manual, and no page names a policy key that is none.
Links of the documents lead to a file, and to a heading of it.
"""
import glob
import json
import os
import re
import subprocess
import sys

PINFOLD = sys.argv[1]
wrong = []


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


PAGES = {path: read(path) for path in sorted(glob.glob("docs/*.scd"))}
# scdoc's backslashes; a word may be emphasized by * or _.
PLAIN = {path: text.replace("\\", "") for path, text in PAGES.items()}
ALL = "\n".join(PLAIN.values())


def has_word(word, text=ALL):
    return re.search(r"(?<![A-Za-z0-9.-])" + re.escape(word) + r"(?![A-Za-z0-9-])", re.sub(r"(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])", " ", text)) is not None


def ask(*words):
    return subprocess.run([PINFOLD, *words], stdout=subprocess.PIPE, text=True, check=True).stdout


# ---- policy keys
def keys_of(schema, prefix=""):
    for name, value in schema.get("properties", {}).items():
        if value.get("properties") and value.get("type") == "object":
            yield from keys_of(value, prefix + name + ".")
        else:
            yield prefix + name


KEYS = set(keys_of(json.loads(ask("policy", "schema"))))
if len(KEYS) < 50:
    wrong.append(f"the schema has only {len(KEYS)} keys")
for key in sorted(KEYS):
    if not has_word(key, PLAIN["docs/pinfold-policy.5.scd"]):
        wrong.append(f"policy key {key}: not in pinfold-policy(5)")
for path, text in PLAIN.items():
    for key in re.findall(r"Policy: _([a-z_.]+)_\.", text):
        if key not in KEYS:
            wrong.append(f"{path}: there is no policy key {key}")

# ---- subcommands, and what their help says of them
COMMANDS = re.findall(r"^  ([a-z][a-z-]+)", ask("--help"), re.M)
if "run" not in COMMANDS or len(COMMANDS) < 30:
    wrong.append(f"pinfold --help lists {COMMANDS}")
for command in COMMANDS:
    if not re.search(rf"\*{re.escape(command)}\*", ALL):
        wrong.append(f"subcommand {command}: in no page of the manual")
    for action in re.findall(rf"^  {re.escape(command)} ([a-z][a-z-]+)", ask(command, "--help"), re.M):
        if not re.search(rf"\*{re.escape(action)}\*|\*[a-z ]*\b{re.escape(action)}\b[^*\n]*\*", ALL):
            wrong.append(f"subcommand {command} {action}: in no page of the manual")
for path, text in PLAIN.items():
    synopsis = text.split("# DESCRIPTION")[0] if path.startswith("docs/pinfold") and path.endswith(".1.scd") else ""
    for command in re.findall(r"^\*pinfold\* \*([a-z-]+)\*", synopsis, re.M):
        if command not in COMMANDS and not re.search(rf"^  (?:.*\| )?{re.escape(command)}\b|\b{re.escape(command)}\b", ask("--help"), re.M):
            wrong.append(f"{path}: there is no subcommand {command}")

# ---- members of a result, of an event and of an answer of why; a name of the code is a name of the manual
MEMBER = re.compile(r"\bjson_[a-z0-9_]+\(&?[a-z_>.-]+, \"([a-z_]+)\"")
SOURCES = ("src/supervisor/result.c", "src/supervisor/audit.c", "src/run/asked/reason.c", "src/plan/explain/explain_json.c", "src/plan/explain/explain_net.c",
           "src/doctor/doctor.c", "src/learn/say.c", "src/run/agent/agents.c", "src/session/list.c", "src/session/prune.c", "src/sessiond/ask.c", "src/sessiond/jobs.c",
           "src/supervisor/files/tree.c", "src/run/layer/cow.c", "src/run/layer/prune.c", "src/cli/project/branches.c", "src/supervisor/network/control.c")
seen = 0
for source in SOURCES:
    for name in sorted(set(MEMBER.findall(read(source)))):
        seen += 1
        if not has_word(name):
            wrong.append(f"{source}: member '{name}' is in no page of the manual")
if seen < 250:
    wrong.append(f"only {seen} members were found in {', '.join(SOURCES)}")

# ---- exit statuses
STATUS = PLAIN["docs/pinfold.1.scd"].split("# EXIT STATUS")[1].split("\n# ")[0]
for name, number in re.findall(r"STATUS_([A-Z_]+) = (\d+)", read("src/cli/cli.h")):
    if not re.search(rf"\*{number}\*", STATUS):
        wrong.append(f"exit status {number} (STATUS_{name}) is not in EXIT STATUS of pinfold(1)")


# ---- links
def anchors(path):
    found = set()
    for heading in re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", read(path), flags=re.M | re.S), re.M):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        found.add(re.sub(r"[^a-z0-9 _-]", "", plain.lower()).replace(" ", "-"))
    return found


DOCUMENTS = [path for path in glob.glob("**/*.md", recursive=True) if not path.startswith("build")]
links = 0
for path in DOCUMENTS:
    text = re.sub(r"^```.*?^```", "", read(path), flags=re.M | re.S)
    text = re.sub(r"`[^`\n]*`", "", text)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        links += 1
        name, _, anchor = target.partition("#")
        file = os.path.normpath(os.path.join(os.path.dirname(path), name)) if name else path
        if not os.path.exists(file):
            wrong.append(f"{path}: link to '{target}', which is not there")
        elif anchor and file.endswith(".md") and anchor not in anchors(file):
            wrong.append(f"{path}: link to '{target}': {file} has no such heading")
if links < 50:
    wrong.append(f"only {links} links were found")
# A page that another one names is a page that exists.
for path, text in PLAIN.items():
    for name, section in re.findall(r"\*(pinfold(?:-[a-z]+)?)\*\((\d)\)", text):
        if f"docs/{name}.{section}.scd" not in PAGES:
            wrong.append(f"{path}: there is no page {name}({section})")
for path in DOCUMENTS:
    for name in re.findall(r"`man (pinfold[a-z-]*)`", read(path)):
        if not any(page.startswith(f"docs/{name}.") for page in PAGES):
            wrong.append(f"{path}: there is no page {name}")
for path in [*DOCUMENTS, *PAGES]:
    for name, heading in re.findall(r"`man (pinfold[a-z-]*)`, ([A-Z][A-Z -]+[A-Z])", read(path)):
        page = next((text for file, text in PAGES.items() if file.startswith(f"docs/{name}.")), "")
        if not re.search(rf"^#+ {re.escape(heading)}$", page, re.M):
            wrong.append(f"{path}: {name} has no heading {heading}")
    for name, heading in re.findall(r"\*?(pinfold(?:-[a-z]+)?)\*?\(\d\), ([A-Z][A-Z -]+[A-Z])", read(path)):
        page = next((text for file, text in PAGES.items() if file.startswith(f"docs/{name}.")), "")
        if not re.search(rf"^#+ {re.escape(heading)}$", page, re.M):
            wrong.append(f"{path}: {name} has no heading {heading}")

print("\n".join(wrong))
sys.exit(bool(wrong))
