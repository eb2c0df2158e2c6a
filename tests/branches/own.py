"""git.verify: required where a box writes the repository itself: branches move to what real hooks have passed, and in no other way."""
import glob
import json
import os
import re
import shutil
import signal
import subprocess

import pf
import verify

# In the box: every row is a shell's, from the same state of the repository; what protected branches were is compared with the files
# themselves, as git on the host would read them, and with git's own answer.
ROWS = r"""
import json, os, subprocess, sys
rows, top = json.load(open("/tmp/rows")), os.getcwd()
def run(text):
    return subprocess.run(["sh", "-c", text], capture_output=True, stdin=subprocess.DEVNULL, timeout=300)
def heads():
    said = run("git for-each-ref --format='%(objectname) %(refname) %(symref)' refs/heads; cat .git/refs/heads/main .git/packed-refs; find .git/refs/heads -name '*.lock' -prune -o -printf '%p %y %n\\n' | sort").stdout.decode()
    return said
before, seen = heads(), []
run("cp -a .git/objects /tmp/objects")
for row in rows:
    done = run(row)
    after = heads()
    seen.append([row, done.returncode, after == before, (done.stdout + done.stderr).decode("utf-8", "replace"), "" if after == before else before + "---\n" + after])
    run("rm -f .git/refs/heads/*.lock .git/packed-refs.lock .git/packed-refs.new .git/shallow .git/objects/info/alternates; set -- .git/refs/replace/*; [ ! -e \"$1\" ] || git replace -d $(git replace -l); git checkout -qf main")
    if "fake" in row:  # for the next row the objects are what their names say
        run("chmod -R u+w .git/objects; rm -rf .git/objects/??; cp -a /tmp/objects/. .git/objects")
json.dump(seen, sys.stdout)
"""
HELP = r"""
import os, sys
top, words = os.getcwd(), sys.argv[1:]
main, lock = ".git/refs/heads/main", ".git/refs/heads/main.lock"
def put(name, text):
    with open(name, "w") as file:
        file.write(text)
if words[0] == "kept":  # a descriptor, a mapping and another name of the lock file stay behind
    import mmap
    put(lock, words[1] + "\n")
    os.link(lock, "kept")
    fd = os.open(lock, os.O_RDWR)
    area = mmap.mmap(fd, 0)
    os.rename(lock, main)
    os.pwrite(fd, words[2].encode(), 0)
    area[:40] = words[2].encode()
    put("kept", words[2] + "\n")
    os.unlink("kept")
elif words[0] == "exchange":
    import ctypes
    put("x.lock", words[1] + "\n")
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(-100, b"x.lock", -100, main.encode(), 2):
        sys.exit(os.strerror(ctypes.get_errno()))
elif words[0] == "socket":
    import socket
    socket.socket(socket.AF_UNIX).bind(words[1])
elif words[0] == "lock":  # what a library does
    put(lock, words[1] + "\n")
    os.rename(lock, words[2] if len(words) > 2 else main)
elif words[0] == "swap":  # the lock file changes while it is judged
    import threading
    put(lock, words[1] + "\n")
    end = []
    def change():
        while not end:
            put("s", words[2] + "\n")
            try:
                os.rename("s", lock + "2")
                os.rename(lock + "2", lock) if os.path.exists(lock) else None
            except OSError:
                pass
    thread = threading.Thread(target=change)
    thread.start()
    try:
        os.rename(lock, main)
    finally:
        end.append(1)
        thread.join()
elif words[0] == "fake":  # an object that is not what its name says
    import zlib
    name = os.path.join(".git/objects", words[1][:2], words[1][2:])
    os.makedirs(os.path.dirname(name), exist_ok=True)
    if os.path.exists(name):
        os.chmod(name, 0o644)
        os.unlink(name)
    body = open(words[3], "rb").read()
    with open(name, "wb") as file:
        file.write(zlib.compress(b"%s %d\0" % (words[2].encode(), len(body)) + body))
"""
# $BAD: has what the hook forbids. $CHAIN: would pass, and comes after it. $GOOD: would pass. All of them after main.
# The row that swaps may move main to $GOOD, and puts back only that; the lock file of what was refused may stay.
REFUSED = r"""git update-ref refs/heads/main $BAD
git update-ref --no-deref refs/heads/new $BAD
git branch -f other $BAD
git branch new $CHAIN
git checkout -q -b new $BAD
git reset -q --hard $BAD
git merge -q --ff-only $BAD
git merge -q --no-verify --no-ff -m 'fix: merge' $BAD
git fetch -q . $BAD:main
git fetch -q . $BAD:refs/heads/new
git push -q . $BAD:refs/heads/other
echo FORBIDDEN >a.txt; git commit -q --no-verify -am 'fix: x'
git commit -q --no-verify --allow-empty -m 'No kind'
git -c core.hooksPath=/dev/null commit -q --allow-empty -m 'No kind'
/usr/bin/git commit -qn --allow-empty -m 'No kind'
cp "$(command -v git)" /tmp/tig; /tmp/tig commit -qn --allow-empty -m 'No kind'
printf 'update refs/heads/main %s\nupdate refs/heads/other %s\n' $BAD $GOOD | git update-ref --stdin
printf 'start\ncreate refs/heads/n1 %s\ncreate refs/heads/n2 %s\nprepare\ncommit\n' $BAD $CHAIN | git update-ref --stdin
echo $BAD >.git/refs/heads/main
echo $BAD >.git/refs/heads/new
cp .git/HEAD .git/refs/heads/new
printf $BAD | dd of=.git/refs/heads/main conv=notrunc
: >.git/refs/heads/main
truncate -s 0 .git/refs/heads/main
ln -s other .git/refs/heads/new
ln -sf other .git/refs/heads/main
echo $BAD >x; ln x .git/refs/heads/new
echo $BAD >x; ln -f x .git/refs/heads/main
ln .git/refs/heads/main kept && echo $BAD >kept
mkfifo .git/refs/heads/new
python3 -IS /tmp/help.py socket .git/refs/heads/new
python3 -IS /tmp/help.py lock $BAD
python3 -IS /tmp/help.py lock $BAD .git/refs/heads/MAIN
python3 -IS /tmp/help.py lock $BAD .git/worktrees/../refs/heads/main
python3 -IS /tmp/help.py lock $CHAIN
python3 -IS /tmp/help.py lock 'ref: refs/heads/other'
python3 -IS /tmp/help.py lock 'ref: refs/remotes/origin/x' .git/refs/heads/new
python3 -IS /tmp/help.py lock "$GOOD $BAD"
python3 -IS /tmp/help.py lock ''
python3 -IS /tmp/help.py exchange $BAD
python3 -IS /tmp/help.py swap $GOOD $BAD & python3 -IS /tmp/help.py lock $BAD; wait; [ "$(cat .git/refs/heads/main)" != $GOOD ] || { rm -f .git/refs/heads/main.lock; git update-ref refs/heads/main $MAIN; }
git symbolic-ref refs/heads/main refs/heads/other
git symbolic-ref refs/heads/new refs/remotes/origin/x
mv .git dot && mv dot .git
mv .git/refs r; mv r .git/refs
mv .git/refs/heads h; mv h .git/refs/heads
cp -r .git/refs/heads h2 && mv h2 .git/refs/heads/sub; rm -r h2
mkdir -p .git/refs/heads/sub && mv .git/refs/heads/sub sub; rmdir .git/refs/heads/sub
mv .git/refs/heads/main m
mv .git/packed-refs m
rm -rf .git/refs/heads/none; rmdir .git/refs
mkdir .git/reftable
git config extensions.refStorage reftable
printf '[extensions]\n\trefStorage = reftable\n' >>.git/config
cp .git/config c && printf '[ExTensions]\n\tREFSTORAGE = reftable\n' >>c && mv c .git/config
sed "s/^$MAIN/$BAD/" .git/packed-refs >p; mv p .git/packed-refs
{ cat .git/packed-refs; echo "$BAD refs/heads/main"; } >p; mv p .git/packed-refs
{ head -n 1 .git/packed-refs; echo "$BAD refs/heads/aaa"; tail -n +2 .git/packed-refs; } >p; mv p .git/packed-refs
{ cat .git/packed-refs; echo "$BAD refs/heads/main"; echo "^$GOOD"; } >p; mv p .git/packed-refs
{ cat .git/packed-refs; printf "$BAD refs/heads/zzz"; } >p; mv p .git/packed-refs
{ cat .git/packed-refs; printf "$BAD\trefs/heads/zzz\n"; } >p; mv p .git/packed-refs
{ cat .git/packed-refs; printf "$BAD refs/heads/zzz\r\n"; } >p; mv p .git/packed-refs
echo "$BAD refs/heads/main" >.git/packed-refs
echo "$BAD refs/heads/main" >p; ln -f p .git/packed-refs
git worktree add -q wt -b side $BAD; git worktree prune; rm -rf wt
git worktree add -q wt -b side && cd wt && echo FORBIDDEN >a.txt && git commit -qnam 'fix: x'; cd ..; git worktree remove --force wt; git branch -qD side
git worktree add -q --detach wt && echo ../../../evil >.git/worktrees/wt/commondir; cd wt && git update-ref refs/heads/main $BAD; cd ..; rm -rf wt; git worktree prune
git replace $BAD $GOOD; python3 -IS /tmp/help.py lock $BAD
git replace --graft $CHAIN $MAIN; python3 -IS /tmp/help.py lock $CHAIN
echo "$CHAIN $MAIN" >.git/info/grafts; git update-ref refs/heads/main $CHAIN
echo $CHAIN >.git/shallow; python3 -IS /tmp/help.py lock $CHAIN
git update-ref refs/remotes/up/main $CHAIN; git symbolic-ref refs/remotes/up/HEAD refs/remotes/up/main; git merge -q --ff-only $CHAIN
git cat-file commit $MAIN | sed "s/^parent .*/parent $BAD/" >o; python3 -IS /tmp/help.py fake $MAIN commit o; python3 -IS /tmp/help.py lock $CHAIN; python3 -IS /tmp/help.py lock $BAD
git cat-file commit $CHAIN | sed "s/^parent .*/parent $MAIN/" >o; python3 -IS /tmp/help.py fake $CHAIN commit o; python3 -IS /tmp/help.py lock $CHAIN
echo fine >o; python3 -IS /tmp/help.py fake $(git rev-parse $BAD:x) blob o; python3 -IS /tmp/help.py lock $BAD; echo FORBIDDEN | git hash-object -w --stdin
t=$(git rev-parse $GOOD^{tree}); git cat-file tree $t >o; python3 -IS /tmp/help.py fake $(git rev-parse $BAD^{tree}) tree o; python3 -IS /tmp/help.py lock $BAD
t=$(git rev-parse $GOOD^{tree}); git cat-file tree $t >o; python3 -IS /tmp/help.py fake $(git rev-parse $MAIN^{tree}) tree o; python3 -IS /tmp/help.py lock $BAD
echo x >o; python3 -IS /tmp/help.py fake $(git rev-parse $MAIN:a.txt) blob o; python3 -IS /tmp/help.py lock $BAD
git update-ref refs/heads/main $(git rev-parse $GOOD^{tree})
git tag -a -m x t $MAIN; python3 -IS /tmp/help.py lock $(git rev-parse t); git tag -d t
python3 -IS /tmp/help.py lock 1111111111111111111111111111111111111111
python3 -IS /tmp/help.py lock $BAD & python3 -IS /tmp/help.py lock $CHAIN .git/refs/heads/other & wait""".splitlines()

