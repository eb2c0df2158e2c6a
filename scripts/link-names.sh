#!/bin/sh
# Installs the names under which other programs look for bubblewrap, srt and the shell of an agent: link-names.sh DIRECTORY BIN
# (each below the prefix, or absolute: meson's libexecdir and bindir may lie outside of it)
set -eu
destination=${MESON_INSTALL_DESTDIR_PREFIX%"$MESON_INSTALL_PREFIX"}
absolute() { # a place as it is once installed
    case $1 in
    /*) printf '%s\n' "$1" ;;
    *) printf '%s\n' "${MESON_INSTALL_PREFIX%/}/$1" ;;
    esac
}
case ${1%"${1#?}"}${2%"${2#?}"} in
*/*) pinfold=$(absolute "$2")/pinfold ;;
# Relative, so that a whole tree can be moved: one step up for each component of DIRECTORY.
*) pinfold=$(printf '%s\n' "$1" | sed 's/[^/][^/]*/../g')/$2/pinfold ;;
esac
to=$destination$(absolute "$1")
ln -sf pinfold-bwrap "$to/bwrap"
ln -sf "$pinfold" "$to/srt"
ln -sf "$pinfold" "$to/agent-shell"
