/*
 * Real git in a strictly guarded box: what people do every day works, what would make the host's git run something does
 * not. Each scene is a script with a fresh workspace; `host` runs before it, outside.
 */
#include "harness.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define IDENTITY                                                                                                       \
    "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b HOME=/tmp "            \
    "GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null; git() { command git -c protocol.file.allow=always "      \
    "-c init.defaultBranch=main \"$@\"; }; set -e\n"
/* Expects a command to fail. */
#define NOT "no() { if \"$@\" 2>/dev/null; then echo \"should have failed: $*\" >&2; exit 1; fi; }\n"

#define REPO                                                                                                           \
    "git init -q . && echo 1 > a && mkdir d && echo 2 > d/b && git add -A && git commit -qm one && git branch other\n"
#define UPSTREAM "git init -q --bare up.git && git remote add origin $PWD/up.git && git push -q origin main\n"

/* Branches other, three, four and five that change the same line as main. */
#define CONFLICTS                                                                                                      \
    REPO "for b in three four five; do git checkout -q -b $b main; echo $b > a; git commit -qam $b; done; git "        \
         "checkout -q main; echo m > a; git commit -qam m; git checkout -q other; echo o > a; git commit -qam o\n"

/* Submodules lib/mod and two, with links beside them. */
#define SUBMODULES                                                                                                     \
    REPO "git clone -q --bare . /var/tmp/sub-$$.git; mv /var/tmp/sub-$$.git sub.git; git submodule --quiet add "       \
         "./sub.git lib/mod; git submodule --quiet add ./sub.git two; git commit -qm s; ln -s /var l; mkdir k; ln -s " \
         "/var k/mod; ln -s /var k/l\n"
#define SWAP                                                                                                           \
    "swap() { python3 -c 'import ctypes, sys; sys.exit(ctypes.CDLL(None).renameat2(-100, sys.argv[1].encode(), -100, " \
    "sys.argv[2].encode(), 2) != 0)' \"$@\"; }; MODULES=.git/modules; set_place() { git config -f $MODULES/$1/config " \
    "core.worktree \"$2\"; }; place() { test \"$(git config -f $MODULES/$1/config core.worktree)\" = \"$2\"; }\n"

struct scene {
    const char *name, *host, *box;
    bool fixed; /* rules of fixed place */
};

