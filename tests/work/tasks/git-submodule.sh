#!/bin/sh
# needs: git
set -eu
git clone -q repo super
cd super
git -c protocol.file.allow=always submodule --quiet add ../repo sub
git commit -qm "with a submodule"
test -f sub/README
grep -q 'path = sub' .gitmodules
cd sub
git checkout -q -b inside
echo y >y
git add y
git commit -qm y
cd ..
git -c protocol.file.allow=always submodule --quiet update --init
