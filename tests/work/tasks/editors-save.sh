#!/bin/sh
# As editors and formatters replace files: beside it, then renamed; or a backup, then written.
set -eu
cd repo
cp README README.tmp
mv README.tmp README
mv README README~
echo new >README
rm README~
sed -i 's/new/newer/' README
grep -q newer README
