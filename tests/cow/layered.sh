#!/bin/bash
# What the guard is asked in a box with a layer, and what holds there without it; what a session sees of the host; layers in results,
# lists and policies. In an empty directory of the user that is not below /tmp. Usage: layered.sh LABEL
set -u
pinfold=${PINFOLD:?}
unset PINFOLD # a program that finds it set believes to be in a box
label=$1
top=$(pwd -P)
mkdir -p home/.npm work other
export HOME=$top/home XDG_STATE_HOME=$top/state XDG_CONFIG_HOME=$top/config
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
layers() { "$pinfold" layers --json | python3 -c 'import json,sys; print(*(l["id"] for l in json.load(sys.stdin)["layers"]))'; }
forget() { for id in $(layers); do "$pinfold" discard "$id" >/dev/null 2>&1; done; }
filter() { "$pinfold" explain --no-layers --cow "$@" -- true 2>/dev/null | sed -n 's/^filter *//p'; }
state_of() { (cd "$1" && find . -printf '%p %y %m %U %G %n %s %T@ %C@ %l\n' | sort; find . -type f -exec sha256sum {} + | sort); }

# ---- which boxes ask for a few calls only ----
cd work || exit 1
git init -q . && echo one >plain && git add plain && git -c user.name=x -c user.email=x@x commit -qm one
mkdir -p tree/below
echo x >tree/x
echo KEY >.env
ok "a layer alone" test "$(filter)" = "guard, layered"
ok "a protected directory has a mount" test "$(filter --protect tree)" = "guard, layered"
ok "a protected file has none" test "$(filter --protect plain)" = "guard"
ok "nor a protected name that does not exist" test "$(filter --protect missing)" = "guard"
ok "a protected pattern" test "$(filter --protect '**/*.key')" = "guard"
ok "a hidden directory" test "$(filter --hide tree)" = "guard, reads"
ok "another writable tree" test "$(filter --rw ../other)" = "guard"
ok "a writable mount" test "$(filter --mount "$top/other:/mnt:rw")" = "guard"
ok "what a mount covers in a box that may make namespaces" test "$(filter --allow-nested-userns)" = "guard, userns"
ok "the host's FIFOs are the guard's there, because Landlock would forbid its mounts" test "$(filter --allow-nested-userns --env-files)" = "guard, userns"
mkdir .pinfold
ok "a project's own directory has a mount" test "$(filter)" = "guard, layered"
rmdir .pinfold
ok "without a layer all is asked" test "$("$pinfold" explain --no-layers -- true | sed -n 's/^filter *//p')" = "guard"

# A shell that reads its script from a pipe, and starts a box that reads from it as well.
planted() { printf '"%s" run -q --no-layers %s -- sh -c "echo echo planted >/dev/stdin" 2>/dev/null\necho end\n' "$pinfold" "$*" | bash; }
ok "a pipe of the caller's is not written" test "$(planted --cow)" = end
ok "a pipe of the caller's can be read" test "$(echo one | box -q --cow -- cat)" = one
forget

# A call that the guard is asked about makes its caller wait for another process.
cat >../waits.py <<'PY'
import os
import resource
import socket

N = 300


def waits(what, call):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw
    for i in range(N):
        call(i)
    n = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw - before
    print(what, "asked" if n >= N else "free" if n < N / 3 else n)


def bound(i):
    s = socket.socket(socket.AF_UNIX)
    s.bind(f"s{i}")
    s.close()


os.mkdir("waits")
os.chdir("waits")
waits("create", lambda i: os.close(os.open(f"f{i}", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)))
waits("write", lambda i: os.close(os.open(f"f{i}", os.O_WRONLY)))
waits("truncate", lambda i: os.truncate(f"f{i}", 0))
waits("chmod", lambda i: os.chmod(f"f{i}", 0o600))
waits("utime", lambda i: os.utime(f"f{i}", (1, 1)))
waits("mkdir", lambda i: os.mkdir(f"d{i}"))
waits("symlink", lambda i: os.symlink("x", f"l{i}"))
waits("umask", lambda i: os.umask(0o22))
waits("unlink", lambda i: os.unlink(f"l{i}"))
waits("link", lambda i: os.link(f"f{i}", f"k{i}"))
waits("rename", lambda i: os.rename(f"k{i}", f"m{i}"))
waits("bind", bound)
PY
out=$(box --cow -- python3 - <../waits.py)
for what in create write truncate chmod utime mkdir symlink umask unlink; do ok "in a layer: $what" says "$out" "$what free"; done
for what in link rename bind; do ok "in a layer: $what" says "$out" "$what asked"; done
out=$(box --cow --rw ../other -- python3 - <../waits.py)
for what in create write mkdir unlink rename; do ok "beside another writable tree: $what" says "$out" "$what asked"; done
forget

