#!/bin/sh
# needs: inotifywait
set -eu
mkdir d
inotifywait -t 60 -e create d >seen 2>state &
for _ in $(seq 600); do
    if grep -qs 'Watches established' state; then break; fi
    sleep 0.05
done
touch d/new
wait
grep -q 'CREATE new' seen
