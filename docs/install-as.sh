#!/bin/sh
# Installs FROM into DIRECTORY (below the prefix) as NAME: install-as.sh FROM DIRECTORY NAME
set -eu
mkdir -p "$MESON_INSTALL_DESTDIR_PREFIX/$2"
install -m 644 "$1" "$MESON_INSTALL_DESTDIR_PREFIX/$2/$3"
