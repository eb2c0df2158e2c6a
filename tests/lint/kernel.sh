#!/bin/bash
# What builds a box and what supervises it calls the kernel by sys/ alone, where tests make every call fail. Proved by what
# these folders leave undefined: kernel.sh BUILD_FOLDER
set -u
here=$(dirname "$0")
build=$1
archives=()
for folder in guard runtime pump; do # and backends/native, below
    archive=$build/src/$folder/libpf_$folder.a
    [ -e "$archive" ] || {
        echo "$archive is not there"
        exit 1
    }
    archives+=("$archive")
done
native=("$build"/src/backends/libpf_backends.a.p/native_*.o)
[ -e "${native[0]}" ] || {
    echo "the objects of backends/native are not there"
    exit 1
}
archives+=("${native[@]}")
# Besides what pure folders may use: the clock (no call of the kernel's), closing and ending, a handler, which needs its way back, the kernel's version, memory of a thread.
allowed=$(
    sed 's/ *#.*//; /^$/d' "$here/pure-symbols"
    printf '%s\n' clock_gettime close _exit signal 'sig(empty|add)set' __executable_start _end __popcountdi2 uname __tls_get_addr
)
defined=$(nm --defined-only --format=posix "$build"/src/*/libpf_*.a "$build"/src/*/*/libpf_*.a 2>/dev/null | awk 'NF >= 3 { print $1 }' | sort -u)
reached=$(nm -u --format=posix "${archives[@]}" 2>/dev/null | awk 'NF >= 2 { print $1 }' | sort -u)
outside=$(comm -23 <(echo "$reached") <(echo "$defined") | grep -vxE -f <(echo "$allowed"))
[ -z "$outside" ] && exit 0
for symbol in $outside; do
    where=$(nm -A -u "${archives[@]}" 2>/dev/null | awk -v s="$symbol" '$NF == s { print $1 }' | sed 's,.*/,,' | tr '\n' ' ')
    echo "$symbol is called, not by sys/: $where"
done
exit 1
