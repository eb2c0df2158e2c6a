#!/bin/sh
set -eu
umask 077
touch private
test "$(stat -c %a private)" = 600
umask 002
mkdir shared
test "$(stat -c %a shared)" = 775
mkdir -m 700 secret
test "$(stat -c %a secret)" = 700
