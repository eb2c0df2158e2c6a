#!/bin/sh
# /tmp, /var/tmp, /dev/shm and /run take what programs put there.
set -eu
f=$(mktemp)
echo x >"$f"
mktemp -d >/dev/null
echo x >/dev/shm/pinfold-work
rm /dev/shm/pinfold-work
test -c /dev/null
head -c 10 /dev/zero | wc -c | grep -q 10
head -c 10 /dev/urandom | wc -c | grep -q 10
echo x >/dev/null
test -r /proc/self/status
test -r /proc/cpuinfo
test -d /sys
