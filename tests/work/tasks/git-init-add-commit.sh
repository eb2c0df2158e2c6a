#!/bin/sh
# needs: git
set -eu
mkdir fresh && cd fresh
git init -q -b main
echo one >a
git add a
git commit -q -m first
echo two >>a
git commit -q -a -m second
test "$(git rev-list --count HEAD)" = 2
git diff --quiet
git log --oneline >/dev/null
git gc -q
git fsck --full >/dev/null 2>&1
