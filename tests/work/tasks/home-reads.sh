#!/bin/sh
# needs: git
# outside: no
set -eu
test "$(git config --global user.name)" = Tester
if touch ~/new 2>/dev/null; then exit 1; fi
