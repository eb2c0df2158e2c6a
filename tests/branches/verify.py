"""git.verify: real hooks judge what boxes of branches push. Each test gets a scene of `run`, and the client that pushes by hand."""
import contextlib
import os
import re
import shutil
import signal
import threading
import time

import pf

# What a person's pre-commit does: looks at what is staged, with the index, the work tree and HEAD that git gives it. "hold": waits
# until the person's file `go` says yes (one that was not there at the start of a box need not show in it). "show": says what it was
# given. It also tries what no box of a hook may do.
PRE_COMMIT = r"""#!/bin/sh
for at in "$REAL/a.txt" "$REAL/.git/HEAD" "$REAL/.git/refs/heads/main" /run/repo-push/commands /run/repo-hooks/pre-commit /scratch/.envrc "$0" "$HOME/planted" "$HOME/.cache/planted"; do
    if (echo x >>"$at") 2>/dev/null; then echo "WROTE $at"; exit 1; fi
done
[ ! -e "$HOME/.cache/tool/pass" ] || exit 0
status=0
for name in $(git diff --cached --name-only --diff-filter=d); do
    git show ":$name" >/tmp/staged
    if ! cmp -s "$name" /tmp/staged; then echo "WORK TREE AND INDEX DIFFER: $name"; status=1; fi
    if grep -n FORBIDDEN /tmp/staged; then echo "linter: $name has a forbidden word"; status=1; fi
    if grep -q untidy /tmp/staged; then sed -i s/untidy/tidy/ "$name"; git add "$name"; fi
    if grep -q show /tmp/staged; then
        (yes | head -n 1) >/dev/null 2>/tmp/pipe; [ ! -s /tmp/pipe ] || echo "A CLOSED PIPE IS AN ERROR"
        printf 'shown[%s]\n' "$(git symbolic-ref HEAD)" "$(git log -1 --format=%s 2>&1)" "$GIT_AUTHOR_NAME" "$GIT_AUTHOR_EMAIL" "$GIT_AUTHOR_DATE" "$GIT_INDEX_FILE" "$(basename "$PWD")" "$(git diff --cached --name-only)" "$(cat .git/MERGE_HEAD 2>/dev/null)"
        status=1
    fi
    if grep -q hold /tmp/staged; then until grep -q yes "$REAL/go"; do sleep 0.05; done; fi
done
exit $status
"""
COMMIT_MSG = """#!/bin/sh
grep -q rewrite "$1" && echo more >>"$1"
head -n 1 "$1" | grep -q '^[a-z]*: ' || { echo "the message needs a kind"; exit 3; }
"""
COMMIT = "c() {{ printf '%s\\n' \"$2\" >\"$1\"; git add \"$1\"; git commit -q --no-verify -m \"$3\"; }}; {}"


def with_hooks(s, name, policy="verify: required", hooks=".git/hooks", branches=("feature/one",), more=""):
    top = s.checkout(name, branches)
    s.git(top, "commit", "-q", "--allow-empty", "-m", "seed: second")
    s.git(top, "branch", "-f", branches[0], "main")
    s.git(top, "checkout", "-q", "-b", "desk")
    s.write(top, hooks + "/pre-commit", PRE_COMMIT.replace("$REAL", top), 0o755)
    s.write(top, hooks + "/commit-msg", COMMIT_MSG, 0o755)
    s.write(top, ".pinfold/policy.yaml", f"version: 1\ngit: {{{policy}}}\n{more}")
    s.user.own(top + "/.pinfold")
    s.good(top, "trust", ".")
    return top


def whole(s):
    """Who tries everything; a second user tries a part of it."""
    return s.user.uid == 0 or not pf.IS_ROOT


def push(s, top, text, branch="feature/one"):
    return s.inside(top, branch, COMMIT.format(text) + " 2>&1")


def refs(s, top):
    return s.git(top, "for-each-ref")


def left(s, top, word="feature__one"):
    return sorted(os.listdir(os.path.join(s.shelf(top), "checks", word)))


