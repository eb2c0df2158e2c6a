# Branches of a project in containers, sourced by run: provisioning by the image's git, killed and repaired; the remote `host`, whose
# pushes are judged outside; what stop and rm leave.
# shellcheck shell=bash
# shellcheck disable=SC2015,SC2016,SC2086,SC2154,SC2317,SC2329 # as in run

# busybox's image with this machine's git.
kit_git_tar() {
    local d=$KIT/git at
    if [ ! -d "$d" ]; then
        cp -a "$KIT/busybox" "$d"
        for at in $(kit_program git) /usr/lib/git-core/git /usr/lib/git-core/git-upload-pack /usr/lib/git-core/git-receive-pack $(ldd "$(kit_program git)" | grep -o '/[^ ]*'); do
            mkdir -p "$d${at%/*}" && cp -L "$at" "$d$at"
        done
    fi
    tar -C "$d" --owner=0 --group=0 -cf - .
}

branch_session() { # of the project $top and this branch
    local word=${1//\//__}
    echo "agent-sandbox-${top##*/}-$word-$(printf %s "$top" | md5sum | cut -c1-12)"
}
in_branch() { # branch, script
    dir=$top pf_rc exec "$(branch_session "$1")" -- sh -c "$2"
}

# SIGKILL of pinfold before one of its calls that make or end something, as tests/branches/kills.py has it on native: of `start` in the
# middle, of `stop` behind its first ones; all of them with PINFOLD_BRANCH_KILLS=1.
branch_kills() {
    local strike=$KIT/strike verb n every=${PINFOLD_BRANCH_KILLS:-1000} of_start=60 of_stop=6 kills
    [ -x "$strike" ] || { cc -O1 -o "$strike" "$here/../layer/strike.c" && chmod 755 "$strike"; } || { echo "strike" && return 1; }
    [ "$every" = 1000 ] || { of_start=1 && of_stop=1; }
    for verb in start stop; do
        kills=0 n=$of_start
        [ $verb = start ] || n=$of_stop
        for (( ; n < 1000; n += every)); do
            [ $verb = start ] || dir=$top pf_rc start --branch feature/one
            dir=$top as "$who" "$strike" kill-steps $n "$PINFOLD" $verb --branch feature/one >/dev/null 2>"$said"
            [ $? = 99 ] || break
            kills=$((kills + 1))
            [ $verb = start ] || dir=$top pf_rc stop --branch feature/one
            dir=$top pf_rc start --branch feature/one
            [ $rc = 0 ] || { echo "start after a kill of $verb at $n: status $rc" && return 1; }
            in_branch feature/one 'git symbolic-ref --short HEAD && git ls-remote -q host refs/heads/feature/one'
            [ "$(head -n 1 "$out")" = feature/one ] && printed 'refs/heads/feature/one$' || { echo "the box after a kill of $verb at $n" && return 1; }
            dir=$top pf_rc stop --branch feature/one
            [ $rc = 0 ] || { echo "stop after a kill of $verb at $n: status $rc" && return 1; }
        done
        [ $kills != 0 ] || { echo "$verb has fewer than $n calls" && return 1; }
    done
    [ -z "$(left)" ] || { echo "a container is left after kills" && return 1; }
}

# Two boxes on one shelf; what of a push lands, with hooks and without; a start that was killed; nothing is left.
t_branches() {
    local top shelf before
    top=$(home "$who")/branches-$engine
    shelf=$(home "$who")/home/state/pinfold-shelves/agent-sbx-repo-$(printf %s "$top" | md5sum | cut -c1-32)
    as "$who" "$engine" import "$KIT/git.tar" kit/git:1 >/dev/null 2>"$said" || { echo "no image with git" && return; }
    as "$who" sh -c 'git init -q -b main "$1" && cd "$1" && git config user.name a && git config user.email a@b.test && echo one >a.txt && git add a.txt && git commit -q -m first && git branch feature/one && mkdir .pinfold' - "$top" || return
    printf 'version: 1\nengine: %s\nimage: kit/git:1\n' "$engine" | as "$who" tee "$top/.pinfold/policy.yaml" >/dev/null
    dir=$top pf_rc trust .
    # Killed at its calls, while git provisions and before and after: the next one completes it.
    branch_kills || return
    dir=$top pf_rc start --branch feature/one
    [ $rc = 0 ] || { echo "start after a kill: status $rc" && return; }
    dir=$top pf_rc start --branch two
    [ $rc = 0 ] && told "'two' begins with the checkout's commit" || { echo "a second branch: status $rc" && return; }
    dir=$top pf_rc list
    printed "branch two  *running  *$engine .*/repo-shelf/worktrees/two" && printed "branch feature/one  *running" || { echo "list" && return; }
    in_branch feature/one 'pwd; git symbolic-ref --short HEAD; git remote get-url host; ls /repo-shelf/worktrees; test -e /.agent-sandbox && echo marked; (cd /workspace/* && touch x); git config user.name a; git config user.email a@b.test
        echo two >a.txt; git commit -qam second && git push host feature/one && git push host HEAD:main; echo main-$?; git commit -q --amend -m other; git push --force host HEAD; echo force-$?; git fetch -q host && git reset -q --hard host/feature/one'
    [ "$(head -n 3 "$out" | tr '\n' ' ')" = "/repo-shelf/worktrees/feature__one feature/one file:///workspace/${top##*/} " ] && printed '^two$' && printed '^marked$' || { echo "the branch's box" && return; }
    printed '^main-1$' && told 'branch is currently checked out' && printed '^force-1$' && told non-fast-forward && told "x: Read-only file system" || { echo "what is refused" && return; }
    [ "$(as "$who" git -C "$top" log -1 --format=%s feature/one)" = second ] && [ "$(as "$who" git -C "$top" log -1 --format=%s main)" = first ] || { echo "what landed" && return; }
    in_branch two 'cat a.txt; git log -1 --format=%s feature/one' # one repository, two worktrees
    [ "$(tr '\n' ' ' <"$out")" = "one second " ] || { echo "the other box" && return; }
    dir=$top pf_rc rm --branch two
    [ $rc = 0 ] && [ ! -e "$shelf/shelf/worktrees/two" ] && [ -e "$shelf/shelf/worktrees/feature__one" ] || { echo "rm --branch: status $rc" && return; }
    dir=$top pf_rc stop --branch feature/one
    [ $rc = 0 ] || { echo "stop: status $rc" && return; }
    # With hooks.
    printf '#!/bin/sh\n! grep FORBIDDEN a.txt\n' | as "$who" tee "$top/.git/hooks/pre-commit" >/dev/null && chmod 755 "$top/.git/hooks/pre-commit"
    echo 'git: {verify: required}' | as "$who" tee -a "$top/.pinfold/policy.yaml" >/dev/null
    dir=$top pf_rc trust .
    dir=$top pf_rc start --branch feature/one
    before=$(as "$who" git -C "$top" rev-parse main)
    in_branch feature/one 'echo fine >a.txt; git commit -qnam third && git push host HEAD; echo good-$?; echo FORBIDDEN >a.txt; git commit -qnam fourth; git push host HEAD; echo bad-$?'
    printed '^good-0$' && printed '^bad-1$' && told '(fourth): the hook pre-commit failed' || { echo "hooks" && return; }
    [ "$(as "$who" git -C "$top" log -1 --format=%s feature/one)" = third ] && [ "$(as "$who" git -C "$top" rev-parse main)" = "$before" ] || { echo "what landed past hooks" && return; }
    dir=$top pf_rc run -- true
    [ $rc = 125 ] && told 'git.verify: required .*only the engine native' || { echo "a box that writes the repository: status $rc" && return; }
    dir=$top pf_rc rm
    [ $rc = 1 ] && told 'has 1 commit that neither' || { echo "rm of what is nowhere else: status $rc" && return; }
    dir=$top pf_rc rm --force
    [ $rc = 0 ] && [ ! -e "$shelf" ] || { echo "rm: status $rc, or the shelf is left" && return; }
    [ -z "$(left)" ] || echo "a container is left"
    rm -rf "$top"
}
