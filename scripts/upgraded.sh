# Read by sh at the top of the tree: upgraded FOLDER: has another version of meson set it up, as before an upgrade of the system, or with a
# compiler, or a ccache, that was removed since?
# Another meson installs nothing from there, and what it sets up anew by itself it sets up for `cc`, whatever compiler it was for.
# shellcheck shell=sh
meson_is=
upgraded() {
    # shellcheck disable=SC2013,SC2016 # words, and ninja's own $in
    for compiler_was in $(sed -n 's/^ command = \([^ ]*\) .* -c \$in$/\1/p' "$1/build.ninja" 2>/dev/null); do
        command -v "$compiler_was" >/dev/null || return 0
    done
    meson_was=$(sed -n 's/.*"meson_version": *{"full": *"\([^"]*\)".*/\1/p' "$1/meson-info/meson-info.json" 2>/dev/null) || return 1
    [ -n "$meson_was" ] || return 1
    [ -n "$meson_is" ] || meson_is=$(meson --version) || return 1
    [ "$meson_was" != "$meson_is" ]
}
