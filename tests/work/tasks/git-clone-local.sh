#!/bin/sh
# needs: git
set -eu
git clone -q repo copy
cd copy
test -f README
git log -1 --format=%H >/dev/null
echo x >x
git add x
git commit -qm x
git pull -q --rebase
git rebase -q HEAD~0
