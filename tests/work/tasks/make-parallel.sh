#!/bin/sh
# needs: make gcc
# fixture: c-project
set -eu
cd c-project
i=0
while [ "$i" -lt 40 ]; do
    printf 'int f%d(void) { return %d; }\n' "$i" "$i" >"gen$i.c"
    i=$((i + 1))
done
make -s -j4
./main | grep -q "sum is 780"
make -s -j4 check
make -s clean
