"""docs/ENGINES.md from what was measured, and what a written one says otherwise."""
import re

SENTENCES = {
    "native": "pinfold's own: namespaces, mounts, filter and guard made by pinfold itself",
    "bwrap": "bubblewrap makes the namespaces, pinfold-init does the rest inside",
    "firejail": "firejail makes the namespaces, pinfold-init does the rest inside",
    "nsjail": "nsjail makes the namespaces, pinfold-init does the rest inside",
    "docker": "a container of docker's, with an image's files, pinfold-init inside",
    "podman": "a container of podman's, with an image's files, pinfold-init inside",
    "vm": "a virtual machine (qemu) in a native box, pinfold-init inside",
}
HEAD = """# What each engine enforces

One policy means the same with every engine. This page is written by `tests/conformance/renew` from what was measured: each row is a behaviour that is tried with real
programs, as root and as an ordinary user, and each cell says what came of it. With docker, podman and vm, where a start takes long, rows that need a box of their own
are shared out between the two users.

- **pass**: it behaves as the row says.
- **no** with a number: pinfold refuses to start the box (status 125), and the sentence with that number below is the reason that it prints. Nothing runs with less than was asked for,
  unless `may_lose` lists the guarantee.
- **not measured**: the engine was not there.

A behaviour that differs without being refused is a failure (**FAILS**) of the suite `conformance`, and so is it when this page says something else than what was measured.

The engine `seatbelt` (macOS) is not among them: its profiles are made and checked on Linux, and have not been run.
"""


class Table:
    def __init__(self, rows, attacks, cells):
        """cells: {engine: {row: {user: (cell, why)}}}"""
        self.sections = {}
        for row in rows:
            self.sections.setdefault(row.section, []).append((row.name, row.text))
        self.sections["Attacks"] = [("attack-" + row.name, f"`{row.name}`") for row in attacks]
        self.cells = cells
        self.engines = [name for name in SENTENCES]
        self.notes = {}

    def measured(self, engine):
        return "engine" not in self.cells.get(engine, {"engine": 1})

    def shares(self):
        found = {}
        for engine in filter(self.measured, self.engines):
            rows = self.cells[engine]
            bare = [name for name, users in rows.items() if any(cell == "cannot" for cell, _ in users.values())]
            found[engine] = len(bare) / max(1, len(rows)), f"{len(bare)} of {len(rows)}" + (f" ({', '.join(bare)})" if bare else "")
        return found

    def note(self, sentence):
        return self.notes.setdefault(sentence, len(self.notes) + 1)

    def cell(self, engine, name):
        if not self.measured(engine):
            return "not measured"
        users = self.cells[engine].get(name)
        if not users:
            return "not measured"
        by = {user: why for user, (cell, why) in users.items() if cell == "cannot"}
        if any(cell == "FAIL" for cell, _ in users.values()):
            return "FAILS"
        if not by:
            return "pass"
        numbers = " ".join(f"[{n}]" for n in sorted({self.note(why) for why in by.values()}))
        if len(by) == len(users):
            return "no " + numbers
        return f"pass; as {'root' if 'root' in by else 'a user'} no {numbers}"

    def body(self):
        out = []
        for section, rows in self.sections.items():
            out.append(f"\n## {section}\n")
            if section == "Attacks":
                out.append("A core of the attacks that the suite `escape` runs with the native engine, where each is first shown to get through outside a box: none may get through.\n")
            out.append("| behaviour | " + " | ".join(self.engines) + " |")
            out.append("|---" * (len(self.engines) + 1) + "|")
            for name, text in rows:
                out.append(f"| {text.replace('|', chr(92) + '|')} | " + " | ".join(self.cell(e, name) for e in self.engines) + " |")
        return out

    def text(self):
        body = self.body()
        out = [HEAD, "| engine | what it is | rows | pass | cannot enforce | fail |", "|---|---|---|---|---|---|"]
        for engine in self.engines:
            if not self.measured(engine):
                out.append(f"| {engine} | {SENTENCES[engine]} | not measured | | | |")
                continue
            rows = self.cells[engine]
            bare = sum(any(cell == "cannot" for cell, _ in users.values()) for users in rows.values())
            wrong = sum(any(cell == "FAIL" for cell, _ in users.values()) for users in rows.values())
            out.append(f"| {engine} | {SENTENCES[engine]} | {len(rows)} | {len(rows) - bare - wrong} | {bare} | {wrong} |")
        out += body
        if self.notes:
            out.append("\n## Why not\n")
            out += [f"{number}. {sentence}" for sentence, number in self.notes.items()]
        return "\n".join(out) + "\n"

    def differences(self, written):
        """Cells of engines that are here which the written page tells otherwise; the numbers' sentences in their place."""
        ours, theirs = parsed(self.text()), parsed(written)
        found = []
        for key in sorted(set(ours) | set(theirs)):
            engine = key[1]
            if engine in self.engines and not self.measured(engine):
                continue
            if ours.get(key) != theirs.get(key):
                found.append(f"{engine}: {key[0]}: measured '{ours.get(key, 'no such row')}', written '{theirs.get(key, 'no such row')}'")
        return found


def cells_of(text, rows, attacks, engine):
    """What a written page says of one engine, as if it had been measured; nothing of one that was not there."""
    sentences = dict(re.findall(r"^(\d+)\. (.*)$", text, re.M))
    names = {row.text: row.name for row in rows} | {f"`{row.name}`": "attack-" + row.name for row in attacks}
    found, columns = {}, []
    for line in text.splitlines():
        parts = [part.strip().replace("\\|", "|") for part in re.split(r"(?<!\\)\|", line)[1:-1]]
        if parts[:1] == ["behaviour"]:
            columns = parts
        if not columns or len(parts) != len(columns) or parts[0] not in names or engine not in columns:
            continue
        cell = parts[columns.index(engine)]
        no = [("cannot", sentences[number]) for number in re.findall(r"\[(\d+)\]", cell)]
        if cell == "not measured":
            continue
        one = re.match(r"pass; as (root|a user) no", cell)
        if one:
            users = {"root": no[0], "user": ("pass", "")} if one[1] == "root" else {"root": ("pass", ""), "user": no[0]}
        else:
            users = {"root": no[0], "user": no[-1]} if no else {"root": ("FAIL" if cell == "FAILS" else "pass", "")}
        found[names[parts[0]]] = users
    return found


def parsed(text):
    sentences = dict(re.findall(r"^(\d+)\. (.*)$", text, re.M))
    found, names = {}, []
    for line in text.splitlines():
        parts = [part.strip() for part in re.split(r"(?<!\\)\|", line)[1:-1]]
        if parts[:1] == ["behaviour"]:
            names = parts[1:]
        elif names and len(parts) == len(names) + 1 and not set(parts[0]) <= {"-"}:
            for name, cell in zip(names, parts[1:]):
                found[parts[0], name] = re.sub(r"\[(\d+)\]", lambda m: sentences.get(m[1], m[0]), cell)
        elif not parts:
            names = []
    return found
