#!/bin/sh
# Every program that is installed can be loaded at any address, and nothing in its code has to be changed for that: pie.sh PROGRAM...
set -eu
[ $# -gt 0 ] || { echo "pie.sh: no programs"; exit 1; }
status=0
for program in "$@"; do
    if ! readelf -hW "$program" | grep -q 'Type: *DYN'; then
        echo "$program is not position-independent"
        status=1
    elif readelf -dW "$program" | grep -qE 'TEXTREL'; then
        echo "$program has relocations in its code"
        status=1
    fi
done
exit $status
