#!/bin/sh
# needs: git
set -eu
cd repo
git checkout -q -b old
git config branch.old.description words || true
git branch -m old new
test "$(git symbolic-ref --short HEAD)" = new
git branch -q -D main
