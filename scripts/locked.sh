# Read by sh at the top of the tree after owner.sh: locked product|host|asan|faults waits until nobody else builds that here. Two
# ./pinfold may be the first of a tree at the same moment, and meson and ninja do not work in one folder by twos.
# The lock is of descriptor 9 and ends with this shell: nothing that is started may inherit it (9>&-), a compiler's cache may stay.
# shellcheck shell=sh
locked() {
    command -v flock >/dev/null || return 0
    # Where this cannot be written, the build says so.
    # shellcheck disable=SC2016 # for the shell inside
    as_owner sh -c 'mkdir -p build-lock && : >>"build-lock/$1"' sh "$1" 2>/dev/null || return 0
    exec 9>>"build-lock/$1"
    if ! flock -n 9; then
        echo "${0##*/}: waiting for another build in this tree ($1)" >&2
        flock 9 || :
    fi
}
