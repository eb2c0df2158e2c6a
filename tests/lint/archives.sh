#!/bin/sh
# Debian's static libyaml, libmd and libjansson are built for glibc and linked with musl here. That works as long as they ask for
# plain functions, and for nothing of glibc's own but what the file run/glibc_shim.c and musl have: this checks it.
set -eu
lib=/usr/lib/$(uname -m)-linux-gnu
plain='abort close fclose ferror fopen fread free fseek fstat fwrite lseek malloc memcmp memcpy memmove memset open read realloc snprintf strchr strcmp strdup strlen strncmp unlink write
__assert_fail __errno_location __sprintf_chk __stack_chk_fail'
# Parts of libmd that the program does not use (hashing whole files) are not linked; only sha2 is looked at there.
status=0
look() { # archive, members ...
    archive=$1
    shift
    ar t "$archive" >/dev/null
    scratch=$(mktemp -d)
    (cd "$scratch" && ar x "$archive" "$@")
    asked=$(nm -u "$scratch"/*.o 2>/dev/null | awk '$1 == "U" {print $2}' | sort -u)
    given=$(nm --defined-only "$scratch"/*.o 2>/dev/null | awk 'NF == 3 {print $3}' | sort -u)
    rm -rf "$scratch"
    # shellcheck disable=SC2086 # lists of names
    alien=$({ printf '%s\n' $plain $given | sed p && printf '%s\n' $asked; } | sort | uniq -u)
    for name in $alien; do
        echo "$archive asks for $name"
        status=1
    done
}
look "$lib/libyaml.a"
look "$lib/libmd.a" sha2.o
# Parts of libjansson: reading and printing. Seeds, and reading of files, ask for more that every C library has.
plain="$plain __isoc23_strtol __isoc23_strtoll __isoc23_strtoul __isoc23_strtoull __snprintf_chk __strncpy_chk __vsnprintf_chk fgetc getpid gettimeofday localeconv memchr qsort sched_yield stdin strerror strncpy strtod strtoll _GLOBAL_OFFSET_TABLE_"
look "$lib/libjansson.a"
exit $status
