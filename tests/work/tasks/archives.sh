#!/bin/sh
# needs: tar zip unzip rsync xz
set -eu
mkdir -p tree/sub
echo one >tree/one
ln -s one tree/link
ln tree/one tree/hard
chmod 640 tree/one
tar -cJf tree.tar.xz tree
mkdir out
tar -xJf tree.tar.xz -C out
test "$(stat -c %a out/tree/one)" = 640
test "$(readlink out/tree/link)" = one
zip -qr tree.zip tree
unzip -q tree.zip -d zipped
rsync -a tree/ copy/
rsync -a --delete tree/ copy/
diff -r tree copy
cp -a tree copied
test "$(stat -c %Y tree/one)" = "$(stat -c %Y copied/one)"
