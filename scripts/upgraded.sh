# Read by sh at the top of the tree: upgraded FOLDER: has another version of meson set it up, as before an upgrade of the system?
# The new one installs nothing from there, and what it sets up anew by itself it sets up for `cc`, whatever compiler it was for.
# shellcheck shell=sh
meson_is=
upgraded() {
    meson_was=$(sed -n 's/.*"meson_version": *{"full": *"\([^"]*\)".*/\1/p' "$1/meson-info/meson-info.json" 2>/dev/null) || return 1
    [ -n "$meson_was" ] || return 1
    [ -n "$meson_is" ] || meson_is=$(meson --version) || return 1
    [ "$meson_was" != "$meson_is" ]
}
