"""Programs from npm's registry, which suites of one run share: installed once, by who comes first."""
import fcntl
import os
import shutil

import pf

# Agents as their makers publish them, always the newest, and what a default agent's box has to run, too.
AGENTS = {"claude": "@anthropic-ai/claude-code", "codex": "@openai/codex", "gemini": "@google/gemini-cli", "qwen": "@qwen-code/qwen-code",
          "srt": "@anthropic-ai/sandbox-runtime"}


def shared(name):
    """A folder of the whole run."""
    top = os.path.join(os.environ.get("PINFOLD_SHARED") or pf.SCRATCH, name)
    os.makedirs(top, exist_ok=True)
    return top


def install(top, program, words, **variables):
    """Why the program is not in that folder, or an empty text."""
    if pf.have("node", "npm"):
        return "node or npm is not installed"
    with open(top + ".lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.exists(program):
            return ""
        os.makedirs(top, exist_ok=True)
        done = pf.run(["npm", "install", "--no-audit", "--no-fund", "--no-update-notifier", "--prefix", top, "--cache", top + "/.cache", *words], cwd=top,
                      env={**os.environ, "HOME": top, **variables}, limit=300)
        shutil.rmtree(top + "/.cache" if done.status == 0 else top, ignore_errors=True)
        return "npm cannot install from its registry: " + (done.text().strip().splitlines() or [""])[-1][:200] if done.status else ""


def agent(name):
    """The folder with the program, which PINFOLD_TEST_CACHE keeps from run to run, and why there is none."""
    top, package = os.path.join(os.environ.get("PINFOLD_TEST_CACHE") or shared("npm"), "agents", name), AGENTS[name]
    os.makedirs(os.path.dirname(top), exist_ok=True)
    # npm 12 runs a package's script, which fetches Claude Code's program, only if it is named; older ones do not know the key.
    why = install(top, f"{top}/bin/{name}", ["-g", package], npm_config_allow_scripts=package)
    return None if why else top + "/bin", why
