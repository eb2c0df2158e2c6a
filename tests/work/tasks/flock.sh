#!/bin/sh
# needs: flock
set -eu
touch lock
flock lock sh -c 'if flock -n lock true; then exit 1; fi'
# On a descriptor that others share, with a time to wait, and for as long as it takes.
(
    flock 9
    sleep 1
) 9>>lock &
sleep 0.3
if flock -w 0.2 lock true; then exit 1; fi
flock -s lock true
wait
flock lock true
