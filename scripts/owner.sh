# Read by sh at the top of the tree: as_owner COMMAND... runs as the owner of the tree where root builds in another user's (sudo ./pinfold), so
# that nothing of root's is left there and nothing of that user's runs as root. As root where that user cannot be (a namespace
# without that number) or cannot get here.
# shellcheck shell=sh
as_owner() {
    if [ -n "$owner" ]; then
        HOME=/nonexistent setpriv --reuid "${owner%:*}" --regid "${owner#*:}" --clear-groups "$@"
    else
        "$@"
    fi
}

owner=
if [ "$(id -u)" = 0 ] && [ "$(stat -c %u .)" != 0 ]; then
    owner=$(stat -c %u:%g .)
    as_owner test -w "$PWD" 2>/dev/null || owner=
fi
