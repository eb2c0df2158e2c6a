#!/bin/sh
# Installs the name under which other programs look for bubblewrap: link-bwrap.sh DIRECTORY (below the prefix)
set -eu
ln -sf pinfold-bwrap "$MESON_INSTALL_DESTDIR_PREFIX/$1/bwrap"
