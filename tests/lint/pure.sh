#!/bin/bash
# base, match, protocol, git, policy, judge and plan are pure: they decide and touch nothing. Proved by what they leave undefined: memory, string
# and format functions and each other, no file, clock, environment or system call. pure.sh BUILD_FOLDER
set -u
here=$(dirname "$0")
build=$1
archives=()
for folder in base match protocol git policy judge plan; do
    archive=$build/src/$folder/libpf_$folder.a
    [ -e "$archive" ] && archives+=("$archive")
done
[ "${#archives[@]}" -gt 0 ] || {
    echo "no archive of a pure folder in $build/src"
    exit 1
}
defined=$(nm --defined-only --format=posix "${archives[@]}" 2>/dev/null | awk 'NF >= 3 { print $1 }' | sort -u)
reached=$(nm -u --format=posix "${archives[@]}" 2>/dev/null | awk 'NF >= 2 { print $1 }' | sort -u)
outside=$(comm -23 <(echo "$reached") <(echo "$defined") | grep -vxE -f <(sed 's/ *#.*//; /^$/d' "$here/pure-symbols"))
if [ -n "$outside" ]; then
    for symbol in $outside; do
        where=$(nm -A -u "${archives[@]}" 2>/dev/null | awk -v s="$symbol" '$NF == s { print $1 }' | sed 's,.*/,,' | tr '\n' ' ')
        echo "a deciding folder reached for the world: $symbol ($where)"
    done
    exit 1
fi
# A function in the facts would be such a call that no symbol shows.
if grep -nE '\(\*[a-z_ ]*\)[[:space:]]*\(' "$here/../../src/plan/facts.h" "$here/../../src/plan/plan.h"; then
    echo "a function pointer in what the planner is given: make it a value"
    exit 1
fi
