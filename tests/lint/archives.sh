#!/bin/sh
# Debian's static libyaml and libmd are built for glibc and linked with musl here. That works as long as they ask for
# plain functions, and for nothing of glibc's own but what src/lib/glibc_shim.c and musl have: this checks it.
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
    asked=$(nm -u "$scratch"/*.o | awk '$1 == "U" {print $2}' | sort -u)
    given=$(nm --defined-only "$scratch"/*.o | awk 'NF == 3 {print $3}' | sort -u)
    rm -rf "$scratch"
    for name in $asked; do
        case " $(echo "$plain $given" | tr '\n' ' ') " in
        *" $name "*) ;;
        *)
            echo "$archive asks for $name"
            status=1
            ;;
        esac
    done
}
look "$lib/libyaml.a"
look "$lib/libmd.a" sha2.o
exit $status
