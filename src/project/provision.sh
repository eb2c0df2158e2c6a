# Makes a branch's worktree in the storage that the branches of a repository share. HOW: "again" if a run for this branch was killed,
# "locks" if one for another was; "import", "import-again": the branch comes from a volume (import/import.sh is read before this).
#
# /repo-shelf/repo is complete, or not there: it is put together in /repo-shelf/.new. What a run that ends by itself had begun it
# removes; what a killed one had begun the next removes.
# shellcheck shell=sh disable=SC2154
begun=
tidy() {
    rm -rf "$new"
    [ -z "$begun" ] || drop_worktree
    [ "$begun" != branch ] || g -C "$repo" branch -q -D "$branch"
}
trap tidy EXIT

# Locks that a killed git has left, and worktrees that it had only begun (git reads no repository in which one's HEAD is nothing): those
# that are still there, unchanged, after a while. No lock of git's here takes as long, but for that of an index, which belongs to who
# works in that worktree.
drop_locks() {
    [ -d "$repo/.git" ] || return 0
    locks() { find "$repo/.git" -name '*.lock' ! -name index.lock ! -path '*/objects/*' -exec ls -di {} + 2>/dev/null; }
    begun_worktrees() {
        for at in "$repo"/.git/worktrees/*/HEAD; do
            [ ! -f "$at" ] || grep -q '[^0]' "$at" || ls -di "$at"
        done
    }
    held=$(locks && begun_worktrees)
    [ -n "$held" ] || return 0
    sleep 2
    begun_worktrees | while read -r inode name; do
        printf '%s\n' "$held" | grep -qxF "$inode $name" && rm -rf "${name%/HEAD}"
    done
    locks | while read -r inode name; do
        printf '%s\n' "$held" | grep -qxF "$inode $name" && rm -f "$name"
    done
}

# The objects as they are, in shared blocks where the file system can: git then has only to check that nothing is missing.
copy_objects() {
    cp -R --reflink=auto "$common/objects/." "$new/.git/objects/" 2>/dev/null || return 1
    rm -rf "$new/.git/objects/info/alternates" "$new/.git/objects/info/http-alternates" "$new"/.git/objects/incoming-* \
        "$new"/.git/objects/tmp_*
}

begin_repository() { # "copy": with the objects as they are
    rm -rf "$new"
    g init -q --template= --object-format="$format" "$new" || return 1
    mkdir -p "$new/.git/info" "$new/.git/hooks"
    g -C "$new" config remote.host.url "$url" &&
        g -C "$new" config remote.host.fetch '+refs/heads/*:refs/remotes/host/*' || return 1
    [ "$1" = copy ] && { copy_objects || return 1; }
    take_from_host "$new"
}

# git would wait for ever for somebody who writes into a FIFO, which a box may have left there.
no_files() { find "$1" ! -type f ! -type d ! -type l -print 2>/dev/null | head -n 1; }
odd=$(no_files "$checkout/.git")
[ -z "$odd" ] || die "'$real/${odd#"$checkout"/}' is neither a file nor a directory, and git would wait for it; remove it"
g -C "$checkout" rev-parse --git-dir >/dev/null || die "'$real' is not a git repository that git would use"
[ "$(g -C "$checkout" rev-parse --is-bare-repository)" = false ] || die "'$real' is a bare repository; branches need a checkout: clone it, and begin there"
common=$(cd "$checkout" && cd "$(g rev-parse --git-common-dir)" && pwd -P) || die "cannot read the repository of '$real'"
case $common in
"$checkout/.git") ;;
*)
    odd=$(no_files "$common")
    [ -z "$odd" ] || die "'$odd' is neither a file nor a directory, and git would wait for it; remove it"
    ;;
esac
format=$(g -C "$checkout" rev-parse --show-object-format 2>/dev/null) || format=sha1
[ -n "$(g -C "$checkout" for-each-ref --count=1 refs/heads)" ] || g -C "$checkout" rev-parse -q --verify HEAD >/dev/null ||
    die "'$real' has no commit yet; make the first one, then branches have something to begin with"
origin=$(g -C "$checkout" config --get remote.origin.url) || origin=
case $origin in
'' | /* | *:*) ;;
*) origin=$real/$origin ;; # a path, which is relative to the checkout
esac

case $how in *again) drop_worktree ;; esac
[ -z "$how" ] || drop_locks
rm -rf "$new"
if [ ! -e "$repo/.git" ]; then
    rm -rf "$repo"
    [ ! -e "$repo" ] || die "cannot remove what is left of an earlier attempt in the branches' storage"
    begin_repository copy 2>/dev/null || begin_repository plain || die ""
    head=$(g -C "$checkout" rev-parse -q --verify HEAD) || head=$(g -C "$checkout" for-each-ref --count=1 --format='%(objectname)' refs/heads)
    g -C "$new" update-ref --no-deref HEAD "$head" || die "" # so that no branch counts as checked out here
    # Pushed to over a socket, whose other end is a box on the host's side.
    g -C "$new" config remote.host.receivepack /.pinfold-remote || die ""
    g -C "$new" config remote.host.uploadpack '/.pinfold-remote --fetch' || die ""
    mv "$new" "$repo" || die ""
else
    [ "$(g -C "$repo" config --get remote.host.url)" = "$url" ] || g -C "$repo" config remote.host.url "$url" || die ""
    take_from_host "$repo" || die ""
fi
if [ -n "$origin" ]; then
    [ "$(g -C "$repo" config --get remote.origin.url)" = "$origin" ] || g -C "$repo" config remote.origin.url "$origin" || die ""
    [ -n "$(g -C "$repo" config --get remote.origin.fetch)" ] || g -C "$repo" config remote.origin.fetch '+refs/heads/*:refs/remotes/origin/*' || die ""
    head=$(g -C "$checkout" symbolic-ref -q refs/remotes/origin/HEAD) && g -C "$repo" symbolic-ref refs/remotes/origin/HEAD "$head"
    problem=$(g -C "$repo" -c http.lowSpeedLimit=1 -c http.lowSpeedTime=20 fetch -q --prune origin 2>&1) ||
        printf 'note origin could not be asked (%s); its branches are as the checkout last saw them\n' "$(printf '%s\n' "$problem" | grep -m 1 . | sed 's/^[a-z]*: //')"
fi
# Who commits, where only the checkout's own configuration says it.
for key in user.name user.email; do
    value=$(g -C "$checkout" config --local --get "$key") || continue
    g -C "$repo" config --local --get "$key" >/dev/null || g -C "$repo" config "$key" "$value" || die ""
done

if [ ! -e "$dir/.git" ]; then
    drop_worktree
    mkdir -p "$shelf/worktrees"
    begun=worktree
    mine=refs/remotes/host/$branch theirs=refs/remotes/origin/$branch
    if [ "${how#import}" != "$how" ]; then
        bring
    elif there "refs/heads/$branch"; then
        from="its own commits in the branches' storage"
        g -C "$repo" worktree add -q "$dir" "$branch" >/dev/null || die ""
    else
        track=--no-track
        if there "$theirs" && ! { there "$mine" && g -C "$repo" merge-base --is-ancestor "$theirs" "$mine"; }; then
            start=$theirs track=--track
        elif there "$mine"; then
            start=$mine
        elif there refs/remotes/origin/main; then
            start=refs/remotes/origin/main
        elif there refs/remotes/origin/HEAD; then
            start=refs/remotes/origin/HEAD
        else
            start=$(g -C "$checkout" rev-parse -q --verify HEAD) || start=$(g -C "$checkout" for-each-ref --count=1 --format='%(objectname)' refs/heads)
        fi
        case $start in
        refs/remotes/host/*) from="the branch of this name in the checkout" ;;
        refs/remotes/*) from=${start#refs/remotes/} ;;
        *) from="the checkout's commit $(g -C "$repo" rev-parse --short "$start")" ;;
        esac
        begun=branch
        g -C "$repo" worktree add -q $track -b "$branch" "$dir" "$start" >/dev/null || die ""
    fi
    begun=
    printf 'from %s\n' "$from"
fi
trap - EXIT
