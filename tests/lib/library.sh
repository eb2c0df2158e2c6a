#!/bin/sh
# libpinfold as another program meets it: installed under a prefix, found by pkg-config alone, linked shared and static.
# library.sh SCRATCH     (the folder is made, and kept with two builds in it)
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
scratch=$1
prefix=$scratch/prefix
# Another user than the one who built has a place of its own.
if ! mkdir -p "$scratch" 2>/dev/null || [ ! -w "$scratch" ]; then
    scratch=$(mktemp -d)
    prefix=$scratch/prefix
    trap 'rm -rf "$scratch"' EXIT
fi
rm -rf "$scratch/work" "$prefix"
mkdir -p "$scratch/work/project"
build=${PINFOLD_BUILD:-$top/build}
program=${PINFOLD:-$build/pinfold}
{
    # The library knows where its program is, so it is built for this prefix; the program does not care.
    sqlite=
    [ ! -e /usr/include/sqlite3.h ] || sqlite=pinfold-sqlite
    login=
    [ ! -e "/usr/include/$(uname -m)-linux-gnu/curl/curl.h" ] || login=pinfold-login
    [ -f "$scratch/library/build.ninja" ] || meson setup "$scratch/library" "$top" -Dprefix="$prefix" -Dprograms=disabled ${sqlite:+-Dsqlite=enabled} ${login:+-Dlogin=enabled}
    ninja -C "$scratch/library" library $sqlite $login
    meson install -C "$scratch/library" --no-rebuild --quiet
    mkdir -p "$prefix/bin"
    cp "$program" "$prefix/bin/pinfold"
    rm -rf "$scratch/dest"
    # meson writes its log beside the build: only who built can install from there.
    [ ! -w "$build/meson-logs" ] || DESTDIR="$scratch/dest" meson install -C "$build" --no-rebuild --quiet
} >"$scratch/install.log" 2>&1 || {
    cat "$scratch/install.log"
    exit 1
}
say() { echo "$*"; }
fail() {
    echo "$*" >&2
    exit 1
}
libdir=$(dirname "$(find "$prefix" -name libpinfold.so)")
export PKG_CONFIG_PATH="$libdir/pkgconfig"

# Only pinfold_* leaves the libraries.
exported=$(nm -D --defined-only "$libdir/libpinfold.so" | awk '{print $3}' | grep -v '^PINFOLD_1$' || true)
[ -n "$exported" ] || fail "the shared library exports nothing"
others=$(echo "$exported" | grep -v '^pinfold_[a-z_]*\(@.*\)\?$' || true)
[ -z "$others" ] || fail "the shared library exports: $others"
others=$(nm --defined-only --extern-only "$libdir/libpinfold.a" | awk 'NF == 3 {print $3}' | grep -v '^pinfold_' || true)
[ -z "$others" ] || fail "the static library exports: $others"
# shellcheck disable=SC2013 # names are words
for name in $(sed -n 's/^PINFOLD_PUBLIC .*[ *]\(pinfold_[a-z_]*\)(.*/\1/p' "$top/include/pinfold.h"); do
    echo "$exported" | grep -q "^$name" || fail "pinfold.h declares $name, the library has it not"
done
say "exports: $(echo "$exported" | wc -l) functions"

# What the program's build installs.
if [ -d "$scratch/dest" ]; then
    for file in bin/pinfold libexec/pinfold/pinfold-init libexec/pinfold/pinfold-bwrap share/man/man1/pinfold.1 share/man/man1/pinfold-mcp.1 share/man/man1/pinfold-session.1 share/man/man5/pinfold-policy.5 share/man/man7/pinfold-network.7 share/bash-completion/completions/pinfold \
        share/zsh/site-functions/_pinfold share/fish/vendor_completions.d/pinfold.fish; do
        [ -n "$(find "$scratch/dest" -path "*/$file" -size +0)" ] || fail "$file is not installed"
    done
    bash -n "$(find "$scratch/dest" -path '*/bash-completion/completions/pinfold')"
fi

[ -z "$sqlite" ] || [ -x "$prefix/libexec/pinfold/pinfold-sqlite" ] || fail "pinfold-sqlite is not installed"
[ -z "$login" ] || [ -x "$prefix/libexec/pinfold/pinfold-login" ] || fail "pinfold-login is not installed"
# shellcheck disable=SC2046 # paths without blanks
"$top/tests/lint/pie.sh" $(find "$scratch/prefix" "$scratch/dest" -name 'pinfold*' -type f -perm -100 -size +9k 2>/dev/null)

# The program is one file, not too large, and not dynamic.
size=$(stat -c %s "$prefix/bin/pinfold")
[ "$size" -le 10485760 ] || fail "the program has $size bytes"
if readelf -lW "$prefix/bin/pinfold" | grep -q INTERP; then fail "the program is dynamic"; fi

