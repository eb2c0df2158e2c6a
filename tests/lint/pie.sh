#!/bin/sh
# Every program that is installed can be loaded at any address, and nothing in its code has to be changed for that: pie.sh PROGRAM...
# A static one for x86-64 tells its addresses in packed form (base/start.c), which each start reads.
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
    elif readelf -hW "$program" | grep -q X86-64 && ! readelf -lW "$program" | grep -q INTERP && ! readelf -dW "$program" | grep -q '(RELR)'; then
        echo "$program has a table of unpacked relocations"
        status=1
    fi
done
exit $status
