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
# Links are tracked as links: git asks the file system by making one below .git.
ln -s README link
git add link
git commit -qm link
git clone -q . ../linked
test "$(readlink ../linked/link)" = README
test -z "$(git -C ../linked config core.symlinks)"
