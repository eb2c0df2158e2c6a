# Removes a branch's worktree and the branch from the storage that the branches of a repository share. HOW: "force", or "" to
# refuse when something would be lost with it: changed files, and commits that neither the checkout nor origin is known to have; "look"
# does that alone.
# shellcheck shell=sh disable=SC2154
[ -e "$repo/.git" ] || exit 0
s() { [ "$1" = 1 ] || echo s; }
take_from_host "$repo" 2>/dev/null || :
if [ "$how" != force ]; then
    commits=0 files=0
    there "refs/heads/$branch" && commits=$(g -C "$repo" rev-list --count "refs/heads/$branch" --not --remotes)
    [ ! -e "$dir/.git" ] || files=$(g -C "$dir" status --porcelain | wc -l)
    if [ "$commits" != 0 ] || [ "$files" != 0 ]; then
        has=
        [ "$commits" = 0 ] || has="$commits commit$(s "$commits") that neither the checkout nor origin has"
        [ "$files" = 0 ] || has="${has:+$has, and }$files changed file$(s "$files")"
        printf 'has %s\n' "$has"
        exit 91
    fi
fi
[ "$how" != look ] || exit 0
drop_worktree
[ ! -e "$dir" ] || die "cannot remove its worktree $dir"
! there "refs/heads/$branch" || g -C "$repo" branch -q -D "$branch" || die ""
! there "refs/agent-sandbox/${dir##*/}" || g -C "$repo" update-ref -d "refs/agent-sandbox/${dir##*/}" || die "" # what was imported with it