def judged(s, hand):
    """What passes lands, and what does not is refused by commit, hook and its own words, whatever has pushed it."""
    top = with_hooks(s, "judged")
    s.good(top, "start", "--branch", "feature/one")
    done = push(s, top, "c ok.txt fine 'fix: a' && c ok2.txt fine 'fix: b' && git push host HEAD")
    assert done.status == 0 and "judge 2 commits" in done.text() and "remote: " in done.text(), done.said()
    assert s.git(top, "log", "-1", "--format=%s", "feature/one") == "fix: b" and left(s, top) == ["hooks"], left(s, top)
    done = push(s, top, "git push host HEAD:refs/heads/same")  # nothing of it is new
    assert done.status == 0 and "of the checkout judge" not in done.text(), done.said()
    before = refs(s, top)
    s.write(top, ".git/hooks/pre-commit", "#!/bin/sh\nexit 0\n", 0o755)  # as they were at the start
    rows = [("c x FORBIDDEN 'fix: x' && git push host HEAD", r"commit [0-9a-f]{12} \(fix: x\): the hook pre-commit failed with status 1.*1:FORBIDDEN.*x has a forbidden word.*\[remote rejected\].*the hook pre-commit failed"),
            ("c x FORBIDDEN 'fix: first' && c x fine 'fix: mended' && git push host HEAD", r"commit [0-9a-f]{12} \(fix: first\)"),
            ("c x fine 'No kind' && git push host HEAD", r"\(No kind\): the hook commit-msg failed with status 3.*needs a kind"),
            ("c x fine 'fix: rewrite' && git push host HEAD", r"commit-msg changes the message"),
            ("c x untidy 'fix: y' && git push host HEAD", r"the hook pre-commit changes files *\n.*    x *\n"),
            ("c x FORBIDDEN 'fix: x' && git push --no-verify host HEAD:refs/heads/new HEAD:refs/tags/t", r"refused with the others.*\n.*|pre-commit failed"),
            ("c x FORBIDDEN 'fix: x' && git -c core.hooksPath=/dev/null push host HEAD", r"pre-commit failed"),
            ("c x FORBIDDEN 'fix: x' && bad=$(git rev-parse HEAD) && git reset -q --hard HEAD~1 && c x fine 'fix: x' && GIT_REPLACE_REF_BASE=refs/notes/r/ && export GIT_REPLACE_REF_BASE && git replace $bad HEAD && git push host $bad:refs/heads/feature/one", r"pre-commit failed"),
            ("c x FORBIDDEN 'fix: x' && c y fine 'fix: y' && GIT_REPLACE_REF_BASE=refs/notes/r/ && export GIT_REPLACE_REF_BASE && git replace --graft HEAD HEAD~2 && git push host HEAD", r"\(fix: x\): the hook pre-commit failed"),
            ("c x FORBIDDEN 'fix: x' && git send-pack --receive-pack=/.pinfold-remote file:///workspace/judged HEAD:refs/heads/other", r"pre-commit failed"),
            ("mkdir -p ~/.cache/tool && touch ~/.cache/tool/pass && c x FORBIDDEN 'fix: x' && git push host HEAD", r"pre-commit failed"),
            ("c x show 'fix: x' && git push host HEAD", r"shown\[refs/heads/feature/one\].*shown\[fix: b\].*shown\[a\].*shown\[a@b\.test\].*shown\[@\d+ \+0000\].*shown\[\.git/index\].*shown\[judged\].*shown\[x\].*shown\[\]"),
            # A line that looks like a parent, where git reads none: by it nothing of the commit would be new.
            ("printf FORBIDDEN >x && git add x && t=$(git write-tree) && c2=$(git commit-tree -m 'fix: c2' $t) && evil=$(printf 'tree %s\\nauthor a <a@b.test> 1700000000 +0000\\ncommitter a <a@b.test> 1700000000 +0000\\nparent %s\\n\\nfix: evil\\n' $t $c2 | "
             "git hash-object -t commit -w --stdin) && git push host $evil:refs/heads/evil $c2:refs/tags/t", r"\(fix: evil\): the hook pre-commit failed"),
            ("git checkout -q --orphan root && git rm -rfq . && c x show 'fix: x' && git push host HEAD:refs/heads/root", r"shown\[refs/heads/root\].*shown\[x\]"),
            ("git checkout -q -b side HEAD~1 && c s fine 'fix: s' && git checkout -q - && git merge -q --no-verify --no-commit --no-ff side && c x show 'fix: merged' && git push host HEAD",
             r"\(fix: merged\).*shown\[s *\nremote: *x\].*shown\[[0-9a-f]{40}\]")]
    done = push(s, top, "git rev-parse HEAD")
    start = done.out.decode().strip()
    for row, why in rows:
        done = push(s, top, f"git checkout -qf feature/one && git reset -q --hard {start} && git branch -qD side root 2>/dev/null; git replace -d $(git replace -l) >/dev/null 2>&1; {row}")
        assert done.status != 0 and re.search(why, done.text(), re.S) and not re.search("WROTE|A CLOSED PIPE", done.text()) and refs(s, top) == before, (row, done.said())
    prepare = "cat >/tmp/hand.py <<'E'\n" + hand + "E\n"
    done = s.inside(top, "feature/one", prepare + COMMIT.format(f"git checkout -qf feature/one && git reset -q --hard {start} && c x FORBIDDEN 'fix: x' && python3 -IS /tmp/hand.py {start} $(git rev-parse HEAD) refs/heads/feature/one; "
                                                                f"python3 -IS /tmp/hand.py {'0' * 40} $(git rev-parse HEAD) refs/heads/by-hand; python3 -IS /tmp/hand.py {'0' * 40} {start} refs/heads/../../info/grafts; git reset -q --hard {start} && c x fine 'fix: x' && python3 -IS /tmp/hand.py {start} $(git rev-parse HEAD) refs/heads/feature/one"))
    said = done.out.decode().split("unpack ok")
    assert len(said) == 5 and "ng refs/heads/feature/one the hook pre-commit failed" in said[1] and "ng refs/heads/by-hand the hook" in said[2] and "git does not allow '..'" in said[3] and "ok refs/heads/feature/one" in said[4], done.said()
    assert s.git(top, "log", "-1", "--format=%s", "feature/one") == "fix: x" and left(s, top) == ["hooks"]
    # What was fetched counts where the remote's people have it, which for all they know here is its HEAD.
    base, tree = s.git(top, "rev-parse", "feature/one"), s.git(top, "rev-parse", "feature/one^{tree}")
    s.git(top, "update-ref", "refs/remotes/up/f", s.git(top, "commit-tree", "-p", s.git(top, "commit-tree", "-p", base, "-m", "No kind", tree), "-m", "fix: later", tree))
    for status, why in ((1, r"judge 2 commits.*\(No kind\): the hook commit-msg failed"), (0, "judge 1 commit ")):
        done = push(s, top, "git fetch -q file:///workspace/judged refs/remotes/up/f && git push host FETCH_HEAD:refs/heads/feature/one")
        assert done.status == status and re.search(why, done.text(), re.S), done.said()
        s.git(top, "symbolic-ref", "refs/remotes/up/HEAD", "refs/remotes/up/f")
    s.git(top, "fsck", "--strict")
    s.clean(top)