static const struct scene scenes[] = {
    {"add, commit, stash, reset", REPO,
     "echo x >> a; git add a; git commit -qm two; echo y >> a; git stash -q; git stash pop -q; git reset -q --hard; "
     "git log --oneline | grep -q two; test -z \"$(git status --porcelain)\""},
    {"commit from nothing", "true",
     "git init -q .; echo 1 > a; git add -A; git commit -qm one; test \"$(git config core.filemode)\" = true; "
     "ls .git/hooks/*.sample >/dev/null"},
    {"branch --set-upstream, push -u", REPO UPSTREAM,
     "git fetch -q origin; git branch -q --set-upstream-to origin/main; git checkout -q -b topic; echo 3 > c; git add "
     "c; "
     "git commit -qm c; git push -q -u origin topic; test \"$(git config branch.topic.remote)\" = origin"},
    {"branch -m keeps its tracking", REPO UPSTREAM,
     "git push -q -u origin main; git branch -m main trunk; test \"$(git config branch.trunk.remote)\" = origin; "
     "no git config branch.main.remote"},
    {"branch -d, tag, merge, rebase, cherry-pick", REPO,
     "git checkout -q other; echo o > o; git add o; git commit -qm o; git checkout -q main; echo m > m; git add m; "
     "git commit -qm m; git merge -q -m mm other; git branch -d other; git tag v1; git checkout -q -b r v1~1; "
     "echo r > r; git add r; git commit -qm r; git rebase -q main; git cherry-pick -x main >/dev/null 2>&1 || "
     "git cherry-pick --skip || true"},
    {"worktree add, commit there, remove", REPO,
     "git worktree add -q wt other; cd wt; echo w > w; git add w; git commit -qm w; cd ..; git worktree list | "
     "grep -q wt; git worktree remove wt; test ! -e wt"},
    {"clone inside, commit, push back", REPO UPSTREAM,
     "git clone -q up.git copy; cd copy; echo c > c; git add c; git commit -qm c; git push -q; "
     "test \"$(git config core.filemode)\" = true; cd ..; rm -rf copy; test ! -e copy"},
    {"clone --bare and --mirror", REPO,
     "git clone -q --bare . b.git; git clone -q --mirror . m.git; "
     "git -C b.git log --oneline >/dev/null; rm -rf b.git m.git; test ! -e b.git"},
    {"repositories made in libgit2's order", "true",
     "for r in a/.git b.git; do mkdir -p $r/objects/info $r/objects/pack $r/refs/heads $r/refs/tags $r/hooks $r/info; "
     "echo x > $r/hooks/README.sample; echo 'ref: refs/heads/main' > $r/HEAD; : > $r/config; test -f $r/config; "
     "no sh -c \"echo x > $r/config\"; printf '[core]\\n\\tfilemode = true\\n' "
     "> "
     "$r/config.lock; python3 -c 'import os, sys; os.rename(*sys.argv[1:])' $r/config.lock $r/config; "
     "git --git-dir=$r log --all; test \"$(git --git-dir=$r config core.filemode)\" = true; "
     "no mv $r/hooks/README.sample $r/hooks/pre-commit; no ln -s /bin/true $r/hooks/y.sample; no mkdir "
     "$r/hooks/y.sample; "
     "no sh -c \"echo x > $r/hooks/pre-commit\"; no sh -c \"echo x > $r/hooks/z.sample/pre-commit\"; done"},
    {"a first configuration in place is judged", "true",
     "for r in a/.git b.git; do mkdir -p $r/objects $r/refs; echo 'ref: refs/heads/main' > $r/HEAD; "
     "printf '[core]\\n\\tfsmonitor = ./x\\n' > $r/config; : > s; test ! -s $r/config; rm $r/config; "
     "printf '[core]\\n\\tbare = true\\n' > $r/config; : > s; test \"$(git config -f $r/config core.bare)\" = true; "
     "no ln -s ../t $r/l; rm $r/config; no ln -s l $r/config; done"},
    {"commondir of repositories by other names", REPO "git clone -q --bare . b.git",
     "no sh -c 'echo /tmp > b.git/commondir'; echo /tmp > x; no sh -c 'mv x b.git/commondir'; no ln x b.git/commondir; "
     "no ln -s ../x b.git/commondir; no mkdir b.git/commondir; mkdir -p c/objects; echo /tmp > c/commondir; "
     "no mkdir c/refs; mkdir f; echo /tmp > f/commondir; mkdir f/refs e; no mkdir f/objects; no mv e f/objects; "
     "git worktree add -q wt2 -b wt2; git -C wt2 status >/dev/null"},
    {"pull and fetch",
     REPO UPSTREAM "git clone -q up.git w2; cd w2; echo n > n; git add n; git commit -qm n; git push -q",
     "git branch -q -u origin/main 2>/dev/null || { git fetch -q origin; git branch -q -u origin/main; }; git pull -q; "
     "test -e n"},
    {"gc, repack, fsck", REPO, "git gc -q; git repack -adq; git fsck >/dev/null; git reflog expire --all --expire=now"},
    {"submodule add and update",
     REPO "git clone -q --bare . /var/tmp/sub-$$.git 2>/dev/null; mv /var/tmp/sub-$$.git sub.git",
     "git submodule --quiet add ./sub.git mod; git commit -qm sub; test -f mod/a; git -C mod log --oneline >/dev/null; "
     "test \"$(git config -f .gitmodules submodule.mod.path)\" = mod; git clone -q . again; cd again; "
     "git config submodule.mod.url ../sub.git; git submodule --quiet update --init; test -f mod/a; cd mod; echo z > z; "
     "git add z; git commit -qm z"},
    {"user and remote by git config", REPO,
     "git config user.name me; git config user.email me@x; git remote add r https://example.org/x.git; "
     "git remote rename r s; git remote set-url s git@example.org:x.git; git remote remove s"},
    {"apply, am, format-patch", REPO,
     "echo p >> a; git commit -qam p; git format-patch -q -1; git reset -q --hard HEAD~1; "
     "git am -q 0001-p.patch"},
    {"bisect, notes, grep, archive", REPO,
     "for i in 1 2 3 4; do echo $i >> a; git commit -qam $i; done; git bisect start "
     "HEAD HEAD~4 >/dev/null 2>&1; git bisect reset >/dev/null 2>&1; "
     "git notes add -m n; git archive HEAD | tar t >/dev/null"},
    {"sparse checkout and worktree config", REPO,
     "git sparse-checkout set d; test ! -e a || true; git sparse-checkout disable; test -e a"},
    {"a repository with .gitmodules is cloned",
     REPO "git clone -q --bare . sub.git; git submodule --quiet add ./sub.git "
          "mod; git commit -qm m; git clone -q --bare . /var/tmp/x$$.git; "
          "mv /var/tmp/x$$.git up.git",
     /* It has its name before git's next call that the guard hears of, of which the index is one (guard/rules/gitdir.c). */
     "for i in 1 2 3 4 5 6 7 8 9 10; do git clone -q up.git fresh$i; test -f fresh$i/.gitmodules; done; "
     "test -z \"$(git -C fresh1 status --porcelain)\"; cd fresh1; "
     "git rm -q --cached .gitmodules; git stash -q; git stash pop -q; git reset -q --hard; test -f .gitmodules; "
     "exec 3>>.gitmodules; mkdir while; exec 3>&-; mkdir after; rmdir while after; test -f .gitmodules"},
    {"a submodule comes and goes with a branch",
     REPO
     "git branch without; git clone -q --bare . sub.git; git submodule --quiet add ./sub.git mod; git commit -qm m; "
     "git config protocol.file.allow always",
     /* git writes .gitmodules and at once looks for it by stat(2), of which the guard does not hear. */
     "for i in 1 2 3 4 5 6 7 8 9 10; do git checkout -q --recurse-submodules without; test ! -e .gitmodules; "
     "git checkout -q --recurse-submodules main 2>said; test ! -s said; test -f .gitmodules; test -f mod/.git; done; "
     "git submodule status; rm .gitmodules; "
     /* What is read at once is what was written; a reader before the end waits for nobody; what is refused is gone. */
     "python3 -c 'import os\n"
     "for i in range(50):\n"
     "  f = os.open(\".gitmodules\", os.O_WRONLY | os.O_CREAT | os.O_EXCL)\n"
     "  assert os.stat(\".gitmodules\").st_size == 0\n"
     "  if i & 1: assert open(\".gitmodules\").read() == \"\"\n"
     "  os.write(f, b\"#%d\" % i)\n"
     "  os.close(f)\n"
     "  if not i & 1: assert open(\".gitmodules\").read() == \"#%d\" % i\n"
     "  os.mkdir(\"x\"); os.rmdir(\"x\")\n"
     "  assert open(\".gitmodules\").read() == \"#%d\" % i\n"
     "  os.unlink(\".gitmodules\")\n"
     "f = os.open(\".gitmodules\", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)\n"
     "os.write(f, b\"[submodule \\\"x\\\"]\\n\\turl = ext::sh\\n\")\n"
     "os.close(f)\n"
     "try: assert open(\".gitmodules\").read() == \"\"\n"
     "except FileNotFoundError: pass\n"
     "os.mkdir(\"x\"); assert not os.path.exists(\".gitmodules\")'; umask 027; echo '#' > .gitmodules; mkdir y; "
     "test \"$(stat -c %a .gitmodules)\" = 640; "
     /* Opened in place, without O_CREAT: what is there keeps its content and its permissions. */
     "python3 -c 'import os\n"
     "with open(\".gitmodules\", \"r+\") as f: f.write(\";\")'; mkdir z; test \"$(cat .gitmodules)\" = ';'; "
     "test \"$(stat -c %a .gitmodules)\" = 640"},
    {"a .gitmodules that is opened again and again, or held open, leaves the guard to the others", REPO,
     "no python3 -c 'import os; os.open(\".gitmodules\", os.O_RDONLY | os.O_CREAT)'; : > .gitmodules; "
     "python3 -c 'import os; [os.close(os.open(\".gitmodules\", os.O_RDONLY | os.O_CREAT)) for i in range(100)]'; "
     "no python3 -c 'import os; [os.open(\".gitmodules\", os.O_WRONLY | os.O_CREAT) for i in range(100)]; "
     "os._exit(0)'; "
     "mkfifo pipe; cat pipe & echo x > pipe; wait; echo '#' > .gitmodules; mkdir after; grep -q '#' .gitmodules; "
     /* What was closed before lands before, however many had it open. */
     "for i in $(seq 40); do no python3 -c 'import os; [os.open(\".gitmodules\", os.O_WRONLY | os.O_CREAT) for i in "
     "range(100)]'; echo \"#$i\" > .gitmodules; mkdir x; rmdir x; test \"$(cat .gitmodules)\" = \"#$i\"; done"},
    /* A call that waits for the guard finds what was written before judged: ": > after". */
    {"what .gitmodules may not say", REPO,
     "printf '[submodule \"x\"]\n\tpath = x\n\turl = ext::sh\n' > .gitmodules; : > after; no test -e .gitmodules; "
     "printf '[submodule \"x\"]\n\tpath = x\n\turl = ./y\n' > .gitmodules; : > after; test -s .gitmodules; "
     "printf '\tupdate = !cmd\n' >> .gitmodules; : > after; no grep cmd .gitmodules; no git config -f .gitmodules "
     "submodule.x.update '!x'; git config -f .gitmodules submodule.x.branch b; no ln -s x .gitmodules/y"},

    /* What must not be. */
    {"keys that name programs", REPO,
     "no git config core.fsmonitor ./x; no git config core.hooksPath h; no git config core.sshCommand x; "
     "no git config core.pager x; no git config core.editor x; no git config alias.x '!x'; no git config "
     "filter.x.clean x; no git config diff.x.textconv x; no git config merge.x.driver x; no git config "
     "credential.helper x; no git config include.path x; no git config includeIf.onbranch:main.path x; "
     "no git config gpg.program x; no git config url.x.insteadOf y; no git config remote.o.url ext::x; "
     "no git config remote.o.url /proc/$$/root/tmp/r; no git config remote.o.pushurl file://proc/$$/cwd; "
     "no git config remote.o.uploadpack x; no git config core.worktree /etc; no git config core.attributesFile x; "
     "no git config sequence.editor x; no git config protocol.ext.allow always; no git config core.gitProxy x; "
     "no git config --file .git/config core.fsmonitor x; no git config --worktree core.fsmonitor x"},
    {"hooks by every way", REPO "rm -f .git/hooks/pre-commit",
     "no cp /bin/true .git/hooks/pre-commit; no ln -s /bin/true .git/hooks/pre-commit; no ln /bin/true "
     ".git/hooks/pre-commit; echo x > h; no mv h .git/hooks/pre-commit; no ln h .git/hooks/pre-commit; no mv "
     ".git/hooks/pre-commit.sample .git/hooks/pre-commit; no mkdir .git/hooks/x; no rm .git/hooks/../hooks/none; "
     "no sh -c 'echo x > .git/hooks/pre-commit.sample'; no mkfifo .git/hooks/post-commit; cd .git/hooks; "
     "no cp /bin/true pre-commit; cd ..; no cp /bin/true hooks/pre-commit; no cp /bin/true ./hooks/../hooks/pre-push"},
    {"the configuration in place", REPO,
     "no sh -c 'echo x >> .git/config'; no sh -c 'echo x > .git/config'; no truncate -s 0 .git/config; "
     "printf '[core]\\n\\tfsmonitor = ./x\\n' > c; no mv c .git/config; no ln -f c .git/config; no cp c "
     ".git/config.worktree; no mv c .git/config.worktree; no ln -s c .git/config2/..; test -z \"$(git config "
     "core.fsmonitor)\""},
    {"a prepared directory becomes .git", "true",
     "mkdir -p x/hooks; echo '#!/bin/sh' > x/hooks/pre-commit; no mv x .git; mkdir y; printf "
     "'[core]\\nfsmonitor=x\\n' > y/config; no mv y .git; git init -q z; no mv x/hooks z/.git/; mkdir q; "
     "no ln -s ../x q/.git; no cp -r x .git"},
    {"a repository by another name", REPO,
     "git init -q --bare b.git; no cp /bin/true b.git/hooks/pre-commit; no sh -c 'printf \"[core]\\nfsmonitor=x\\n\" > "
     "b.git/config'; mkdir -p e/hooks e/refs; cp /bin/true e/hooks/pre-commit; no mkdir e/objects; mkdir -p f/objects; "
     "printf '[core]\\nfsmonitor=x\\n' > f/config; no mkdir f/refs; mkdir -p g/objects; cp -r e/hooks g/; no mv "
     "f/objects "
     "e/objects; no ln -s /tmp e/objects; no ln -s /tmp g/refs"},
    {"a link on the way to a submodule", SUBMODULES,
     SWAP "mv lib/mod m2; no ln -s /var lib/mod; no mv l lib/mod; no ln -P l lib/mod; no swap l m2/../lib; mkdir "
          "lib/mod; no swap l lib/mod; no mv -T k lib; rm -r lib; no mv -T k lib; no ln -s /var lib; no mv l lib; no "
          "ln -P l lib; mkdir lib; no swap l lib; no swap k lib; no swap lib k; mv m2 lib/mod; ln -s /var lib/other; "
          "ln -s /var lib/mod/inside; ln -s /var two2; mv k kk; mv lib lib2; mkdir lib; mv kk/l lib; no mv kk/mod lib; "
          "mkdir -p n/lib; mv n/lib n/ok; rm two/.git; rm -r two; no ln -s .git/hooks two; mkdir two"},
    {"a place of a submodule that is no place in the work tree", SUBMODULES,
     SWAP
     "for p in ../../../l ../../../l/x ../../../k/l ../../../k/mod/x ../../../.git ../../../.git/hooks ../../../k/../e "
     "../../../../x ../../.. ../x $PWD/l /var ../../../.vscode; do no set_place two $p; done; place two ../../../two; "
     "set_place two ../../../not/yet; no ln -s /var not; mkdir not; no ln -s /var not/yet; set_place two "
     "$PWD/abs/olute; place two ../../../abs/olute; no ln -s /var abs; set_place two ../../../two; ln -s /var abs; no "
     "git config core.worktree ../two; git config extensions.worktreeConfig true; no git -C two config --worktree "
     "core.worktree ../../../l; git config -f $MODULES/two/config user.name me; git -C two status >/dev/null"},
    {"a repository of a submodule that moves", SUBMODULES,
     SWAP "mv $MODULES/two $MODULES/zwei; mv $MODULES/zwei $MODULES/two; no mv $MODULES/lib/mod $MODULES/mod; no mv "
          "$MODULES/lib lib.git; no mv $MODULES m; no mv .git g; no mv $MODULES/two two.git; mkdir q; git init -q q/q; "
          "git -C q/q -c protocol.file.allow=always submodule --quiet add $PWD/sub.git s; mv q r; test -f r/q/s/a; no "
          "mv r .git/r; no mv r/q .git/modules/q; git -C r/q status >/dev/null; mkdir w; git init -q w; no mv "
          "r/q/.git/modules w/.git/modules/../modules/x; mkdir -p r/w; git init -q r/w; ln -s /var r/w/s; rm -rf "
          "r/w/.git; no mv r/q/.git r/w/.git; mv r/q/s r/q/t; no ln -s /var r/q/s"},
    {"a repository of a submodule among a repository's own files", SUBMODULES,
     SWAP
     "cd $MODULES; for o in objects info; do mkdir -p a/$o/e/objects a/$o/e/refs; git config -f a/$o/e/config "
     "core.worktree ../../../../../there; mkdir -p a/objects; no mkdir a/refs; rm -r a; mkdir -p b/$o/e/refs b/objects "
     "b/refs; mkdir b/$o/e/objects; no git config -f b/$o/e/config core.worktree ../../../../../there; rm -rf b; done"},
    {"a configuration that is held open, or has a second name, when it begins to count", REPO,
     "python3 -c '\nimport os\nevil = b\"[core]\\n\\tfsmonitor = /tmp/evil\\n\"\n"
     "for name, begin in ((\"e\", lambda: os.mkdir(\"e/objects\")), (\"f\", lambda: os.rename(\"o\", \"f/objects\")), "
     "(\"y\", lambda: os.rename(\"y\", \"z/.git\"))):\n"
     "    os.makedirs(name + \"/refs\")\n    os.makedirs(\"o\", exist_ok=True)\n    os.makedirs(\"z\", exist_ok=True)\n"
     "    fd = os.open(name + \"/config\", os.O_RDWR | os.O_CREAT, 0o644)\n    os.write(fd, b\"[core]\\n\\tbare = "
     "true\\n\")\n"
     "    os.link(name + \"/config\", name + \"2\")\n    begin()\n    os.pwrite(fd, evil, 0)\n"
     "    open(name + \"2\", \"wb\").write(evil)\n'\n"
     "no grep -r evil e/config f/config z/.git/config; grep -q bare e/config; grep -q bare f/config; grep -q bare "
     "z/.git/config; "
     "grep -q evil e2"},
    {"remotes as files", REPO,
     "git remote add o https://example.org/x; git remote remove o; rm -rf .git/branches; mkdir .git/branches; rmdir "
     ".git/branches; "
     "mkdir -p .git/branches .git/remotes r e; echo ext::sh > r/o; no cp r/o .git/branches/o; no cp r/o "
     ".git/remotes/o; "
     "no ln -s ../../r/o .git/remotes/o; no ln r/o .git/branches/o; no mv r/o .git/remotes/o; rmdir .git/branches "
     ".git/remotes; "
     "no mv -T r .git/branches; no mv -T r .git/remotes; no ln -s ../r .git/remotes; ln -s r l; no mv -T l "
     ".git/branches; "
     "no ln -P l .git/branches; mv -T e .git/remotes; git init -q .; mkdir -p c/refs c/remotes; cp r/o c/remotes; no "
     "mkdir c/objects; "
     "git init -q --bare b.git; mkdir -p b.git/remotes; no cp r/o b.git/remotes/; git update-ref refs/remotes/o/x "
     "HEAD; "
     "git branch -q branches/remotes; git branch -d -q branches/remotes; rm -rf b.git"},
    {"moving what is guarded", REPO "echo '#!/bin/sh' > .git/hooks/pre-commit",
     "no mv .git g; no mv .git/hooks h; no rm .git/hooks/pre-commit; no rm -rf .git; mkdir n; no mv --no-copy .git n/; "
     "test -f .git/hooks/pre-commit"},
    {"rebase, cherry-pick and revert, with stops", CONFLICTS,
     "git rebase -q main >/dev/null 2>&1 || true; test -d .git/rebase-merge; echo r > a; git add a; GIT_EDITOR=true "
     "git "
     "rebase --continue >/dev/null; test ! -d .git/rebase-merge; git rebase -q main~1; git rebase -q -s ort --onto "
     "main~1 main~1 other; git cherry-pick -X ours three >/dev/null 2>&1 || { git add -A; GIT_EDITOR=true git "
     "cherry-pick --continue >/dev/null 2>&1 || git cherry-pick --skip; }; git cherry-pick -x four five >/dev/null "
     "2>&1 "
     "|| { echo q > a; git add a; GIT_EDITOR=true git cherry-pick --continue >/dev/null 2>&1; } || git cherry-pick "
     "--abort; GIT_EDITOR=true git revert HEAD HEAD~1 >/dev/null 2>&1 || git revert --abort; test ! -d .git/sequencer; "
     "git checkout -q five; echo n > n; git add n; git commit -qm n; printf '#!/bin/sh\\ncat .git/rebase-merge/msgnum "
     ">>/tmp/nums' > /tmp/ed; chmod +x /tmp/ed; GIT_SEQUENCE_EDITOR='sed -i s/^pick/reword/' GIT_EDITOR=/tmp/ed git "
     "rebase -q -i HEAD~2; test \"$(echo $(cat /tmp/nums))\" = '1 2'; git reset -q --hard HEAD~1; "
     "printf '#!/bin/sh\\nrm $1; cp /tmp/todo $1' > /tmp/ed; chmod +x /tmp/ed; echo \"pick $(git rev-parse five)\" > "
     "/tmp/todo; for i in 1 2 3 4 5 6 7 8; do GIT_SEQUENCE_EDITOR=/tmp/ed git rebase -q -i five~1; done; "
     "GIT_SEQUENCE_EDITOR=true git rebase "
     "-q -i main 2>/dev/null || git rebase --abort; test ! -d .git/rebase-merge; git merge -q -s ours main -m m; git "
     "bisect start HEAD HEAD~1 >/dev/null; git bisect run true >/dev/null 2>&1; git bisect reset >/dev/null 2>&1"},
    {"programs among what git goes on with", CONFLICTS "git rebase -q main >/dev/null 2>&1 || true",
     "mv() { python3 -c 'import os, sys; os.rename(*sys.argv[1:])' \"$@\"; }; t=.git/rebase-merge/git-rebase-todo; cp "
     "$t x; echo 'exec touch /tmp/ran' >> x; no mv x $t; no cp x $t; no sh -c "
     "'echo x touch >> '$t; no ln -f x $t; echo 'x touch y' > x; no mv x $t; echo evil/../../x > x; no mv x "
     ".git/rebase-merge/strategy; no ln -s x .git/rebase-merge/strategy; echo ort > x; mv x "
     ".git/rebase-merge/strategy; "
     "echo '$(x)' > x; no mv x .git/rebase-merge/msgnum; echo '$(x)' > "
     ".git/rebase-merge/msgnum; touch x; ! grep x .git/rebase-merge/msgnum; "
     "echo refs/replace/x > x; no mv x .git/rebase-merge/head-name; no mv x .git/rebase-merge/update-refs; "
     "echo ./e > .git/rebase-merge/strategy2; no mv .git/rebase-merge/strategy2 .git/rebase-merge/strategy; rm "
     ".git/rebase-merge/strategy; mkdir .git/sequencer; printf '[options]\\n\\tstrategy = x/../../e\\n' > x; no mv x "
     ".git/sequencer/opts; printf '[options]\\n\\tevil = 1\\n' > x; no mv x .git/sequencer/opts; printf "
     "'[options]\\n\\tstrategy = ort\\n\\tedit = true\\n' > x; mv x .git/sequencer/opts; no git config -f "
     ".git/sequencer/opts options.strategy e; mkdir s; printf '[options]\\n\\tstrategy = e\\n' > s/opts; rm -r "
     ".git/sequencer; no mv s .git/sequencer; mkdir r; echo x touch > r/git-rebase-todo; no mv r rebase-merge; git "
     "rebase --abort; no git rebase -q -x true five~1; rm -rf .git/rebase-merge"},
    {"refs whose names are options", REPO,
     "no git update-ref refs/heads/--mirror HEAD; no cp .git/refs/heads/main .git/refs/heads/--mirror; no cp "
     ".git/refs/heads/main .git/refs/tags/-x; no mkdir .git/refs/remotes/-x; cp .git/refs/heads/main x; no mv x "
     ".git/refs/heads/-x; no ln x .git/refs/heads/-x; git branch a/-b; git branch a-b; git tag t-"},
    {"a rename leaves no device behind", "mkdir -p b/objects b/refs x y",
     "leaves() { python3 -c 'import ctypes, sys; sys.exit(ctypes.CDLL(None).renameat2(-100, sys.argv[1].encode(), "
     "-100, "
     "sys.argv[2].encode(), 4) != 0)' \"$@\"; }; no leaves x b/remotes; no leaves y z; test -d x; test -d y; "
     "test -z \"$(find . -type c)\"; mv x b/remotes"},
    {"rules of fixed place", REPO,
     "no cp /bin/true .git/hooks/pre-commit; no git config core.fsmonitor x; git config user.name u; git init -q sub; "
     "no mkdir .vscode; mkdir sub/.vscode",
     true},
};

