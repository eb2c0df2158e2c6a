# Copies the hooks that git would run in the checkout REAL to /run/repo-hooks, as they are now. In a box: what a box does not see is not
# copied, whatever link leads to it. Writes "why TEXT" before it fails; otherwise "at DIR", the directory of the hooks there, and
# "has NAME" for each of the two that judge commits. START, if it is said: a directory for `upstream`, the branches of remotes.
# shellcheck shell=sh
real=$1 to=/run/repo-hooks
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE
LC_ALL=C
export LC_ALL
die() {
    printf 'why %s\n' "$1"
    exit 90
}
cd "$real" || die "'$real' cannot be read"
at=$(git rev-parse --git-path hooks) || die "'$real' is no git repository that git would use"
[ "$(git config --get extensions.refstorage)" != reftable ] ||
    die "the repository keeps its branches in a reftable, which it cannot judge; convert it with: git refs migrate --ref-format=files"
case $at in
/*) ;;
*) at=$real/$at ;;
esac
if [ $# -gt 1 ]; then
    git for-each-ref --format='%(objectname) %(refname) %(symref)' refs/remotes >"$2/upstream" || die "its branches cannot be read"
fi
below=
case $at in
*/.husky/_) # which runs what lies beside it
    at=${at%/_}
    below=/_
    ;;
esac
[ -d "$at" ] || exit 0
[ "$(find -L "$at" 2>/dev/null | head -n 2001 | wc -l)" -le 2000 ] || die "the directory of its hooks, '$at', has more than 2000 files"
ulimit -f 65536
cp -RL "$at/." "$to/" 2>/dev/null || die "its hooks in '$at' cannot be copied as a box sees them (hidden files, links that lead nowhere, more than 32 MiB)"
printf 'at %s\n' "$to$below"
for name in pre-commit commit-msg; do
    # husky has one of its own for every name, which does nothing
    if [ -f "$to$below/$name" ] && [ -x "$to$below/$name" ] && [ -f "$to/$name" ]; then
        printf 'has %s\n' "$name"
    fi
done
