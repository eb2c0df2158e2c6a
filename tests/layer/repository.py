"""Cases of a repository as one unit: what lands, what a host that works on it keeps, and what a hostile layer cannot bring."""
import glob
import hashlib
import json
import os
import re
import stat
import struct
import subprocess
import time
import zlib

import kit

GIT = dict(GIT_CONFIG_NOSYSTEM="1", GIT_AUTHOR_NAME="n", GIT_AUTHOR_EMAIL="a@b", GIT_COMMITTER_NAME="n", GIT_COMMITTER_EMAIL="a@b", GIT_CONFIG_GLOBAL="/dev/null")
BOX = "export GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=n GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=n GIT_COMMITTER_EMAIL=a@b GIT_CONFIG_GLOBAL=/dev/null\n"
WORK = """echo y >>f1; git commit -qam two; git checkout -q -b feature/x; echo z >new; git add new; git commit -qm three; git branch -D old side >/dev/null
git tag -a v1 -m tagged; echo w >>f2; git stash -q; echo s >>f3; git stash -q; git checkout -q main; echo last >>f5; git add f5; echo loose >>f6; git rm -q f7"""


def cases(c):  # noqa: C901
    """`c`: check, same_trees, SCRATCH, STRIKE, KILLS and again of cases.py."""
    check = c.check
    # Repositories of the host without git's samples of hooks, a third of their files: all are copied and compared time and again. What a box makes has them.
    template = os.path.join(c.SCRATCH, "template")
    for name in ("hooks", "info"):
        os.makedirs(os.path.join(template, name), exist_ok=True)
    GIT["GIT_TEMPLATE_DIR"] = template

    def git(layer, *words, cwd=None, ok=True, given=None):
        done = subprocess.run(["git", *words], cwd=cwd or layer.work, env=dict(layer.env, **GIT), input=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if ok:
            check(done.returncode == 0, "git", *words, done.stderr.decode())
        return done.stdout.decode(errors="surrogateescape")

    def fill(work, files=30, init="init -q -b main"):
        for i in range(files):
            with open(os.path.join(work, f"f{i}"), "w") as file:
                file.write(f"{i}\n")
        env = dict(os.environ, HOME=work, **GIT)
        for words in (init, "add .", "commit -qm one", "branch old", "pack-refs --all", "branch side"):
            subprocess.run(["git", *words.split()], cwd=work, env=env, check=True)

    def layer_of(name, script, fill=fill, then=None):
        layer = kit.Layer(kit.fresh(os.path.join(c.SCRATCH, name)))
        layer.work = os.path.realpath(layer.work)
        fill(layer.work)
        run(layer, script)
        return layer

    def run(layer, script):
        layer.pinfold("run", "-q", "--cow=it", "--", "sh", "-ec", BOX + script)
        layer.dir = glob.glob(os.path.join(layer.state, "pinfold", "layers", "*"))[0]

    def refs(layer):
        return dict(line.split(" ", 1)[::-1] for line in git(layer, "for-each-ref", "--format=%(objectname) %(refname)").splitlines())

    def sound(layer, what="", cwd=None):
        done = subprocess.run(["git", "fsck", "--strict", "--connectivity-only"], cwd=cwd or layer.work, env=dict(layer.env, **GIT), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        text = done.stdout.decode()
        check(done.returncode == 0 and not re.search("missing|broken|error", text), what, "fsck", text)

    def state(layer, inside="."):
        """All of .git that the unit is about, but for objects."""
        return {p: w for p, w in kit.tree(os.path.join(layer.work, inside, ".git"), times=False).items() if not p.startswith("objects") and p != "COMMIT_EDITMSG"}

    def lands():
        layer = layer_of("lands", WORK + "; git status --short >../seen 2>/dev/null || git status --short >seen; git rev-parse HEAD feature/x v1 refs/stash >hashes")
        before, told = refs(layer), layer.pinfold("diff")[1]
        hashes = layer.pinfold("diff", "--patch", "hashes")[1]
        for word in ("branch main: ", "1 new commit\n", " n: two\n", "branch feature/x: new", "2 new commits", "branch old: deleted", "tag v1: new", "the stash changed", "2 paths are staged", "M f5", "D f7"):
            check(word in told, word, told)
        check("objects" not in told and ".git/" not in told, "told as bytes", told)
        check(not [p for p in layer.diff() if p.startswith(".git")], "as bytes in JSON")
        out = layer.pinfold("apply", "--all")[1]
        check(".git/refs/heads/main" in out and "objects" not in out, out)
        for ref, line in zip(("HEAD", "feature/x", "v1", "refs/stash"), re.findall(r"^\+([0-9a-f]{40})$", hashes, re.M)):
            check(git(layer, "rev-parse", ref).strip() == line, ref, line)
        sound(layer)
        check(set(refs(layer)) == {"refs/heads/main", "refs/heads/feature/x", "refs/tags/v1", "refs/stash"}, refs(layer))
        check(git(layer, "status", "--short", "-uno") == "M  f5\n M f6\nD  f7\n", git(layer, "status", "--short"))
        check(len(git(layer, "stash", "list").splitlines()) == 2 and "three" in git(layer, "reflog", "feature/x"), "logs")
        check(layer.pinfold("diff")[1].endswith("\n0 changed, 0 new, 0 deleted\n"), layer.pinfold("diff")[1])
        check(not os.path.exists(os.path.join(layer.dir, "git")), "left behind")
        out = layer.pinfold("undo")[1]
        check(refs(layer) == before and "index stays" in out, out)
        sound(layer, "undo")
        check("two" in git(layer, "log", "--oneline", "--no-walk", re.findall(r"^\+([0-9a-f]{40})$", hashes, re.M)[0]), "objects stay")
        git(layer, "reset", "-q")
        layer.pinfold("apply", ".git")
        check("refs/heads/feature/x" in refs(layer) and not os.path.exists(os.path.join(layer.work, "hashes")), "again, and .git alone")
        sound(layer, "again")
        run(layer, "git commit -qam four; git checkout -q feature/x; git commit -q --amend -m three-again; git checkout -q --detach")
        layer.pinfold("apply", "--all")
        check(git(layer, "log", "-1", "--format=%s", "main") == "four\n" and git(layer, "log", "-1", "--format=%s", "feature/x") == "three-again\n", "what apply did is no change of the host's")
        check(git(layer, "rev-parse", "--abbrev-ref", "HEAD") == "HEAD\n" and git(layer, "status", "--short", "-uno") == "", git(layer, "status", "--short"))
        sound(layer, "further")

    def host_moves():
        """A branch that the host moved stays, and the box's is beside it; what it did not touch lands."""
        layer = layer_of("moves", WORK)
        git(layer, "commit", "-q", "--allow-empty", "-m", "host")
        host = git(layer, "rev-parse", "main")
        before = kit.tree(layer.work)["f7"]
        code, out, err = layer.pinfold("apply", ".git", ok=None)
        check(code == 1 and ".git/index: it belongs to a commit" in err and "the host moved it" in out, code, out, err)
        all_refs = refs(layer)
        check(git(layer, "rev-parse", "main") == host and "refs/heads/feature/x" in all_refs, "main")
        moved = [r for r in all_refs if r.startswith("refs/pinfold/") and r.endswith("/heads/main")]
        check(len(moved) == 1 and git(layer, "log", "-1", "--format=%s", moved[0]) == "two\n" and before, all_refs)
        sound(layer)
        layer.pinfold("undo")
        check(git(layer, "rev-parse", "main") == host and moved[0] not in refs(layer), "undo")
        layer = layer_of("moves", "git checkout -q old; git commit -q --allow-empty -m more; git checkout -q main")
        git(layer, "worktree", "add", "-q", os.path.join(layer.top, "linked"), "old")
        was = git(layer, "rev-parse", "old")
        check("another work tree is on it" in layer.pinfold("apply", ".git")[1] and git(layer, "rev-parse", "old") == was, "a linked work tree")
        layer = layer_of("moves", WORK)  # a host that only looks, and one that stages
        os.utime(os.path.join(layer.work, "f3"))
        git(layer, "status")
        layer.pinfold("apply", "--all")
        check(git(layer, "status", "--short", "-uno") == "M  f5\n M f6\nD  f7\n", git(layer, "status", "--short"))
        layer = layer_of("moves", WORK)
        with open(os.path.join(layer.work, "f9"), "a") as file:
            file.write("mine\n")
        git(layer, "add", "f9")
        code, out, err = layer.pinfold("apply", "--all", ok=None)
        check(code == 1 and ".git/index: the host changed it" in err and "f9" in git(layer, "diff", "--cached", "--name-only"), code, err)
        layer = layer_of("moves", WORK)
        open(os.path.join(layer.work, ".git", "refs", "heads", "main.lock"), "w").close()
        check("a git command of the host is at work" in layer.pinfold("apply", ".git", ok=(1,))[2], "a lock of the host")

    def only_named():
        """Configuration and hooks wait to be named; files alone leave the repository alone; other places get none of it."""
        script = "echo y >>f1; git commit -qam two; git config core.fsmonitor 'touch /tmp/pwned'; mkdir -p .git/hooks; echo x >.git/hooks/pre-commit; echo /secret >.git/objects/info/alternates; git update-ref refs/x/y HEAD"
        layer = layer_of("named", script)
        code, _, err = layer.pinfold("apply", "--all", ok=None)
        for path in (".git/config", ".git/hooks/pre-commit", ".git/objects/info/alternates"):
            check(f"{path}: git obeys it; to apply it, name this path itself" in err, path, err)
        check(code == 1 and ".git/refs/x/y: a ref of this name" in err and "fsmonitor" not in open(os.path.join(layer.work, ".git/config")).read(), err)
        check(git(layer, "log", "-1", "--format=%s") == "two\n", "the commit")
        text = layer.pinfold("diff")[1]
        check("Look at these first" in text and ".git/config (guarded name" in text, text)
        layer.pinfold("apply", ".git/hooks/pre-commit")
        check(open(os.path.join(layer.work, ".git/hooks/pre-commit")).read() == "x\n", "named itself")
        layer = layer_of("named", script)
        layer.pinfold("apply", "f1")
        check(git(layer, "log", "-1", "--format=%s") == "one\n", "a file alone")
        check("lands with the whole repository" in layer.pinfold("apply", ".git/refs/heads/main", ok=(1,))[2], "a part of it")
        other = os.path.join(layer.top, "other")
        layer = layer_of("named", script)
        kit.copy_tree(layer.work, other)
        layer.pinfold("apply", "--to", other, ".git", ok=(1,))
        check(git(layer, "log", "-1", "--format=%s", cwd=other) == "one\n", "elsewhere")

    def lfs():
        """Objects of Git LFS land with the commit that points to them, by their hash; nothing else that lies beside them does."""
        store = "n=$(sha256sum big | cut -c1-64); d=.git/lfs/objects/$(echo $n | cut -c1-2)/$(echo $n | cut -c3-4); mkdir -p $d .git/lfs/tmp; cp big $d/$n; chmod 444 $d/$n; "
        layer = layer_of("lfs", "head -c 300000 /dev/urandom >big; " + store + "echo oid sha256:$n >f1; git add f1; git commit -qm two; rm big; "
                         "w=.git/lfs/objects/$(printf '%064d' 7 | sed 's,^\\(..\\)\\(..\\),\\1/\\2/\\1\\2,'); mkdir -p $(dirname $w); echo other >$w; echo x >.git/lfs/objects/00/00/short; echo x >.git/lfs/tmp/x; mkdir -p .git/lfs/objects/zz; echo x >.git/lfs/objects/zz/x")
        text = layer.pinfold("diff")[1]
        check("of Git LFS in .git/lfs/objects" in text and "objects/00/00/short (guarded name" in text, text)
        code, _, err = layer.pinfold("apply", "--all", ok=None)
        top = os.path.join(layer.work, ".git/lfs")
        there = sorted(os.path.relpath(os.path.join(at, name), top) for at, _, names in os.walk(top) for name in names)
        check(git(layer, "log", "-1", "--format=%s") == "two\n" and len(there) == 1, there, err)
        content = open(os.path.join(top, there[0]), "rb").read()
        check(hashlib.sha256(content).hexdigest() == os.path.basename(there[0]) in open(os.path.join(layer.work, "f1")).read(), there)
        check(code == 1 and "its name is not the hash of its content" in err and all(f"{name}: git obeys it" in err for name in (".git/lfs/tmp/x", ".git/lfs/objects/00/00/short", ".git/lfs/objects/zz/x")), err)
        layer.pinfold("undo")
        check(not any(names for _, _, names in os.walk(top)) and git(layer, "log", "-1", "--format=%s") == "one\n", "taken back")
        layer = layer_of("lfs", store.replace("big", "f1") + "chmod 666 $d/$n; chmod -R a+w .git/lfs; umask 0; mkdir .git/lfs/objects/01")
        layer.pinfold("apply", "--all", ok=(0, 1))
        found = [os.path.join(at, name) for at, names, files in os.walk(os.path.join(layer.work, ".git/lfs")) for name in names + files]
        check(len([one for one in found if os.path.isfile(one)]) == 1, "without a commit", found)
        wrong = [one for one in found if os.stat(one).st_mode & 0o002]
        check(not wrong, "others could change what was judged", wrong)
        left = [c for c in layer.changes() if "lfs/objects" in c["path"]]
        check(all(c["what"] == ["mode"] and c["waits"] for c in left), "more is left than modes, which wait to be named", left)
        layer = layer_of("lfs", "for i in 1 2; do n=$(printf '%064d' $i); mkdir -p .git/lfs/objects/00/00; truncate -s 1T .git/lfs/objects/00/00/$n; done; " + store.replace("big", "f1"))
        began = time.monotonic()
        err = layer.pinfold("apply", "--all", ok=(1,))[2]
        check(err.count("it has holes") == 2 and time.monotonic() - began < 60, err)
        check(len([n for _, _, names in os.walk(os.path.join(layer.work, ".git/lfs/objects")) for n in names]) == 1, "beside one with holes")

    def kinds():
        layer = layer_of("kinds", WORK, fill=lambda work: fill(work, init="init -q -b main --object-format=sha256"))
        layer.pinfold("apply", "--all")
        check(len(git(layer, "rev-parse", "feature/x").strip()) == 64, "SHA-256")
        sound(layer, "SHA-256")
        for text in ("", "y"):  # packs shorter than two hashes
            layer = layer_of("kinds", f"printf '{text}' >small; git add small", fill=lambda work: fill(work, init="init -q -b main --object-format=sha256"))
            layer.pinfold("apply", "--all")
            check("small" in git(layer, "diff", "--cached", "--name-only"), "a small file in the index")
            sound(layer, "SHA-256")
        layer = layer_of("kinds", WORK + "; git gc -q --prune=now; git pack-refs --all; git submodule -q add ./. sub 2>/dev/null || :; git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),link; git add -N f6")
        layer.pinfold("apply", "--all", ok=(0, 1))
        check({"refs/heads/feature/x", "refs/stash"} <= set(refs(layer)) and "160000" in git(layer, "ls-files", "-s", "link"), refs(layer))
        sound(layer, "packed by the box")

        def linked(work):
            os.makedirs(work + ".main")
            fill(work + ".main")
            subprocess.run(["git", "worktree", "add", "-q", "-f", work, "old"], cwd=work + ".main", check=True, env=dict(os.environ, **GIT))
        layer = layer_of("kinds", "echo x >>f1; echo y >.git", fill=linked)
        check("linked work tree" in layer.pinfold("diff")[1], layer.pinfold("diff")[1])
        check(layer.pinfold("apply", "f1")[0] == 0, "a file of a linked work tree")

    def reftable():
        """Of a repository with reftables nothing lands, files do; nor of one whose refs the box has put into one, by which they are deleted as files."""
        migrated = """git config core.repositoryformatversion 1; git config extensions.refstorage reftable; mkdir .git/reftable; echo 0x000000000001-0x000000000002-fec92d3d.ref >.git/reftable/tables.list
echo REFT >.git/reftable/0x000000000001-0x000000000002-fec92d3d.ref; rm -rf .git/refs/heads .git/packed-refs .git/logs; echo this repository uses the reftable format >.git/refs/heads; echo 'ref: refs/heads/.invalid' >.git/HEAD"""

        def with_tables(work):
            real = subprocess.run(["git", "init", "-q", "-b", "main", "--ref-format=reftable"], cwd=work, env=dict(os.environ, HOME=work, **GIT), stderr=subprocess.DEVNULL).returncode == 0
            # With a git that knows none of it: by hand, as git 2.47 leaves it. A second init by git 2.55 forgets what the refs are.
            fill(work, files=3, init="status -s" if real else "init -q -b main")
            if not real:
                subprocess.run(["sh", "-ec", migrated], cwd=work, check=True, env=dict(os.environ, HOME=work, **GIT))
        for fill_it, script, said in ((with_tables, "printf x >.git/reftable/0x000000000003-0x000000000003-fec92d3d.ref; echo y >>f1; echo z >new", "its refs are not files (reftable)"),
                                      (fill, migrated + "; echo y >>f1; echo z >new", "in the layer its refs are not files any more")):
            layer = layer_of("reftable", script, fill=fill_it)
            before, all_files = state(layer), files(layer)
            check(said in layer.pinfold("diff")[1], layer.pinfold("diff")[1])
            code, out, err = layer.pinfold("apply", "--all", ok=None)
            check(code == 1 and f".git: {said}" in err and "git format-patch in a box with this layer" in err and "applied f1\napplied new\n" in out, code, out, err)
            check(".git/reftable" in layer.pinfold("apply", ".git/reftable/tables.list", ok=(1,))[2] and said in layer.pinfold("apply", ".git", ok=(1,))[2], "by name")
            code, out, err = layer.pinfold("apply", "--branch", "x", "--all", ok=None)
            check(code == 3 and said in err, "--branch", code, out, err)
            c.same_trees(before, state(layer), "the repository")
            layer.pinfold("undo")
            c.same_trees(all_files, files(layer), "undo")

    def branch():
        """A commit of the changes on a new branch; nothing else of the workspace changes."""
        def more(work):
            fill(work)
            with open(os.path.join(work, ".gitignore"), "w") as file:
                file.write("*.o\n/out/\n")
            with open(os.path.join(work, ".gitattributes"), "w") as file:
                file.write("*.x filter=evil\n*.crlf text eol=crlf\n")
            os.makedirs(os.path.join(work, "dir"))
            with open(os.path.join(work, "dir", "in"), "w") as file:
                file.write("in\n")
            env = dict(os.environ, HOME=work, **GIT)
            for words in ("add .", "commit -qm ignore", "config filter.evil.clean false", "config core.hooksPath .hooks", "config user.name Some\\ One", "config user.email some@one"):
                subprocess.run(["sh", "-c", "git " + words], cwd=work, env=env, check=True)
        layer = layer_of("branch", "echo y >>f1; rm f2; echo z >new; echo o >a.o; mkdir out; echo o >out/x; ln -s f3 link; chmod +x f4; printf 'a\\r\\nb\\n' >t.crlf; echo e >e.x; rm -r dir; echo file >dir; echo q >'q\"u o'; echo w >.envrc; "
                         "mkdir -p .hooks; printf '#!/bin/sh\\ntouch /tmp/pwned\\n' >.hooks/post-commit; chmod +x .hooks/post-commit; mkfifo pipe; git add new", fill=more)
        before, tree, index = refs(layer), kit.tree(layer.work), git(layer, "ls-files", "-s")
        code, out, err = layer.pinfold("apply", "--branch", "agent/try", "--all", ok=None)
        check(code == 1 and "a.o: git ignores it" in err and "out/x: git ignores it" in err and ".envrc: it has a guarded name" in err and "pipe: it is neither" in err and ".hooks/post-commit: it has a guarded name" in err, code, err)
        check("committed f1\n" in out and "branch agent/try: new" in out and "committed a.o" not in out, out)
        check({r: h for r, h in refs(layer).items() if r != "refs/heads/agent/try"} == before, "other refs")
        now = kit.tree(layer.work)
        check({p: w for p, w in now.items() if not p.startswith(".git/")} == {p: w for p, w in tree.items() if not p.startswith(".git/")} and git(layer, "ls-files", "-s") == index, "the work tree or the index")
        changed = set(git(layer, "diff", "--name-status", "--no-renames", "main", "agent/try").split("\n")[:-1])
        check(changed == {"D\tdir/in", "A\tdir", "A\te.x", "M\tf1", "D\tf2", "M\tf4", "A\tlink", "A\tnew", 'A\t"q\\"u o"', "A\tt.crlf"}, changed)
        check(git(layer, "show", "agent/try:t.crlf") == "a\r\nb\n" and git(layer, "log", "-1", "--format=%an %ae %P", "agent/try") == f"Some One some@one {git(layer, 'rev-parse', 'main')}", git(layer, "log", "-1", "agent/try"))
        sound(layer)
        check("a branch of this name already exists" in layer.pinfold("apply", "--branch", "agent/try", "--all", ok=(2,))[2], "twice")
        for name in ("-x", "a..b", "x.lock", "a b"):
            check(layer.pinfold("apply", f"--branch={name}", "--all", ok=(2,))[0] == 2, name)
        layer.pinfold("apply", "--branch", "named", "a.o", "f1")
        check(git(layer, "diff", "--name-only", "main", "named") == "a.o\nf1\n", "named")
        layer.pinfold("undo")
        layer.pinfold("undo")
        check(refs(layer) == before, "undo", refs(layer))
        check(not os.path.exists("/tmp/pwned"), "a hook ran")
        check(layer.pinfold("apply", "--branch", "x", "--merge", "--all", ok=(2,))[0] == 2 and layer.pinfold("apply", "--branch", "x", "--to", "/tmp", "--all", ok=(2,))[0] == 2, "usage")

    def merge():
        """Where what the box began with is known, both sides' lines land; all else is a conflict, and nothing of the host's is lost."""
        def more(work):
            for name in ("a", "b", "c", "dirty", "early"):
                with open(os.path.join(work, name), "w") as file:
                    file.write("".join(f"line {i}\n" for i in range(20)))
            fill(work, files=2)
            with open(os.path.join(work, "dirty"), "a") as file:
                file.write("not committed\n")

        def edit(layer, name, old, new):
            path = os.path.join(layer.work, name)
            with open(path) as file:
                text = file.read()
            with open(path + ".new", "w") as file:
                file.write(text.replace(old, new))
            os.rename(path + ".new", path)

        def content(layer, name):
            with open(os.path.join(layer.work, name)) as file:
                return file.read()
        script = "for i in a b c dirty; do sed -i s/line\\ 3$/box/ $i; done"
        layer = layer_of("merge", script, fill=more)
        for name, line in {"a": "line 17\n", "b": "line 3\n", "dirty": "line 17\n"}.items():
            edit(layer, name, line, "host\n")
        code, _, err = layer.pinfold("apply", "--all", ok=None)
        check(code == 1 and all(f"{name}: the host changed it" in err for name in ("a", "b", "dirty")) and "box" in content(layer, "c"), "never in silence", err)
        layer.pinfold("undo")
        mine = {name: content(layer, name) for name in ("a", "b", "dirty")}
        code, out, err = layer.pinfold("apply", "--merge", "--all", ok=None)
        check(code == 1 and "merged a\n" in out and "b: the host and the box changed the same lines" in err and "dirty: the host changed it" in err, code, out, err)
        check(content(layer, "a") == mine["a"].replace("line 3\n", "box\n") and content(layer, "b") == mine["b"] and content(layer, "dirty") == mine["dirty"], "contents")
        check("a: the host changed it" in layer.pinfold("apply", "a", ok=(1,))[2] and "host" in content(layer, "a"), "what was merged is not overwritten later")
        layer.pinfold("undo")
        check(content(layer, "a") == mine["a"], "undo")
        check("a: the host changed it" in layer.pinfold("apply", "a", ok=(1,))[2] and content(layer, "a") == mine["a"], "nor after undo")
        out = layer.pinfold("apply", "--merge", "--conflicts", "mark", "a", "b")[1]
        check("merged b, with conflicts" in out and content(layer, "b").count("<<<<<<< workspace\nhost\n=======\nbox\n>>>>>>> layer\n") == 1, out, content(layer, "b"))
        marked = content(layer, "b")
        code, out, err = layer.pinfold("apply", "--merge", "--conflicts", "mark", "b", ok=None)
        check(code == 1 and "b: it was merged already" in err and content(layer, "b") == marked, "twice", code, out, err, content(layer, "b"))
        check(layer.pinfold("apply", "--conflicts", "mark", "--all", ok=(2,))[0] == 2 and layer.pinfold("apply", "--merge", "--conflicts", "x", "--all", ok=(2,))[0] == 2, "usage")
        layer = layer_of("merge", script, fill=more)
        check("merged" not in layer.pinfold("apply", "--merge", "a")[1], "what the host has not changed needs no merge")
        run(layer, "sed -i 's/line 5$/again/' a")
        edit(layer, "a", "line 17\n", "host\n")
        check("a: the host changed it" in layer.pinfold("apply", "--merge", "a", ok=(1,))[2], "what was applied once has another base")

    def merge_meanwhile():
        """What the host changes while the box still runs is merged, too, if the box had changed it before that; if not, the box may have seen either."""
        def more(work):
            for name in ("first", "second"):
                with open(os.path.join(work, name), "w") as file:
                    file.write("".join(f"line {i}\n" for i in range(20)))
            fill(work, files=2)

        def host(layer, name):
            path = os.path.join(layer.work, name)
            with open(path) as file:
                text = file.read()
            with open(path + ".new", "w") as file:
                file.write(text.replace("line 17\n", "host\n"))
            os.rename(path + ".new", path)
        layer = kit.Layer(kit.fresh(os.path.join(c.SCRATCH, "merge-meanwhile")))
        layer.work = os.path.realpath(layer.work)
        more(layer.work)
        time.sleep(0.02)
        script = "sed -i 's/line 3$/box/' first; echo edited; read go; sed -i 's/line 3$/box/' second"
        box = subprocess.Popen([kit.PINFOLD, "run", "-q", "--cow=it", "--", "sh", "-ec", script], cwd=layer.work, env=layer.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        check(box.stdout.readline() == b"edited\n", "the box")
        wait(layer)
        host(layer, "first")
        host(layer, "second")
        box.communicate(b"go\n")
        check(box.returncode == 0, "the box", box.returncode)
        merged(layer)
        layer.pinfold("discard", "it")
        subprocess.run(["git", "checkout", "-q", "."], cwd=layer.work, env=dict(layer.env, **GIT), check=True)
        time.sleep(0.02)
        layer.pinfold("session", "start", "--no-layers", "--cow", "s")
        try:
            layer.pinfold("exec", "s", "--", "sed", "-i", "s/line 3$/box/", "first")
            wait(layer)
            host(layer, "first")
            host(layer, "second")
            layer.pinfold("exec", "s", "--", "sed", "-i", "s/line 3$/box/", "second")
            merged(layer)
            check(layer.pinfold("exec", "s", "--", "cat", "first")[1].count("box") == 1, "the session's own stays")
        finally:
            layer.pinfold("session", "rm", "s", ok=None)

    def wait(layer):
        layer.dir = glob.glob(os.path.join(layer.state, "pinfold", "layers", "*"))[0]
        notes, until = os.path.join(layer.dir, "base-notes"), time.monotonic() + 60
        while not os.path.exists(notes) and time.monotonic() < until:
            time.sleep(0.02)
        with open(notes) as file:
            text = file.read()
        check(text.endswith(" first\n") and text.count("\n") == 1, "noted while the box lives", text)

    def merged(layer):
        code, out, err = layer.pinfold("apply", "--merge", "--all", ok=None)
        check(code == 1 and "merged first\n" in out and "second: the host changed it" in err, code, out, err)
        with open(os.path.join(layer.work, "first")) as file:
            text = file.read().split("\n")
        check(text[3] == "box" and text[17] == "host", "both are in it", text)

    def inside():
        """Repositories inside of the workspace land as units of their own; what git obeys in them never does, nor one that the box has made or replaced."""
        def more(work):
            fill(work, files=3)
            for name in ("lib/sub", "other", "gone", ".idea/in"):
                os.makedirs(os.path.join(work, name))
                fill(os.path.join(work, name), files=8)
            os.makedirs(os.path.join(work, "table"))
            fill(os.path.join(work, "table"), files=2)
            with open(os.path.join(work, "table/.git/config"), "a") as file:
                file.write("[extensions]\n\trefStorage = reftable\n")
        script = f"""(cd lib/sub; {WORK}; git config core.fsmonitor evil; git for-each-ref --format='%(objectname) %(refname)'; git symbolic-ref HEAD; git diff --cached --name-only) >seen
(cd other; git commit -q --allow-empty -m box); (cd .idea/in; git commit -q --allow-empty -m box); git init -q --template= new/made; (cd new/made; git commit -q --allow-empty -m made); mv gone aside; cp -r aside gone; (cd gone; git commit -q --allow-empty -m x)
git commit -q --allow-empty -m top; rm -rf aside; mkdir table/.git/reftable; echo x >table/.git/reftable/tables.list; echo y >table/f0"""
        layer = layer_of("inside", script, fill=more)
        sub, other = os.path.join(layer.work, "lib/sub"), os.path.join(layer.work, "other")
        before = {name: state(layer, name) for name in ("lib/sub", "other", "gone", ".")}
        told = json.loads(layer.pinfold("diff", "--json")[1])
        paths = [x["path"] for x in told["changes"]]
        check(not [x["path"] for x in told["changes"] if x["waits"]], "what no word helps waits for none", told["changes"])
        inner = [p for p in paths if re.search("/objects/[0-9a-f]{2}|/refs/", p)]
        check(not inner and "lib/sub/.git/config" in paths, "told in words", inner, paths)
        words = "\n".join(told["git"])
        check(all(w in words for w in ("lib/sub: branch feature/x: new", "lib/sub: the stash changed", "other: branch main: ", "new/made: the box made the repository", "new/made: branch m", "gone: the repository is not applied: the box removed or")), words)
        git(layer, "commit", "-q", "--allow-empty", "-m", "host", cwd=other)
        code, out, err = layer.pinfold("apply", "--all", ok=None)
        with open(os.path.join(layer.work, "table/f0")) as file:
            check("table/.git: its refs are not files (reftable)" in err and "git format-patch in a box with this layer" in err and file.read() == "y\n" and not os.path.exists(os.path.join(layer.work, "table/.git/reftable")), "reftables", err)
        check("table/.git: its refs are not files" in layer.pinfold("apply", "table/.git/reftable/tables.list", "table/.git", ok=(1,))[2] and not os.path.exists(os.path.join(layer.work, "table/.git/reftable")), "nor by name")
        check(code == 1 and all(w in err for w in ("gone/.git: the box removed or replaced", "lib/sub/.git/config: git obeys it in a repository inside")), code, err)
        check("other: heads/main: the host moved it after the box began; the box's is refs/pinfold/" in out + err, out, err)
        with open(os.path.join(layer.work, "seen")) as file:
            seen = file.read()
        now = git(layer, "for-each-ref", "--format=%(objectname) %(refname)", cwd=sub) + git(layer, "symbolic-ref", "HEAD", cwd=sub) + git(layer, "diff", "--cached", "--name-only", cwd=sub)
        check(now == seen, "lib/sub is as the box left it", now, seen)
        check(git(layer, "log", "-1", "--format=%s", cwd=other) == "host\n" and "box\n" in git(layer, "log", "--all", "--format=%s", cwd=other), "other keeps the host's")
        check("made" not in err and git(layer, "log", "-1", "--format=%s", cwd=os.path.join(layer.work, "new/made")) == "made\n", "one that the box has made", err)
        check(".idea/in/.git: it lies below a guarded name" in err and git(layer, "log", "-1", "--format=%s", cwd=os.path.join(layer.work, ".idea/in")) == "one\n", "guarded", err)
        for at in (sub, other, layer.work):
            sound(layer, at, cwd=at)
        check(git(layer, "config", "core.fsmonitor", cwd=sub, ok=False) == "" and state(layer, "gone") == before["gone"], "config, and what was replaced")
        check(git(layer, "log", "-1", "--format=%s") == "top\n", "the one at the top, too")
        layer.pinfold("undo")
        for name in ("lib/sub", "."):
            c.same_trees(before[name], state(layer, name), f"undo of {name}")
        check(not os.path.exists(os.path.join(layer.work, "new")), "undo of one that the box has made")
        layer.pinfold("apply", "new/made/.git")
        check(git(layer, "log", "-1", "--format=%s", cwd=os.path.join(layer.work, "new/made")) == "made\n", "it alone, in a new directory")
        code, out, err = layer.pinfold("apply", "lib/sub/.git", ok=(1,))  # its config
        check(git(layer, "symbolic-ref", "HEAD", cwd=sub) == "refs/heads/main\n" and "feature/x" in git(layer, "branch", cwd=sub) and git(layer, "log", "-1", "--format=%s") == "one\n", "one of them alone", out, err)
        check("lib/sub/.git/index: " not in err, "its index", err)
        layer.pinfold("apply", ".idea/in/.git")
        check(git(layer, "log", "-1", "--format=%s", cwd=os.path.join(layer.work, ".idea/in")) == "box\n", "named itself")
        os.rename(other, other + ".old")
        os.rename(os.path.join(layer.work, "gone"), other)
        before = state(layer, "other")
        check("other/.git: the host changed the directories above it" in layer.pinfold("apply", "other/.git", ok=(1,))[2] and state(layer, "other") == before, "another repository stands there")

    def with_modules(work):
        """Submodules: lib/mod, whose name has a slash, and deep in it; `more` is not checked out."""
        def run_git(*words, cwd=None):
            subprocess.run(["git", "-c", "protocol.file.allow=always", *words], cwd=cwd or work, check=True, env=dict(os.environ, HOME=work, **GIT), stderr=subprocess.DEVNULL)
        master, whole = os.path.join(c.SCRATCH, "with-modules"), work
        if os.path.isdir(master):
            kit.copy_tree(master + "/work/.", whole)
            return
        work = os.path.join(master, "work")
        os.makedirs(work)
        for name, of in (("deep", None), ("mod", "deep"), ("more", None)):
            at = os.path.join(master, "up", name)
            os.makedirs(at)
            fill(at, files=8 if of else 3)
            if of:
                run_git("submodule", "--quiet", "add", f"{master}/up/{of}", "deep", cwd=at)
                run_git("commit", "-qm", "with deep", cwd=at)
        fill(work, files=2)
        run_git("submodule", "--quiet", "add", f"{master}/up/mod", "lib/mod")
        run_git("submodule", "--quiet", "add", f"{master}/up/more", "more")
        run_git("submodule", "--quiet", "update", "--init", "--recursive")
        run_git("commit", "-qam", "modules")
        run_git("submodule", "--quiet", "deinit", "-f", "more")
        kit.remove(os.path.join(work, ".git/modules/more"))
        run_git("submodule", "--quiet", "init", "more")
        run_git("branch", "old", cwd=os.path.join(work, "lib/mod"))
        run_git("branch", "side", cwd=os.path.join(work, "lib/mod"))
        run_git("checkout", "-qB", "main", cwd=os.path.join(work, "lib/mod/deep"))
        kit.copy_tree(work + "/.", whole)

    IN_MODULES = f"""(cd lib/mod; {WORK}); (cd lib/mod/deep; echo d >>f1; git commit -qam deeper; echo s >>f2; git add f2)
git add lib/mod; git commit -qm top"""

    def modules():
        """The repositories of submodules, below .git/modules, land as units of their own; what git obeys in them is named one by one."""
        script = IN_MODULES + """; git -C lib/mod config core.fsmonitor evil; echo evil >.git/modules/lib/mod/hooks/post-checkout; git -C lib/mod update-ref refs/x/y HEAD
for at in lib/mod lib/mod/deep .; do git -C $at for-each-ref --format='%(objectname) %(refname)'; git -C $at symbolic-ref HEAD; git -C $at diff --cached --name-only; done | grep -v refs/x/y >seen"""
        layer = layer_of("modules", script, fill=with_modules)
        mod, deep = os.path.join(layer.work, "lib/mod"), os.path.join(layer.work, "lib/mod/deep")
        own = {mod: ".git/modules/lib/mod", deep: ".git/modules/lib/mod/modules/deep", layer.work: ".git"}

        def now():
            return {at: {p: w for p, w in kit.tree(os.path.join(layer.work, git_dir), times=False).items() if not re.search(r"(^|/)(objects|modules)(/|$)|COMMIT_EDITMSG|ORIG_HEAD", p)} for at, git_dir in own.items()}
        before = now()
        told = json.loads(layer.pinfold("diff", "--json")[1])
        words, paths = "\n".join(told["git"]), [x["path"] for x in told["changes"]]
        check(all(w in words for w in (".git/modules/lib/mod: branch feature/x: new", ".git/modules/lib/mod: the stash changed", "modules/deep: branch main: ", "branch main: ")), words)
        check(sorted(p for p in paths if p.startswith(".git")) == [".git/modules/lib/mod/config", ".git/modules/lib/mod/hooks/post-checkout"], "told in words", paths)
        code, out, err = layer.pinfold("apply", "--all", ok=None)
        check(code == 1 and all(w in err for w in (".git/modules/lib/mod/config: git obeys it; to apply it, name this path itself", "hooks/post-checkout: git obeys it", "lib/mod/refs/x/y: a ref of this name")), code, err)
        with open(os.path.join(layer.work, "seen")) as file:
            seen = file.read()
        found = "".join(git(layer, *words, cwd=at) for at in own for words in (("for-each-ref", "--format=%(objectname) %(refname)"), ("symbolic-ref", "HEAD"), ("diff", "--cached", "--name-only")))
        check(found == seen and git(layer, "config", "core.fsmonitor", cwd=mod, ok=False) == "", "as the box left them", found, seen)
        check(git(layer, "submodule", "status").split("\n")[0].startswith(" ") and len(git(layer, "stash", "list", cwd=mod).splitlines()) == 2, git(layer, "submodule", "status"))
        for at in own:
            sound(layer, at, cwd=at)
        check(not os.path.exists(os.path.join(layer.dir, "git")) and "branch" not in layer.pinfold("diff")[1], "all has landed")
        layer.pinfold("undo")  # but for an index that git wrote when it looked
        kept = now()
        for at in own:
            c.same_trees({p: w for p, w in before[at].items() if p != "index"}, {p: w for p, w in kept[at].items() if p != "index"}, f"undo: {at}")
        check(git(layer, "status", "--porcelain", cwd=deep) == "", "the index of one that git did not look at", git(layer, "status", cwd=deep))
        layer.pinfold("apply", ".git/modules/lib/mod/modules/deep", ok=(0, 1))
        check(git(layer, "log", "-1", "--format=%s", cwd=deep) == "deeper\n" and now()[mod] == kept[mod] and now()[layer.work] == kept[layer.work], "one of them alone")
        check("lands with the whole repository of the submodule" in layer.pinfold("apply", ".git/modules/lib/mod/refs/heads/main", ok=(1,))[2], "a part of one")
        layer.pinfold("apply", ".git/modules/lib/mod/hooks/post-checkout")
        check(os.path.exists(os.path.join(layer.work, ".git/modules/lib/mod/hooks/post-checkout")) and now()[mod]["HEAD"] == before[mod]["HEAD"], "named itself")

    def modules_host():
        """What the host moved in a submodule stays, and the box's is beside it; a repository that stands in its place gets nothing."""
        layer = layer_of("modules", IN_MODULES + "; rm lib/mod/.git", fill=with_modules)
        mod, own = os.path.join(layer.work, "lib/mod"), os.path.join(layer.work, ".git/modules/lib/mod")
        git(layer, "commit", "-q", "--allow-empty", "-m", "host", cwd=mod)
        git(layer, "status")  # which writes the index at the top, so that .git and what holds it change
        open(os.path.join(layer.work, "untold"), "w").close()
        host = git(layer, "rev-parse", "main", cwd=mod)
        code, out, err = layer.pinfold("apply", ".git", ok=None)
        check(code == 1 and ".git/modules/lib/mod: heads/main: the host moved it after the box began; the box's is refs/pinfold/" in out + err, code, out, err)
        beside = git(layer, "for-each-ref", "--format=%(contents:subject)", "refs/pinfold", cwd=mod)
        check(git(layer, "rev-parse", "main", cwd=mod) == host and beside == "two\n" and "feature/x" in git(layer, "branch", cwd=mod), beside)
        sound(layer, "host", cwd=mod)
        check("lib/mod/.git: it is a file that says where" in layer.pinfold("apply", "lib/mod/.git", ok=(1,))[2] and os.path.exists(mod + "/.git"), "its file stays")
        layer = layer_of("modules", IN_MODULES, fill=with_modules)
        os.rename(own, own + ".old")
        kit.copy_tree(own + ".old", own)
        before = kit.tree(own, times=False)
        code, out, err = layer.pinfold("apply", "--all", ok=None)
        check(code == 1 and ".git/modules/lib/mod: the host changed the directories above it" in err, code, err)
        c.same_trees(before, kit.tree(own, times=False), "another repository stands there")

    def modules_born():
        """A submodule's repository that the box has made lands with the file that names it, if both say the same, and undo takes both away."""
        update = "git -c protocol.file.allow=always submodule --quiet update --init --recursive"
        script = f"""{update} more; git -C more checkout -q main; git -C more commit -q --allow-empty -m box; echo evil >.git/modules/more/hooks/post-checkout
git clone -q --no-local . copy; cd copy; git config --file .gitmodules --get-regexp url >/dev/null; {update}; git -C lib/mod/deep commit -q --allow-empty -m inner; git -C more config core.fsmonitor evil; cd ..
mkdir wrong out; echo 'gitdir: ../.git/modules/more' >wrong/.git; echo 'gitdir: ../../x' >out/.git"""
        layer = layer_of("modules", script, fill=with_modules)
        before, own = files(layer), os.path.join(layer.work, ".git/modules/more")
        told = json.loads(layer.pinfold("diff", "--json")[1])
        check(".git/modules/more: the box made the repository" in told["git"] and not [x["path"] for x in told["changes"] if "/modules/" in x["path"]], told["git"], [x["path"] for x in told["changes"]])
        code, out, err = layer.pinfold("apply", "--all", ok=None)
        check(code == 1 and "wrong/.git: the repository that it names belongs to another directory" in err and "out/.git: it names something else" in err, code, err)
        check("copy/.git/modules/more: its configuration is not one that a box may write" in err and "core.fsmonitor" in err, err)
        check("copy/more/.git: the repository that it names is not in the workspace" in err and os.path.exists(os.path.join(layer.work, "copy/more/f1")) and not os.path.exists(os.path.join(layer.work, "copy/.git/modules/more/HEAD")), "nothing of it", err)
        check(git(layer, "log", "-1", "--format=%s", cwd=os.path.join(layer.work, "more")) == "box\n" and os.listdir(os.path.join(own, "hooks")) == [], "it is at its place", err)
        copy = os.path.join(layer.work, "copy")
        check(git(layer, "log", "-1", "--format=%s", cwd=os.path.join(copy, "lib/mod/deep")) == "inner\n" and git(layer, "submodule", "status", "--recursive", "lib", cwd=copy).count("\n") == 2, "those of a clone", err)
        for at in ("more", "copy", "copy/lib/mod", "copy/lib/mod/deep"):
            sound(layer, at, cwd=os.path.join(layer.work, at))
        out = layer.pinfold("undo")[1]
        c.same_trees({p: w for p, w in before.items() if p != ".git/index"}, {p: w for p, w in files(layer).items() if p != ".git/index"}, "undo")
        check(not os.path.exists(own) and not os.path.exists(copy), "undo", os.listdir(layer.work))
        layer.pinfold("apply", ".git/modules/more", "more")
        check(git(layer, "log", "-1", "--format=%s", cwd=os.path.join(layer.work, "more")) == "box\n" and not os.path.exists(copy), "it alone")

    def large():
        """Files of git's that are all hole take no memory, and what is refused is named."""
        script = "".join(f"truncate -s 1073741820 {name}; " for name in (".git/packed-refs", ".git/refs/heads/x", ".git/refs/heads/y", ".git/HEAD")) + "for i in 1 2 3 4 5 6 7 8; do truncate -s 60M .git/logs/refs/heads/$i; done"
        for lasts, why in ((script, ".git: its packed-refs cannot be read"), (script.replace(".git/packed-refs", "f0"), "heads/y: it is not a valid ref in the layer")):
            layer = layer_of("large", lasts)
            for words in (["diff"], ["apply", ".git"]):
                with open(os.path.join(layer.top, "said"), "w+b") as said:
                    done = subprocess.Popen([kit.PINFOLD, *words], cwd=layer.work, env=layer.env, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
                    status, used = os.wait4(done.pid, 0)[1:]
                    said.seek(0)
                    text = said.read().decode()
                check(used.ru_maxrss < 300 << 10, words, "takes", used.ru_maxrss, "KiB", text)
                check(words == ["diff"] and os.WEXITSTATUS(status) == 0 or os.WEXITSTATUS(status) == 1 and why in text, words, status, text)

    def modules_judged():
        """The file .git that lands is the one that was judged, whatever a box that lives writes into it meanwhile."""
        def without(work):
            with_modules(work)
            os.unlink(os.path.join(work, "lib/mod/.git"))
        master = layer_of("modules-master", "echo 'gitdir: ../../.git/modules/lib/mod' >lib/mod/.git", fill=without)
        for when in (3,):
            layer = c.again(master, "modules-judged")
            file, = glob.glob(os.path.join(layer.state, "pinfold/layers/*/upper*/lib/mod/.git"))
            swap = c.swapped_by(file, ".git", "evil")
            layer.pinfold("apply", "--all", ok=None, wrap=(c.STRIKE, "do", str(when), swap))
            check("evil" in open(file).read(), "not swapped before call", when)
            said = open(os.path.join(layer.work, "lib/mod/.git")).read()
            check(said == "gitdir: ../../.git/modules/lib/mod\n", "before call", when, said)

    def born():
        """A repository that the box has made lands whole, but for what git obeys; undo takes it away, unless the host has worked in it."""
        script = """git init -q -b main
echo '*.o' >>.git/info/exclude; echo x >f; git add f; git commit -qm one; git tag t; git checkout -q -b side; git commit -q --allow-empty -m two; git checkout -q main; echo s >g; git add g; echo o >h.o
git config remote.origin.url https://example.com/x; git config core.fsmonitor 'touch /tmp/evil'; echo evil >.git/hooks/post-checkout; chmod +x .git/hooks/post-checkout"""
        layer = layer_of("born", script, fill=lambda work: None)
        told, place = layer.pinfold("diff")[1], os.path.join(layer.work, ".git")
        check(all(w in told for w in ("the box made the repository", "branch main: new", "branch side: new", "2 new commits", "tag t: new", "1 path is staged")) and ".git/" not in told, told)
        check("apply the .git above it" in layer.pinfold("apply", ".git/hooks/post-checkout", ok=(1,))[2] and not os.path.exists(place), "a hook by name")
        _, out, err = layer.pinfold("apply", "--all")
        check("core.fsmonitor" in out + err and ".git/refs/heads/main" in out and "hooks" not in out, out, err)
        check(os.listdir(place + "/hooks") == [] and "evil" not in open(place + "/config").read() and git(layer, "remote") == "", "what git obeys", os.listdir(place + "/hooks"))
        check(sorted(git(layer, "log", "--all", "--format=%s").split()) == ["one", "two"] and git(layer, "status", "--porcelain") == "A  g\n" and git(layer, "reflog", "--format=%gs", "side"), git(layer, "status", "--porcelain"))
        sound(layer)
        again = layer.pinfold("apply", "--all", ok=(1,))
        check(re.findall(r"\.git/\S+", again[2]) == [".git/config:", ".git/hooks/post-checkout:"] and not os.listdir(place + "/hooks"), "what waits now", again)
        layer.pinfold("undo")
        check(os.listdir(layer.work) == [], "undone", os.listdir(layer.work))
        layer.pinfold("apply", "--all")
        git(layer, "commit", "-qm", "the host's")
        before = kit.tree(place, times=False)
        code, _, err = layer.pinfold("undo", ok=None)
        check(code == 1 and "the host" in err and git(layer, "log", "-1", "--format=%s") == "the host's\n", code, err)
        c.same_trees(before, kit.tree(place, times=False), "an undo that is refused")
        layer = layer_of("born", "git init -q -b main --object-format=sha256; git config user.name me; echo x >f; git add f; git commit -qm one", fill=lambda work: None)
        layer.pinfold("apply", ".git")
        check(len(git(layer, "rev-parse", "HEAD").strip()) == 64 and git(layer, "config", "user.name") == "me\n" and not os.path.exists(os.path.join(layer.work, "f")), "SHA-256, .git alone")
        layer = layer_of("born", "git clone -q --no-local --depth 1 src shallow 2>/dev/null; git clone -q --shared src shared; git init -q none; echo 'ref: refs/heads/../x' >none/.git/HEAD", fill=lambda work: (os.makedirs(work + "/src"), fill(work + "/src", files=9)))
        code, _, err = layer.pinfold("apply", "--all", ok=None)
        check(code == 1 and all(w in err for w in ("shallow/.git: it is a shallow clone", "shared/.git: it borrows objects from another", "none/.git: ")), err)
        check(not any(os.path.exists(os.path.join(layer.work, name, ".git")) for name in ("shallow", "shared", "none")), "nothing of those")

    # ---- hostile layers ----

    def loose(kind, content):
        whole = f"{kind} {len(content)}".encode() + b"\0" + content
        return hashlib.sha1(whole).hexdigest(), zlib.compress(whole)

    def plant(layer, objects, tip, ref="refs/heads/evil", **files):
        """The box writes these objects and a ref, and other files below .git."""
        stage = os.path.join(layer.work, "planted")
        os.makedirs(stage)
        for name, packed in objects:
            os.makedirs(os.path.join(stage, "objects", name[:2]), exist_ok=True)
            with open(os.path.join(stage, "objects", name[:2], name[2:]), "wb") as file:
                file.write(packed)
        for name, content in {ref: (tip + "\n").encode(), **files}.items():
            os.makedirs(os.path.dirname(os.path.join(stage, name)), exist_ok=True)
            with open(os.path.join(stage, name), "wb") as file:
                file.write(content)
        run(layer, "cp -r planted/. .git/")

    def attack(name, objects, tip, said, lands=False, **more):
        layer = kit.Layer(kit.fresh(os.path.join(c.SCRATCH, "attack")))
        layer.work = os.path.realpath(layer.work)
        if not os.path.isdir(victim := os.path.join(c.SCRATCH, "victim")):  # made once: git takes as long for it as a box to start
            os.makedirs(victim)
            fill(victim, files=3)
        kit.copy_tree(victim + "/.", layer.work)
        before, had = refs(layer), kit.tree(os.path.join(layer.work, ".git"), times=False)
        plant(layer, objects(layer) if callable(objects) else objects, tip(layer) if callable(tip) else tip, **more)
        layer.pinfold("diff")
        code, out, err = layer.pinfold("apply", ".git", ok=None)
        check(code in (0, 1) and (said in err), name, code, out, err)
        if not lands:
            check(refs(layer) == before, name, "a ref landed", refs(layer), err)
            now = kit.tree(os.path.join(layer.work, ".git"), times=False)
            files = [{p: w[:3] for p, w in t.items() if not stat.S_ISDIR(w[0])} for t in (had, now)]
            check(files[0] == files[1], name, "something landed", [p for p in files[1] if files[0].get(p) != files[1][p]])
        sound(layer, name)
        return layer

    def tree_of(*entries):
        return b"".join(f"{mode} ".encode() + name + b"\0" + bytes.fromhex(sha) for mode, name, sha in entries)

    def commit_of(tree, text=""):
        return loose("commit", f"tree {tree}\nauthor n <a@b> 1700000000 +0000\ncommitter n <a@b> 1700000000 +0000\n{text}\nm\n".encode())

    def hostile_objects():
        blob = loose("blob", b"content\n")
        good_tree = loose("tree", tree_of(("100644", b"f", blob[0])))
        good = commit_of(good_tree[0])
        no = "git does not accept what the layer has in .git"
        attack("sound", [blob, good_tree, good], good[0], "", lands=True)
        attack("wrong-hash", [(blob[0], loose("blob", b"others!\n")[1]), good_tree, good], good[0], no)
        attack("wrong-hash-commit", [blob, good_tree, ("ab" * 20, good[1])], "ab" * 20, "its object is in neither")
        attack("missing-blob", [good_tree, good], good[0], no)
        attack("missing-tip", [], "cd" * 20, "its object is in neither")
        attack("wrong-type", [blob], blob[0], "it does not name a commit")
        attack("not-zlib", [(good[0], b"garbage")], good[0], "")
        for name, entries in {"dot-git": [("100644", b".git", blob[0])], "dot-dot": [("100644", b"..", blob[0])], "dot": [("100644", b".", blob[0])], "slash": [("100644", b"a/b", blob[0])],
                              "hfs": [("100644", b".g\xe2\x80\x8cit", blob[0])], "ntfs": [("100644", b"GIT~1", blob[0])], "twice": [("100644", b"f", blob[0]), ("100644", b"f", blob[0])],
                              "modules-link": [("120000", b".gitmodules", blob[0])]}.items():
            tree = loose("tree", tree_of(*entries))
            commit = commit_of(tree[0])
            attack(name, [blob, tree, commit], commit[0], no)
        modules = loose("blob", b'[submodule "x"]\n\tpath = x\n\turl = --upload-pack=touch\n')
        tree = loose("tree", tree_of(("100644", b".gitmodules", modules[0])))
        commit = commit_of(tree[0])
        attack("modules-url", [modules, tree, commit], commit[0], no)
        # Deltas that ask for more than there is.
        bomb = b"PACK" + struct.pack(">II", 2, 1) + bytes([0xff] + [0xff] * 8 + [0x7f]) + zlib.compress(b"x")
        bomb += hashlib.sha1(bomb).digest()
        attack("size-bomb", [blob, good_tree, good], good[0], no, **{f"objects/pack/pack-{'1' * 40}.pack": bomb})
        attack("torn-pack", [blob, good_tree, good], good[0], no, **{f"objects/pack/pack-{'1' * 40}.pack": bomb[:30]})

    def other_store(layer):
        """A repository that the box may not read, whose commit the layer names."""
        secret = os.path.join(layer.top, "secret")
        os.makedirs(secret, exist_ok=True)
        if not os.path.exists(os.path.join(secret, ".git")):
            fill(secret, files=2)
            git(layer, "commit", "-q", "--allow-empty", "-m", "secret", cwd=secret)
        return git(layer, "rev-parse", "HEAD", cwd=secret).strip()

    def hostile_paths():
        blob = loose("blob", b"content\n")
        tree = loose("tree", tree_of(("100644", b"f", blob[0])))
        good = commit_of(tree[0])
        objects = [blob, tree, good]
        names = ("refs/heads/-x", "refs/heads/a..b", "refs/heads/a.lock/b", "refs/heads/.hidden", "refs/replace/" + good[0], "refs/heads/with space", "refs/heads/esc\033[2J", "refs/heads/HEAD",
                 "refs/bisect/bad", "refs/heads/-d/x", "refs/tags/@{0}", "refs/top", "refs/heads/a\\b", "refs/heads/x~1")
        layer = attack("names", objects, good[0], "a ref of this name is not taken", ref=names[0], **{name: (good[0] + "\n").encode() for name in names})
        told = layer.pinfold("apply", ".git", ok=(1,))[2]
        check(told.count("a ref of this name is not taken") == len(names) and "\033" not in told, told)
        layer = attack("texts", [], "ref: refs/heads/main", "it is a symbolic ref", **{"refs/heads/out": b"ref: ../../../../etc/passwd\n", "refs/heads/long": b"0" * 5000, "refs/heads/short": b"12\n"})
        check(layer.pinfold("apply", ".git", ok=(1,))[2].count("it is not a valid ref") == 3, "texts")
        secret = os.path.join(c.SCRATCH, "attack", "secret", ".git", "objects")
        attack("alternates", [], other_store, "its object is in neither", **{"objects/info/alternates": (secret + "\n").encode(), "objects/info/http-alternates": b"http://127.0.0.1/\n"})
        parent = loose("commit", f"tree {tree[0]}\nparent {'12' * 20}\nauthor n <a@b> 1700000000 +0000\ncommitter n <a@b> 1700000000 +0000\n\nm\n".encode())
        attack("grafts", [blob, tree, parent], parent[0], "git does not accept", **{"info/grafts": (parent[0] + "\n").encode()})
        attack("shallow", [blob, tree, parent], parent[0], "git does not accept", shallow=(parent[0] + "\n").encode())
        attack("head-option", objects, good[0], ".git/HEAD: a branch of this name", lands=True, HEAD=b"ref: refs/heads/-x\n")
        attack("head-out", objects, good[0], ".git/HEAD: it is not a valid HEAD", lands=True, HEAD=b"ref: /etc/passwd\n")
        layer = attack("log", objects, good[0], ".git/logs/refs/heads/evil: it is not a log", lands=True, **{"logs/refs/heads/evil": f"{'0' * 40} {good[0]} n <a@b> 1700000000 +0000\tx\033[2J\n".encode()})
        check(not os.path.exists(os.path.join(layer.work, ".git/logs/refs/heads/evil")), "a log")
        for script, said in {"ln -s /etc/passwd .git/refs/heads/evil": "it is not a valid ref", "rm .git/HEAD; ln -s refs/heads/old .git/HEAD": ".git/HEAD: it is not a valid HEAD", "rm -r .git": "removed or replaced", "mv .git x; ln -s x .git": "removed or replaced",
                             "rm -r .git/refs; ln -s /tmp .git/refs": "", "mv .git/objects o; ln -s ../o .git/objects; git commit -q --allow-empty -m x": "", "git branch -m main x; git update-ref -d HEAD; git symbolic-ref HEAD refs/heads/x": ""}.items():
            layer = layer_of("attack", script)
            before = refs(layer)
            layer.pinfold("diff")
            code, _, err = layer.pinfold("apply", ".git", ok=None)
            check(code in (0, 1) and said in err, script, code, err)
            check("main" in " ".join(before) and os.path.isdir(os.path.join(layer.work, ".git/refs")) and not os.path.islink(os.path.join(layer.work, ".git/objects")), script)
            sound(layer, script)

    def signed(index):
        return index[:-20] + hashlib.sha1(index[:-20]).digest()

    def hostile_index():
        for name, path in {"git": b".git/hooks/x", "dots": b"../outsidexx", "deep": b"a/.git/hooks", "upper": b".GIT/hooks/x"}.items():
            layer = layer_of("index", "mkdir -p ygit/hooks; echo x >ygit/hooks/x; git add ygit/hooks/x")
            upper = glob.glob(os.path.join(layer.dir, "upper*", ".git", "index"))[0]
            with open(upper, "rb") as file:
                index = file.read()
            check(index.count(b"ygit/hooks/x") == 1, "the index")
            with open(upper, "wb") as file:
                file.write(signed(index.replace(b"ygit/hooks/x", path)))
            before = git(layer, "ls-files", "-s")
            code, _, err = layer.pinfold("apply", ".git", ok=None)
            check(code == 1 and ".git/index: git does not accept it" in err and git(layer, "ls-files", "-s") == before, name, code, err)
        layer = layer_of("index", "git update-index --add --cacheinfo 100644,abababababababababababababababababababab,ghost; echo x >>f1; git commit -q -m two f1 2>/dev/null || :")
        code, _, err = layer.pinfold("apply", ".git", ok=None)
        check(code == 1 and (".git/index: git does not accept it" in err or "git does not accept what" in err) and "ghost" not in git(layer, "ls-files"), err)
        layer = layer_of("index", "echo junk >.git/index")
        check(".git/index: git does not accept it" in layer.pinfold("apply", ".git", ok=(1,))[2] or layer.pinfold("apply", ".git", ok=(0, 1)), "junk")
        check(git(layer, "status", "--short") == "", "the host's index")

    def altered():
        """An object that the workspace has is never taken from the layer, nor written to."""
        layer = kit.Layer(kit.fresh(os.path.join(c.SCRATCH, "altered")))
        layer.work = os.path.realpath(layer.work)
        fill(layer.work, files=3)
        blob = git(layer, "rev-parse", "HEAD:f1").strip()
        path = f".git/objects/{blob[:2]}/{blob[2:]}"
        with open(os.path.join(layer.work, path), "rb") as file:
            was = file.read()
        run(layer, f"chmod 644 {path}; echo evil >{path}; echo y >>f2; git commit -qam two")
        code, _, err = layer.pinfold("apply", "--all", ok=None)
        with open(os.path.join(layer.work, path), "rb") as file:
            check(file.read() == was, "altered", err)
        check(git(layer, "log", "-1", "--format=%s") == "two\n" and git(layer, "show", "HEAD:f1") == "1\n", "the commit", code, err)
        sound(layer)
        # Nobody waits for a writer: neither a reader of ours, nor git in its box.
        for path, said in ((".git/objects/ab/" + "ab" * 19, "neither a file nor a directory; remove it"), (".git/HEAD", "HEAD cannot be read"), (".git/config", "its configuration in the workspace cannot be read")):
            layer = layer_of("altered", "echo y >>f2; git commit -qam two")
            fifo = os.path.join(layer.work, path)
            if os.path.exists(fifo):
                os.unlink(fifo)
            os.makedirs(os.path.dirname(fifo), exist_ok=True)
            os.mkfifo(fifo)
            layer.pinfold("diff")
            code, _, err = layer.pinfold("apply", ".git", ok=None)
            check(code == 1 and said in err, path, code, err)

    # ---- kills ----

    def killed():
        """SIGKILL before each changing call: git finds no ref without its object at any time, and the next call makes it whole."""
        master = layer_of("master", WORK)
        ident = os.path.basename(master.dir)
        kit.remove(os.path.join(master.top, "state", "pinfold", "caches"))  # what overlayfs leaves closed there, only root could copy

        def copy():
            layer = c.again(master, "killed", ident=ident)
            for name in ("base-git",):
                os.unlink(os.path.join(layer.dir, name))
            return layer

        first = copy()
        before = state(first)
        first.pinfold("apply", "--all")
        after = state(first)
        total = int(copy().pinfold("apply", "--all", wrap=(c.STRIKE, "count"))[2].split()[-1])
        check(total > 100, "calls", total)
        step = max(1, total // min(c.KILLS, 6)) if c.KILLS else 1
        for n in range(1, total + 1, step):
            layer = copy()
            code = layer.pinfold("apply", "--all", ok=None, wrap=(c.STRIKE, "kill", str(n)))[0]
            check(code == 99, f"call {n} of {total} was not reached", code)
            sound(layer, f"{n}: killed")
            half = state(layer)
            for path in set(before) | set(after):
                check(half.get(path) in (before.get(path), after.get(path)) or path.startswith("refs/heads/feature"), f"{n}: {path}", half.get(path))
            other = n // step % 2 == 1
            if not other:
                layer.pinfold("apply", "--all")
                c.same_trees({p: w for p, w in after.items() if p != "index"}, {p: w for p, w in state(layer).items() if p != "index"}, f"{n}: then apply")
                check(git(layer, "status", "--short", "-uno") == "M  f5\n M f6\nD  f7\n", f"{n}: index")
            else:
                code, _, err = layer.pinfold("undo", ok=None)
                check(code in (0, 4), f"{n}: then undo", code, err)
                c.same_trees({p: w for p, w in before.items() if not p.startswith("refs/heads/feature")}, {p: w for p, w in state(layer).items() if not p.startswith("refs/heads/feature") and not p.startswith("logs/refs/heads/feature")}, f"{n}: then undo")
            sound(layer, f"{n}: after")
            left = [name for name in os.listdir(layer.dir) if name in ("journal", "git")]
            check(not os.path.exists(os.path.join(layer.work, ".pinfold")) and not left, f"{n}: left behind", left)
        return f"{len(range(1, total + 1, step))} of {total} calls"

    def files(layer):
        """All of the workspace but directories, objects and what git writes in passing; of a branch that apply makes, not at what time."""
        return {p: w[:2] if p.endswith("agent/try") else w for p, w in kit.tree(layer.work, times=False).items() if not stat.S_ISDIR(w[0]) and "/objects/" not in p and not p.endswith("COMMIT_EDITMSG")}

    def killed_at_each(master, words, ready=lambda layer: None, inside="."):
        """SIGKILL before each changing call of an apply with these words: every file old or new, and exact after the next one or undo."""
        ident = os.path.basename(master.dir)
        kit.remove(os.path.join(master.top, "state", "pinfold", "caches"))

        def copy():
            layer = c.again(master, "killed", ident=ident)
            if os.path.exists(os.path.join(layer.dir, "base-git")):
                os.unlink(os.path.join(layer.dir, "base-git"))
            ready(layer)
            return layer
        first = copy()
        before = files(first)
        first.pinfold(*words)
        after = files(first)
        total = int(copy().pinfold(*words, wrap=(c.STRIKE, "count"))[2].split()[-1])
        check(total > 20 and before != after, "calls", total)
        kills = min(c.KILLS, 3)
        step = max(1, total // kills) if kills else 1
        for n in range(1, total + 1, step):
            layer = copy()
            code = layer.pinfold(*words, ok=None, wrap=(c.STRIKE, "kill", str(n)))[0]
            check(code == 99, f"call {n} of {total} was not reached", code)
            half = files(layer)
            for path in set(before) | set(after):
                check(half.get(path) in (before.get(path), after.get(path)), f"{n}: {path}", half.get(path))
            git_dir = os.path.join(layer.work, inside, ".git")  # or a submodule's file
            if os.path.exists(os.path.join(git_dir, "HEAD")) or os.path.isfile(git_dir):
                sound(layer, f"{n}: killed", cwd=os.path.join(layer.work, inside))
            if n // step % 2:
                code, _, err = layer.pinfold("undo", ok=None)
                check(code in (0, 4), f"{n}: then undo", code, err)
                c.same_trees(before, files(layer), f"{n}: then undo")
            if n // step % 2 == 0 or n // step % 4 == 1:
                code, _, err = layer.pinfold(*words, ok=None)
                check(code == 0 or (files(layer) == after and ("a branch of this name already exists" in err or "it was merged already" in err)), f"{n}: then apply", code, err)
                c.same_trees(after, files(layer), f"{n}: then apply")
                sound(layer, f"{n}: after", cwd=os.path.join(layer.work, inside))
            left = [name for name in os.listdir(layer.dir) if name in ("journal", "merged", "git")]
            check(not os.path.exists(os.path.join(layer.work, ".pinfold")) and not left, f"{n}: left behind", left)
        return f"{len(range(1, total + 1, step))} of {total} calls"

    def killed_born():
        script = "git init -q -b main; echo x >f; git add f; git commit -qm one; git tag t; git checkout -q -b side; git commit -q --allow-empty -m two; git checkout -q main; echo s >g; git add g; git config user.name me"
        return killed_at_each(layer_of("master", script, fill=lambda work: None), ("apply", "--all"))

    def killed_inside():
        """One inside of the workspace, those of submodules, and that of one that the box has checked out first."""
        def more(work):
            with_modules(work)
            os.makedirs(os.path.join(work, "lib/sub"))
            fill(os.path.join(work, "lib/sub"), files=8)
        script = f"(cd lib/sub; git commit -q --allow-empty -m sub); {IN_MODULES}; git -c protocol.file.allow=always submodule --quiet update --init more; git -C more commit -q --allow-empty -m box; echo n >n"
        return killed_at_each(layer_of("master", script, fill=more), ("apply", "--all"), inside="lib/mod")

    def killed_merge():
        def more(work):
            for name in ("a", "b"):
                with open(os.path.join(work, name), "w") as file:
                    file.write("".join(f"line {i}\n" for i in range(20)))
            fill(work, files=2)

        def host(layer):
            for name, line in {"a": "line 17\n", "b": "line 3\n"}.items():
                path = os.path.join(layer.work, name)
                with open(path) as file:
                    text = file.read()
                with open(path, "w") as file:
                    file.write(text.replace(line, "host\n"))
        master = layer_of("master", "for i in a b; do sed -i s/line\\ 3$/box/ $i; done; echo n >n", fill=more)
        return killed_at_each(master, ("apply", "--merge", "--conflicts", "mark", "--all"), ready=host)

    def killed_branch():
        master = layer_of("master", "echo y >>f1; rm f2; echo z >new", fill=lambda work: fill(work, files=4))
        return killed_at_each(master, ("apply", "--branch", "agent/try", "--all"), ready=lambda layer: (git(layer, "config", "user.name", "n"), git(layer, "config", "user.email", "a@b")))

    return {"repo-lands": lands, "repo-host": host_moves, "repo-named": only_named, "repo-kinds": kinds, "repo-lfs": lfs, "repo-reftable": reftable, "branch": branch, "merge": merge, "merge-meanwhile": merge_meanwhile, "repo-inside": inside, "repo-modules": modules, "repo-modules-host": modules_host, "repo-modules-born": modules_born, "repo-modules-judged": modules_judged, "repo-large": large, "repo-born": born, "repo-objects": hostile_objects, "repo-paths": hostile_paths, "repo-index": hostile_index,
            "repo-altered": altered, "kill-repo": killed, "kill-born": killed_born, "kill-inside": killed_inside, "kill-merge": killed_merge, "kill-branch": killed_branch}
