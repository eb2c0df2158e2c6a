#!/bin/sh
set -eu
touch 'with space' "with'quote" 'with"double' "$(printf 'with\nnewline')" "$(printf 'latin\351')" -- '-dash' '*star' 'unicode-ü-日本'
test "$(find . -type f | tr -cd '\0-\377' | grep -c .)" -ge 8
mkdir "$(printf 'dir\377')"
echo x >"$(printf 'dir\377')/file"
cat "$(printf 'dir\377')/file" >/dev/null
mv 'with space' 'other space'
rm -r ./*