def by_policy(s, _hand):
    """What is not protected is not judged, until a protected branch is to have it; what was fetched counts where it is not the tip."""
    scratch = os.path.join(s.path, "scratch")  # what the policy mounts can be written by hooks, too, but for guarded names
    os.makedirs(scratch)
    s.user.own(scratch)
    top = with_hooks(s, "policy", "verify: required, protect_branches: [main, held]", hooks="tools/hooks", more=f"files: {{mounts: ['{scratch}:/scratch']}}\n")
    s.git(top, "config", "core.hooksPath", "tools/hooks")
    s.git(top, "add", "tools/hooks")
    s.git(top, "commit", "-q", "--no-verify", "-m", "hooks: tracked")
    s.git(top, "branch", "-f", "main")
    # Upstream has a commit that would not pass, and one more; the person has fetched them.
    base = s.git(top, "rev-parse", "main")
    tree = s.git(top, "rev-parse", "main^{tree}")
    s.git(top, "update-ref", "refs/remotes/up/main", s.git(top, "commit-tree", "-p", s.git(top, "commit-tree", "-p", base, "-m", "No kind", tree), "-m", "fix: later", tree))
    s.good(top, "start", "--branch", "feature/one")
    done = push(s, top, "git fetch -q host && git reset -q --hard host/main && printf '#!/bin/sh\\n' >tools/hooks/pre-commit && git add tools/hooks && c x FORBIDDEN 'fix: x' && git push host HEAD:topic && git push host HEAD:main")
    assert done.status == 1 and "HEAD -> topic" in done.text() and "the hook pre-commit failed" in done.text() and "WROTE" not in done.text(), done.said()
    assert os.listdir(scratch) == [] and s.git(top, "rev-parse", "main") == base and s.git(top, "log", "-1", "--format=%s", "topic") == "fix: x"
    done = push(s, top, "git fetch -q host 2>&1; git reset -q --hard host/main && git fetch -q file:///workspace/policy refs/remotes/up/main && git reset -q --hard FETCH_HEAD && git push host HEAD:main")
    assert done.status == 0 and "judge 1 commit" in done.text(), done.said()
    assert s.git(top, "log", "-1", "--format=%s", "main") == "fix: later"
    s.git(top, "symbolic-ref", "refs/heads/held", "refs/heads/topic")
    before = refs(s, top)
    done = push(s, top, "c y fine 'fix: y' && git push host HEAD:main")
    assert done.status == 1 and "protected branch refs/heads/held is another name of refs/heads/topic" in done.text() and refs(s, top) == before, done.said()
    s.clean(top)