# ---- what holds in it ----
before=$(state_of .)
cat >../hostile.py <<'PY'
"""In a layered box, with namespaces of its own if it may have them: to what is hidden or protected, and to what the host has."""
import ctypes
import os
import socket
import stat

libc = ctypes.CDLL(None, use_errno=True)
work = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
ids = os.getuid(), os.getgid()


def call(what, act):
    try:
        print(what, "got", act())
    except OSError as e:
        print(what, e.strerror)


def read(path, dir_fd=None):
    with open(os.open(path, os.O_RDONLY, dir_fd=dir_fd)) as f:
        return f.read().strip()


def must(r):
    if r < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return r


call("env", lambda: read(".env"))
call("env moved", lambda: os.rename(".env", "moved"))
call("env linked", lambda: os.link(".env", "linked"))
call("env exchanged", lambda: must(libc.renameat2(-100, b".env", -100, b"plain", 2)))
call("protected", lambda: os.close(os.open("tree/x", os.O_WRONLY)))
call("protected new", lambda: os.mkdir("tree/new"))
call("protected moved", lambda: os.rename("tree", "moved"))
call("protected removed", lambda: os.rmdir("tree"))
call("set-user-ID", lambda: os.chmod("plain", 0o4755))
call("host socket", lambda: socket.socket(socket.AF_UNIX).connect(os.environ["HOST_SOCKET"]))
call("outside", lambda: os.mkdir(os.environ["HOME"] + "/new"))
call("handle", lambda: must(libc.open_by_handle_at(3, b"", 0)))
call("whiteout", lambda: os.mknod("w", stat.S_IFCHR | 0o600, 0))
# A mount namespace without what covers .env: its own view, where the name itself can be removed.
os.mkdir("/tmp/root")
if libc.unshare(0x10000000 | 0x20000) == 0:
    for name, text in ("setgroups", "deny"), ("uid_map", f"0 {ids[0]} 1"), ("gid_map", f"0 {ids[1]} 1"):
        fd = os.open("/proc/self/" + name, os.O_WRONLY)
        libc.write(fd, text.encode(), len(text))  # refused for uid 0
        os.close(fd)
    call("a tmpfs", lambda: must(libc.mount(b"tmpfs", b"/tmp/root", b"tmpfs", 0, None)))
    os.chdir("/tmp/root")
    call("pivot", lambda: must(libc.pivot_root(b".", b".")))
    call("umount", lambda: must(libc.umount2(b".", 2)))
    call("nested env", lambda: read(".env", work))
    call("nested env moved", lambda: os.rename(".env", "moved2", src_dir_fd=work, dst_dir_fd=work))
    call("nested env removed", lambda: os.unlink(".env", dir_fd=work))
    call("nested env again", lambda: read(".env", work))
    call("nested protected", lambda: os.close(os.open("tree/x", os.O_WRONLY, dir_fd=work)))
    call("nested protected removed", lambda: os.rmdir("tree", dir_fd=work))
    call("nested overlay", lambda: must(libc.mount(b"overlay", b"/", b"overlay", 0, b"lowerdir=/")))
else:
    print("no namespaces")
for path in (".env", "moved", "moved2", "linked", "plain"):
    call("after " + path, lambda: read(path, work))
print("DONE")
PY
python3 -c '
import os, select, socket, sys
s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen()
open(sys.argv[2], "w").close()
while not os.path.exists(sys.argv[3]):
    if select.select([s], [], [], 0.05)[0]: open(sys.argv[4], "w").close(); break
' "$top/host.sock" "$top/ready" "$top/stop" "$top/connected" &
server=$!
while [ ! -e ../ready ]; do sleep 0.02; done
for nested in "" --allow-nested-userns; do
    out=$(box --cow --protect tree --env HOST_SOCKET="$top/host.sock" $nested -- python3 - <../hostile.py)
    ok "the attacks$nested ran to their end" says "$out" "DONE"
    ok "no content of what is hidden$nested" silent "$out" "KEY"
    ok "no protected file was opened$nested" silent "$(grep '^\(nested \)\?protected' <<<"$out")" "got"
    ok "no set-user-ID file$nested" says "$out" "set-user-ID Operation not permitted"
    ok "no socket of the host$nested" silent "$out" "host socket got"
    ok "nothing outside$nested" says "$out" "outside Read-only file system"
    ok "no whiteout$nested" silent "$out" "whiteout got"
    if [ -n "$nested" ]; then
        ok "the nested attacks were made" says "$out" "umount got 0"
        ok "what is hidden cannot be removed there, either" silent "$out" "nested env removed got"
        ok "no overlay of a nested namespace" silent "$out" "nested overlay got"
    fi
    ok "the tree of the host is as it was$nested" diff <(echo "$before") <(state_of .)
    forget
