# Branches of a volume that agent-sandbox made, unpacked at /repo-import by unpack.sh; read behind shelf.sh, in its box. HOW:
#
#     look     says what there is, "old BRANCH COMMITS FILES STATE" for each: commits that no remote is known to have, changed files, and
#              `new`, `same` (it was imported, and is as it was then), `other` (the storage has a branch of this name)
#     rest     BRANCH "" or one: keeps what of `other` branches the storage does not have as refs/agent-sandbox/WORD; stashes, tags
#     import   provision.sh follows, and has the branch made of what is here ("import-again": after a kill)
#
# Each branch's state is one commit, kept as refs/agent-sandbox/WORD: its tree is the files, its parents are the branch's commit and, if
# it was not the same, the index. So what was imported is known, and nothing of it is lost with the branch's worktree.
# shellcheck shell=sh disable=SC2015,SC2154,SC2034
old=/repo-import git=/repo-import/repo/.git
og() { g --git-dir="$git" "$@"; }
word_of() { printf %s "$1" | sed 's,[/[:space:]],__,g'; }

# A commit of a tree that is the same each time.
frozen() { # TREE PARENT...
    tree=$1
    shift
    when=$(og log -1 --format=%ct "$1") || return 1
    parents=$(printf ' -p %s' "$@")
    # shellcheck disable=SC2086
    GIT_AUTHOR_NAME=agent-sandbox GIT_AUTHOR_EMAIL=agent-sandbox@localhost GIT_AUTHOR_DATE="$when +0000" GIT_COMMITTER_NAME=agent-sandbox \
        GIT_COMMITTER_EMAIL=agent-sandbox@localhost GIT_COMMITTER_DATE="$when +0000" \
        og commit-tree -m "agent-sandbox: the files as they were" $parents "$tree"
}

# The state of a branch into refs/agent-sandbox/WORD and agent-sandbox-head/WORD of the unpacked repository. FILES: its work tree, or "".
freeze() { # BRANCH COMMIT FILES GITDIR
    word=$(word_of "$1") state=$2
    base=$(og rev-parse -q --verify "$2^{tree}") || return 1
    if [ -n "$3" ]; then
        rm -f "$old/.index"
        cp "$4/index" "$old/.index" 2>/dev/null || GIT_INDEX_FILE=$old/.index og read-tree "$2"
        index=$(GIT_INDEX_FILE=$old/.index og write-tree 2>/dev/null) || index=$base # of a merge under way: not written
        all=$(
            export GIT_INDEX_FILE="$old/.index"
            og --work-tree="$3" -c core.bare=false -c core.autocrlf=false add -A --ignore-errors -- "$3" >/dev/null 2>&1
            og write-tree 2>/dev/null
        ) || all=$index
        rm -f "$old/.index"
        if [ "$index" != "$base" ]; then
            state=$(frozen "$all" "$2" "$(frozen "$index" "$2")") || return 1
        elif [ "$all" != "$base" ]; then
            state=$(frozen "$all" "$2") || return 1
        fi
        mkdir -p "$old/.files" && printf '%s\n' "$3" >"$old/.files/$word" || return 1
    fi
    og update-ref --no-deref "refs/agent-sandbox/$word" "$state" && og update-ref --no-deref "refs/agent-sandbox-head/$word" "$2"
}

tell() { # BRANCH COMMIT COMMITS
    word=$(word_of "$1")
    state=$(og rev-parse "refs/agent-sandbox/$word") now=new
    if [ -e "$repo/.git" ]; then
        if there "refs/heads/$1" && [ "$(g -C "$repo" rev-parse -q --verify "refs/agent-sandbox/$word")" = "$state" ]; then
            now=same
        elif there "refs/heads/$1"; then
            now=other
            [ "$state" != "$2" ] || ! g -C "$repo" merge-base --is-ancestor "$2" "refs/heads/$1" 2>/dev/null || now=same
        fi
    fi
    printf 'old %s %d %d %s\n' "$1" "$3" "$(og diff-tree -r --name-only "$2" "$state" | wc -l)" "$now"
}

look_at() { # BRANCH COMMIT FILES GITDIR; "" FILES: of a branch without a worktree, worth it only with commits of its own
    word=$(word_of "$1")
    if [ -f "$old/.names/$word" ]; then
        [ "$(cat "$old/.names/$word")" = "$1" ] || printf 'note branch %s would have the same directory as another; it is left in the volume\n' "$1"
        return 0
    fi
    commits=$(og rev-list --count "$2" --not --remotes 2>/dev/null) || {
        printf 'note branch %s is damaged in the volume: objects of its history are missing; it is left there\n' "$1"
        return 0
    }
    [ -n "$3" ] || [ "$commits" != 0 ] || return 0
    mkdir -p "$old/.names" && printf '%s\n' "$1" >"$old/.names/$word" || return 0
    freeze "$1" "$2" "$3" "$4" || {
        printf 'note branch %s cannot be read in the volume; it is left there\n' "$1"
        return 0
    }
    for at in MERGE_HEAD CHERRY_PICK_HEAD REVERT_HEAD rebase-merge rebase-apply; do
        [ -z "$3" ] || [ ! -e "$4/$at" ] || printf 'note in branch %s a merge or rebase was under way: its files come along, but not that it was\n' "$1"
    done
    [ -z "$3" ] || [ ! -d "$4/modules" ] || printf 'note branch %s has submodules: their files come along, not their repositories (git submodule update)\n' "$1"
    tell "$1" "$2" "$commits"
}

