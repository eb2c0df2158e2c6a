#!/bin/sh
# needs: git
# workspace: linked
# The workspace is a linked worktree: its repository lies elsewhere, inside what the policy lets write.
# policy: --rw {scene}/repo/.git
set -eu
echo x >file
git add file
git commit -qm "in a linked worktree"
git status --porcelain | grep -q . && exit 1
test "$(git log -1 --format=%s)" = "in a linked worktree"