done
out=$(box --cow --env-files --env HOST_SOCKET="$top/host.sock" --allow-nested-userns -- python3 - <../hostile.py)
ok "nested without anything covered: to their end" says "$out" "DONE"
for what in "set-user-ID" "host socket" outside handle whiteout "nested overlay"; do
    ok "nested without anything covered: $what" silent "$out" "$what got"
done
ok "nested without anything covered: the host" diff <(echo "$before") <(state_of .)
forget
touch ../stop
wait $server
ok "nobody reached the host's socket" test ! -e ../connected
box --cow=twice -- sh -c 'mkdir .pinfold && echo "files: {rw: [/]}" >.pinfold/policy.yaml' >/dev/null
ok "what a box makes for pinfold waits" says "$("$pinfold" diff twice)" ".pinfold/ (guarded name"
"$pinfold" apply twice --all >/dev/null 2>&1
ok "apply --all leaves it out" test ! -e .pinfold
forget

# ---- its caches are where no box learns ----
box --cow -- sh -c 'echo shared-word >~/.npm/shared; mkdir -p ~/.cache && echo linked-word >~/.cache/linked; git init -q ~/.npm/repository && echo evil >~/.npm/repository/.git/hooks/pre-commit' >/dev/null
secret=$(cd "$top/state/pinfold/caches" && ls -d ./*/0/cow.* 2>/dev/null)
ok "they have a place of their own" test -n "$secret"
ok "both are there" test "$(find "$top/state/pinfold/caches/$secret" -name shared -o -name linked 2>/dev/null | grep -c .)" -ge 2
ok "none is anywhere else" test -z "$(find "$top" \( -name shared -o -name linked -o -name repository \) -not -path "*/cow.*" 2>/dev/null)"
out=$(box --cow -- sh -c 'cat ~/.npm/shared ~/.cache/linked /proc/self/mountinfo')
ok "the next box finds them" says "$out" "shared-word"
ok "both" says "$out" "linked-word"
ok "mountinfo does not tell their name" silent "$out" "${secret##*/}"
ok "nor where caches of layers are" silent "$out" "/cow."
out=$(box -- sh -c 'cat ~/.npm/shared; cat ~/.npm/repository/.git/hooks/pre-commit; cat /proc/self/mountinfo')
ok "a box without a layer has other ones" silent "$out" "shared-word"
ok "with nothing of theirs" silent "$out" "evil"
ok "and does not learn the name" silent "$out" "/cow."
caches=$top/state/pinfold/caches/$secret
chmod 700 "$caches/linked/work" && mv "$caches/linked/work" "$caches/linked/away" && ln -s / "$caches/linked/work"
out=$(box --cow -- true)
ok "a start fails that finds a link there" says "$out" "/cow.****"
ok "and does not tell it either" silent "$out" "${secret##*/}"
rm "$caches/linked/work" && mv "$caches/linked/away" "$caches/linked/work"
ok "the number it comes from is closed to others" test "$(stat -c %a "$top/state/pinfold/secret")" = 600
forget

# ---- git and links ----
out=$(box --cow -- sh -c 'git clone -q . copy && git -C copy log --oneline | wc -l; ln plain twin && echo more >>twin && cat plain')
ok "git clone of a local repository" says "$out" "1"
ok "a link of a file of the host" says "$out" "more"
forget

# ---- a session sees what the host changes ----
session() { "$pinfold" "$@" 2>&1; }
printf 'first\n' >edited
printf 'old\n' >appended
printf 'gone\n' >removed
mkdir list
ok "a session" session session start --no-layers --cow s
session exec s -- sh -c 'cat edited appended removed absent list/new; ls list' >/dev/null
printf 'second\n' >edited.new && mv edited.new edited
printf 'new\n' >appended.new && mv appended.new appended
printf 'there\n' >absent
printf 'in\n' >list/new
rm removed
ok "a file that an editor replaced" test "$(session exec s -- cat edited)" = second
ok "a name that was absent" test "$(session exec s -- cat absent)" = there
ok "a new name in a directory" test "$(session exec s -- sh -c 'ls list; cat list/new' | tr '\n' ' ')" = "new in "
ok "one that was removed" says "$(session exec s -- cat removed)" "No such file"
ok "no update is lost by an append" test "$(session exec s -- sh -c 'echo box >>appended; cat appended' | tr '\n' ' ')" = "new box "
ok "the host's file is the host's" test "$(cat appended)" = new
printf 'third\n' >edited.new && mv edited.new edited
ok "the file commands look again" test "$(session cat "s:$PWD/edited")" = third
printf 'fourth\n' >edited.new && mv edited.new edited
ok "a shell looks again" test "$(session exec --shell a s 'cat edited')" = fourth
printf 'next\n' >edited.new && mv edited.new edited
ok "before each command" test "$(session exec --shell a s 'cat edited')" = next
printf 'fifth\n' >edited.new && mv edited.new edited
session exec --detach s -- sh -c 'cat edited >seen' >/dev/null
i=0
while [ "$(session cat "s:$PWD/seen")" != fifth ] && [ $((i += 1)) -lt 1200 ]; do sleep 0.05; done
ok "a job looks again" test "$(session cat "s:$PWD/seen")" = fifth
session exec s -- sh -c 'exec 3<edited; echo held >holds; while [ ! -e let-go ]; do sleep 0.02; done; cat <&3' >../held &
holder=$!
i=0
while ! session cat "s:$PWD/holds" >/dev/null && [ $((i += 1)) -lt 1200 ]; do sleep 0.05; done
printf 'sixth\n' >edited.new && mv edited.new edited
session exec s -- touch let-go >/dev/null
wait $holder
ok "what is held open stays as it was" test "$(cat ../held)" = fifth
ok "sizes and age are in the list" grep -Eq '[0-9a-f]{8} \([0-9]+[KMGT], [0-9]+[smhd]\)' <(session session list)
session session stop s >/dev/null
forget
rm -rf list edited appended absent

# ---- results and policies ----
json=$(box --json --cow -- sh -c 'echo 1 >.envrc; mkdir .idea; echo 1 >.idea/workspace.xml; echo 1 >fine')
ok "the result names what waits" python3 -c '
import json, sys
l = json.loads(sys.argv[1])["layer"]
sys.exit(not (l["waiting"] == len(l["waiting_paths"]) and ".envrc" in l["waiting_paths"] and "fine" not in l["waiting_paths"]))' "$json"
forget
echo 'files: {cow: true}' >../cow.yaml
box --policy ../cow.yaml -- sh -c 'echo 1 >by-policy' >/dev/null
ok "a policy can ask for a layer" test ! -e by-policy -a -n "$(layers)"
ok "explain says so" says "$("$pinfold" explain --no-layers --policy ../cow.yaml -- true)" "copy-on-write"
forget
ok "a session, too" session session start --no-layers --policy ../cow.yaml p
session exec p -- touch by-session >/dev/null
ok "nothing of it is in the workspace" test ! -e by-session
session session stop p >/dev/null
forget
mkdir .pinfold && echo 'files: {cow: true}' >.pinfold/policy.yaml
"$pinfold" run -- touch by-project >/dev/null 2>&1
ok "an untrusted project can ask for one" test ! -e by-project -a -n "$(layers)"
echo 'files: {cow: false}' >.pinfold/policy.yaml
mkdir -p ../config/pinfold && cp ../cow.yaml ../config/pinfold/policy.yaml
out=$("$pinfold" run -- touch by-project 2>&1)
ok "but not take it away" test ! -e by-project
ok "which is said" says "$out" "would let the box change the workspace itself"
rm -rf .pinfold ../config/pinfold
forget

# ---- what a layer cannot copy, and its limit ----
if [ "$(id -u)" = 0 ]; then
    echo theirs >foreign && chown 12345:12345 foreign && chmod 666 foreign
    json=$(box --json --cow -- sh -c 'echo more >>foreign')
    ok "a foreign file is explained" says "$json" "it belongs to another user or group, and a layer cannot copy it"
    ok "doctor finds it" says "$("$pinfold" doctor)" "1 file or directory here belongs to another user or group, such as '$PWD/foreign'"
    rm foreign
    forget
    mkdir -p "$top/small" && mount -t tmpfs -o size=200m none "$top/small"
    # shellcheck disable=SC2016 # the box's shell expands it
    json=$(XDG_STATE_HOME=$top/small "$pinfold" run --no-layers --json --cow --disk 20M -- sh -c 'for i in 1 2 3 4 5 6 7 8; do head -c 10M /dev/zero >big$i; sleep 0.1; done; sleep 90' 2>/dev/null)
    ok "the limit of the disk holds where the layer is" says "$json" '"limit":"disk"'
    for id in $(XDG_STATE_HOME=$top/small layers); do XDG_STATE_HOME=$top/small "$pinfold" discard "$id" >/dev/null 2>&1; done
    out=$(XDG_STATE_HOME=$top/small box --cow -- sh -c 'head -c 300M /dev/zero >big; echo "status $?"')
    ok "a full disk is ENOSPC inside" says "$out" "No space left on device"
    umount "$top/small"
fi
[ "$failed" = 0 ] && [ "$checks" -gt 60 ]
