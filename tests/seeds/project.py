"""agent-sandbox's specification, as far as it is a project's shell: init, shell, stop, protected paths, allowed services, git's hooks."""
import os

import pf
import rows

DOC = rows.Document("project")
row = DOC.row

REPO = "git init -q . && git config user.name a && git config user.email a@b && git commit -q --allow-empty -m one"


# ---- lifecycle
row("init", "init {work}", 0, files={"work/package.json": "{}"}, after="test -f .pinfold/policy.yaml || echo 'no policy'")
row("init-again-needs-force", "init {work}", 2, r"--force", before="mkdir -p .pinfold; echo 'version: 1' >.pinfold/policy.yaml")
row("init-force", "init {work} --force", 0, before="mkdir -p .pinfold; echo 'version: 1' >.pinfold/policy.yaml", after="test -d .pinfold/backup || echo 'not kept'")
row("stop-without-one", "stop {work}", 4, before="{pinfold} init . >/dev/null")
row("stop-of-no-project", "stop {work}", 2, r"is not initialized; do that with: pinfold init")
row("list", "list", 0)


@DOC.check
def shell_starts_and_stop_ends(scene):
    """`shell` starts the sandbox, is the default verb, and its history stays; `stop` ends it."""
    done = scene.pinfold("init", scene.work)
    if done.status:
        return done.said()
    try:
        first = scene.pinfold("shell", scene.work, stdin=b"echo made >/tmp/kept; echo in-$PINFOLD; test -e /.agent-sandbox && echo marker\nexit\n", env={"SHELL": "/bin/bash"})
        if "in-1" not in first.text() or "marker" not in first.text():
            return first.said()
        again = scene.pinfold(stdin=b"cat /tmp/kept; test -d /commandhistory && echo history\nexit\n", env={"SHELL": "/bin/bash"})
        if "made" not in again.text() or "history" not in again.text():
            return again.said()
        listed = scene.pinfold("list")
        if scene.work not in listed.text() or "agent-sandbox-work-" not in listed.text():
            return listed.said()
        stopped = scene.pinfold("stop", scene.work)
        if stopped.status:
            return stopped.said()
        gone = scene.pinfold("exec", scene.pinfold("session", "list", "--names").out.decode().strip() or "none", "--", "true")
        return "" if gone.status == 125 else gone.said()
    finally:
        scene.pinfold("stop", scene.work)


# ---- protected paths: a read-only overlay
row("protected-hooks", "run -- sh -c 'echo x >.git/hooks/pre-commit; exit 3'", 3, r"\.git/hooks/pre-commit' denied", before=REPO, needs="git", after="test ! -e .git/hooks/pre-commit || echo written")
row("protected-husky", "run -- sh -c 'mkdir .husky; exit 3'", 3, r"\.husky' denied", after="test ! -e .husky || echo made")
row("protected-husky-that-is-there", "run -- sh -c 'cat .husky/pre-commit; echo x >>.husky/pre-commit; exit 3'", 3, (r"^npm test$", r"\.husky/pre-commit"), files={"work/.husky/pre-commit": "npm test\n"})
row("protected-agent-sandbox", "run -- sh -c 'echo x >.agent-sandbox/Dockerfile; exit 3'", 3, r"\.agent-sandbox/Dockerfile", files={"work/.agent-sandbox/Dockerfile": "FROM agent-sandbox-base:latest\n", "work/x": ""},
    before="{pinfold} init . >/dev/null", after="grep -q FROM .agent-sandbox/Dockerfile || echo changed")
row("protected-precommit-context", "run -- sh -c 'echo x >.agent-precommit/user-context.json; exit 3'", 3, r"user-context\.json", files={"work/.agent-precommit/user-context.json": "{}\n"},
    before="{pinfold} init . >/dev/null", after="grep -q '{}' .agent-precommit/user-context.json || echo changed")
row("protected-by-configuration", "run -- sh -c 'touch docs/new; touch sub/new; exit 3'", 3, r"docs/new", files={"work/docs/a": "", "work/sub/a": "", "work/.pinfold/policy.yaml": "version: 1\nfiles:\n  protect: [docs]\n"},
    after="test ! -e docs/new && test -e sub/new || echo wrong")

# ---- default deny, and the allowed services
row("outbound-is-blocked", "run -- curl -sS -m 5 http://192.0.2.1/", 7, r"pinfold: network: ", needs="curl")
row("allowed-services-and-no-others", "run --allow @npm --allow @github --allow @anthropic --allow @openai --allow @openrouter --allow @sentry --allow @statsig -- sh -c 'curl -sS -m 20 https://example.test/; case $? in 7 | 56) exit 56 ;; esac' ", 56, r"example\.test.*denied", needs="curl", seconds=90)
for service, host in (("npm", "registry.npmjs.org"), ("github", "github.com"), ("anthropic", "api.anthropic.com"), ("openai", "api.openai.com"), ("openai", "auth.openai.com"), ("openai", "chatgpt.com"),
                      ("openrouter", "openrouter.ai"), ("sentry", "sentry.io"), ("statsig", "statsig.com")):
    row(f"allowed-{service}-{host}", f"why connect {host}:443 --allow @{service}", 0, r"allowed|yes")
row("nothing-inbound-unless-published", "explain", 0, never=r"(?i)publish")

# ---- git: what is blocked is blocked by where it ends
row("hooks-path-cannot-be-moved", "run -- git config core.hooksPath /tmp/none", 4, before=REPO, needs="git", after="git config core.hooksPath && echo 'it was set'")
row("git-works", "run -- sh -c 'echo x >f && git add f && git commit -q -m two && git log --oneline | wc -l'", 0, "^2$", before=REPO, needs="git")

# ---- environment
row("marker-variable", "run -- sh -c 'echo p=$PINFOLD'", 0, "^p=1$")
row("not-root-and-no-capabilities", "run -- grep CapEff /proc/self/status", 0, r"CapEff:\s+0000000000000000")


@DOC.check
def names_are_hashes_of_the_path(scene):
    """Container naming: MD5 of the workspace's path, so two clones have two sandboxes."""
    import hashlib
    scene.put("other/x", "")
    for place in (scene.work, scene.path + "/other"):
        if scene.pinfold("init", place).status or scene.pinfold("start", place).status:
            return "not started: " + place
    try:
        names = scene.pinfold("session", "list", "--names").out.decode().split()
        wanted = sorted(f"agent-sandbox-{os.path.basename(p)}-{hashlib.md5(p.encode()).hexdigest()[:12]}" for p in (scene.work, scene.path + "/other"))
        return "" if sorted(names) == wanted else f"{names}, not {wanted}"
    finally:
        for place in (scene.work, scene.path + "/other"):
            scene.pinfold("stop", place)