# shellcheck disable=SC2046 # words are what pkg-config prints
cc -Wall -Werror "$top/examples/run.c" -o "$scratch/run" $(pkg-config --cflags --libs pinfold)
# shellcheck disable=SC2046
cc -Wall -Werror "$top/examples/run.c" -o "$scratch/run-static" $(pkg-config --cflags pinfold) "$libdir/libpinfold.a"
# shellcheck disable=SC2046
cc -D_GNU_SOURCE -Wall -Werror "$top/tests/lib/manners.c" -o "$scratch/manners" $(pkg-config --cflags --libs pinfold) -pthread
# shellcheck disable=SC2046
cc -D_GNU_SOURCE -Wall -Werror "$top/tests/lib/grants.c" -o "$scratch/grants" $(pkg-config --cflags --libs pinfold)
# shellcheck disable=SC2046
cc -D_GNU_SOURCE -Wall -Werror "$top/tests/lib/sessions.c" -o "$scratch/sessions" $(pkg-config --cflags --libs pinfold) -pthread
# shellcheck disable=SC2046
cc -D_GNU_SOURCE -Wall -Werror "$top/tests/lib/sessions.c" -o "$scratch/sessions-static" $(pkg-config --cflags pinfold) "$libdir/libpinfold.a" -pthread
c++ -x c++ -fsyntax-only -Wall -Werror "$top/include/pinfold.h" 2>/dev/null || c++ -x c++ -fsyntax-only "$top/include/pinfold.h"

cd "$scratch/work"
export LD_LIBRARY_PATH="$libdir"
for program in run run-static; do
    got=$("../$program" sh -c 'echo hello; exit 3' 2>"../$program.json") && status=0 || status=$?
    [ "$got $status" = "hello 3" ] || fail "$program: '$got', status $status: $(cat "../$program.json")"
done
../manners "$scratch/work"
mkdir -m 700 "$scratch/work/run"
granted=$(mktemp -d "${PINFOLD_SCRATCH:-/var/tmp}/grants.XXXXXX") # where layers can be held; the tree may lie on one
XDG_STATE_HOME="$granted/state" XDG_RUNTIME_DIR="$scratch/work/run" ../grants "$granted" && status=0 || status=$?
rm -rf "$granted"
[ "$status" = 0 ] || fail "grants"
for program in sessions sessions-static; do
    XDG_STATE_HOME="$scratch/work/state" XDG_RUNTIME_DIR="$scratch/work/run" "../$program" "$scratch/work/project" || fail "$program"
done

# The program must be its owner's alone, and no variable of the environment names another.
chmod g+w "$prefix/bin/pinfold"
if ../run true 2>../refused; then fail "a program that others may write was started"; fi
grep -q 'writable by its owner only' ../refused || fail "not refused for its mode: $(cat ../refused)"
chmod g-w "$prefix/bin/pinfold"

# The caller dies: the box goes.
../run sh -c "touch up; until [ -e over-$$ ]; do sleep 0.05; done; touch survived" >/dev/null 2>&1 &
for _ in $(seq 600); do
    if [ -e up ]; then break; fi
    sleep 0.05
done
[ -e up ] || fail "the box did not start"
pgrep -f "^[^ ]*sh -c touch up; until \[ -e over-$$ \]" >/dev/null || fail "the box's command is not seen"
kill -9 $!
for _ in $(seq 600); do # the kernel ends what has lost its caller
    pgrep -f "^[^ ]*sh -c touch up; until \[ -e over-$$ \]" >/dev/null || break
    sleep 0.05
done
touch "over-$$"
if pgrep -f "^[^ ]*sh -c touch up; until \[ -e over-$$ \]" >/dev/null || [ -e survived ]; then fail "the box outlived its caller"; fi

# What was installed can be removed, and nothing else goes.
for at in "$prefix" $([ ! -d "$scratch/dest" ] || find "$scratch/dest" -path '*/bin/pinfold' -printf '%h/..'); do
    [ -e "$at/bin/pinfold" ] || fail "there is nothing to remove in $at"
    touch "$at/bin/pinfolder"
    said=$("$top/scripts/install.sh" --uninstall --prefix "$(realpath "$at")") || fail "$at: pinfold cannot be removed"
    for part in $(sed -n '/^static void find_parts/,/^}/s/.*names\[\] = //p' "$top/src/policy/own_files.c" | grep -o 'pinfold-[a-z]*') pinfold; do
        for text in "$said" "$(cat "$top/README.md")" "$(cat "$top/docs/HOWTO.md")"; do
            echo "$text" | grep -qE "\.local/state/$part([^a-z-]|\$)" || fail "users are not told that ~/.local/state/$part stays"
        done
    done
    left=$(cd "$at" && find . -name '*pinfold*' ! -type d)
    [ "$left" = ./bin/pinfolder ] || fail "left in $at after it was removed: $left"
    if "$top/scripts/install.sh" --uninstall --prefix "$(realpath "$at")" 2>/dev/null; then fail "what is not installed was removed"; fi
done
say "the library works"
