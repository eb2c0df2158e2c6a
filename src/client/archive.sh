#!/bin/sh
# One static library out of another, with everything local but what is visible: archive.sh FROM TO SCRATCH
set -eu
mkdir -p "$3"
ld -r --whole-archive "$1" -o "$3/all.o"
objcopy --localize-hidden "$3/all.o"
rm -f "$2"
ar rcs "$2" "$3/all.o"
