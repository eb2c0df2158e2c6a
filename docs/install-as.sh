#!/bin/sh
# Installs FROM into DIRECTORY (below the prefix, or absolute) as NAME: install-as.sh FROM DIRECTORY NAME
set -eu
case $2 in
/*) to=${MESON_INSTALL_DESTDIR_PREFIX%"$MESON_INSTALL_PREFIX"}$2 ;;
*) to=$MESON_INSTALL_DESTDIR_PREFIX/$2 ;;
esac
mkdir -p "$to"
install -m 644 "$1" "$to/$3"
