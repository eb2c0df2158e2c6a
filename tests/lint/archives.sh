#!/bin/sh
# Debian's static libyaml, libmd and libjansson are built for glibc and linked with musl here. That works as long as they ask for
# plain functions, and for nothing of glibc's own but what the file base/glibc_shim.c and musl have: this checks it.
set -eu
lib=/usr/lib/$(uname -m)-linux-gnu
plain='abort close fclose ferror fopen fread free fseek fstat fwrite lseek malloc memcmp memcpy memmove memset open read realloc snprintf strchr strcmp strdup strlen strncmp unlink write
__assert_fail __errno_location __stack_chk_fail'
source=${PINFOLD_SOURCE:-$(dirname "$0")/../..}
shim=$(sed -n 's/^[a-z].*[ *]\(__[a-z0-9_]*\)(.*)$/\1/p' "$source/src/base/glibc_shim.c")
plain="$plain
$shim"
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
plain="$plain fgetc getpid gettimeofday localeconv memchr qsort sched_yield stdin strerror strncpy strtod strtoll _GLOBAL_OFFSET_TABLE_"
look "$lib/libjansson.a"

# Another distribution's archives of the same sources call the checked forms that this one's do not (_FORTIFY_SOURCE=3 on Ubuntu): whatever
# checked form glibc has of a function asked for above, the file has.
checked=$(nm -D --defined-only "/lib/$(uname -m)-linux-gnu/libc.so.6" | sed -n 's/^[^ ]* [A-Za-z] \(__[a-z0-9]*_chk\|__open_2\|__open64_2\)@.*/\1/p')
[ "$checked" ] || { echo "no checked functions found in glibc" && exit 1; }
# shellcheck disable=SC2086 # a list of names
for name in $(printf '%s\n' $plain sprintf vsprintf vsnprintf fprintf strcpy strcat strtol strtoul strtoull); do
    for form in $(printf '%s\n' "$checked" | grep -x "__${name}_chk\|__${name}_2\|__${name}64_2") $(printf '%s\n' "__isoc23_$name" | grep -E -x '__isoc23_strtou?ll?'); do
        printf '%s\n' "$shim" | grep -qx "$form" || { echo "base/glibc_shim.c lacks $form" && status=1; }
    done
done
exit $status
