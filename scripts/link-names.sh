#!/bin/sh
# Installs the names under which other programs look for bubblewrap, srt and the shell of an agent: link-names.sh DIRECTORY BIN (below the prefix)
set -eu
to=$MESON_INSTALL_DESTDIR_PREFIX/$1
ln -sf pinfold-bwrap "$to/bwrap"
# Relative, so that a whole tree can be moved: one step up for each component of DIRECTORY.
up=$(printf '%s\n' "$1" | sed 's/[^/][^/]*/../g')
ln -sf "$up/$2/pinfold" "$to/srt"
ln -sf "$up/$2/pinfold" "$to/agent-shell"
