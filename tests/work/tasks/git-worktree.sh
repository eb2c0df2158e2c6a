#!/bin/sh
# needs: git
set -eu
cd repo
git worktree add -q ../tree -b side
cd ../tree
echo side >side
git add side
git commit -qm side
git status --porcelain | grep -q . && exit 1
cd ../repo
git worktree list | grep -q side
git worktree remove ../tree
git branch -q -D side
