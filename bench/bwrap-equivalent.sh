#!/bin/sh
# Prints, one argument a line, the bubblewrap command that comes nearest to pinfold's default policy:
#
#     bwrap-equivalent.sh WORKSPACE [--ro PATH]... -- COMMAND [ARG...]
#
# Names that the policy hides, guards, or keeps a private cache for come from the plan (bench/bench writes them below
# bench/.build); where they exist, the command names them. What bubblewrap cannot say is left out, to its advantage in
# time: names that do not exist yet, sockets of the host by path, the seccomp filter (it takes one ready-made by
# descriptor and makes none). PINFOLD_BENCH_CACHE is the directory that stands for every private cache.
set -eu
workspace=$1
shift
arg() { for a; do printf '%s\n' "$a"; done; }
lists=$(cd "$(dirname "$0")" && pwd)/.build

arg bwrap --unshare-all --die-with-parent --new-session
[ "$(id -u)" != 0 ] || arg --cap-drop ALL
arg --ro-bind / / --dev /dev --mqueue /dev/mqueue --proc /proc --tmpfs /tmp --tmpfs /run --tmpfs /dev/shm
while read -r path; do
    if [ -d "$path" ]; then
        arg --tmpfs "$path"
    elif [ -e "$path" ]; then
        arg --ro-bind /dev/null "$path"
    fi
done <"$lists/hidden"
while read -r path; do
    [ ! -d "$path" ] || arg --bind "$PINFOLD_BENCH_CACHE" "$path"
done <"$lists/caches"
arg --bind "$workspace" "$workspace"
while read -r name; do
    [ ! -e "$workspace/$name" ] || arg --ro-bind "$workspace/$name" "$workspace/$name"
done <"$lists/guarded"
while [ "$1" = --ro ]; do
    arg --ro-bind "$2" "$2"
    shift 2
done
[ "$1" = -- ]
shift
arg --hostname pinfold --chdir "$workspace" --clearenv
for name in HOME PATH USER LOGNAME SHELL TERM LANG TZ; do
    eval "value=\${$name-}"
    [ -z "$value" ] || arg --setenv "$name" "$value"
done
arg -- "$@"
