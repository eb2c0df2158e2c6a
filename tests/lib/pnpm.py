"""A pnpm from npm's registry."""
import os

import npm

PNPM = "pnpm@10.13.1"


def place():
    return os.path.join(npm.shared("npm"), "pnpm")


def install():
    """The program, installed once for all users of all suites of a run, and why there is none."""
    program = os.path.join(place(), "node_modules/.bin/pnpm")
    why = npm.install(place(), program, ["--ignore-scripts", PNPM])
    return None if why else program, why or None
