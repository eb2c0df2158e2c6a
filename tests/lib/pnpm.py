"""A pnpm from npm's registry."""
import os

import npm

PNPM = "pnpm@10.13.1"


def install():
    """The program, installed once for all users of all suites of a run, and why there is none."""
    top = os.path.join(npm.shared("npm"), "pnpm")
    program = os.path.join(top, "node_modules/.bin/pnpm")
    why = npm.install(top, program, ["--ignore-scripts", PNPM])
    return None if why else program, why or None
