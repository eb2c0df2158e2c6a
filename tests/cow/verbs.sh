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
ok "how many" says "$out" "to be applied"
ok "what to do next" says "$out" "pinfold apply"
"$pinfold" discard >/dev/null 2>&1
ok "discard removes it" test "$(layers | count)" = 0
ok "and leaves nothing" test -z "$(ls "$XDG_STATE_HOME/pinfold/layers")"

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
"$pinfold" run --no-layers -q --cow=again -- sh -c 'touch ../held; while [ -d . ] && [ ! -e gone ]; do sleep 0.05; done' 2>/dev/null &
running=$!
i=0
while ! "$pinfold" layers | grep -q ' used ' && [ $((i += 1)) -lt 100 ]; do sleep 0.05; done
ok "a second box is refused" says "$(box --cow=again -- true)" "is used by a running box"
ok "so is discard" says "$("$pinfold" discard again 2>&1)" "is used by a running box"
ok "and apply" says "$("$pinfold" apply again --all 2>&1)" "is used by a running box"
kill -9 $running
wait $running 2>/dev/null
i=0
while "$pinfold" layers | grep -q ' used ' && [ $((i += 1)) -lt 100 ]; do sleep 0.05; done
ok "killed: it is not on the disk yet" says "$("$pinfold" layers)" "unsynced"
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
ok "no third word" says "$(box --cow --cow-then land -- true)" "use keep, apply or discard"
ok "no layer, nothing to do" says "$(box --cow-then keep -- true)" "no layer without --cow"

# ---- refused with a sentence ----
ok "another engine" says "$(box --cow --engine bwrap -- true)" "only the engine native"
ok "a read-only workspace" says "$(box --cow --ro . -- true)" "it is read-only in this box"
ok "a writable tree around it" says "$(box --cow --rw "$top" -- true)" "past its layer"
ok "a writable mount of a part" says "$(box --cow --mount "$top/work/sub:/mnt:rw" -- true)" "past its layer"
ok "a workspace with the state in it" says "$(XDG_STATE_HOME=$PWD/state box --cow -- true)" "state directory"
rm -rf state
ok "a name that is none" says "$(box --cow=a/b -- true)" "1 to 64 letters"
ok "a name like an ID" says "$(box --cow=abc -- true)" "looks like the ID"
ok "an empty name" says "$(box --cow= -- true)" "needs a name"
ok "a session" says "$(box --cow --session s -- true)" "no copy-on-write layer"
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
[ "$failed" = 0 ] && [ "$checks" -gt 40 ]
