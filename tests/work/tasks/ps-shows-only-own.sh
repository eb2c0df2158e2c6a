#!/bin/sh
# needs: ps
# outside: no
set -eu
test "$(ps -e --no-headers | wc -l)" -lt 10
ps -ef >list
grep -q "ps -ef" list
test "$(ps -o pid= -p 1)" -eq 1