int main(int argc, char **argv)
{
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++) {
        const struct scene *s = &scenes[i];
        if (argc > 1 && !strstr(s->name, argv[1]))
            continue;
        if (argc < 2 && i % 4 && box_left_to_user()) /* judged alike for all: of root's every fourth */
            continue;
        char *ws = box_workspace(), text[8192];
        struct box box = {.workspace = ws, .rules = box_default_rules, .n_rules = box_default_n};
        if (s->fixed) {
            box.rules = box_fixed_rules;
            box.n_rules = box_fixed_n;
        }
        snprintf(text, sizeof text, "cd %s; " IDENTITY "%s", ws, s->host);
        FILE *sh = popen("bash", "w");
        fputs(text, sh);
        CHECK(pclose(sh) == 0, "%s: outside", s->name);
        snprintf(text, sizeof text, IDENTITY NOT "%s", s->box);
        struct box_result r;
        int status = box_shell(&box, text, &r);
        CHECK(status == 0, "%s: status %d", s->name, status);
        if (status)
            for (size_t k = 0; k < r.n_denials && k < DENIALS_KEPT; k++)
                fprintf(stderr, "    denied %u %s: %s\n", r.denials[k].action, r.denials[k].text,
                        r.denials[k].text + strlen(r.denials[k].text) + 1);
        box_workspace_end(ws);
    }
    return check_report("guard git");
}
