"""What stood in a repository before the box: what may not be the person's own is said at the start, and by doctor; what everybody has is not.

Rows of HOSTILE: what makes the repository so (in a repository with a commit), which words the start's line must have. The ones with True
are run outside as well: git status must do what the row says, so that no row speaks of something that git does not do.
"""
import json
import os
import shutil

import pf

SCRIPT = "printf '#!/bin/sh\\ntouch %s\\n' $RAN"
HOSTILE = {
    "fsmonitor": ("git config core.fsmonitor \"touch $RAN; false\"", "core.fsmonitor = touch", True),
    "fsmonitor-of-the-tree": (SCRIPT + " > f.sh; chmod +x f.sh; git config core.fsmonitor ./f.sh", "core.fsmonitor = ./f.sh", True),
    "filter-with-an-interpreter": (SCRIPT + " > clean.sh; git config filter.x.clean 'sh clean.sh'; echo '* filter=x' > .gitattributes; touch -d @1 a", "filter.x.clean", True),
    "hooks": ("mkdir -p ci/hooks; " + SCRIPT + " > ci/hooks/post-index-change; chmod +x ci/hooks/*; touch -d @1 a; git config core.hooksPath ci/hooks", "core.hookspath = ci/hooks", True),
    "hook-that-is-a-link": (SCRIPT + " > p.sh; chmod +x p.sh; ln -s ../../p.sh .git/hooks/post-index-change; touch -d @1 a", ".git/hooks/post-index-change: ", True),
    "included-from-the-tree": ("git config include.path ../inc; printf '[core]\\nfsmonitor = \"touch %s; false\"\\n' $RAN > inc", "inc: core.fsmonitor", True),
    "of-a-work-tree": ("git config extensions.worktreeConfig true; git config --worktree core.fsmonitor \"touch $RAN; false\"", "config.worktree: core.fsmonitor", True),
    "a-repository-of-the-tree": ("mv .git data; echo gitdir: data > .git; git config core.fsmonitor \"touch $RAN; false\"", ".git: ", True),
    "a-link-to-one": ("mv .git data; ln -s data .git; git config core.fsmonitor \"touch $RAN; false\"", ".git: ", True),
    "commondir-of-the-tree": ("cp -r .git data; echo ../data > .git/commondir; git config -f data/config core.fsmonitor \"touch $RAN; false\"", ".git/commondir: ", True),
    "pager": ("git config core.pager 'touch /x'", "core.pager", False),
    "ssh-with-a-proxy": ("git config core.sshCommand 'ssh -o ProxyCommand=/x'", "core.sshcommand", False),
    "textconv-of-the-tree": ("mkdir tools; echo > tools/t.py; git config diff.x.textconv 'python3 tools/t.py'", "diff.x.textconv", False),
    "driver-of-the-tree": ("echo > m.js; git config merge.x.driver 'node m.js %O %A %B'", "merge.x.driver", False),
    "temporary": ("mkdir -p /tmp/pf-before; cp /bin/true /tmp/pf-before/git-lfs; git config filter.lfs.clean '/tmp/pf-before/git-lfs clean'", "filter.lfs.clean", False),
    "credentials": ("git config credential.helper '!f() { cat; }; f'", "credential.helper", False),
    "helper-by-name": ("git config credential.helper evil", "credential.helper", False),
    "alias": ("git config alias.st '!touch /x'", "alias.st", False),
    "remote": ("git config remote.origin.url 'ext::sh -c x'", "remote.origin.url", False),
    "remote-option": ("git config 'remote.--upload-pack=x.url' y", "remote.--upload-pack=x.url", False),
    "leave-for-such": ("git config protocol.ext.allow always", "protocol.ext.allow", False),
    "submodule": ("git config submodule.x.update '!touch /x'", "submodule.x.update", False),
    "steps-of-a-rebase": ("echo 1 > a; git commit -qam 1; echo 2 > a; git commit -qam 2; GIT_SEQUENCE_EDITOR='echo break >' git rebase -q -i HEAD~1; "
                          "echo exec touch /x >> .git/rebase-merge/git-rebase-todo", "git-rebase-todo: exec touch", False),
    "strategy-of-a-cherry-pick": ("git update-ref CHERRY_PICK_HEAD HEAD; mkdir .git/sequencer; printf '[options]\\nstrategy = ./x\\n' > .git/sequencer/opts", "sequencer/opts", False),
    "head-is-an-option": ("git update-ref refs/heads/--mirror HEAD; echo 'ref: refs/heads/--mirror' > .git/HEAD", ".git/HEAD: refs/heads/--mirror", False),
    "hooks-of-every-repository": ("mkdir .githooks; git config --global core.hooksPath .githooks", "core.hookspath = .githooks", False),
}
IN_FULL = ["fsmonitor", "a-repository-of-the-tree", "steps-of-a-rebase"]  # doctor starts a box each time
EVERYDAY = [
    "mkdir -p .husky/_; echo > .husky/_/pre-commit; chmod +x .husky/_/*; git config core.hooksPath .husky/_",
    "printf '#!/bin/sh\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit",
    "for k in 'clean git-lfs clean -- %f' 'smudge git-lfs smudge -- %f' 'process git-lfs filter-process' 'required true'; do git config filter.lfs.${k%% *} \"${k#* }\"; done; "
    "git config lfs.https://example.org/x.access basic",
    "git config filter.git-crypt.smudge '\"git-crypt\" smudge'; git config diff.git-crypt.textconv '\"/usr/bin/git-crypt\" diff'",
    "git config core.sshCommand 'ssh -i ~/.ssh/key -o IdentitiesOnly=yes'; git config core.editor 'code --wait'; git config core.pager 'less -FRX'; git config gpg.program gpg2",
    "git config credential.helper '!/usr/bin/gh auth git-credential'; git config credential.https://x.helper 'cache --timeout=900'; git config --global credential.helper store",
    "git config merge.ours.driver true; git config alias.lg 'log --oneline'; git config --global alias.x '!f() { git log; }; f'; git config --global core.pager 'sh -c less'",
    "git config core.fsmonitor true; echo > .git-blame-ignore-revs; git config blame.ignoreRevsFile .git-blame-ignore-revs; echo > .gitmessage; git config commit.template .gitmessage",
    "cp .git/hooks/fsmonitor-watchman.sample .git/hooks/query-watchman; git config core.fsmonitor .git/hooks/query-watchman",
    "printf '[alias]\\n\\tci = commit\\n[pull]\\n\\trebase = true\\n' > .gitconfig; git config include.path ../.gitconfig",
    "git remote add origin https://example.org/x.git; git branch topic; git tag v1; git pack-refs --all; git config url.git@example.org:.insteadOf https://example.org/",
    "git -c protocol.file.allow=always submodule add -q ./ sub 2>/dev/null; git worktree add -q ../other-$$; git stash list",
]
SAYS = "git on the host would run something that may not come from you"


