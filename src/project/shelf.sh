# What the scripts of a shelf share, read before each of them. They run in a box whose guard is off, with what is in it:
#
#     CHECKOUT   the person's checkout, to be read only
#     URL        what the remote `host` is called
#     BRANCH DIR the branch, and its worktree
#     REAL       the checkout's path on the host
#     HOW        a word of each script's own
#
# They write lines on standard output: "note TEXT", "from TEXT", "has TEXT", and "why TEXT" before they fail.
# shellcheck shell=sh disable=SC2034
checkout=$1 url=$2 branch=$3 dir=$4 real=$5 how=$6
shelf=/repo-shelf
repo=$shelf/repo new=$shelf/.new
export GIT_TERMINAL_PROMPT=0 GIT_SSH_COMMAND='ssh -oBatchMode=yes -oConnectTimeout=10' LC_ALL=C
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_OBJECT_DIRECTORY

# A box whose pinfold was killed is at work until the kernel has ended it, and the lock of pinfold's own went before: all that runs in a
# box holds this one. No box of a branch has that file.
exec 8>/run/shelf-work/lock
if command -v flock >/dev/null; then flock 8; fi

tidy() { :; }
die() {
    printf 'why %s\n' "$1"
    trap - EXIT
    tidy
    exit 90
}
# Hooks are for the person's own git and for the boxes.
g() { git -c core.hooksPath=/dev/null -c gc.auto=0 -c maintenance.auto=false -c advice.detachedHead=false "$@"; }
there() { g -C "$repo" show-ref -q --verify "$1"; }

# What registers $dir as a worktree, and the directory. `git worktree prune` would also forget those that boxes have elsewhere.
drop_worktree() {
    for at in "$repo"/.git/worktrees/*/gitdir; do
        [ ! -f "$at" ] || [ "$(cat "$at")" != "$dir/.git" ] || rm -rf "${at%/gitdir}"
    done
    rm -rf "$dir"
}

take_from_host() { # repository
    g -C "$1" -c "url.file://$checkout.insteadOf=$url" fetch -q --upload-pack git-upload-pack --no-tags --update-shallow --prune host '+refs/heads/*:refs/remotes/host/*' '+refs/remotes/origin/*:refs/remotes/origin/*' '^refs/remotes/origin/HEAD' \
        '+refs/tags/*:refs/tags/*'
}
