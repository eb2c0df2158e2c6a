# Unpacks what a volume of agent-sandbox has, an archive on standard input, into /repo-import; in a box that can write nothing else, has
# no network, and does not see the checkout. Whoever wrote into the volume made the archive: devices, sockets and FIFOs are left out, so
# are links between files that lead outside, and of a repository all that would have git run or read something else. KIND: "branches",
# or another, of which the files are all. Writes "note TEXT", and "why TEXT" before it fails.
# shellcheck shell=sh disable=SC2015
kind=$1
unset TAR_OPTIONS
LC_ALL=C
export LC_ALL
umask 022
die() {
    printf 'why %s\n' "$1"
    exit 90
}
cd /repo-import || die "it cannot be unpacked here"
command -v tar >/dev/null || die "tar is not installed, which unpacks it"
problems=$(tar -x -f - --no-same-owner --no-same-permissions 2>&1 >/dev/null)
cat >/dev/null # what follows the end: whoever writes it would fail otherwise
# What is left out of somebody else's archive is one thing, what could not be written another.
other=$(printf '%s\n' "$problems" | grep -v -e '^$' -e ': Cannot mknod: Operation not permitted$' -e ': Cannot hard link to .*: No such file or directory$' \
    -e ': Cannot hard link to .*: Invalid cross-device link$' -e "^tar: .*: Member name contains '\.\.'\$" -e ': Not a directory$' -e '^tar: Removing leading ' -e '^tar: Exiting with failure status due to previous errors$' | head -n 1)
[ -z "$other" ] || die "${other#tar: }"
left=$(printf '%s\n' "$problems" | grep -c -e 'Cannot mknod' -e 'Cannot hard link' -e 'Member name contains' -e ': Not a directory$')
chmod -R u+rwX . 2>/dev/null
odd=$(find . -xdev ! -type d ! -type f ! -type l -print | wc -l)
find . -xdev ! -type d ! -type f ! -type l -exec rm -f {} +
find . -xdev -type f -perm /7000 -exec chmod ug-s,-t {} +
[ $((left + odd)) = 0 ] || printf 'note %d entries were left out: devices, sockets, FIFOs, and links that lead outside of it\n' "$((left + odd))"
[ "$kind" = branches ] || exit 0

git=repo/.git
[ -d $git ] && [ ! -h repo ] && [ ! -h $git ] || die "it has no repository (repo/.git)"
[ ! -e $git/reftable ] || die "its repository keeps its branches in a reftable"
format=$(sed -n 's/^[[:space:]]*objectformat[[:space:]]*=[[:space:]]*//Ip' $git/config 2>/dev/null | tail -n 1)
find $git -type l -exec rm -f {} +
rm -rf $git/config $git/config.worktree $git/hooks $git/info $git/commondir $git/objects/info/alternates $git/objects/info/http-alternates $git/refs/replace
{
    printf '[core]\n\trepositoryformatversion = 1\n\tbare = false\n[gc]\n\tauto = 0\n[uploadpack]\n\tallowAnySHA1InWant = true\n'
    [ "$format" != sha256 ] || printf '[extensions]\n\tobjectformat = sha256\n'
} >$git/config
[ ! -f $git/packed-refs ] || { grep -v ' refs/replace/' $git/packed-refs >$git/packed-refs.new && mv $git/packed-refs.new $git/packed-refs; }
for at in "$git"/worktrees/*/; do
    [ -d "$at" ] || continue
    rm -rf "${at}config.worktree" "${at}commondir"
    printf '../..\n' >"${at}commondir"
done
exit 0
