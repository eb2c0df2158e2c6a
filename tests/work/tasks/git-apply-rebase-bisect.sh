#!/bin/sh
# needs: git
set -eu
cd repo
for i in 1 2 3 4; do
    echo "$i" >>log
    git add log
    git commit -qm "c$i"
done
git format-patch -q -2 -o ../patches
git reset -q --hard HEAD~2
git am -q ../patches/*.patch
git bisect start HEAD HEAD~3 >/dev/null
# shellcheck disable=SC2016 # expanded by the inner shell
git bisect run sh -c 'test "$(wc -l <log)" -lt 4' >/dev/null
git bisect reset >/dev/null 2>&1
git cherry-pick -x HEAD~1 >/dev/null 2>&1 || git cherry-pick --abort
