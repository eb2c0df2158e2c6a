#!/bin/sh
# needs: tar
# A tree of a system has links into /proc and /dev.
set -eu
mkdir -p root/dev root/etc root/var/log
ln -s /proc/self/fd root/dev/fd
ln -s /proc/self/fd/0 root/dev/stdin
ln -s fd/1 root/dev/stdout
ln -s /proc/kcore root/dev/core
ln -s ../proc/self/mounts root/etc/mtab
ln -s /dev/stdout root/var/log/access.log
ln -s /proc/1/fd/1 root/var/log/cron.log
tar cf root.tar root
mkdir there
tar xf root.tar -C there
cp -a root copy
test "$(readlink there/root/etc/mtab)" = ../proc/self/mounts
test "$(find there copy -type l | wc -l)" = 14
