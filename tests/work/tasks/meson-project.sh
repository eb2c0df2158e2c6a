#!/bin/sh
# needs: meson ninja gcc
# fixture: meson-project
set -eu
cd meson-project
meson setup build >/dev/null
ninja -C build >/dev/null
meson test -C build --quiet >/dev/null
