"""Rows of the suite: words after `pinfold` in a scene of their own, and what must come of them."""
import dataclasses
import os
import re
import shlex
import time

import pf


@dataclasses.dataclass
class Row:
    name: str
    words: str              # a shell's words; {work}, {home}, {path} are the scene's
    status: int
    says: tuple = ()        # regular expressions, of both streams
    never: tuple = ()
    files: dict = dataclasses.field(default_factory=dict)  # name below the scene: text, with the same places filled in
    before: str = ""        # for a shell in the workspace, outside
    alone: bool = False     # the workspace is a file system of its own, empty
    after: str = ""         # likewise; prints what is wrong
    cwd: str = "{work}"
    env: dict = dataclasses.field(default_factory=dict)
    needs: str = ""         # a program without which the row says nothing
    stdin: str = ""
    seconds: int = 120


class Document:
    """One of the documents: its rows, and its checks that are more than one command."""

    def __init__(self, name):
        self.name, self.rows, self.checks = name, [], []

    def row(self, name, words, status, says=(), never=(), **more):
        self.rows.append(Row(name, words, status, (says,) if isinstance(says, str) else says, (never,) if isinstance(never, str) else never, **more))

    def check(self, function):
        """A function of a scene that returns what is wrong, or ""; its name is the row's."""
        self.checks.append(function)
        return function


class Scene:
    """A home, a project in it, and room beside them."""

    def __init__(self, user, name):
        self.user = user
        self.path = os.path.join(pf.SCRATCH, f"{name}-{user.label}")
        self.work, self.home = self.path + "/work", self.path + "/home"
        pf.remove(self.path)
        for place in (self.work, self.home):
            os.makedirs(place)
        os.chmod(self.path, 0o755)
        user.own(self.path)

    def fill(self, text, quoted=False):
        """{work}, {home}, {path} replaced; other braces are the documents' own."""
        text = text.replace("{pinfold}", pf.PINFOLD)
        for name in ("work", "home", "path"):
            value = getattr(self, name)
            text = text.replace("{" + name + "}", re.escape(value) if quoted else value)
        return text

    def put(self, name, text, mode=0o644):
        full = os.path.join(self.path, name)
        made = full
        while not os.path.exists(os.path.dirname(made)):
            made = os.path.dirname(made)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as file:
            file.write(self.fill(text))
        os.chmod(full, mode)
        self.user.own(made)
        return full

    def environment(self, **more):
        return {**pf.environment(self.user, self.home, XDG_STATE_HOME=self.home + "/.local/state"), **{k: self.fill(v) for k, v in more.items()}}

    def shell(self, script):
        return pf.run(["sh", "-c", self.fill(script)], self.user, cwd=self.work, env=self.environment())

    def pinfold(self, *words, cwd=None, env=None, stdin=b"", limit=120, alone=False):
        own = pf.alone(self.user, self.work) if alone else []
        return pf.run([*own, pf.PINFOLD, *words], None if own else self.user, cwd=cwd or self.work, env=self.environment(**(env or {})), stdin=stdin, limit=limit)


def outcome(row, scene):
    """"" or what is wrong."""
    for name, text in row.files.items():
        scene.put(name, text)
    if row.before:
        scene.shell(row.before)
    began = time.monotonic()
    done = scene.pinfold(*shlex.split(scene.fill(row.words)), cwd=scene.fill(row.cwd), env=row.env, stdin=row.stdin.encode(), limit=row.seconds, alone=row.alone)
    text = done.text()
    if done.late:
        return f"took more than {time.monotonic() - began:.0f} s"
    if done.status != row.status:
        return f"status {done.status}, not {row.status}: {text[-2000:]}"
    for wanted in row.says:
        if not re.search(scene.fill(wanted, True), text, re.M):
            return f"does not say {wanted}: {text[-2000:]}"
    for bad in row.never:
        if re.search(scene.fill(bad, True), text, re.M):
            return f"says {bad}: {text[-2000:]}"
    return scene.shell(row.after).text().strip() if row.after else ""


def hold(document, words):
    """Runs what matches; for each user a scene per row."""
    tally = pf.Tally()
    for user in pf.users():
        for number, item in enumerate([*document.rows, *document.checks]):
            row = item if isinstance(item, Row) else None
            plain = row.name if row else item.__name__.replace("_", "-")
            name = f"{document.name}/{plain} ({user.label})"
            if words and not any(re.search(w, f"{document.name}/{plain}") for w in words):
                continue
            if row and row.needs and pf.have(*row.needs.split()):
                tally.skip(name, f"{pf.have(*row.needs.split())} is not installed")
                continue
            if row and "firejail" in row.needs and not pf.firejail_runs():
                tally.skip(f"{document.name}/{plain}-in-a-container ({user.label})", "firejail makes no sandbox in a container")
                continue
            scene = Scene(user, f"{document.name}{number}")
            wrong = outcome(row, scene) if row else item(scene)
            if wrong:
                tally.fail(name, wrong)
            else:
                tally.ok(name)
            pf.remove(scene.path)
    return tally.failed
