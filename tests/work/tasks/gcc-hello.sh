#!/bin/sh
# needs: gcc
set -eu
printf '#include <stdio.h>\nint main(void) { puts("hello"); return 0; }\n' >hello.c
gcc -O2 -Wall -o hello hello.c
test "$(./hello)" = hello
gcc -static -o hello-static hello.c
test "$(./hello-static)" = hello
