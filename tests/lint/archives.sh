#!/bin/sh
# Debian's static libyaml, libmd, libjansson and libsqlite3 are built for glibc and linked with musl here. That works as long as they ask for
# plain functions, and for nothing of glibc's own but what the files glibc_shim.c and musl have: this checks it.
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
# All of libsqlite3.
plain="$plain __memcpy_chk __memmove_chk __memset_chk access acos acosh asin asinh atan atan2 atanh ceil cos cosh dlclose dlerror dlopen dlsym exp fchmod fchown fcntl64 fdatasync floor fmod fstat64 ftruncate64 getcwd getenv geteuid localtime_r log log10 log2 lseek64 lstat64 mkdir mmap64 mremap munmap nanosleep open64 pow pread64 pthread_create pthread_join pthread_mutex_destroy pthread_mutex_init pthread_mutex_lock pthread_mutex_trylock pthread_mutex_unlock pthread_mutexattr_destroy pthread_mutexattr_init pthread_mutexattr_settype pwrite64 readlink rmdir sin sinh sleep sqrt stat64 strchrnul strcspn strrchr strspn sysconf tan tanh time trunc usleep utime"
look "$lib/libsqlite3.a"
exit $status