head_of() { # GITDIR: sets `at` (a branch, or "") and `commit`
    at=$(sed -n 's,^ref: refs/heads/,,p' "$1/HEAD" 2>/dev/null)
    if [ -n "$at" ]; then
        commit=$(og rev-parse -q --verify "refs/heads/$at^{commit}")
    else
        commit=$(sed -n '1s/^\([0-9a-f]\{40,64\}\)$/\1/p' "$1/HEAD" 2>/dev/null)
        commit=$(og rev-parse -q --verify "${commit:-none}^{commit}")
    fi
}

look() {
    for own in "$git"/worktrees/*/; do
        own=${own%/}
        files=$(sed -n '1s,^/repo-shelf/worktrees/\([^/]*\)/\.git$,\1,p' "$own/gitdir" 2>/dev/null)
        case $files in '' | . | ..) continue ;; esac
        [ -d "$old/worktrees/$files" ] && [ ! -h "$old/worktrees/$files" ] || continue
        head_of "$own"
        [ -n "$commit" ] || continue
        look_at "${at:-$files}" "$commit" "$old/worktrees/$files" "$own"
    done
    # Somebody may have worked in the repository's own work tree, which is not laid otherwise.
    if [ -f "$git/index" ]; then
        head_of "$git"
        [ -z "$commit" ] || look_at "${at:-repo}" "$commit" "$old/repo" "$git"
    fi
    og for-each-ref --format='%(refname:lstrip=2) %(objectname)' refs/heads | while read -r at commit; do
        look_at "$at" "$commit" "" ""
    done
}

# From provision.sh: makes branch and worktree. The index is refreshed, so that git need not read every file again.
bring() {
    word=${dir##*/}
    commit=$(og rev-parse -q --verify "refs/agent-sandbox-head/$word") && state=$(og rev-parse -q --verify "refs/agent-sandbox/$word") || die "it is not in the volume"
    if [ "$how" = import-again ] && [ "$(g -C "$repo" rev-parse -q --verify "refs/heads/$branch")" = "$commit" ]; then
        g -C "$repo" branch -q -D "$branch" || die ""
    fi
    ! there "refs/heads/$branch" || die "the branches' storage has a branch of this name, which stays as it is"
    g -C "$repo" fetch -q --no-tags --upload-pack git-upload-pack "$git" "$state" || die ""
    from="what agent-sandbox has of it"
    begun=branch
    if [ ! -f "$old/.files/$word" ]; then
        g -C "$repo" worktree add -q --no-track -b "$branch" "$dir" "$commit" >/dev/null || die ""
    else
        files=$(cat "$old/.files/$word")
        g -C "$repo" worktree add -q --no-checkout --no-track -b "$branch" "$dir" "$commit" >/dev/null || die ""
        find "$files" -mindepth 1 -maxdepth 1 ! -name .git -exec cp -RPp {} "$dir/" \; || die "its files cannot be copied"
        index=$(g -C "$repo" rev-parse -q --verify "$state^2") || index=$commit
        g -C "$dir" read-tree "$index" || die ""
        g -C "$dir" update-index -q --refresh >/dev/null 2>&1
    fi
    there "refs/agent-sandbox/$word" || g -C "$repo" update-ref --no-deref "refs/agent-sandbox/$word" "$state" '' || die ""
}

rest() {
    [ -e "$repo/.git" ] || return 0
    og for-each-ref --format='%(refname:lstrip=2)' refs/agent-sandbox | while read -r word; do
        [ -z "$branch" ] || [ "$word" = "$(word_of "$branch")" ] || continue
        there "refs/agent-sandbox/$word" && continue
        g -C "$repo" fetch -q --no-tags --upload-pack git-upload-pack "$git" "refs/agent-sandbox/$word:refs/agent-sandbox/$word" &&
            printf 'note what the volume has of it is refs/agent-sandbox/%s in /repo-shelf/repo\n' "$word"
    done
    [ -z "$branch" ] || return 0
    og for-each-ref --format='%(refname)' refs/tags | while read -r name; do
        there "$name" || g -C "$repo" fetch -q --no-tags --upload-pack git-upload-pack "$git" "$name:$name"
    done
    n=0
    if [ -f "$git/logs/refs/stash" ]; then
        while IFS='	' read -r line about; do
            line=${line#* }
            id=${line%% *}
            g -C "$repo" log -g --format=%H refs/stash 2>/dev/null | grep -qxF "$id" && continue
            g -C "$repo" fetch -q --no-tags --upload-pack git-upload-pack "$git" "$id" 2>/dev/null && g -C "$repo" stash store -q -m "${about:-of agent-sandbox}" "$id" && n=$((n + 1))
        done <"$git/logs/refs/stash"
        [ $n = 0 ] || printf 'note stashes that came along: %d (git stash list)\n' "$n"
    fi
}

case $how in
look)
    look
    exit 0
    ;;
rest)
    rest
    exit 0
    ;;
esac