def repository(scene, script):
    made = scene.sh("rm -rf work ran other-*; cp empty-config home/.gitconfig; git init -q work; cd work; echo 0 > a; git add a; git commit -qm 0; " + script, scene.path)
    assert made.status == 0, script + made.said()


def lines(done):
    return [line for line in done.err.decode().splitlines() if SAYS in line]


def doctor(scene, program, place):
    done = scene.sh(f"{program} doctor --json {place}")
    return json.loads(done.out)["git"]


def hostile_repositories_are_said(scene, program):
    scene.sh("cp home/.gitconfig empty-config", scene.path)
    for name, (script, words, runs) in HOSTILE.items():
        repository(scene, script)
        said = lines(scene.box("true"))
        assert len(said) == 1 and words in said[0] and "pinfold doctor '" + scene.work + "'" in said[0], (name, said)
        assert not lines(scene.box("true", "--quiet")), name
        if name in IN_FULL:
            odd = [run for run in doctor(scene, program, scene.work)["runs"] if not run["yours"]]
            assert odd and all(run["remedy"] and run["why"] for run in odd), (name, odd)
        if runs:
            assert not os.path.exists(scene.path + "/ran"), name
            scene.sh("git status")
            assert os.path.exists(scene.path + "/ran"), name + ": git does not run it"


def everyday_repositories_are_not(scene, program):
    scene.sh("cp home/.gitconfig empty-config", scene.path)
    for script in EVERYDAY:
        repository(scene, script)
        said = lines(scene.box("true"))
        assert not said, (script, said)
    odd = [run for run in doctor(scene, program, scene.work)["runs"] if not run["yours"]]
    assert not odd, odd


def what_is_kept_is_the_persons(scene, _program):
    scene.sh("cp home/.gitconfig empty-config", scene.path)
    repository(scene, "mkdir ci; git config core.hooksPath ci")
    assert lines(scene.box("true")) and not lines(scene.box("true", "--protect", "ci"))
    assert "core.hookspath" in scene.sh(f"{os.environ['PINFOLD']} explain").out.decode()


def a_session_says_it_once(scene, program):
    scene.sh("cp home/.gitconfig empty-config", scene.path)
    repository(scene, "git config core.pager ./x")
    first, second = scene.sh(f"{program} session start s"), scene.sh(f"{program} exec s true")
    scene.sh(f"{program} session rm s")
    assert len(lines(first)) == 1 and not lines(second), first.said() + second.said()


