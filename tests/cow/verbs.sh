#!/bin/bash
# The checks of tests/cow/run, in an empty directory of the user. Usage: verbs.sh LABEL
set -u
pinfold=${PINFOLD:?}
unset PINFOLD # a program that finds it set believes to be in a box
label=$1
top=$(pwd -P)
mkdir -p home work
export XDG_STATE_HOME=$top/state XDG_CONFIG_HOME=$top/config
attack=$(cd "$(dirname "$0")" && pwd)/attack.py
failed=0
checks=0

ok() { # what, command...
    local what=$label/${1//[!A-Za-z0-9=.-]/-} said
    shift
    checks=$((checks + 1))
    if said=$("$@" 2>&1); then
        echo "ok $what"
        return
    fi
    echo "FAIL $what: not so"
    echo "$said" | head -n 40 | sed 's/^/  /'
    failed=$((failed + 1))
}
says() { grep -qF -- "$2" <<<"$1" || { echo "not said: $2; said: $1"; false; }; }
silent() { ! grep -qF -- "$2" <<<"$1" || { echo "said: $2; all: $1"; false; }; }
box() { "$pinfold" run --no-layers "$@" 2>&1; }
# All that the host can tell of a tree but when it was read.
state_of() { (cd "$1" && find . -printf '%p %y %m %U %G %n %s %T@ %C@ %l\n' | sort; find . -type f -exec sha256sum {} + | sort; getfattr -Rd . 2>/dev/null); }
layers() { "$pinfold" layers --json; }
count() { python3 -c 'import json,sys; print(len(json.load(sys.stdin)["layers"]))'; }

# ---- the host's tree stays as it is ----
cd work || exit 1
for f in plain appended truncated emptied mapped direct reopened ioctl allocated mode times xattr owner renamed over covered linked removed name1; do
    head -c 4096 /dev/zero >"$f"
done
mkdir -p sub tree secret
ln name1 name2
echo x >tree/x
echo KEY >.env
echo OPENED >secret/s
echo kept >protected
mkfifo host.fifo
git init -q . && git add plain && git -c user.name=x -c user.email=x@x commit -qm one
python3 -c '
import socket, sys, os, select
s = socket.socket(socket.AF_UNIX); s.bind("host.sock"); s.listen()
f = os.open("host.fifo", os.O_RDONLY | os.O_NONBLOCK)
open("../ready", "w").close()
while not os.path.exists("../stop"):
    if select.select([s], [], [], 0.05)[0]: open("../connected", "w").close(); break
if os.read(f, 10): open("../piped", "w").close()
' &
server=$!
while [ ! -e ../ready ]; do sleep 0.02; done
before=$(state_of .)
out=$(box --cow -- python3 - "$XDG_STATE_HOME" <"$attack")
touch ../stop
wait $server
ok "attacks ran to their end" says "$out" "DONE"
ok "the tree of the host is as it was" diff <(echo "$before") <(state_of .)
ok "no connection to the host's socket" test ! -e ../connected
ok "no byte in the host's FIFO" test ! -e ../piped
ok "the layer cannot be seen or made in" silent "$out" "SEEN"
ok "nor written to" silent "$out" "MADE"
ok "nor the workspace be uncovered" silent "$out" "UNMOUNTED"
# Were these refused, the comparison would prove nothing.
for what in write append truncate mmap reopen chmod utime setxattr rename replace unlink mkdir; do
    ok "the box itself can: $what" silent "$(grep "^$what:" <<<"$out")" "$what:"
done
ok "there is a layer" test "$(layers | count)" = 1
ok "how many" says "$out" "must be applied by name"
ok "what to do next" says "$out" "pinfold apply"
"$pinfold" discard >/dev/null 2>&1
ok "discard removes it" test "$(layers | count)" = 0
ok "and leaves nothing" test -z "$(ls "$XDG_STATE_HOME/pinfold/layers")"
# A link in the layer would be the host's after apply.
# shellcheck disable=SC2016 # for the shell in the box
out=$(box --cow=nolinks --mount "$PWD/sub:$PWD/sub:nolinks" -- sh -c 'ln -s /etc sub/l; mkdir d; ln -s /etc d/l; mv d sub/; ln sub/../d/l sub/h; echo "LINKS:$(find sub -type l):"; false')
ok "no link in a tree without links" says "$out" "LINKS::"
ok "guard off would not change that" silent "$out" "--guard off"
"$pinfold" discard nolinks >/dev/null

# ---- hides and protected names hold in the layer ----
out=$(box --cow --hide secret --hide .env --protect protected -- sh -c 'cat .env; cat secret/s; mv secret open; cat open/s; echo EVIL >protected; mv protected p2; ln .env e2; cat e2; cat protected')
ok ".env stays hidden" silent "$out" "KEY"
ok "a hidden directory stays hidden" silent "$out" "OPENED"
ok "what is protected cannot be changed" says "$out" "kept"
ok "not even in the layer" silent "$out" "EVIL"
"$pinfold" discard >/dev/null 2>&1
mkdir -p ../other
out=$(box --cow --rw ../other -- sh -c 'echo evil >../other/.envrc; mkdir -p ../other/.git/hooks; echo fine >../other/fine')
ok "guarded names elsewhere stay guarded" test ! -e ../other/.envrc
ok "and other names can be written" test -e ../other/fine

# ---- guarded names can be made in the layer, and wait there ----
mkdir -p conf .husky
ln -s conf .vscode
git config core.hooksPath .husky
out=$(box --cow=waits -- sh -c '
    echo 1 >.envrc && mkdir .idea && echo 1 >.idea/workspace.xml && echo 1 >.git/hooks/pre-commit && git config alias.x "!true" &&
    echo 1 >conf/settings.json && echo 1 >.husky/pre-commit && ln -s plain .gitmodules && ln -s sub .github && ln -s .git/hooks in &&
    rm -r tree && ln -s sub tree && git init -q --bare fixture && ln .envrc twin && mv .envrc .envrc2 && mv .envrc2 .envrc && mkdir hg && mkdir hg/.hg hg/.vscode && echo 1 >hg/.vscode/settings.json &&
    echo free >fine && touch .git/config.worktree && echo ALL; grep -o "upperdir=[^,]*" /proc/self/mountinfo')
ok "no name is refused in it" says "$out" "ALL"
ok "nothing of it reaches the host" test ! -e .envrc -a ! -e .git/hooks/pre-commit -a ! -e conf/settings.json -a ! -e fine
upper=$(grep -o "upperdir=.*/layers/.*" <<<"$out")
ok "the box is told where its layer was" test -n "$upper"
ok "but not where it is" test ! -e "${upper#upperdir=}"
told=$("$pinfold" diff waits)
for what in ".envrc (guarded name)" ".idea/workspace.xml (guarded name" "conf/settings.json (guarded name" ".husky/pre-commit (guarded name" \
    "fixture/config (guarded name" "fixture/hooks/ (guarded name" "hg/.vscode/settings.json (guarded name" \
    ".github -> sub (link in place of" "in -> .git/hooks (link in place of" "tree -> sub (link in place of"; do
    ok "told first: $what" says "$(sed '/^Changes:/,$d' <<<"$told")" "$what"
done
"$pinfold" apply waits --all >/dev/null 2>&1
ok "a refusal is the status" test $? = 1
ok "what is not guarded was applied" test -e fine -a -e twin
for what in .envrc .idea/workspace.xml .git/hooks/pre-commit conf/settings.json .husky/pre-commit .gitmodules .github in fixture/config fixture/hooks hg/.vscode/settings.json; do
    ok "not without its name: $what" test ! -e $what -a ! -L $what
done
ok "the configuration of git stays" silent "$(cat .git/config)" "alias"
ok "a directory stays one" test -d tree -a ! -L tree
for what in .envrc conf/settings.json .github; do
    ok "with its name: $what" "$pinfold" apply waits $what
    ok "it is there: $what" test -e $what -o -L $what
done
rm -rf .envrc conf .vscode .husky .github fine twin fixture hg .idea
git config --unset core.hooksPath
out=$(box --cow=waits -- sh -c 'grep -o "upperdir=[^,]*" /proc/self/mountinfo; cat .idea/workspace.xml')
ok "taken up again it is where it was said to be to nobody" test ! -e "${upper#upperdir=}"
ok "with what waits" says "$out" "1"
"$pinfold" discard waits >/dev/null 2>&1

# ---- what the command sees, and what is kept ----
out=$(box --cow -- sh -c 'echo two >>plain; git add plain; git -c user.name=x -c user.email=x@x commit -qm two; git log --oneline | wc -l')
ok "git works in it" says "$out" "2"
ok "the host has one commit" test "$(git log --oneline | wc -l)" = 1
"$pinfold" discard >/dev/null 2>&1
out=$(box --cow -- true)
ok "a layer without changes is removed" test -z "$(ls "$XDG_STATE_HOME/pinfold/layers")" -a -z "$out"
box --cow=again -- sh -c 'echo 1 >again' >/dev/null
out=$(box --cow=again -- sh -c 'cat again; echo 2 >>again')
ok "a named layer is taken up again" says "$out" "1"
ok "not in the workspace" test ! -e again
json=$("$pinfold" run --no-layers --json --cow=again -- sh -c 'rm sub -r; echo x >new')
ok "the result counts" python3 -c '
import json, sys
l = json.loads(sys.argv[1])["layer"]
sys.exit(not (l["kept"] and l["new"] == 2 and l["deleted"] >= 1 and len(l["id"]) == 16))' "$json"
ok "the list names it" says "$("$pinfold" layers)" "(again)"
"$pinfold" apply again new >/dev/null 2>&1
ok "apply writes what was named" test -e new -a ! -e again -a -d sub
rm -f new

# ---- one box a layer ----
"$pinfold" run --no-layers -q --cow=again -- sh -c 'echo begun; while [ -d . ] && [ ! -e gone ]; do sleep 0.05; done' >../begun 2>/dev/null &
running=$!
i=0
while ! grep -q begun ../begun && [ $((i += 1)) -lt 1200 ]; do sleep 0.05; done # its layer is used by then, and mounted
ok "a second box is refused" says "$(box --cow=again -- true)" "is used by a running box"
ok "so is discard" says "$("$pinfold" discard again 2>&1)" "is used by a running box"
ok "and apply" says "$("$pinfold" apply again --all 2>&1)" "is used by a running box"
kill -9 $running
wait $running 2>/dev/null
i=0
while "$pinfold" layers | grep -q ' used ' && [ $((i += 1)) -lt 1200 ]; do sleep 0.05; done
ok "killed: it is not on the disk yet" says "$("$pinfold" layers)" "unsynced"
ok "its owner can copy and remove it" cp -a "$XDG_STATE_HOME/pinfold/layers" ../copied
ok "all of it" rm -rf ../copied
ok "but whole" says "$(box --cow=again -- cat again)" "2"
ok "and then kept" says "$("$pinfold" layers)" " kept "

# ---- one that a stop of the machine may have damaged ----
record=$XDG_STATE_HOME/pinfold/layers/$(layers | python3 -c 'import json,sys; print(json.load(sys.stdin)["layers"][0]["id"])')/record
sed -i 's/"boot":"[^"]*"/"boot":"another"/; s/"synced":true/"synced":false/' "$record"
ok "it is named" says "$("$pinfold" layers)" "doubtful"
ok "no box takes it up" says "$(box --cow=again -- true)" "may be damaged"
ok "it is not applied whole" says "$("$pinfold" apply again --all 2>&1)" "may be damaged"
"$pinfold" discard again >/dev/null 2>&1
ok "discard removes it, too" test "$(layers | count)" = 0

# ---- what becomes of it, said beforehand ----
out=$(box --cow --cow-then discard -- touch thrown)
ok "discarded" test ! -e thrown -a "$(layers | count)" = 0
out=$(box --cow --cow-then apply -- sh -c 'touch failed; exit 3')
ok "the command's status" test $? = 3
ok "a failed command's layer is kept" test ! -e failed -a "$(layers | count)" = 1
"$pinfold" discard >/dev/null 2>&1
out=$(box --cow --cow-then apply -- touch landed)
ok "applied" test $? = 0 -a -e landed
out=$(box --cow --cow-then apply -- sh -c 'mkfifo waits; touch lands')
ok "what must be named waits, and the status says so" test $? = 125 -a ! -e waits -a -e lands
for id in $(layers | python3 -c 'import json,sys; print(*(l["id"] for l in json.load(sys.stdin)["layers"]))'); do "$pinfold" discard "$id" >/dev/null 2>&1; done
ok "no third word" says "$(box --cow --cow-then land -- true)" "use ask, keep, apply or discard"
ok "no layer, nothing to do" says "$(box --cow-then keep -- true)" "no layer without --cow"

# ---- directories of the host can be renamed ----
mkdir -p from/deep/er from/mode many empty full
for f in from/1 from/deep/2 from/deep/er/3 full/x; do echo "$f" >$f; done
ln -s 1 from/link
chmod 710 from/mode
for f in from/h1 from/deep/solo; do echo "$f" >$f; done
ln from/h1 from/deep/h2 && ln from/h1 from/deep/er/h3 && ln from/deep/solo elsewhere
touch -d 2001-02-03 from/deep
(cd many && seq 1 5100 | xargs touch)
python3 -c 'import os; os.setxattr("from/deep", "user.note", b"kept")'
git add from && git -c user.name=x -c user.email=x@x commit -qm from
cat >../renames.py <<'EOF'
import os
def attempt(what, act):
    try:
        act()
        print(what, "done")
    except OSError as e:
        print(what, e.strerror)
os.unlink("from/deep/er/3")
os.mkdir("from/made")
open("from/deep/er/own", "w").close()
os.link("from/deep/er/own", "outside")
attempt("rename", lambda: os.rename("from", "to"))
print("left", os.path.lexists("from"), "old", open("to/deep/2").read().strip(), "gone", os.path.exists("to/deep/er/3"), "link", os.readlink("to/link"))
with open("to/deep/h2", "a") as f:
    f.write("more\n")
print("linked", len({os.stat(f"to/{n}").st_ino for n in ("h1", "deep/h2", "deep/er/h3")}), open("to/h1").read().split(), os.stat("to/deep/er/h3").st_nlink)
print("mode %o" % (os.stat("to/mode").st_mode & 0o7777), "time", int(os.stat("to/deep").st_mtime) // 86400, "note", os.getxattr("to/deep", "user.note"))
with open("to/deep/solo", "a") as f:
    f.write("moved\n")
print("apart", open("elsewhere").read().split(), open("to/deep/solo").read().split(), os.stat("to/deep/solo").st_nlink)
print("own", os.stat("to/deep/er/own").st_ino == os.stat("outside").st_ino, os.stat("outside").st_nlink)
attempt("onto a full one", lambda: os.rename("tree", "full"))
attempt("onto an empty one", lambda: os.rename("to", "empty"))
attempt("onto a file", lambda: os.rename("tree", "plain"))
attempt("too many", lambda: os.rename("many", "more"))
print("whole", len(os.listdir("many")), os.path.lexists("more"))
EOF
out=$(box --cow -- python3 - <../renames.py)
for what in "rename done" "left False old from/deep/2 gone False link 1" "mode 710" "linked 1 ['from/h1', 'more'] 3" "time 11356" "note b'kept'" "apart ['from/deep/solo'] ['from/deep/solo', 'moved'] 1" "own True 2" "onto a full one Directory not empty" \
    "onto an empty one done" "onto a file Not a directory" "too many Invalid cross-device link" "whole 5100 False"; do
    ok "renamed directories: $what" says "$out" "$what"
done
ok "none of it on the host" test -e from/deep/er/3 -a ! -e to
told=$("$pinfold" diff --names)
ok "the diff names both places" test "$(grep -cx -e "- from/deep/2" -e "+ empty/deep/2" <<<"$told")" = 2
"$pinfold" apply --all >/dev/null
ok "applied" test -e empty/deep/2 -a ! -e from -a "$(stat -c %a empty/mode)" = 710
ok "names of one file are that in the workspace, too" test "$(stat -c '%h %i' empty/h1 empty/deep/h2 empty/deep/er/h3 | sort -u)" = "3 $(stat -c %i empty/h1)" -a "$(cat elsewhere)" = from/deep/solo
ok "also one outside that the box has made" test "$(stat -c '%h %i' outside)" = "2 $(stat -c %i empty/deep/er/own)"
ok "and one that the host has outside is a file of its own" test "$(stat -c %i elsewhere)" != "$(stat -c %i empty/deep/solo)" -a "$(tail -n 1 empty/deep/solo)" = moved
"$pinfold" undo >/dev/null
ok "and taken back" test -e from/deep/er/3 -a ! -e empty/deep -a "$(stat -c %h from/h1)" = 3
"$pinfold" discard >/dev/null 2>&1
out=$(box --cow -- sh -c 'mv from by-mv && mv by-mv from && git mv from moved && git status --porcelain; stat -c "links %h" moved/h1 moved/deep/solo; cat moved/deep/solo elsewhere')
ok "git mv of a directory" says "$out" "R  from/deep/2 -> moved/deep/2"
ok "after mv, with its links" says "$out" "links 3
links 1
from/deep/solo
from/deep/solo"
"$pinfold" discard >/dev/null 2>&1
out=$(box --cow --hide from/deep/2 -- python3 -c 'import os; os.rename("from", "to")')
ok "not with a hidden name in it" says "$out" "PermissionError"
if [ "$(id -u)" = 0 ]; then
    touch from/deep/er/foreign && chown 12345 from/deep/er/foreign
    out=$(box --cow -- sh -c 'python3 -c "import os; os.rename(\"from\", \"to\")"; find from -type f | wc -l; ls -d to')
    ok "a file that cannot be moved" says "$out" "Value too large"
    ok "then all is as it was" says "$out" "8"
    ok "and nothing elsewhere" says "$out" "cannot access 'to'"
fi
for id in $(layers | python3 -c 'import json,sys; print(*(l["id"] for l in json.load(sys.stdin)["layers"]))'); do "$pinfold" discard "$id" >/dev/null 2>&1; done
git rm -rq --cached from; rm -rf from many empty full

# ---- a session writes to one layer, whoever writes in it ----
session() { "$pinfold" "$@" 2>&1; }
echo host >inside
ok "a session with a layer" "$pinfold" session start --no-layers --cow s
ok "a command in it" session exec s -- sh -c 'echo box >inside; echo 1 >by-exec; echo 1 >.envrc'
ok "a shell of it" session exec --shell a s 'echo 1 >by-shell'
"$pinfold" exec --detach s -- sh -c 'echo 1 >by-job.new; mv by-job.new by-job' >/dev/null
i=0
while ! session cat "s:$PWD/by-job" >/dev/null && [ $((i += 1)) -lt 1200 ]; do sleep 0.05; done
ok "the file API writes there" session write "s:$PWD/by-api" <<<1
ok "and reads there" says "$(session cat "s:$PWD/inside")" "box"
ok "all is one view" says "$(session exec s -- sh -c 'cat by-exec by-shell by-job by-api | wc -l')" "4"
ok "one more command of run" says "$(box --session s -- cat inside)" "box"
ok "nothing of it is in the workspace" test "$(cat inside)" = host -a -z "$(ls by-* 2>/dev/null)" -a ! -e .envrc
told=$("$pinfold" diff)
for what in by-exec by-shell by-job by-api inside .envrc; do ok "told while it lives: $what" says "$told" " $what"; done
ok "the list of sessions names it" says "$(session session list)" "$(layers | python3 -c 'import json,sys; print(json.load(sys.stdin)["layers"][0]["id"][:8])')"
ok "nobody removes it" says "$("$pinfold" discard 2>&1)" "is used by a running box"
ok "another layer for it is refused" says "$(box --session s --cow=other -- true)" "another copy-on-write layer"
ok "what becomes of it is not one command's" says "$(box --session s --cow --cow-then apply -- true)" "is the session's"
"$pinfold" session stop s
ok "it is kept when the session has ended" says "$("$pinfold" layers)" " kept "
"$pinfold" apply --all >/dev/null 2>&1
ok "and applied" test "$(cat inside)" = box -a -e by-job -a -e by-api -a ! -e .envrc
rm -f by-* inside
"$pinfold" discard >/dev/null 2>&1

# ---- applied while its session lives ----
mkdir -p alive/sub && cd alive && git init -q . && echo one >a && echo two >sub/b && echo 3 >gone && git add . && git -c user.name=x -c user.email=x@x commit -qm one || exit 1
"$pinfold" session start --no-layers --cow s
id=$(layers | python3 -c 'import json,sys; print(json.load(sys.stdin)["layers"][0]["id"])')
upper_of() { (cd "$XDG_STATE_HOME/pinfold/layers/$id" && state_of "$(echo upper.*)"); }
session exec s -- sh -c 'echo box >>a; rm gone; mkdir -p new/deep; echo 1 >new/x; echo 2 >new/deep/y; echo 4 >later; git add -A; git -c user.name=x -c user.email=x@x commit -qm box' >/dev/null
"$pinfold" exec --detach s -- sh -c 'exec 3>>a; echo ready >held; while [ ! -e go ]; do sleep 0.02; done; echo held >&3; echo done >held' >/dev/null
i=0
while ! session cat "s:$PWD/held" 2>/dev/null | grep -q ready && [ $((i += 1)) -lt 3000 ]; do sleep 0.02; done
before=$(upper_of)
out=$("$pinfold" apply a gone new .git 2>&1)
ok "applied while the session lives" test $? = 0 -a "$(tail -n 1 a)" = box -a ! -e gone -a "$(cat new/deep/y)" = 2 -a "$(git log --oneline | wc -l)" = 2
ok "the layer itself is not touched" test "$(upper_of)" = "$before"
ok "what was not named waits" test ! -e later
ok "what has landed is no change any more" says "$("$pinfold" diff --names | grep -v '[.]git')" "+ held
+ later"
out=$(session exec s -- sh -c 'rm new/x; rm -r new/deep; ls new | wc -l; cat a; git status --porcelain')
ok "the session goes on from there" says "$out" "$(printf '0\none\nbox')"
ok "what it removes then is gone, too" test "$(session exec s -- sh -c 'ls new | wc -l')" = 0
ok "as the next diff says" says "$("$pinfold" diff --names)" "- new/deep/y"
"$pinfold" apply new >/dev/null
ok "and the next apply" test -d new -a ! -e new/x -a ! -e new/deep
session write "s:$PWD/go" <<<1
i=0
while ! session cat "s:$PWD/held" 2>/dev/null | grep -q "done" && [ $((i += 1)) -lt 3000 ]; do sleep 0.02; done
ok "a file held open meanwhile is the layer's" test "$(tail -n 1 a)" = box -a "$(session cat "s:$PWD/a" | tail -n 1)" = held
echo host >>sub/b
session exec s -- sh -c 'cat sub/b; echo 5 >>sub/b' >/dev/null
ok "what the host changed is in the way" says "$("$pinfold" apply sub/b 2>&1)" "the host changed it"
"$pinfold" apply a >/dev/null && "$pinfold" undo >/dev/null
ok "undo while it lives" test "$(tail -n 1 a)" = box
ok "the session's stays" test "$(session exec s -- tail -n 1 a)" = held
"$pinfold" session stop s
"$pinfold" apply a >/dev/null 2>&1
ok "the rest lands when it has ended" test "$(tail -n 1 a)" = held
"$pinfold" discard >/dev/null 2>&1
"$pinfold" session start --no-layers --cow=turn s && session exec s -- touch turn && "$pinfold" session stop s
i=0
while "$pinfold" layers | grep -q ' used ' && [ $((i += 1)) -lt 1200 ]; do sleep 0.05; done
"$pinfold" run --no-layers -q --cow=turn -- sh -c 'while [ ! -e gone ]; do sleep 0.05; done' >/dev/null 2>&1 &
running=$!
i=0
while ! "$pinfold" layers | grep -q ' used ' && [ $((i += 1)) -lt 1200 ]; do sleep 0.05; done
ok "a box that is no session's keeps its layer to itself" says "$("$pinfold" apply turn --all 2>&1)" "is used by a running box"
kill $running
wait $running 2>/dev/null
i=0
while "$pinfold" layers | grep -q ' used ' && [ $((i += 1)) -lt 1200 ]; do sleep 0.05; done
cd .. && "$pinfold" discard turn >/dev/null 2>&1
rm -rf alive
ok "a session without one" "$pinfold" session start --no-layers t
ok "says so" says "$(box --session t --cow -- true)" "without a copy-on-write layer"
ok "and is recreated with one" box --session t --cow=kept --recreate -- touch fresh
"$pinfold" session stop t
ok "which has a name" says "$("$pinfold" layers)" "(kept)"
"$pinfold" session start --no-layers --cow=kept t
ok "by which it is taken up" session exec t -- test -e fresh
"$pinfold" session stop t
"$pinfold" discard kept >/dev/null 2>&1
"$pinfold" session start --no-layers --cow t && "$pinfold" session stop t
ok "without a change there is none" test "$(layers | count)" = 0

# ---- a layer that stands on another ----
drop_all() { # those that stand on others first
    for round in 1 2 3 4; do
        for id in $(layers | python3 -c 'import json,sys; print(*(l["id"] for l in json.load(sys.stdin)["layers"]))'); do "$pinfold" discard "$id" >/dev/null 2>&1; done
    done
    ok "all layers can be removed" test "$round" = 4 -a "$(layers | count)" = 0
}
mkdir -p st/was && cd st && git init -q . && echo one >a && echo two >b && echo three >was/x && ln a a2 && git add . && git -c user.name=x -c user.email=x@x commit -qm one || exit 1
commit='git add -A && git -c user.name=x -c user.email=x@x commit -qm'
box --cow=base -- sh -c "echo base >>a; echo new >y; rm -r was; mkdir only; echo o >only/o; $commit base" >/dev/null
base=$(layers | python3 -c 'import json,sys; print([l["id"] for l in json.load(sys.stdin)["layers"] if l["name"] == "base"][0])')
lower() { (cd "$XDG_STATE_HOME/pinfold/layers/$base" && state_of "$(echo upper.*)"; cat record; echo); }
before=$(lower)
out=$(box --cow=top --cow-from base -- sh -c "grep ' $PWD ' /proc/self/mountinfo; cat a y; ls was; git log --oneline | wc -l; echo top >>a; rm y; mkdir was; echo z >was/z; echo t >t; rm only/o; python3 -c 'import os; os.rename(\"only\", \"mine\")'; $commit top")
ok "its end counts its own changes" says "$out" "1 changed, "
ok "the box sees the lower layer" says "$out" "$(printf 'one\nbase\nnew')"
ok "what it removed is gone" says "$out" "cannot access 'was'"
ok "with its commits" says "$out" "2"
ok "it does not learn where that is" silent "$out" "upper.$(echo "$XDG_STATE_HOME/pinfold/layers/$base"/upper.* | sed 's/.*upper\.//')"
ok "the lower layer is as it was" diff <(echo "$before") <(lower)
ok "the list says on which it stands" says "$("$pinfold" layers)" "on ${base:0:8}  (top)"
told=$("$pinfold" diff top --names)
ok "its diff tells its own changes alone" diff <(echo "$told" | grep -v '[.]git' | sort) <(printf '%s\n' '+ mine' '+ t' '+ was' '+ was/z' '- only' '- only/o' '- y' '~ a' | sort)
ok "and its own commits" says "$("$pinfold" diff top | grep git:)" "1 new commit"
"$pinfold" diff top --patch >../top.patch 2>/dev/null
ok "in the patch, too" says "$(cat ../top.patch)" "$(printf ' base\n+top')"
ok "the lower layer cannot be removed" says "$("$pinfold" discard base 2>&1)" "stands on it"
ok "nor written to by a box" says "$(box --cow=base -- true)" "stands on it"
out=$("$pinfold" apply top --all 2>&1)
ok "what rests on what has not landed is refused" says "$out" "a: layer ${base:0:8}, on which this one stands, changes it, too"
ok "also the repository" says "$out" ".git: layer ${base:0:8}"
ok "and what the workspace never had" says "$out" "y: layer ${base:0:8}"
ok "other paths land" test "$(cat t)" = t -a "$(cat a)" = one
"$pinfold" undo top >/dev/null
"$pinfold" apply base --all >/dev/null 2>&1
git status >/dev/null
ok "the lower one lands" test "$(cat y)" = new -a ! -e was -a "$(git log --oneline | wc -l)" = 2
ok "then nothing is in the way" silent "$("$pinfold" diff top)" "conflict"
out=$("$pinfold" apply top --all 2>&1)
ok "and it lands whole" test $? = 0 -a "$(cat was/z)" = z -a ! -e y -a ! -e only -a "$(tail -n 1 a)" = top -a "$(git log --oneline | wc -l)" = 3
ok "staged as it was" test -z "$(git status --porcelain -uno)"
ok "then it changes nothing any more" test "$("$pinfold" diff top --names | grep -cv '[.]git')" = 0
"$pinfold" undo top >/dev/null
ok "undo goes back to the lower one's" test "$(tail -n 1 a)" = base -a "$(cat y)" = new -a "$(git log --oneline | wc -l)" = 2
echo host >>a
ok "what the host changes then is in the way" says "$("$pinfold" apply top a 2>&1)" "a: "
ok "and stays" test "$(tail -n 1 a)" = host
box --cow=top -- sh -c 'echo more >>t' >/dev/null
ok "taken up it stands where it stood" says "$("$pinfold" diff top)" ", on layer $base"
ok "and nowhere else" says "$(box --cow=top --cow-from top -- true)" "stands on layer $base, not on layer"
box --cow=third --cow-from top -- sh -c 'cat t a >u' >/dev/null
ok "a third one on it" says "$(box --cow=third -- cat u)" "$(printf 't\nmore\none\nbase\ntop')"
ok "has its own alone" says "$("$pinfold" diff third --names)" "+ u"
out=$(box --cow-from third -- cat u)
ok "one without a name and change is removed" says "$("$pinfold" layers)" "(third)"
ok "a layer that is none" says "$(box --cow-from nowhere -- true)" "there is no layer 'nowhere'"
ok "of another workspace" says "$(cd "$top/other" && box --cow-from base -- true)" "is of the workspace"
"$pinfold" session start --no-layers --cow-from third s && session exec s -- sh -c 'cat u >v'
ok "a session on it" says "$(session cat "s:$PWD/v")" "more"
ok "while it lives the lower one can land" says "$("$pinfold" apply third u 2>&1)" "applied u"
ok "but does not go" says "$("$pinfold" discard third 2>&1)" "stands on it"
ok "it is not another's" says "$(box --session s --cow-from base -- true)" "another copy-on-write layer"
"$pinfold" session stop s
# One below that has gone, which nothing of pinfold's does.
mv "$XDG_STATE_HOME/pinfold/layers/$base" ../gone-base
ok "one below that has gone is named" says "$(box --cow=top -- true)" "cannot be read any more"
ok "in the diff, too" says "$("$pinfold" diff top 2>&1)" "layer $base"
mv ../gone-base "$XDG_STATE_HOME/pinfold/layers/$base"
cd .. && drop_all
chmod -R u+w st && rm -rf st

# ---- a repository that lies elsewhere ----
git worktree add -q "$top/linked" && cd "$top/linked" || exit 1
out=$(box --cow -- sh -c 'echo 2 >>plain; git diff --stat; git add plain')
ok "a linked work tree is told of" says "$out" "the repository of this workspace lies outside of it ($top/work/.git/worktrees/linked)"
ok "git looks" says "$out" "1 file changed"
ok "and does not stage" says "$out" "index.lock"
"$pinfold" apply --all >/dev/null
ok "its files land" says "$(git status --porcelain)" " M plain"
ok "a session's start says so, too" says "$("$pinfold" run --no-layers --cow --session l -- true 2>&1)" "lies outside of it"
"$pinfold" session stop l
"$pinfold" discard >/dev/null 2>&1
cd "$top/work" && git worktree remove --force "$top/linked" && git branch -q -D linked
ok "one in its place is not" silent "$(box --cow -- true)" "lies outside"

# ---- layers that are done with ----
mkdir prune && cd prune && git init -q . && echo 1 >a && git add . && git -c user.name=x -c user.email=x@x commit -qm one || exit 1
"$pinfold" run --no-layers -q --cow=none -- true 2>/dev/null
box --cow=finished -- sh -c 'echo 2 >>a; git -c user.name=x -c user.email=x@x commit -qam two' >/dev/null
box --cow=waits -- sh -c 'echo 3 >>a' >/dev/null
box --cow=over --cow-from waits -- true >/dev/null
box --cow=staged -- sh -c 'echo 5 >b; git add b; rm b' >/dev/null
"$pinfold" apply finished --all >/dev/null
prune() { "$pinfold" layers prune "$@" 2>&1; }
at() { # NAME TIME: as if the layer had been used and applied then
    local dir
    dir=$XDG_STATE_HOME/pinfold/layers/$(layers | python3 -c 'import json,sys; print(*(l["id"] for l in json.load(sys.stdin)["layers"] if l["name"] == sys.argv[1]))' "$1")
    touch -d "$2" "$dir/record"
    [ ! -e "$dir/applied" ] || touch -d "$2" "$dir/applied"
}
out=$(prune --dry-run)
ok "what is empty would go" says "$out" "(none)"
ok "also on another" says "$out" "(over)"
ok "what can be taken back stays" silent "$out" "(finished)"
ok "what waits stays" silent "$out" "(waits)"
ok "what is only staged stays" silent "$out" "(staged)"
ok "nothing has gone" test "$(layers | count)" = 5
at finished "2 days ago"
ok "what has landed goes" says "$(prune)" "landed"
ok "the rest does not" test "$(layers | python3 -c 'import json,sys; print(*sorted(l["name"] for l in json.load(sys.stdin)["layers"]))')" = "staged waits"
at waits "8 days ago"
ok "an age" says "$(prune --older-than 9d; layers)" '"waits"'
box --cow=over --cow-from waits -- touch c >/dev/null
ok "not below another that stays" silent "$(prune --older-than 7d)" "(waits)"
at over "8 days ago"
ok "with that one" test "$(prune --older-than 7d | grep -c -e '(over)' -e '(waits)')" = 2
ok "no age" says "$(prune --older-than 7)" "write a time"
ok "for prune alone" says "$("$pinfold" layers --dry-run 2>&1)" "are for prune"
cd .. && drop_all && rm -rf prune

# ---- an agent by name ----
mkdir -p "$top/agents-home/.local/bin"
cat >"$top/agents-home/.local/bin/claude" <<'EOF'
#!/bin/sh
[ "$1" = --version ] && { echo "2.0.0 (Claude Code)"; exit; }
echo 1 >by-agent && echo 1 >.envrc && echo "GIVEN $*"
EOF
chmod 755 "$top/agents-home/.local/bin/claude"
out=$(HOME=$top/agents-home PATH=$top/agents-home/.local/bin:$PATH "$pinfold" claude --cow -p word 2>&1)
ok "an agent in a layer" says "$out" "GIVEN"
ok "the option is not the agent's" silent "$(grep GIVEN <<<"$out")" "cow"
ok "its changes wait" test ! -e by-agent -a ! -e .envrc
ok "which the start says" says "$out" "in a copy-on-write layer"
ok "and diff" says "$("$pinfold" diff)" "by-agent"
"$pinfold" discard >/dev/null 2>&1

# ---- refused with a sentence ----
ok "another engine" says "$(box --cow --engine bwrap -- true)" "only the engine native"
ok "an engine that has no image yet" says "$(box --cow --engine docker -- true)" "only the engine native supports that, not docker (use --engine native"
ok "a read-only workspace" says "$(box --cow --ro . -- true)" "it is read-only in this box"
ok "a writable tree around it" says "$(box --cow --rw "$top" -- true)" "past its layer"
ok "a writable mount of a part" says "$(box --cow --mount "$top/work/sub:/mnt:rw" -- true)" "past its layer"
ok "a workspace with the state in it" says "$(XDG_STATE_HOME=$PWD/state box --cow -- true)" "state directory"
rm -rf state
ok "a name that is none" says "$(box --cow=a/b -- true)" "1 to 64 letters"
ok "a name like an ID" says "$(box --cow=abc -- true)" "looks like the ID"
ok "an empty name" says "$(box --cow= -- true)" "needs a name"
box --cow=elsewhere -- touch x >/dev/null
ok "a layer of another workspace" says "$(cd "$top/other" && box --cow=elsewhere -- true)" "is of the workspace"
if [ "$(id -u)" = 0 ]; then
    mount -t tmpfs none sub
    ok "a mount below it" says "$(box --cow -- true)" "mounted below"
    umount sub
    chmod 0755 ../work
fi
"$pinfold" discard elsewhere >/dev/null 2>&1
ok "no refusal leaves a layer" test -z "$(ls "$XDG_STATE_HOME/pinfold/layers")"
# ---- names: one of them is one layer, and never another's path ----
mkdir -p "$top/named" && cd "$top/named" || exit 1
for _ in 1 2 3 4; do "$pinfold" run --no-layers -q --cow=race -- sleep 0.3 >/dev/null 2>&1 & done
wait
ok "who asks for one name at once gets one layer" test "$(layers | python3 -c 'import json,sys; print([l["name"] for l in json.load(sys.stdin)["layers"]].count("race"))')" = 1
"$pinfold" run --no-layers -q --cow=one -- sh -c 'echo 1 >one.txt'
"$pinfold" run --no-layers -q --cow=two -- sh -c 'mkdir one; echo 2 >one/x'
"$pinfold" apply two --all >/dev/null
out=$("$pinfold" undo one 2>&1)
ok "undo of a layer that was not applied says so" says "$out" "there is no apply to take back"
ok "and takes back no other layer's" test -e one/x
out=$("$pinfold" diff nosuchname 2>&1; echo "status $?")
ok "a name that is no layer's is told" says "$out" "nosuchname: no layer has this name"
ok "with a status" says "$out" "status 1"

# ---- a project that was moved, a workspace that is gone, a record that cannot be read ----
mkdir -p "$top/before" && cd "$top/before" || exit 1
export XDG_STATE_HOME=$top/moved
box -q --cow=stays -- sh -c 'mkdir in; echo new >in/new' >/dev/null
id=$(basename "$XDG_STATE_HOME"/pinfold/layers/????????????????)
mv "$top/before" "$top/after" && mkdir "$top/after/below" && cd "$top/after/below" || exit 1
out=$("$pinfold" diff 2>&1; echo "status $?")
ok "a moved project names its layer" says "$out" "layer ${id%????????} began when this directory was '$top/before'"
ok "and says what helps" says "$out" "move it back"
ok "with the status of no layer" says "$out" "status 4"
cd "$top" || exit 1
out=$("$pinfold" diff stays 2>&1; echo "status $?")
ok "a layer whose workspace is gone is found by its name" says "$out" "its workspace '$top/before' is not there any more"
out=$("$pinfold" apply "${id%????????}" --all 2>&1)
ok "and by its ID" says "$out" "its workspace '$top/before' is not there any more"
mv "$top/after" "$top/before" && cd "$top/before" || exit 1
ok "moved back it is applied" "$pinfold" apply --all
ok "as the box had it" test "$(cat in/new)" = new
box -q --cow -- sh -c 'echo 2 >two' >/dev/null
bad=$("$pinfold" layers --json | python3 -c 'import json,sys; print(next(l["id"] for l in json.load(sys.stdin)["layers"] if not l["name"]))')
: >"$XDG_STATE_HOME/pinfold/layers/$bad/record"
out=$("$pinfold" layers 2>&1)
ok "a layer whose record cannot be read is listed" says "$out" "/layers/$bad: the record of this layer cannot be read"
ok "also for programs" test "$("$pinfold" layers --json | python3 -c 'import json,os,sys; print(*map(os.path.basename, json.load(sys.stdin)["damaged"]))')" = "$bad"
out=$("$pinfold" diff "$bad" 2>&1; "$pinfold" discard "$bad" 2>&1)
ok "and named where it is looked for" says "$out" "cannot be read: $XDG_STATE_HOME/pinfold/layers/$bad"
"$pinfold" layers prune >/dev/null 2>&1
ok "prune keeps what it changed" test -n "$(find "$XDG_STATE_HOME/pinfold/layers/$bad" -name two)"
rm -rf "$XDG_STATE_HOME/pinfold/layers/$bad"
export XDG_STATE_HOME=$top/state

# ---- looks: strace holds up one that has the layer's lock, which is no use of the layer ----
if command -v strace >/dev/null; then
    export XDG_STATE_HOME=$top/looked
    "$pinfold" run --no-layers -q --cow=looked -- true
    lock=$(stat -c %i "$XDG_STATE_HOME"/pinfold/layers/????????????????/lock)
    strace -qq -o /dev/null -e trace=flock -e inject=flock:delay_exit=2000000 "$pinfold" layers --json >/dev/null &
    looker=$!
    while kill -0 "$looker" 2>/dev/null && ! grep -q "FLOCK .* READ .*:$lock " /proc/locks; do sleep 0.02; done
    out=$(box --cow=looked -- echo begun)
    kill -0 "$looker" 2>/dev/null || echo "not while it looks"
    wait "$looker"
    ok "a box begins on a layer that is looked at" test "$out" = begun
    export XDG_STATE_HOME=$top/state
fi

# ---- a home in a directory that hands its group down, as /var/local does on Debian ----
group=$(id -G | tr ' ' '\n' | grep -vx "$(id -g)" | head -n 1)
[ "$(id -u)" != 0 ] || group=50
if [ -n "$group" ]; then
    mkdir "$top/shared" && chgrp "$group" "$top/shared" && chmod 2775 "$top/shared"
    mkdir "$top/shared/home" "$top/shared/work" && cd "$top/shared/work" || exit 1
    group_box() { env -u XDG_STATE_HOME -u XDG_CONFIG_HOME HOME="$top/shared/home" "$pinfold" run --no-layers -q --cow -- sh -c "$1" 2>&1; }
    ok "a home in a directory with another group" test "$(group_box 'echo x >new && cat new')" = x
    ok "and once more" test "$(group_box 'echo y >new && cat new')" = y
    chgrp -R "$group" "$top/shared/home/.local/state/pinfold" && chmod -R g+s "$top/shared/home/.local/state/pinfold"
    mkdir ../other && cd ../other || exit 1
    out=$(group_box 'echo x >new && cat new')
    ok "or what helps is said" says "$out" "has another group than yours"
    cd "$top/work" || exit 1
fi

[ "$failed" = 0 ] && [ "$checks" -gt 40 ]