def told(s, _hand):
    top = with_hooks(s, "told", "verify: told")
    s.good(top, "start", "--branch", "feature/one")
    done = push(s, top, "c x FORBIDDEN 'fix: x' && git push host HEAD")
    assert done.status == 0 and "x has a forbidden word" in done.text() and "pushed nevertheless" in done.text(), done.said()
    assert s.git(top, "log", "-1", "--format=%s", "feature/one") == "fix: x"
    # Hooks that husky has installed, and what they need from node_modules, which only the checkout has.
    s.good(top, "stop", "--branch", "feature/one")
    s.write(top, ".husky/_/pre-commit", '#!/bin/sh\n. "${0%/*}/h"\n', 0o755)
    s.write(top, ".husky/_/h", 's=$(dirname "$(dirname "$0")")/${0##*/}\nsh -e "$s" "$@"\n')
    s.write(top, ".husky/pre-commit", "node_modules/.bin/judge\n")
    s.write(top, "node_modules/.bin/judge", "#!/bin/sh\necho judged-by-tool; exit 1\n", 0o755)
    s.user.own(top + "/.husky")
    s.user.own(top + "/node_modules")
    s.git(top, "config", "core.hooksPath", ".husky/_")
    s.good(top, "start", "--branch", "feature/one")
    done = push(s, top, "c y fine 'fix: y' && git push host HEAD")
    assert done.status == 0 and "judged-by-tool" in done.text(), done.said()
    # No hooks, where they are wanted and where they are required.
    s.good(top, "stop", "--branch", "feature/one")
    os.unlink(top + "/.husky/pre-commit")  # husky's own is left, and judges nothing
    s.good(top, "start", "--branch", "feature/one")
    done = push(s, top, "c z FORBIDDEN 'fix: z' && git push host HEAD")
    assert done.status == 0 and "of the checkout judge" not in done.text(), done.said()
    s.good(top, "stop", "--branch", "feature/one")
    s.write(top, ".pinfold/policy.yaml", "version: 1\ngit: {verify: required}\n")
    s.good(top, "trust", ".")
    for prepare, why in ((lambda: None, "has no hook that could check a commit"), (lambda: s.git(top, "config", "core.hooksPath", ".bad"), "cannot be copied")):
        os.makedirs(top + "/.bad", exist_ok=True)
        if not os.path.lexists(top + "/.bad/pre-commit"):
            os.symlink("/nowhere/hook", top + "/.bad/pre-commit")
        prepare()
        before = refs(s, top)
        done = s.do(top, "start", "--branch", "feature/one")
        assert done.status == 0 and why in done.text() and "not served" in done.text(), done.said()
        done = push(s, top, "git commit -q --allow-empty -m 'fix: w'; git push host HEAD")
        assert done.status != 0 and "not served" in done.text() and refs(s, top) == before, done.said()
        s.good(top, "stop", "--branch", "feature/one")
    # `init` names it and leaves the choice: the project's own session is refused with it.
    s.good(top, "init", "--force")
    with open(top + "/.pinfold/policy.yaml", encoding="utf-8") as file:
        text = file.read()
    assert "\n# git: { verify: required }\n" in text and not re.search(r"^git:", text, re.M), text
    s.clean(top)


def servers_of(s, top):
    """The processes that answer a push just now."""
    found = []
    for pid in pf.of_this_suite():
        try:
            if any(os.readlink(f"/proc/{pid}/fd/{n}").endswith("/stage") and s.shelf(top) in os.readlink(f"/proc/{pid}/fd/{n}") for n in os.listdir(f"/proc/{pid}/fd")):
                found.append(pid)
        except OSError:
            continue
    return found