def doctor_looks_further_down(scene, program):
    scene.sh("cp home/.gitconfig empty-config", scene.path)
    repository(scene, "git init -q --bare deep/er/x; git -C deep/er/x config core.fsmonitor \"touch $RAN; false\"; git init -q nested; git -C nested config core.pager ./y; "
               "git init -q --bare plain; git init -q fine; git update-ref refs/tags/--exec=z HEAD; git pack-refs --all; git update-ref refs/heads/-l HEAD; "
               "mkdir \"q'q\"; git init -q \"q'q\"; git -C \"q'q\" config core.pager ./z")
    git = doctor(scene, program, scene.work)
    odd = {(os.path.relpath(run["file"], scene.work), run.get("key")): run for run in git["runs"] if not run["yours"]}
    assert set(odd) == {("deep/er/x/config", "core.fsmonitor"), ("nested/.git/config", "core.pager"), (".git/packed-refs", None), (".git/refs/heads", None),
                        ("q'q/.git/config", "core.pager")}, odd
    assert git["all_looked_at"] is True
    for run in odd.values():  # each remedy is a line that does what it says
        if ": git config --file" in run["remedy"]:
            scene.sh(run["remedy"].split("if not: ")[1])
        elif "update-ref" in run["remedy"]:
            scene.sh(run["remedy"].split("with: ")[1].split(" (")[0])
    left = [run for run in doctor(scene, program, scene.work)["runs"] if not run["yours"]]
    assert [run["file"] for run in left] == [scene.work + "/deep/er/x/config"], left
    text = scene.sh(f"cd nested; {program} doctor ..").out.decode()
    assert "What git on the host runs in '" + scene.work + "'" in text and "1 of these may not come from you" in text, text
    scene.sh("mkdir many; cd many; seq 50100 | xargs touch")
    assert doctor(scene, program, scene.work)["all_looked_at"] is False


def told(done):
    return {(os.path.basename(os.path.dirname(entry["path"])) + "/" + os.path.basename(entry["path"]), entry["what"])
            for entry in json.loads(done.out)["left"] if entry["kind"] == "ref"}


def names_in_head_and_packed_refs_are_told(scene, _program):
    """git itself takes such a name for a name; what passes it on does not."""
    scene.sh("cp home/.gitconfig empty-config", scene.path)
    repository(scene, "git branch side")
    ways = {"in place": "echo 'ref: refs/heads/--mirror' > .git/HEAD",
            "by rename": "echo 'ref: refs/heads/--mirror' > h; mv h .git/HEAD",
            "written after the rename": "exec 9> h; mv h .git/HEAD; echo 'ref: refs/heads/--mirror' >&9",
            "by another name": "ln .git/HEAD h; echo 'ref: refs/heads/--mirror' > h",
            "by link(2)": "echo 'ref: refs/heads/--mirror' > h; rm .git/HEAD; ln h .git/HEAD"}
    for way, script in ways.items():
        done = scene.box(script, "--json")
        assert told(done) == {(".git/HEAD", "refs/heads/--mirror")}, (way, done.said())
        scene.sh("rm -f h .git/HEAD; echo 'ref: refs/heads/main' > .git/HEAD")
    assert told(scene.box("echo 'ref: refs/replace/x' > .git/HEAD", "--json")) == {(".git/HEAD", "refs/replace/x")}
    scene.sh("echo 'ref: refs/heads/main' > .git/HEAD")
    packed = "git pack-refs --all; sed -i \"1a $(git rev-parse HEAD) refs/heads/--upload-pack=touch\" .git/packed-refs"
    assert told(scene.box(packed, "--json")) == {(".git/packed-refs", "refs/heads/--upload-pack=touch")}
    scene.sh("git update-ref -d refs/heads/--upload-pack=touch")
    packed = "git commit -q --allow-empty -m other; git pack-refs --all; echo \"$(git rev-parse HEAD) refs/replace/$(git rev-parse HEAD~)\" >> .git/packed-refs"
    done = scene.box(packed, "--json")
    replaced = scene.sh("git rev-parse HEAD~").out.decode().strip()
    assert told(done) == {(".git/packed-refs", "refs/replace/" + replaced)} and b"other" in scene.sh("git log -1 --format=%s HEAD~").out, done.said()
    scene.sh(f"git replace -d {replaced}; git reset -q --hard HEAD~")
    packed = "git pack-refs --all; sed -i \"1a $(git rev-parse HEAD) refs/heads/--upload-pack=touch\" .git/packed-refs"
    assert told(scene.box(packed, "--json")) == {(".git/packed-refs", "refs/heads/--upload-pack=touch")}
    status = scene.sh("git status && git for-each-ref && git fetch . && git checkout -q side && git checkout -q main")
    assert status.status == 0, status.said()
    assert not os.path.exists(scene.path + "/ran")
    passed_on = scene.sh("git symbolic-ref HEAD 'refs/heads/--upload-pack=touch$IFS$RAN;false'; git fetch . $(git branch --show-current)")
    assert os.path.exists(scene.path + "/ran"), passed_on.said()
    scene.sh("git symbolic-ref HEAD refs/heads/main; git update-ref -d refs/heads/--upload-pack=touch")
    done = scene.box("git checkout -qb x; git commit -q --allow-empty -m x; git tag t; git pack-refs --all; git gc -q; git checkout -q main; git branch -qm x y; "
                     "git worktree add -q wt; git init -q new; git clone -q . copy; git stash list; git rebase -q y", "--json")
    assert json.loads(done.out)["left"] == [] and done.status == 0, done.said()
    assert b"name git would take as an option" in scene.box("echo 'ref: refs/heads/-d' > .git/HEAD").err


