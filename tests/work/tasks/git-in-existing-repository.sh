#!/bin/sh
# needs: git
set -eu
cd repo
echo change >>README
git add README
git commit -q -m change
git tag v1
git checkout -q -b topic
echo more >>README
git commit -q -am more
git checkout -q main
git merge -q topic
git reset -q --hard HEAD~1
git status --porcelain | grep -v '^??' && exit 1
test "$(git log -1 --format=%an)" = Tester
