#!/bin/sh
# needs: inotifywait
set -eu
mkdir d
inotifywait -q -t 10 -e create d >seen &
sleep 0.3
touch d/new
wait
grep -q 'CREATE new' seen
