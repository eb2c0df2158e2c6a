#!/bin/bash
# cat, write, cp, ls, path and agent on a session of its own: verbs.sh LABEL, in an empty directory that is $HOME, too.
set -u
label=$1
status=0
name=files-$$
export XDG_RUNTIME_DIR=$HOME/runtime XDG_STATE_HOME=$HOME/state XDG_CONFIG_HOME=$HOME/config
mkdir -m 700 runtime
mkdir work outside

is() { # name, wanted status, wanted output, command...
    local what=$1 want=$2 text=$3 got said
    shift 3
    said=$("$@" 2>&1)
    got=$?
    case $said in
    *"$text"*) ;;
    *) got="$got, without \"$text\"" ;;
    esac
    if [ "$got" = "$want" ]; then
        echo "ok $label/$what"
    else
        echo "FAIL $label/$what: $got: $said"
        status=1
    fi
}
shows() { # name, file, content
    if [ "$(cat "$2" 2>&1)" = "$3" ]; then echo "ok $label/$1"; else
        echo "FAIL $label/$1: $2 has: $(cat "$2" 2>&1)"
        status=1
    fi
}
# shellcheck disable=SC2317,SC2329 # called by is()
from() { # text, command...: with this standard input
    local text=$1
    shift
    printf %s "$text" | "$@"
}
p=$PINFOLD
# shellcheck disable=SC2317,SC2329 # called by the trap
end() { "$p" session rm "$name" >/dev/null 2>&1; }
trap end EXIT
cd work || exit 1
mkdir -p .git/objects .git/refs .git/hooks keep
echo kept >keep/x
echo host >../outside/x
ln -s ../outside/x to-outside
is start 0 "" "$p" session start "$name" --mount "$PWD:/workspace" --protect "$PWD/keep"
is write 0 "" from one "$p" write "$name:/workspace/a.txt"
shows write-lands a.txt one
is cat 0 one "$p" cat "$name:/workspace/a.txt"
is cat-two 0 oneone "$p" cat "$name:/workspace/a.txt" "$name:$PWD/a.txt"
is seen-in-the-box 0 one "$p" exec "$name" cat /workspace/a.txt
is written-in-the-box 0 "" "$p" exec "$name" sh -c 'echo made >/tmp/private; mkdir /workspace/d; ln -s a.txt /workspace/l'
is cat-private 0 made "$p" cat "$name:/tmp/private"
is private-is-not-the-hosts 1 "" test -e /tmp/private
is write-parents 0 "" from deep "$p" write -p --mode 600 "$name:/workspace/x/y/z"
is mode 0 600 stat -c %a x/y/z
is write-no-parents 1 "No such file" from deep "$p" write "$name:/workspace/q/y/z"
is guarded 2 "guarded name" from evil "$p" write "$name:/workspace/.git/hooks/pre-commit"
is protected 1 "Read-only" from evil "$p" write "$name:/workspace/keep/x"
is read-only 1 "Read-only" from evil "$p" write "$name:$HOME/outside/x"
is link-out 1 "Read-only" from evil "$p" write "$name:$PWD/to-outside"
is hidden 1 "" "$p" cat "$name:/etc/shadow"
is proc 2 "/proc" "$p" cat "$name:/proc/1/environ"
shows outside-as-it-was ../outside/x host
shows kept-as-it-was keep/x kept
is ls 0 "l -> a.txt" "$p" ls "$name:/workspace"
is ls-json 0 '{"name":"d","type":"directory"' "$p" ls --json "$name:/workspace"
mkdir -p ../from/tree/sub
echo leaf >../from/tree/sub/leaf
ln -s sub/leaf ../from/tree/link
is cp-in 0 "" "$p" cp ../from/tree "$name:/workspace"
shows cp-in-lands tree/link leaf
is cp-out 0 "" "$p" cp "$name:/workspace/tree" ../outside
shows cp-out-lands ../outside/tree/link leaf
mkdir -p bad
mkdir -m 0 "bad/$(printf 'x\033[2J\302\233y\nz')"
is ls-shows-odd-names 0 'x\x1b[2J\xc2\x9by\x0az' "$p" ls "$name:/workspace/bad"
is errors-show-odd-names 1 'bad/x\x1b[2J\xc2\x9by\x0az: ' "$p" cp "$name:/workspace/bad" ../outside
rmdir bad/*
mkdir -p bad/sub
for file in a sub/b z; do echo "$file" >"bad/$file"; done
echo secret >bad/sub/closed
chmod 0 bad/sub/closed
mkdir -m 0 bad/m
is cp-out-names-what-it-left-out 1 'without 2 of its entries: copy /workspace/bad/m: ' "$p" cp "$name:/workspace/bad" ../outside
shows cp-out-goes-on ../outside/bad/z z
shows cp-out-goes-on-below ../outside/bad/sub/b sub/b
is cp-out-leaves-out 1 "" test -e ../outside/bad/sub/closed
rm -rf bad
# A file may be larger than the disk, and cost the box nothing; or grow while it is copied, also to what has no size at first.
is sparse 0 "" "$p" exec "$name" sh -c 'truncate -s 2G /tmp/huge; printf end >>/tmp/huge; printf begin | dd of=/tmp/huge conv=notrunc status=none; truncate -s 2G /tmp/hole; : >/tmp/empty'
is cp-out-sparse 0 "" "$p" cp "$name:/tmp/huge" ../outside
is cp-out-hole 0 "" "$p" cp "$name:/tmp/hole" ../outside
is cp-out-empty 0 "" "$p" cp "$name:/tmp/empty" ../outside
# shellcheck disable=SC2016 # for the other shell
is cp-out-keeps-holes 0 "2147483651 2147483648 0 small" sh -c 'cd ../outside; echo $(stat -c %s huge hole empty) $(test $(stat -c %b huge hole | sort -n | tail -1) -lt 4096 && echo small)'
is cp-out-keeps-content 0 "beginend" sh -c 'cd ../outside; head -c 5 huge; tail -c 3 huge'
rm -f ../outside/huge ../outside/hole
mkfifo ../from/fifo ../from/tree/fifo
is cp-in-of-a-fifo 2 "neither a file, directory nor link" "$p" cp ../from/fifo "$name:/tmp/fifo"
is cp-in-with-a-fifo 0 "" "$p" cp ../from/tree "$name:/tmp/tree"
rm ../from/fifo ../from/tree/fifo
is cp-guarded 2 "guarded" "$p" cp ../from/tree/sub/leaf "$name:/workspace/.git/hooks/x"
is cp-neither 2 "SESSION:/PATH" "$p" cp a b
is to-box 0 /workspace/x/y "$p" path to-box "$name" "$PWD/x/y"
is to-host 0 "$PWD/new/file" "$p" path to-host "$name" /workspace/new/file
is to-host-private 0 /tmp/private "$p" path to-host "$name" /tmp/private
ln -s "$PWD" ../by-link
is to-box-by-link 0 /workspace/x/y "$p" path to-box "$name" "$HOME/by-link/x/y"
is path-usage 2 "unknown action 'to-mars'; it is to-box or to-host" "$p" path to-mars "$name" /
is no-session 4 "no session" "$p" cat "$name-2:/x"
is no-place 2 "SESSION:/PATH" "$p" cat /etc/hostname
is stop 0 "" "$p" session stop "$name"
is gone 4 "gone" "$p" cat "$name:/workspace/a.txt"

# A login of the host, for a box that gets it by the flags that `prepare` says.
cd .. || exit 1
mkdir -p .local/share/kiro-cli .kiro/agents
echo agent >.kiro/agents/dev.json
sqlite3 .local/share/kiro-cli/data.sqlite3 "PRAGMA journal_mode=WAL; CREATE TABLE auth_kv (key TEXT PRIMARY KEY, value TEXT); CREATE TABLE conversations_v2 (key, value); INSERT INTO auth_kv VALUES('token','one')" >/dev/null
is agent-list 0 kiro-cli "$p" agent list
is agent-unknown 2 "unknown agent" "$p" agent prepare nobody "$PWD/login"
is agent-prepare 0 '"first":["data/data.sqlite3"]' "$p" agent prepare kiro-cli "$PWD/login"
mapfile -t flags < <("$p" agent prepare kiro-cli "$PWD/login" | python3 -c 'import json, sys
for o in json.load(sys.stdin)["options"]:
    if o["name"] != "allow": print("--" + o["name"] + "=" + o["value"])')
is agent-login-inside 0 one "$p" run --no-layers --workspace work "${flags[@]}" -- sqlite3 "$HOME/.local/share/kiro-cli/data.sqlite3" "SELECT value FROM auth_kv"
is agent-talks 0 "" "$p" run --no-layers --workspace work "${flags[@]}" -- sqlite3 "$HOME/.local/share/kiro-cli/data.sqlite3" "INSERT INTO conversations_v2 VALUES('/w','said'); UPDATE auth_kv SET value='evil'"
is agent-configuration 0 agent "$p" run --no-layers --workspace work "${flags[@]}" -- cat "$HOME/.kiro/agents/dev.json"
is agent-configuration-stays 2 "cannot create" "$p" run -q --no-layers --workspace work "${flags[@]}" -- sh -c "echo evil >$HOME/.kiro/agents/dev.json"
is host-login-as-it-was 0 one sqlite3 .local/share/kiro-cli/data.sqlite3 "SELECT value FROM auth_kv"
sqlite3 .local/share/kiro-cli/data.sqlite3 "UPDATE auth_kv SET value='two'"
is agent-again 0 '"refreshed":["data/data.sqlite3"]' "$p" agent prepare kiro-cli "$PWD/login"
is agent-new-login-inside 0 two/said "$p" run --no-layers --workspace work "${flags[@]}" -- sqlite3 "$HOME/.local/share/kiro-cli/data.sqlite3" "SELECT value || '/' || (SELECT value FROM conversations_v2) FROM auth_kv"
# Without pinfold-sqlite it says what is not copied, and what to do; one that others may write is not started.
mkdir "$HOME/alone"
cp "$p" "$HOME/alone/pinfold"
if [ ! -e /usr/local/libexec/pinfold/pinfold-sqlite ]; then
    is agent-without-sqlite 3 'data.sqlite3 is not copied: cannot find pinfold-sqlite' "$HOME/alone/pinfold" agent prepare kiro-cli "$PWD/other-login"
    is agent-without-sqlite-remedy 3 'libsqlite3-dev' "$HOME/alone/pinfold" agent prepare kiro-cli "$PWD/other-login"
fi
cp "${p%/*}/pinfold-sqlite" "$HOME/alone/"
is agent-own-sqlite 0 '"first":["data/data.sqlite3"]' "$HOME/alone/pinfold" agent prepare kiro-cli "$PWD/other-login"
chmod 777 "$HOME/alone/pinfold-sqlite"
is agent-writable-sqlite 2 'is not used' "$HOME/alone/pinfold" agent prepare kiro-cli "$PWD/other-login"
rm "$HOME/alone/pinfold-sqlite"
is agent-without-database 0 '"agent":"claude"' "$HOME/alone/pinfold" agent prepare claude "$PWD/other-login"
exit "$status"