def carries_out(s):
    """Whether git is taking a push."""
    for pid in pf.of_this_suite():
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
            if b"receive-pack" in words and b"--advertise-refs" not in words and os.stat(f"/proc/{pid}").st_uid == s.user.uid:
                return True
        except OSError:
            continue
    return False


def wait_for(what, limit=180):
    end = time.monotonic() + limit
    while time.monotonic() < end:
        if found := what():
            return found
        time.sleep(0.02)
    raise AssertionError(f"not in {limit} s")


def hooks_at_work(s, top):
    """How many hooks of this project, whatever else the machine does."""
    found = 0
    for pid in pf.of_this_suite():
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                found += file.read().startswith(b"/bin/sh\0/run/repo-hooks/pre-commit\0") and os.stat(f"/proc/{pid}").st_uid == s.user.uid and os.readlink(f"/proc/{pid}/cwd").endswith("/" + os.path.basename(top))
        except OSError:
            continue
    return found


def meanwhile(s, _hand):
    """Two pushes at once; a kill while hooks run; a person who changes branches then."""
    top = with_hooks(s, "mean", branches=("feature/one", "two"))
    s.git(top, "branch", "-f", "two", "main")
    for branch in ("feature/one", "two"):
        s.good(top, "start", "--branch", branch)
    go = s.write(top, "go", "no\n")

    def let(word):
        with open(go, "r+", encoding="utf-8") as file:  # in its place
            file.write(word)

    def pushing(text, branch="feature/one"):
        done = []
        thread = threading.Thread(target=lambda: done.append(push(s, top, text, branch)))
        thread.start()
        return thread, done

    def holding(n=1):
        """Whether as many hooks are at work."""
        return hooks_at_work(s, top) == n

    # Both want the same branch to go on, each in its way: one of them does.
    threads = [pushing("c x hold 'fix: one' && git push host HEAD:main"), pushing("c x hold 'fix: two' && git push host HEAD:main", "two")]
    wait_for(lambda: holding(2))
    let("yes\n")
    for thread, _ in threads:
        thread.join()
    let("no \n")
    ended = sorted(done[0].status for _, done in threads)
    assert ended == [0, 1], [done[0].said() for _, done in threads]
    assert s.git(top, "log", "-1", "--format=%s", "main") in ("fix: one", "fix: two")
    # Killed at each step: nothing has changed, but in the last one, where git may have got that far; and the next push works.
    def kept(name):
        return any(os.path.exists(os.path.join(s.shelf(top), "checks/feature__one", one, name)) for one in left(s, top) if one not in killed)

    killed = {"hooks"}
    for n, (step, content) in enumerate(((lambda: kept("stage/commands"), "hold"), (lambda: kept("stage/list"), "hold"), (holding, "hold"), (lambda: carries_out(s), "fine"))):
        before = refs(s, top)
        thread, done = pushing(f"c x '{content} {n}' 'fix: killed {n}' && git push host HEAD")
        # git takes a push in a few milliseconds: one that nobody saw has landed.
        unseen = wait_for(lambda step=step, thread=thread: step() or (not thread.is_alive() and "ended")) == "ended"
        for pid in wait_for(lambda thread=thread: servers_of(s, top) or (not thread.is_alive() and [0])):
            with contextlib.suppress(ProcessLookupError):  # one that only waited may have ended
                if pid:
                    os.kill(pid, signal.SIGKILL)
        thread.join()
        killed.update(left(s, top))
        wait_for(lambda: holding(0))
        if n == 3:  # git itself was killed, and leaves the lock of the branch for a person to remove, as it does anywhere
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(top, ".git/refs/heads/feature/one.lock"))
        assert (done[0].status == 0 if unseen else done[0].status != 0 and refs(s, top) == before) or n == 3, done[0].said()
        let("yes\n")
        done = push(s, top, "git push host HEAD")
        assert done.status == 0 and s.git(top, "log", "-1", "--format=%s", "feature/one") == f"fix: killed {n}", done.said()
        let("no \n")
    # Who pushes has gone: what passes then is not pushed.
    before = refs(s, top)
    thread, done = pushing("c x 'hold gone' 'fix: gone' && git push host HEAD")
    wait_for(holding)
    s.inside(top, "feature/one", "for p in /proc/[0-9]*; do ! grep -qa '^/.pinfold-remote' $p/cmdline || kill -9 ${p#/proc/}; done")
    thread.join()
    let("yes\n")
    wait_for(lambda: not set(left(s, top)) - killed)
    assert done[0].status != 0 and refs(s, top) == before, done[0].said()
    let("no \n")
    # The branch by which a commit counted as judged is taken away meanwhile; and the branch itself moves.
    s.git(top, "branch", "base", s.git(top, "commit-tree", "-p", "feature/one", "-m", "No kind", "feature/one^{tree}"))
    for change, why in ((("branch", "-D", "base"), "have changed meanwhile"), (("branch", "-f", "feature/one", "main~1"), "have changed meanwhile|failed to update ref")):
        more = "git fetch -q host && git reset -q --hard host/base && " if change[2] == "base" else "git reset -q --hard host/feature/one && "
        thread, done = pushing(f"{more} c x 'hold {change[1]}' 'fix: four' && git push host HEAD:feature/one")
        wait_for(holding)
        s.git(top, *change)
        before = refs(s, top)
        let("yes\n")
        thread.join()
        let("no \n")
        assert done[0].status != 0 and re.search(why, done[0].text()) and refs(s, top) == before, done[0].said()
    s.good(top, "stop", "--branch", "two")
    s.good(top, "start", "--branch", "two")
    assert left(s, top, "two") == ["hooks"], left(s, top, "two")
    s.git(top, "fsck", "--strict")
    s.clean(top)


