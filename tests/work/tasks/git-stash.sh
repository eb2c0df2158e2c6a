#!/bin/sh
# needs: git
set -eu
cd repo
echo change >>README
git stash -q
git diff --quiet
git stash pop -q
grep -q change README
git stash -q -u
git stash drop -q