# Prints the index of this repository with a path in it, a program that makes $RAN
CRAFT = """import hashlib, os, struct, subprocess, sys
git = lambda *words, **more: subprocess.run(["git", *words], stdout=subprocess.PIPE, check=True, **more).stdout.decode()
names = {name: (int(mode, 8), oid) for meta, name in (line.split("\\t") for line in git("ls-files", "-s").splitlines()) for mode, oid, _ in [meta.split()]}
names[sys.argv[1]] = 0o100755, git("hash-object", "-w", "--stdin", input=b"#!/bin/sh\\ntouch %s\\n" % os.environb[b"RAN"]).strip()
out = b"DIRC" + struct.pack(">II", 2, len(names))
for name, (mode, oid) in sorted(names.items()):
    one = struct.pack(">10I", 0, 0, 0, 0, 0, 0, mode, 0, 0, 0) + bytes.fromhex(oid) + struct.pack(">H", len(name)) + name.encode()
    out += one + b"\\0" * (8 - len(one) % 8)
sys.stdout.buffer.write(out + hashlib.sha1(out).digest())
"""


def an_index_writes_no_hook(scene, _program):
    """git takes the paths of its index as they are: `git restore .` would write .git/hooks/post-checkout, and run it."""
    scene.sh("cp home/.gitconfig empty-config", scene.path)
    scene.put("craft.py", CRAFT)
    ways = {"by rename": "cp $I .git/index.lock; mv .git/index.lock .git/index",
            "in place": "cat $I > .git/index",
            "by another name": "ln .git/index h; cat $I > h",
            "by link(2)": "rm .git/index; ln $I .git/index",
            "by a symbolic link": "rm .git/index; ln -s ../../work/$I .git/index",
            "written after the rename": "cp .git/index h; exec 9>> h; mv h .git/index; cat $I > /proc/self/fd/9",
            "exchanged": "python3 -c \"import ctypes; ctypes.CDLL(None).renameat2(-100, b'$I', -100, b'.git/index', 2)\"",
            "in a repository that is made of it": "mkdir n n/objects; cp .git/HEAD .git/config n; cp -r .git/objects/* n/objects; cp $I n/index; exec 8>> n/index; mv .git old; mv n .git; cp -r old/refs .git; cat $I >&8",
            "in one that lies there": "cp -r .git n; cp $I n/index; mv .git old; mv n .git"}
    for path in (".git/hooks/post-checkout", "../outside"):
        for way, script in ways.items():
            repository(scene, "echo 1 > b; git add b; git commit -qm 1")
            ran = scene.sh("python3 ../craft.py " + path + " > i; cp i .git/index; git checkout -- . ; test -e ../ran || test -e ../outside")
            assert ran.status == 0, "git does not write it: " + ran.said()
            scene.sh("rm -f ran outside work/.git/hooks/post-checkout; cp work/i i; cd work; rm .git/index; git reset -q --hard; cp ../i .", scene.path)
            done = scene.box("I=i; " + script)
            scene.sh("git checkout -- .; git restore .; git checkout-index -a -f; git checkout -q -b other")
            assert not any(os.path.exists(os.path.join(scene.path, name)) for name in ("ran", "outside", "work/.git/hooks/post-checkout")), (path, way, done.said())
    repository(scene, "echo 1 > b; git add b; git commit -qm 1")
    done = scene.box("set -e; echo 2 > b; git add b; git commit -qm 2; git status -s; git stash -q 2>/dev/null || true; echo 3 > b; git stash -q; git stash pop -q; git checkout -q -- b; rm .git/index; git reset -q --hard; "
                     "git update-index --index-version 4; git mv b c; git commit -qm 3; git branch index; git checkout -q index; git worktree add -q wt; cd wt; echo 4 > c; git commit -qam 4; cd ..; mkdir -p index; echo x > index/index; "
                     "git add index; git rm -q --cached index/index; git -c protocol.file.allow=always submodule --quiet add ./ sub 2>/dev/null; git clone -q . copy; cd copy; git sparse-checkout set index; git read-tree -m HEAD; "
                     "git -c index.threads=4 update-index --force-write-index; git diff --quiet && echo fine")
    assert done.status == 0 and done.out.endswith(b"fine\n"), done.said()
    status = scene.sh("git status && git fsck && git -C wt status && git -C copy status")
    assert status.status == 0, status.said()
    done = scene.box("git update-index --split-index; echo 5 > b; git add b")
    assert b"core.splitIndex" in done.err and scene.sh("git status").status == 0, done.said()


