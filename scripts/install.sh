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

setup() { # folder
    if [ -f "$1/build.ninja" ]; then
        meson configure "$1" -Dprefix="$prefix"
    else
        meson setup "$1" -Dprefix="$prefix" --strip
    fi
}

CC=musl-gcc setup "$builds/program"
setup "$builds/library"
ninja -C "$builds/program"
ninja -C "$builds/library" library
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
