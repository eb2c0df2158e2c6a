#!/bin/sh
# needs: flock
set -eu
touch lock
flock lock sh -c 'if flock -n lock true; then exit 1; fi'
# On a descriptor that others share, with a time to wait, and for as long as it takes.
(
    flock 9
    echo held >held
    until test -e over; do sleep 0.05; done
) 9>>lock &
until test -s held; do sleep 0.05; done
if flock -w 0.2 lock true; then exit 1; fi
touch over
flock -s lock true
wait
flock lock true