def names_in_reftables_are_told(scene, program):
    """A repository with extensions.refStorage = reftable has HEAD and its refs in tables. These were written by git; the one of the machine
    need not know them."""
    scene.sh("cp home/.gitconfig empty-config", scene.path)
    ways = {"as git does": "cp fixture/indexed .git/reftable/t; mv .git/reftable/t .git/reftable/one.ref; echo one.ref > .git/reftable/l; mv .git/reftable/l .git/reftable/tables.list",
            "in place": "cp fixture/indexed .git/reftable/there.ref",
            "by another name": "ln .git/reftable/there.ref h; cat fixture/indexed > h",
            "as HEAD": "cp fixture/sha256 .git/reftable/one.ref; echo one.ref > .git/reftable/tables.list",
            "as a whole directory": "mkdir t; cp fixture/indexed t/one; echo one > t/tables.list; mv .git/reftable old; mv t .git/reftable",
            "not to be read": "echo REFT > .git/reftable/there.ref",
            "elsewhere": "echo ../../fixture/indexed > .git/reftable/tables.list"}
    says = {"as HEAD": "refs/heads/--upload-pack=x", "not to be read": "a table that cannot be read", "elsewhere": "a table elsewhere"}
    for way, script in ways.items():
        repository(scene, "mkdir .git/reftable fixture; git config core.repositoryFormatVersion 1; git config extensions.refStorage reftable")
        for name in ("indexed", "sha256"):
            shutil.copy(os.path.join(pf.SOURCE, "tests/fuzz/corpus/reftable", name), scene.work + "/fixture")
        scene.sh("sed 's/--mirror/an-other/' fixture/indexed > .git/reftable/there.ref; echo there.ref > .git/reftable/tables.list")
        done = scene.box("cp .git/reftable/there.ref .git/reftable/fine.ref; echo fine.ref >> .git/reftable/tables.list", "--json")
        assert told(done) == set() and not lines(done), done.said()
        done = scene.box(script, "--json")
        assert told(done) == {("reftable/tables.list", says.get(way, "refs/heads/--mirror"))}, (way, done.said())
        git = doctor(scene, program, scene.work)
        odd = [run for run in git["runs"] if not run["yours"]]
        assert (way == "not to be read") == (not odd) and git["all_looked_at"] is (way != "not to be read"), (way, git)
        done = scene.box("true")
        assert bool(lines(done)) == (way == "as HEAD"), (way, done.said())


def git_with_reftables(scene, _program):
    """The real one, where it has them (from 2.45 on)."""
    scene.sh("cp home/.gitconfig empty-config", scene.path)
    made = scene.sh("cd work; rm -rf .git; git init -q --ref-format=reftable .; git commit -q --allow-empty -m 0", scene.path)
    assert made.status == 0, made.said()
    done = scene.box("git checkout -qb x; git commit -q --allow-empty -m x; git tag t; git pack-refs --all; git gc -q; git checkout -q main; git branch -qm x y; git worktree add -q wt; "
                     "git init -q --ref-format=reftable new; git clone -q . copy; git stash list; git rebase -q y; for i in 1 2 3 4 5 6; do git branch b$i; done; git branch -D b1", "--json")
    assert json.loads(done.out)["left"] == [] and done.status == 0, done.said()
    done = scene.box("git update-ref refs/heads/--mirror HEAD", "--json")
    assert told(done) == {("reftable/tables.list", "refs/heads/--mirror")}, done.said()
    done = scene.box("git -C new symbolic-ref HEAD refs/heads/-d; git update-ref -d refs/heads/--mirror; git pack-refs --all", "--json")
    assert told(done) == {("reftable/tables.list", "refs/heads/-d")}, done.said()
    status = scene.sh("git status && git for-each-ref && git fetch . && git fsck")
    assert status.status == 0, status.said()