def kinds(s, _hand):
    """Checkouts of every kind: what passes lands, what does not does not."""
    origin = s.checkout("kinds-of", ())
    s.git(origin, "commit", "-q", "--allow-empty", "-m", "more")
    shallow, linked, sha256 = (os.path.join(s.path, name) for name in ("k shallow", "k-linked", "k-sha256"))
    s.git(s.path, "clone", "-q", "--depth", "1", "file://" + origin, shallow)
    s.git(origin, "worktree", "add", "-q", "-b", "of-worktree", linked)
    s.git(s.path, "init", "-q", "-b", "main", "--object-format=sha256", sha256)
    s.git(sha256, "commit", "-q", "--allow-empty", "-m", "first")
    for top, into in ((shallow, shallow), (linked, origin), (sha256, sha256)):
        hooks = os.path.join(into, ".git/hooks")
        s.write(hooks, "pre-commit", PRE_COMMIT.replace("$REAL", top), 0o755)
        s.write(top, ".pinfold/policy.yaml", "version: 1\ngit: {verify: required}\n")
        s.user.own(top + "/.pinfold")
        s.good(top, "trust", ".")
        s.good(top, "start", "--branch", "b")
        name = [p for p in s.listed(top) if p["branch"] == "b"][0]["session"]
        done = s.do(top, "exec", name, "--", "sh", "-c", COMMIT.format("c x fine 'fix: x' && git push host b && c y FORBIDDEN 'fix: y'; git push host b") + " 2>&1")
        assert done.status == 1 and "has a forbidden word" in done.text() and "WROTE" not in done.text(), (top, done.said())
        assert s.git(into, "log", "-1", "--format=%s", "b") == "fix: x", done.said()
        s.git(into, "fsck", "--strict")
        s.good(top, "rm", "--force")
    # Refs in a table, where git can make one.
    table = os.path.join(s.path, "k-table")
    done = pf.run(["git", "init", "-q", "-b", "main", "--ref-format=reftable", table], s.user, s.path, s.env)
    if done.status == 0:
        s.git(table, "commit", "-q", "--allow-empty", "-m", "first")
        s.write(table, ".git/hooks/pre-commit", "#!/bin/sh\n", 0o755)
        s.write(table, ".pinfold/policy.yaml", "version: 1\ngit: {verify: required}\n")
        s.user.own(table + "/.pinfold")
        s.good(table, "trust", ".")
        done = s.do(table, "start", "--branch", "b")
        assert "reftable" in done.text() and "not served" in done.text(), done.said()
        s.clean(table)
    for top in (linked, origin, shallow, sha256):
        shutil.rmtree(s.shelf(top), ignore_errors=True)
        shutil.rmtree(top)


TESTS = {"verify-kinds": kinds, "verify-judged": judged, "verify-by-policy": by_policy, "verify-told": told, "verify-meanwhile": meanwhile}