# What a person's day has. Everything works, and nothing asks for more than hooks that pass.
DAY = r"""set -ex
c() { echo "$2" >"$1"; git add "$1"; git commit -q -m "$3"; }
c one fine 'fix: one'
c two fine 'fix: two'
git commit -q --amend -m 'fix: two, better'
echo more >>two; git stash -q; git stash pop -q; git commit -qam 'fix: more'
git checkout -q -b topic HEAD~1
c three fine 'fix: three'
c four fine 'fix: four'
git rebase -q main
GIT_SEQUENCE_EDITOR='sed -i 1s/pick/reword/' GIT_EDITOR=true git rebase -q -i HEAD~2
git checkout -q main
git merge -q --no-ff -m 'fix: merge' topic
git branch -m topic renamed
git branch -d renamed
git branch again HEAD~1
git reset -q --hard HEAD~1
git merge -q --ff-only again
git revert --no-commit HEAD && git commit -qm 'fix: revert'
git tag v1
git tag -a v2 -m two
git pack-refs --all
c five fine 'fix: five'
git gc -q
git worktree add -q wt -b side
(cd wt && c six fine 'fix: six')
git merge -q side
git worktree remove wt
git branch -D side
printf 'update refs/heads/main %s\ncreate refs/heads/n %s\n' $(git rev-parse HEAD) $(git rev-parse HEAD~1) | git update-ref --stdin
git checkout -q --orphan fresh && git commit -q -m 'fix: root'
git checkout -q main
git merge -q --ff-only origin/main 2>&1 | head -n 1
git checkout -q -B upstream origin/main
git checkout -q main
git fsck --strict"""