def git_writes_through_no_link(scene, _program):
    """`git commit` writes .git/COMMIT_EDITMSG, with a text that .git/MERGE_MSG suggests; rerere and locks of files follow links as well."""
    scene.sh("cp home/.gitconfig empty-config", scene.path)
    ways = {"by symlink": "ln -s ../../outside .git/COMMIT_EDITMSG", "to a guarded name": "ln -s ../.envrc .git/COMMIT_EDITMSG", "to its configuration": "ln -s config .git/COMMIT_EDITMSG",
            "by rename": "ln -s ../../outside l; mv -T l .git/COMMIT_EDITMSG", "by link(2)": "ln -s ../../outside l; ln -P l .git/COMMIT_EDITMSG",
            "exchanged": "ln -s ../../outside l; echo > .git/COMMIT_EDITMSG; python3 -c \"import ctypes; ctypes.CDLL(None).renameat2(-100, b'l', -100, b'.git/COMMIT_EDITMSG', 2)\"",
            "with its directory": "mkdir -p n/deep; ln -s ../../../outside n/deep/l; mv n .git/rr-cache; mv .git/rr-cache/deep/l .git/COMMIT_EDITMSG",
            "with its repository": "cp -r .git n; ln -s ../../outside n/COMMIT_EDITMSG; mv .git old; mv n .git",
            "in one of another name": "mv .git g; echo gitdir: g > .git; ln -s ../../outside g/COMMIT_EDITMSG",
            "below a work tree": "git worktree add -q wt; ln -s ../../../../outside .git/worktrees/wt/COMMIT_EDITMSG; mv wt ../wt 2>/dev/null; true"}
    for way, script in ways.items():
        repository(scene, "rm -f .git/COMMIT_EDITMSG; printf 'subject\\n\\ntouch x\\n' > .git/MERGE_MSG; cp .git/config ../config")
        outside = scene.sh("ln -s ../../outside .git/COMMIT_EDITMSG; echo 1 > a; GIT_EDITOR=true git commit -qa; grep touch ../outside; rm -f .git/COMMIT_EDITMSG ../outside; printf 'subject\\n\\ntouch x\\n' > .git/MERGE_MSG")
        assert outside.out == b"touch x\n", "git does not write through it: " + outside.said()
        done = scene.box(script)
        scene.sh("echo 2 > a; GIT_EDITOR=true git commit -qa; cd wt && echo 3 > a && GIT_EDITOR=true git commit -qa")
        same = scene.sh("cmp .git/config ../config || grep -q touch .git/config && echo changed; ls .envrc ../outside 2>/dev/null")
        assert b"outside" not in same.out and b"envrc" not in same.out and not scene.sh("grep touch .git/config").out, (way, done.said(), same.said())
    repository(scene, "true")
    done = scene.box("git init -q new && git -C new config core.symlinks; git init -q sub; git -C sub commit -q --allow-empty -m 1; git -c protocol.file.allow=always submodule --quiet add ./sub s2; "
                     "git submodule --quiet absorbgitdirs; git clone -q . copy; ln -s a link; git add link; git commit -qm link; echo fine")
    assert done.out == b"fine\n", done.said()


def what_is_more_is_counted(scene, _program):
    links = "python3 -c 'import os, sys\nfor i in range(%d): os.symlink(\"/etc\", \"%%0100d\" %% i); %s'"
    done = scene.box(links % (150, "0"), "--json")
    result = json.loads(done.out)
    assert len(result["left"]) + result["left_not_kept"] == 150 and result["left_not_kept"] > 0, (len(result["left"]), result["left_not_kept"])
    done = scene.box("mkdir d; cd d; " + links % (600, "0"))
    counts = [int(line.split(": ")[1].split()[0]) for line in done.err.decode().splitlines() if " more " in line]
    shown = done.err.decode().count("created a link that leads out")
    assert sum(counts) + shown == 600, (counts, shown, done.said())
    done = scene.box("mkdir e; cd e; " + links % (700, "os.remove(\"%0100d\" % i)") + "; ln -s /etc last", "--json")
    assert [os.path.basename(entry["path"]) for entry in json.loads(done.out)["left"]] == ["last"], done.said()
    assert json.loads(done.out)["left_not_kept"] == 0


EXCHANGE = "python3 -c \"import ctypes; assert ctypes.CDLL(None).renameat2(-100, b'%s', -100, b'%s', 2) == 0\""


