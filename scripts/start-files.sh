#!/bin/sh
# The files of a static, position-independent program's start that a C compiler for musl has: start-files.sh COMPILER...
# musl-gcc links them neither for -static-pie nor otherwise, so the build does (meson.build). They lie beside crt1.o.
set -eu
for one in $("$@" '-###' -x c /dev/null 2>&1 | tr ' "' '\n' | grep -E '/S?crt1\.o$'); do
    place=${one%/*}
    if [ -e "$place/rcrt1.o" ]; then
        printf '%s\n' "$place/rcrt1.o" "$place/crti.o" "$place/crtn.o"
        exit 0
    fi
done
echo "start-files.sh: $* has no rcrt1.o, the beginning of a static position-independent program" >&2
exit 1
