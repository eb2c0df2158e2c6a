#!/bin/sh
# needs: ssh-keygen
set -eu
ssh-keygen -q -t ed25519 -N '' -f key
ssh-keygen -l -f key.pub >/dev/null
test "$(stat -c %a key)" = 600