def links_out_are_told_however_they_come_there(scene, _program):
    """The text is judged where the link is, which is not where it was made; and dots behind a link do not lead where the text says."""
    os.mkdir(scene.path + "/secret")
    ways = {"by rename": "mkdir d; ln -s ../secret d/l; mv d/l l", "by link(2)": "mkdir d; ln -s ../secret d/l; ln -P d/l l",
            "exchanged": "mkdir d; ln -s ../secret d/l; echo > l; " + EXCHANGE % ("d/l", "l"), "exchanged back": "mkdir d; ln -s ../secret d/l; echo > l; " + EXCHANGE % ("l", "d/l"),
            "with its directory": "mkdir -p d/e/f; ln -s ../../secret d/e/f/m; mv d/e/f f; mv f g", "with a directory above": "mkdir -p d/e/f; ln -s ../../../secret d/e/f/l; mv d/e e",
            "with an exchanged one": "mkdir -p d/e e; ln -s ../../secret d/e/l; " + EXCHANGE % ("d/e", "e"),
            "over a link": "mkdir -p d/e; ln -s ../.. d/e/x; ln -s d/e/x/../secret l", "before that link": "ln -s d/e/x/../secret l; mkdir -p d/e; ln -s ../.. d/e/x",
            "over its own tree": "mkdir -p d/e; ln -s ../.. d/e/x; ln -s $PWD/d/e/x/../secret l"}
    for way, script in ways.items():
        scene.sh("rm -rf d e f g l")
        done = scene.box(script, "--json")
        out = [os.path.join(at, name) for at, directories, files in os.walk(scene.work) for name in directories + files
               if os.path.islink(os.path.join(at, name)) and os.path.realpath(os.path.join(at, name)) == scene.path + "/secret"]
        left = [entry["path"] for entry in json.loads(done.out)["left"] if entry["kind"] == "link"]
        assert out and sorted(out) == sorted(left), (way, out, left, done.said())
    scene.sh("rm -rf d e f g l")
    done = scene.box("mkdir -p a/b n/m; ln -s a/b/../b l; ln -s /usr/bin/../lib s; ln -s ../x n/m/y; mv n/m m; ln -s a/b/../../proj p; ln -s m/y a/b; mv a/b b; mkdir -p q/r; ln -s ../n a/n; mv a q/r/a", "--json")
    left = [os.path.basename(entry["path"]) for entry in json.loads(done.out)["left"] if entry["kind"] == "link"]
    assert left == ["l", "p"], (left, done.said())  # the box has moved away what these two lead over
    done = scene.box("mkdir -p d; cd d; for i in $(seq 40); do mkdir -p $(printf 'x/%.0s' $(seq $i)); done; cd ..; mkdir z; mv d/x/x/x z/; mv z/x w", "--json")
    assert json.loads(done.out)["left_not_kept"] >= 1, "a tree that is too deep to be looked through"
    done = scene.box("mkfifo one; ln one two; rm one", "--json")
    assert [os.path.basename(entry["path"]) for entry in json.loads(done.out)["left"]] == ["two"], done.said()


def repositories_are_told_however_they_are_made(scene, _program):
    """The marker may be made elsewhere, and come by a rename or as another name; and there may be too many of them to remember."""
    many = "python3 -c \"import os\nfor i in range(1100): os.mkdir('m/.git'); os.rmdir('m/.git')\""
    plant = "mkdir -p p/.vscode; echo > p/.vscode/tasks.json; "
    ways = {"made": plant + "git init -q p", "by rename": plant + "git init -q q; mv q/.git p/.git", "by rename twice": plant + "git init -q q; mv q/.git p/g; mv p/g p/.git",
            "before the name": "git init -q q; mkdir p; mv q/.git p/.git; " + plant, "exchanged": plant + "mkdir -p q/.svn p/x; " + EXCHANGE % ("p/x", "q/.svn") + "; mv p/x p/.svn", "exchanged for it": plant + "mkdir -p q/.svn p/.svn; rmdir p/.svn; mkdir p/x; mv q/.svn p/y; " + EXCHANGE % ("p/x", "p/y") + "; mv p/x p/.svn",
            "with its directory": "mkdir -p d/e; cd d/e; " + plant + "git init -q q; mv q/.git p/.git; cd ../..; mv d/e/p d/f; mv d/f p", "by link(2)": plant + "mkdir q; echo gitdir: ../proj/.git > q/.git; ln q/.git p/.git",
            "forgotten": plant + "git init -q p; mkdir m; " + many}
    for way, script in ways.items():
        scene.sh("rm -rf d m p q")
        done = scene.box(script, "--json")
        left = [(entry["path"], entry["what"]) for entry in json.loads(done.out)["left"] if entry["kind"] == "repository"]
        assert os.path.exists(scene.work + "/p/.vscode/tasks.json") and any(path == scene.work + "/p" and ".vscode" in what for path, what in left), (way, left, done.said())
    scene.sh("rm -rf d m p q")
    done = scene.box(plant + "mkdir q; echo gitdir: ../proj/.git > q/g; ln q/g p/.git")
    assert not os.path.exists(scene.work + "/p/.git") and b"denied (.vscode" in done.err, done.said()
    scene.sh("rm -rf d m p q")
    done = scene.box("mkdir p q; echo gitdir: ../proj/.git > q/g; ln q/g p/.git; echo > p/.envrc")
    assert not os.path.exists(scene.work + "/p/.envrc"), done.said()


