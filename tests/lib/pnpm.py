"""A pnpm from npm's registry."""
import os

import pf

PNPM = "pnpm@10.13.1"


def install():
    """The program, installed once for all users of a suite, and why there is none."""
    top = os.path.join(pf.SCRATCH, "pnpm")
    program = os.path.join(top, "node_modules/.bin/pnpm")
    if pf.have("node", "npm"):
        return None, "node or npm is not installed"
    if not os.path.exists(program):
        os.makedirs(top, exist_ok=True)
        done = pf.run(["npm", "install", "--no-audit", "--no-fund", "--no-update-notifier", "--ignore-scripts", "--prefix", top, "--cache", top + "/.cache", PNPM],
                      cwd=top, env={**os.environ, "HOME": top}, limit=300)
        if done.status != 0:
            return None, "npm cannot install from its registry: " + (done.text().strip().splitlines() or [""])[-1][:200]
    return program, None