def scene(s, name):
    top = verify.with_hooks(s, name, branches=("other",))
    own = verify.PRE_COMMIT.replace("$REAL", top).replace(" /run/repo-push/commands", "")  # in its own memory a hook's box may write
    s.write(top, ".git/hooks/pre-commit", own, 0o755)
    s.git(top, "checkout", "-q", "main")
    s.git(top, "pack-refs", "--all")
    s.git(top, "config", "core.logAllRefUpdates", "false")
    s.git(top, "update-ref", "refs/heads/main", "main")
    base, tree = s.git(top, "rev-parse", "main"), s.git(top, "rev-parse", "main^{tree}")
    s.git(top, "update-ref", "refs/remotes/origin/main", s.git(top, "commit-tree", "-p", s.git(top, "commit-tree", "-p", base, "-m", "No kind", tree), "-m", "fix: upstream", tree))
    s.git(top, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
    return top


def attacks(s, _hand):
    top = scene(s, "own")
    made = """set -e; commit() { git update-index --add --cacheinfo 100644,$(printf '%s\\n' "$1" | git hash-object -w --stdin),x; git commit-tree -p "$2" -m "$3" $(git write-tree); }
        export GIT_INDEX_FILE=../i; git read-tree main; git update-ref refs/heads/main main; echo $(git rev-parse main) >.git/refs/heads/main
        bad=$(commit FORBIDDEN main 'fix: bad'); good=$(commit fine main 'fix: good'); chain=$(commit fine $bad 'fix: chain'); echo $bad $good $chain"""
    done = pf.run(["sh", "-c", made], s.user, top, s.env)
    bad, good, chain = done.out.decode().split()
    main = s.git(top, "rev-parse", "main")
    rows = REFUSED if verify.whole(s) else REFUSED[::6]
    rows = [f"BAD={bad} GOOD={good} CHAIN={chain} MAIN={main}; {row}" for row in rows]
    script = "cat >/tmp/rows <<'E'\n" + json.dumps(rows) + "\nE\ncat >/tmp/help.py <<'E'\n" + HELP + "E\ncat >/tmp/all.py <<'E'\n" + ROWS + "E\npython3 /tmp/all.py"
    before = s.git(top, "for-each-ref", "refs/heads")
    done = pf.run([pf.PINFOLD, "run", "--", "sh", "-c", script], s.user, top, s.env, limit=600)
    assert done.status == 0, done.said()
    moved = [(row, words, change) for row, _status, same, words, change in json.loads(done.out) if not same]
    assert not moved, moved
    after = s.git(top, "for-each-ref", "refs/heads")
    assert after == before, (after, before)
    # What the hook said, which commit, and what to do.
    said = done.err.decode()
    assert re.search(r"'/.*/\.git/refs/heads/main' stays as it is \(git\.verify: required, .*\): commit " + bad[:12] + r" \(fix: bad\): the hook pre-commit failed with status 1; 1:FORBIDDEN; linter: x has a forbidden word; amend the commit", said), said
    assert re.search(r"\(No kind\): the hook commit-msg failed with status 3; the message needs a kind", said) and "WROTE" not in said, said
    # What git says of an object that it would not make so, and of one that is missing.
    odd = "t=$(git rev-parse main^{tree}); c=$(printf 'tree %s\\nparent %s\\nauthor x 0 +0000\\ncommitter x <x> 0 +0000\\n\\nfix: odd\\n' $t $(git rev-parse main) | git hash-object -t commit -w --literally --stdin); git update-ref refs/heads/main $c"
    gone = "b=$(echo gone | git hash-object -w --stdin); c=$(git commit-tree -p main -m 'fix: gone' $(printf '100644 blob %s\\tgone\\n' $b | git mktree)); rm -f .git/objects/$(echo $b | sed 's,..,&/,'); git update-ref refs/heads/main $c; echo gone-$b"
    for text, words in ((odd, r"git: object [0-9a-f]{40}: missingEmail"), (gone, r"git: [^;]*(?P<id>[0-9a-f]{40})")):
        done = s.do(top, "run", "--", "sh", "-c", text)
        found = re.search("its objects are not complete, or not as git would make them; " + words, done.text())
        assert done.status != 0 or "gone-" in done.text(), done.said()
        assert found and ("id" not in found.groupdict() or f"gone-{found['id']}" in done.text()), done.said()
    # A file that is kept open, mapped or has another name after the branch has moved changes nothing.
    done = pf.run([pf.PINFOLD, "run", "--json", "--", "sh", "-c", "cat >/tmp/help.py <<'E'\n" + HELP + f"E\npython3 -IS /tmp/help.py kept {good} {bad}; python3 -IS /tmp/help.py lock {bad}"], s.user, top, s.env)
    result = json.loads(done.out)
    assert len(result["denials"]) == 1, [d["why"] for d in result["denials"]]
    assert s.git(top, "rev-parse", "main") == good, result
    denied = [d for d in result["denials"] if d["action"] == "git-branch"]
    assert len(denied) == 1 and denied[0]["rule"] == "git.verify: required" and "the hook pre-commit failed" in denied[0]["why"] and denied[0]["remedy"].startswith("amend the commit"), result
    assert not os.path.exists(s.shelf(top)), os.listdir(s.shelf(top))
    s.clean(top)


def day(s, _hand):
    """A day of commits in the project's own session, whose policy `init` has written."""
    top = scene(s, "day")
    s.git(top, "update-ref", "-d", "refs/heads/desk")
    shutil.rmtree(top + "/.pinfold")
    s.write(top, ".git/hooks/pre-commit", "#!/bin/sh\n! git diff --cached | grep FORBIDDEN\n", 0o755)  # the box's own git runs it, too
    s.good(top, "init")
    with open(top + "/.pinfold/policy.yaml", encoding="utf-8") as file:
        assert re.search(r"^git: \{ verify: required \}$", file.read(), re.M)
    s.good(top, "start")
    done = s.do(top, "exec", f"agent-sandbox-day-{os.path.basename(s.session(top, 'x')).rsplit('-', 1)[1]}", "--", "bash", "-c", DAY, limit=300)
    assert done.status == 0, done.said()
    assert s.git(top, "log", "-1", "--format=%s", "upstream") == "fix: upstream" and s.git(top, "log", "-1", "--format=%s", "fresh") == "fix: root", done.said()
    # Packed, refused, judged by another's hook: as the session's start had them.
    done = s.do(top, "exec", f"agent-sandbox-day-{s.session(top, 'x').rsplit('-', 1)[1]}", "--", "sh", "-c", "git commit -qn --allow-empty -m 'No kind'")
    assert done.status != 0 and "the message needs a kind" in done.text(), done.said()
    s.git(top, "fsck", "--strict")
    s.good(top, "stop")
    s.clean(top)


def ends(s, _hand):
    """Who waits for hooks can be interrupted, and whatever is killed leaves nothing at work, and no branch that has moved."""
    top = scene(s, "ends")
    s.write(top, "go", "no\n")
    before = s.git(top, "rev-parse", "main")

    def begin(text):
        commit = "echo hold >a.txt; git add a.txt; git commit -qnm 'fix: x' & g=$!; " + text
        return subprocess.Popen([pf.PINFOLD, "run", "--", "sh", "-c", commit], cwd=top, env=s.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **s.user.popen())

    def at_work():
        return verify.hooks_at_work(s, top) > 0

    child = begin("until [ -e now ]; do sleep 0.05; done; kill -TERM $g; wait $g; echo ended-$?; ls .git/refs/heads")
    verify.wait_for(at_work)
    s.write(top, "now", "")
    said = child.communicate()[0].decode()
    assert "ended-143" in said and ".lock" not in said, said
    verify.wait_for(lambda: not at_work() and not os.path.exists(s.shelf(top)))
    child = begin("wait")
    verify.wait_for(at_work)
    child.kill()
    child.communicate()
    verify.wait_for(lambda: not at_work() and not os.path.exists(s.shelf(top)))
    assert s.git(top, "rev-parse", "main") == before
    for name in ("HEAD.lock", "index.lock", "refs/heads/main.lock"):  # git was killed, too
        if os.path.exists(f"{top}/.git/{name}"):
            os.unlink(f"{top}/.git/{name}")
    s.clean(top)


def checkers(s, top):
    """The processes, with their parents', that judge commits of this project, or wait for one."""
    found = []
    for pid in pf.of_this_suite():
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
            if len(words) > 3 and words[1:4] == [b"--check", os.path.basename(top).encode(), top.encode()] and os.stat(f"/proc/{pid}").st_uid == s.user.uid:
                with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                    found.append((pid, int(file.read().rsplit(")", 1)[1].split()[1])))
        except OSError:
            continue
    return [one for one in found if one[1] not in [pid for pid, _parent in found]]  # not what is about to become a git


def is_ready(pid):
    """Whether this process reads its standard input, and has the four gits that wait beside it."""
    try:
        with open(f"/proc/{pid}/syscall", encoding="ascii") as file:
            reads = file.read().split()[:2] in (["0", "0x0"], ["63", "0x0"])
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            return reads and len(file.read().split()) == 4
    except OSError:
        return False


def has_fetched(s, pid, commit):
    """Whether the box that waits has this commit; only root may look. One that was begun before the branch moved has the one before."""
    return pf.run(["git", f"--git-dir=/proc/{pid}/root/run/repo-push/repo", "cat-file", "-e", commit], s.user, "/", s.env).status == 0


def fetched_ahead(s, top, session, waits):
    """The box that waits has what is checked out, and then needs of a commit only what is new in it; much is fetched when it is asked for."""
    def commit(text):
        done = s.do(top, "exec", session, "--", "sh", "-ec", text + "; git add r; git commit -qnm 'fix: x'")
        assert done.status == 0, (text, done.said())

    def ready():
        verify.wait_for(lambda: is_ready(waits()))

    commit("echo old >r")
    commit("echo new >r; git repack -adqb")  # git knows by its bitmaps that what is old is there, which no other repository has
    ready()

    def fetched():
        commit("mkdir -p sub; head -c 2000 /dev/urandom >sub/one; git add sub; date +%s%N >r")
        ready()
        return has_fetched(s, waits(), s.git(top, "rev-parse", "HEAD"))

    commit("echo old >r")
    if s.user.uid == 0:
        verify.wait_for(fetched)
    else:
        fetched()
    blob = s.git(top, "rev-parse", "HEAD:sub/one")
    blob = f"{top}/.git/objects/{blob[:2]}/{blob[2:]}"
    if s.user.uid == 0:
        os.rename(blob, top + "/.git/away")  # what has been fetched is not read again
    commit("echo third >r")
    if s.user.uid == 0:
        os.rename(top + "/.git/away", blob)
    if not verify.whole(s):
        return
    # The host moves the branch meanwhile, to what is more than is fetched before it is asked for.
    done = pf.run(["sh", "-ec", "head -c 17000000 /dev/zero >large; git add large; t=$(git write-tree); git update-ref refs/heads/main $(git commit-tree -p main -m 'fix: large' $t); rm large"], s.user, top, s.env)
    assert done.status == 0, done.said()
    commit("git rm -q --cached large; echo fourth >r")
    ready()
    commit("echo fifth >r")


def waiting(s, _hand):
    """The box that waits for the next commit: whatever becomes of it, what hooks refuse is refused, and what they pass passes."""
    top = scene(s, "waiting")
    hook = verify.PRE_COMMIT.replace("$REAL", top).replace(" /run/repo-push/commands", "").replace("exit $status\n", """
if grep -q sly a.txt; then touch -r a.txt /tmp/then; printf ylS | dd of=a.txt conv=notrunc 2>/dev/null; touch -r /tmp/then a.txt; fi
if grep -q litter a.txt; then : >left.txt; mkdir cache; fi
exit $status
""")
    s.write(top, ".git/hooks/pre-commit", hook, 0o755)
    shutil.rmtree(top + "/.pinfold")
    s.good(top, "init")
    s.good(top, "start")
    session = f"agent-sandbox-waiting-{s.session(top, 'x').rsplit('-', 1)[1]}"

    def commit(word, message="fix: x", more=""):
        return s.do(top, "exec", session, "--", "sh", "-c", f"echo {word} >a.txt; git add a.txt; git commit -qn {more} -m '{message}'; s=$?; git reset -q --hard; exit $s")

    def both(more=""):
        done = commit("FORBIDDEN", "fix: bad", more)
        assert done.status != 0 and "1:FORBIDDEN" in done.text(), done.said()
        done = commit(f"fine {os.urandom(4).hex()}", "fix: good", more)
        assert done.status == 0, done.said()

    def waits():
        found = checkers(s, top)
        assert len(found) < 2, found
        return found

    both()
    verify.wait_for(waits)
    both("--amend")
    fetched_ahead(s, top, session, lambda: waits() and waits()[0][0])
    for end in ("helper", "pid 1"):
        helper, parent = verify.wait_for(waits)[0]
        os.kill(helper if end == "helper" else parent, signal.SIGKILL)
        verify.wait_for(lambda gone=helper: gone not in [pid for pid, _parent in checkers(s, top)])
        both()
    # Times of files tell what hooks change, and all that they leave is thrown away.
    for word, why in (("sly", "the hook pre-commit changes files; a.txt"), ("untidy", "the hook pre-commit changes files; a.txt"), ("litter", "")):
        done = commit(word)
        assert (done.status != 0 and why in done.text()) if why else done.status == 0, (word, done.said())
    # What a program does not say of a branch that did not move, the command's end does, once, and so do result and log.
    silent = ["python3", "-c", "try:\n with open('.git/refs/heads/main', 'r+') as file: file.truncate(0)\nexcept OSError: pass"]
    done = s.do(top, "exec", session, "--", *silent)
    assert done.status == 0 and done.err.count(b"/.git/refs/heads/main' stays as it is") == 1 and not done.out, done.said()
    done = s.do(top, "exec", "--json", session, "--", *silent)
    assert done.status == 0 and [d["action"] for d in json.loads(done.out)["denials"]] == ["git-branch"], done.said()
    assert "git renames its lock file onto it" in s.do(top, "log", "--session", session).text()
    assert s.do(top, "exec", session, "--", "true").err == b""
    # Not the one on which the box that waits was begun.
    verify.wait_for(waits)
    shutil.move(top + "/.git", top + "/was")
    shutil.copytree(top + "/was", top + "/.git", symlinks=True)
    s.user.own(top + "/.git")
    both()
    verify.wait_for(waits)
    s.good(top, "stop")
    verify.wait_for(lambda: not checkers(s, top) and not glob.glob(s.shelf(top) + "/checks/run-*"))
    shutil.rmtree(top + "/was")
    s.git(top, "fsck", "--strict")
    s.clean(top)


def layered(s, _hand):
    """What a box commits into its layer: the hooks judge it when it is applied."""
    top = scene(s, "layered")
    before = s.git(top, "for-each-ref", "refs/heads")
    c = "c() { echo $2 >$1; git add $1; git commit -qnm \"$3\"; }; "
    done = s.do(top, "run", "--cow=work", "--", "sh", "-ec", c + "c x fine 'fix: x'; git checkout -q -b bad; c y FORBIDDEN 'fix: y'; c z fine 'fix: z'; git checkout -q -b name main; c n fine 'No kind'; git symbolic-ref refs/heads/alias refs/heads/main; git checkout -q main")
    assert done.status == 0, done.said()
    assert s.git(top, "for-each-ref", "refs/heads") == before
    done = s.do(top, "apply", "work", "--all")
    assert s.git(top, "log", "-1", "--format=%s", "main") == "fix: x", done.said()
    said = done.text()
    required = r"git\.verify: required.*"
    for branch, why in (("bad", required + r"commit [0-9a-f]{12} \(fix: y\): the hook pre-commit failed with status 1; 1:FORBIDDEN"), ("name", required + r"\(No kind\): the hook commit-msg failed with status 3"), ("alias", "it is a symbolic ref")):
        assert re.search(rf"refs/heads/{branch}: .*{why}", said), (branch, said)
        assert branch not in s.git(top, "for-each-ref", "--format=%(refname:short)", "refs/heads").split(), said
    # Mended in the same layer, it lands; and as a branch of its own what is in files is judged, too.
    done = s.do(top, "run", "--cow=work", "--", "sh", "-ec", c + "git checkout -q bad; git reset -q --soft main; echo fine >y; git add .; git commit -qnm 'fix: y'; git checkout -q main")
    assert done.status == 0, done.said()
    done = s.do(top, "apply", "work", "--all")
    assert s.git(top, "log", "-1", "--format=%s", "bad") == "fix: y", done.said()
    s.git(top, "fsck", "--strict")
    s.write(top, ".git/hooks/commit-msg", "#!/bin/sh\ngrep -q '^Changes of layer' $1\n", 0o755)
    for text, status in (("FORBIDDEN", 1), ("fine", 0)):
        assert s.do(top, "run", f"--cow=files-{text}", "--", "sh", "-c", f"echo {text} >new").status == 0
        done = s.do(top, "apply", f"files-{text}", "--all", "--branch", "of-files")
        assert (done.status != 0) == bool(status) and ("its commits did not pass" in done.text()) == bool(status), done.said()
        s.do(top, "discard", f"files-{text}")
    s.do(top, "discard", "work")
    s.clean(top)


def linked(s, _hand):
    """A linked worktree whose repository the box may write."""
    top = scene(s, "main-one")
    at = os.path.join(s.path, "linked-one")
    s.git(top, "worktree", "add", "-q", "-b", "side", at)
    text = "echo fine >x; git add x; git commit -qnm 'fix: x' && echo FORBIDDEN >y && git add y; git commit -qnm 'fix: y'; git update-ref refs/heads/main $(git commit-tree -p main -m 'No kind' main^{tree})"
    done = s.do(at, "run", "--git-verify", "required", "--rw", top + "/.git", "--", "sh", "-c", text)
    assert done.status != 0 and "1:FORBIDDEN" in done.text() and "the message needs a kind" in done.text(), done.said()
    assert s.git(top, "log", "-1", "--format=%s", "side") == "fix: x" and s.git(top, "log", "-1", "--format=%s", "main") == "seed: second", done.said()
    s.git(top, "worktree", "remove", "--force", at)
    s.clean(top)


TESTS = {"own-waiting": waiting, "own-layered": layered, "own-linked": linked, "own-attacks": attacks, "own-day": day, "own-ends": ends}