def bounds_are_said(scene, _program):
    scene.sh("cp home/.gitconfig empty-config", scene.path)
    repository(scene, "mkdir s; for i in $(seq 140); do echo > s/$i; ln -s ../../s/$i .git/hooks/h$i; done")
    done = scene.box("true")
    assert b"12 files beyond the first 128" in done.err and b"--protect" in done.err, done.said()
    repository(scene, "for i in $(seq 20); do printf '[include]\\npath = i%d\\n' $((i + 1)) > i$i; done; git config include.path ../i1")
    done = scene.box("true")
    assert b"1 git configurations" in done.err, done.said()
    repository(scene, "seq 9000 | xargs touch; mkdir -p conf/vs; ln -s conf/vs .vscode; ln -s conf/vs x.code-workspace")
    done = scene.box("echo > conf/vs/tasks.json")
    assert b"pattern guards" in done.err and b"9000" not in done.err and not os.path.exists(scene.work + "/conf/vs/tasks.json"), done.said()
    repository(scene, "mkdir s; echo > s/x; ln -s ../../s/x .git/hooks/x")
    assert b"not protected" not in scene.box("true").err


def what_longer_names_lead_to_is_protected(scene, _program):
    scene.sh("cp home/.gitconfig empty-config", scene.path)
    repository(scene, "mkdir -p .github conf/agents conf/hooks; ln -s ../conf/agents .github/agents; rm -r .git/hooks; ln -s ../conf/hooks .git/hooks")
    done = scene.box("echo > conf/agents/a.md; echo > conf/hooks/pre-commit; echo fine > conf/other")
    assert os.listdir(scene.work + "/conf/agents") == [] and os.listdir(scene.work + "/conf/hooks") == [] and os.path.exists(scene.work + "/conf/other"), done.said()


def what_is_seen_elsewhere_is_protected(scene, _program):
    scene.sh("cp home/.gitconfig empty-config", scene.path)
    repository(scene, "mkdir -p ci/hooks; git config core.hooksPath ci/hooks")
    done = scene.box("echo > /data/hooks/pre-commit; echo > /data/fine; echo > ci/hooks/pre-push", "--mount", "./ci:/data")
    assert os.listdir(scene.work + "/ci/hooks") == [] and os.path.exists(scene.work + "/ci/fine"), done.said()


def a_work_tree_has_the_configuration_of_its_repository(scene, program):
    scene.sh("cp home/.gitconfig empty-config", scene.path)
    repository(scene, "mkdir tools; echo > tools/c.sh; git add .; git commit -qm t; git config filter.x.clean 'sh tools/c.sh'; git worktree add -q ../other; echo '[user]' > .git/own; git config include.path own")
    other, own = scene.path + "/other", scene.work + "/.git/own"
    done = scene.sh(f"{program} run --rw {scene.work}/.git -- sh -c 'echo evil > tools/c.sh; echo evil > {own}; echo > {own}.fine; echo > tools/fine'", other)
    assert len(lines(done)) == 1 and "filter.x.clean" in lines(done)[0], done.said()
    with open(other + "/tools/c.sh", encoding="utf-8") as file:
        assert file.read() == "\n", done.said()
    with open(own, encoding="utf-8") as file:
        assert file.read() == "[user]\n", done.said()
    assert os.path.exists(other + "/tools/fine") and os.path.exists(own + ".fine"), done.said()


ALL = [hostile_repositories_are_said, everyday_repositories_are_not, what_is_kept_is_the_persons, a_session_says_it_once, doctor_looks_further_down,
       names_in_head_and_packed_refs_are_told, names_in_reftables_are_told, an_index_writes_no_hook, git_writes_through_no_link, links_out_are_told_however_they_come_there, repositories_are_told_however_they_are_made, what_is_more_is_counted, bounds_are_said, what_longer_names_lead_to_is_protected,
       what_is_seen_elsewhere_is_protected, a_work_tree_has_the_configuration_of_its_repository]
