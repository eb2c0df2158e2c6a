#!/bin/sh
# needs: flock
set -eu
touch lock
flock lock sh -c 'if flock -n lock true; then exit 1; fi'
