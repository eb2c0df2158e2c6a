#!/bin/sh
# needs: git
set -eu
cd repo
git remote add origin ../bare.git
git push -q -u origin main
test "$(git rev-parse main)" = "$(git -C ../bare.git rev-parse main)"
test "$(git config branch.main.remote)" = origin
git checkout -q -b topic
git push -q --set-upstream origin topic
git checkout -q -b tracking --track origin/main
git fetch -q --prune origin
git pull -q --ff-only
git branch -q --unset-upstream
git remote set-url origin ../other.git
git remote remove origin
