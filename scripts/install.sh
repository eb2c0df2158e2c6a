#!/bin/sh
# Installs pinfold: scripts/install.sh [--prefix DIR]      (DESTDIR is honoured); --uninstall removes it.
# Two builds, so that what ./pinfold has made is not made again: the static programs with musl in build/, libpinfold and
# pinfold-sqlite and pinfold-login with the system's C library in build-library/. `meson setup x && ninja -C x install` does the same from nothing. What is up
# to date is not built again. As root, what belongs to another user is built as that user.
set -eu
cd "$(dirname "$0")/.."
prefix=/usr/local
uninstall=
while [ $# -gt 0 ]; do
    case $1 in
    --prefix) prefix=$2 && shift 2 ;;
    --prefix=*) prefix=${1#*=} && shift ;;
    --uninstall) uninstall=yes && shift ;;
    *)
        echo "install.sh: unknown argument '$1' (install.sh [--uninstall] [--prefix DIR])" >&2
        exit 2
        ;;
    esac
done
case $prefix in
/*) ;;
*) prefix=$PWD/$prefix ;;
esac

# By name, because the builds and their logs may be gone.
if [ -n "$uninstall" ]; then
    at=${DESTDIR-}$prefix
    if [ ! -e "$at/bin/pinfold" ]; then
        echo "install.sh: there is no $at/bin/pinfold; name where it was installed with --prefix DIR" >&2
        exit 1
    fi
    for file in "$at"/lib*/libpinfold.* "$at"/lib*/*/libpinfold.* "$at"/lib*/pkgconfig/pinfold.pc "$at"/lib*/*/pkgconfig/pinfold.pc "$at/include/pinfold.h" \
        "$at"/share/man/man[157]/pinfold.[157] "$at"/share/man/man[157]/pinfold-*.[157] "$at/share/bash-completion/completions/pinfold" \
        "$at/share/zsh/site-functions/_pinfold" "$at/share/fish/vendor_completions.d/pinfold.fish"; do
        if [ -e "$file" ] || [ -L "$file" ]; then rm "$file"; fi
    done
    rm -rf "$at/libexec/pinfold" # pinfold's alone
    rm "$at/bin/pinfold"         # last: it says that there is something to remove
    echo "removed from $at; what pinfold keeps for each user stays in: ~/.config/pinfold, ~/.local/state/pinfold, ~/.local/state/pinfold-agents, ~/.local/state/pinfold-shelves"
    exit 0
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT

# shellcheck source=scripts/owner.sh
. scripts/owner.sh
# shellcheck source=scripts/upgraded.sh
. scripts/upgraded.sh
# shellcheck source=scripts/locked.sh
. scripts/locked.sh
# shellcheck source=scripts/musl.sh
. scripts/musl.sh

quietly() { # what it says is of interest where it fails
    "$@" >"$log" 2>&1 && return
    tail -n 40 "$log" >&2
    missing=$(scripts/packages.sh missing build | tr '\n' ' ')
    echo "install.sh: this failed: $*${missing:+; these packages are missing: $missing}" >&2
    exit 1
}

# Where pkg-config looks by itself below this prefix; meson's own choice depends on what else is installed.
libdir=lib
for place in $(pkg-config --variable pc_path pkg-config 2>/dev/null | tr : ' '); do
    case $place in
    "$prefix"/lib*/pkgconfig)
        libdir=${place#"$prefix"/}
        libdir=${libdir%/pkgconfig}
        break
        ;;
    esac
done

setup() { # folder, OPTION=VALUE ...: only a change makes meson look at everything anew
    folder=$1
    shift
    if upgraded "$folder"; then as_owner rm -rf "$folder"; fi
    if [ ! -f "$folder/build.ninja" ]; then
        for option in "$@"; do set -- "$@" "-D$option" && shift; done
        as_owner meson setup "$folder" "$@"
        return
    fi
    has=$(meson introspect --buildoptions "$folder" | python3 -c 'import json, sys
print("\n".join(o["name"] + "=" + str(o["value"]) for o in json.load(sys.stdin)))')
    for option in "$@"; do
        shift
        printf '%s\n' "$has" | grep -qxF -- "$option" || set -- "$@" "-D$option"
    done
    [ $# = 0 ] || as_owner meson setup --reconfigure "$folder" "$@"
}

put() { # folder
    meson install -C "$1" --no-rebuild --quiet --strip
    if [ -n "$owner" ]; then chown -R "$owner" "$1/meson-logs" "$1/meson-private"; fi
}

make_and_put() {
    (musl_environment && CC=musl-gcc quietly setup build "prefix=$prefix")
    sqlite=disabled # without its library it is left out, and pinfold says so where it needs it
    if [ -e /usr/include/sqlite3.h ]; then sqlite=enabled; fi
    login=disabled # likewise
    if [ -e /usr/include/curl/curl.h ] || [ -e "/usr/include/$(uname -m)-linux-gnu/curl/curl.h" ]; then login=enabled; fi
    quietly setup build-library "prefix=$prefix" "libdir=$libdir" programs=disabled "sqlite=$sqlite" "login=$login"
    quietly as_owner ninja -C build
    quietly as_owner ninja -C build-library library
    [ "$sqlite" = disabled ] || quietly as_owner ninja -C build-library pinfold-sqlite
    [ "$login" = disabled ] || quietly as_owner ninja -C build-library pinfold-login
    quietly put build
    quietly put build-library
}

locked product
echo "building what is not up to date (a minute or so the first time)"
make_and_put 9>&-
exec 9>&-
echo "installed under $prefix; try: $prefix/bin/pinfold doctor"
[ -z "${DESTDIR-}" ] || exit 0

# What the shell, pkg-config and the loader do not look through by themselves.
lib=$prefix/$libdir
lines=
add() {
    lines="$lines    $1
"
}
case :$PATH: in *:"$prefix/bin":*) ;; *) add "export PATH=$prefix/bin:\$PATH" ;; esac
[ "$(env -u PKG_CONFIG_PATH pkg-config --variable=prefix pinfold 2>/dev/null)" = "$prefix" ] || add "export PKG_CONFIG_PATH=$lib/pkgconfig"
if [ "$(id -u)" = 0 ]; then PATH=$PATH:/usr/sbin:/sbin ldconfig 2>/dev/null || true; fi
PATH=$PATH:/usr/sbin:/sbin ldconfig -p 2>/dev/null | grep -qF "$lib/libpinfold.so" || add "export LD_LIBRARY_PATH=$lib"
if [ -n "$lines" ]; then
    echo "these lines belong into your shell's profile (the ones with LIB and PKG are for programs with libpinfold):"
    printf '%s' "$lines"
fi

# Ubuntu lets only programs that a profile names make user namespaces; root's may, so `doctor` as root sees nothing of it.
if [ "$(cat /proc/sys/kernel/apparmor_restrict_unprivileged_userns 2>/dev/null)" = 1 ] && [ ! -e /etc/apparmor.d/pinfold ]; then
    echo "AppArmor on this machine lets no ordinary user's program create user namespaces unless a profile allows it, and boxes need them; run once, as an ordinary user, and do what it prints:"
    echo "    $prefix/bin/pinfold doctor"
fi
