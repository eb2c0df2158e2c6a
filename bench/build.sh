#!/bin/sh
# Builds the bench's own programs into $1 (default bench/.build). Needs cc, musl-gcc and libseccomp's headers, nothing else.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-$here/.build}
src=$here/../src
mkdir -p "$out"
cc -std=gnu11 -O1 -I"$src" "$src/tools/filter_gen.c" -o "$out/filter-gen" -lseccomp
"$out/filter-gen" "$(uname -m)" filters "$out/filter.c"
cc -std=gnu11 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror -static "$here/spawn.c" -o "$out/spawn"
cc -std=gnu11 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror -static "$here/spew.c" -o "$out/spew"
cc -std=gnu11 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror -static "$here/create.c" -o "$out/create"
musl-gcc -idirafter /usr/include -idirafter "/usr/include/$(uname -m)-linux-gnu" -std=gnu11 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror -static "$here/tunnels.c" -o "$out/tunnels"
musl-gcc -idirafter /usr/include -idirafter "/usr/include/$(uname -m)-linux-gnu" -std=gnu11 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror -static "$here/enter.c" -o "$out/enter"
# `true` three ways: what a program costs by itself is part of every cold start.
printf 'int main(void) { return 0; }\n' >"$out/true.c"
musl-gcc -O2 -static "$out/true.c" -o "$out/true"
cc -O2 -static "$out/true.c" -o "$out/true-glibc"
cc -O2 "$out/true.c" -o "$out/true-dynamic"
printf '#include <unistd.h>\nint main(void) { return pause(); }\n' >"$out/pause.c"
musl-gcc -O2 -static "$out/pause.c" -o "$out/pause"
# The floor's steps are those of the plan, which bench/bench puts there.
[ -e "$out/floor-plan.h" ] || exit 0
cc -std=gnu11 -Os -Wall -Wextra -Werror -I"$src" -I"$out" -static -nostdlib -ffreestanding -fno-stack-protector -fno-pie \
    -no-pie -fno-asynchronous-unwind-tables -fno-tree-loop-distribute-patterns "$here/floor.c" "$out/filter.c" -o "$out/floor"
