#!/bin/sh
set -eu
for i in 1 2 3 4; do
    (
        mkdir "p$i"
        n=0
        while [ "$n" -lt 200 ]; do
            echo "$n" >"p$i/$n"
            n=$((n + 1))
        done
    ) &
done
wait
test "$(find p1 p2 p3 p4 -type f | wc -l)" = 800
