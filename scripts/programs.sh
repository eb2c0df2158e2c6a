#!/bin/sh
# The musl build inside a build with the system's compiler, driven by meson.build (option `programs`):
#     programs.sh setup FOLDER COMPILER OPTION...   sets it up, or brings its options up to date
#     programs.sh install FOLDER                    installs what it has built, for `meson install`
set -eu
# shellcheck source=scripts/musl.sh
. "${0%/*}/musl.sh"
what=$1 folder=$2
shift 2
meson=${MESONINTROSPECT% introspect} # the meson that calls: a command line, quoted for a shell

case $what in
setup)
    compiler=$1
    shift
    if [ -f "$folder/build.ninja" ]; then set -- --reconfigure "$@"; fi
    export CC="$compiler"
    musl_environment # but for what installs: LD_PRELOAD may be fakeroot's
    eval "$meson"' setup "$@" "$folder" "$MESON_SOURCE_ROOT"'
    ;;
install)
    DESTDIR=${MESON_INSTALL_DESTDIR_PREFIX%"$MESON_INSTALL_PREFIX"}
    export DESTDIR
    eval "$meson"' install -C "$folder" --no-rebuild --quiet'
    ;;
esac
