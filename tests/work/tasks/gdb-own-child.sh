#!/bin/sh
# needs: gdb gcc
set -eu
printf 'int answer = 41;\nint main(void) { answer++; return 0; }\n' >a.c
gcc -g -O0 -o a a.c
gdb -q -batch -ex 'break main' -ex run -ex next -ex 'print answer' ./a 2>&1 | grep -q '= 42'
