#!/bin/sh
# Installs pinfold: scripts/install.sh [--prefix DIR] [--builds FOLDER]      (DESTDIR is honoured)
# Two builds: the static program with musl, and libpinfold with the system's C library.
set -eu
cd "$(dirname "$0")/.."
prefix=/usr/local
builds=build-install
while [ $# -gt 0 ]; do
    case $1 in
    --prefix) prefix=$2 && shift 2 ;;
    --prefix=*) prefix=${1#*=} && shift ;;
    --builds) builds=$2 && shift 2 ;;
    *)
        echo "install.sh: what is '$1'? (install.sh [--prefix DIR] [--builds FOLDER])" >&2
        exit 2
        ;;
    esac
done
case $prefix in
/*) ;;
*) prefix=$PWD/$prefix ;;
esac

log=$(mktemp)
trap 'rm -f "$log"' EXIT

quietly() { # what it says is of interest where it fails
    "$@" >"$log" 2>&1 && return
    cat "$log" >&2
    missing=$(scripts/packages.sh missing build | tr '\n' ' ')
    echo "install.sh: this failed: $*${missing:+; these packages are missing: $missing}" >&2
    exit 1
}

setup() { # folder
    if [ -f "$1/build.ninja" ]; then
        meson configure "$1" -Dprefix="$prefix"
    else
        meson setup "$1" -Dprefix="$prefix" --strip
    fi
}

echo "building (a minute or so)"
CC=musl-gcc quietly setup "$builds/program"
quietly setup "$builds/library"
quietly ninja -C "$builds/program"
quietly ninja -C "$builds/library" library
meson install -C "$builds/program" --no-rebuild --quiet
meson install -C "$builds/library" --no-rebuild --quiet
echo "installed under $prefix; try: $prefix/bin/pinfold doctor"
case $prefix in
/usr | /usr/local) ;;
*) # what pkg-config and the loader do not look through by themselves
    pc=$(find "${DESTDIR-}$prefix" -name pinfold.pc -print -quit)
    pc=${pc#"${DESTDIR-}"}
    echo "for programs with libpinfold: export PKG_CONFIG_PATH=${pc%/*} LD_LIBRARY_PATH=${pc%/pkgconfig/*}"
    ;;
esac
